"""Forecasts of classes, one of which comes true: all of them, or the likeliest alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Self

import numpy as np

from calibrant import kernels
from calibrant.door.arrays import Array
from calibrant.door.kinds import COLUMNS, Kind, Refusal
from calibrant.door.logs import Logs, Sigmoid, Softmax
from calibrant.kernels.caching import cached_property
from calibrant.kernels.sharing import read_only
from calibrant.kernels.totals import Floats, Ints


class OneOfSeveral(Kind):
    """Forecasts of classes, of which one comes true."""

    question = "top label"

    def happened(self, labels: Ints, classes: Ints) -> Array:
        """Which of some classes (n, k) of each row is the true one."""
        return labels[:, None] == classes

    def targets_of_each(self, labels: Ints) -> Array:
        """The true class."""
        return labels


class Classes(OneOfSeveral):
    """Forecasts (n, K) of K classes, one of which comes true.

    >>> Classes(np.array([[0.2, 0.8]])).leaders(1).tolist()
    [[1]]
    """

    name = "classes"

    @classmethod
    def surveyed(cls, values: Array, logits: bool = False, *, survey: tuple[Array, ...]) -> Self:
        """Forecasts, and what one walk over them told of each row, as kernels give it; empty where nobody has walked.

        Of probabilities, the likeliest class and its probability. Of logits, the likeliest class, its logit, and sums
        of exp(z - largest) and of its square over the other classes.
        """
        forecasts = cls(values, logits)
        if survey:  # no field, lest it be kept where the values are replaced
            vars(forecasts)["_survey"] = survey
        return forecasts

    def __getitem__(self, rows: Any) -> Self:
        survey = tuple(each[rows] for each in vars(self).get("_survey", ()))
        return self.surveyed(self.values[rows], self.logits, survey=survey)

    @property
    def words(self) -> str:
        """What the forecasts are about."""
        return f"{self.n_classes} classes"

    @property
    def n_classes(self) -> int:
        """K."""
        return self.values.shape[1]

    @property
    def ranks(self) -> int:
        """All."""
        return self.n_classes

    @property
    def probabilities(self) -> Array:
        """The probability (n, K) of each class."""
        return self._here.softmax(self.values, *self._normalisers) if self.logits else self.values

    @cached_property
    def confidence(self) -> Array:
        """The largest probability of each row."""
        return read_only(1.0 / (1.0 + self._survey[2]) if self.logits else self._survey[1])

    @property
    def _here(self) -> ModuleType:
        """The kernels that serve the values where they are."""
        return kernels.beside(self.values)

    @cached_property
    def _survey(self) -> tuple[Array, ...]:
        return self._here.logits_survey(self.values)[2:] if self.logits else self._here.row_survey(self.values)[4:]

    @property
    def _normalisers(self) -> tuple[Floats, Floats]:
        """The largest logit of each row, and the sum of exp(z - largest) over the other classes."""
        _, top, rest, _ = self._survey
        return top, rest

    @cached_property
    def _top(self) -> Ints:
        return read_only(self._survey[0][:, None])

    def leaders(self, k: int) -> Ints:
        """The k likeliest classes (n, k) of each row."""
        self.require_ranks(k, f"rank {k}")
        return self._top if k == 1 else self._here.leaders(self.values, k)

    def probability_of(self, classes: Ints) -> Array:
        """The probability of some classes (n, k) of each row."""
        if classes is vars(self).get("_top"):
            return self.confidence[:, None]
        taken = np.take_along_axis(self.values, classes, axis=1)
        return self._here.softmax(taken, *self._normalisers) if self.logits else taken

    def truth_rows(self, labels: Ints) -> Array:
        """One-hot rows."""
        if not isinstance(labels, np.ndarray):  # on a device
            return self.happened(labels, np.arange(self.n_classes)[None]).astype(np.int8)
        rows = np.zeros((len(self), self.n_classes))
        rows[np.arange(len(self)), labels] = 1.0
        return rows

    def redrawn(self, rng: np.random.Generator) -> Ints:
        """One class a row."""
        return redrawn_labels(self.probabilities, rng)

    def odds_of(self, classes: Ints) -> Sigmoid | None:
        """Some classes against the others."""
        return Sigmoid(partial(self._here.log_odds, self.values, classes)) if self.logits else None

    def odds_of_each(self) -> Sigmoid | None:
        """Every class against the others."""
        return Sigmoid(partial(kernels.every_log_odds, self.values)) if self.logits else None

    def logs_of_all(self) -> Softmax | None:
        """Logarithms of the softmax."""
        return Softmax(partial(read_only, self.values), self._survey[1:]) if self.logits else None  # type: ignore[arg-type]

    def logs_apart(self, classes: Ints) -> Logs | None:
        """Some classes of each row one by one, and the rest as one."""
        return Softmax(partial(kernels.apart, self.values, classes)) if self.logits else None

    def logs_pooled(self, members: list[Ints]) -> Logs | None:
        """Groups of classes."""
        return Softmax(partial(kernels.pooled, self.values, tuple(members))) if self.logits else None


@dataclass(frozen=True, eq=False)
class Shortlist(OneOfSeveral):
    """The k likeliest of K classes: their probabilities (n, k), largest first, and which classes they are.

    >>> Shortlist(np.array([[0.6, 0.3]]), ids=np.array([[7, 2]]), count=1000).words
    'the 2 likeliest of 1000 classes'
    """

    ids: Ints = dataclasses.field(default_factory=lambda: np.zeros((0, 1), np.int64))
    """The classes (n, k) of the probabilities."""
    count: int = 0
    """K."""

    name = "top k"

    def __getitem__(self, rows: Any) -> Self:
        return dataclasses.replace(self, values=self.values[rows], ids=self.ids[rows])

    @property
    def words(self) -> str:
        """What the forecasts are about."""
        return f"the {self.ranks} likeliest of {self.count} classes"

    @property
    def lacks(self) -> Mapping[str, Refusal]:
        """The classes that are not on the list have no probability."""
        return {COLUMNS: (f"needs the probability of each of the {self.count} classes", self.words, None)}

    @property
    def n_classes(self) -> int:
        """K."""
        return self.count

    @property
    def ranks(self) -> int:
        """k."""
        return self.values.shape[1]

    @property
    def probabilities(self) -> Array:
        """There are not all."""
        self.require(COLUMNS, "probabilities")
        raise NotImplementedError

    def leaders(self, k: int) -> Ints:
        """The first k of the list."""
        self.require_ranks(k, f"rank {k}")
        return self.ids[:, :k]

    def probability_of(self, classes: Ints) -> Array:
        """The probability of classes that are on the list; others are refused."""
        if classes.shape[1] <= self.ranks and np.array_equal(classes, self.ids[:, : classes.shape[1]]):
            return self.values[:, : classes.shape[1]]
        places = self.ids[:, None, :] == classes[:, :, None]
        if not places.any(axis=2).all():
            self.require(COLUMNS, "class")
        return np.take_along_axis(self.values, places.argmax(axis=2), axis=1)

    def truth_rows(self, labels: Ints) -> Array:
        """There are none like the probabilities."""
        return self.probabilities


def redrawn_labels(probabilities: Array, rng: np.random.Generator, block: int = 1 << 20) -> Ints:
    """One class per row, drawn from the row's probabilities; for one event (n,), whether it happens.

    >>> redrawn_labels(np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(0)).tolist()
    [1, 0]
    """
    uniform = rng.random(len(probabilities))
    if probabilities.ndim == 1:
        return (uniform < probabilities).astype(np.int64)
    labels = np.empty(len(probabilities), np.int64)
    step = max(1, block // probabilities.shape[1])
    for start in range(0, len(labels), step):
        rows = slice(start, start + step)
        running = np.cumsum(probabilities[rows], axis=1, dtype=np.float64)
        labels[rows] = (running <= uniform[rows, None] * running[:, -1:]).sum(axis=1)
    return labels
