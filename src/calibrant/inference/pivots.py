"""Pivots: what a resampled metric is centred on, and on which scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.kernels.totals import Floats
from calibrant.metric import Metric


@dataclass(frozen=True)
class Pivot:
    """A metric as it is resampled, what it tends to in the resampled world, and the way back to its own scale.

    A plug-in error tends to itself: with ever more draws from these rows it is the rows' own error. An error without
    bias does not: drawn from these rows it tends to their plug-in error, which is where its replicates lie.
    """

    metric: Metric
    limit: Metric
    root: float = 1.0
    """The root that leads back to the metric's own scale."""

    def back(self, values: Floats) -> Floats:
        """Values of the resampled metric on the scale of the metric that was asked for; nan stays nan."""
        return values if self.root == 1 else np.power(np.maximum(values, 0.0), 1 / self.root)


def pivot(metric: Metric, *, several: bool) -> Pivot:
    """The pivot of a metric; `several` where it asks more than one question.

    >>> import calibrant as cal
    >>> pivoted = pivot(cal.ECE_DEBIASED, several=False)
    >>> pivoted.limit.distance.__name__, pivoted.metric.aggregate.__name__
    ('squared', 'mean')
    """
    facts = metric.facts
    if facts.tends_to is None:
        return Pivot(metric, metric)
    if facts.unrooted is not None and not several:  # its power is what has no bias
        inner = _metric(facts.unrooted)
        return Pivot(inner, _metric(inner.facts.tends_to), facts.root)
    return Pivot(metric, _metric(facts.tends_to))


def _metric(known: object) -> Metric:
    assert isinstance(known, Metric), "facts of a metric name metrics"
    return known
