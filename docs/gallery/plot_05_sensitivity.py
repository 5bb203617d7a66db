"""
Does it depend on the bins?
===========================

*How much of a number is the choice of bins?* The same error at several numbers of bins, with what resampling the rows
does to it.
"""

import calibrant as cal
from calibrant import plots
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")
display = plots.SensitivityDisplay.from_predictions(predictions, bootstrap=100, seed=0)

# %%
# With 300 rows instead of 10,000 the answer is another one: more bins, more noise, a larger error.

few = plots.SensitivityDisplay.from_predictions(predictions[:300], bootstrap=100, seed=0)
print(cal.sensitivity(cal.ECE, predictions[:300], over="n_bins", values=[5, 15, 50], bootstrap=100, seed=0))
