"""
Reliability with a band
=======================

*Is confidence equal to accuracy, and is the difference more than noise?* Each bar is one bin of the metric. The line
through a dot is its bootstrap interval. The grey box shows where the dot of a calibrated model would lie.
"""

# sphinx_gallery_thumbnail_number = 2

import calibrant as cal
from calibrant import plots
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")
display = plots.ReliabilityDisplay.from_predictions(
    predictions, interval=cal.Bootstrap(200, seed=0), consistency=200, seed=0
)
print(display.result)

# %%
# Nearly all confidences are above 0.9, and a linear axis shows them as one bar. Equal-mass bins on logit axes spread
# them out. The line is the isotonic reliability curve, which needs no bins.

stretched = plots.ReliabilityDisplay.from_predictions(
    predictions, metric=cal.ADAPTIVE_ECE, curve=plots.isotonic, logit=True
)
