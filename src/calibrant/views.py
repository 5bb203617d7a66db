"""Views: what a lens sees, and what every summary carries along."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from calibrant.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.logs import Given, Logs
from calibrant.precision import Precision
from calibrant.totals import Floats, Ints

S = TypeVar("S", bound="Summary")


@dataclass(frozen=True)
class About:
    """What a summary is about: it travels with the sums and is printed with the number."""

    n: int
    """Rows of predictions that were summarised."""
    question: str
    """What was asked, in words: "top label", "event"."""
    names: tuple[str, ...]
    """The questions' names, one a view; empty where there is only one."""
    soft: bool = False
    fractional: bool = False
    """Whether some weight was no whole number."""
    notes: tuple[str, ...] = ()

    def __add__(self, other: About) -> About:
        if (self.question, self.names) != (other.question, other.names):
            raise CalibrationInputError(
                "summaries",
                "must answer the same questions to be added",
                got=f"{self.question!r} of {len(self.names)} and {other.question!r} of {len(other.names)}",
            )
        return dataclasses.replace(
            self,
            n=self.n + other.n,
            soft=self.soft or other.soft,
            fractional=self.fractional or other.fractional,
            notes=tuple(sorted({*self.notes, *other.notes})),
        )


@dataclass(frozen=True, eq=False)
class Summary:
    """Anything that adds: `sum(summaries)` is the summary of all the rows together.

    >>> import calibrant as cal
    >>> halves = [cal.ECE.summarise(cal.Predictions.from_probs([1], [p])) for p in (.9, .6)]
    >>> cal.ECE.conclude(sum(halves)).value
    0.25
    """

    about: About

    def __radd__(self: S, zero: int) -> S:
        """`0 + summary`, so that `sum` works."""
        if zero == 0:
            return self
        return NotImplemented


@dataclass(frozen=True, eq=False)
class View(Summary):
    """Outputs (n, v, d): each row answers v questions of d coordinates; d = 1 is an event.

    `targets` is the index, among the row's v * d coordinates, of the one that came true (-1: none),
    or an array like `outputs` for soft labels. `keep` (n, v) drops answers. `group` (n,) sends the
    rows to copies of the stack of questions: row i counts for questions group[i] * v .. + v - 1. `logits` knows the
    logarithms of outputs that came from logits; who replaces the outputs makes it None.

    >>> import calibrant as cal
    >>> view = cal.TopLabel()(cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]]))
    >>> view.outputs.ravel().tolist(), view.targets.tolist()
    ([0.9, 0.8], [0, -1])
    """

    outputs: Array
    targets: Array
    precision: Precision
    keep: Array | None = None
    group: Ints | None = None
    groups: int = 1
    weight: Floats | None = None
    logits: Logs | None = None

    @property
    def v(self) -> int:
        """Questions per row."""
        return self.outputs.shape[1]

    @property
    def d(self) -> int:
        """Coordinates per question."""
        return self.outputs.shape[2]

    @property
    def questions(self) -> int:
        """Questions in all, every group's copy counted."""
        return self.groups * self.v

    def __add__(self, other: View) -> View:
        if not isinstance(other, View) or self.outputs.shape[1:] != other.outputs.shape[1:]:
            return NotImplemented
        both = (self, other)
        soft = any(view.targets.ndim > 1 for view in both)
        return dataclasses.replace(
            self,
            about=self.about + other.about,
            outputs=np.concatenate([view.outputs for view in both]),
            targets=np.concatenate([view.truth_rows if soft else view.targets for view in both]),
            keep=_joined([view.keep for view in both], [view.outputs.shape[:2] for view in both]),
            group=None if self.group is None else np.concatenate([self.group, _there(other.group)]),
            weight=_joined([view.weight for view in both], [view.outputs.shape[:1] for view in both]),
            logits=None,
        )

    def require_event(self, piece: str, instead: str) -> None:
        """Refuse a piece that needs d = 1."""
        if self.d != 1:
            raise CalibrationInputError(
                piece,
                "needs a lens with one coordinate per question",
                got=f"{self.about.question} with {self.d}",
                hint=f"use {instead}",
            )

    def require_whole_weights(self, piece: str) -> None:
        """Refuse a piece that counts samples where weights are fractions."""
        if self.about.fractional:
            raise CalibrationInputError(
                piece,
                "counts samples, so weights must be whole",
                got="fractional weights",
                hint="use EqualWidth or Edges",
            )

    def rows_of(self, question: int) -> Ints:
        """The rows that answer one question."""
        group, column = divmod(question, self.v)
        rows = self._rows_by_group[group]
        return rows if self.keep is None else rows[self.keep[rows, column]]

    def truth_of(self, question: int, rows: Ints) -> Array:
        """The targets (rows, d) of one question: 0 / 1, or soft."""
        column = question % self.v
        if self.targets.ndim == 3:
            return self.targets[rows, column]
        coordinate = self.targets[rows] - column * self.d
        return coordinate[:, None] == np.arange(self.d)

    @cached_property
    def _rows_by_group(self) -> list[Ints]:
        if self.group is None:
            return [np.arange(len(self.outputs))]
        order = np.argsort(self.group, kind="stable")
        return np.split(order, np.searchsorted(self.group[order], np.arange(1, self.groups)))

    @property
    def logs(self) -> Logs:
        """The logarithms of the outputs."""
        return self.logits or Given(self.outputs)

    @property
    def truth_rows(self) -> Array:
        """The targets as an array like the outputs: soft, or 0 / 1."""
        if self.targets.ndim == 3:
            return self.targets
        n, v, d = self.outputs.shape
        return (self.targets[:, None] == np.arange(v * d)).reshape(n, v, d).astype(np.float64)


def _there(array: Any) -> Any:
    if array is None:
        raise CalibrationInputError("summaries", "must come from the same lens to be added", got="one without groups")
    return array


def _joined(parts: list[Any], shapes: list[tuple[int, ...]]) -> Any:
    """Concatenated, where None stands for ones; None if all are."""
    if all(part is None for part in parts):
        return None
    return np.concatenate(
        [
            np.ones(shape, bool if len(shape) == 2 else float) if part is None else part
            for part, shape in zip(parts, shapes, strict=True)
        ]
    )
