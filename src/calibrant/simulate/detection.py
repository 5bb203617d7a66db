"""Detection: how often miscalibration is noticed, and how many samples that takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.checks import number, order, whole
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.consistency import require_null
from calibrant.inference.draws import check_level
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric
from calibrant.simulate.biases import check_metrics, estimates
from calibrant.simulate.calibration_curves import IDENTITY, CalibrationCurve
from calibrant.simulate.classes import SoftmaxScores, Tempered
from calibrant.simulate.named import Named, to_json
from calibrant.simulate.sampling import Law, check_law
from calibrant.simulate.scores import Scores
from calibrant.simulate.targets import order_of
from calibrant.simulate.truth import curve_with_error
from calibrant.text import aligned

RESAMPLES = 200
"""Resamples of the replicates, for the error that simulation leaves."""
FEWEST = 20
"""The smallest number of samples that is tried."""


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

    @property
    def type_two(self) -> float:
        """How often miscalibration goes unnoticed."""
        return 1.0 - self.power


@dataclass(frozen=True, eq=False)
class Detections(Named[Detection]):
    """Detections by name; prints as a table."""

    def __str__(self) -> str:
        rows = [
            [
                detection.name,
                str(detection.n),
                f"{detection.level:g}",
                f"{detection.critical:.4f}",
                f"{detection.power:.3f}",
                f"{detection.mc_error:.3f}",
            ]
            for detection in self.values()
        ]
        return aligned(["metric", "n", "level", "critical", "power", "mc error"], rows, right=True)

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


@dataclass(frozen=True)
class SamplesNeeded:
    """How many samples it takes to notice an error."""

    n: int
    """The smallest number tried that was enough."""
    too_few: int
    """The largest number tried below it, which was not; 0 where all were enough."""
    power: float
    """The power at n."""
    error: float
    curve: CalibrationCurve
    wanted: float
    level: float
    p: float

    def __str__(self) -> str:
        return (
            f"about {self.n:,} samples ({self.too_few:,} are too few) to notice a true L{self.p:g} error of "
            f"{self.error:g} with power {self.wanted:g} at level {self.level:g}"
        )


def samples_needed(
    metric: Metric,
    scores: Scores,
    error: float,
    *,
    wanted: float = 0.8,
    level: float = 0.05,
    p: float | None = None,
    replicates: int = 400,
    most: int = 200_000,
    seed: int = 0,
    n_jobs: int = 1,
) -> SamplesNeeded:
    """How many samples do I need to notice a true calibration error of this size?

    The model is over-confident along the curve s^d whose true L^p error is `error` (p is the metric's own, else 2). n
    is doubled until the power is at least `wanted`, then the last step is halved until its ends are within a tenth.
    Refused where `most` samples are not enough.

    References: Roelofs et al. (2022), section 5.4.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, samples_needed
    >>> needed = samples_needed(cal.ECE_SWEEP, UNIFORM, 0.1, replicates=100)
    >>> bool(100 < needed.n < 500), needed.too_few < needed.n
    (True, True)
    """
    whole(most, "most", FEWEST)
    number(wanted, "wanted", "must lie strictly between 0 and 1", lambda share: 0 < share < 1)
    p = float(p or order_of(metric) or 2.0)
    order(p, "p")
    curve = curve_with_error(scores, error, p)

    def power_at(n: int) -> float:
        return power({"it": metric}, scores, curve, n, level, replicates, seed, n_jobs=n_jobs)["it"].power

    low, high, reached = 0, FEWEST, power_at(FEWEST)
    while reached < wanted:
        if high == most:
            raise CalibrationInputError(
                "error", f"must be noticeable with {most:,} samples", got=f"power {reached:.2f} for {error:g}"
            )
        low, high = high, min(2 * high, most)
        reached = power_at(high)
    while low and high > 1.1 * low:
        middle = round(math.sqrt(low * high))
        at = power_at(middle)
        low, high, reached = (low, middle, at) if at >= wanted else (middle, high, reached)
    return SamplesNeeded(high, low, reached, error, curve, wanted, level, p)


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
    again = [_share(rng.choice(null, len(null)), rng.choice(drawn, len(drawn)), level)[1] for _ in range(RESAMPLES)]
    return Detection(name, n, level, critical, share, float(np.std(again)), len(drawn))


def _share(null: Floats, drawn: Floats, level: float) -> tuple[float, float]:
    """The critical value, and the share that exceeds it."""
    there = null[~np.isnan(null)]
    if not len(there):
        return math.nan, math.nan
    critical = float(np.quantile(there, 1 - level))
    return critical, float((drawn > critical).mean())
