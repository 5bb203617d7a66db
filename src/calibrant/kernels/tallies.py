"""Kernels of tables of forecasts in NumPy: running totals, exact sums, and pools of rising rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.units import LOW, units

Array = NDArray[Any]
Ints = NDArray[np.int64]
Between = Callable[[Ints], tuple[Array, Array]]
"""Size and total of what lies between neighbouring corners, sizes above 0."""


def running(values: Array, counts: Array, hits: Array, every: int) -> tuple[Ints, Ints, Ints, Ints]:
    """How many of the samples of m entries lie before every so manieth one, their values in two limbs, their hits.

    The last ones are of all. Values lie in [0, 1]. Hits are whole, and come as the higher of two limbs.
    """
    ranks, hi, lo, came = np.zeros((4, len(values) + 1), np.int64)
    np.cumsum(counts, out=ranks[1:])
    np.cumsum(hits, out=came[1:])
    unit = units(values)
    np.cumsum((unit >> 26) * counts, out=hi[1:])
    np.cumsum((unit & LOW) * counts, out=lo[1:])
    places = np.minimum(np.arange(-(-len(values) // every) + 1) * every, len(values))
    return ranks[places], (hi + (lo >> 26))[places], (lo & LOW)[places], came[places] << 26


def table_sums(values: Array, counts: Array, hits: Array) -> tuple[int, int, int, int]:
    """Sums of m values over their hits, and of their squares over their samples, in two limbs each.

    Each value and each square is rounded once, to a multiple of 2^-52.
    """
    wide = values.astype(np.float64)
    (true_hi, square_hi), (true_lo, square_lo) = _summed(((wide, hits), (np.square(wide), counts)))
    return true_hi, true_lo, square_hi, square_lo


def path_ends(values: Array, counts: Array, hits: Array) -> tuple[Ints, Ints, float, float]:
    """The lowest and the highest of running hits less running values p, and the sums of v = p (1 - p) and of v^1.5.

    The path begins with 0. Its ends (2,) come in two limbs.
    """
    _, hi, lo, came = running(values, counts, hits, 1)
    hi, lo = came - hi - (lo > 0), -lo & LOW
    low, high = hi.min(), hi.max()
    lows = np.array([lo[hi == low].min(), lo[hi == high].max()])
    wide = values.astype(np.float64)
    spread = wide * (1.0 - wide)
    cubes = spread * np.sqrt(spread)
    return np.array([low, high]), lows, float((spread * counts).sum()), float((cubes * counts).sum())


def _summed(parts: Iterable[tuple[Array, Array]]) -> tuple[list[int], list[int]]:
    """Sums of values made so many times, in two limbs."""
    highs, lows = [], []
    for values, times in parts:
        unit, times = units(values), times.astype(np.int64)
        hi, lo = int(((unit >> 26) * times).sum()), int(((unit & LOW) * times).sum())
        highs.append(hi + (lo >> 26))
        lows.append(lo & LOW)
    return highs, lows


def rising(counts: Array, hits: Array) -> tuple[Ints, Ints, Ints]:
    """The entries at which pools of rising rate begin, and the end; how many samples and hits lie before each.

    Entries hold `counts` samples with so many `hits`; together fewer than 2^31.
    """
    ranks, came = np.zeros((2, len(counts) + 1), np.int64)
    np.cumsum(counts, out=ranks[1:])
    np.cumsum(hits, out=came[1:])
    corners = rising_corners(len(counts), lambda corners: (np.diff(ranks[corners]), np.diff(came[corners])))
    return corners, ranks[corners], came[corners]


def rising_corners(entries: int, between: Between) -> Ints:
    """The entries at which pools of rising rate begin, and the end: pool-adjacent-violators.

    A pool's rate is its total over its size; neighbours of equal rate are one pool. Linear in the entries; all but a
    few of them are pooled without a loop.

    >>> totals = np.array([0., 1., 0., 1.])
    >>> rising_corners(4, lambda corners: (np.diff(corners), np.add.reduceat(totals, corners[:-1]))).tolist()
    [0, 1, 3, 4]
    """
    corners, before = np.arange(entries + 1), np.inf
    while len(corners) < 0.9 * before:  # an entry whose rate does not rise above the one before begins no pool: most go
        size, total = between(corners)
        before, rates = len(corners), total / size
        corners = corners[np.concatenate([[True], rates[:-1] < rates[1:], [True]])]
    size, total = between(corners)
    return _pooled(corners, size, total)


def _pooled(corners: Ints, sizes: Array, totals: Array) -> Ints:
    pools: list[tuple[int, float, float]] = []
    for start, size, total in zip(corners[:-1].tolist(), sizes.tolist(), totals.tolist(), strict=True):
        while pools and pools[-1][2] * size >= total * pools[-1][1]:
            start, *last = pools.pop()
            size, total = size + last[0], total + last[1]
        pools.append((start, size, total))
    return np.array([*(start for start, *_ in pools), corners[-1]])
