"""Possible values: what a fit can have learnt. A saved map is asked before it is used; a ValueError says why not."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting.lessons import HUGE, ModelScores, softmax

STEEPEST = HUGE**2
"""A larger factor would take a logit beyond the range of floats."""


def numbers(value: Any, name: str, *shape: int, low: float = -STEEPEST, high: float = STEEPEST) -> Floats:
    """A learnt value as an array: a number, or numbers of that shape, within bounds.

    >>> numbers(0.0, "temperature_", low=0.001, high=1000)
    Traceback (most recent call last):
    ValueError: temperature_ is not within 0.001 to 1000
    """
    array = np.zeros(0) if isinstance(value, tuple) else np.asarray(value, np.float64)
    if array.shape != shape or isinstance(value, tuple):
        raise ValueError(f"{name} has the shape {array.shape}, not {shape}")
    if not ((array >= low) & (array <= high)).all():
        raise ValueError(f"{name} is not within {low:g} to {high:g}")
    return array


def of_each(value: Any, name: str, width: int) -> tuple[Any, ...]:
    """What was learnt of each class, an array each; of an event, where the width is 0, the one array.

    >>> of_each((np.zeros(2),), "values_", 3)
    Traceback (most recent call last):
    ValueError: values_ is not an array for each of 3 classes
    """
    parts = value if width else (value,)
    if not isinstance(parts, tuple) or len(parts) != (width or 1) or not all(isinstance(p, np.ndarray) for p in parts):
        raise ValueError(f"{name} is not an array{f' for each of {width} classes' if width else ''}")
    return parts


def rising(array: Floats, name: str) -> Floats:
    """An array whose entries do not fall.

    >>> rising(np.array([.2, .1]), "thresholds_")
    Traceback (most recent call last):
    ValueError: thresholds_ falls
    """
    if (np.diff(array) < 0).any():
        raise ValueError(f"{name} falls")
    return array


def require_corners(thresholds: Any, values: Any) -> None:
    """Refuse corners that are none of a map from [0, 1] to [0, 1] that does not fall.

    >>> require_corners(np.array([.2, .4]), np.array([.5, .3]))
    Traceback (most recent call last):
    ValueError: values_ falls
    """
    count = max(1, np.size(values))
    for array, name in ((thresholds, "thresholds_"), (values, "values_")):
        rising(numbers(array, name, count, low=0.0, high=1.0), name)


def require_probabilities(recalibrator: Any, width: int) -> None:
    """Refuse a map that makes of plain scores what predictions would refuse; the width of an event is 0."""
    rows = np.array([np.zeros(width or 2), np.linspace(-9, 9, width or 2), np.linspace(40, -40, width or 2)])
    event, takes_logits = width == 0, recalibrator.input == "logits"
    scores = rows if takes_logits else softmax(rows)
    values = np.ascontiguousarray(scores[:, 1]) if event else scores
    with np.errstate(all="ignore"):
        probabilities = ModelScores(recalibrator.predict_proba(values), "probabilities")
        for mapped in (probabilities, recalibrator.map_scores(ModelScores(values, recalibrator.input))):
            if mapped.values.shape != values.shape:
                raise ValueError(f"it gives {mapped.values.shape} of scores {values.shape}")
            mapped.predictions(np.zeros(len(values), np.int64))
