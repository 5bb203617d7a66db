"""Recalibration: maps from scores to better probabilities, one method a file, each with a certificate."""

from calibrant.recalibrate.certificate import Certificate
from calibrant.recalibrate.choice import Choice, choose
from calibrant.recalibrate.cross_fit import cross_fit
from calibrant.recalibrate.methods import METHODS
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.temperature import TemperatureScaling

from_json = Recalibrator.from_json

__all__ = [
    "METHODS",
    "Certificate",
    "Choice",
    "Recalibrator",
    "TemperatureScaling",
    "choose",
    "cross_fit",
    "from_json",
]
