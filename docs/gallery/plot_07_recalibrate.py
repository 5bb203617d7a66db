"""
Recalibrate a model
===================

*How much does temperature scaling help on new rows?* It is fitted on validation rows and measured on test rows.
"""

import calibrant as cal
from calibrant import plots
from calibrant.files import SHIPPED, read

validation = read(SHIPPED / "fashion_mnist_validation.npz")
test = read(SHIPPED / "fashion_mnist_test.npz")

scaling = cal.TemperatureScaling(input="logits").fit(validation.values, validation.labels)
after = scaling.recalibrate(test)
display = plots.BeforeAfterDisplay.from_predictions(test, after, interval=cal.Bootstrap(200, seed=0))
print(scaling.certificate_)

# %%
# With one file only, `cross_fit` recalibrates every row by a map that was fitted on other rows.

mapped = cal.cross_fit(cal.TemperatureScaling(), validation.values, validation.labels, folds=5, seed=0)
print("before:", cal.ECE(validation))
print("after: ", cal.ECE(mapped))
