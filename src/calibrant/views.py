"""Views: what a lens sees, and what every summary carries along."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant.door.arrays import Array
from calibrant.door.checked import sentences
from calibrant.door.logs import Given, Logs
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.precision import Precision
from calibrant.kernels.totals import Floats, Ints

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # whose variables have a default, so that Metric is Metric[Summary]

    S = TypeVar("S", bound="Summary", covariant=True, default="Summary")
else:
    from typing import TypeVar

    S = TypeVar("S", covariant=True)


@dataclass(frozen=True)
class About:
    """What a summary is about: it travels with the sums and is printed with the number.

    >>> (About(2, "event", remarks=(("left out: label 9", 1),)) + About(3, "event")).notes
    ('1 row was left out: label 9',)
    """

    n: int
    """Rows of predictions that were summarised."""
    question: str
    """What was asked, in words: "top label", "event"."""
    names: tuple[str, ...] = ()
    """The questions' names, one a view; empty where there is only one."""
    soft: int = 0
    """Rows whose label was soft."""
    fractional: int = 0
    """Rows whose weight was no whole number."""
    remarks: tuple[tuple[str, int], ...] = ()
    """What was done to how many rows when predictions were made."""
    reads: tuple[tuple[str, str], ...] = ()
    """What `summarise` reads: by its name, each choice that summaries must share to be added."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks as sentences."""
        return sentences(self.remarks)

    @property
    def digest(self) -> str:
        """A hash of what `summarise` reads."""
        return hashlib.sha256(repr(self.reads).encode()).hexdigest()

    def __add__(self, other: About) -> About:
        self.require(other.reads, "summaries", "must come from one metric to be added")
        if (self.question, self.names) != (other.question, other.names):
            raise CalibrationInputError(
                "summaries",
                "must answer the same questions to be added",
                got=f"{self.question!r} of {len(self.names)} and {other.question!r} of {len(other.names)}",
            )
        return dataclasses.replace(
            self,
            n=self.n + other.n,
            soft=self.soft + other.soft,
            fractional=self.fractional + other.fractional,
            remarks=_added(self.remarks, other.remarks),
        )

    def require(self, reads: tuple[tuple[str, str], ...], parameter: str, expected: str) -> None:
        """Refuse what was read by other choices, and name the first that differs."""
        if self.reads == reads:
            return
        mine, theirs = dict(self.reads), dict(reads)
        for choice in dict.fromkeys([*mine, *theirs]):
            here, there = mine.get(choice, "nothing"), theirs.get(choice, "nothing")
            if here != there:
                raise CalibrationInputError(parameter, expected, got=f"{choice} {_apart(here, there)}")


@dataclass(frozen=True, eq=False)
class Summary:
    """Anything that adds: `sum(summaries)` is the summary of all the rows together.

    >>> import calibrant as cal
    >>> halves = [cal.ECE.summarise(cal.Predictions.from_probs([1], [p])) for p in (.9, .6)]
    >>> cal.ECE.conclude(sum(halves)).value
    0.25
    """

    about: About

    def __add__(self, other: Self | int) -> Self:
        if isinstance(other, int) and other == 0:
            return self
        if not isinstance(other, Summary):
            return NotImplemented
        about = self.about + other.about
        return self._joined(other, about) if type(self) is type(other) else NotImplemented

    def __radd__(self, zero: int) -> Self:
        """`0 + summary`, so that `sum` works."""
        return self if zero == 0 else NotImplemented

    def _joined(self, other: Self, about: About) -> Self:
        """The sums of both, about the rows of both."""
        raise NotImplementedError


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

    def _joined(self, other: View, about: About) -> View:
        if self.outputs.shape[1:] != other.outputs.shape[1:]:
            raise CalibrationInputError("summaries", "must have the same coordinates to be added", got="different ones")
        check_rows(self.outputs.nbytes + other.outputs.nbytes)
        both = (self, other)
        soft = any(view.targets.ndim > 1 for view in both)
        return dataclasses.replace(
            self,
            about=about,
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


MOST_BYTES = 1 << 34
"""A summary that keeps more than this is refused before it is made."""


def check_rows(needed: int) -> None:
    """Refuse rows that are too many to be kept, before they are put together."""
    if needed > MOST_BYTES:
        expected = f"that a summary keeps must fit {MOST_BYTES / (1 << 30):g} GiB"
        size = f"{needed / (1 << 30):.3g} GiB"
        raise CalibrationInputError("rows", expected, got=size, hint="use a metric that keeps totals, such as ECE")


def _added(some: tuple[tuple[str, int], ...], more: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    counts = dict(some)
    for remark, count in more:
        counts[remark] = counts.get(remark, 0) + count
    return tuple(sorted(counts.items()))


def _apart(here: str, there: str) -> str:
    """Two texts from where they begin to differ."""
    same = next((place for place, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), 0)
    start = max(0, same - 20) if max(len(here), len(there)) > 56 else 0
    return " and ".join(f"{'…' * (start > 0)}{text[start : start + 56]}" for text in (here, there))


def _there(array: Ints | None) -> Ints:
    if array is None:
        raise CalibrationInputError("summaries", "must come from the same lens to be added", got="one without groups")
    return array


def _joined(parts: list[Array | None], shapes: list[tuple[int, ...]]) -> Array | None:
    """Concatenated, where None stands for ones; None if all are."""
    if all(part is None for part in parts):
        return None
    return np.concatenate(
        [
            np.ones(shape, bool if len(shape) == 2 else float) if part is None else part
            for part, shape in zip(parts, shapes, strict=True)
        ]
    )
