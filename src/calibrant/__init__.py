"""A calibration error is five choices.

**Which samples** count (selection), **what question** is asked of each forecast (lens), **how samples are
pooled** (binning, or another estimator), **how far apart** forecast and truth are in a pool (distance), and
**how pools are combined** (aggregate; and across questions, where a lens asks several).

>>> import calibrant as cal
>>> print(cal.ECE([1, 0, 1, 1], [.9, .2, .6, .6]))
ECE 0.2750 (n=4, event, 15 equal-width bins)
"""

from calibrant import diagnostics
from calibrant.aggregates import (
    contraharmonic,
    maximum,
    mean,
    mean_of,
    mean_of_all,
    root,
    root_mean,
    signed_balance,
    uniform,
    weighted_by_size,
)
from calibrant.binning import Edges, EqualMass, EqualWidth, Quantiles
from calibrant.bins import Bins
from calibrant.distances import (
    debiased_squared,
    inter_interval,
    interval_tvd,
    lp,
    mahalanobis,
    power,
    signed,
    squared,
    tvd,
    weighted,
)
from calibrant.errors.binned import BinnedError
from calibrant.errors.label_binned import LabelBinnedError
from calibrant.errors.mean_score import MeanScore, brier_score, entropy, hit, log_score, output
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bootstrap import Bootstrap
from calibrant.inference.comparison import Comparison, compare, compare_all
from calibrant.inference.consistency import Null, consistency
from calibrant.inference.sensitivity import Sensitivity, sensitivity
from calibrant.lenses import (
    Classwise,
    Flat,
    Full,
    Groups,
    InTopK,
    OneClass,
    Ranked,
    TopK,
    TopLabel,
)
from calibrant.metric import Interval, Metric, Result, from_json
from calibrant.narrowing import Above, Between, ByLabel, ByPrediction
from calibrant.partitions import Grid, KDTree
from calibrant.predictions import Predictions
from calibrant.recipes import (
    ACCURACY,
    ACE,
    ADAPTIVE_ECE,
    BRIER,
    CECE,
    CWECE,
    CWMCS,
    ECE,
    ECE_DEBIASED,
    ECE_LB,
    ECE_SWEEP,
    FULL_ECE,
    LOG_LOSS,
    MCE,
    MCS,
    MSECE,
    RECIPES,
    RMSCE,
    SCE,
    TACE,
    TOP5_ECE,
    WSECE,
    WSMCS,
    likert,
)
from calibrant.selections import (
    confidence_between,
    everything,
    label_in,
    output_between,
    predicted_in,
    where,
)
from calibrant.sweep import Sweep
from calibrant.table import Table, table
from calibrant.views import Summary, View

__version__ = "0.1.0"

__all__ = [
    "ACCURACY",
    "ACE",
    "ADAPTIVE_ECE",
    "BRIER",
    "CECE",
    "CWECE",
    "CWMCS",
    "ECE",
    "ECE_DEBIASED",
    "ECE_LB",
    "ECE_SWEEP",
    "FULL_ECE",
    "LOG_LOSS",
    "MCE",
    "MCS",
    "MSECE",
    "RECIPES",
    "RMSCE",
    "SCE",
    "TACE",
    "TOP5_ECE",
    "WSECE",
    "WSMCS",
    "Above",
    "Between",
    "BinnedError",
    "Bins",
    "Bootstrap",
    "ByLabel",
    "ByPrediction",
    "CalibrationInputError",
    "Classwise",
    "Comparison",
    "Edges",
    "EqualMass",
    "EqualWidth",
    "Flat",
    "Full",
    "Grid",
    "Groups",
    "InTopK",
    "Interval",
    "KDTree",
    "LabelBinnedError",
    "MeanScore",
    "Metric",
    "Null",
    "OneClass",
    "Predictions",
    "Quantiles",
    "Ranked",
    "Result",
    "Sensitivity",
    "Summary",
    "Sweep",
    "Table",
    "TopK",
    "TopLabel",
    "View",
    "brier_score",
    "compare",
    "compare_all",
    "confidence_between",
    "consistency",
    "contraharmonic",
    "debiased_squared",
    "diagnostics",
    "entropy",
    "everything",
    "from_json",
    "hit",
    "inter_interval",
    "interval_tvd",
    "label_in",
    "likert",
    "log_score",
    "lp",
    "mahalanobis",
    "maximum",
    "mean",
    "mean_of",
    "mean_of_all",
    "output",
    "output_between",
    "power",
    "predicted_in",
    "root",
    "root_mean",
    "sensitivity",
    "signed",
    "signed_balance",
    "squared",
    "table",
    "tvd",
    "uniform",
    "weighted",
    "weighted_by_size",
    "where",
]
