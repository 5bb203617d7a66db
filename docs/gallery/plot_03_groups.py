"""
For whom is the model off?
==========================

*Is the error the same for every value of a column?* Small groups have large errors by noise alone, so each has its
own grey bar: 95% of the values of a calibrated model lie below its end.
"""

import calibrant as cal
from calibrant import plots
from calibrant.files import SHIPPED, read

predictions = read(SHIPPED / "fashion_mnist_test.npz")
display = plots.GroupsDisplay.from_predictions(
    predictions, by="ink", interval=cal.Bootstrap(200, seed=0), consistency=99, seed=0
)

# %%
# The same as a table, with more than one metric:

print(cal.table(predictions, {"accuracy": cal.ACCURACY, "ece": cal.ECE, "mcs": cal.MCS}, by="ink"))
