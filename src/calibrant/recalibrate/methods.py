"""Methods: every recalibrator by its name, and the short names that people type."""

from __future__ import annotations

import ast

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.predictions import Predictions
from calibrant.recalibrate.bbq import BBQ
from calibrant.recalibrate.beta import BetaCalibration
from calibrant.recalibrate.bias_corrected import BiasCorrectedTemperatureScaling
from calibrant.recalibrate.classwise_mcs import ClasswiseMCSTemperatureScaling
from calibrant.recalibrate.dirichlet import DirichletCalibration
from calibrant.recalibrate.ensemble import EnsembleTemperatureScaling
from calibrant.recalibrate.gaussian_process import GPCalibration
from calibrant.recalibrate.histogram import HistogramBinning
from calibrant.recalibrate.isotonic import IsotonicCalibration
from calibrant.recalibrate.matrix import MatrixScaling
from calibrant.recalibrate.platt import PlattScaling
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.temperature import TemperatureScaling
from calibrant.recalibrate.top_label import TopLabelCalibration
from calibrant.recalibrate.vector import VectorScaling

SHORT: dict[str, type[Recalibrator]] = {
    "temperature": TemperatureScaling,
    "bcts": BiasCorrectedTemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "platt": PlattScaling,
    "beta": BetaCalibration,
    "isotonic": IsotonicCalibration,
    "histogram": HistogramBinning,
    "bbq": BBQ,
    "cwmcs": ClasswiseMCSTemperatureScaling,
    "gp": GPCalibration,
    "dirichlet": DirichletCalibration,
    "ensemble": EnsembleTemperatureScaling,
    "top_label": TopLabelCalibration,
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


def spelled(text: str) -> Recalibrator:
    """A method as people type it, with options if they like.

    >>> spelled("temperature(objective='ece')")
    TemperatureScaling(input='logits', objective='ece', classes=None)
    """
    try:
        called = ast.parse(text.strip(), mode="eval").body
        name = called.func if isinstance(called, ast.Call) else called
        given = called.keywords if isinstance(called, ast.Call) else []
        options = {str(one.arg): ast.literal_eval(one.value) for one in given}
        if not isinstance(name, ast.Name) or (isinstance(called, ast.Call) and called.args):
            raise ValueError(text)
    except (SyntaxError, ValueError):
        raise CalibrationInputError(
            "method", "must be a name, with options in brackets if any", got=repr(text), hint="histogram(n_bins=10)"
        ) from None
    kind = named(name.id)
    known = set(kind().get_params())
    for option in options:
        if option not in known:
            raise CalibrationInputError("method", "has no such option", got=repr(option), hint=nearest(option, known))
    return kind(**options)


def usual(predictions: Predictions) -> dict[str, Recalibrator]:
    """Methods worth comparing on these predictions, by short name: all, but for those whose cost would run away.

    Matrices of many classes, the Gaussian process and the search for class temperatures are left out where rows times
    classes exceed a million; so is what needs several classes where there is one event.

    >>> list(usual(Predictions.from_logits([0, 1], [0.5, 1.0])))
    ['temperature', 'platt', 'beta', 'isotonic', 'histogram', 'bbq', 'gp']
    """
    names = list(SHORT)
    if predictions.kind != "classes":
        names = [name for name in names if name not in _OF_CLASSES]
    if predictions.values.size > 1_000_000:
        names = [name for name in names if name not in _SLOW]
    return {name: SHORT[name]() for name in names}


_OF_CLASSES = ("bcts", "vector", "matrix", "cwmcs", "dirichlet", "ensemble", "top_label")
_SLOW = ("matrix", "cwmcs", "gp", "dirichlet")
