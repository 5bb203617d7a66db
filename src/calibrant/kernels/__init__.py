"""Kernels: the only heavy loops. NumPy always works; a faster kernel must give the same bits."""

from calibrant.kernels.logits import apart, every_log_odds, log_odds, pooled, softplus
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
    "apart",
    "brier",
    "column_totals",
    "every_log_odds",
    "leaders",
    "log_odds",
    "normalisers",
    "pooled",
    "row_sums",
    "scalar_codes",
    "scalar_totals",
    "softmax",
    "softplus",
    "sums_by_code",
    "tempered",
]
