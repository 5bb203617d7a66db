"""Forecasts of events: each comes true or not, whatever the others do."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import numpy as np

from calibrant.door.arrays import Array
from calibrant.door.kinds import CLASSES, COLUMNS, Kind, Refusal
from calibrant.door.logs import Sigmoid, sigmoid
from calibrant.kernels.totals import Ints


class Events(Kind):
    """Probabilities of events, or the logits of which those are the sigmoid."""

    of_events = True
    answers = False

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self), self.n_classes or 1

    @property
    def probabilities(self) -> Array:
        """The probability of each event."""
        return sigmoid(self.values) if self.logits else self.values

    def probability_of(self, classes: Ints) -> Array:
        """The probability of some events (n, k) of each row."""
        return np.take_along_axis(self.probabilities.reshape(self._shape), classes, axis=1)

    def happened(self, labels: Ints, classes: Ints) -> Array:
        """Which of some events (n, k) of each row did."""
        return np.take_along_axis(labels.reshape(self._shape), classes, axis=1) == 1

    def truth_rows(self, labels: Ints) -> Array:
        """0 or 1 for each event."""
        return labels.astype(np.float64)

    def redrawn(self, rng: np.random.Generator) -> Ints:
        """Each event independently."""
        return (rng.random(self.values.shape) < self.probabilities).astype(np.int64)

    def odds_of(self, classes: Ints) -> Sigmoid | None:
        """The logits of some events."""
        rows = self.values.reshape(self._shape)
        return Sigmoid(partial(np.take_along_axis, rows, classes, 1)) if self.logits else None

    def odds_of_each(self) -> Sigmoid | None:
        """The logits themselves."""
        return Sigmoid(partial(np.reshape, self.values, self._shape)) if self.logits else None


class OneEvent(Events):
    """Forecasts (n,) of one event."""

    name = "event"
    question = "event"
    words = "one event"
    _REFUSED: ClassVar[Refusal] = (
        "is a question about classes",
        "forecasts of one event",
        "pass np.column_stack([1 - p, p]) to make it two classes",
    )
    lacks: ClassVar[Mapping[str, Refusal]] = {CLASSES: _REFUSED, COLUMNS: _REFUSED}

    @property
    def confidence(self) -> Array:
        """The probability of the event."""
        return self.probabilities

    def targets_of_each(self, labels: Ints) -> Array:
        """0 where it happened, else -1."""
        if not isinstance(labels, np.ndarray):
            return labels.astype(np.int8) - 1
        return np.subtract(labels, 1, dtype=np.int8, casting="unsafe")  # in one walk


class Answer(OneEvent):
    """Confidences (n,) of the top answers, of which only it is known whether they were right."""

    name = "confidence"
    question = "top answer"
    words = "the top answer"
    answers = True
    knows_truth = False
    ranks = 1
    _REFUSED = ("is a question about classes", "confidences of top answers", None)
    lacks: ClassVar[Mapping[str, Refusal]] = {CLASSES: _REFUSED, COLUMNS: _REFUSED}

    def leaders(self, k: int) -> Ints:
        """The answer, whatever its class is."""
        self.require_ranks(k, f"rank {k}")
        return np.zeros((len(self), 1), np.int64)


class Labels(Events):
    """Forecasts (n, L) of L independent labels.

    >>> forecasts = Labels(np.array([[0.9, 0.8, 0.1]]))
    >>> forecasts.words, forecasts.question
    ('3 independent labels', 'every label')
    """

    name = "labels"
    question = "every label"
    _REFUSED: ClassVar[Refusal] = ("needs classes of which one is true", "independent labels", None)
    lacks: ClassVar[Mapping[str, Refusal]] = {CLASSES: _REFUSED}

    @property
    def words(self) -> str:
        """What the forecasts are about."""
        return f"{self.n_classes} independent labels"

    @property
    def n_classes(self) -> int:
        """L."""
        return self.values.shape[1]

    def targets_of_each(self, labels: Ints) -> Array:
        """0 or 1 for each label, (n, L, 1)."""
        return labels[:, :, None]
