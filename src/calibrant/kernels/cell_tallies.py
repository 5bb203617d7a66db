"""The kernel of cells in NumPy: counts, exact sums and marks of the forecasts of one event in every cell."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.row_blocks import blocks
from calibrant.kernels.units import LOW, units

Array = NDArray[Any]
Ints = NDArray[np.int64]
MODULUS = (1 << 31) - 1
"""Marks are counted modulo this prime."""


def marks(p: Array) -> Ints:
    """Two marks of each forecast (m, 2), a number mixed of its bits and that number's square, modulo a prime.

    They are added up, and taken away again, modulo the prime. Of n equal forecasts, n times the sum of the squares is
    the square of the sum; of others that happens with a chance of at most 2^-30.

    >>> total = marks(np.array([0.3, 0.3, 0.3])).sum(axis=0) % MODULUS
    >>> bool((3 * total[1] - total[0] ** 2) % MODULUS == 0)
    True
    """
    mixed = (np.asarray(p, np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    number = (mixed % np.uint64(MODULUS)).astype(np.int64)
    return np.stack([number, number * number % MODULUS], axis=-1)


def cell_numbers(values: Array, lasts: Array) -> Ints:
    """The cell of each of the values (n,): the first whose last forecast, of those in order, is not below it."""
    return np.searchsorted(lasts, values.astype(np.float64, copy=False))


def cell_totals(values: Array, hits: Array, lasts: Array) -> Ints:
    """Ten rows of whole numbers for each cell, of which the last forecasts are given in order.

    How many of the values (n,) in [0, 1] lie in it, how many of them are hits; the sums of the values, of those that
    are hits, and of the squares, in two limbs each; and the sums of the two marks, modulo `MODULUS`.
    """
    sums = np.zeros((10, len(lasts)), np.int64)
    for rows in blocks(len(values), 1):
        block, hit = values[rows].astype(np.float64), hits[rows].astype(np.int64)
        codes = cell_numbers(block, lasts)
        unit, square = units(block), units(np.square(block))
        mark = marks(block).T
        limbs = (unit >> 26, unit & LOW, hit * (unit >> 26), hit * (unit & LOW), square >> 26, square & LOW)
        for into, each in zip(sums, (np.ones_like(hit), hit, *limbs, *mark), strict=True):
            np.add.at(into, codes, each)
    for hi, lo in ((2, 3), (4, 5), (6, 7)):
        sums[hi] += sums[lo] >> 26
    sums[3:8:2] &= LOW
    sums[8:] %= MODULUS
    return sums
