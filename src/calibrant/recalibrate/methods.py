"""Methods: every recalibrator by its name, and the short names that people type."""

from __future__ import annotations

import ast
import re

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.predictions import Predictions
from calibrant.recalibrate import all_methods
from calibrant.recalibrate.recalibrator import Recalibrator

METHODS: dict[str, type[Recalibrator]] = {
    name: method for name, method in vars(all_methods).items() if isinstance(method, type)
}
"""The methods by class name."""
SHORT: dict[str, type[Recalibrator]] = {method.short: method for method in METHODS.values()}
"""The methods by short name."""
ELSEWHERE = {"sigmoid": "platt(smooth_targets=True)"}
"""What methods are called in scikit-learn, and how they are spelled here."""


def named(name: str) -> type[Recalibrator]:
    """The method of a short name or a class name.

    >>> named("temperature").__name__
    'TemperatureScaling'
    """
    method = SHORT.get(name.lower()) or METHODS.get(name)
    if method is None:
        raise CalibrationInputError("method", "is unknown", got=repr(name), hint=nearest(name, [*SHORT, *ELSEWHERE]))
    return method


def in_words(name: str) -> str:
    """What a method of a short name is called in a sentence.

    >>> in_words("bcts"), in_words("platt"), in_words("gp")
    ('bias corrected temperature scaling', 'Platt scaling', 'GP calibration')
    """
    words = re.findall("[A-Z]+(?![a-z])|[A-Z][a-z]+", named(name).__name__)
    return " ".join(word if word.isupper() or word in ("Dirichlet", "Platt") else word.lower() for word in words)


def spelled(text: str) -> Recalibrator:
    """A method as people type it, with options if they like.

    >>> spelled("temperature(objective='ece')")
    TemperatureScaling(input='logits', objective='ece', classes=None)
    >>> spelled("sigmoid").smooth_targets  # scikit-learn's word for Platt scaling
    True
    """
    try:
        called = ast.parse(ELSEWHERE.get(text.strip().lower(), text.strip()), mode="eval").body
        name = called.func if isinstance(called, ast.Call) else called
        keywords = called.keywords if isinstance(called, ast.Call) else []
        options = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in keywords}
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

    Costly ones are left out where rows times classes exceed a million, and so is what is of no use for events where
    there is one. The identity, which learns nothing, is no method to compare: all are held against it.

    >>> list(usual(Predictions.from_logits([0, 1], [0.5, 1.0])))
    ['prior_shift', 'temperature', 'platt', 'beta', 'isotonic', 'histogram', 'bbq', 'gp']
    """
    event, large = predictions.forecasts.of_events, predictions.values.size > 1_000_000
    fitting = (method for method in METHODS.values() if method.learns and (method.of_events or not event))
    return {method.short: method() for method in fitting if not (large and method.costly)}
