"""Certificates: how well a recalibration converged, and what it did on the rows it was fitted on."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.kernels.row_blocks import BLOCK
from calibrant.kernels.totals import Floats, Ints
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores
from calibrant.specification import encoding as specification
from calibrant.specification.documents import require_keys


@dataclass(frozen=True)
class Ending:
    """How a search ended."""

    converged: bool = True
    gradient_norm: float = math.nan
    """Largest entry of the gradient of what was minimised, at the solution; nan where there is none."""
    iterations: int = 0
    at_bound: tuple[str, ...] = ()
    """Parameters that ended at the bound of what is allowed."""
    message: str = ""


@dataclass(frozen=True)
class Certificate(Ending):
    """How well a fit converged, and what it did on the rows it was fitted on.

    The log losses and accuracies are those of the fitting rows: they prove the fit, not the model; for an honest
    before and after use `cross_fit`. A log loss is infinite where the truth was given probability 0.

    >>> import calibrant as cal
    >>> fitted = cal.TemperatureScaling().fit([[2., 0.], [3., 0.], [0., 1.], [0., 2.]], [0, 1, 1, 1])
    >>> print(fitted.certificate_)  # doctest: +ELLIPSIS
    converged, gradient ..., log loss 0.9039 -> 0.6650, accuracy 0.7500 (n=4)
    """

    n: int = 0
    log_loss_before: float = math.nan
    log_loss_after: float = math.nan
    accuracy_before: float = math.nan
    accuracy_after: float = math.nan

    def __str__(self) -> str:
        phrases = ["converged" if self.converged else "did not converge"]
        if self.at_bound:
            phrases.append(f"{', '.join(self.at_bound)} at a bound")
        if not math.isnan(self.gradient_norm):
            phrases.append(f"gradient {self.gradient_norm:.1e}")
        phrases.append(f"log loss {self.log_loss_before:.4f} -> {self.log_loss_after:.4f}")
        if not math.isnan(self.accuracy_before):
            changed = f" -> {self.accuracy_after:.4f}" if self.accuracy_after != self.accuracy_before else ""
            phrases.append(f"accuracy {self.accuracy_before:.4f}{changed}")
        return f"{', '.join(phrases)} (n={self.n})"

    @property
    def ending(self) -> Ending:
        """How the search ended, and nothing else."""
        return Ending(self.converged, self.gradient_norm, self.iterations, self.at_bound, self.message)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            name: specification.number(value) if isinstance(value, float) else value
            for name, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Certificate:
        """A certificate from what `to_dict` made."""
        losses = ("gradient_norm", "log_loss_before", "log_loss_after", "accuracy_before", "accuracy_after")
        types: dict[str, Any] = dict.fromkeys(losses, (int, float, str))
        plain = {"converged": bool, "iterations": int, "at_bound": list, "message": str, "n": int}
        require_keys(document, {**types, **plain})
        numbers = {name: float(document[name]) for name in losses}
        return cls(**{**document, **numbers, "at_bound": tuple(map(str, document["at_bound"]))})


def certified(
    lesson: Lesson,
    ending: Ending,
    mapped: Callable[[ModelScores], ModelScores],
    probabilities_of: Callable[[ModelScores], Floats],
) -> Certificate:
    """What a map (to scores, and to probabilities) did on the rows it was fitted on, if the search did not say so."""
    if isinstance(ending, Certificate):
        return ending
    step = max(1, BLOCK // lesson.width)
    losses, right = np.empty((2, 2, len(lesson.labels)))
    for start in range(0, len(lesson.labels), step):
        rows = slice(start, start + step)
        part = lesson[rows]
        for index, each in enumerate((part.scores, mapped(part.scores))):
            losses[index, rows] = each.log_losses(part.labels)
        for index, probabilities in enumerate((part.scores.probabilities, probabilities_of(part.scores))):
            right[index, rows] = likeliest(probabilities) == part.labels
    return Certificate(
        **vars(ending),
        n=len(lesson.labels),
        log_loss_before=lesson.mean_loss(losses[0]),
        log_loss_after=lesson.mean_loss(losses[1]),
        accuracy_before=lesson.mean(right[0]),
        accuracy_after=lesson.mean(right[1]),
    )


def likeliest(probabilities: Floats) -> Ints:
    """The likeliest class of each row; ties go to the first.

    >>> likeliest(np.array([0.9, 0.5])).tolist()
    [1, 0]
    """
    return (probabilities > 0.5).astype(np.int64) if probabilities.ndim == 1 else probabilities.argmax(axis=1)
