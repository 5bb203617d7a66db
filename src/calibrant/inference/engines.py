"""Engines: a metric's value, and its parts, under many weightings of the same rows at once."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import numpy as np

from calibrant.binning.contract import bins_of
from calibrant.binning.ladder import Forecasts
from calibrant.bins import Bins
from calibrant.door.arrays import Array
from calibrant.errors.asking import Asking
from calibrant.errors.mean_score import OfScores
from calibrant.errors.of_bins import OfBins
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.specification.facts import facts_of
from calibrant.summaries import Summary
from calibrant.views import View

_LOW_WORD = 0 if sys.byteorder == "little" else 1
Engine = Callable[[Iterable[Ints]], Floats]
"""From r vectors of counts, one a row, to values (r, 1 + parts): the metric first, then its questions."""

MOST_ANSWERS = 1 << 26
"""Answers that the fast exact engine keeps sorted in memory."""


def exact(metric: Metric, predictions: Predictions) -> Engine:
    """Rows reweighted: whole weights are repetition, so every replicate is what resampled rows would give."""
    if not isinstance(metric, Asking):
        return _Reweighted(metric, predictions)
    rows = np.flatnonzero(metric.selected(predictions))
    view = metric.view(predictions)
    hard = view.targets.ndim == 1 and view.outputs.size <= MOST_ANSWERS
    in_bins = isinstance(metric, OfBins) and facts_of(metric.binning).fixed and metric.sums_suffice
    if isinstance(metric, OfBins) and in_bins and hard and view.d == 1:
        return _FixedBins(metric, view, rows, len(predictions))
    if isinstance(metric, OfScores) and view.group is None and view.keep is None:
        return _Scores(metric, view, rows, len(predictions))
    table = metric.summarise_view(view) if hard and not view.about.fractional else None
    if isinstance(table, Forecasts):
        return _Tables(metric, view, rows, len(predictions), table)
    return _Viewed(metric, view, rows, len(predictions))


class _Reweighted:
    """Any metric, through the door's own weights."""

    def __init__(self, metric: Metric, predictions: Predictions) -> None:
        self.metric, self.predictions = metric, predictions

    def __call__(self, draws: Iterable[Ints]) -> Floats:
        return np.stack([self._one(counts) for counts in draws])

    def _one(self, counts: Ints) -> Floats:
        weight = counts.astype(np.float64)
        if self.predictions.weight is not None:
            weight *= self.predictions.weight
        result = self.metric(dataclasses.replace(self.predictions, weight=weight))
        return np.array([result.value, *result.values])


M = TypeVar("M", bound=Asking[Summary])


class _Rows(Generic[M]):
    """What engines on one view share: counts of all rows become weights of the view's rows."""

    def __init__(self, metric: M, view: View, rows: Ints, n: int) -> None:
        self.metric, self.view, self.rows = metric, view, rows
        self.all = len(rows) == n
        self.repeats = len(view.outputs) // max(1, len(rows))  # the flat lens has several answers a row

    def weights(self, counts: Ints) -> Array:
        """The weight of each of the view's rows."""
        counts = counts if self.all else counts[self.rows]
        counts = counts if self.repeats <= 1 else np.repeat(counts, self.repeats)
        return counts if self.view.weight is None else counts * self.view.weight

    def values(self, values: Floats, sizes: Floats) -> Floats:
        """The metric first, then its questions."""
        return combined(self.metric, values, sizes, bool(self.view.about.names))


class _Viewed(_Rows[Asking[Summary]]):
    """Any metric with a lens: what the lens sees is kept, only weights change."""

    def __call__(self, draws: Iterable[Ints]) -> Floats:
        return np.stack([self._one(self.weights(counts)) for counts in draws])

    def _one(self, weight: Array) -> Floats:
        view = dataclasses.replace(self.view, weight=weight.astype(np.float64))
        result = self.metric.conclude(self.metric.summarise_view(view))
        return np.array([result.value, *result.values])


class _Tables(_Rows[Asking[Summary]]):
    """Metrics that follow from the table of distinct forecasts: sorted once, then only counted anew."""

    def __init__(self, metric: Asking[Summary], view: View, rows: Ints, n: int, table: Forecasts) -> None:
        super().__init__(metric, view, rows, n)
        self.table = table
        answering = [view.rows_of(question) for question in range(view.questions)]
        question = np.repeat(np.arange(view.questions), [len(these) for these in answering])
        row = np.concatenate(answering)
        happened = view.targets[row] == question % view.v
        places = zip(table.starts[:-1], table.starts[1:], answering, np.arange(view.questions) % view.v, strict=True)
        entry = [start + table.values[start:stop].searchsorted(view.outputs[of, v, 0]) for start, stop, of, v in places]
        self.place = 2 * np.concatenate(entry) + happened
        self.row = row

    def __call__(self, draws: Iterable[Ints]) -> Floats:
        return np.stack([self._one(self.weights(counts).take(self.row)) for counts in draws])

    def _one(self, weight: Array) -> Floats:
        size = 2 * len(self.table.values)
        both = np.bincount(self.place, weight, size)[:size].astype(np.int64)  # a row without weight may have no entry
        result = self.metric.conclude(self.table.recounted(both[::2] + both[1::2], both[1::2]))
        return np.array([result.value, *result.values])


class _Scores(_Rows[OfScores[Summary]]):
    """Mean scores: one product with the matrix of scores."""

    def __init__(self, metric: OfScores[Summary], view: View, rows: Ints, n: int) -> None:
        super().__init__(metric, view, rows, n)
        self.scores = metric.scores(view)

    def __call__(self, draws: Iterable[Ints]) -> Floats:
        weights = np.stack([self.weights(counts) for counts in draws]).astype(np.float64)
        sizes = weights.sum(axis=1, keepdims=True)
        infinite = (weights > 0) @ np.isinf(self.scores) > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            values = weights @ np.where(np.isinf(self.scores), 0.0, self.scores) / sizes
        return self.values(np.where(infinite, np.inf, values), np.broadcast_to(sizes, values.shape))


class _FixedBins(_Rows[OfBins]):
    """Binned errors at fixed edges: answers sorted by bin and outcome once, then summed by stretches."""

    def __init__(self, metric: OfBins, view: View, rows: Ints, n: int) -> None:
        super().__init__(metric, view, rows, n)
        codes = metric.binning.assign(view)
        self.known = bins_of(metric.binning, metric.summarise_view(view))
        self.shape = view.questions, self.known.shape[1]
        row, column = np.nonzero(codes >= 0)
        group = 0 if view.group is None else view.group[row]
        cell = (group * view.v + column) * self.shape[1] + codes[row, column]
        happened = view.targets[row] == column
        output = view.outputs[row, column, 0].astype(np.float64)
        order = np.lexsort((output, happened, cell))  # by forecast, too: no row order can matter
        self.row, self.output = row[order], output[order]
        self.halves, self.turns = np.unique(2 * cell[order] + happened[order], return_index=True)

    def __call__(self, draws: Iterable[Ints]) -> Floats:
        halves, outputs = [], []
        for counts in draws:
            weight = self.weights(counts).take(self.row)
            halves.append(np.add.reduceat(weight, self.turns) if len(self.row) else np.zeros(0))
            outputs.append(np.add.reduceat(weight * self.output, self.turns) if len(self.row) else np.zeros(0))
        return self.conclude(np.stack(halves), np.stack(outputs))

    def conclude(self, halves: Floats, outputs: Floats) -> Floats:
        """Values of replicates from their sums by bin and outcome."""
        both, summed = self._wide(halves), self._wide(outputs)
        table = _bins(self.known, both.sum(axis=-1), summed.sum(axis=-1), both[..., 1])
        shape = len(halves), self.shape[0]
        values = self.metric.pooled(table).reshape(shape)
        return self.values(values, table.counts.sum(axis=1).reshape(shape))

    def _wide(self, sums: Floats) -> Floats:
        """Sums of the occupied cells in a table of all: (replicates x questions, bins, outcomes)."""
        wide = np.zeros((len(sums), self.shape[0] * self.shape[1] * 2))
        wide[:, self.halves] = sums
        return wide.reshape(-1, self.shape[1], 2)


class RowsInCells:
    """Rows resampled by way of their cells: how many fall in each (bin, outcome), then which forecasts those have.

    The same law as drawing rows, for binned errors at fixed edges whose questions are answered by different rows: given
    the multinomial counts of the cells, the rows within a cell are drawn uniformly.
    """

    def __init__(self, metric: OfBins, view: View) -> None:
        self.bins = _FixedBins(metric, view, np.arange(len(view.outputs)), len(view.outputs))
        self.n = len(view.outputs)
        self.sizes = np.diff(self.bins.turns, append=self.n)
        self.largest = np.uint32(self.sizes.max())

    @classmethod
    def of(cls, metric: Metric, predictions: Predictions) -> RowsInCells | None:
        """The engine, where every row answers exactly one question, plainly; else None."""
        if not isinstance(metric, OfBins) or not facts_of(metric.binning).fixed or not metric.sums_suffice:
            return None
        view = metric.view(predictions)
        plain = view.keep is None and view.weight is None and view.targets.ndim == 1
        alone = view.v == view.d == 1 and 0 < len(view.outputs) == view.about.n == len(predictions) < 1 << 31
        return cls(metric, view) if plain and alone else None

    def __call__(self, rng: np.random.Generator, count: int) -> Floats:
        """Values (count, 1 + parts)."""
        counts = rng.multinomial(self.n, self.sizes / self.n, count)
        source = np.random.SFC64(rng.integers(0, 1 << 63, 4))  # the fastest source of bits
        outputs = np.zeros(counts.shape)
        for row, drawn in enumerate(counts):
            there = drawn > 0
            firsts = np.concatenate([[0], np.cumsum(drawn[there])[:-1]])
            outputs[row, there] = np.add.reduceat(self.bins.output.take(self._places(source, drawn)), firsts)
        return self.bins.conclude(counts.astype(np.float64), outputs)

    def _places(self, source: np.random.SFC64, drawn: Ints) -> Ints:
        """A uniform place within its cell for each draw: 32 random bits times the size, the overhang redrawn."""
        places = np.repeat(self.sizes.astype(np.uint64), drawn)
        places *= source.random_raw((self.n + 1) // 2).view(np.uint32)[: self.n]
        low = places.view(np.uint32)[_LOW_WORD::2]
        overhang = np.flatnonzero(low < self.largest) if low.min() < self.largest else None  # only these can be uneven
        places >>= np.uint64(32)
        if overhang is not None:
            places[overhang] = np.random.Generator(source).integers(0, np.repeat(self.sizes, drawn)[overhang])
        rows = places.view(np.int64)
        rows += np.repeat(self.bins.turns, drawn)
        return rows


class Cells:
    """Bins and their outcomes resampled as a whole: multinomial counts of (bin, outcome), mean forecasts kept.

    Approximate (forecasts do not vary within a bin, bins are not made anew) and very fast. The questions must
    be answered by different rows.
    """

    def __init__(self, metric: Metric, predictions: Predictions) -> None:
        if not isinstance(metric, OfBins):
            raise CalibrationInputError("engine", "cells needs a BinnedError", got=type(metric).__name__)
        if predictions.weight is not None or predictions.soft is not None:
            raise CalibrationInputError(
                "engine", "cells needs plain counts", got="weights or soft labels", hint="use the exact engine"
            )
        view = metric.view(predictions)
        if view.d != 1 or view.v != 1 or len(view.outputs) != view.about.n:
            raise CalibrationInputError(
                "engine",
                "cells needs events, and questions answered by different rows",
                got=str(metric.lens),
                hint="use the exact engine",
            )
        bins = bins_of(metric.binning, metric.summarise_view(view))
        self.metric, self.bins = metric, bins
        self.n = round(float(bins.counts.sum()))
        hits = bins.targets.value[:, :, 0]
        self.shares = np.stack([bins.counts - hits, hits], axis=-1).ravel().clip(0) / max(1, self.n)

    def __call__(self, rng: np.random.Generator, count: int) -> Floats:
        """Values (count, 1 + parts)."""
        questions, bins, _ = self.bins.shape
        if not self.n:
            return np.full((count, 1 + len(self.bins.about.names)), np.nan)
        drawn = rng.multinomial(self.n, self.shares / self.shares.sum(), count).astype(np.float64)
        drawn = drawn.reshape(count * questions, bins, 2)
        size, hits = drawn.sum(axis=2), drawn[:, :, 1]
        forecast = np.tile(np.nan_to_num(self.bins.forecast[:, :, 0]), (count, 1))
        table = _bins(self.bins, size, size * forecast, hits)
        values = self.metric.pooled(table).reshape(count, questions)
        sizes = size.sum(axis=1).reshape(count, questions)
        return combined(self.metric, values, sizes, bool(self.bins.about.names))


def combined(metric: Asking[Summary], values: Floats, sizes: Floats, several: bool) -> Floats:
    """The metric first, then its questions: (r, questions) to (r, 1 + parts)."""
    if not several and facts_of(metric.across).keeps_one:
        return values
    first = [metric.across(row, size)["value"] for row, size in zip(values, sizes, strict=True)]
    return np.column_stack([first, values if several else values[:, :0]])


def _bins(known: Bins, size: Floats, outputs: Floats, targets: Floats) -> Bins:
    """A table of replicates: each replicate's questions are questions of their own, with the ends of the known bins."""
    about = dataclasses.replace(known.about, names=())
    requested = np.full(len(size), size.shape[1])
    totals = (Totals.of(size), Totals.of(outputs[:, :, None]), Totals.of(targets[:, :, None]))
    times = len(size) // max(1, known.shape[0])
    low, high = (None if ends is None else np.tile(ends, (times, 1)) for ends in (known.low, known.high))
    return Bins(about, *totals, requested, low, high)
