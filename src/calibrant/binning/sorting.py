"""Sorting: the distinct forecasts of a view's questions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibrant import kernels
from calibrant.door.arrays import Array
from calibrant.kernels.precision import Precision
from calibrant.kernels.totals import Ints
from calibrant.views import View


def columns(view: View) -> Iterator[tuple[Array, Array]]:
    """The outputs and hits of each question, hard labels."""
    whole = view.group is None and view.keep is None and isinstance(view.outputs, np.ndarray)
    for question in range(view.questions):
        column = question % view.v
        if whole:
            if column % 16 == 0:  # several columns at once: one walk over the matrix each
                together = np.ascontiguousarray(view.outputs[:, column : column + 16, 0].T)
            yield together[column % 16], _hits(view.targets, column)
        else:
            rows = view.rows_of(question)
            yield view.outputs[rows, column, 0], _hits(view.targets[rows], column)


def _hits(targets: Array, column: int) -> Array:
    """Whether a question's event happened, where at most one of a row did or each has its own 0 or 1."""
    return targets == column if targets.ndim == 1 else targets[:, column, 0] != 0


def distinct(values: Array, hits: Array) -> tuple[Array, Array, Array]:
    """Distinct values in order, their counts and hits."""
    levels, counts, positives = kernels.beside(values).distinct(values, hits)
    return levels, small(counts), small(positives)


def reduced(array: Array, first: Ints) -> Array:
    """Sums of the stretches that begin at these places."""
    return np.add.reduceat(array, first) if len(first) else array[:0]


def known(view: View) -> tuple[tuple[Precision, int], ...]:
    """How finely the forecasts of a view are known, and of how many rows."""
    return ((view.precision, view.about.n),) if view.about.n else ()


def small(counts: Array) -> Array:
    """Counts in the narrowest whole type: the table is kept, the arithmetic is int64."""
    return counts if counts.min(initial=0) < 0 else counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
