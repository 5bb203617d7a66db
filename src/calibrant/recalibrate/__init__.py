"""Recalibration: maps from scores to better probabilities, one method a file, each with a certificate."""

from typing import Any

from calibrant.recalibrate.bbq import BBQ
from calibrant.recalibrate.beta import BetaCalibration
from calibrant.recalibrate.bias_corrected import BiasCorrectedTemperatureScaling
from calibrant.recalibrate.certificate import Certificate
from calibrant.recalibrate.choice import Choice, choose
from calibrant.recalibrate.classwise_mcs import ClasswiseMCSTemperatureScaling
from calibrant.recalibrate.dirichlet import DirichletCalibration
from calibrant.recalibrate.ensemble import EnsembleTemperatureScaling
from calibrant.recalibrate.folds import cross_fit
from calibrant.recalibrate.gaussian_process import GPCalibration
from calibrant.recalibrate.histogram import HistogramBinning
from calibrant.recalibrate.isotonic import IsotonicCalibration
from calibrant.recalibrate.matrix import MatrixScaling
from calibrant.recalibrate.methods import METHODS
from calibrant.recalibrate.platt import PlattScaling
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.temperature import TemperatureScaling
from calibrant.recalibrate.top_label import TopLabelCalibration
from calibrant.recalibrate.vector import VectorScaling

from_json = Recalibrator.from_json

__all__ = [
    "BBQ",
    "METHODS",
    "BetaCalibration",
    "BiasCorrectedTemperatureScaling",
    "Certificate",
    "Choice",
    "ClasswiseMCSTemperatureScaling",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "GPCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "MatrixScaling",
    "PlattScaling",
    "Recalibrator",
    "TemperatureScaling",
    "TopLabelCalibration",
    "VectorScaling",
    "choose",
    "cross_fit",
    "from_json",
]


def __getattr__(name: str) -> Any:
    """`Recalibrated`, which needs scikit-learn, is loaded when it is asked for."""
    if name != "Recalibrated":
        raise AttributeError(f"module 'calibrant.recalibrate' has no attribute {name!r}")
    try:
        from calibrant.recalibrate.recalibrated import Recalibrated
    except ModuleNotFoundError as missing:
        raise ImportError(f"Recalibrated needs {missing.name}: pip install 'calibrant[sklearn]'") from None
    return Recalibrated
