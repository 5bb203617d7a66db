"""Pivots: what a resampled metric is centred on, on which scale, and which values it can take."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.aggregates import contraharmonic, mean, root_mean
from calibrant.distances import debiased_squared, signed, squared, tvd
from calibrant.errors.binned import BinnedError
from calibrant.errors.kernel import KernelError, biased
from calibrant.errors.mean_score import hit
from calibrant.errors.smooth import SmoothError
from calibrant.metric import Metric
from calibrant.totals import Floats


@dataclass(frozen=True)
class Pivot:
    """A metric as it is resampled, what it tends to in the resampled world, and the way back to its own scale.

    A plug-in error tends to itself: with ever more draws from these rows it is the rows' own error. An error without
    bias does not: drawn from these rows it tends to their plug-in error, which is where its replicates lie.
    """

    metric: Metric
    limit: Metric
    back: Callable[[Floats], Floats]


def pivot(metric: Metric, *, several: bool) -> Pivot:
    """The pivot of a metric; `several` where it asks more than one question.

    >>> import calibrant as cal
    >>> made = pivot(cal.ECE_DEBIASED, several=False)
    >>> made.limit.distance is cal.squared, made.metric.aggregate is cal.mean
    (True, True)
    """
    if isinstance(metric, BinnedError) and metric.distance is debiased_squared:
        limit = dataclasses.replace(metric, distance=squared)
        if metric.aggregate is root_mean and not several:  # its square is what has no bias
            return Pivot(dataclasses.replace(metric, aggregate=mean), dataclasses.replace(limit, aggregate=mean), _root)
        return Pivot(metric, limit, _same)
    if isinstance(metric, KernelError) and metric.estimator is not biased:
        return Pivot(metric, dataclasses.replace(metric, estimator=biased), _same)
    return Pivot(metric, metric, _same)


def is_signed(metric: Metric) -> bool:
    """Whether a metric has two sides, so that both its ends are extreme.

    >>> import calibrant as cal
    >>> is_signed(cal.MCS), is_signed(cal.ECE)
    (True, False)
    """
    return getattr(metric, "distance", None) is signed


def bounds(metric: Metric) -> tuple[float, float]:
    """The least and the largest value that a metric can honestly have.

    >>> import calibrant as cal
    >>> bounds(cal.ECE), bounds(cal.MCS), bounds(cal.ACCURACY), bounds(cal.LOG_LOSS)
    ((0.0, 1.0), (-1.0, 1.0), (0.0, 1.0), (0.0, inf))
    """
    distance = getattr(metric, "distance", None)
    if distance is signed:
        return (-np.inf, np.inf) if metric.across is contraharmonic else (-1.0, 1.0)  # type: ignore[attr-defined]
    if distance is tvd or isinstance(metric, SmoothError) or getattr(metric, "score", None) is hit:
        return 0.0, 1.0
    unbiased_square = distance is debiased_squared and metric.aggregate is mean  # type: ignore[attr-defined]
    if unbiased_square or (isinstance(metric, KernelError) and metric.estimator is not biased):
        return -np.inf, np.inf
    return 0.0, np.inf


def _same(values: Floats) -> Floats:
    return values


def _root(values: Floats) -> Floats:
    return np.sqrt(np.maximum(values, 0.0))  # nan stays nan
