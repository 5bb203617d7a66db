"""
How biased is my number?
========================

*On a model like mine, whose truth is known, which estimator comes closest?* A law of scores and a calibration curve
are fitted to the predictions; every estimator is then simulated at the same number of rows.
"""

from calibrant import simulate
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")[:500]
found = simulate.like(predictions, replicates=50, seed=0)
figure = simulate.picture(found)

# %%
# Crosses are what was observed, marks the truth that each estimator aims at. In numbers:

print(found)
