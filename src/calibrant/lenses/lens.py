"""What lenses share: a lens is any callable from `Predictions` to a `View`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from calibrant import kernels, logs
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions
from calibrant.specification.facts import Facts
from calibrant.summaries import About
from calibrant.views import View

Lens = Callable[[Predictions], View]
OF_FORECASTS = Facts("lens", looks_at_labels=False, outcomes="disjoint")


def view_of(
    predictions: Predictions,
    outputs: Array,
    targets: Array,
    question: str,
    logits: logs.Logs | None,
    *,
    names: tuple[str, ...] = (),
    summed: bool = False,
) -> View:
    """What a lens sees: outputs and targets of the rows, and what is known of them."""
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


def event_view(predictions: Predictions) -> View:
    """The event that is forecast."""
    question = "event" if predictions.kind == "event" else "top answer"
    outputs = predictions.probabilities[:, None, None]
    targets = labels_of(predictions) - 1 if predictions.soft is None else predictions.soft[:, None, None]
    return view_of(predictions, outputs, targets, question, logs.of_event(predictions))


def picked(predictions: Predictions, classes: Ints, question: str) -> View:
    """The event that the picked class (n, 1) of each row is the true one."""
    predictions.require_classes(question)
    outputs = predictions.probability_of(classes)[:, :, None]
    if predictions.soft is None:
        targets: Array = np.where(classes[:, 0] == labels_of(predictions), 0, -1)
    else:
        targets = np.take_along_axis(predictions.soft, classes, axis=1)[:, :, None]
    return view_of(predictions, outputs, targets, question, logs.of_some(predictions, classes))


def group_sums(values: Array, members: list[Ints]) -> Floats:
    """Sums over groups of classes: (n, 1, groups)."""
    return np.column_stack([kernels.row_sums(values[:, columns]) for columns in members])[:, None, :]


def labels_of(predictions: Predictions) -> Ints:
    """The true classes, refused where labels are soft."""
    return predictions.hard_labels("this lens")


def check_k(k: int, predictions: Predictions, lens: str) -> None:
    """Refuse more classes than there are."""
    predictions.require_classes(lens)
    if k > predictions.n_classes:
        raise CalibrationInputError(
            lens, f"needs at least {k} classes", got=predictions.n_classes, hint="use a smaller k"
        )
