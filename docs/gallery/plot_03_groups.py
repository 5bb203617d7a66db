"""
Calibration by subgroup
=======================

*Is the error the same in every subgroup?* Small groups have large errors by noise alone. The grey bar of each group
ends at the 95% quantile of a calibrated model.
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
