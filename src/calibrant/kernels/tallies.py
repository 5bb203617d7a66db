"""Kernels of tables of forecasts in NumPy: running totals, exact sums, and pools of rising rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.units import LOW, units

Array = NDArray[Any]
Ints = NDArray[np.int64]
Between = Callable[[Ints], tuple[Array, Array]]
"""Size and total of what lies between neighbouring corners, sizes above 0."""


def running(values: Array, counts: Array, hits: Array) -> tuple[Ints, Ints, Ints, Ints]:
    """Running totals (m + 1,) of m entries: how many samples lie before each, their values in two limbs, their hits.

    The last ones are of all. Values lie in [0, 1]. Hits are whole, and come as the higher of two limbs.
    """
    ranks, hi, lo, came = np.zeros((4, len(values) + 1), np.int64)
    np.cumsum(counts, out=ranks[1:])
    np.cumsum(hits, out=came[1:])
    unit = units(values)
    np.cumsum((unit >> 26) * counts, out=hi[1:])
    np.cumsum((unit & LOW) * counts, out=lo[1:])
    return ranks, hi + (lo >> 26), lo & LOW, came << 26


def table_sums(values: Array, ranks: Ints, came: Ints) -> tuple[int, int, int, int]:
    """Sums of m values over hits, and of their squares over samples, in two limbs each.

    `ranks` and `came` (m + 1,) say how many samples and hits lie before each entry, and in all. Each value and each
    square is rounded once, to a multiple of 2^-52.
    """
    wide = values.astype(np.float64)
    limbs: list[int] = []
    for unit, times in ((units(wide), np.diff(came)), (units(np.square(wide)), np.diff(ranks))):
        hi, lo = int(((unit >> 26) * times).sum()), int(((unit & LOW) * times).sum())
        limbs += [hi + (lo >> 26), lo & LOW]
    true_hi, true_lo, square_hi, square_lo = limbs
    return true_hi, true_lo, square_hi, square_lo


def rising(ranks: Ints, came: Ints) -> Ints:
    """The entries at which pools of rising rate begin, and the end.

    `ranks` and `came` (m + 1,) say how many samples and hits lie before each of some entries, fewer than 2^31.
    """
    return rising_corners(len(ranks) - 1, lambda corners: (np.diff(ranks[corners]), np.diff(came[corners])))


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
