"""Detection: how often miscalibration is noticed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.inference.consistency import require_null
from calibrant.inference.draws import check_level
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric
from calibrant.simulate.biases import TIE, check_metrics, estimates
from calibrant.simulate.calibration_curves import IDENTITY
from calibrant.simulate.classes import SoftmaxScores, Tempered
from calibrant.simulate.named import Named, to_json
from calibrant.simulate.sampling import Law, check_law
from calibrant.simulate.wording import plus_minus, tied
from calibrant.text import aligned

RESAMPLES = 200
"""Resamples of the replicates, for the error that simulation leaves."""


@dataclass(frozen=True)
class Detection:
    """How often a metric notices miscalibration."""

    name: str
    n: int
    level: float
    """How often a calibrated model is accused: the type I error."""
    critical: float
    """What the metric exceeds in that share of calibrated replicates."""
    power: float
    """The share of miscalibrated replicates in which it exceeds it."""
    mc_error: float
    """The standard error that simulation leaves, of the critical value's replicates as well."""
    replicates: int
    critical_error: float = math.nan
    """The standard error of the critical value that simulation leaves."""

    @property
    def type_two(self) -> float:
        """How often miscalibration goes unnoticed."""
        return 1.0 - self.power


@dataclass(frozen=True, eq=False)
class Detections(Named[Detection]):
    """Detections by name; prints as a table."""

    @property
    def strongest(self) -> str:
        """The metric of the largest power."""
        return max(self, key=lambda name: -1.0 if math.isnan(self[name].power) else self[name].power)

    @property
    def ties(self) -> tuple[str, ...]:
        """The others whose power is not smaller by more than `TIE` standard errors of the difference."""
        best = self[self.strongest]
        return tuple(
            name
            for name, other in self.items()
            if other is not best and best.power - other.power <= TIE * math.hypot(best.mc_error, other.mc_error)
        )

    @property
    def verdict(self) -> str:
        """Which metric notices miscalibration most often, and which others tie with it."""
        best = self[self.strongest]
        return f"{best.name} notices it most often, {plus_minus(best.power, best.mc_error, '.1%')}{tied(self.ties)}"

    def __str__(self) -> str:
        rows = [
            [
                detection.name,
                f"{detection.n:,}",
                f"{detection.level:g}",
                plus_minus(detection.critical, detection.critical_error),
                plus_minus(detection.power, detection.mc_error, ".3f"),
            ]
            for detection in self.values()
        ]
        return aligned(["metric", "n", "level", "critical", "power"], rows, right=True)

    def to_json(self) -> str:
        """The detections as JSON."""
        return to_json({name: vars(detection) for name, detection in self.items()})


def power(
    metrics: Mapping[str, Metric],
    scores: Law,
    curve: Any,
    n: int = 1000,
    level: float = 0.05,
    replicates: int = 1000,
    seed: int = 0,
    *,
    n_jobs: int = 1,
) -> Detections:
    """How often would each metric notice that a model of this curve is miscalibrated?

    The critical value is the empirical 1 - `level` quantile of the metric over replicates of a calibrated model with
    the same scores and n; the power is the share of replicates of the curve that exceed it (where both small and large
    values are extreme, by their distance from the value under calibration or, if that is unknown, from the median of
    the calibrated replicates). Replicates without a value notice nothing. Results depend on `seed` and n, not on
    `n_jobs`.

    References: Roelofs et al. (2022), section 5.4, figure 8.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, power, power_curve
    >>> detections = power({"ece": cal.ECE, "sweep": cal.ECE_SWEEP}, UNIFORM, power_curve(1.3), n=500, replicates=200)
    >>> bool(detections["sweep"].power > detections["ece"].power)
    True
    """
    check_metrics(metrics)
    for metric in metrics.values():
        require_null(metric)
    check_level(level)
    check_law(scores)
    calibrated = Tempered(1) if isinstance(scores, SoftmaxScores) else IDENTITY
    null = estimates(metrics, scores, calibrated, n, replicates, seed, n_jobs=n_jobs, stage=1)
    drawn = estimates(metrics, scores, curve, n, replicates, seed, n_jobs=n_jobs)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2 * n, 0, 0)))
    return Detections(
        {
            name: _detected(name, n, level, *_sizes(metric, null[name][:, 0], drawn[name][:, 0]), rng)
            for name, metric in metrics.items()
        }
    )


def _sizes(metric: Metric, null: Floats, drawn: Floats) -> tuple[Floats, Floats]:
    """What is compared: the values or, where both sides count, how far they are from calibration."""
    facts = metric.facts
    if facts.sides == 1:
        return null, drawn
    centre = float("nan") if facts.calibrated is None else facts.calibrated
    if math.isnan(centre) and not np.isnan(null).all():
        centre = float(np.nanmedian(null))
    return np.abs(null - centre), np.abs(drawn - centre)


def _detected(name: str, n: int, level: float, null: Floats, drawn: Floats, rng: np.random.Generator) -> Detection:
    critical, share = _share(null, drawn, level)
    again = [_share(rng.choice(null, len(null)), rng.choice(drawn, len(drawn)), level) for _ in range(RESAMPLES)]
    criticals, shares = np.array(again).T
    return Detection(name, n, level, critical, share, float(shares.std()), len(drawn), float(criticals.std()))


def _share(null: Floats, drawn: Floats, level: float) -> tuple[float, float]:
    """The critical value, and the share that exceeds it."""
    there = null[~np.isnan(null)]
    if not len(there):
        return math.nan, math.nan
    critical = float(np.quantile(there, 1 - level))
    return critical, float((drawn > critical).mean())
