"""Recalibration: maps from scores to better probabilities, one method a file, each with a certificate."""

from typing import Any

from calibrant.recalibrate.catalogue import *  # noqa: F403 - every method, by its name
from calibrant.recalibrate.choice import Choice as Choice
from calibrant.recalibrate.choice import choose as choose
from calibrant.recalibrate.fitting.certificate import Certificate as Certificate
from calibrant.recalibrate.folds import cross_fit as cross_fit
from calibrant.recalibrate.methods import METHODS as METHODS
from calibrant.recalibrate.recalibrator import Recalibrator as Recalibrator

from_json = Recalibrator.from_json


def __getattr__(name: str) -> Any:
    """`Recalibrated`, which needs scikit-learn, is loaded when it is asked for."""
    if name != "Recalibrated":
        raise AttributeError(f"module 'calibrant.recalibrate' has no attribute {name!r}")
    try:
        from calibrant.integrations.sklearn import Recalibrated
    except ModuleNotFoundError as missing:
        raise ImportError(f"Recalibrated needs {missing.name}: pip install 'calibrant[sklearn]'") from None
    return Recalibrated
