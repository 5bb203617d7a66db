"""
Compare models
==============

*Is the difference between models more than noise?* All models predict the same rows. So the same bootstrap samples are
used for all, and what they have in common cancels.
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
# All three predict the same classes: a temperature changes the confidence, not the predicted class.

print(cal.compare(cal.ECE, softer, predictions, n=200, seed=0))
print(cal.compare(cal.ACCURACY, softer, predictions, n=200, seed=0))
