"""Kernels of logits and of scores of one event in NumPy: log-sum-exps each from its own maximum, so none underflows."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.row_blocks import blocks, most_rows
from calibrant.kernels.units import LOW

Array = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


MANY = 256
"""Rows of at least so many float32 logits are exponentiated in float32: faster, and by less than 1e-7 off."""


def in_float32(logits: Array) -> bool:
    """Whether the softmax of rows is computed in float32; it depends on no more than a row, so batches do not matter.

    >>> in_float32(np.zeros((1, 1000), np.float32)), in_float32(np.zeros((1, 10), np.float32))
    (True, False)
    """
    return logits.dtype.itemsize <= 4 and logits.shape[1] >= MANY


def normalisers(logits: Array) -> tuple[Floats, Floats]:
    """The maximum of each row, and the sum of exp(z - maximum) over the other classes."""
    _, _, _, top, rest, _ = logits_survey(logits)
    return top, rest


def logits_survey(logits: Array) -> tuple[float, float, Ints, Floats, Floats, Floats]:
    """The smallest and the largest logit, nan if any is; of each row the first maximum's column and the maximum.

    Then the sums of exp(z - maximum) and of its square over the other classes of each row.
    """
    low, high = np.inf, -np.inf
    dtype = np.float32 if in_float32(logits) else np.float64
    column = np.empty(len(logits), np.int64)
    top, rest, squares = np.empty((3, len(logits)))
    with np.errstate(over="ignore", invalid="ignore"):  # logits of +-1e308 differ by infinity: exp is 0
        for rows in blocks(*logits.shape):
            block: Array = logits[rows].astype(dtype, order="C")  # sums along rows depend on nothing but the row
            low, high = np.minimum(low, block.min()), np.maximum(high, block.max())
            column[rows] = block.argmax(axis=1)
            first = np.arange(len(block)), column[rows]
            top[rows] = block[first]
            block -= block[first][:, None]
            block[first] = -np.inf
            rest[rows] = np.exp(block, out=block).sum(axis=1, dtype=np.float64)
            squares[rows] = np.square(block, out=block).sum(axis=1, dtype=np.float64)
    return float(low), float(high), column, top, rest, squares


def softmax(logits: Array, top: Floats, rest: Floats) -> Floats:
    """exp(z - maximum) / (1 + rest), in float64 whatever the logits are."""
    with np.errstate(over="ignore"):
        scores = np.subtract(logits, top[:, None], dtype=np.float64)
    np.exp(scores, out=scores)
    scores /= 1.0 + rest[:, None]
    return scores


def tempered(logits: Array, labels: Ints, inverse: float) -> tuple[Floats, Floats, Floats]:
    """Log loss of softmax(z * inverse) in each row, and its first and second derivative by the inverse temperature.

    Large float32 matrices are exponentiated in float32, all else in float64. Rows are shared out among threads.
    """
    dtype = np.dtype(np.float32 if logits.dtype == np.float32 and logits.size > 1 << 22 else np.float64)
    derivatives = np.empty((3, len(logits)))

    def work(part: slice) -> None:
        width = logits.shape[1]
        shifted, raised = np.empty((2, most_rows(part.stop - part.start, width), width), dtype)
        for rows in blocks(part.stop - part.start, width):
            rows = slice(part.start + rows.start, part.start + rows.stop)
            u, e, block = shifted[: rows.stop - rows.start], raised[: rows.stop - rows.start], logits[rows]
            np.subtract(block, block.max(axis=1, keepdims=True), out=u, dtype=dtype)
            np.multiply(u, dtype.type(inverse), out=e)
            total = np.exp(e, out=e).sum(axis=1)
            true = u[np.arange(len(u)), labels[rows]].astype(np.float64)
            derivatives[0, rows] = np.log(total) - inverse * true
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


def event_scores(outputs: Array, targets: Array, logs: bool) -> tuple[int, int, int]:
    """Scores of one event, summed: squares of outputs (n,) less the truth, or minus logarithms of what happened.

    `targets` are 0 where it happened, else -1. The sum comes in two limbs, each score rounded once; infinite scores
    are counted apart.
    """
    hi = lo = infinite = 0
    for rows in blocks(len(outputs), 1):
        output = outputs[rows].astype(np.float64)
        share = np.where((targets[rows] == 0) == logs, output, 1.0 - output)  # of what happened, or of what did not
        infinite += int(logs and (share == 0).sum())
        scaled = (-np.log(np.where(share == 0, 1.0, share)) if logs else np.square(share)) * (LOW + 1.0)
        whole = np.floor(scaled)
        hi += int(whole.sum())
        lo += int(np.rint((scaled - whole) * (LOW + 1.0)).astype(np.int64).sum())
    return hi + (lo >> 26), lo & LOW, infinite


def event_logs(outputs: Array, targets: Array) -> Floats:
    """Logarithms of the probability (n,) of what happened, each as `event_scores` adds it up."""
    with np.errstate(divide="ignore"):
        return np.log(np.abs((targets != 0) - outputs.astype(np.float64)))


def softplus(values: Array) -> Floats:
    """log(1 + exp(x)), without overflow at either end."""
    return np.maximum(values, 0.0) + np.log1p(np.exp(-np.abs(values, dtype=np.float64)))


def log_odds(logits: Array, classes: Ints) -> Floats:
    """The log-odds (n, 1) that the truth is among some classes (n, k) of each row."""
    parts = apart(logits, classes)
    return (_log_sum_exp(parts[:, :-1]) - parts[:, -1])[:, None]


def apart(logits: Array, classes: Ints) -> Floats:
    """Logits of some classes (n, k) of each row and, last, the log-sum-exp of the others, less the row's maximum."""
    parts = np.empty((len(logits), classes.shape[1] + 1))
    for rows in blocks(*logits.shape):
        block = _lowered(logits[rows])
        parts[rows, :-1] = np.take_along_axis(block, classes[rows], axis=1)
        np.put_along_axis(block, classes[rows], -np.inf, axis=1)
        parts[rows, -1] = _log_sum_exp(block)
    return parts


def every_log_odds(logits: Array) -> Floats:
    """The log-odds of every class against all the others of its row."""
    odds = np.empty(logits.shape)
    for rows in blocks(*logits.shape):
        block = _lowered(logits[rows])
        first = np.arange(len(block)), block.argmax(axis=1)
        block[first] = -np.inf
        second = _finite_maximum(block)
        scores = np.exp(block - second)
        total = scores.sum(axis=1, keepdims=True)
        np.subtract(total, scores, out=scores)
        block -= np.log1p(scores * np.exp(second))
        with np.errstate(divide="ignore"):
            block[first] = -(second + np.log(total))[:, 0]
        odds[rows] = block
    return odds


def pooled(logits: Array, members: tuple[Ints, ...]) -> Floats:
    """The log-sum-exp of each group of classes, (n, groups), less the row's maximum."""
    sums = np.empty((len(logits), len(members)))
    for rows in blocks(*logits.shape):
        block = _lowered(logits[rows])
        for group, columns in enumerate(members):
            sums[rows, group] = _log_sum_exp(block.take(columns, axis=1))
    return sums


def _lowered(logits: Array) -> Floats:
    """A copy in float64, less the maximum of each row."""
    block = logits.astype(np.float64, order="C")  # sums along rows depend on nothing but the row
    with np.errstate(over="ignore"):  # logits of +-1e308 differ by infinity
        block -= block.max(axis=1, keepdims=True)
    return block


def _log_sum_exp(block: Floats) -> Floats:
    """log(sum of exp(z)) of each row; minus infinity where there is nothing to add."""
    top = _finite_maximum(block)
    with np.errstate(divide="ignore"):
        return top[:, 0] + np.log(np.exp(np.subtract(block, top, order="C")).sum(axis=1))


def _finite_maximum(block: Floats) -> Floats:
    """The maximum (n, 1) of each row, 0 where it is minus infinity."""
    top = block.max(axis=1, keepdims=True, initial=-np.inf)
    top[np.isneginf(top)] = 0.0
    return top
