"""Metrics of many replicates at once: the same numbers as one by one, without a loop over them where bins allow."""

from __future__ import annotations

import numpy as np

from calibrant.binning.contract import CutsEach
from calibrant.bins import Bins
from calibrant.errors.asking import Asking, OfBins, OfRates
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.simulate.sampling import Samples, SortedReplicates
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
    enough = not isinstance(metric, OfBins) or metric.sums_suffice
    together = samples.events and asked and enough
    if together and isinstance(metric, OfBins | OfRates) and isinstance(metric.binning, CutsEach):
        cuts, requested = metric.binning.cuts_of_each(samples.ranked)
        make = _binned if isinstance(metric, OfBins) else _of_rates
        chosen = np.where(facts_of(metric.binning).chooses, requested.astype(np.float64), np.nan)
        return np.column_stack([make(metric, samples.ranked, cuts, requested), chosen])  # type: ignore[arg-type]
    return np.array([_alone(metric, predictions) for predictions in samples])


def _alone(metric: Metric, predictions: Predictions) -> tuple[float, float]:
    result = metric(predictions)
    return result.value, float(result.details.get("n_bins", np.nan))


def _binned(metric: OfBins, ranked: SortedReplicates, cuts: Ints, requested: Ints) -> Floats:
    """Bins of all replicates in one table, each replicate a question of its own."""
    outputs, targets = (at(cuts).differences() for at in (ranked.outputs_at, ranked.targets_at))
    shape = (*outputs.shape, 1)
    size = Totals.whole(np.diff(cuts, axis=1))
    return metric.pooled(
        Bins(About(ranked.n, "event"), size, outputs.reshape(*shape), targets.reshape(*shape), requested)
    )


def _of_rates(metric: OfRates, ranked: SortedReplicates, cuts: Ints, requested: Ints) -> Floats:
    """Each sample's forecast against the mean label of the bin that holds its rank."""
    sizes = np.diff(cuts, axis=1)
    rates = ranked.targets_at(cuts).differences().value / np.maximum(sizes, 1)
    near = np.repeat(rates.ravel(), sizes.ravel()).reshape(ranked.shape)
    return metric.of_rates(ranked.values, near, np.ones(ranked.shape))
