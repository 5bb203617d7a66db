"""
Reliability with a band
=======================

*Does what is forecast happen as often as forecast, and is the difference more than noise?* Each bar is a bin of the
table that the error was concluded from. The line through a dot is its bootstrap interval; the grey box is where the
dot would lie if the model were calibrated.
"""

import calibrant as cal
from calibrant import plots
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")
display = plots.ReliabilityDisplay.from_predictions(
    predictions, interval=cal.Bootstrap(200, seed=0), consistency=200, seed=0
)
print(display.result)

# %%
# Nearly all forecasts are above 0.9, and a straight axis hides them in the last bar. Equal-mass bins on stretched axes
# show the part where the samples are; the line is the reliability curve without bins.

stretched = plots.ReliabilityDisplay.from_predictions(
    predictions, metric=cal.ADAPTIVE_ECE, curve=plots.isotonic, logit=True
)
