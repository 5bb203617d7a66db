"""Lenses: which question is asked of each forecast.

A lens is any callable from `Predictions` to a `View`; those here are frozen values. Scalar lenses
(`TopLabel`, `InTopK`, `Ranked`, `OneClass`, `Classwise`, `Flat`) ask about events, d = 1. Vector lenses (`Full`,
`TopK`, `Groups`) keep a whole distribution, completed to the simplex.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from calibrant import kernels, logs
from calibrant.arrays import Array
from calibrant.checks import class_name, whole
from calibrant.exceptions import CalibrationInputError
from calibrant.facts import Facts
from calibrant.predictions import Predictions
from calibrant.totals import Floats, Ints
from calibrant.views import About, View

Lens = Callable[[Predictions], View]
_OF_FORECASTS = Facts("lens", looks_at_labels=False, outcomes="disjoint")


@dataclass(frozen=True)
class TopLabel:
    """Is the predicted class right as often as it is confident? For an event: does it happen as often as forecast?

    Under soft labels a hit is the label mass on the predicted class.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]])
    >>> cal.TopLabel()(p).outputs.ravel().tolist()
    [0.9, 0.8]
    """

    facts: ClassVar[Facts] = dataclasses.replace(_OF_FORECASTS, names_classes=False, asks_event=True)

    def __call__(self, predictions: Predictions) -> View:
        if predictions.kind != "classes":
            return _event(predictions)
        return _picked(predictions, predictions.leaders(1), "top label")

    def __str__(self) -> str:
        return "top label"


@dataclass(frozen=True)
class Ranked:
    """Is the k-th likeliest class right as often as its probability says? (The k-th alone, an event.)

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]])
    >>> cal.Ranked(2)(p).outputs.ravel().tolist()
    [0.1, 0.2]
    """

    k: int

    facts: ClassVar[Facts] = dataclasses.replace(_OF_FORECASTS, names_classes=False)

    def __post_init__(self) -> None:
        whole(self.k, "k", 1)

    def __call__(self, predictions: Predictions) -> View:
        if predictions.kind == "confidence" and self.k == 1:  # the top answer is the class of rank 1
            return _event(predictions)
        _check_k(self.k, predictions, "Ranked")
        return _picked(predictions, predictions.leaders(self.k)[:, -1:], str(self))

    def __str__(self) -> str:
        return "likeliest class" if self.k == 1 else f"class of rank {self.k}"


@dataclass(frozen=True)
class InTopK:
    """Is the truth among the k likeliest classes as often as their summed probability says? (An event.)

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([2, 1], [[.5, .3, .2], [.6, .3, .1]])
    >>> cal.InTopK(2)(p).outputs.ravel().round(12).tolist()
    [0.8, 0.9]
    """

    k: int

    facts: ClassVar[Facts] = dataclasses.replace(_OF_FORECASTS, names_classes=False)

    def __post_init__(self) -> None:
        whole(self.k, "k", 1)

    def __call__(self, predictions: Predictions) -> View:
        _check_k(self.k, predictions, "InTopK")
        leaders = predictions.leaders(self.k)
        outputs = kernels.row_sums(predictions.probability_of(leaders))[:, None, None]
        if predictions.soft is None:
            found = (leaders == _labels(predictions)[:, None]).any(axis=1)
            targets: Array = np.where(found, 0, -1)
        else:
            targets = np.take_along_axis(predictions.soft, leaders, axis=1).sum(axis=1)[:, None, None]
        return _view(predictions, outputs, targets, str(self), logs.of_some(predictions, leaders), summed=True)

    def __str__(self) -> str:
        return f"truth in top {self.k}"


@dataclass(frozen=True)
class OneClass:
    """Does this class happen as often as its column says? All rows, whatever was predicted.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]], classes=["cat", "dog"])
    >>> cal.OneClass("dog")(p).outputs.ravel().tolist()
    [0.1, 0.2]
    """

    of: int | str

    facts: ClassVar[Facts] = _OF_FORECASTS

    def __post_init__(self) -> None:
        class_name(self.of, "OneClass")

    def __call__(self, predictions: Predictions) -> View:
        index = predictions.class_index(self.of)
        column = np.full((len(predictions), 1), index)
        return _picked(predictions, column, f"class {predictions.classes[index]}")

    def __str__(self) -> str:
        return f"class {self.of}"


@dataclass(frozen=True)
class Classwise:
    """Does each class happen as often as its column says? K questions in one pass.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]])
    >>> cal.Classwise()(p).outputs.shape
    (2, 2, 1)
    """

    facts: ClassVar[Facts] = Facts("lens", looks_at_labels=False, outcomes="all", alone=lambda index: OneClass(index))

    def __call__(self, predictions: Predictions) -> View:
        predictions.require_classes("Classwise")
        outputs = predictions.probabilities[:, :, None]
        targets = _labels(predictions) if predictions.soft is None else predictions.soft[:, :, None]
        return _view(predictions, outputs, targets, str(self), logs.of_each(predictions), names=predictions.classes)

    def __str__(self) -> str:
        return "every class"


@dataclass(frozen=True)
class Flat:
    """Do outputs happen as often as they say, all n * K of them pooled?

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]])
    >>> cal.Flat()(p).outputs.ravel().tolist()
    [0.9, 0.1, 0.8, 0.2]
    """

    facts: ClassVar[Facts] = Facts("lens", looks_at_labels=False, names_classes=False)

    def __call__(self, predictions: Predictions) -> View:
        predictions.require_classes("Flat")
        outputs = predictions.probabilities.reshape(-1, 1, 1)
        if predictions.soft is None:
            targets: Array = np.full(len(outputs), -1, np.int8)
            targets[np.arange(len(predictions)) * predictions.n_classes + _labels(predictions)] = 0
        else:
            targets = predictions.soft.reshape(-1, 1, 1)
        view = _view(predictions, outputs, targets, str(self), logs.of_pool(predictions))
        if predictions.weight is None:
            return view
        return dataclasses.replace(view, weight=np.repeat(predictions.weight, predictions.n_classes))

    def __str__(self) -> str:
        return "all outputs pooled"


@dataclass(frozen=True)
class Full:
    """Does the truth follow the whole forecast distribution? For an event, the event itself.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]])
    >>> cal.Full()(p).outputs.shape
    (2, 1, 2)
    """

    facts: ClassVar[Facts] = Facts("lens", looks_at_labels=False, outcomes="all", asks_event=True)

    def __call__(self, predictions: Predictions) -> View:
        if predictions.kind != "classes":
            return _event(predictions)
        outputs = predictions.probabilities[:, None, :]
        targets = _labels(predictions) if predictions.soft is None else predictions.soft[:, None, :]
        return _view(predictions, outputs, targets, str(self), logs.of_all(predictions))

    def __str__(self) -> str:
        return "full distribution"


@dataclass(frozen=True)
class TopK:
    """Does the truth follow the k largest outputs, in order, and the rest as one? k + 1 coordinates.

    References: Kirchenbauer, Oaks & Heim (2022), eq. 4; the last coordinate completes the simplex.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([2], [[.5, .3, .2]])
    >>> view = cal.TopK(1)(p)
    >>> view.outputs.ravel().tolist(), view.targets.tolist()
    ([0.5, 0.5], [1])
    """

    k: int

    facts: ClassVar[Facts] = Facts("lens", looks_at_labels=False, names_classes=False, outcomes="all")

    def __post_init__(self) -> None:
        whole(self.k, "k", 1)

    def __call__(self, predictions: Predictions) -> View:
        _check_k(self.k, predictions, "TopK")
        leaders = predictions.leaders(self.k)
        top = predictions.probability_of(leaders)
        outputs = np.column_stack([top, 1.0 - kernels.row_sums(top)])[:, None, :]
        if predictions.soft is None:
            found = leaders == _labels(predictions)[:, None]
            targets: Array = np.where(found.any(axis=1), found.argmax(axis=1), self.k)
        else:
            mass = np.take_along_axis(predictions.soft, leaders, axis=1)
            targets = np.column_stack([mass, 1.0 - kernels.row_sums(mass)])[:, None, :]
        return _view(predictions, outputs, targets, str(self), logs.of_leaders(predictions, leaders))

    def __str__(self) -> str:
        return f"top {self.k} and the rest"


@dataclass(frozen=True, init=False)
class Groups:
    """Does the truth follow the outputs summed over groups of classes? Groups must share out all classes.

    References: Kirchenbauer, Oaks & Heim (2022), section 4.2.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([2], [[.5, .3, .2]], classes=["cat", "dog", "owl"])
    >>> view = cal.Groups({"pet": ["cat", "dog"], "bird": ["owl"]})(p)
    >>> view.outputs.ravel().tolist(), view.targets.tolist()
    ([0.8, 0.2], [1])
    """

    groups: tuple[tuple[str, tuple[int | str, ...]], ...]

    facts: ClassVar[Facts] = Facts("lens", looks_at_labels=False, outcomes="all")

    def __init__(self, groups: Mapping[str, Sequence[int | str]] | Sequence[object]) -> None:
        object.__setattr__(self, "groups", _named_groups(groups))

    def __call__(self, predictions: Predictions) -> View:
        home = self.home(predictions)
        members = [np.flatnonzero(home == group) for group in range(len(self.groups))]
        outputs = _sums(predictions.probabilities, members)
        if predictions.soft is None:
            targets: Array = home[_labels(predictions)]
        else:
            targets = _sums(predictions.soft, members)
        return _view(predictions, outputs, targets, str(self), logs.of_groups(predictions, members), summed=True)

    def home(self, predictions: Predictions) -> Ints:
        """The group of each class."""
        predictions.require_classes("Groups")
        home = np.full(predictions.n_classes, -1)
        for index, (name, members) in enumerate(self.groups):
            for member in members:
                position = predictions.class_index(member)
                if home[position] >= 0:
                    raise CalibrationInputError(
                        "Groups",
                        "must not share classes",
                        got=f"{predictions.classes[position]!r} twice",
                        where=f"group {name!r}",
                    )
                home[position] = index
        if (home < 0).any():
            missing = predictions.classes[int(np.flatnonzero(home < 0)[0])]
            raise CalibrationInputError("Groups", "must cover every class", got=f"no group for {missing!r}")
        return home

    def __str__(self) -> str:
        return f"groups {', '.join(name for name, _ in self.groups)}"


def _view(
    predictions: Predictions,
    outputs: Array,
    targets: Array,
    question: str,
    logits: logs.Logs | None,
    *,
    names: tuple[str, ...] = (),
    summed: bool = False,
) -> View:
    precision = dataclasses.replace(predictions.precision, summed=summed)
    about = About(
        n=len(predictions),
        question=question,
        names=names,
        soft=predictions.soft_rows,
        fractional=predictions.fractional_rows,
        remarks=predictions.remarks,
    )
    return View(about, outputs, targets, precision, weight=predictions.weight, logits=logits)


def _event(predictions: Predictions) -> View:
    question = "event" if predictions.kind == "event" else "top answer"
    outputs = predictions.probabilities[:, None, None]
    targets = _labels(predictions) - 1 if predictions.soft is None else predictions.soft[:, None, None]
    return _view(predictions, outputs, targets, question, logs.of_event(predictions))


def _picked(predictions: Predictions, classes: Ints, question: str) -> View:
    """The event that the picked class (n, 1) of each row is the true one."""
    predictions.require_classes(question)
    outputs = predictions.probability_of(classes)[:, :, None]
    if predictions.soft is None:
        targets: Array = np.where(classes[:, 0] == _labels(predictions), 0, -1)
    else:
        targets = np.take_along_axis(predictions.soft, classes, axis=1)[:, :, None]
    return _view(predictions, outputs, targets, question, logs.of_some(predictions, classes))


def _sums(values: Array, members: list[Ints]) -> Floats:
    """Sums over groups of classes: (n, 1, groups)."""
    return np.column_stack([kernels.row_sums(values[:, columns]) for columns in members])[:, None, :]


def _labels(predictions: Predictions) -> Ints:
    return predictions.hard_labels("this lens")


def _named_groups(
    groups: Mapping[str, Sequence[int | str]] | Sequence[object],
) -> tuple[tuple[str, tuple[int | str, ...]], ...]:
    known = list(groups.items() if isinstance(groups, Mapping) else groups) if np.iterable(groups) else []
    pairs = cast(list[tuple[str, Sequence[int | str]]], known)
    if len(pairs) < 2:
        raise CalibrationInputError("Groups", "needs at least two groups", got=repr(groups))
    for pair in pairs:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[1], (tuple, list, np.ndarray))):
            raise CalibrationInputError("Groups", "needs a list of classes for each name", got=repr(pair))
        for member in pair[1]:
            class_name(member, "Groups")
    return tuple((str(name), tuple(members)) for name, members in pairs)


def _check_k(k: int, predictions: Predictions, lens: str) -> None:
    predictions.require_classes(lens)
    if k > predictions.n_classes:
        raise CalibrationInputError(
            lens, f"needs at least {k} classes", got=predictions.n_classes, hint="use a smaller k"
        )
