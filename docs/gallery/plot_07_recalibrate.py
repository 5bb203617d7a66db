"""
Repair, and an honest before and after
======================================

*What does temperature scaling do on rows it was not fitted on?* Fitted on the validation file, measured on the test
file.
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
# With one file only, `cross_fit` maps every row by a method that was fitted on the others.

mapped = cal.cross_fit(cal.TemperatureScaling(), validation.values, validation.labels, folds=5, seed=0)
print("before:", cal.ECE(validation))
print("after: ", cal.ECE(mapped))
