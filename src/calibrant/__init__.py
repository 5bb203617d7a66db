"""A calibration error is five choices.

**Which samples** count (selection), **what question** is asked of each forecast (lens), **how samples are
pooled** (binning, or another estimator), **how far apart** forecast and truth are in a pool (distance), and
**how pools are combined** (aggregate; and across questions, where a lens asks several).

>>> import calibrant as cal
>>> print(cal.ECE([1, 0, 1, 1], [.9, .2, .6, .6]))
ECE 0.2750 (n=4, event, 15 equal-width bins)
"""

import importlib
import warnings
from typing import TYPE_CHECKING

from calibrant import diagnostics
from calibrant.aggregates import (
    contraharmonic,
    mean_of,
    mean_of_all,
    root,
    root_mean,
    root_mean_of,
    signed_balance,
    uniform,
    weighted_by_size,
)
from calibrant.aggregates import maximum as maximum
from calibrant.aggregates import mean as mean
from calibrant.binning import Edges, EqualMass, EqualWidth, Grid, KDTree, Quantiles, Sweep
from calibrant.bins import Bins
from calibrant.distances import (
    debiased_squared,
    inter_interval,
    interval_tvd,
    log_odds,
    lp,
    mahalanobis,
    relative,
    signed,
    squared,
    tvd,
    weighted,
)
from calibrant.distances import power as power
from calibrant.errors.binned import BinnedError
from calibrant.errors.cumulative import CumulativeError
from calibrant.errors.curve import CurveError
from calibrant.errors.decision import NetBenefit
from calibrant.errors.isotonic import IsotonicError
from calibrant.errors.kde import KDEError
from calibrant.errors.kernel import KernelError
from calibrant.errors.label_binned import LabelBinnedError
from calibrant.errors.local import LocalCalibration, LocalCurves
from calibrant.errors.mean_score import MeanScore, brier_score, entropy, hit, log_score, output
from calibrant.errors.murphy import BrierDecomposition
from calibrant.errors.neighbour import NeighbourError
from calibrant.errors.range_schemes import EnsembleError
from calibrant.errors.smooth import SmoothError
from calibrant.errors.statistic import TableStatistic
from calibrant.exceptions import CalibrationInputError, CalibrationWarning
from calibrant.lenses.around import Above, Between, ByLabel, ByPrediction
from calibrant.lenses.distributions import Full, Groups, TopK
from calibrant.lenses.events import Answered, Classwise, Flat, InTopK, OneClass, Ranked, TopLabel
from calibrant.metric import Metric, from_json
from calibrant.predictions import Predictions
from calibrant.recipes import (
    ACCURACY,
    ACE,
    ADAPTIVE_ECE,
    AUGRC,
    AURC,
    AUROC,
    BRIER,
    BRIER_SKILL,
    CECE,
    CWECE,
    CWMCS,
    E50,
    E90,
    E_AURC,
    ECCE_MAD,
    ECCE_R,
    ECE,
    ECE_DEBIASED,
    ECE_KDE,
    ECE_LB,
    ECE_SWEEP,
    EMAX,
    FULL_ECE,
    ICI,
    INTERCEPT,
    LOG_LOSS,
    MCE,
    MCS,
    MSECE,
    OE_RATIO,
    RECIPES,
    RMSCE,
    SCE,
    SKCE,
    SLOPE,
    SMECE,
    TACE,
    TOP5_ECE,
    WSECE,
    WSMCS,
    likert,
)
from calibrant.result import Interval, Result
from calibrant.selections import confidence_between, everything, label_in, output_between, predicted_in
from calibrant.selections import where as where
from calibrant.specification import catalogue
from calibrant.specification.homes import HOMES, MOVED
from calibrant.stream import Stream
from calibrant.summaries import Summary
from calibrant.table import Table, table
from calibrant.views import View

if TYPE_CHECKING:
    from calibrant import recalibrate
    from calibrant.inference.bootstrap import Bootstrap
    from calibrant.inference.calibration_tests import HypothesisTest, cox_test, hosmer_lemeshow_test, spiegelhalter_test
    from calibrant.inference.comparison import Comparison, compare, compare_all
    from calibrant.inference.confidence import Confidence
    from calibrant.inference.consistency import Null, consistency
    from calibrant.inference.gates import Scorer, assert_calibrated
    from calibrant.inference.jackknife import Jackknife, jackknife
    from calibrant.inference.omnibus import CalibrationTest, calibration_test
    from calibrant.inference.sensitivity import Sensitivity, sensitivity
    from calibrant.recalibrate import cross_fit
    from calibrant.recalibrate.all_methods import *

__version__ = "0.2.0"

__all__ = [
    "ACCURACY",
    "ACE",
    "ADAPTIVE_ECE",
    "AUGRC",
    "AURC",
    "AUROC",
    "BBQ",
    "BRIER",
    "BRIER_SKILL",
    "CECE",
    "CWECE",
    "CWMCS",
    "E50",
    "E90",
    "ECCE_MAD",
    "ECCE_R",
    "ECE",
    "ECE_DEBIASED",
    "ECE_KDE",
    "ECE_LB",
    "ECE_SWEEP",
    "EMAX",
    "E_AURC",
    "FULL_ECE",
    "ICI",
    "INTERCEPT",
    "LOG_LOSS",
    "MCE",
    "MCS",
    "MSECE",
    "OE_RATIO",
    "RECIPES",
    "RMSCE",
    "SCE",
    "SKCE",
    "SLOPE",
    "SMECE",
    "TACE",
    "TOP5_ECE",
    "WSECE",
    "WSMCS",
    "Above",
    "Answered",
    "BetaCalibration",
    "Between",
    "BiasCorrectedTemperatureScaling",
    "BinnedError",
    "Bins",
    "Bootstrap",
    "BrierDecomposition",
    "ByLabel",
    "ByPrediction",
    "CalibrationInputError",
    "CalibrationTest",
    "CalibrationWarning",
    "Classwise",
    "ClasswiseMCSTemperatureScaling",
    "Comparison",
    "Confidence",
    "CumulativeError",
    "CurveError",
    "DirichletCalibration",
    "Edges",
    "EnsembleError",
    "EnsembleTemperatureScaling",
    "EqualMass",
    "EqualWidth",
    "Flat",
    "Full",
    "GPCalibration",
    "Grid",
    "Groups",
    "HistogramBinning",
    "HypothesisTest",
    "Identity",
    "InTopK",
    "Interval",
    "IsotonicCalibration",
    "IsotonicError",
    "Jackknife",
    "KDEError",
    "KDTree",
    "KernelError",
    "LabelBinnedError",
    "LocalCalibration",
    "LocalCurves",
    "MatrixScaling",
    "MeanScore",
    "Metric",
    "NeighbourError",
    "NetBenefit",
    "Null",
    "OneClass",
    "PlattScaling",
    "Predictions",
    "PriorShift",
    "Quantiles",
    "Ranked",
    "Result",
    "Scorer",
    "Sensitivity",
    "SmoothError",
    "Stream",
    "Summary",
    "Sweep",
    "Table",
    "TableStatistic",
    "TemperatureScaling",
    "TopK",
    "TopLabel",
    "TopLabelCalibration",
    "VectorScaling",
    "View",
    "assert_calibrated",
    "brier_score",
    "calibration_test",
    "compare",
    "compare_all",
    "confidence_between",
    "consistency",
    "contraharmonic",
    "cox_test",
    "cross_fit",
    "debiased_squared",
    "diagnostics",
    "entropy",
    "everything",
    "from_json",
    "hit",
    "hosmer_lemeshow_test",
    "inter_interval",
    "interval_tvd",
    "jackknife",
    "label_in",
    "likert",
    "log_odds",
    "log_score",
    "lp",
    "mahalanobis",
    "mean_of",
    "mean_of_all",
    "output",
    "output_between",
    "predicted_in",
    "recalibrate",
    "relative",
    "root",
    "root_mean",
    "root_mean_of",
    "sensitivity",
    "signed",
    "signed_balance",
    "spiegelhalter_test",
    "squared",
    "table",
    "tvd",
    "uniform",
    "weighted",
    "weighted_by_size",
]


_SHADOWING = ("maximum", "mean", "power", "where")
"""Public names that `import *` leaves out, because NumPy has others of the same name."""
_MODULES = (
    "experiments", "files", "integrations", "plots", "recalibrate", "report", "scale", "simulate", "train", "watch",
)  # fmt: skip
"""Modules that are loaded when they are asked for."""
_LATER = {
    "explanation": ("Explanation", "explain"),
    "inference.bands": ("ConfidenceBand", "ConsistencyBand", "reliability_band"),
    "inference.bootstrap": ("Bootstrap",),
    "inference.calibration_tests": ("HypothesisTest", "cox_test", "hosmer_lemeshow_test", "spiegelhalter_test"),
    "inference.comparison": ("Comparison", "compare", "compare_all"),
    "inference.confidence": ("Confidence",),
    "inference.consistency": ("Null", "consistency"),
    "inference.gates": ("Scorer", "assert_calibrated"),
    "inference.jackknife": ("Jackknife", "jackknife"),
    "inference.omnibus": ("CalibrationTest", "calibration_test"),
    "inference.sensitivity": ("Sensitivity", "sensitivity"),
    "integrations.sklearn": ("Recalibrated",),
    "simulate": ("BetaScores", "CalibrationCurve", "bias", "fit_curve", "fit_scores", "true_calibration_error"),
}
"""Names that are loaded when they are asked for, by the module that has them."""


def __dir__() -> list[str]:
    """Every public name, those that are loaded later included."""
    return sorted({*globals(), *__all__, *_MODULES, *(name for names in _LATER.values() for name in names)})


def __getattr__(name: str) -> object:
    """What is loaded when it is asked for, so that importing calibrant stays quick."""
    if name in _MODULES:
        return importlib.import_module(f"calibrant.{name}")
    for module, names in _LATER.items():
        if name in names:
            return getattr(importlib.import_module(f"calibrant.{module}"), name)
    if name in MOVED.get(HOMES.get(name, ""), ()):
        warnings.warn(f"{name} is now in calibrant.{HOMES[name]}", DeprecationWarning, stacklevel=2)
        return _find(name)
    if name in __all__:  # what the list names and nothing above has made is about recalibration
        return getattr(importlib.import_module("calibrant.recalibrate"), name)
    raise AttributeError(f"module 'calibrant' has no attribute {name!r}")


def _find(name: str) -> object:
    """The public object of a name, wherever it lives."""
    home = HOMES.get(name)
    return globals().get(name) or getattr(importlib.import_module(f"calibrant{'.' * bool(home)}{home or ''}"), name)


catalogue.tell([*__all__, *_SHADOWING, *HOMES], _find, RECIPES)
