"""Kernels: the only heavy loops, behind one seam.

What goes through the seam is arrays, numbers, words, tuples of these, and None for an array that is not there. A back
end is a module with these functions. Each gives the same whole numbers, and floats that agree to 1e-12.
"""

import importlib
import sys
from functools import cache
from types import ModuleType
from typing import Any

from numpy import ndarray

from calibrant.kernels import numpy
from calibrant.kernels.numpy import (
    apart,
    brier,
    column_sums,
    distances,
    distinct,
    entries,
    every_log_odds,
    leaders,
    log_odds,
    normalisers,
    ordered,
    pair_sums,
    partition,
    pooled,
    row_extremes,
    row_sums,
    scalar_codes,
    scalar_totals,
    similarities,
    softmax,
    softplus,
    square_sums,
    sums_by_code,
    tempered,
)

__all__ = [
    "apart",
    "backends",
    "brier",
    "column_sums",
    "distances",
    "distinct",
    "entries",
    "every_log_odds",
    "leaders",
    "log_odds",
    "normalisers",
    "ordered",
    "pair_sums",
    "partition",
    "pooled",
    "row_extremes",
    "row_sums",
    "scalar_codes",
    "scalar_totals",
    "similarities",
    "softmax",
    "softplus",
    "square_sums",
    "sums_by_code",
    "tempered",
]


def backends() -> dict[str, ModuleType]:
    """The back ends by name.

    >>> list(backends())
    ['numpy']
    """
    return {"numpy": numpy}


def beside(array: Any) -> ModuleType:
    """The functions that serve an array where it is: on a device those of `calibrant.kernels.torch`, else these.

    >>> from numpy import zeros
    >>> beside(zeros(1)).__name__
    'calibrant.kernels'
    """
    if isinstance(array, ndarray):
        return sys.modules[__name__]
    return _of_torch()


@cache
def _of_torch() -> ModuleType:
    return importlib.import_module("calibrant.kernels.torch")
