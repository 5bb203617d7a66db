"""Kernels in NumPy: cache-sized blocks, exact integer totals."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.precision import Precision
from calibrant.kernels.sharing import searchable
from calibrant.kernels.totals import Floats, Ints, Totals

Array = NDArray[Any]

BLOCK = 1 << 18
"""Elements that are worked on at once: they stay in cache."""
ROWS = 2047
"""Rows of units (at most 2^52 each) that an int64 can add up."""
_ONE = np.float64(1.0).view(np.int64)
_LOW = (1 << 26) - 1


def units(values: Array) -> Ints:
    """round(p * 2^52) for p in [0, 1]: the significand bits of 1 + p."""
    floats = np.array(values, np.float64, order="C")  # cast first: adding in float32 would round
    floats += 1.0
    bits = floats.view(np.int64)
    bits -= _ONE
    return bits


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


def normalisers(logits: Array) -> tuple[Floats, Floats]:
    """The maximum of each row, and the sum of exp(z - maximum) over the other classes."""
    top, rest = np.empty((2, len(logits)))
    for rows in blocks(*logits.shape):
        block = logits[rows].astype(np.float64, order="C")  # sums along rows depend on nothing but the row
        first = np.arange(len(block)), block.argmax(axis=1)
        top[rows] = block[first]
        with np.errstate(over="ignore"):  # logits of +-1e308 differ by infinity: exp is 0
            block -= top[rows, None]
        block[first] = -np.inf
        rest[rows] = np.exp(block, out=block).sum(axis=1)
    return top, rest


def softmax(logits: Array, top: Floats, rest: Floats) -> Floats:
    """exp(z - maximum) / (1 + rest), in float64 whatever the logits are."""
    with np.errstate(over="ignore"):
        scores = np.subtract(logits, top[:, None], dtype=np.float64)
    np.exp(scores, out=scores)
    scores /= 1.0 + rest[:, None]
    return scores


def tempered(logits: Array, labels: Ints, inverse: float, *, slopes: bool = True) -> tuple[Floats, Floats, Floats]:
    """Log loss of softmax(z * inverse) in each row, and its first and second derivative by the inverse temperature.

    The derivatives are nan where they are not asked for. Large float32 matrices are exponentiated in float32, all else
    in float64. Rows are shared out among threads.
    """
    dtype = np.dtype(np.float32 if logits.dtype == np.float32 and logits.size > 1 << 22 else np.float64)
    derivatives = np.full((3, len(logits)), np.nan)

    def work(part: slice) -> None:
        width = logits.shape[1]
        shifted, raised = np.empty((2, min(max(1, BLOCK // width), part.stop - part.start), width), dtype)
        for rows in blocks(part.stop - part.start, width):
            rows = slice(part.start + rows.start, part.start + rows.stop)
            u, e, block = shifted[: rows.stop - rows.start], raised[: rows.stop - rows.start], logits[rows]
            np.subtract(block, block.max(axis=1, keepdims=True), out=u, dtype=dtype)
            np.multiply(u, dtype.type(inverse), out=e)
            total = np.exp(e, out=e).sum(axis=1)
            true = u[np.arange(len(u)), labels[rows]].astype(np.float64)
            derivatives[0, rows] = np.log(total) - inverse * true
            if not slopes:
                continue
            mean = np.multiply(e, u, out=e).sum(axis=1) / total
            derivatives[1, rows] = mean - true
            derivatives[2, rows] = np.einsum("ij,ij->i", e, u) / total - np.square(mean)

    _in_threads(work, len(logits), logits.size)
    return derivatives[0], derivatives[1], derivatives[2]


def _in_threads(work: Callable[[slice], None], n: int, size: int) -> None:
    """Call work on shares of the rows, in as many threads as there are processors, if there is enough of it."""
    count = min(len(os.sched_getaffinity(0)), 8) if hasattr(os, "sched_getaffinity") else 1
    if count < 2 or size < 1 << 20:
        work(slice(0, n))
        return
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    ends = [n * share // count for share in range(count + 1)]
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(work, (slice(low, high) for low, high in itertools.pairwise(ends))))


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


def scalar_codes(values: Array, edges: Floats, closed: str, precision: Precision) -> Array:
    """The number of inner edges that lie below each value (at or below it, when bins are left-closed)."""
    values, inner = precision.comparable(values, edges[1:-1])
    if len(inner) > 48:  # beyond this many compares a binary search is faster
        return np.searchsorted(inner, values, side="left" if closed == "right" else "right")
    above = np.greater if closed == "right" else np.greater_equal
    codes = np.zeros(values.shape, np.uint8)
    for edge in inner:
        codes += above(values, edge)
    return codes


def scalar_totals(
    outputs: Array,
    targets: Array,
    edges: Floats,
    closed: str,
    precision: Precision,
    *,
    keep: Array | None,
    group: Array | None,
    groups: int,
    weight: Array | None,
) -> tuple[Totals, Totals, Totals, Totals | None]:
    """Size, outputs, targets and (with weights) squared weights of every (question, bin) for events of fixed edges.

    `outputs` is (n, v); `targets` the index of the event that happened (-1: none) or, for soft
    labels, an array like the outputs. Row i counts for questions group[i] * v .. + v - 1.
    """
    n, v = outputs.shape
    bins = len(edges) - 1
    tally = _Tally(groups * v * bins)
    if v >= 16 and keep is None and group is None and weight is None and targets.ndim == 1:
        tally.add_mostly_first(outputs, targets, edges, closed, precision)
        return tally.totals
    columns = np.arange(v) * bins
    for rows in blocks(n, v):
        cells = scalar_codes(outputs[rows], edges, closed, precision) + columns
        if group is not None:
            cells += (group[rows] * (v * bins))[:, None]
        tally.add(cells, outputs[rows], targets[rows], _part(keep, rows), _part(weight, rows))
    return tally.totals


class _Sums:
    """Sums of cells in limbs that are carried once, at the end."""

    def __init__(self, cells: int) -> None:
        self.hi, self.lo = np.zeros((2, cells), np.int64)
        self.weighted: Totals | None = None

    @property
    def total(self) -> Totals:
        plain = Totals.normal(self.hi, self.lo)
        return plain if self.weighted is None else plain + self.weighted

    def count(self, codes: Ints, sign: int = 1) -> None:
        """Add 1 at every code."""
        self.hi += sign * np.bincount(codes, minlength=len(self.hi)) << 26

    def add(self, codes: Ints, values: Array, weight: Array | None = None, sign: int = 1) -> None:
        """Add values in [0, 1]; the halves of a unit stay exact through float64 for 2^26 rows."""
        if weight is not None:
            sums = Totals.of(values, weight).by_code(codes, len(self.hi))
            self.weighted = sums if self.weighted is None else self.weighted + sums
            return
        unit = units(values)
        self.hi += sign * np.bincount(codes, unit >> 26, len(self.hi)).astype(np.int64)
        self.lo += sign * np.bincount(codes, unit & _LOW, len(self.lo)).astype(np.int64)


class _Tally:
    """Size, outputs and targets of cells, filled block by block."""

    def __init__(self, cells: int) -> None:
        self.size, self.outputs, self.targets = _Sums(cells), _Sums(cells), _Sums(cells)
        self.squares: Totals | None = None

    def add(self, cells: Ints, outputs: Array, targets: Array, keep: Array | None, weight: Array | None) -> None:
        """Every entry of a block goes to its cell."""
        hard = targets.ndim == 1
        if hard:
            hit = np.flatnonzero(targets >= 0)
            happened = np.zeros(cells.shape, bool)
            happened[hit, targets[hit]] = True
            targets = happened
        kept = slice(None) if keep is None else np.flatnonzero(keep)
        codes, truth = cells.ravel()[kept], targets.ravel()[kept]
        heavy = None if weight is None else np.repeat(weight, cells.shape[1])[kept]
        self.outputs.add(codes, outputs.ravel()[kept], heavy)
        if heavy is None:
            self.size.count(codes)
        else:
            self.size.add(codes, np.ones(len(codes)), heavy)
            squares = Totals.of(np.square(heavy)).by_code(codes, len(self.size.hi))
            self.squares = squares if self.squares is None else self.squares + squares
        if hard and heavy is None:
            self.targets.count(codes[truth])
        else:
            self.targets.add(codes, truth, heavy)

    def add_mostly_first(
        self, outputs: Array, targets: Array, edges: Floats, closed: str, precision: Precision
    ) -> None:
        """As `add`, for many questions: all entries go to the first bin, then the few beyond it are moved."""
        n, width = outputs.shape
        bins = len(edges) - 1
        hit = np.flatnonzero(targets >= 0)
        codes = scalar_codes(outputs[hit, targets[hit]], edges, closed, precision)
        self.targets.count(targets[hit] * bins + codes)
        self.size.hi[::bins] += n << 26
        work = np.empty(min(n * width, max(BLOCK, width)))
        waiting: list[tuple[Ints, Array]] = []
        for rows in blocks(n, width):
            block = outputs[rows]
            everything = _column_sums(block, work)
            self.outputs.hi[::bins] += everything.hi
            self.outputs.lo[::bins] += everything.lo
            if bins > 1:
                values, inner = precision.comparable(block, edges[1:2])
                beyond = np.flatnonzero(values >= inner[0])  # one that lies on the edge may be moved to where it is
                waiting.append((beyond % width * bins, block.ravel()[beyond]))
            if sum(len(values) for _, values in waiting) > BLOCK or rows.stop == n:
                self._move(waiting, edges, closed, precision)
                waiting.clear()

    def _move(self, waiting: list[tuple[Ints, Array]], edges: Floats, closed: str, precision: Precision) -> None:
        """Entries from the first bin of their question to where they belong."""
        if not waiting:
            return
        home, values = (np.concatenate(parts) for parts in zip(*waiting, strict=True))
        cells = home + scalar_codes(values, edges, closed, precision)
        self.outputs.add(cells, values)
        self.outputs.add(home, values, sign=-1)
        self.size.count(cells)
        self.size.count(home, sign=-1)

    @property
    def totals(self) -> tuple[Totals, Totals, Totals, Totals | None]:
        """Size, outputs, targets and squared weights."""
        return self.size.total, self.outputs.total, self.targets.total, self.squares


def sums_by_code(codes: Ints, values: Array, cells: int, weight: Array | None = None) -> Totals:
    """Exact sums of values in [0, 1] by code."""
    sums = _Sums(cells)
    sums.add(codes, values, weight)
    return sums.total


def column_totals(
    values: Array, rows: Ints | None = None, weight: Array | None = None, *, square: bool = False
) -> Totals:
    """Exact sums of the columns of an (n, d) matrix over some of its rows, or of their squares."""
    n, d = values.shape[0] if rows is None else len(rows), values.shape[1]
    total = Totals.zeros(d)
    work = np.empty(min(n * d, max(BLOCK, d)))
    for part in blocks(n, d):
        block = values[part] if rows is None else values[rows[part]]
        if square:
            block = np.square(block, dtype=np.float64)
        if weight is None:
            total += _column_sums(block, work)
        else:
            heavy = weight[part] if rows is None else weight[rows[part]]
            total += Totals.of(block, heavy[:, None]).sum(axis=0)
    return total


def _column_sums(values: Array, work: Floats) -> Totals:
    """Exact sums of the columns of a block of values in [0, 1]; `work` has room for the block."""
    if len(values) > ROWS:
        unit = units(values)
        return Totals.normal((unit >> 26).sum(axis=0), (unit & _LOW).sum(axis=0))
    surplus = np.uint64(len(values) * int(_ONE) % (1 << 64)).view(np.int64)
    floats = work[: values.size].reshape(values.shape)
    np.copyto(floats, values)
    floats += 1.0
    return Totals.from_units(floats.view(np.int64).sum(axis=0) - surplus)  # wraps on the way, not in the end


def _part(array: Array | None, rows: slice) -> Array | None:
    return None if array is None else array[rows]


def blocks(n: int, width: int) -> Iterator[slice]:
    """Slices of rows that make blocks of at most BLOCK elements."""
    step = max(1, BLOCK // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
