"""Kinds of forecasts: what can be asked of an event, of classes, of the likeliest ones alone, of independent labels.

Whoever needs something of forecasts asks it by this interface, and nobody asks which kind it is. What a kind does not
know, it refuses, and says what is missing.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.door.arrays import Array
from calibrant.door.logs import Logs, Sigmoid
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.sharing import read_only
from calibrant.kernels.totals import Ints

Refusal = tuple[str, str, str | None]
"""What was expected, what there is instead, and a hint."""

CLASSES, COLUMNS = "classes", "columns"
"""What a question may need: several classes of which one is true; the probability of each class or label."""


@dataclass(frozen=True, eq=False)
class Kind(ABC):
    """Forecasts (n, ...), and what lenses, selections and scores ask of them.

    >>> import calibrant as cal
    >>> forecasts = cal.Predictions.from_probs([0, 2], [[.7, .2, .1], [.1, .3, .6]]).forecasts
    >>> forecasts.leaders(2).tolist(), forecasts.probability_of(forecasts.leaders(1)).ravel().tolist()
    ([[0, 1], [2, 1]], [0.7, 0.6])
    """

    values: Array
    """Probabilities or logits, a row a sample."""
    logits: bool = False

    name: ClassVar[str]
    question: ClassVar[str]
    """What is asked where nobody says which class: the event, or whether the answer is right."""
    of_events: ClassVar[bool] = False
    """Whether each forecast is about an event of its own, so that no class is the answer."""
    answers: ClassVar[bool] = True
    """Whether a forecast has an answer that is right or wrong."""
    knows_truth: ClassVar[bool] = True
    """Whether labels say what came true, so that they are the same for every model of the same samples."""

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            held = getattr(self, each.name)
            if isinstance(held, np.ndarray) and held.flags.writeable:
                object.__setattr__(self, each.name, read_only(held))

    def __reduce__(self) -> tuple[Any, ...]:  # through the constructor: NumPy forgets that an array was read-only
        return type(self), tuple(getattr(self, each.name) for each in dataclasses.fields(self))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Self:
        return dataclasses.replace(self, values=self.values[rows])

    @property
    @abstractmethod
    def words(self) -> str:
        """What the forecasts are about."""

    @property
    def n_classes(self) -> int:
        """How many classes or labels there are; 0 for one event."""
        return 0

    @property
    def ranks(self) -> int:
        """How many of the likeliest classes of each row are known."""
        return 0

    @property
    def lacks(self) -> Mapping[str, Refusal]:
        """What it cannot be asked for, and how that is said."""
        return {}

    def require(self, need: str, question: str) -> None:
        """Refuse a question that needs what the forecasts do not say."""
        if need in self.lacks:
            expected, got, hint = self.lacks[need]
            raise CalibrationInputError(question, expected, got=got, hint=hint)

    def require_ranks(self, k: int, question: str) -> None:
        """Refuse to rank more classes than are known."""
        if k > self.ranks:
            self.require(CLASSES, question)
            expected = f"needs at least {k} classes" if self.ranks == self.n_classes else f"needs the {k} likeliest"
            raise CalibrationInputError(question, expected, got=self.ranks, hint="use a smaller k")

    @property
    @abstractmethod
    def probabilities(self) -> Array:
        """Every probability that was forecast (float64 where logits were given)."""

    @property
    def confidence(self) -> Array:
        """The probability (n,) of the answer, or of the one event."""
        return self.probability_of(self.leaders(1))[:, 0]

    def leaders(self, k: int) -> Ints:
        """The k likeliest classes (n, k) of each row, likeliest first; ties go to the lowest class."""
        self.require_ranks(k, f"rank {k}")
        raise NotImplementedError

    @abstractmethod
    def probability_of(self, classes: Ints) -> Array:
        """The probability of some classes (n, k) of each row."""

    @abstractmethod
    def happened(self, labels: Ints, classes: Ints) -> Array:
        """Which of some classes (n, k) of each row came true."""

    @abstractmethod
    def truth_rows(self, labels: Ints) -> Array:
        """Labels as an array like the probabilities: 1 what came true, 0 what did not."""

    @abstractmethod
    def targets_of_each(self, labels: Ints) -> Array:
        """What came true among the events or classes, as a view has it."""

    def redrawn(self, rng: np.random.Generator) -> Ints:
        """Labels that happen as often as they are forecast."""
        raise CalibrationInputError("null distribution", "needs every probability", got=self.words)

    def odds_of(self, classes: Ints) -> Sigmoid | None:
        """Logarithms of the event that the truth is among some classes; None where probabilities were given."""
        return None

    def odds_of_each(self) -> Sigmoid | None:
        """Logarithms of every event, class or label by itself."""
        return None

    def logs_of_all(self) -> Logs | None:
        """Logarithms of the whole distribution."""
        return None

    def logs_apart(self, classes: Ints) -> Logs | None:
        """Logarithms of some classes of each row one by one, and of the rest as one."""
        return None

    def logs_pooled(self, members: list[Ints]) -> Logs | None:
        """Logarithms of groups of classes."""
        return None
