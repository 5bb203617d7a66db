"""Kernels of logits: log-sum-exps of some classes and of the others, each from its own maximum: none underflows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.numpy import blocks
from calibrant.kernels.totals import Floats, Ints

Array = NDArray[Any]


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


def pooled(logits: Array, members: list[Ints]) -> Floats:
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
