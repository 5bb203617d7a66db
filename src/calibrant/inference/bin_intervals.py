"""Spread: how far the frequency of each bin would move if other samples, or other outcomes, had been drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from calibrant.binning.contract import Binning, bins_of
from calibrant.door.arrays import Array
from calibrant.door.class_kinds import redrawn_labels
from calibrant.errors.asking import Asking
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bootstrap import Bootstrap
from calibrant.inference.draws import RowDraws, clusters, replicate
from calibrant.kernels.totals import Floats, Ints
from calibrant.metric import Metric
from calibrant.predictions import Predictions


def resampled_frequencies(metric: Metric, predictions: Predictions, bootstrap: Bootstrap) -> Floats:
    """The interval of each bin's frequency when rows are resampled and bins are kept: (bins, 2).

    The quantiles of the resampled frequencies. A bin whose outcomes are all alike shows no variation to resample; it
    has no interval (nan), as has an empty one.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1, 1], [.9, .85, .9, .1])
    >>> metric = cal.BinnedError(binning=cal.EqualWidth(2))
    >>> resampled_frequencies(metric, p, cal.Bootstrap(200, seed=0)).round(2).tolist()
    [[nan, nan], [0.0, 1.0]]
    """
    answers = _Answers.of(metric, predictions)
    draws = RowDraws(len(answers.rows), _within(clusters(predictions, bootstrap.groups), answers.rows))
    if not len(answers.rows):
        return np.full((answers.bins, 2), np.nan)

    def work(rng: np.random.Generator, some: int) -> Floats:
        return np.stack([answers.frequencies(answers.truth, counts) for counts in draws(rng, some)])

    drawn = replicate(work, bootstrap.n, bootstrap.seed, stage=0, what="bootstrap of the bins")
    ends = middle(drawn, bootstrap.level)
    ends[ends[:, 0] == ends[:, 1]] = np.nan
    return ends


def calibrated_frequencies(metric: Metric, predictions: Predictions, *, n: int, seed: int, level: float) -> Floats:
    """Where each bin's frequency would lie if the forecasts were calibrated: (bins, 2); labels are redrawn n times.

    References: Broecker & Smith (2007).

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1, 1], [1., 1., 1., 0.])
    >>> metric = cal.BinnedError(binning=cal.EqualWidth(2))
    >>> calibrated_frequencies(metric, p, n=20, seed=0, level=0.9).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    if predictions.soft is not None:
        raise CalibrationInputError("consistency", "redraws hard labels", got="soft labels")
    answers = _Answers.of(metric, predictions)
    if len(answers.outputs) != len(answers.rows):
        raise CalibrationInputError("consistency", "needs one answer a row", got=metric.name)
    once = np.ones(len(answers.rows), np.int64)

    def work(rng: np.random.Generator, some: int) -> Floats:
        redrawn = (redrawn_labels(answers.outputs, rng) for _ in range(some))
        return np.stack([answers.frequencies(truth, once) for truth in redrawn])

    return middle(replicate(work, n, seed, stage=1, what="consistency of the bins"), level)


def middle(drawn: Floats, level: float) -> Floats:
    """The ends of each column's middle share, of the draws that exist: (columns, 2); nan where none does.

    >>> middle(np.column_stack([np.arange(11.0), np.full(11, np.nan)]), 0.8).round(10).tolist()
    [[1.0, 9.0], [nan, nan]]
    """
    ends = np.full((drawn.shape[1], 2), np.nan)
    there = ~np.isnan(drawn).all(axis=0)
    if there.any():
        ends[there] = np.nanquantile(drawn[:, there], [(1 - level) / 2, (1 + level) / 2], axis=0).T
    return ends


@runtime_checkable
class HasBinning(Protocol):
    """A metric with bins of its own, whatever it makes of them."""

    @property
    def binning(self) -> Binning:
        """How samples are pooled."""


@dataclass(frozen=True, eq=False)
class _Answers:
    """Each answer's forecast, truth, weight and bin (-1: none); and the rows of the predictions that gave them."""

    outputs: Array
    truth: Floats
    weight: Floats
    code: Ints
    bins: int
    rows: Ints

    @classmethod
    def of(cls, metric: Metric, predictions: Predictions) -> _Answers:
        if not isinstance(metric, Asking) or not isinstance(metric, HasBinning):
            hint = "use one like ECE or ADAPTIVE_ECE"
            raise CalibrationInputError("metric", "must have a binning", got=type(metric).__name__, hint=hint)
        view = metric.view(predictions)
        every = np.arange(len(view.outputs))
        weight = np.ones(len(every)) if view.weight is None else view.weight
        truth = np.asarray(view.truth_of(0, every)[:, 0], np.float64)
        bins = bins_of(metric.binning, metric.binning.summarise(view)).shape[1]
        code = metric.binning.assign(view)[:, 0]
        return cls(view.outputs[:, 0, 0], truth, weight, code, bins, np.flatnonzero(metric.selected(predictions)))

    def frequencies(self, truth: Array, counts: Ints) -> Floats:
        """The mean truth of each bin when each row is counted so often; nan where it is empty."""
        if len(counts) != len(self.code):  # the flat lens has several answers a row
            counts = np.repeat(counts, len(self.code) // len(counts))
        kept = np.where(self.code >= 0, self.weight * counts, 0.0)
        code = np.maximum(self.code, 0)
        hits, sizes = (np.bincount(code, heavy, self.bins) for heavy in (kept * truth, kept))
        return np.where(sizes > 0, hits / np.where(sizes > 0, sizes, 1.0), np.nan)


def _within(cluster: Ints | None, rows: Ints) -> Ints | None:
    return None if cluster is None else np.unique(cluster[rows], return_inverse=True)[1].ravel()
