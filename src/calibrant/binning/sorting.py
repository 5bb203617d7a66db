"""Sorting: the distinct forecasts of a view's questions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibrant.door.arrays import Array
from calibrant.kernels.totals import Ints
from calibrant.views import View


def columns(view: View) -> Iterator[tuple[Array, Array]]:
    """The outputs and hits of each question, hard labels."""
    whole = view.group is None and view.keep is None
    for question in range(view.questions):
        column = question % view.v
        if whole:
            if column % 16 == 0:  # several columns at once: one walk over the matrix each
                together = np.ascontiguousarray(view.outputs[:, column : column + 16, 0].T)
            yield together[column % 16], view.targets == column
        else:
            rows = view.rows_of(question)
            yield view.outputs[rows, column, 0], view.targets[rows] == column


def ordered(values: Array, hits: Array) -> tuple[Array, Ints]:
    """Values in order along the last axis, and their hits; the hit rides in the lowest bit, so one sort does."""
    values = np.ascontiguousarray(values) + values.dtype.type(0)  # -0.0 becomes 0.0
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    keys = (values.view(unsigned) << unsigned.type(1)) | hits.astype(unsigned)
    keys.sort(axis=-1)
    return (keys >> unsigned.type(1)).view(values.dtype), (keys & unsigned.type(1)).astype(np.int64)


def distinct(values: Array, hits: Array) -> tuple[Array, Array, Array]:
    """Distinct values in order, their counts and hits."""
    values, hits = ordered(values, hits)
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])
    return values[first], small(np.diff(np.append(first, len(values)))), small(reduced(hits, first))


def reduced(array: Array, first: Ints) -> Array:
    """Sums of the stretches that begin at these places."""
    return np.add.reduceat(array, first) if len(first) else array[:0]


def small(counts: Array) -> Array:
    """Counts in the narrowest whole type: the table is kept, the arithmetic is int64."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
