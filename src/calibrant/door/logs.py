"""Logarithms of outputs: of probabilities as they were given, of logits by log-sum-exp and softplus.

The logarithm of a probability that was rounded to 0 or 1 is wrong, so what a lens asks of logits keeps the logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from calibrant import kernels
from calibrant.door.arrays import Array
from calibrant.kernels.caching import cached_property
from calibrant.kernels.totals import Floats, Ints


class Logs(Protocol):
    """Logarithms of the outputs (n, v, d) of a view."""

    def of_truth(self, targets: Ints) -> Floats:
        """Logarithms (n, v) of the probability of what happened; 0 where no coordinate of a question (d > 1) did."""

    def complete(self) -> tuple[Floats, Floats]:
        """Outputs and their logarithms; an event (d = 1) and its opposite are two coordinates."""


@dataclass(frozen=True, eq=False)
class Given:
    """Outputs that were given as probabilities.

    >>> Given(np.array([[[0.5, 0.0]]])).of_truth(np.array([1])).tolist()
    [[-inf]]
    """

    outputs: Array

    def of_truth(self, targets: Ints) -> Floats:
        """Logarithms of the entries that happened, alone."""
        if not isinstance(self.outputs, np.ndarray):
            return kernels.beside(self.outputs).true_logs(self.outputs, targets)
        n, v, d = self.outputs.shape
        if v == 1 and (d == 1 or (targets >= 0).all()):
            happened = self.outputs[:, 0, 0] if d == 1 else _picked(self.outputs[:, 0], targets)
            return kernels.event_logs(happened, targets if d == 1 else np.zeros_like(targets))[:, None]
        rows, question, coordinate = _places(targets, d)
        if d == 1:
            happened = np.full((n, v), -1)
            happened[rows, question] = 0
            return _event_logs(self.outputs[:, :, 0], happened)
        logs = np.zeros((n, v))
        logs[rows, question] = _event_logs(self.outputs[rows, question, coordinate])
        return logs

    def complete(self) -> tuple[Floats, Floats]:
        """Outputs and their logarithms."""
        outputs = self.outputs.astype(np.float64)
        if self.outputs.shape[2] > 1:
            return outputs, _event_logs(outputs)
        both = np.concatenate([outputs, 1.0 - outputs], axis=2)
        return both, _event_logs(np.concatenate([outputs, outputs], axis=2), np.broadcast_to([0, -1], both.shape))


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """Outputs (n, v, 1) that are the sigmoid of log-odds.

    >>> Sigmoid(partial(np.array, [[800.0]])).of_truth(np.array([-1])).tolist()
    [[-800.0]]
    """

    make: Callable[[], Floats]
    """What makes the log-odds (n, v), when they are asked for."""

    def of_truth(self, targets: Ints) -> Floats:
        """-log(1 + exp(a)), and -log(1 + exp(-a)) where the event happened."""
        rows, question, _ = _places(targets, 1)
        signed = self._odds.copy()
        signed[rows, question] *= -1.0
        return -kernels.softplus(signed)

    def complete(self) -> tuple[Floats, Floats]:
        """Events and their opposites."""
        signed = np.stack([self._odds, -self._odds], axis=2)
        return sigmoid(signed), -kernels.softplus(-signed)

    def pooled(self) -> Sigmoid:
        """The same with every event as a row of its own."""
        return Sigmoid(partial(_pooled, self.make))

    @cached_property
    def _odds(self) -> Floats:
        return self.make()


@dataclass(frozen=True, eq=False)
class Softmax:
    """Outputs (n, 1, d) that are the softmax of logits.

    >>> Softmax(partial(np.array, [[0.0, 800.0]])).of_truth(np.array([0])).tolist()
    [[-800.0]]
    """

    make: Callable[[], Array]
    """What makes the logits (n, d), when they are asked for."""
    known: tuple[Floats, Floats, Floats] | None = None
    """Of each row the largest logit, and the sums of exp(z - largest) and of its square over the other classes."""

    def of_truth(self, targets: Ints) -> Floats:
        """The true logit less the log-sum-exp of its row."""
        logits, top, rest, _ = self._parts
        if not isinstance(logits, np.ndarray):
            return kernels.beside(logits).true_log_softmax(logits, top, rest, targets)
        happened = targets >= 0
        return np.where(happened, self._true(targets * happened) - np.log1p(rest), 0.0)[:, None]

    def squared_errors(self, targets: Ints) -> Floats:
        """Squares of the outputs less the truth, summed: the sum of all squares, but for the entry that happened."""
        _, _, rest, squares = self._parts
        happened = targets >= 0
        whole = 1.0 + rest
        true = np.exp(self._true(targets * happened)) / whole
        others = np.maximum((1.0 + squares) / np.square(whole) - np.square(true * happened), 0.0)
        return (others + np.square(1.0 - true) * happened)[:, None]

    def complete(self) -> tuple[Floats, Floats]:
        """The whole distribution."""
        logits, top, rest, _ = self._parts
        with np.errstate(over="ignore"):
            logs = (logits - top[:, None]) - np.log1p(rest)[:, None]
        return kernels.softmax(logits, top, rest)[:, None, :], logs[:, None, :]

    @cached_property
    def _parts(self) -> tuple[Array, Floats, Floats, Floats]:
        logits = self.make()
        top, rest, squares = self.known or kernels.beside(logits).logits_survey(logits)[3:]
        if isinstance(logits, np.ndarray):
            rest = np.ascontiguousarray(rest)  # NumPy's logarithms of a strided array differ in the last bit
        return logits, top, rest, squares

    def _true(self, places: Ints) -> Floats:
        """The logit at a place of each row, less the largest one."""
        logits, top, _, _ = self._parts
        with np.errstate(over="ignore"):
            return _picked(logits, places) - top


def sigmoid(logits: Array) -> Floats:
    """1 / (1 + exp(-z)), without overflow at either end."""
    if not isinstance(logits, np.ndarray):
        return kernels.beside(logits).sigmoid(logits)
    scores = np.exp(-np.abs(logits, dtype=np.float64))
    return np.where(logits >= 0, 1.0, scores) / (1.0 + scores)


def _pooled(make: Callable[[], Floats]) -> Floats:
    return make().reshape(-1, 1)


def _event_logs(outputs: Array, targets: Ints | None = None) -> Floats:
    """The logarithms of any shape, by the one function: those of two libraries differ in the last bit."""
    happened = np.zeros(outputs.size, np.int64) if targets is None else targets.reshape(-1)
    return kernels.event_logs(outputs.reshape(-1), happened).reshape(outputs.shape)


def _picked(rows: Array, places: Ints) -> Array:
    """The entry at a place of each row; by one index each, where rows lie side by side: half the time."""
    n, d = rows.shape
    return rows.reshape(-1).take(np.arange(n) * d + places) if rows.flags.c_contiguous else rows[np.arange(n), places]


def _places(targets: Ints, d: int) -> tuple[Ints, Ints, Ints]:
    """Rows, questions and coordinates of what happened."""
    rows = np.flatnonzero(targets >= 0)
    return rows, *np.divmod(targets[rows], d)
