"""Metrics of many replicates at once: the same numbers as one by one, without a loop over them where bins allow."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.binning.contract import Choosing
from calibrant.binning.running import Ladder
from calibrant.bins import Bins
from calibrant.errors.asking import Asking
from calibrant.errors.label_binned import OfRates
from calibrant.errors.of_bins import OfBins
from calibrant.kernels.totals import Floats, Ints
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.simulate.sampling import Samples
from calibrant.specification.facts import facts_of
from calibrant.summaries import About


def values_of(metric: Metric, samples: Samples) -> Floats:
    """The metric of every replicate, and how many bins a sweep chose (nan for other metrics): (count, 2).

    Binned and label-binned errors of an event are computed for all replicates together, from totals that are exact, and
    equal those of each replicate alone but for the last rounding of a sum; every other metric is asked one by one.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, power_curve
    >>> from calibrant.simulate.sampling import sampled
    >>> samples = sampled(UNIFORM, power_curve(2), 50, np.random.default_rng(0), 4)
    >>> one_by_one = [cal.ECE_SWEEP(predictions).value for predictions in samples]
    >>> np.allclose(values_of(cal.ECE_SWEEP, samples)[:, 0], one_by_one, rtol=0, atol=1e-15)
    True
    """
    asked = isinstance(metric, Asking) and metric.asks_event and facts_of(metric.across).keeps_one
    if not (samples.events and asked and isinstance(metric, OfBins | OfRates) and _cuts_together(metric)):
        return np.array([_alone(metric, predictions) for predictions in samples])
    cuts, requested = _cuts(metric.binning, samples.ladder)
    if isinstance(metric, OfBins):
        values = metric.pooled(_bins(samples.ladder, cuts, requested))
    else:
        values = metric.of_cuts(samples.ladder, cuts)
    chosen = np.where(facts_of(metric.binning).chooses, requested.astype(np.float64), np.nan)
    return np.column_stack([values, chosen])


def _cuts_together(metric: OfBins | OfRates) -> bool:
    """Whether the binning cuts many replicates at once, and nothing but sums of bins is asked for."""
    return (not isinstance(metric, OfBins) or metric.sums_suffice) and facts_of(metric.binning).cuts is not None


def _cuts(binning: Any, ladder: Ladder) -> tuple[Ints, Ints]:
    """The ranks at which replicates are cut, padded with empty bins, and how many bins each asks for."""
    count = ladder.targets.shape[0]
    if not isinstance(binning, Choosing):
        cuts: Ints = binning.cuts(ladder)
        return cuts, np.full(count, cuts.shape[-1] - 1)
    chosen = binning.choose(ladder)
    cuts = np.full((count, int(chosen.max()) + 1), ladder.n)
    for n_bins in np.unique(chosen).tolist():
        rows = np.flatnonzero(chosen == n_bins)
        cuts[rows, : n_bins + 1] = binning.into(n_bins).cuts(ladder.some(rows))
    return cuts, chosen


def _alone(metric: Metric, predictions: Predictions) -> tuple[float, float]:
    result = metric(predictions)
    return result.value, float(result.details.get("n_bins", np.nan))


def _bins(ladder: Ladder, cuts: Ints, requested: Ints) -> Bins:
    """Bins of all replicates in one table, each replicate a question of its own."""
    size, outputs, targets = ladder.cut(cuts)
    shape = (*outputs.shape, 1)
    return Bins(About(ladder.n, "event"), size, outputs.reshape(*shape), targets.reshape(*shape), requested)
