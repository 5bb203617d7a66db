"""Kernels: the only heavy loops, behind one seam.

What goes through the seam is arrays, numbers, words, tuples of these, and None for an array that is not there. A back
end is a module with these functions. Each gives the same whole numbers, and floats that agree to 1e-12.
"""

from types import ModuleType

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
