"""The back end in NumPy: cache-sized blocks, exact whole numbers. It always works."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.cell_tallies import cell_numbers, cell_totals
from calibrant.kernels.logits import (
    apart,
    event_logs,
    event_scores,
    every_log_odds,
    log_odds,
    logits_survey,
    normalisers,
    pooled,
    softmax,
    softplus,
    tempered,
)
from calibrant.kernels.pairs import distances, pair_sums, similarities
from calibrant.kernels.row_blocks import BLOCK, blocks, most_rows
from calibrant.kernels.sharing import searchable
from calibrant.kernels.tallies import path_ends, rising, running, table_sums
from calibrant.kernels.units import LOW, ONE, units

__all__ = [
    "apart",
    "brier",
    "cell_numbers",
    "cell_totals",
    "column_cuts",
    "column_sums",
    "distances",
    "distinct",
    "entries",
    "event_logs",
    "event_scores",
    "every_log_odds",
    "extremes",
    "leaders",
    "log_odds",
    "logits_survey",
    "normalisers",
    "ordered",
    "pair_sums",
    "partition",
    "path_ends",
    "pooled",
    "rising",
    "row_sums",
    "row_survey",
    "running",
    "scalar_codes",
    "scalar_totals",
    "similarities",
    "softmax",
    "softplus",
    "square_sums",
    "sums_by_code",
    "table_sums",
    "taken",
    "tempered",
]
Array = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Limbs = tuple[Ints, Ints]
"""Sums hi * 2^-26 + lo * 2^-52 with 0 <= lo < 2^26."""
ROWS = 2047
"""Rows of units (at most 2^52 each) that an int64 can add up."""


def row_sums(values: Array) -> Floats:
    """Sums of rows of probabilities, exact in units and at most 1: no order of classes matters."""
    if values.shape[1] == 1:
        return values[:, 0].astype(np.float64)
    return np.minimum(units(values).sum(axis=1), 1 << 52) * 2.0**-52


def brier(outputs: Array, targets: Array) -> Floats:
    """Squares of outputs (n, v, d) less the truth, summed over the d coordinates: exact in units of 2^-52.

    `targets` is the index of the coordinate that happened (-1: none) or, for soft labels, an array like the outputs.
    """
    n, v, d = outputs.shape
    sums = np.empty((n, v), np.int64)
    for rows in blocks(n, v * d):
        block = outputs[rows].astype(np.float64)
        if targets.ndim > 1:
            block -= targets[rows]
        else:
            hit = np.flatnonzero(targets[rows] >= 0)
            block[hit, *np.divmod(targets[rows][hit], d)] -= 1.0
        np.square(block, out=block)
        block *= 2.0**52
        sums[rows] = np.rint(block, out=block).astype(np.int64).sum(axis=2)
    return sums * np.float64(2.0**-52)


def extremes(values: Array) -> tuple[float, float]:
    """The smallest and the largest of some numbers (n,); nan if any is. Of none, infinities."""
    if not values.size:
        return np.inf, -np.inf
    low, high = values.min().item(), values.max().item()
    return low, high


def taken(values: Array, columns: Ints) -> Array:
    """The entry of each row of a matrix that stands in the row's column (n,)."""
    return values[np.arange(len(values)), columns]


def row_survey(values: Array) -> tuple[float, float, float, float, Ints, Array]:
    """The smallest and the largest entry of a matrix, the smallest and the largest sum of a row; nan if any is.

    Then the column of each row's largest entry, the lowest among equals, and that entry. Of no rows, infinities. Sums
    are made in the type of the values.
    """
    low, high, least, most = np.inf, -np.inf, np.inf, -np.inf
    top, largest = np.empty(len(values), np.int64), np.empty(len(values), values.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        for rows in blocks(*values.shape):
            block = searchable(values[rows])
            sums = block.sum(axis=1)
            top[rows] = block.argmax(axis=1)
            largest[rows] = block[np.arange(len(block)), top[rows]]
            low, least = np.minimum(low, block.min()), np.minimum(least, sums.min())
            high, most = np.maximum(high, largest[rows].max()), np.maximum(most, sums.max())
    return float(low), float(high), float(least), float(most), top, largest


def leaders(scores: Array, k: int) -> Ints:
    """The k largest columns of each row, largest first; ties go to the lowest column."""
    n, width = scores.shape
    if k == 1:
        return searchable(scores).argmax(axis=1)[:, None]
    order = np.empty((n, k), np.int64)
    for rows in blocks(n, width):
        block = scores[rows]
        if k > 16:
            order[rows] = np.argsort(-block, axis=1, kind="stable")[:, :k]
            continue
        block = block.copy()
        index = np.arange(len(block))
        for place in range(k):
            best = block.argmax(axis=1)
            order[rows, place] = best
            block[index, best] = -np.inf
    return order


def scalar_codes(values: Array, inner: Array, closed: str, grain: float) -> Array:
    """The number of inner edges that lie below each value (at or below it, when bins are left-closed).

    With a grain above 0, the values are rounded to multiples of 1 / grain, and the edges are counted in these.
    """
    values = np.rint(values * grain) if grain else values
    if len(inner) > 48 or values.size < 4096:  # a binary search is faster than so many compares, and than so few
        return np.searchsorted(inner, values, side="left" if closed == "right" else "right")
    above = np.greater if closed == "right" else np.greater_equal
    codes = np.zeros(values.shape, np.uint8)
    for edge in inner:
        codes += above(values, edge)
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
    """Counts, and outputs and targets in two limbs each, of every (question, bin) for events of fixed edges.

    `outputs` is (n, v); `targets` the index of the event that happened (-1: none) or, for soft
    labels, an array like the outputs. Row i counts for questions group[i] * v .. + v - 1.
    """
    n, v = outputs.shape
    bins = len(inner) + 1
    sums = np.zeros((5, groups * v * bins), np.int64)
    if v >= 16 and keep is None and group is None and targets.ndim == 1:
        _add_mostly_first(sums, outputs, targets, inner, closed, grain)
    else:
        columns = np.arange(v) * bins
        for rows in blocks(n, v):
            cells = scalar_codes(outputs[rows], inner, closed, grain) + columns
            if group is not None:
                cells += (group[rows] * (v * bins))[:, None]
            _add(sums, cells, outputs[rows], targets[rows], None if keep is None else keep[rows])
    size, *limbs = sums
    return size, *_carried(*limbs[:2]), *_carried(*limbs[2:])


def _add(sums: Ints, cells: Ints, outputs: Array, targets: Array, keep: Array | None) -> None:
    """Every entry of a block goes to its cell."""
    hard = targets.ndim == 1
    truth = targets[:, None] == np.arange(cells.shape[1]) if hard else targets
    codes, values, truth = (array.ravel() if keep is None else array[keep] for array in (cells, outputs, truth))
    _add_units(sums[1:3], codes, values)
    if hard:
        misses, hits = np.bincount(2 * codes + truth, minlength=2 * sums.shape[1]).reshape(-1, 2).T
        sums[0] += misses + hits
        sums[3] += hits << 26
    else:
        sums[0] += np.bincount(codes, minlength=sums.shape[1])
        _add_units(sums[3:], codes, truth)


def _add_units(limbs: Ints, codes: Ints, values: Array, sign: int = 1) -> None:
    """Values in [0, 1], in units."""
    unit = units(values)
    np.add.at(limbs[0], codes, sign * (unit >> 26))
    np.add.at(limbs[1], codes, sign * (unit & LOW))


def _add_mostly_first(sums: Ints, outputs: Array, targets: Array, inner: Array, closed: str, grain: float) -> None:
    """As `_add`, for many questions: all entries go to the first bin, then the few beyond it are moved."""
    n, width = outputs.shape
    bins = len(inner) + 1
    hit = np.flatnonzero(targets >= 0)
    codes = scalar_codes(outputs[hit, targets[hit]], inner, closed, grain)
    sums[3] += np.bincount(targets[hit] * bins + codes, minlength=sums.shape[1]) << 26
    sums[0, ::bins] += n
    work = np.empty(most_rows(n, width) * width)
    waiting: list[Limbs] = []
    for rows in blocks(n, width):
        block = outputs[rows]
        sums[1:3, ::bins] += _column_limbs(block, work)
        if bins > 1:
            beyond = np.flatnonzero((np.rint(block * grain) if grain else block) >= inner[0])
            waiting.append((beyond % width * bins, block.ravel()[beyond]))
        if waiting and (sum(len(values) for _, values in waiting) > BLOCK or rows.stop == n):
            home, values = (np.concatenate(parts) for parts in zip(*waiting, strict=True))
            cells = home + scalar_codes(values, inner, closed, grain)  # one on the edge may be moved to where it is
            for places, sign in ((cells, 1), (home, -1)):
                _add_units(sums[1:3], places, values, sign)
                sums[0] += sign * np.bincount(places, minlength=sums.shape[1])
            waiting.clear()


def sums_by_code(codes: Ints, values: Ints, count: int) -> Ints:
    """Sums of whole numbers by code, of so many codes; they must fit int64."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, codes, values)
    return sums


def ordered(values: Array, hits: Array) -> tuple[Array, Ints]:
    """Values of at least 0 in order along the last axis, and their hits: these ride in the lowest bit of one sort."""
    values = np.ascontiguousarray(values) + values.dtype.type(0)  # -0.0 becomes 0.0
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    keys = (values.view(unsigned) << unsigned.type(1)) | hits.astype(unsigned)
    keys.sort(axis=-1)
    return (keys >> unsigned.type(1)).view(values.dtype), (keys & unsigned.type(1)).astype(np.int64)


def distinct(values: Array, hits: Array) -> tuple[Array, Ints, Ints]:
    """Distinct values of at least 0 in order, their counts and hits."""
    values, hits = ordered(values, hits)
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])
    counts = np.diff(np.append(first, len(values)))
    return values[first], counts, np.add.reduceat(hits, first) if len(first) else hits


def entries(groups: Ints, values: Array) -> Limbs:
    """The order of values within their groups, equal ones as they came, and where in it each distinct one begins."""
    order = np.lexsort((values, groups))
    groups, values = groups[order], values[order]
    new = (values[1:] != values[:-1]) | (groups[1:] != groups[:-1])
    return order, np.flatnonzero(np.append(True, new)[: len(values)])


def column_cuts(values: Array, targets: Ints, cuts: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Floats, Floats]:
    """Totals of the smallest of n values of each column, up to each of some ranks in order: (v, cuts) each.

    `targets` (n,) is the column that came true. First the sum of the values in two limbs. Then, of the group of ties
    that holds the rank: hits before it, its hits, how many of it lie before the rank, its size. Last the values at the
    rank and just before it. Ranks beyond the ends are those at the ends.
    """
    wholes, ends = np.zeros((6, values.shape[1], len(cuts)), np.int64), np.zeros((2, values.shape[1], len(cuts)))
    for column in range(values.shape[1] if len(values) else 0):
        if column % 16 == 0:  # several columns at once: one walk over the matrix each
            together = np.ascontiguousarray(values[:, column : column + 16].T)
        levels, counts, positives = distinct(together[column % 16], targets == column)
        ranks, hi, lo, came = running(levels, counts, positives, 1)
        entry = np.minimum(np.searchsorted(ranks, cuts, side="right") - 1, len(levels) - 1)
        inside, unit, before = cuts - ranks[entry], units(levels[entry]), came[entry] >> 26
        low = lo[entry] + (unit & LOW) * inside
        wholes[:, column] = (
            *_carried(hi[entry] + (unit >> 26) * inside, low),
            *(before, (came[entry + 1] >> 26) - before, inside, counts[entry]),
        )
        ends[:, column] = levels[entry], levels[np.searchsorted(ranks, np.maximum(cuts - 1, 0), side="right") - 1]
    return *wholes, *ends


def column_sums(values: Array, rows: Ints) -> Limbs:
    """Sums of the columns of a matrix (n, d) of values in [0, 1] over some of its rows."""
    return _summed(values, rows, square=False)


def square_sums(values: Array, rows: Ints) -> Limbs:
    """Sums of the squared columns of a matrix (n, d) of values in [0, 1] over some of its rows."""
    return _summed(values, rows, square=True)


def partition(values: Array, rows: Ints, axis: int, threshold: float) -> Limbs:
    """Of some rows of a matrix, in their order: those whose entry on an axis lies below the threshold; the others."""
    below = values[rows, axis] < np.float64(threshold)
    return rows[below], rows[~below]


def _summed(values: Array, rows: Ints, *, square: bool) -> Limbs:
    n, d = len(rows), values.shape[1]
    limbs = np.zeros((2, d), np.int64)
    work = np.empty(most_rows(n, d) * d)
    for part in blocks(n, d):
        block = values[rows[part]]
        limbs += _column_limbs(np.square(block, dtype=np.float64) if square else block, work)
    return _carried(*limbs)


def _column_limbs(values: Array, work: Floats) -> Limbs:
    """Sums of the columns of a block of values in [0, 1]; `work` has room for the block."""
    if len(values) > ROWS:
        unit = units(values)
        return (unit >> 26).sum(axis=0), (unit & LOW).sum(axis=0)
    surplus = np.uint64(len(values) * int(ONE) % (1 << 64)).view(np.int64)
    floats = work[: values.size].reshape(values.shape)
    np.copyto(floats, values)
    floats += 1.0
    unit = floats.view(np.int64).sum(axis=0) - surplus  # wraps on the way, not in the end
    return unit >> 26, unit & LOW


def _carried(hi: Ints, lo: Ints) -> Limbs:
    return hi + (lo >> 26), lo & LOW
