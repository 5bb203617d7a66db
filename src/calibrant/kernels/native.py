"""The back end in C++: the loops that take longest, in one walk each; all others are NumPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels import numpy as plain
from calibrant.kernels.compiled import call, fuses, matrix, serving_level, threads_for
from calibrant.kernels.logits import in_float32

Array = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Limbs = tuple[Ints, Ints]
FEW = 256
"""Bins up to which one question is counted in small tables, and codes fit a byte."""


def __getattr__(name: str) -> Any:
    """What is not here is NumPy's."""
    return getattr(plain, name)


def extremes(values: Array) -> tuple[float, float]:
    """As `numpy.extremes`."""
    if values.dtype not in (np.float32, np.float64, np.int64) or not values.size:
        return plain.extremes(values)
    whole = values.dtype == np.int64
    column, *shape = matrix(values[:, None].view(np.float64) if whole else values[:, None])
    ends = np.empty(2, np.int64 if whole else np.float64)
    call("extremes", column, *shape, whole, ends, threads_for(values.size))
    low, high = ends.tolist()
    return low, high


def taken(values: Array, columns: Ints) -> Array:
    """As `numpy.taken`."""
    if values.dtype not in (np.float32, np.float64):
        return plain.taken(values, columns)
    values, *shape = matrix(values)
    column = np.empty(len(values), values.dtype)
    call("taken", values, *shape, _whole(columns), column)
    return column


def row_survey(values: Array) -> tuple[float, float, float, float, Ints, Array]:
    """As `numpy.row_survey`."""
    values, *shape = matrix(values)
    extremes, top, largest = np.empty(4), np.empty(len(values), np.int64), np.empty(len(values), values.dtype)
    call("survey", values, *shape, extremes, top, largest, threads_for(values.size))
    low, high, least, most = extremes.tolist()
    return low, high, least, most, top, largest


def leaders(scores: Array, k: int) -> Ints:
    """As `numpy.leaders`."""
    if k > 16:  # a short list would take long to keep in order
        return plain.leaders(scores, k)
    if k == 1:
        return row_survey(scores)[4][:, None]
    scores, *shape = matrix(scores)
    order = np.empty((len(scores), k), np.int64)
    call("leaders", scores, *shape, k, order, threads_for(scores.size))
    return order


def row_sums(values: Array) -> Floats:
    """As `numpy.row_sums`."""
    values, *shape = matrix(values)
    sums = np.empty(len(values))
    call("row_sums", values, *shape, sums, threads_for(values.size))
    return sums


def brier(outputs: Array, targets: Array) -> Floats:
    """As `numpy.brier`."""
    n, v, d = outputs.shape
    values, *shape = matrix(outputs.reshape(n, v * d))
    scores = np.empty((n, v))
    hard = _whole(targets) if targets.ndim == 1 else None
    soft = None if targets.ndim == 1 else np.ascontiguousarray(targets, np.float64)
    call("brier", values, *shape, v, hard, soft, scores, threads_for(values.size))
    return scores


def event_scores(outputs: Array, targets: Array, logs: bool) -> tuple[int, int, int]:
    """As `numpy.event_scores`."""
    values, *shape = matrix(np.ascontiguousarray(outputs)[:, None])
    sums = np.empty(3, np.int64)
    call("event_scores", values, *shape, *_whole_or_short(targets), logs, sums, None, threads_for(values.size))
    high, low, infinite = sums.tolist()
    return high, low, infinite


def event_logs(outputs: Array, targets: Array) -> Floats:
    """As `numpy.event_logs`."""
    values, *shape = matrix(np.ascontiguousarray(outputs)[:, None])
    sums, logs = np.empty(3, np.int64), np.empty(len(outputs))
    call("event_scores", values, *shape, *_whole_or_short(targets), True, sums, logs, threads_for(values.size))
    return logs


def scalar_codes(values: Array, inner: Array, closed: str, grain: float) -> Array:
    """As `numpy.scalar_codes`."""
    rows, *shape = matrix(values.reshape(len(values), int(np.prod(values.shape[1:]))))
    few = len(inner) < FEW
    codes = np.empty(values.shape, np.uint8 if few else np.int64)
    places = (codes, None) if few else (None, codes)
    call("scalar_codes", rows, *shape, *_edges(inner, closed, grain), *places, threads_for(rows.size))
    return codes


def scalar_totals(
    outputs: Array,
    targets: Array,
    inner: Array,
    closed: str,
    grain: float,
    keep: Array | None,
    group: Array | None,
    groups: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """As `numpy.scalar_totals`."""
    values, *shape = matrix(outputs)
    cells = groups * outputs.shape[1] * (len(inner) + 1)
    threads = min(threads_for(values.size), max(1, values.size // (4 * cells)))
    totals = np.empty((5, cells), np.int64)
    plainly = outputs.shape[1] == 1 and keep is None and group is None and len(inner) < FEW
    hard = targets.ndim == 1
    told = _whole_or_short(targets) if hard and plainly else (_whole(targets) if hard else None, None)
    truth = (*told, None if hard else np.ascontiguousarray(targets, np.float64))
    counted = (
        None if keep is None else np.ascontiguousarray(keep, np.bool_),
        None if group is None else _whole(group),
        groups,
    )
    edges = _edges(inner, closed, grain)
    call("scalar_totals", values, *shape, *truth, *counted, *edges, totals, threads)
    size, *limbs = totals
    return size, limbs[0], limbs[1], limbs[2], limbs[3]


def ordered(values: Array, hits: Array) -> tuple[Array, Ints]:
    """As `numpy.ordered`."""
    if values.dtype not in (np.float32, np.float64):
        return plain.ordered(values, hits)
    rows, *shape = matrix(np.ascontiguousarray(np.atleast_2d(values)))
    came, order = np.empty(values.shape, np.int64), np.empty(values.shape, values.dtype)
    threads = min(threads_for(values.size), max(1, len(rows)))
    call("ordered", rows, *shape, _flags(hits), order, came, threads)
    return order, came


def distinct(values: Array, hits: Array) -> tuple[Array, Array, Array]:
    """As `numpy.distinct`."""
    if values.dtype not in (np.float32, np.float64) or len(values) >= 1 << 32:
        return plain.distinct(values, hits)
    keys, wide = _keys_in_order(values, hits), values.dtype == np.float64
    distinct_and_many = np.empty(2, np.int64)
    call("count_values", keys, len(keys), wide, distinct_and_many)
    count, many = distinct_and_many.tolist()
    levels, (counts, positives) = np.empty(count, values.dtype), np.empty((2, count), np.uint32 if many else np.uint8)
    call("distinct", keys, len(keys), wide, many, levels, counts, positives)
    return levels, counts, positives


def _keys_in_order(values: Array, hits: Array) -> Array:
    """The bits of values, each with its hit in the lowest one, in order; NumPy sorts faster where it has AVX-512."""
    column, *shape = matrix(values[:, None])
    keys = np.empty(len(values), np.dtype(f"u{values.itemsize}"))
    call("packed", column, *shape, _flags(hits), keys)
    if serving_level() == "avx512":
        keys.sort()
        return keys
    spare, other = np.empty_like(keys), np.empty(1, np.int64)
    call("in_order", keys, spare, len(keys), values.dtype == np.float64, other)
    return spare if other[0] else keys


def running(values: Array, counts: Array, hits: Array, every: int) -> tuple[Ints, Ints, Ints, Ints]:
    """As `numpy.running`."""
    column, *shape = matrix(np.ascontiguousarray(values)[:, None])
    ranks, hi, lo, came = np.empty((4, -(-len(values) // every) + 1), np.int64)
    call("running", column, *shape, *_sized(counts, hits), every, ranks, hi, lo, came)
    return ranks, hi, lo, came


def table_sums(values: Array, counts: Array, hits: Array) -> tuple[int, int, int, int]:
    """As `numpy.table_sums`."""
    column, *shape = matrix(np.ascontiguousarray(values)[:, None])
    sums = np.empty(4, np.int64)
    call("table_sums", column, *shape, *_sized(counts, hits), sums)
    true_hi, true_lo, hi, lo = sums.tolist()
    return true_hi, true_lo, hi, lo


def path_ends(values: Array, counts: Array, hits: Array) -> tuple[Ints, Ints, float, float]:
    """As `numpy.path_ends`."""
    column, *shape = matrix(np.ascontiguousarray(values)[:, None])
    ends, sums = np.empty((2, 2), np.int64), np.empty(2)
    call("path_ends", column, *shape, *_sized(counts, hits), ends, sums)
    spread, cubes = sums.tolist()
    return ends[:, 0], ends[:, 1], spread, cubes


def rising(counts: Array, hits: Array) -> tuple[Ints, Ints, Ints]:
    """As `numpy.rising`."""
    (corners, ranks, came), count = np.empty((3, len(counts) + 1), np.int64), np.empty(1, np.int64)
    call("rising", *_sized(counts, hits), len(counts), corners, ranks, came, count)
    there = slice(0, int(count[0]))
    return corners[there].copy(), ranks[there].copy(), came[there].copy()


def _sized(counts: Array, hits: Array) -> tuple[Array, int, Array, int]:
    """Whole numbers of any width, and their bytes."""
    counts, hits = np.ascontiguousarray(counts), np.ascontiguousarray(hits)
    return counts, counts.itemsize, hits, hits.itemsize


def cell_numbers(values: Array, lasts: Array) -> Ints:
    """As `numpy.cell_numbers`."""
    column, *shape = matrix(values[:, None])
    numbers, ends = np.empty(len(values), np.int64), np.ascontiguousarray(lasts, np.float64)
    call("cell_numbers", column, *shape, ends, len(lasts), numbers, threads_for(values.size))
    return numbers


def cell_totals(values: Array, hits: Array, lasts: Array) -> Ints:
    """As `numpy.cell_totals`."""
    column, *shape = matrix(values[:, None])
    totals = np.empty((10, len(lasts)), np.int64)
    threads = min(threads_for(values.size), max(1, values.size // (16 * len(lasts))))
    ends = np.ascontiguousarray(lasts, np.float64)
    call("cell_totals", column, *shape, _flags(hits), ends, len(lasts), totals, threads)
    return totals


def column_cuts(values: Array, targets: Ints, cuts: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Floats, Floats]:
    """As `numpy.column_cuts`."""
    rows, *shape = matrix(values)
    cells = values.shape[1], len(cuts)
    wholes, ends = np.empty((6, *cells), np.int64), np.empty((2, *cells))
    threads = min(threads_for(values.size), -(-values.shape[1] // 32))
    told = *_whole_or_short(targets), _whole(cuts), len(cuts)
    call("column_cuts", rows, *shape, *told, wholes, ends, threads)
    return *wholes, *ends


def column_sums(values: Array, rows: Ints) -> Limbs:
    """As `numpy.column_sums`."""
    return _summed(values, rows, square=False)


def square_sums(values: Array, rows: Ints) -> Limbs:
    """As `numpy.square_sums`."""
    return _summed(values, rows, square=True)


def _summed(values: Array, rows: Ints, *, square: bool) -> Limbs:
    values, *shape = matrix(values)
    sums = np.empty((2, values.shape[1]), np.int64)
    size = len(rows) * values.shape[1]
    call("column_sums", values, *shape, _whole(rows), len(rows), square, sums, threads_for(size))
    return sums[0], sums[1]


def logits_survey(logits: Array) -> tuple[float, float, Ints, Floats, Floats, Floats]:
    """As `numpy.logits_survey`."""
    if not fuses():
        return plain.logits_survey(logits)
    values, *shape = matrix(logits)
    extremes, top = np.empty(2), np.empty(len(values), np.int64)
    largest, rest, squares = np.empty((3, len(values)))
    narrow = in_float32(values)
    call("survey_logits", values, *shape, narrow, extremes, top, largest, rest, squares, threads_for(values.size))
    low, high = extremes.tolist()
    return low, high, top, largest, rest, squares


def normalisers(logits: Array) -> tuple[Floats, Floats]:
    """As `numpy.normalisers`."""
    _, _, _, top, rest, _ = logits_survey(logits)
    return top, rest


def softmax(logits: Array, top: Floats, rest: Floats) -> Floats:
    """As `numpy.softmax`."""
    if not fuses():
        return plain.softmax(logits, top, rest)
    values, *shape = matrix(logits)
    shares = np.empty(values.shape)
    sums = np.ascontiguousarray(top), np.ascontiguousarray(rest)
    call("softmax", values, *shape, *sums, shares, threads_for(values.size))
    return shares


def tempered(logits: Array, labels: Ints, inverse: float) -> tuple[Floats, Floats, Floats]:
    """As `numpy.tempered`."""
    if not fuses():
        return plain.tempered(logits, labels, inverse)
    values, *shape = matrix(logits)
    narrow = values.dtype == np.float32 and values.size > 1 << 22
    loss, first, second = derivatives = np.empty((3, len(values)))
    call(
        "tempered",
        values,
        *shape,
        _whole(labels),
        float(inverse),
        narrow,
        derivatives,
        threads_for(values.size),
    )
    return loss, first, second


def pair_sums(
    points: Floats, residuals: Floats, counts: Ints, shape: str, scale: float, begin: int, end: int
) -> tuple[float, float]:
    """As `numpy.pair_sums`."""
    if not fuses():
        return plain.pair_sums(points, residuals, counts, shape, scale, begin, end)
    values, *size = matrix(np.ascontiguousarray(points, np.float64))
    sums, selves = np.empty((2, end - begin))
    arrays = np.ascontiguousarray(residuals, np.float64), np.ascontiguousarray(counts, np.float64)
    threads = threads_for((end - begin) * values.size)
    call("pair_sums", values, *size, *arrays, float(scale), shape == "gaussian", begin, end, sums, selves, threads)
    return math.fsum(sums.tolist()), math.fsum(selves.tolist())


def _whole(array: Array) -> Ints:
    return np.ascontiguousarray(array, np.int64)


def _whole_or_short(targets: Array) -> tuple[Array | None, Array | None]:
    """Targets as int64, or as int8 where they are."""
    return (None, np.ascontiguousarray(targets)) if targets.dtype == np.int8 else (_whole(targets), None)


def _flags(hits: Array) -> Array:
    return np.ascontiguousarray(hits).astype(np.bool_, copy=False)


def _edges(inner: Array, closed: str, grain: float) -> tuple[Floats, int, bool, float]:
    return np.ascontiguousarray(inner, np.float64), len(inner), closed == "right", float(grain)
