"""Pooling: neighbours merged until their rates rise, the one algorithm behind isotonic regression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.door.arrays import Array
from calibrant.kernels.totals import Ints

Between = Callable[[Ints], tuple[Array, Array]]
"""Size and total of what lies between neighbouring corners, sizes above 0."""


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
