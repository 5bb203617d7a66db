"""Tuning: which training of a base and which strength of an intervention are used, by validation rows alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrant.checks import number

ROUNDING = 1e-9
"""An accuracy of 0.8 - 0.05 is not below 0.75, though its floats may be."""


@dataclass(frozen=True)
class Candidate:
    """What a strength did on validation rows: accuracy and top-label calibration error (nan where a trial failed)."""

    strength: float
    accuracy: float
    error: float


@dataclass(frozen=True)
class StrengthChoice:
    """The strength that was chosen for an intervention on a model, among which; None where none was admissible."""

    model: str
    intervention: str
    strength: float | None
    floor: float
    """The lowest admissible accuracy."""
    candidates: tuple[Candidate, ...]

    @property
    def words(self) -> str:
        """The choice in words."""
        if self.strength is None:
            return f"no strength of {self.intervention} keeps the accuracy of {self.model}: the base is kept"
        return f"{self.intervention} {self.strength:g} on {self.model}"


@dataclass(frozen=True)
class TrainingChoice:
    """The training that was chosen for a base, among which: that of the lowest log loss on validation rows.

    >>> TrainingChoice("mlp", {"learning_rate 0.1": 0.4, "learning_rate 1": float("nan")}).chosen
    'learning_rate 0.1'
    """

    model: str
    losses: Mapping[str, float]
    """By what tells the trainings apart; nan where a trial failed."""

    @property
    def chosen(self) -> str | None:
        """The training with the lowest loss, the first of equal ones; None where all failed."""
        tried = [words for words, loss in self.losses.items() if not math.isnan(loss)]
        return min(tried, key=self.losses.__getitem__, default=None)

    @property
    def words(self) -> str:
        """The choice in words."""
        return f"the base of {self.model} has {self.chosen}" if self.chosen else f"no training of {self.model} ended"


def lowest_admissible(base: float, *, loss: float = 0.05, relative: bool = False) -> float:
    """The lowest accuracy that a strength may have: the base's, less the loss (as a share of it, where relative).

    >>> round(lowest_admissible(0.8), 10), round(lowest_admissible(0.8, relative=True), 10)
    (0.75, 0.76)
    """
    number(loss, "loss", "must lie in [0, 1]", lambda share: 0 <= share <= 1)
    return base * (1 - loss) if relative else base - loss


def choose(candidates: Sequence[Candidate], floor: float) -> float | None:
    """The strength with the lowest error among those whose accuracy is at least the floor; of equals the weakest.

    References: Kirchenbauer, Oaks & Heim (2022), appendix C.2.

    >>> grid = [Candidate(0.05, 0.79, 0.05), Candidate(0.1, 0.76, 0.03), Candidate(0.2, 0.74, 0.01)]
    >>> choose(grid, lowest_admissible(0.8)), choose(grid, 0.9)
    (0.1, None)
    """
    admissible = [
        candidate
        for candidate in candidates
        if candidate.accuracy >= floor - ROUNDING and not math.isnan(candidate.error)
    ]
    return min(admissible, key=lambda candidate: (candidate.error, candidate.strength)).strength if admissible else None
