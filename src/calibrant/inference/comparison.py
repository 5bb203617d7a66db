"""Comparison: is one model better calibrated than another, on the same rows?"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibrant.checks import whole
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bootstrap import basic
from calibrant.inference.draws import RowDraws, check_level, check_seed, clusters, replicate
from calibrant.inference.engines import Engine, exact
from calibrant.inference.pivots import pivot
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric
from calibrant.predictions import Predictions, require_predictions
from calibrant.result import Interval, Result


@dataclass(frozen=True, eq=False)
class Comparison:
    """The difference a - b of a metric, with its interval and a p-value; both models on the same resampled rows.

    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(800)
    >>> y = rng.random(800) < truth
    >>> good, bad = (cal.Predictions.from_probs(y, p) for p in (truth, truth**3))
    >>> difference = cal.compare(cal.BRIER, good, bad, n=200, seed=0)
    >>> bool(difference.difference < 0), bool(difference.p_value < 0.05)
    (True, True)
    """

    a: Result
    b: Result
    interval: Interval
    p_value: float
    margin: float | None = None
    adjusted_p_value: float | None = None
    """The p-value after Holm's correction, where several models were compared."""

    @property
    def difference(self) -> float:
        """The metric of a less that of b."""
        return self.a.value - self.b.value

    @property
    def equivalent(self) -> bool | None:
        """Whether the whole interval lies within the margin; None without a margin."""
        if self.margin is None:
            return None
        return -self.margin < self.interval.low and self.interval.high < self.margin

    def __str__(self) -> str:
        p = self.p_value if self.adjusted_p_value is None else self.adjusted_p_value
        difference = f"{self.a.value:.4f} - {self.b.value:.4f} = {self.difference:+.4f}"
        words = f"{self.a.name} {difference} {self.interval}, p = {p:.3g}"
        if self.margin is None:
            return words
        return f"{words}, {'' if self.equivalent else 'not '}equivalent within {self.margin:g}"


def compare(
    metric: Metric,
    a: Predictions,
    b: Predictions,
    n: int = 1000,
    seed: int = 0,
    *,
    level: float = 0.9,
    margin: float | None = None,
    groups: str | None = None,
    n_jobs: int = 1,
) -> Comparison:
    """A paired bootstrap of the difference: every resample draws the same rows (or clusters) for both models.

    The interval reflects the resampled differences about the observed one; the p-value is the share of
    resampled differences that lie at least as far from the observed one as 0 does,
    (1 + number) / (n + 1). With a margin, the models are equivalent when the whole interval lies within it
    (two one-sided tests at (1 - level) / 2).

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1, 1], [.9, .2, .6, .8])
    >>> cal.compare(cal.ECE, p, p, n=50, seed=0).difference
    0.0
    """
    require_predictions(a, "a")
    require_predictions(b, "b")
    whole(n, "n", 1)
    check_seed(seed)
    check_level(level)
    if margin is not None and not margin > 0:
        raise CalibrationInputError("margin", "must be positive", got=repr(margin))
    _require_pairs(a, b)
    work = _Paired((exact(metric, a), exact(metric, b)), RowDraws(len(a), clusters(a, groups)))
    values = replicate(work, n, seed, stage=2, n_jobs=n_jobs, what=f"comparison of {metric.name}")
    results = metric(a), metric(b)
    with np.errstate(invalid="ignore"):  # infinite log losses have no difference
        observed = results[0].value - results[1].value
        drawn = values[:, 0] - values[:, 1]
    limit = pivot(metric, several=True).limit
    if limit is not metric:
        drawn = drawn + (observed - (limit(a).value - limit(b).value))
    low, high = basic(drawn, observed, level)
    with np.errstate(invalid="ignore"):
        extreme = ~(np.abs(drawn - observed) < abs(observed))  # a draw without a value counts as extreme
    p_value = float((1 + extreme.sum()) / (n + 1)) if np.isfinite(observed) else float("nan")
    return Comparison(*results, Interval(low, high, level, "basic", "exact", n), p_value, margin)


def compare_all(
    metric: Metric, models: Mapping[str, Predictions], n: int = 1000, seed: int = 0, **options: object
) -> dict[tuple[str, str], Comparison]:
    """Every pair of several models, with p-values corrected for their number by Holm's method.

    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(200)
    >>> y = rng.random(200) < p
    >>> models = {name: cal.Predictions.from_probs(y, p**power) for name, power in (("a", 1), ("b", 2), ("c", 3))}
    >>> found = cal.compare_all(cal.BRIER, models, n=100, seed=0)
    >>> [pair for pair in found], all(one.adjusted_p_value >= one.p_value for one in found.values())
    ([('a', 'b'), ('a', 'c'), ('b', 'c')], True)
    """
    if len(models) < 2:
        raise CalibrationInputError("models", "must be at least two", got=len(models))
    pairs = list(itertools.combinations(models, 2))
    comparisons = {(a, b): compare(metric, models[a], models[b], n, seed, **options) for a, b in pairs}  # type: ignore[arg-type]
    adjusted = holm(np.array([comparison.p_value for comparison in comparisons.values()]))
    return {
        pair: dataclasses.replace(comparison, adjusted_p_value=float(p))
        for (pair, comparison), p in zip(comparisons.items(), adjusted, strict=True)
    }


def holm(p_values: Floats) -> Floats:
    """Holm's step-down correction: the k-th smallest of m times m - k + 1, never decreasing, at most 1.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(10).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1))
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


@dataclass(frozen=True, eq=False)
class _Paired:
    engines: tuple[Engine, Engine]
    draws: RowDraws

    def __call__(self, rng: np.random.Generator, count: int) -> Floats:
        counts = list(self.draws(rng, count))
        return np.column_stack([engine(counts)[:, 0] for engine in self.engines])


def _require_pairs(a: Predictions, b: Predictions) -> None:
    if len(a) != len(b):
        raise CalibrationInputError("b", f"must have the rows of a ({len(a)})", got=f"{len(b)} rows")
    truths = (a.labels, b.labels) if a.soft is None and b.soft is None else (a.soft, b.soft)
    if not np.array_equal(*truths):
        hint = "a paired comparison needs the same samples"
        raise CalibrationInputError("b", "must have the labels of a, row by row", got="others", hint=hint)
    ones = np.ones(len(a))
    if not np.array_equal(ones if a.weight is None else a.weight, ones if b.weight is None else b.weight):
        raise CalibrationInputError("b", "must have the sample weights of a", got="others")
