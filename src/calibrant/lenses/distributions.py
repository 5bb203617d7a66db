"""Lenses of vectors: whole distributions, completed to the simplex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from calibrant import kernels, logs
from calibrant.checks import class_name, whole
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Ints
from calibrant.lenses.lens import check_k, event_view, group_sums, labels_of, view_of
from calibrant.predictions import Predictions
from calibrant.specification.facts import Facts
from calibrant.views import View


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
            return event_view(predictions)
        outputs = predictions.probabilities[:, None, :]
        targets = labels_of(predictions) if predictions.soft is None else predictions.soft[:, None, :]
        return view_of(predictions, outputs, targets, str(self), logs.of_all(predictions))

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
        check_k(self.k, predictions, "TopK")
        leaders = predictions.leaders(self.k)
        top = predictions.probability_of(leaders)
        outputs = np.column_stack([top, 1.0 - kernels.row_sums(top)])[:, None, :]
        if predictions.soft is None:
            hits = leaders == labels_of(predictions)[:, None]
            targets: Array = np.where(hits.any(axis=1), hits.argmax(axis=1), self.k)
        else:
            mass = np.take_along_axis(predictions.soft, leaders, axis=1)
            targets = np.column_stack([mass, 1.0 - kernels.row_sums(mass)])[:, None, :]
        return view_of(predictions, outputs, targets, str(self), logs.of_leaders(predictions, leaders))

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
        outputs = group_sums(predictions.probabilities, members)
        if predictions.soft is None:
            targets: Array = home[labels_of(predictions)]
        else:
            targets = group_sums(predictions.soft, members)
        return view_of(predictions, outputs, targets, str(self), logs.of_groups(predictions, members), summed=True)

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
