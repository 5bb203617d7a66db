"""Distances: how far apart forecast and truth are in a pool. Each maps `Bins` to one number per bin, (v, b)."""

from calibrant.distances.distance import Distance
from calibrant.distances.near_the_ends import log_odds, relative
from calibrant.distances.of_gaps import (
    debiased_squared,
    lp,
    mahalanobis,
    power,
    signed,
    squared,
    tvd,
    weighted,
)
from calibrant.distances.of_intervals import inter_interval, interval_tvd

__all__ = [
    "Distance",
    "debiased_squared",
    "inter_interval",
    "interval_tvd",
    "log_odds",
    "lp",
    "mahalanobis",
    "power",
    "relative",
    "signed",
    "squared",
    "tvd",
    "weighted",
]
