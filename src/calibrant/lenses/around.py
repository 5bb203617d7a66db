"""Lenses around lenses: the same question asked apart by class, or only of some answers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from calibrant.checks import class_name, interval, is_whole, number, word
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Ints
from calibrant.lenses.lens import Lens
from calibrant.predictions import Predictions
from calibrant.selections import SIDES, open_ends, within
from calibrant.specification.facts import Facts, facts_of
from calibrant.specification.naming import later
from calibrant.views import View


@dataclass(frozen=True)
class ByLabel:
    """The lens's questions asked apart for the samples of each true class.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]])
    >>> cal.ByLabel(cal.TopLabel())(p).questions
    2
    """

    lens: Lens

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return Facts("lens")

    def __call__(self, predictions: Predictions) -> View:
        predictions.require_classes("ByLabel")
        return _grouped(self.lens(predictions), predictions.hard_labels("ByLabel"), predictions, "by label")

    def __str__(self) -> str:
        return f"{self.lens} by label"


@dataclass(frozen=True)
class ByPrediction:
    """The lens's questions asked apart for the samples of each predicted class.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]])
    >>> cal.ByPrediction(cal.TopLabel())(p).group.tolist()
    [0, 0]
    """

    lens: Lens

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return dataclasses.replace(facts_of(self.lens), names_classes=True, asks_event=False, alone=None)

    def __call__(self, predictions: Predictions) -> View:
        return _grouped(self.lens(predictions), predictions.predicted, predictions, "by prediction")

    def __str__(self) -> str:
        return f"{self.lens} by prediction"


@dataclass(frozen=True)
class Between:
    """The lens's answers whose output lies between low and high: selection after the lens.

    `closed` is "left", "right" or "both", where an open end is closed at 0 and at 1, so that neighbouring intervals
    share out everything; or "neither", where both ends are open always. Of a vector lens `of` names the coordinate that
    must lie there: a class of `Full`, a group of `Groups`, a rank of `TopK` ("rest" is the last), or its place. Without
    `of` every coordinate must.

    References: Kirchenbauer, Oaks & Heim (2022), section 4.1; the condition is on the outputs of the induced problem.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1], [.3, .5, 1.])
    >>> cal.Between(cal.TopLabel(), .5, 1)(p).keep.ravel().tolist()
    [False, True, True]
    >>> p = cal.Predictions.from_probs([2, 0], [[.5, .3, .2], [.2, .2, .6]], classes=["cat", "dog", "owl"])
    >>> pets = cal.Groups({"pet": ["cat", "dog"], "bird": ["owl"]})
    >>> cal.Between(pets, .7, 1, of="pet")(p).keep.ravel().tolist()
    [True, False]
    """

    lens: Lens
    low: float
    high: float
    closed: str = "left"
    of: int | str | None = later(None)

    def __post_init__(self) -> None:
        interval(self.low, self.high, "Between")
        word(self.closed, "closed", *SIDES)
        if self.of is not None:
            class_name(self.of, "Between")

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return dataclasses.replace(facts_of(self.lens), asks_event=False, alone=None)

    def __call__(self, predictions: Predictions) -> View:
        view = self.lens(predictions)
        place = self._place(predictions, view)
        inside = within(
            view.outputs if place is None else view.outputs[:, :, place],
            *(self.low, self.high, self.closed, view.precision),
        )
        return _kept(view, np.asarray(inside.all(axis=2)) if place is None else inside, self._condition)

    def _place(self, predictions: Predictions, view: View) -> int | None:
        """Which coordinate is asked; None where all are."""
        if self.of is None:
            return None if view.d > 1 else 0
        coordinates = facts_of(self.lens).coordinates
        names = coordinates(predictions.classes) if coordinates else ()
        if is_whole(self.of) and 0 <= self.of < view.d:
            return int(self.of)
        if self.of not in names:
            expected = f"needs of= one of the {view.d} coordinates of {self.lens}"
            raise CalibrationInputError("Between", expected, got=repr(self.of), hint="its name, or its place from 0 on")
        return names.index(str(self.of))

    @property
    def interval(self) -> str:
        """The interval as it is written, with round brackets where an end is open."""
        open_left, open_right = open_ends(self.low, self.high, self.closed)
        return f"{'(' if open_left else '['}{self.low:g}, {self.high:g}{')' if open_right else ']'}"

    @property
    def _condition(self) -> str:
        return f"in {self.interval}" if self.of is None else f"with {self.of} in {self.interval}"

    def __str__(self) -> str:
        return f"{self.lens} {self._condition}"


@dataclass(frozen=True)
class Above:
    """The lens's answers whose output is strictly larger than t.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.99, .01], [.8, .2]])
    >>> cal.Above(cal.Classwise(), 0.01)(p).keep.tolist()
    [[True, False], [True, True]]
    """

    lens: Lens
    t: float

    def __post_init__(self) -> None:
        number(self.t, "t", "must be a number", lambda t: t == t)

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return dataclasses.replace(facts_of(self.lens), asks_event=False, alone=None)

    def __call__(self, predictions: Predictions) -> View:
        view = self.lens(predictions)
        view.require_event("Above", "a scalar lens such as Classwise()")
        values, threshold = view.precision.comparable(view.outputs[:, :, 0], np.array([self.t], np.float64))
        return _kept(view, values > threshold[0], f"above {self.t:g}")

    def __str__(self) -> str:
        return f"{self.lens} above {self.t:g}"


def _grouped(view: View, group: Ints, predictions: Predictions, how: str) -> View:
    """Copies of the stack, one a class; a stack that is grouped already is grouped within each."""
    outer = predictions.classes
    inner = view.about.names
    names = tuple(f"{name} / {part}" for name in outer for part in inner) if inner else outer
    group = np.repeat(group, len(view.outputs) // len(group)) if len(group) else group
    if view.group is not None:
        group = group * view.groups + view.group
    about = dataclasses.replace(view.about, names=names, question=f"{view.about.question} {how}")
    return dataclasses.replace(view, about=about, group=group, groups=len(outer) * view.groups)


def _kept(view: View, keep: Array, how: str) -> View:
    about = dataclasses.replace(view.about, question=f"{view.about.question} {how}")
    return dataclasses.replace(view, about=about, keep=keep if view.keep is None else view.keep & keep)
