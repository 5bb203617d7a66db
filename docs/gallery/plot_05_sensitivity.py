"""
Sensitivity to the number of bins
=================================

*How much does ECE depend on the number of bins?* The same error at several numbers of bins, with its spread over
bootstrap samples.
"""

import calibrant as cal
from calibrant import plots
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")
display = plots.SensitivityDisplay.from_predictions(predictions, bootstrap=100, seed=0)

# %%
# With 300 rows instead of 10,000 the choice matters: more bins, more noise, a larger error.

few = plots.SensitivityDisplay.from_predictions(predictions[:300], bootstrap=100, seed=0)
print(cal.sensitivity(cal.ECE, predictions[:300], over="n_bins", values=[5, 15, 50], bootstrap=100, seed=0))
