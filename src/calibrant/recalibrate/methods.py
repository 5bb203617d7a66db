"""Methods: every recalibrator by its name, and the short names that people type."""

from __future__ import annotations

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.predictions import Predictions
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.temperature import TemperatureScaling

SHORT: dict[str, type[Recalibrator]] = {
    "temperature": TemperatureScaling,
}
"""The methods by short name."""
METHODS: dict[str, type[Recalibrator]] = {method.__name__: method for method in SHORT.values()}
"""The methods by class name."""


def named(name: str) -> type[Recalibrator]:
    """The method of a short name or a class name.

    >>> named("temperature").__name__
    'TemperatureScaling'
    """
    found = SHORT.get(name.lower()) or METHODS.get(name)
    if found is None:
        raise CalibrationInputError("method", "is unknown", got=repr(name), hint=nearest(name, SHORT))
    return found


def usual(predictions: Predictions) -> dict[str, Recalibrator]:
    """Methods worth comparing on these predictions, by short name.

    >>> usual(Predictions.from_logits([0, 1], [0.5, 1.0]))["temperature"].input
    'logits'
    """
    return {name: method() for name, method in SHORT.items()}
