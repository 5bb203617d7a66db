"""Selections: which samples count. Combine them with `&`, `|` and `~`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.checks import class_name, interval, is_number, word
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.precision import Precision
from calibrant.predictions import Predictions
from calibrant.specification.facts import Facts, facts_of
from calibrant.specification.naming import later, written_fields

Mask = NDArray[np.bool_]
Value = str | bool | int | float
"""What a sample column can be asked for."""
SIDES = ("left", "right", "both", "neither")
"""Ends of an interval that may belong to it."""


class Selection(ABC):
    """A question that each sample answers with yes or no."""

    @abstractmethod
    def __call__(self, predictions: Predictions) -> Mask:
        """Which rows are selected."""

    def written(self) -> dict[str, object]:
        """Its name (or itself, where that is its class's) and its choices, as JSON has them."""
        return {"select": type(self), **written_fields(self)}

    def __and__(self, other: Selection) -> Selection:
        return Both(self, other)

    def __or__(self, other: Selection) -> Selection:
        return Either(self, other)

    def __invert__(self) -> Selection:
        return Neither(self)


@dataclass(frozen=True, repr=False)
class Everything(Selection):
    """Every sample."""

    def __call__(self, predictions: Predictions) -> Mask:
        return np.ones(len(predictions), bool)

    facts: ClassVar[Facts] = Facts("select", words="", looks_at_labels=False, names_classes=False, takes_all=True)

    def written(self) -> dict[str, object]:
        """As JSON has it."""
        return {"select": "everything"}

    def __repr__(self) -> str:
        return "everything"


everything = Everything()
"""Every sample: the default selection.

>>> import calibrant as cal
>>> p = cal.Predictions.from_probs([1, 0], [.9, .2])
>>> cal.everything(p).tolist()
[True, True]
"""


@dataclass(frozen=True, init=False, repr=False)
class label_in(Selection):  # noqa: N801 - a selection reads as a verb
    """Samples whose true class is one of these (indices or names). Soft labels have no true class.

    Of independent labels: samples that carry one of these.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.4, .6]], classes=["cat", "dog"])
    >>> cal.label_in("dog")(p).tolist()
    [False, True]
    """

    classes: tuple[int | str, ...]

    def __init__(self, *classes: int | str) -> None:
        object.__setattr__(self, "classes", _classes(classes, "label_in"))

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return Facts("select", names_classes=_by_index(*self.classes))

    def __call__(self, predictions: Predictions) -> Mask:
        wanted = [predictions.class_index(name) for name in self.classes]
        labels = predictions.labels if predictions.labels is not None else predictions.hard_labels("label_in")
        columns = np.broadcast_to(wanted, (len(predictions), len(wanted)))
        return np.asarray(predictions.forecasts.happened(labels, columns).any(axis=1))

    def __repr__(self) -> str:
        return f"label_in({', '.join(map(repr, self.classes))})"


@dataclass(frozen=True, init=False, repr=False)
class predicted_in(Selection):  # noqa: N801
    """Samples whose predicted class is one of these (indices or names).

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.6, .4]])
    >>> cal.predicted_in(0)(p).tolist()
    [True, True]
    """

    classes: tuple[int | str, ...]

    def __init__(self, *classes: int | str) -> None:
        object.__setattr__(self, "classes", _classes(classes, "predicted_in"))

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return Facts("select", looks_at_labels=False, names_classes=_by_index(*self.classes))

    def __call__(self, predictions: Predictions) -> Mask:
        return np.isin(predictions.predicted, [predictions.class_index(name) for name in self.classes])

    def __repr__(self) -> str:
        return f"predicted_in({', '.join(map(repr, self.classes))})"


@dataclass(frozen=True, repr=False)
class output_between(Selection):  # noqa: N801
    """Samples whose output for one class lies in [low, high), or in [low, 1] when high is 1.

    For an event, leave `of` out: the output is the event's probability. `closed` says which ends belong to it: "left",
    "right" or "both", where an open end is closed at 0 and at 1; or "neither", where both ends are open always. So
    `output_between(t, 1, closed="right")` takes outputs above t, `output_between(0, t, closed="right")` those up to t.

    References: Kirchenbauer, Oaks & Heim (2022), section 4.1.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1], [.3, .5, 1.])
    >>> cal.output_between(.5, 1)(p).tolist(), cal.output_between(.5, 1, closed="right")(p).tolist()
    ([False, True, True], [False, False, True])
    """

    low: float
    high: float
    of: int | str | None = None
    closed: str = later("left")

    def __post_init__(self) -> None:
        interval(self.low, self.high, "output_between")
        word(self.closed, "closed", *SIDES)
        if self.of is not None:
            class_name(self.of, "output_between")

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return Facts("select", looks_at_labels=False, names_classes=_by_index(self.of))

    def __call__(self, predictions: Predictions) -> Mask:
        if self.of is None and predictions.n_classes:
            got = f"forecasts of {predictions.forecasts.words}"
            raise CalibrationInputError("output_between", "needs of=class", got=got)
        index = 0 if self.of is None else predictions.class_index(self.of)
        outputs = predictions.probability_of(np.full((len(predictions), 1), index))
        return within(outputs[:, 0], self.low, self.high, self.closed, predictions.precision)

    def __repr__(self) -> str:
        return _shown(self)


@dataclass(frozen=True, repr=False)
class confidence_between(Selection):  # noqa: N801
    """Samples whose largest probability lies in [low, high), or in [low, 1] when high is 1.

    `closed` says which ends belong to it, as for `output_between`.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.4, .6]])
    >>> cal.confidence_between(.5, .8)(p).tolist(), cal.confidence_between(.6, 1, closed="right")(p).tolist()
    ([False, True], [True, False])
    """

    low: float
    high: float
    closed: str = later("left")
    facts: ClassVar[Facts] = Facts("select", looks_at_labels=False, names_classes=False)

    def __post_init__(self) -> None:
        interval(self.low, self.high, "confidence_between")
        word(self.closed, "closed", *SIDES)

    def __call__(self, predictions: Predictions) -> Mask:
        return within(predictions.confidence, self.low, self.high, self.closed, predictions.precision)

    def __repr__(self) -> str:
        return _shown(self)


@dataclass(frozen=True, init=False, repr=False)
class where(Selection):  # noqa: N801
    """Samples whose named columns have these values.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0], [.9, .2], region=["north", "south"])
    >>> cal.where(region="north")(p).tolist()
    [True, False]
    """

    columns: tuple[tuple[str, Value], ...]
    facts: ClassVar[Facts] = Facts("select", looks_at_labels=False, names_classes=False)

    def __init__(self, **columns: Value) -> None:
        if not columns:
            raise CalibrationInputError("where", "needs at least one argument", got="none")
        for name, value in columns.items():
            if not (isinstance(value, (str, bool, np.bool_)) or (is_number(value) and value == value)):
                raise CalibrationInputError("where", f"needs one value for {name!r}", got=repr(value))
        object.__setattr__(self, "columns", tuple(sorted(columns.items())))

    def __call__(self, predictions: Predictions) -> Mask:
        mask = np.ones(len(predictions), bool)
        for name, value in self.columns:
            mask &= _equal(predictions.column(name), value)
        return mask

    def written(self) -> dict[str, object]:
        """As JSON has it."""
        return {"select": type(self), "columns": dict(self.columns)}

    def __repr__(self) -> str:
        return f"where({', '.join(f'{name}={value!r}' for name, value in self.columns)})"


class Combined(Selection):
    """A selection that is made of selections."""

    sign: ClassVar[str]

    @property
    def parts(self) -> list[Selection]:
        """The selections."""
        return [getattr(self, name) for name in vars(self)]

    @property
    def facts(self) -> Facts:
        """What is known of any of its parts."""
        known = [facts_of(part) for part in self.parts]
        looks, names = any(part.looks_at_labels for part in known), any(part.names_classes for part in known)
        return Facts("select", looks_at_labels=looks, names_classes=names)

    def written(self) -> dict[str, object]:
        """As JSON has it."""
        return {"select": self.sign, "of": self.parts}

    def __repr__(self) -> str:
        return f"({f' {self.sign} '.join(map(repr, self.parts))})"


@dataclass(frozen=True, repr=False)
class Both(Combined):
    """Samples in both selections: `a & b`."""

    left: Selection
    right: Selection
    sign: ClassVar[str] = "&"

    def __call__(self, predictions: Predictions) -> Mask:
        return self.left(predictions) & self.right(predictions)


@dataclass(frozen=True, repr=False)
class Either(Combined):
    """Samples in at least one of the selections: `a | b`."""

    left: Selection
    right: Selection
    sign: ClassVar[str] = "|"

    def __call__(self, predictions: Predictions) -> Mask:
        return self.left(predictions) | self.right(predictions)


@dataclass(frozen=True, repr=False)
class Neither(Combined):
    """Samples outside the selection: `~a`."""

    selection: Selection
    sign: ClassVar[str] = "~"

    def __call__(self, predictions: Predictions) -> Mask:
        return ~self.selection(predictions)

    def __repr__(self) -> str:
        return f"~{self.selection!r}"


def within(values: Array, low: float, high: float, closed: str, precision: Precision) -> Mask:
    """Which values lie between, ends compared in the values' precision.

    The open end is closed at the border of [0, 1], so that neighbouring intervals share out everything; where neither
    end is closed, both stay open.
    """
    values, (start, stop) = precision.comparable(values, np.array([low, high], np.float64))
    open_left, open_right = open_ends(low, high, closed)
    return (values > start if open_left else values >= start) & (values < stop if open_right else values <= stop)


def open_ends(low: float, high: float, closed: str) -> tuple[bool, bool]:
    """Whether an interval lacks its left end, and its right end.

    >>> open_ends(0.2, 1.0, "left"), open_ends(0.2, 1.0, "right"), open_ends(0.0, 1.0, "neither")
    ((False, False), (True, False), (True, True))
    """
    neither = closed == "neither"
    return neither or (closed == "right" and low > 0), neither or (closed == "left" and high < 1)


def _shown(selection: Selection) -> str:
    """An interval with its ends; the usual closed side goes without saying."""
    fields = ", ".join(f"{name}={value!r}" for name, value in written_fields(selection).items())
    return f"{type(selection).__name__}({fields})"


def _by_index(*classes: int | str | None) -> bool:
    """Whether some class is given by its place, not by its name."""
    return any(is_number(name) for name in classes)


def _classes(classes: tuple[int | str, ...], parameter: str) -> tuple[int | str, ...]:
    if not classes:
        raise CalibrationInputError(parameter, "needs at least one argument", got="none")
    for name in classes:
        class_name(name, parameter)
    return tuple(name if isinstance(name, str) else int(name) for name in classes)


def _equal(column: Array, value: Value) -> Mask:
    """Equality that never warns: a text column holds no number and the other way round."""
    if (column.dtype.kind in "US") != isinstance(value, str):
        value = str(value) if column.dtype.kind in "US" else value
        if isinstance(value, str) and column.dtype.kind not in "US":
            return column.astype(str) == value
    return np.asarray(column == value, dtype=bool)
