"""
How far down the list?
======================

*When the five likeliest answers are shown, can their probabilities be trusted together?* The error of the k largest
outputs and the rest, for growing k, beside the error that noise alone would make.
"""

import calibrant as cal
from calibrant import plots
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")
display = plots.TopKDisplay.from_predictions(predictions, most=5, consistency=20, seed=0)

# %%
# The sum of the k likeliest outputs is a forecast too: that the truth is among them.

for k in (1, 2, 3, 5):
    print(cal.BinnedError(lens=cal.InTopK(k))(predictions))
