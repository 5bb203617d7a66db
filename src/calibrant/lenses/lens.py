"""What lenses share: a lens is any callable from `Predictions` to a `View`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from calibrant import kernels
from calibrant.door.arrays import Array
from calibrant.door.logs import Logs
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
    logits: Logs | None,
    *,
    names: tuple[str, ...] = (),
    summed: bool = False,
) -> View:
    """What a lens sees: outputs and targets of the rows, and what is known of them."""
    targets = np.asarray(targets) if isinstance(outputs, np.ndarray) else targets  # both on the host, or none
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


def each_view(predictions: Predictions, question: str) -> View:
    """Every event, class or label as a question of its own."""
    outputs = predictions.probabilities.reshape(len(predictions), predictions.n_classes or 1, 1)
    if predictions.labels is not None:
        targets = predictions.forecasts.targets_of_each(predictions.labels)
    else:
        targets = predictions.truth_rows.reshape(outputs.shape)
    names = predictions.classes if predictions.n_classes else ()
    return view_of(predictions, outputs, targets, question, predictions.forecasts.odds_of_each(), names=names)


def picked(predictions: Predictions, classes: Ints, question: str) -> View:
    """The event that the picked class (n, 1) of each row is the true one."""
    outputs = predictions.probability_of(classes)[:, :, None]
    truth = predictions.truth_of(classes)
    targets = truth[:, :, None] if predictions.labels is None else np.where(truth[:, 0], 0, -1)
    return view_of(predictions, outputs, targets, question, predictions.forecasts.odds_of(classes))


def group_sums(values: Array, members: list[Ints]) -> Floats:
    """Sums over groups of classes: (n, 1, groups)."""
    return np.column_stack([kernels.row_sums(values[:, columns]) for columns in members])[:, None, :]
