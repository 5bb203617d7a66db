"""Recalibration: maps from scores to better probabilities, one method a file, each with a certificate."""

from calibrant.recalibrate.all_methods import *  # noqa: F403 - every method, by its name
from calibrant.recalibrate.choice import Choice as Choice
from calibrant.recalibrate.choice import choose as choose
from calibrant.recalibrate.fitting.certificate import Certificate as Certificate
from calibrant.recalibrate.folds import cross_fit as cross_fit
from calibrant.recalibrate.methods import METHODS as METHODS
from calibrant.recalibrate.recalibrator import Recalibrator as Recalibrator

from_json = Recalibrator.from_json
