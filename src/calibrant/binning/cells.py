"""Cells: [0, 1] in a few thousand intervals, fine near 0 and 1, where each usual edge of bins is a cell of its own."""

from __future__ import annotations

from functools import cache

import numpy as np

from calibrant.door.arrays import Array
from calibrant.kernels.cell_tallies import MODULUS
from calibrant.kernels.precision import Precision
from calibrant.kernels.totals import Floats, Ints
from calibrant.selections import Mask

OCTAVES = {4: 128, 8: 64, 16: 32, 32: 8}
"""Cells in each octave of min(p, 1 - p), down to 2 to the minus so much; one is below them all."""
DIVISORS = (*range(1, 21), 25, 30, 40, 50, 100)
"""The edges k / b of so many bins are cells of their own, however forecasts round them."""
PRECISIONS = (53, 24, 11, 8)
"""Significand bits of float64, float32, float16 and bfloat16."""
COUNT = 1 << 12
"""More than there are cells."""


def key(p: Array) -> Ints:
    """The place of each forecast among all that float64 can hold: key(1 - p) is -key(p), and nothing is lost near 1.

    >>> key(np.array([0.25, 0.5, 0.75])).tolist()
    [-4503599627370496, 0, 4503599627370496]
    """
    p = np.asarray(p, np.float64) + 0.0  # -0.0 becomes 0.0
    half = np.float64(0.5).view(np.int64)
    return np.where(p <= 0.5, p.view(np.int64) - half, half - (1.0 - p).view(np.int64))


@cache
def lasts() -> Floats:
    """The largest forecast of each cell, ascending: cells are right-closed up to 1/2, and mirrored above.

    >>> len(lasts()), float(lasts()[0]), float(lasts()[-1])
    (3491, 0.0, 1.0)
    """
    bounds, octave = [2.0 ** -max(OCTAVES)], 1
    for deepest, cells in OCTAVES.items():
        for depth in range(octave, deepest):
            bounds.extend(2.0 ** -(depth + 1) * (1 + np.arange(1, cells + 1) / cells))
        octave = deepest
    fractions = np.unique([k / b for b in DIVISORS for k in range(b + 1)])
    edges = np.unique([Precision(bits).edges(fractions) for bits in PRECISIONS])
    mirrored = np.nextafter(1.0 - np.array(bounds), 0.0)
    ends = np.unique(np.concatenate([bounds, mirrored, edges, np.nextafter(edges, -1.0)[1:]]))
    ends.setflags(write=False)
    return ends


@cache
def firsts() -> Floats:
    """The smallest forecast of each cell.

    >>> firsts()[:2].tolist()
    [0.0, 5e-324]
    """
    return np.append(0.0, np.nextafter(lasts()[:-1], 2.0))


@cache
def atoms() -> Mask:
    """Which cells hold one forecast alone.

    >>> atoms()[numbers(np.array([0.3, 0.311, np.float32(0.3)]))].tolist()
    [True, False, True]
    """
    return firsts() == lasts()


def numbers(p: Array) -> Ints:
    """The cell of each forecast.

    >>> numbers(np.array([0.0, 1e-300, 2.0**-32, 1.0])).tolist()
    [0, 1, 1, 3490]
    """
    return np.searchsorted(lasts(), np.asarray(p, np.float64))


def alike(counts: Array, totals: Ints) -> Mask:
    """Which groups of so many forecasts, counted in any whole type, hold one forecast alone, as their marks tell.

    >>> from calibrant.kernels.cell_tallies import marks
    >>> [alike(np.array([2]), marks(np.array(p)).sum(axis=0)[None] % MODULUS).item() for p in ([0.3, 0.3], [0.3, 0.31])]
    [True, False]
    """
    return (counts.astype(np.int64) % MODULUS * totals[:, 1] - totals[:, 0] * totals[:, 0]) % MODULUS == 0
