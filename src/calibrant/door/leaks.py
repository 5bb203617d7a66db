"""Leaks: forecasts for the very rows that a recalibrator was fitted on, recognised when they are measured."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationWarning
from calibrant.kernels.totals import Ints

FLAG = "forecast by a recalibrator that was fitted on them: the numbers flatter it"
_marked: dict[int, weakref.ref[Array]] = {}


def mark(forecasts: Array) -> None:
    """Remember forecasts for fitting rows for as long as they live.

    >>> forecasts = np.array([.5, .6])
    >>> mark(forecasts)
    >>> is_marked(forecasts[:1]), is_marked(forecasts + 0)
    (True, False)
    """
    key = id(forecasts)
    _marked[key] = weakref.ref(forecasts, lambda _: _marked.pop(key, None))


def is_marked(forecasts: Any) -> bool:
    """Whether an array, or what it is a view of, was marked."""
    while isinstance(forecasts, np.ndarray):
        reference = _marked.get(id(forecasts))
        if reference is not None and reference() is forecasts:
            return True
        forecasts = forecasts.base
    return False


def follow(forecasts: Any, held: Array) -> None:
    """Remember what is held of forecasts that were marked, and all views of it.

    >>> forecasts = np.array([.5, .6])
    >>> mark(forecasts)
    >>> held = forecasts.copy()
    >>> follow(forecasts, held)
    >>> is_marked(held)
    True
    """
    if is_marked(forecasts):
        mark(held.base if isinstance(held.base, np.ndarray) else held)


def flags(forecasts: Any, rows: int) -> dict[str, Ints]:
    """A warning, and a flag on every row, where forecasts were marked."""
    if not is_marked(forecasts):
        return {}
    advice = "these forecasts are for the rows that the recalibrator was fitted on, so the numbers flatter it"
    warnings.warn(f"{advice}; fit and measure on different rows, or use cross_fit", CalibrationWarning, stacklevel=4)
    return {FLAG: np.ones(rows, np.int64)}
