"""Engines: a metric's value, and its parts, under many weightings of the same rows at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.binning import Edges, EqualWidth
from calibrant.bins import Bins
from calibrant.errors.asking import views
from calibrant.errors.binned import BinnedError
from calibrant.errors.mean_score import MeanScore
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.totals import Floats, Totals
from calibrant.views import About, View

Engine = Callable[[Floats], Floats]
"""From counts (r, rows) to values (r, 1 + parts): the metric first, then its questions."""

MOST_ANSWERS = 1 << 26
"""Answers that the fast exact engine keeps sorted in memory."""


def view_of(metric: Any, predictions: Predictions) -> View:
    """What the metric's lens sees of the selected rows, at once."""
    (view,) = views(metric, predictions, None)
    return view


def exact(metric: Metric, predictions: Predictions) -> Engine:
    """Rows reweighted: whole weights are repetition, so every replicate is what resampled rows would give."""
    if not hasattr(metric, "summarise_view"):
        return _Reweighted(metric, predictions)
    selected = _selected(metric, predictions)
    view = view_of(metric, predictions)
    fixed = isinstance(metric, BinnedError) and isinstance(metric.binning, (EqualWidth, Edges))
    if fixed and view.outputs.size <= MOST_ANSWERS:
        return _FixedBins(metric, view, selected, len(predictions))
    if isinstance(metric, MeanScore) and view.group is None and view.keep is None:
        return _Scores(metric, view, selected, len(predictions))
    return _Viewed(metric, view, selected, len(predictions))


class _Reweighted:
    """Any metric, through the door's own weights."""

    def __init__(self, metric: Metric, predictions: Predictions) -> None:
        self.metric, self.predictions = metric, predictions

    def __call__(self, counts: Floats) -> Floats:
        base = 1.0 if self.predictions.weight is None else self.predictions.weight
        return np.stack([self._one(row * base) for row in counts])

    def _one(self, weight: Floats) -> Floats:
        result = self.metric(dataclasses.replace(self.predictions, weight=weight))
        return np.array([result.value, *result.values])


class _Rows:
    """What engines on one view share: counts of all rows become weights of the view's rows."""

    def __init__(self, metric: Any, view: View, selected: Any, rows: int) -> None:
        self.metric, self.view, self.selected, self.rows = metric, view, selected, rows

    def weights(self, counts: Floats) -> Floats:
        """Weights (r, view rows)."""
        counts = counts[:, self.selected]
        repeats = len(self.view.outputs) // max(1, counts.shape[1])
        if repeats > 1:  # the flat lens has several answers a row, each a row of its own
            counts = np.repeat(counts, repeats, axis=1)
        return counts if self.view.weight is None else counts * self.view.weight

    def across(self, values: Floats, sizes: Floats) -> Floats:
        """The metric first, then its questions."""
        first = [self.metric.across(row, size)["value"] for row, size in zip(values, sizes, strict=True)]
        parts = values if self.view.about.names else values[:, :0]
        return np.column_stack([first, parts])


class _Viewed(_Rows):
    """Any metric with a lens: what the lens sees is kept, only weights change."""

    def __call__(self, counts: Floats) -> Floats:
        return np.stack([self._one(weight) for weight in self.weights(counts)])

    def _one(self, weight: Floats) -> Floats:
        result = self.metric.conclude(self.metric.summarise_view(dataclasses.replace(self.view, weight=weight)))
        return np.array([result.value, *result.values])


class _Scores(_Rows):
    """Mean scores: one product with the matrix of scores."""

    def __init__(self, metric: MeanScore, view: View, selected: Any, rows: int) -> None:
        super().__init__(metric, view, selected, rows)
        self.scores = np.asarray(metric.score(view), np.float64)

    def __call__(self, counts: Floats) -> Floats:
        weights = self.weights(counts)
        sizes = weights.sum(axis=1, keepdims=True)
        infinite = (weights > 0) @ np.isinf(self.scores) > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            values = weights @ np.where(np.isinf(self.scores), 0.0, self.scores) / sizes
        return self.across(np.where(infinite, np.inf, values), np.broadcast_to(sizes, values.shape))


class _FixedBins(_Rows):
    """Binned errors at fixed edges: answers sorted by bin once, then summed by stretches."""

    def __init__(self, metric: Any, view: View, selected: Any, rows: int) -> None:
        super().__init__(metric, view, selected, rows)
        codes = metric.binning.assign(view)
        self.shape = view.questions, len(metric.binning.edges) - 1
        row, column = np.nonzero(codes >= 0)
        group = 0 if view.group is None else view.group[row]
        cell = (group * view.v + column) * self.shape[1] + codes[row, column]
        order = np.lexsort((view.outputs[row, column, 0], cell))  # by forecast, too: no row order can matter
        self.row, cell = row[order].astype(np.int32), cell[order]
        self.output = view.outputs[self.row, column[order], 0].astype(np.float64)
        self.truth = view.truth_rows[self.row, column[order], 0].astype(np.float64)
        self.cells, self.starts = np.unique(cell, return_index=True)

    def __call__(self, counts: Floats) -> Floats:
        replicates = len(counts)
        if not len(self.row):
            return np.full((replicates, 1 + len(self.view.about.names)), np.nan)
        weight = self.weights(counts)[:, self.row]
        questions = self.shape[0]
        size, outputs, targets = (
            self._table(np.add.reduceat(weight * factor, self.starts, axis=1))
            for factor in (1.0, self.output, self.truth)
        )
        table = _bins(self.view.about, size, outputs, targets)
        metric = self.metric
        distances = np.where(table.counts > 0, metric.distance(table), 0.0)
        values = metric.aggregate(distances, table).reshape(replicates, questions)
        return self.across(values, table.counts.sum(axis=1).reshape(replicates, questions))

    def _table(self, sums: Floats) -> Floats:
        wide = np.zeros((len(sums), self.shape[0] * self.shape[1]))
        wide[:, self.cells] = sums
        return wide.reshape(len(sums) * self.shape[0], self.shape[1])


class Cells:
    """Bins and their outcomes resampled as a whole: multinomial counts of (bin, outcome), mean forecasts kept.

    Approximate (forecasts do not vary within a bin, bins are not made anew) and very fast. The questions must
    be answered by different rows.
    """

    def __init__(self, metric: Metric, predictions: Predictions) -> None:
        if not isinstance(metric, BinnedError):
            raise CalibrationInputError("engine", "cells needs a BinnedError", got=type(metric).__name__)
        bins = metric(predictions).bins
        if bins is None or bins.shape[2] != 1 or (bins.shape[0] > 1 and "by " not in bins.about.question):
            raise CalibrationInputError(
                "engine",
                "cells needs events, and questions answered by different rows",
                got=str(metric.lens),
                hint="use the exact engine",
            )
        self.metric, self.bins = metric, bins
        self.n = round(float(bins.counts.sum()))
        hits = bins.targets.value[:, :, 0]
        self.shares = np.stack([bins.counts - hits, hits], axis=-1).ravel().clip(0) / max(1, self.n)

    def __call__(self, rng: np.random.Generator, count: int) -> Floats:
        """Values (count, 1 + parts)."""
        questions, bins, _ = self.bins.shape
        drawn = rng.multinomial(self.n, self.shares / self.shares.sum(), count).astype(np.float64)
        drawn = drawn.reshape(count * questions, bins, 2)
        size, hits = drawn.sum(axis=2), drawn[:, :, 1]
        forecast = np.tile(np.nan_to_num(self.bins.forecast[:, :, 0]), (count, 1))
        table = _bins(self.bins.about, size, size * forecast, hits)
        distances = np.where(size > 0, self.metric.distance(table), 0.0)
        values = self.metric.aggregate(distances, table).reshape(count, questions)
        sizes = size.sum(axis=1).reshape(count, questions)
        first = [self.metric.across(row, of)["value"] for row, of in zip(values, sizes, strict=True)]
        return np.column_stack([first, values if self.bins.about.names else values[:, :0]])


def _selected(metric: Any, predictions: Predictions) -> Any:
    return np.flatnonzero(metric.select(predictions))


def _bins(about: About, size: Floats, outputs: Floats, targets: Floats) -> Bins:
    """A table of replicates: each replicate's questions are questions of their own."""
    about = dataclasses.replace(about, names=())
    requested = np.full(len(size), size.shape[1])
    made = (Totals.of(size), Totals.of(outputs[:, :, None]), Totals.of(targets[:, :, None]))
    return Bins(about, *made, requested)
