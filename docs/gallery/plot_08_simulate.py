"""
Bias of calibration errors
==========================

*Which metric is closest to the true error for a model like mine?* A distribution of scores and a calibration curve
are fitted to the predictions. Every metric is then simulated with the same number of rows.
"""

from calibrant import simulate
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")[:500]
simulated = simulate.like(predictions, replicates=50, seed=0)
figure = simulate.picture(simulated)

# %%
# Crosses show the observed values, marks the true error that each metric estimates. In numbers:

print(simulated)
