"""Lenses of vectors: whole distributions, completed to the simplex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from calibrant import kernels
from calibrant.checks import class_name, whole
from calibrant.door.arrays import Array
from calibrant.door.kinds import COLUMNS
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Ints
from calibrant.lenses.lens import each_view, group_sums, view_of
from calibrant.predictions import Predictions
from calibrant.specification.facts import Facts, declare
from calibrant.views import View


@declare(Facts("lens", narrow=True))
def without_outputs(predictions: Predictions) -> View:
    """What `Full()` sees of logits and hard labels, without the outputs: (n, 1, 0), and their logarithms.

    >>> import calibrant as cal
    >>> without_outputs(cal.Predictions.from_logits([1], [[0., 800.]])).logs.of_truth(np.array([1])).tolist()
    [[0.0]]
    """
    outputs, labels = np.empty((len(predictions), 1, 0)), predictions.labels
    assert labels is not None
    return view_of(predictions, outputs, labels, str(Full()), predictions.forecasts.logs_of_all())


@dataclass(frozen=True)
class Full:
    """Does the truth follow the whole forecast distribution? For an event, the event itself.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]])
    >>> cal.Full()(p).outputs.shape
    (2, 1, 2)
    """

    facts: ClassVar[Facts] = Facts(
        "lens",
        looks_at_labels=False,
        outcomes="all",
        asks_event=True,
        as_given=True,
        logs_alone=without_outputs,
        coordinates=lambda classes: classes,
    )

    def __call__(self, predictions: Predictions) -> View:
        if predictions.forecasts.of_events:
            return each_view(predictions, predictions.forecasts.question)
        predictions.forecasts.require(COLUMNS, "Full")
        outputs = predictions.probabilities[:, None, :]
        targets = predictions.truth_rows[:, None, :] if predictions.labels is None else predictions.labels
        return view_of(predictions, outputs, targets, str(self), predictions.forecasts.logs_of_all())

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

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        names = (*map(str, range(1, self.k + 1)), "rest")
        return Facts(
            "lens", looks_at_labels=False, names_classes=False, outcomes="all", coordinates=lambda classes: names
        )

    def __post_init__(self) -> None:
        whole(self.k, "k", 1)

    def __call__(self, predictions: Predictions) -> View:
        predictions.require_classes("TopK")
        predictions.forecasts.require_ranks(self.k, "TopK")
        leaders = predictions.leaders(self.k)
        top = predictions.probability_of(leaders)
        outputs = np.column_stack([top, 1.0 - kernels.beside(top).row_sums(top)])[:, None, :]
        truth = predictions.truth_of(leaders)
        if predictions.labels is None:
            targets: Array = np.column_stack([truth, 1.0 - kernels.row_sums(truth)])[:, None, :]
        else:
            targets = np.where(truth.any(axis=1), truth.argmax(axis=1), self.k)
        return view_of(predictions, outputs, targets, str(self), predictions.forecasts.logs_apart(leaders))

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

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        names = tuple(name for name, _ in self.groups)
        return Facts("lens", looks_at_labels=False, outcomes="all", coordinates=lambda classes: names)

    def __init__(self, groups: Mapping[str, Sequence[int | str]] | Sequence[object]) -> None:
        object.__setattr__(self, "groups", _named_groups(groups))

    def __call__(self, predictions: Predictions) -> View:
        home = self.home(predictions)
        members = [np.flatnonzero(home == group) for group in range(len(self.groups))]
        outputs = group_sums(predictions.probabilities, members)
        if predictions.labels is None:
            targets: Array = group_sums(predictions.truth_rows, members)
        else:
            targets = home[predictions.labels]
        logs = predictions.forecasts.logs_pooled(members)
        return view_of(predictions, outputs, targets, str(self), logs, summed=True)

    def home(self, predictions: Predictions) -> Ints:
        """The group of each class."""
        predictions.require_classes("Groups")
        predictions.forecasts.require(COLUMNS, "Groups")
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
