"""Histogram binning: the rate of an event in each of a few cells of equal width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.binning.contract import MOST_BINS
from calibrant.checks import flag, whole
from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats, Ints
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

    The B cells are (k/B, (k+1)/B] with 0 in the first, edges compared in the precision of the probabilities. A cell's
    value is the weighted mean outcome, and its midpoint where it is empty. Where a cell has one outcome only, one more
    row that says its midpoint m is counted, (h + m) / (n + 1) of h among n, so that nothing that may happen is ruled
    out; `smooth=False` keeps 0 and 1. At the end probabilities are raised to 1e-12 (an event's are also lowered to
    1 - 1e-12), so that the log loss is finite, and rows divided by their sums again.

    `n_bins` is B, the same for all classes. With None it is the one of 1, 2, 3, 5, 7, 10, 15, 20, 30, 50 and 100 with
    the smallest left-out log loss, the first of them if several are: each row is forecast from the cells of all others,

    .. math:: \Big(\sum_{j \in b} w_j y_j - u_i y_i\Big) \Big/ \Big(\sum_{j \in b} w_j - u_i\Big),
        \quad u_i = \min(w_i, 1)

    smoothed as above, and a cell that is left empty says its midpoint. So no seed is needed, and whole weights are
    repetitions. A class without rows is told in a warning. The map may fall where scores rise. Cost: linear in the
    rows, once for each number of cells.

    Attributes: `n_bins_`, and `values_`, an array (B,) for an event, a tuple of them for classes.

    References: Zadrozny & Elkan (2001); Guo, Pleiss, Sun & Weinberger (2017), section 4.1.

    >>> fitted = HistogramBinning("probabilities", n_bins=4).fit([.1, .2, .25, .4, .9], [0, 0, 1, 0, 1])
    >>> fitted.values_.round(4).tolist(), fitted.predict_proba([.25, .7]).round(4).tolist()
    ([0.3333, 0.1875, 0.625, 0.9375], [0.3333, 0.625])
    """

    input: str = "logits"
    n_bins: int | None = None
    classes: Sequence[Any] | None = None
    smooth: bool = True
    short: ClassVar[str] = "histogram"
    learns: ClassVar[tuple[str, ...]] = ("n_bins_", "values_")
    later: ClassVar[tuple[str, ...]] = ("smooth",)

    def _check(self) -> None:
        super()._check()
        flag(self.smooth, "smooth")
        if self.n_bins is not None:
            whole(self.n_bins, "n_bins", 1, MOST_BINS)

    def _learn(self, lesson: Lesson) -> Ending:
        self.n_bins_ = int(self.n_bins or min(CELLS, key=lambda n_bins: left_out_loss(lesson, n_bins, self.smooth)))
        self.values_ = gathered(
            [fit_histogram(event, self.n_bins_, self.smooth) for event in events(lesson, _exact(lesson.scores))]
        )
        return counted(lesson, self.smooth, iterations=0 if self.n_bins else len(CELLS))

    def require_possible(self) -> None:
        whole(self.n_bins_, "n_bins_", 1, MOST_BINS)
        for values in possible.of_each(self.values_, "values_", 0 if self.is_event else len(self.classes_)):
            possible.numbers(values, "values_", self.n_bins_, low=0.0, high=1.0)

    def _map(self, scores: ModelScores) -> Floats:
        return floored(mapped(scores, _exact(scores), histogram_curve, self.values_))


def histogram_curve(scores: Array, values: Floats) -> Floats:
    """The value of each score's cell.

    >>> histogram_curve(np.array([0., .5, .51, 1.]), np.array([.2, .7])).tolist()
    [0.2, 0.2, 0.7, 0.7]
    """
    return values[cells(scores, len(values))]


def cells(scores: Array, n_bins: int) -> Ints:
    """The cell (k/B, (k+1)/B] of each score.

    >>> cells(np.array([0., .3, .31, 1.]), 10).tolist(), cells(np.array([.3], np.float32), 10).tolist()
    ([0, 2, 3, 9], [2])
    """
    return np.searchsorted((np.arange(1, n_bins) / n_bins).astype(scores.dtype), scores)


def fit_histogram(event: Event, n_bins: int, smooth: bool = True) -> Floats:
    """The mean outcome of each cell, smoothed where it is 0 or 1, or its midpoint.

    >>> fit_histogram(Event(np.array([.1, .2]), np.array([0., 1.]), np.array([1., 3.])), 2).tolist()
    [0.75, 0.75]
    """
    hits, size = _totals(event, cells(event.scores, n_bins), n_bins)
    return _rates(hits, size, _midpoints(n_bins), smooth)


def left_out_loss(lesson: Lesson, n_bins: int, smooth: bool = True) -> float:
    """The mean log loss of rows that are each forecast from the cells of all others.

    >>> from calibrant.recalibrate.fitting.lessons import as_lesson
    >>> pair = as_lesson([.1, .2], [0, 1], input="probabilities")
    >>> round(left_out_loss(pair, 1), 3), round(left_out_loss(pair, 100), 3)  # each from the other; midpoints
    (1.386, 0.867)
    """
    kept = lesson[lesson.weight > LEAST_SHARE * lesson.weight.sum()]
    rates = [_left_out(event, n_bins, smooth) for event in events(kept, _exact(kept.scores))]
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


def _left_out(event: Event, n_bins: int, smooth: bool) -> Floats:
    """What the cells say of each row when it was left out, or one of the rows that it stands for."""
    where = cells(event.scores, n_bins)
    hits, size = _totals(event, where, n_bins)
    left = np.minimum(event.weight, 1.0)
    return _rates(hits[where] - left * event.outcomes, size[where] - left, _midpoints(n_bins)[where], smooth)


def _totals(event: Event, where: Ints, n_bins: int) -> tuple[Floats, Floats]:
    """The weight in each cell that came true, and all of it."""
    hits, size = (np.bincount(where, part, n_bins) for part in (event.weight * event.outcomes, event.weight))
    return hits.astype(np.float64), size.astype(np.float64)


def _rates(hits: Floats, size: Floats, middle: Floats, smooth: bool) -> Floats:
    """Hits among the size, or the middle of an empty cell; with `smooth`, one row more says it in one-sided ones."""
    rates = np.where(size > 0, np.clip(hits / np.where(size > 0, size, 1.0), 0.0, 1.0), middle)
    one_sided = (np.abs(rates - 0.5) > 0.5 - FLOOR) & smooth  # fractional weights round
    return np.where(one_sided, (rates * size + middle) / (size + 1), rates)


def _midpoints(n_bins: int) -> Floats:
    return (np.arange(n_bins) + 0.5) / n_bins


def _exact(scores: ModelScores) -> Array:
    """Probabilities in the precision in which they were given, in which edges are compared."""
    return scores.values if scores.input == "probabilities" else scores.probabilities
