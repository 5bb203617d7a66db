"""Lenses of events: questions with one coordinate, which happen or not."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant import kernels
from calibrant.checks import class_name, whole
from calibrant.door.kinds import COLUMNS
from calibrant.lenses.lens import OF_FORECASTS, each_view, picked, view_of
from calibrant.predictions import Predictions
from calibrant.specification.facts import Facts
from calibrant.views import View


@dataclass(frozen=True)
class TopLabel:
    """Is the predicted class right as often as it is confident? For an event: does it happen as often as forecast?

    Under soft labels a hit is the label mass on the predicted class.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]])
    >>> cal.TopLabel()(p).outputs.ravel().tolist()
    [0.9, 0.8]
    """

    facts: ClassVar[Facts] = dataclasses.replace(OF_FORECASTS, names_classes=False, asks_event=True, narrow=True)

    def __call__(self, predictions: Predictions) -> View:
        question = predictions.forecasts.question
        if predictions.forecasts.of_events:
            return each_view(predictions, question)
        return picked(predictions, predictions.leaders(1), question)

    def __str__(self) -> str:
        return "top label"


@dataclass(frozen=True)
class Answered:
    """Is the answer right as often as it is certain? Of classes it is the likeliest; of an event, yes above one half.

    The certainty of "no" is 1 - p, in the precision of the forecasts. So an event is asked what `TopLabel` asks of
    `column_stack([1 - p, p])`, and independent labels are asked it one by one.

    >>> import calibrant as cal
    >>> view = cal.Answered()(cal.Predictions.from_probs([1, 1, 0], [.75, .25, .25]))
    >>> view.outputs.ravel().tolist(), view.targets.tolist()
    ([0.75, 0.75, 0.75], [0, -1, 0])
    """

    facts: ClassVar[Facts] = dataclasses.replace(OF_FORECASTS, names_classes=False, narrow=True)

    def __call__(self, predictions: Predictions) -> View:
        view = TopLabel()(predictions)
        if predictions.forecasts.answers:
            return view
        yes, truth = view.outputs > 0.5, view.truth_rows
        refused = view.precision.edges(1.0 - view.outputs.astype(np.float64))
        outputs = np.where(yes, view.outputs, refused.astype(view.outputs.dtype))
        right = np.where(yes, truth, 1.0 - truth)
        targets = right if view.targets.ndim > 1 else right[:, 0, 0].astype(np.int64) - 1
        about = dataclasses.replace(view.about, question=f"answer to {view.about.question}")
        return dataclasses.replace(view, about=about, outputs=outputs, targets=targets, logits=None)

    def __str__(self) -> str:
        return "answer"


@dataclass(frozen=True)
class Ranked:
    """Is the k-th likeliest class right as often as its probability says? (The k-th alone, an event.)

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]])
    >>> cal.Ranked(2)(p).outputs.ravel().tolist()
    [0.1, 0.2]
    """

    k: int

    facts: ClassVar[Facts] = dataclasses.replace(OF_FORECASTS, names_classes=False, narrow=True)

    def __post_init__(self) -> None:
        whole(self.k, "k", 1)

    def __call__(self, predictions: Predictions) -> View:
        predictions.forecasts.require_ranks(self.k, "Ranked")
        return picked(predictions, predictions.leaders(self.k)[:, -1:], str(self))

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

    facts: ClassVar[Facts] = dataclasses.replace(OF_FORECASTS, names_classes=False, narrow=True)

    def __post_init__(self) -> None:
        whole(self.k, "k", 1)

    def __call__(self, predictions: Predictions) -> View:
        predictions.require_classes("InTopK")
        predictions.forecasts.require_ranks(self.k, "InTopK")
        leaders = predictions.leaders(self.k)
        top = predictions.probability_of(leaders)
        outputs = kernels.beside(top).row_sums(top)[:, None, None]
        truth = predictions.truth_of(leaders)
        soft = predictions.labels is None
        targets = truth.sum(axis=1)[:, None, None] if soft else np.where(truth.any(axis=1), 0, -1)
        return view_of(predictions, outputs, targets, str(self), predictions.forecasts.odds_of(leaders), summed=True)

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

    facts: ClassVar[Facts] = dataclasses.replace(OF_FORECASTS, narrow=True)

    def __post_init__(self) -> None:
        class_name(self.of, "OneClass")

    def __call__(self, predictions: Predictions) -> View:
        predictions.forecasts.require(COLUMNS, str(self))
        index = predictions.class_index(self.of)
        return picked(predictions, np.full((len(predictions), 1), index), f"class {predictions.classes[index]}")

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

    facts: ClassVar[Facts] = Facts(
        "lens", looks_at_labels=False, outcomes="all", as_given=True, alone=lambda index: OneClass(index)
    )

    def __call__(self, predictions: Predictions) -> View:
        predictions.forecasts.require(COLUMNS, "Classwise")
        return each_view(predictions, predictions.forecasts.question if predictions.forecasts.of_events else str(self))

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
        predictions.forecasts.require(COLUMNS, "Flat")
        outputs = predictions.probabilities.reshape(-1, 1, 1)
        if predictions.labels is None:
            targets = predictions.truth_rows.reshape(-1, 1, 1)
        else:
            targets = predictions.forecasts.truth_rows(predictions.labels).reshape(-1).astype(np.int8) - np.int8(1)
        odds = predictions.forecasts.odds_of_each()
        view = view_of(predictions, outputs, targets, str(self), odds and odds.pooled())
        if predictions.weight is None:
            return view
        return dataclasses.replace(view, weight=np.repeat(predictions.weight, predictions.n_classes))

    def __str__(self) -> str:
        return "all outputs pooled"
