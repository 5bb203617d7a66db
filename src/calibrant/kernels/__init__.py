"""Kernels: the only heavy loops. NumPy always works; a faster kernel must give the same bits."""

from calibrant.kernels.numpy import (
    brier,
    column_totals,
    leaders,
    normalisers,
    row_sums,
    scalar_codes,
    scalar_totals,
    softmax,
    sums_by_code,
    tempered,
)

__all__ = [
    "brier",
    "column_totals",
    "leaders",
    "normalisers",
    "row_sums",
    "scalar_codes",
    "scalar_totals",
    "softmax",
    "sums_by_code",
    "tempered",
]
