"""Metrics of many replicates at once: the same numbers as one by one, without a loop over them where bins allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.aggregates import mean_of, mean_of_all, weighted_by_size
from calibrant.binning import Edges, EqualMass, EqualWidth, Quantiles
from calibrant.bins import Bins
from calibrant.errors.binned import BinnedError
from calibrant.errors.label_binned import LabelBinnedError
from calibrant.lenses import Full, TopLabel
from calibrant.metric import Metric
from calibrant.selections import Everything
from calibrant.simulate.samples import Ranked, Samples
from calibrant.sweep import Sweep
from calibrant.totals import Floats, Ints, Totals
from calibrant.views import About

Replicated = Callable[[Samples], Floats]
"""From replicates to (count, 2): the metric's value, and how many bins a sweep chose (nan for other metrics)."""

_MEANS = (mean_of, mean_of_all, weighted_by_size)
"""Rules that leave a single question's value as it is."""
_SETTLED = (EqualWidth, Edges, EqualMass, Quantiles)
"""Binnings whose number of bins is known beforehand."""


def asks_the_event(metric: Any) -> bool:
    """Whether a metric's one question is the event itself, of all samples.

    >>> import calibrant as cal
    >>> asks_the_event(cal.ECE), asks_the_event(cal.SCE), asks_the_event(cal.BRIER)
    (True, False, True)
    """
    plain = isinstance(getattr(metric, "select", None), Everything)
    return plain and isinstance(getattr(metric, "lens", None), (TopLabel, Full))


def values_of(metric: Metric, samples: Samples) -> Floats:
    """The metric of every replicate, and how many bins a sweep chose: (count, 2).

    Binned and label-binned errors of an event are computed for all replicates together, from totals that are exact, and
    equal those of each replicate alone but for the last rounding of a sum; every other metric is asked one by one.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, power_curve
    >>> from calibrant.simulate.samples import sampled
    >>> samples = sampled(UNIFORM, power_curve(2), 50, np.random.default_rng(0), 4)
    >>> one_by_one = [cal.ECE_SWEEP(predictions).value for predictions in samples]
    >>> np.allclose(values_of(cal.ECE_SWEEP, samples)[:, 0], one_by_one, rtol=0, atol=1e-15)
    True
    """
    if samples.events and asks_the_event(metric) and getattr(metric, "across", None) in _MEANS:
        if isinstance(metric, BinnedError) and isinstance(metric.binning, (*_SETTLED, Sweep)):
            return _binned(metric, samples.ranked)
        if isinstance(metric, LabelBinnedError):
            return _label_binned(metric, samples.ranked)
    return np.array([_one(metric, predictions) for predictions in samples])


def _one(metric: Metric, predictions: Any) -> tuple[float, float]:
    result = metric(predictions)
    return result.value, float(result.details.get("n_bins", np.nan))


def _binned(metric: BinnedError, ranked: Ranked) -> Floats:
    """Bins of all replicates in one table, each replicate a question of its own."""
    bins = _bins(ranked, *_cuts(metric.binning, ranked))
    distances = np.where(bins.counts > 0, metric.distance(bins), 0.0)
    return _with_bins(metric.binning, metric.aggregate(distances, bins), bins.requested)


def _label_binned(metric: LabelBinnedError, ranked: Ranked) -> Floats:
    """Each sample's forecast against the mean label of the bin that holds its rank."""
    cuts, requested = _cuts(metric.binning, ranked)
    sizes = np.diff(cuts, axis=1)
    rates = ranked.targets_at(cuts).differences().value / np.maximum(sizes, 1)
    near = np.repeat(rates.ravel(), sizes.ravel()).reshape(ranked.shape)
    errors = np.power(np.abs(ranked.values - near), metric.p)
    return _with_bins(metric.binning, np.power(errors.sum(axis=1) / ranked.shape[1], 1 / metric.p), requested)


def _with_bins(binning: Any, values: Floats, requested: Ints) -> Floats:
    chosen = requested.astype(np.float64) if isinstance(binning, Sweep) else np.full(len(values), np.nan)
    return np.column_stack([values, chosen])


def _bins(ranked: Ranked, cuts: Ints, requested: Ints) -> Bins:
    outputs, targets = (at(cuts).differences() for at in (ranked.outputs_at, ranked.targets_at))
    shape = (*outputs.shape, 1)
    size = Totals.whole(np.diff(cuts, axis=1))
    about = About(ranked.shape[1], "event", ())
    return Bins(about, size, outputs.reshape(*shape), targets.reshape(*shape), requested)


def _cuts(binning: Any, ranked: Ranked) -> tuple[Ints, Ints]:
    """The ranks at which each replicate is cut (count, b + 1), padded with empty bins; and its number of bins."""
    if isinstance(binning, Sweep):
        return _swept(binning.binning, ranked)
    cuts = _settled(binning, ranked)
    return cuts, np.full(len(cuts), cuts.shape[1] - 1)


def _settled(binning: Any, ranked: Ranked) -> Ints:
    """The cuts of a binning with a known number of bins."""
    count, n = ranked.shape
    if isinstance(binning, (EqualWidth, Edges)):
        return _cuts_at(np.asarray(binning.edges), binning.closed, ranked.values)
    if isinstance(binning, EqualMass):
        return _cuts_by_rank(binning.n_bins, ranked.values)
    wanted = np.rint(np.arange(1, binning.n_bins) * n / binning.n_bins).astype(np.int64)  # halves to even
    wanted = np.broadcast_to(np.minimum(wanted, n - 1), (count, len(wanted)))
    inner = wanted if ranked.ties is None else np.take_along_axis(ranked.ties[0], wanted, axis=1)
    return np.concatenate([np.zeros((count, 1), np.int64), inner, np.full((count, 1), n)], axis=1)


def _cuts_by_rank(n_bins: int, values: Floats) -> Ints:
    ranks = -(-np.arange(n_bins + 1) * values.shape[1] // n_bins)  # ceil(k n / b) in integers
    return np.broadcast_to(ranks, (len(values), n_bins + 1))


def _cuts_at(edges: Floats, closed: str, values: Floats) -> Ints:
    cuts = np.zeros((len(values), len(edges)), np.int64)
    cuts[:, -1] = values.shape[1]
    side: Any = "right" if closed == "right" else "left"
    for row, ordered in enumerate(values):  # one search of few edges in a sorted row: faster than any table
        cuts[row, 1:-1] = ordered.searchsorted(edges[1:-1], side)
    return cuts


def _swept(binning: EqualMass | EqualWidth, ranked: Ranked) -> tuple[Ints, Ints]:
    """Each replicate's own number of bins: as many as the monotonic sweep allows."""
    count, n = ranked.shape
    chosen = np.where((np.diff(ranked.rates, axis=1) >= 0).all(axis=1), n, 1)  # outcomes that rise already always do
    left = np.flatnonzero(chosen < n)
    for n_bins in range(2, n + 1):
        left = left[_rising(_of(binning, n_bins, ranked.values, left), ranked, left)]
        if not len(left):
            break
        chosen[left] = n_bins
    cuts = np.full((count, int(chosen.max()) + 1), n)
    for n_bins in np.unique(chosen):
        rows = np.flatnonzero(chosen == n_bins)
        cuts[rows, : n_bins + 1] = _of(binning, int(n_bins), ranked.values, rows)
    return cuts, chosen


def _of(binning: EqualMass | EqualWidth, n_bins: int, values: Floats, rows: Ints) -> Ints:
    """The cuts of some replicates into so many bins."""
    if isinstance(binning, EqualMass):
        return _cuts_by_rank(n_bins, values)[: len(rows)]  # all replicates are cut alike
    return _cuts_at(np.arange(n_bins + 1) / n_bins, binning.closed, values[rows])


def _rising(cuts: Ints, ranked: Ranked, rows: Ints) -> Any:
    """Which of some replicates have mean labels that never fall from one non-empty bin to the next."""
    sizes = np.diff(cuts, axis=1)
    targets = ranked.targets_at(cuts, rows).differences()
    shared = (targets.lo != 0) | (targets.hi & ((1 << 26) - 1) != 0)  # a cut fell among equal forecasts
    tolerance = np.where(shared.any(axis=1), 1e-12, 0.0)[:, None]
    rates = np.where(sizes > 0, targets.value / np.maximum(sizes, 1), -np.inf)
    before = np.maximum.accumulate(rates, axis=1)[:, :-1]
    return ((rates[:, 1:] >= before - tolerance) | (sizes[:, 1:] == 0)).all(axis=1)
