"""
Over-confident classes
======================

*Mean confidence minus accuracy, for the samples of each true class.* Above 0 the model is over-confident.
"""

import calibrant as cal
from calibrant import plots
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")
display = plots.SignedGapsDisplay.from_predictions(predictions, interval=cal.Bootstrap(200, seed=0), seed=0)

# %%
# Given the true class, the accuracy is the recall of the class. Even a calibrated model need not have zeros above.
# Grouped by the *predicted* class, a calibrated model has gaps close to 0:

by_prediction = cal.BinnedError(lens=cal.ByPrediction(cal.TopLabel()), binning=cal.EqualWidth(1), distance=cal.signed)
for name, part in by_prediction(predictions).parts.items():
    print(f"{name:12} {part.value:+.3f}")

# %%
# The reliability diagrams of the four worst classes, each against all others:

multiples = plots.SmallMultiplesDisplay.from_predictions(predictions, most=4)

# %%
# All classes in one diagram, for three class-wise errors:

pooled = plots.ClassBinsDisplay.from_predictions(predictions)
