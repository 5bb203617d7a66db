"""Edge rules: how libraries compute the edges of their bins, floating point included.

A rule takes the probabilities of one question (n,) and a number of bins, and gives the edges from the lowest to the
highest. Rules that do not look at the probabilities still give edges of their type.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np

from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats

EdgeRule = Callable[[Array, int], Array]


def quotients(probabilities: Array, n_bins: int) -> Floats:
    """k/n to the last bit, as calibrant's own equal-width bins.

    >>> float(quotients(np.array([0.5]), 10)[3])
    0.3
    """
    return np.arange(n_bins + 1) / n_bins


def numpy_linspace(probabilities: Array, n_bins: int) -> Floats:
    """NumPy's `linspace`, whose third edge of ten is above 0.3.

    >>> float(numpy_linspace(np.array([0.5]), 10)[3])
    0.30000000000000004
    """
    return np.linspace(0.0, 1.0, n_bins + 1)


def torch_linspace(probabilities: Array, n_bins: int) -> Array:
    """torch's `linspace`: steps from 0 in the lower half, steps back from 1 in the upper half, each rounded once.

    >>> float(torch_linspace(np.array([0.5]), 10)[7])
    0.7
    """
    step = Fraction(float(probabilities.dtype.type(1) / probabilities.dtype.type(n_bins)))
    half = (n_bins + 1) // 2
    edges = [k * step if k < half else 1 - (n_bins - k) * step for k in range(n_bins + 1)]
    return np.array([float(edge) for edge in edges], probabilities.dtype)


def reached_by_division(probabilities: Array, n_bins: int) -> Array:
    """The least probabilities p whose quotient p / (1 / n) is not below k, in their own type.

    >>> float(reached_by_division(np.array([0.5]), 10)[6])
    0.6000000000000001
    """
    return _least_reaching(lambda values: values / (1.0 / n_bins), n_bins, probabilities.dtype)


def reached_by_product(probabilities: Array, n_bins: int) -> Array:
    """The least probabilities p whose product n p is not below k, in their own type.

    >>> float(reached_by_product(np.array([0.5]), 15)[7]) <= 7 / 15
    True
    """
    return _least_reaching(lambda values: values * values.dtype.type(n_bins), n_bins, probabilities.dtype)


def percentiles(probabilities: Array, n_bins: int) -> Array:
    """NumPy's percentiles at k/n; between two samples, on the straight line through them.

    >>> percentiles(np.array([0.1, 0.2, 0.4]), 2).tolist()
    [0.1, 0.2, 0.4]
    """
    return np.percentile(probabilities, np.linspace(0.0, 1.0, n_bins + 1) * 100)


def middles(probabilities: Array, n_bins: int) -> Array:
    """Half-way between the last sample of a bin and the first of the next, after sorting; at most one bin a sample.

    >>> middles(np.array([0.1, 0.2, 0.4, 0.8]), 2).round(12).tolist()
    [0.0, 0.3, 1.0]
    """
    parts = np.array_split(np.sort(probabilities), min(n_bins, len(probabilities)))
    inner = [(low[-1] + high[0]) / 2.0 for low, high in pairwise(parts)]
    return np.array([0.0, *inner, 1.0])


def between_values(probabilities: Array, n_bins: int) -> Array:
    """Half-way between neighbouring distinct values, so that each value has a bin of its own.

    >>> between_values(np.array([0.5, 0.5, 0.7]), 15).tolist()
    [0.0, 0.6, 1.0]
    """
    values = np.unique(probabilities)
    return np.concatenate([[0.0], (values[:-1] + values[1:]) / 2.0, [1.0]])


def row_groups(probabilities: Array, n_bins: int) -> Array:
    """The largest probability of each group of neighbouring rows but the last: another order of rows, other edges.

    >>> row_groups(np.array([0.5, 0.7, 0.1, 0.2]), 2).tolist(), row_groups(np.array([0.1, 0.2, 0.5, 0.7]), 2).tolist()
    ([0.0, 0.7, 1.0], [0.0, 0.2, 1.0])
    """
    groups = np.array_split(probabilities, n_bins)[:-1]
    return np.array([0.0, *sorted(group.max() for group in groups), 1.0])


def _least_reaching(scaled: Callable[[Array], Array], n_bins: int, dtype: np.dtype[np.floating]) -> Array:
    """The least values that are scaled to at least 0, 1, .. n: rounding moves them by a few steps from k/n."""
    wanted = np.arange(n_bins + 1)
    edges = (wanted / n_bins).astype(dtype)
    for _ in range(4):
        below = np.nextafter(edges, dtype.type(-1))
        edges = np.where(scaled(below) >= wanted, below, edges)
    for _ in range(4):
        edges = np.where(scaled(edges) < wanted, np.nextafter(edges, dtype.type(2)), edges)
    return edges
