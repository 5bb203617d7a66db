"""
Calibration of the top k classes
================================

*If the five most probable classes are shown, are their probabilities calibrated together?* The error of the k largest
probabilities, for growing k, beside the error that noise alone would make.
"""

import calibrant as cal
from calibrant import plots
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")
display = plots.TopKDisplay.from_predictions(predictions, most=5, consistency=20, seed=0)

# %%
# The sum of the k largest probabilities is itself a prediction: that the true class is among them.

for k in (1, 2, 3, 5):
    print(cal.BinnedError(lens=cal.InTopK(k))(predictions))
