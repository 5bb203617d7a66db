"""Comparison: is one model better calibrated than another, on the same rows?"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from calibrant.checks import whole
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import RowDraws, check_level, check_seed, clusters, replicate
from calibrant.inference.engines import Engine, exact
from calibrant.inference.gates import best_value
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric
from calibrant.predictions import Predictions, require_predictions
from calibrant.result import Interval, Result
from calibrant.specification.facts import Facts
from calibrant.text import p_value

K = TypeVar("K", bound=Hashable)
LEVEL = 0.05
"""The p-value up to which one of two models is called worse."""


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
    """The p-value after Holm's correction, where several comparisons stand together."""
    worse_by: float = math.nan
    """By how much a is worse than b. Of a metric with two sides: by how much farther from its value if calibrated."""
    worse_p_value: float = math.nan
    """The p-value that neither is worse: `p_value`, but of distances where the metric has two sides."""
    adjusted_worse_p_value: float | None = None

    @property
    def difference(self) -> float:
        """The metric of a less that of b; nan where one of them is infinite."""
        known = math.isfinite(self.a.value) and math.isfinite(self.b.value)
        return self.a.value - self.b.value if known else math.nan

    @property
    def worse(self) -> bool | None:
        """Whether a is worse than b; None where the difference may be noise, or does not exist.

        The one rule behind words, tables and exit statuses: `p_value` and `worse_p_value`, after Holm's correction
        where several comparisons stand together, are at most 0.05; or one of two losses is infinite and the other is
        not.
        """
        infinite = math.isinf(self.a.value), math.isinf(self.b.value)
        if infinite[0] != infinite[1]:
            return infinite[0]
        p = self.worse_p_value if self.adjusted_worse_p_value is None else self.adjusted_worse_p_value
        return self.worse_by > 0 if self._differ and p <= LEVEL else None

    @property
    def _differ(self) -> bool:
        return (self.p_value if self.adjusted_p_value is None else self.adjusted_p_value) <= LEVEL

    def verdict(self, first: str = "first", second: str = "second") -> str:
        """Which of the two is better, in words.

        >>> import calibrant as cal
        >>> p = cal.Predictions.from_probs([1, 0, 1, 1], [.9, .2, .6, .8])
        >>> cal.compare(cal.BRIER, p, p, n=50).verdict()
        'no clear difference'
        """
        infinite = [name for name, result in ((first, self.a), (second, self.b)) if math.isinf(result.value)]
        if len(infinite) == 2:
            return f"no difference: {first} and {second} are infinite"
        if self.worse is not None:
            words = f"{second if self.worse else first} is better"
        else:
            words = "different, but neither is clearly better" if self._differ else "no clear difference"
        if infinite:
            return f"{words}: {infinite[0]} is infinite"
        return words if self.margin is None else f"{words}, {self._sameness(self.margin)}"

    def _sameness(self, margin: float) -> str:
        outside = self.interval.low >= margin or self.interval.high <= -margin
        if outside or self.equivalent:
            return f"{'not ' if outside else ''}equivalent within {margin:g}"
        return f"not shown to be equivalent within {margin:g}"

    @property
    def equivalent(self) -> bool | None:
        """Whether the whole interval lies within the margin; None without a margin."""
        if self.margin is None:
            return None
        return -self.margin < self.interval.low and self.interval.high < self.margin

    def __str__(self) -> str:
        p = self.p_value if self.adjusted_p_value is None else self.adjusted_p_value
        difference = f"{self.a.value:.4f} - {self.b.value:.4f} = {self.difference:+.4f}"
        return f"{self.a.name} {difference} {self.interval}, {p_value(p)}: {self.verdict()}"


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

    With the standard deviation s of the n resampled differences, interval and p-value are those of one test:
    difference / s is held against Student's t with n - 1 degrees of freedom. Where the direction of a metric is known
    that p-value says which model is worse (`Comparison.worse`); where both sides count (`MCS`), distances from the
    value of a calibrated model are compared in the same way. With a margin, the models are equivalent when the whole
    interval lies within it (two one-sided tests at (1 - level) / 2). Losses that are infinite have no difference.

    The interval is that of the difference at this number of rows: noise raises the error of a nearly calibrated model
    more than that of one that is clearly off.

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
    pairs = np.vstack([[results[0].value, results[1].value], values])
    with np.errstate(invalid="ignore"):  # infinite log losses have no difference
        low, high, p = _student(pairs[:, 0] - pairs[:, 1], level)
        badness = _badness(pairs, metric.facts)
        contrast = badness[:, 0] - badness[:, 1]
        worse_p_value = _student(contrast, level)[2]
    interval = Interval(low, high, level, "student", "exact", n)
    return Comparison(*results, interval, p, margin, None, float(contrast[0]), worse_p_value)


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
    return corrected_for_number(comparisons)


def corrected_for_number(comparisons: Mapping[K, Comparison]) -> dict[K, Comparison]:
    """Comparisons that stand together, with p-values corrected for their number by Holm's method.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1, 1], [.9, .2, .6, .8])
    >>> [together.adjusted_p_value for together in corrected_for_number({0: cal.compare(cal.ECE, p, p)}).values()]
    [1.0]
    """
    p_values = np.array([[each.p_value, each.worse_p_value] for each in comparisons.values()])
    adjusted = zip(comparisons.items(), *map(holm, p_values.T), strict=True)
    return {
        name: dataclasses.replace(comparison, adjusted_p_value=float(p), adjusted_worse_p_value=float(worse))
        for (name, comparison), p, worse in adjusted
    }


def holm(p_values: Floats) -> Floats:
    """Holm's step-down correction: the k-th smallest of m times m - k + 1, never decreasing, at most 1; nan stays nan.

    >>> holm(np.array([0.01, 0.04, np.nan, 0.03])).round(10).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    order = np.argsort(p_values)[: np.count_nonzero(~np.isnan(p_values))]
    adjusted = np.full(len(p_values), np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1)), 1.0)
    return adjusted


def _student(differences: Floats, level: float) -> tuple[float, float, float]:
    """The interval and the p-value of the first of some differences, the others being resampled ones."""
    from scipy.special import stdtr, stdtrit  # type: ignore[import-untyped]

    observed, drawn = float(differences[0]), differences[1:][np.isfinite(differences[1:])]
    if not math.isfinite(observed) or len(drawn) < 2:
        return math.nan, math.nan, math.nan
    df, error = len(drawn) - 1, float(drawn.std(ddof=1))
    reach = float(stdtrit(df, (1 + level) / 2)) * error
    p = 2 * float(stdtr(df, -abs(observed) / error)) if error else float(observed == 0)
    return observed - reach, observed + reach, p


def _badness(values: Floats, facts: Facts) -> Floats:
    """Values as losses: lower is better."""
    if facts.lower_is_better is None:
        return np.abs(values - (best_value(facts) or 0.0))
    return values if facts.lower_is_better else -values


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
