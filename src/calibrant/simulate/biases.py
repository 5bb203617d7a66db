"""Bias: how far, on average, an estimator of calibration error is from the truth, by simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.checks import whole
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import check_seed, replicate
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric
from calibrant.simulate.classes import SoftmaxScores
from calibrant.simulate.named import Named, to_json
from calibrant.simulate.replicated import values_of
from calibrant.simulate.sampling import Law, check_law, sampled
from calibrant.simulate.targets import Target, true_value
from calibrant.simulate.wording import plus_minus, tied
from calibrant.text import aligned

BLOCK = 1 << 17
"""Forecasts that are drawn at once, whatever the number of replicates: memory does not grow with it."""
TIE = 2.0
"""Standard errors within which two estimators are as close to the truth as each other."""


@dataclass(frozen=True)
class Estimate:
    """An estimator's mean and spread over replicates, beside the truth it estimates.

    >>> estimate = Estimate("ece", n=200, replicates=100, truth=0.05, target="L1 error", mean=0.08, sd=0.03)
    >>> round(estimate.bias, 10), round(estimate.rmse, 10), round(estimate.mc_error, 10)
    (0.03, 0.0424264069, 0.003)
    """

    name: str
    n: int
    """Samples in each replicate."""
    replicates: int
    truth: float
    target: str
    """What the truth is the value of."""
    mean: float
    sd: float
    """The standard deviation over replicates (ddof 0)."""
    missing: int = 0
    """Replicates in which the estimator had no value; they are left out."""
    n_bins: float | None = None
    """How many bins a sweep chose, on average."""
    sd_error: float = math.nan
    """The standard error of `sd` that simulation leaves."""
    rmse_error: float = math.nan
    """The standard error of `rmse` that simulation leaves."""

    @property
    def bias(self) -> float:
        """The mean less the truth."""
        return self.mean - self.truth

    @property
    def rmse(self) -> float:
        """The root of the mean squared difference from the truth."""
        return math.hypot(self.bias, self.sd)

    @property
    def relative(self) -> float:
        """The root mean squared error as a share of the truth; infinite where the truth is 0."""
        return self.rmse / self.truth if self.truth > 0 else math.inf

    @property
    def relative_error(self) -> float:
        """The standard error of `relative` that simulation leaves."""
        return self.rmse_error / self.truth if self.truth > 0 else math.nan

    @property
    def mc_error(self) -> float:
        """The standard error of the mean, and so of the bias, that simulation leaves."""
        there = self.replicates - self.missing
        return self.sd / math.sqrt(there) if there else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**vars(self), "bias": self.bias, "rmse": self.rmse, "mc_error": self.mc_error}


@dataclass(frozen=True, eq=False)
class Biases(Named[Estimate]):
    """Estimates by name; prints as a table."""

    @property
    def closest(self) -> str:
        """The estimator of the smallest error relative to its truth; of the smallest error where every truth is 0."""
        valued = [name for name, estimate in self.items() if not math.isnan(estimate.rmse)]
        return min(valued or list(self), key=lambda name: (self[name].relative, self[name].rmse))

    @property
    def ties(self) -> tuple[str, ...]:
        """The others whose error is not larger by more than `TIE` standard errors of the difference.

        The errors of two estimators are taken as independent. They see the same replicates, so this finds too many
        ties rather than too few.
        """
        best = self.closest
        relative = math.isfinite(self[best].relative)
        sizes = {
            name: (estimate.relative, estimate.relative_error) if relative else (estimate.rmse, estimate.rmse_error)
            for name, estimate in self.items()
        }
        least, error = sizes.pop(best)
        return tuple(name for name, (size, own) in sizes.items() if size - least <= TIE * math.hypot(error, own))

    @property
    def verdict(self) -> str:
        """Which estimator is closest to its truth, how far it is off, and which others tie with it."""
        best = self[self.closest]
        share = f"{plus_minus(best.relative, best.relative_error, '.1%')} of the truth"
        off = share if best.truth > 0 else plus_minus(best.rmse, best.rmse_error)
        return f"{best.name} is off by {off} (root mean squared error){tied(self.ties)}"

    def __str__(self) -> str:
        return aligned(HEADER, [cells(estimate) for estimate in self.values()], right=True)

    def to_json(self) -> str:
        """The estimates as JSON."""
        return to_json({name: estimate.to_dict() for name, estimate in self.items()})


HEADER = ("estimator", "estimates", "n", "truth", "mean", "bias", "sd", "rmse")


def cells(estimate: Estimate) -> list[str]:
    """An estimate as a row of text, every number with its Monte Carlo error."""
    return [
        estimate.name,
        estimate.target,
        f"{estimate.n:,}",
        f"{estimate.truth:.4f}",
        f"{estimate.mean:.4f}",
        plus_minus(estimate.bias, estimate.mc_error, "+.4f"),
        plus_minus(estimate.sd, estimate.sd_error),
        plus_minus(estimate.rmse, estimate.rmse_error),
    ]


def bias(
    metrics: Mapping[str, Metric],
    scores: Law,
    curve: Any,
    n: int = 200,
    replicates: int = 1000,
    seed: int = 0,
    *,
    n_jobs: int = 1,
    p: float | None = None,
    pointwise: bool = False,
    truth: Mapping[str, float] | None = None,
) -> Biases:
    r"""How biased are these estimators for a model that is known, when they see n samples?

    .. math:: \widehat{\mathrm{Bias}} = \frac1m \sum_{r=1}^m \widehat e_r - e

    Forecasts follow their law `scores`, outcomes the `curve`; every metric sees the same m `replicates`. The truth
    e is the metric's `true_value` (with `p`, the true L^p error whatever the metric; `pointwise`, that of a lens of
    vectors without bins), or what `truth` says by name.
    Any metric will do; binned, swept, debiased and label-binned errors of an event are computed for many replicates at
    once. Results depend on `seed` and n, not on `n_jobs` nor on which other metrics are asked; a curve that is your own
    function must be importable when `n_jobs` is above 1. Memory does not grow with the replicates but for one number
    each.

    References: Roelofs et al. (2022), eqs. 6-7.

    >>> import calibrant as cal
    >>> from calibrant.simulate import PUBLISHED, bias
    >>> fit = PUBLISHED["resnet110_c10"]
    >>> biases = bias({"ece": cal.ECE, "sweep": cal.ECE_SWEEP}, fit.scores, fit.curve, n=200, replicates=100, seed=0)
    >>> print(biases)
    estimator  estimates    n   truth    mean              bias               sd             rmse
    ece         L1 error  200  0.0584  0.0624  +0.0040 ± 0.0015  0.0153 ± 0.0011  0.0158 ± 0.0013
    sweep       L1 error  200  0.0584  0.0566  -0.0017 ± 0.0016  0.0156 ± 0.0013  0.0157 ± 0.0012
    >>> print(biases.verdict)
    sweep is off by 26.9% ± 2.1% of the truth (root mean squared error); ece ties with it within Monte Carlo error
    """
    values = estimates(metrics, scores, curve, n, replicates, seed, n_jobs=n_jobs)
    known = truth or {}
    table = {}
    for name, metric in metrics.items():
        target = (
            Target(known[name], "given")
            if name in known
            else true_value(metric, scores, curve, p=p, pointwise=pointwise)
        )
        table[name] = summarised(name, n, target, values[name])
    return Biases(table)


def estimates(
    metrics: Mapping[str, Metric],
    scores: Law,
    curve: Any,
    n: int = 200,
    replicates: int = 1000,
    seed: int = 0,
    *,
    n_jobs: int = 1,
    stage: int = 0,
) -> dict[str, Floats]:
    """The metrics' values themselves: by name, (replicates, 2), the second column how many bins a sweep chose.

    `stage` tells streams of random numbers apart: two stages are independent draws.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, power_curve
    >>> estimates({"ece": cal.ECE}, UNIFORM, power_curve(1), n=50, replicates=30)["ece"].shape
    (30, 2)
    """
    check_metrics(metrics)
    check_law(scores)
    whole(n, "n", 1)
    whole(replicates, "replicates", 1)
    whole(n_jobs, "n_jobs", 1)
    check_seed(seed)
    each = n * (scores.classes if isinstance(scores, SoftmaxScores) else 1)
    values = replicate(
        _Experiment(tuple(metrics.values()), scores, curve, n),
        replicates,
        seed,
        stage=2 * n + stage,
        n_jobs=n_jobs,
        block=max(1, BLOCK // each),
        what=f"simulating n={n}",
    )
    return {name: values[:, index] for index, name in enumerate(metrics)}


def summarised(name: str, n: int, target: Target, values: Floats) -> Estimate:
    """The estimate that replicates make."""
    there = values[~np.isnan(values[:, 0])]
    mean, sd = (float(there[:, 0].mean()), float(there[:, 0].std())) if len(there) else (math.nan, math.nan)
    bins = there[:, 1]
    chosen = float(bins.mean()) if len(bins) and not np.isnan(bins).any() else None
    errors = [_root_error(there[:, 0] - centre) for centre in (mean, target.value)]
    missing = len(values) - len(there)
    return Estimate(name, n, len(values), target.value, target.words, mean, sd, missing, chosen, *errors)


def _root_error(gaps: Floats) -> float:
    """The standard error of the root of a mean square."""
    if not len(gaps):
        return math.nan
    squares = gaps**2
    return float(squares.std() / math.sqrt(len(gaps)) / (2 * math.sqrt(squares.mean()))) if squares.any() else 0.0


def check_metrics(metrics: Any) -> None:
    """Refuse what is no mapping of names to metrics."""
    if not isinstance(metrics, Mapping) or not metrics:
        raise CalibrationInputError(
            "metrics", "must name at least one metric", got=repr(metrics)[:60], hint='such as {"ece": ECE}'
        )
    for name, metric in metrics.items():
        if not isinstance(name, str) or not isinstance(metric, Metric):
            raise CalibrationInputError("metrics", "must map names to metrics", got=f"{name!r}: {metric!r}"[:80])


@dataclass(frozen=True, eq=False)
class _Experiment:
    """Work for `replicate`: draw some replicates, ask every metric."""

    metrics: tuple[Metric, ...]
    scores: Law
    curve: Any
    n: int

    def __call__(self, rng: np.random.Generator, count: int) -> Floats:
        samples = sampled(self.scores, self.curve, self.n, rng, count)
        return np.stack([values_of(metric, samples) for metric in self.metrics], axis=1)
