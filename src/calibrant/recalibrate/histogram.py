"""Histogram binning: the rate of an event in each of a few cells of its scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from calibrant.binning.contract import MOST_BINS, Binning, bins_of
from calibrant.checks import flag, whole
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses.events import TopLabel
from calibrant.predictions import Predictions
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import FLOOR, Lesson, ModelScores
from calibrant.recalibrate.fitting.one_vs_all import LEAST_SHARE, Event, counted, events, gathered, mapped
from calibrant.recalibrate.recalibrator import Recalibrator

CELLS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)
"""Numbers of cells among which the left-out log loss chooses."""


@dataclass(eq=False)
class HistogramBinning(Recalibrator):
    r"""Map the probability of an event to how often it came true in its cell; classes one against all (`one_vs_all`).

    Cells are those of `binning` on the fitting rows: `EqualMass(15)`, `EqualWidth(10)`, `Edges([...])` or another
    binning of an event. A cell ends with the largest probability that it holds, or at its edge, compared in the
    precision of the probabilities; tied ones share a cell. `n_bins` alone says `EqualWidth(n_bins)`.

    Without either, B cells hold about equal weight, as in the first reference. B is the one of 1, 2, 3, 5, 7, 10, 15,
    20, 30, 50 and 100 with the smallest left-out log loss, the first of them if several are, the same for all classes:
    each row is forecast from the cells of all others,

    .. math:: \Big(\sum_{j \in b} w_j y_j - u_i y_i\Big) \Big/ \Big(\sum_{j \in b} w_j - u_i\Big),
        \quad u_i = \min(w_i, 1)

    smoothed as below, and a cell that is left empty says its midpoint. So no seed is needed, and whole weights are
    repetitions.

    A cell's value is the weighted mean outcome, and its midpoint where it is empty. Where a cell has one outcome only,
    one more row that says its midpoint m is counted, (h + m) / (n + 1) of h among n, so that nothing that may happen is
    ruled out; `smooth=False` keeps 0 and 1. At the end probabilities are raised to 1e-12 (an event's are also lowered
    to 1 - 1e-12), so that the log loss is finite, and rows divided by their sums again.

    A class without rows is told in a warning. The map may fall where scores rise. Cost: that of sorting, once for each
    number of cells.

    Attributes: `n_bins_`, the number of cells that was asked for or chosen; `values_` and `edges_`, for an event an
    array with the value of each cell, and one with the ends of all but the last; for classes a tuple of such arrays.

    References: Zadrozny & Elkan (2001); Guo, Pleiss, Sun & Weinberger (2017), section 4.1.

    >>> fitted = HistogramBinning("probabilities", n_bins=4).fit([.1, .2, .25, .4, .9], [0, 0, 1, 0, 1])
    >>> fitted.values_.round(4).tolist(), fitted.predict_proba([.25, .7]).round(4).tolist()
    ([0.3333, 0.1875, 0.625, 0.9375], [0.3333, 0.625])
    >>> from calibrant.binning.ranked import EqualMass
    >>> halves = HistogramBinning("probabilities", binning=EqualMass(2)).fit([.1, .2, .25, .4, .9], [0, 0, 1, 0, 1])
    >>> halves.edges_.tolist(), halves.values_.round(4).tolist()
    ([0.25], [0.3333, 0.5])
    """

    input: str = "logits"
    n_bins: int | None = None
    classes: Sequence[Any] | None = None
    smooth: bool = True
    binning: Binning | None = None
    short: ClassVar[str] = "histogram"
    learns: ClassVar[tuple[str, ...]] = ("n_bins_", "values_", "edges_")
    later: ClassVar[tuple[str, ...]] = ("smooth", "binning", "edges_")

    def _check(self) -> None:
        super()._check()
        flag(self.smooth, "smooth")
        if self.n_bins is not None:
            whole(self.n_bins, "n_bins", 1, MOST_BINS)
        if self.n_bins is not None and self.binning is not None:
            raise CalibrationInputError("n_bins", "must be left out with a binning", got=f"{self.n_bins} and a binning")

    def _learn(self, lesson: Lesson) -> Ending:
        parts, chosen = list(events(lesson, _exact(lesson.scores))), not self.n_bins and self.binning is None
        if chosen:
            cut = {n_bins: partial(mass_edges, n_bins=n_bins) for n_bins in CELLS}
            self.n_bins_ = min(CELLS, key=lambda n_bins: left_out_loss(lesson, cut[n_bins], self.smooth))
            edges = [mass_edges(event, self.n_bins_) for event in parts]
        else:
            edges = [edges_of(self.binning, event) if self.binning else even_edges(self.n_bins or 1) for event in parts]
            self.n_bins_ = max(map(len, edges)) + 1
        values = [fit_histogram(event, ends, self.smooth) for event, ends in zip(parts, edges, strict=True)]
        self.values_, self.edges_ = gathered(values), gathered(edges)
        return counted(lesson, self.smooth, iterations=len(CELLS) if chosen else 0)

    def require_possible(self) -> None:
        whole(self.n_bins_, "n_bins_", 1, MOST_BINS)
        width = 0 if self.is_event else len(self.classes_)
        values = possible.of_each(self.values_, "values_", width)
        edges = self._edges(len(values)) if self.edges_ is None else self.edges_
        for each, ends in zip(values, possible.of_each(edges, "edges_", width), strict=True):
            possible.numbers(each, "values_", len(ends) + 1, low=0.0, high=1.0)
            possible.rising(possible.numbers(ends, "edges_", len(ends), low=0.0, high=1.0), "edges_")

    def _edges(self, count: int) -> Any:
        """The ends of so many classes' cells of equal width, which version 0.1 did not write."""
        return gathered([even_edges(self.n_bins_)] * count)

    def _map(self, scores: ModelScores) -> Floats:
        edges = self._edges(1 if scores.event else len(self.values_)) if self.edges_ is None else self.edges_
        return floored(mapped(scores, _exact(scores), histogram_curve, self.values_, edges))


def histogram_curve(scores: Array, values: Floats, edges: Floats) -> Floats:
    """The value of each score's cell.

    >>> histogram_curve(np.array([0., .5, .51, 1.]), np.array([.2, .7]), np.array([.5])).tolist()
    [0.2, 0.2, 0.7, 0.7]
    """
    return values[cells(scores, edges)]


def cells(scores: Array, edges: Floats) -> Ints:
    """The cell of each score: edge k is the last of cell k.

    >>> tenths = even_edges(10)
    >>> cells(np.array([0., .3, .31, 1.]), tenths).tolist(), cells(np.array([.3], np.float32), tenths).tolist()
    ([0, 2, 3, 9], [2])
    """
    return np.searchsorted(edges.astype(scores.dtype), scores)


def even_edges(n_bins: int) -> Floats:
    """The ends k/B of cells of equal width, but for the last.

    >>> even_edges(4).tolist()
    [0.25, 0.5, 0.75]
    """
    return np.arange(1, n_bins) / n_bins


def mass_edges(event: Event, n_bins: int) -> Floats:
    """The ends of cells of about equal weight, but for the last: where it reaches each k/B of the whole.

    >>> mass_edges(Event(np.array([.1, .2, .3, .9]), np.zeros(4), np.array([1., 1., 1., 3.])), 2).tolist()
    [0.3]
    """
    scores, weight, _ = event.distinct()
    reached = np.cumsum(weight)
    wanted = reached[-1] * np.arange(1, n_bins) / n_bins * (1 - 1e-12)  # sums are rounded
    ends = np.unique(scores[np.searchsorted(reached, wanted)])
    return ends[ends < scores[-1]].astype(np.float64)


def edges_of(binning: Binning, event: Event) -> Floats:
    """The ends of a binning's cells on the rows of an event, but for the last.

    >>> from calibrant.binning.ranked import EqualMass
    >>> edges_of(EqualMass(2), Event(np.array([.1, .2, .4, .9]), np.array([0., 1., 0., 1.]), np.ones(4))).tolist()
    [0.2]
    """
    weight = None if (event.weight == 1).all() else event.weight
    rows = Predictions.from_probs(event.outcomes.astype(np.int64), event.scores, sample_weight=weight)
    high = bins_of(binning, binning.summarise(TopLabel()(rows))).high
    if high is None:
        raise CalibrationInputError("binning", "must be one of an event", got=repr(binning), hint="EqualMass(15)")
    return np.unique(high[0][np.isfinite(high[0])])[:-1].astype(np.float64)


def fit_histogram(event: Event, edges: Floats, smooth: bool = True) -> Floats:
    """The mean outcome of each cell, smoothed where it is 0 or 1, or its midpoint.

    >>> fit_histogram(Event(np.array([.1, .2]), np.array([0., 1.]), np.array([1., 3.])), even_edges(2)).tolist()
    [0.75, 0.75]
    """
    hits, size = _totals(event, cells(event.scores, edges), len(edges) + 1)
    return _rates(hits, size, _midpoints(edges), smooth)


def left_out_loss(lesson: Lesson, edges: Callable[[Event], Floats], smooth: bool = True) -> float:
    """The mean log loss of rows that are each forecast from the cells of all others; `edges` are those of an event.

    >>> from calibrant.recalibrate.fitting.lessons import as_lesson
    >>> pair = as_lesson([.1, .2], [0, 1], input="probabilities")
    >>> round(left_out_loss(pair, lambda event: even_edges(1)), 3)  # each from the other
    1.386
    """
    kept = lesson[lesson.weight > LEAST_SHARE * lesson.weight.sum()]
    rates = [_left_out(event, edges(event), smooth) for event in events(kept, _exact(kept.scores))]
    if kept.scores.event:
        taken = np.where(kept.labels == 1, rates[0], 1.0 - rates[0])
    else:
        total, rows = np.sum(rates, axis=0), np.arange(len(kept.labels))
        own = np.stack(rates)[kept.labels, rows]
        taken = np.where(total > 0, own, kept.scores.probabilities[rows, kept.labels]) / np.where(total > 0, total, 1.0)
    return kept.mean(-np.log(np.maximum(taken, FLOOR)))


def floored(probabilities: Floats) -> Floats:
    """Probabilities raised to 1e-12, and rows divided by their sums.

    >>> floored(np.array([0., .25, 1.])).tolist()
    [1e-12, 0.25, 0.999999999999]
    """
    if probabilities.ndim == 1:
        return np.clip(probabilities, FLOOR, 1.0 - FLOOR)
    raised = np.maximum(probabilities, FLOOR)
    return raised / raised.sum(axis=1, keepdims=True)


def _left_out(event: Event, edges: Floats, smooth: bool) -> Floats:
    """What the cells say of each row when it was left out, or one of the rows that it stands for."""
    where = cells(event.scores, edges)
    hits, size = _totals(event, where, len(edges) + 1)
    left = np.minimum(event.weight, 1.0)
    return _rates(hits[where] - left * event.outcomes, size[where] - left, _midpoints(edges)[where], smooth)


def _totals(event: Event, where: Ints, n_bins: int) -> tuple[Floats, Floats]:
    """The weight in each cell that came true, and all of it."""
    hits, size = (np.bincount(where, part, n_bins) for part in (event.weight * event.outcomes, event.weight))
    return hits.astype(np.float64), size.astype(np.float64)


def _rates(hits: Floats, size: Floats, middle: Floats, smooth: bool) -> Floats:
    """Hits among the size, or the middle of an empty cell; with `smooth`, one row more says it in one-sided ones."""
    rates = np.where(size > 0, np.clip(hits / np.where(size > 0, size, 1.0), 0.0, 1.0), middle)
    one_sided = (np.abs(rates - 0.5) > 0.5 - FLOOR) & smooth  # fractional weights round
    return np.where(one_sided, (rates * size + middle) / (size + 1), rates)


def _midpoints(edges: Floats) -> Floats:
    return (np.concatenate([[0.0], edges]) + np.concatenate([edges, [1.0]])) / 2


def _exact(scores: ModelScores) -> Array:
    """Probabilities in the precision in which they were given, in which edges are compared."""
    return scores.values if scores.input == "probabilities" else scores.probabilities
