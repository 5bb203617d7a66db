"""Plots: the table of bins is what a picture draws.

Each display is the data that it draws: `from_predictions` (and `from_estimator`) measure and draw, the constructor
takes what has been measured already, `plot(ax)` draws again, and `ax_` and `figure_` are where. Figures are made
outside pyplot: nothing global changes, and nothing has to be closed.

>>> import calibrant as cal
>>> from calibrant.plots import ReliabilityDisplay
>>> display = ReliabilityDisplay(cal.ECE([1, 0, 1, 1], [.9, .2, .6, .6])).plot()
>>> [float(bar.get_height()) for bar in display.ax_.containers[0]]
[0.0, 1.0, 1.0]
"""

from calibrant.inference.reliability_curves import Curve, binned, isotonic, smooth
from calibrant.plots.before_after import BeforeAfterDisplay
from calibrant.plots.class_bins import ClassBinsDisplay
from calibrant.plots.confidence_histogram import ConfidenceHistogramDisplay
from calibrant.plots.decision_curve import DecisionCurveDisplay
from calibrant.plots.groups import GroupsDisplay
from calibrant.plots.likert import LikertDisplay
from calibrant.plots.model_comparison import ComparisonDisplay
from calibrant.plots.panels import Display
from calibrant.plots.reliability import ReliabilityDisplay
from calibrant.plots.risk_coverage import RiskCoverageDisplay
from calibrant.plots.setting_sensitivity import SensitivityDisplay
from calibrant.plots.signed_gaps import SignedGapsDisplay
from calibrant.plots.small_multiples import SmallMultiplesDisplay
from calibrant.plots.top_k import TopKDisplay

__all__ = [
    "BeforeAfterDisplay",
    "ClassBinsDisplay",
    "ComparisonDisplay",
    "ConfidenceHistogramDisplay",
    "Curve",
    "DecisionCurveDisplay",
    "Display",
    "GroupsDisplay",
    "LikertDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SensitivityDisplay",
    "SignedGapsDisplay",
    "SmallMultiplesDisplay",
    "TopKDisplay",
    "binned",
    "isotonic",
    "smooth",
]
