"""The bootstrap: how far a number would move if other samples had been drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from calibrant.checks import whole
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.confidence import target_of
from calibrant.inference.draws import BLOCK, RowDraws, Work, check_level, check_seed, clusters, replicate
from calibrant.inference.engines import Cells, Engine, RowsInCells, exact
from calibrant.inference.pivots import pivot
from calibrant.kernels.totals import Floats, Ints
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.result import Interval, Result

JACKKNIFE_BLOCKS = 100
"""Blocks of rows that are left out in turn for the acceleration of BCa intervals."""

NOISE = (
    "noise is a large part of this error, so its bootstrap interval may not cover: "
    "prefer Confidence() for an interval, and consistency for a test"
)
UNSHOWN = "bootstrap intervals of this metric are not known to cover: compare it with its noise floor"
ALONE = "no interval: a single row cannot be resampled"
NOWHERE = "no interval: the value, or that of the resamples, is not finite"
POINT = (
    "the bootstrap interval is a single point and does not cover: resamples show no error beyond noise, or all agree"
)
FEW = "the bootstrap interval ends at the extremes of its resamples, which are too few for quantiles: take 1000"
NOISE_RATIO = 0.05
"""Resampling doubles the noise of an error: with true error t and noise f the estimate is about sqrt(t^2 + f^2) and
its replicates sqrt(t^2 + 2 f^2), a ratio of 1.05 where f is a third of t."""

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Bootstrap:
    """Resamples rows (or whole clusters of rows) and gives an interval for a metric and each of its parts.

    `kind` is "basic" (replicates reflected about the estimate, which undoes the upward bias that plug-in
    errors have and resampling repeats), "percentile" or "bca". `groups` names a column whose values
    are resampled as a whole (answers to one prompt, pictures of one patient). `engine` is "exact" (rows
    reweighted; what resampled rows would give) or "cells" (multinomial over bin and outcome; approximate).

    Results depend on `seed`, not on `n_jobs`. Intervals of plug-in errors that are noise for a good part do not cover,
    nor do those of a single point or of few resamples, and of some metrics nobody knows: a note says so. `Confidence`
    is the interval that covers.

    References: Efron & Tibshirani (1993), chapters 13-14; Davison & Hinkley (1997), section 5.2.

    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> result = cal.ECE(rng.random(500) < p**2, p, interval=cal.Bootstrap(200, seed=0))
    >>> bool(result.interval.low < result.value < result.interval.high), result.interval.level
    (True, 0.9)
    """

    n: int = 1000
    seed: int = 0
    level: float = 0.9
    kind: str = "basic"
    groups: str | None = None
    engine: str = "exact"
    n_jobs: int = 1

    def __post_init__(self) -> None:
        whole(self.n, "n", 1)
        check_seed(self.seed)
        check_level(self.level)
        whole(self.n_jobs, "n_jobs", 1)
        if self.kind not in KINDS:
            raise CalibrationInputError("kind", f"must be one of {', '.join(KINDS)}", got=repr(self.kind))
        if self.engine not in ("exact", "cells"):
            raise CalibrationInputError("engine", 'must be "exact" or "cells"', got=repr(self.engine))
        if self.engine == "cells" and (self.groups is not None or self.kind == "bca"):
            raise CalibrationInputError("engine", "cells knows no rows", got="groups or kind='bca'", hint="use exact")

    def __call__(self, metric: Metric, predictions: Predictions, result: Result) -> Result:
        """The result with its interval, and its parts with theirs; nan where there is nothing to resample."""
        questions = 1 + len(result.values)
        if len(predictions) < 2:
            nothing = [Interval(np.nan, np.nan, self.level, self.kind, self.engine, self.n)] * questions
            notes = (*result.notes, ALONE) if len(predictions) else result.notes
            return dataclasses.replace(result, interval=nothing[0], intervals=tuple(nothing[1:]), notes=notes)
        facts, pivoted = metric.facts, pivot(metric, several=questions > 1)
        replicates = self.replicates(pivoted.metric, predictions)
        estimates = _values(pivoted.metric, predictions, result)
        shifts = np.zeros(questions)
        if pivoted.limit is not pivoted.metric:
            shifts = estimates - _values(pivoted.limit, predictions, result)
        without = np.full((1, questions), np.nan)
        if self.kind == "bca":
            without = left_out(exact(pivoted.metric, predictions), len(predictions), self._clusters(predictions))
        intervals: list[Interval] = []
        target = target_of(metric)
        for drawn, estimate, shift, jackknife in zip(replicates.T, estimates, shifts, without.T, strict=True):
            ends = KINDS[self.kind](drawn + shift, estimate, self.level, jackknife)
            known = metric.part_facts if intervals else facts  # the metric first, then its questions
            low, high = np.clip(pivoted.back(np.array(ends)), known.low, known.high)  # nan stays nan
            intervals.append(Interval(float(low), float(high), self.level, self.kind, self.engine, self.n, target))
        plug_in = facts.tends_to is None and facts.sides == 1 and facts.lower_is_better
        noisy = bool(plug_in) and is_noisy(replicates[:, 0], result.value)
        unshown = bool(plug_in) and facts.order is None and not noisy
        low, high = intervals[0].low, intervals[0].high
        nowhere = bool(np.isnan(low) or np.isnan(high))
        few = not nowhere and self.n * (1 - self.level) < 2 - 1e-9  # less than one resample beyond each end
        reasons = {NOISE: noisy, UNSHOWN: unshown, POINT: low == high, NOWHERE: nowhere, FEW: few}
        notes = (*result.notes, *(reason for reason, holds in reasons.items() if holds))
        return dataclasses.replace(result, interval=intervals[0], intervals=tuple(intervals[1:]), notes=notes)

    def replicates(self, metric: Metric, predictions: Predictions) -> Floats:
        """The metric's values under resampling (n, 1 + parts): the metric first, then its questions."""
        work: Callable[[np.random.Generator, int], Floats]
        if self.engine == "cells":
            work = Cells(metric, predictions)
        else:
            work = resampled(metric, predictions, RowDraws(len(predictions), self._clusters(predictions)))
        block = BLOCK if self.engine == "exact" else 10 * BLOCK
        what = f"bootstrap of {metric.name}"
        return replicate(work, self.n, self.seed, stage=0, n_jobs=self.n_jobs, block=block, what=what)

    def _clusters(self, predictions: Predictions) -> Ints | None:
        return clusters(predictions, self.groups)


def resampled(metric: Metric, predictions: Predictions, draws: RowDraws) -> Work:
    """Work for `replicate`: by way of the cells where rows are drawn one by one and all of them, else by counts."""
    if draws.cluster is None and draws.share == 1:
        in_cells = RowsInCells.of(metric, predictions)
        if in_cells is not None:
            return in_cells
    return Resampled(exact(metric, predictions), draws)


@dataclass(frozen=True, eq=False)
class Resampled:
    """Work for `replicate`: draw rows, reweigh, conclude."""

    engine: Engine
    draws: RowDraws

    def __call__(self, rng: np.random.Generator, count: int) -> Floats:
        """Values (count, 1 + parts)."""
        return self.engine(self.draws(rng, count))


def percentile(replicates: Floats, estimate: float, level: float, without: Floats | None = None) -> tuple[float, float]:
    """The quantiles of the replicates themselves.

    >>> percentile(np.arange(101.0), 50.0, 0.5)
    (25.0, 75.0)
    """
    return _quantiles(replicates, (1 - level) / 2, (1 + level) / 2)


def basic(replicates: Floats, estimate: float, level: float, without: Floats | None = None) -> tuple[float, float]:
    """The quantiles reflected about the estimate: 2 t - q_high, 2 t - q_low.

    >>> basic(np.arange(101.0), 40.0, 0.5)
    (5.0, 55.0)
    """
    low, high = percentile(replicates, estimate, level)
    with np.errstate(invalid="ignore"):  # an infinite estimate has no interval
        return 2 * estimate - high, 2 * estimate - low


def bca(replicates: Floats, estimate: float, level: float, without: Floats | None = None) -> tuple[float, float]:
    """Bias-corrected and accelerated: quantiles shifted by the share of replicates below the estimate and by skewness.

    Where every replicate lies on one side of the estimate no correction exists, and the interval is nan.

    >>> low, high = bca(np.arange(101.0), 50.0, 0.9, np.arange(10.0))
    >>> (round(low), round(high))
    (5, 95)
    """
    finite = replicates[np.isfinite(replicates)]
    without = None if without is None else without[np.isfinite(without)]
    share = (np.sum(finite < estimate) + np.sum(finite == estimate) / 2) / max(1, len(finite))
    if not 0 < share < 1 or without is None or not len(without):
        return float("nan"), float("nan")
    shift = _NORMAL.inv_cdf(share)
    gaps = without.mean() - without
    spread = (gaps**2).sum()
    acceleration = 0.0 if spread == 0 else (gaps**3).sum() / (6 * spread**1.5)
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = shift + _NORMAL.inv_cdf(tail)
        ends.append(_NORMAL.cdf(shift + z / (1 - acceleration * z)))
    return _quantiles(finite, *ends)


KINDS = {"basic": basic, "percentile": percentile, "bca": bca}


def is_noisy(replicates: Floats, estimate: float) -> bool:
    """Whether resampling raises an error so much that its noise is more than a third of the true error.

    >>> is_noisy(np.array([0.12, 0.11]), 0.1), is_noisy(np.array([0.11, 0.09]), 0.1)
    (True, False)
    """
    finite = replicates[np.isfinite(replicates)]
    return bool(len(finite)) and bool(finite.mean() > (1 + NOISE_RATIO) * estimate)


def _values(metric: Metric, predictions: Predictions, known: Result) -> Floats:
    """The metric's value and those of its questions."""
    result = known if metric == known.metric else metric(predictions)
    return np.array([result.value, *result.values])


def _quantiles(replicates: Floats, low: float, high: float) -> tuple[float, float]:
    """Quantiles of the replicates that exist; infinite ones count, and nothing is interpolated between them."""
    there = replicates[~np.isnan(replicates)]
    if not len(there):
        return float("nan"), float("nan")
    ends = np.quantile(there, [low, high], method="linear" if np.isfinite(there).all() else "nearest")
    return float(ends[0]), float(ends[1])


def left_out(engine: Engine, rows: int, cluster: Ints | None, blocks: int = JACKKNIFE_BLOCKS) -> Floats:
    """The values with each block of rows (or of clusters) left out in turn; row i is in block i mod blocks."""
    block = (np.arange(rows) if cluster is None else cluster) % blocks
    return engine((block != left).astype(np.int64) for left in range(block.max() + 1))
