"""
Which classes is it too sure of?
================================

*Mean confidence less accuracy, for the samples of each true class.* Above 0 the model promises more than it keeps.
"""

import calibrant as cal
from calibrant import plots
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")
display = plots.SignedGapsDisplay.from_predictions(predictions, interval=cal.Bootstrap(200, seed=0), seed=0)

# %%
# Given the true class, the accuracy of a group is its recall, and a calibrated model need not have zeros above. Grouped
# by what was *predicted*, it must:

by_prediction = cal.BinnedError(lens=cal.ByPrediction(cal.TopLabel()), binning=cal.EqualWidth(1), distance=cal.signed)
for name, part in by_prediction(predictions).parts.items():
    print(f"{name:12} {part.value:+.3f}")

# %%
# The reliability diagrams of the worst four, as questions of their own:

multiples = plots.SmallMultiplesDisplay.from_predictions(predictions, most=4)

# %%
# All classes in one diagram, as three class-wise errors pool them:

pooled = plots.ClassBinsDisplay.from_predictions(predictions)
