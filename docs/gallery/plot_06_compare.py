"""
Which of two models is better calibrated?
=========================================

*Is the difference more than noise?* Both models forecast the same rows, so both are resampled together: what is
common to both cancels.
"""

import calibrant as cal
from calibrant import plots
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")
softer = cal.Predictions.from_logits(predictions.labels, predictions.values / 2)
much_softer = cal.Predictions.from_logits(predictions.labels, predictions.values / 4)

models = {"as trained": predictions, "logits / 2": softer, "logits / 4": much_softer}
display = plots.ComparisonDisplay.from_predictions(models, n=200, seed=0)

# %%
# All three rank and classify alike: temperature changes how sure a model is, not what it answers.

print(cal.compare(cal.ECE, softer, predictions, n=200, seed=0))
print(cal.compare(cal.ACCURACY, softer, predictions, n=200, seed=0))
