"""Kernels of pairs in NumPy: similarities of points, and sums over all pairs in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
TILE = 512
"""Pairs are visited in squares of this side, so that memory is bounded."""


def distances(a: Floats, b: Floats, shape: str) -> Floats:
    """Of points (m, d) and (l, d), (m, l): total variation ("exponential"; of one coordinate |a - b|) or Euclidean."""
    from scipy.spatial.distance import cdist  # type: ignore[import-untyped]

    return cdist(a, b, "euclidean") if shape == "gaussian" else cdist(a, b, "cityblock") / min(2, a.shape[1])


def similarities(a: Floats, b: Floats, shape: str, scale: float) -> Floats:
    """exp(-distance / scale) of the shape "exponential", exp(-(distance / scale)^2 / 2) of the shape "gaussian"."""
    scaled = distances(a, b, shape) / scale
    return np.exp(-np.square(scaled) / 2 if shape == "gaussian" else -scaled)


def pair_sums(
    points: Floats, residuals: Floats, counts: Ints, shape: str, scale: float, begin: int, end: int
) -> tuple[float, float]:
    """Sums of similarity(i, j) <residual i, residual j> over ordered pairs, and over samples with themselves.

    Of the pairs, those whose first row in order, whichever it is, lies from begin to before end.
    """
    return tiled_sums(points, residuals, counts, partial(similarities, shape=shape, scale=scale), begin, end)


def tiled_sums(
    points: Floats,
    residuals: Floats,
    counts: Ints,
    similarity: Callable[[Floats, Floats], Floats],
    begin: int,
    end: int,
) -> tuple[float, float]:
    """As `pair_sums`, of any similarity."""
    heavy = residuals * counts[:, None]
    pairs, selves = [], []
    for start in range(begin, end, TILE):
        tile = slice(start, min(start + TILE, end))
        terms = weighed(similarity(points[tile], points[tile]), heavy[tile], heavy[tile])
        pairs.append(terms.sum())
        selves.append((terms.diagonal() / counts[tile]).sum())
        for behind in range(tile.stop, len(points), TILE):  # terms are symmetric
            other = slice(behind, behind + TILE)
            pairs.append(2 * weighed(similarity(points[tile], points[other]), heavy[tile], heavy[other]).sum())
    return math.fsum(pairs), math.fsum(selves)


def weighed(similarity: Floats, a: Floats, b: Floats) -> Floats:
    """Similarities (m, l) times the inner products of residuals (m, d) and (l, d)."""
    across = np.ascontiguousarray(b.T)
    return similarity * np.einsum("ic,cj->ij", a, across)  # unlike @, the same bits for any number of threads
