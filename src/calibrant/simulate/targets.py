"""Targets: what a metric estimates, and its value for a model that is known."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.door.class_kinds import redrawn_labels
from calibrant.errors.mean_score import OfScores
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import check_seed
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.simulate.calibration_curves import as_curve
from calibrant.simulate.classes import SoftmaxScores, true_rows
from calibrant.simulate.sampling import Law, check_law
from calibrant.simulate.truth import true_calibration_error

POINTS = 1 << 17
"""Forecasts of an event at which a metric's limit is taken."""
ROWS = 50_000
"""Rows of forecasts of classes that are drawn for it."""
PAIRED = 4_000
"""Rows, where a metric's cost is their square."""


@dataclass(frozen=True)
class Target:
    """What a metric estimates: a value, and in words what it is the value of."""

    value: float
    words: str


def true_value(metric: Metric, scores: Law, curve: Any, seed: int = 0, *, p: float | None = None) -> Target:
    """What would this metric be for this model if data were endless, and its bins no matter?

    Of an event, a metric that estimates an L^p calibration error (`order_of`) has `true_calibration_error` as its
    target. Any other metric, and every metric of classes, has its own limit as its target: its value on a large draw in
    which each label is replaced by its true probabilities. That limit keeps the metric's bins. (Where a metric
    refuses soft labels, they are drawn; a debiased square tends to the plain one; a mean score is averaged over
    the labels.) `seed` makes the draw repeatable. With `p`, the target is the true L^p error, whatever the metric.

    References: Roelofs et al. (2022), eq. 1; Nixon et al. (2019), figures 7-8.

    >>> import calibrant as cal
    >>> from calibrant.simulate import UNIFORM, SoftmaxScores, Tempered, power_curve, true_value
    >>> true_value(cal.ECE, UNIFORM, power_curve(2)).words, round(true_value(cal.ECE, UNIFORM, power_curve(2)).value, 8)
    ('L1 error', 0.16666667)
    >>> limit = true_value(cal.SCE, SoftmaxScores(3, 2.0), Tempered(2.0))
    >>> limit.words, bool(0.05 < limit.value < 0.2)
    ('its limit', True)
    """
    check_law(scores)
    check_seed(seed)
    wanted = p or (None if isinstance(scores, SoftmaxScores) else order_of(metric))
    if wanted is not None:
        return Target(true_calibration_error(scores, curve, wanted), f"L{wanted:g} error")  # type: ignore[arg-type]
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    return Target(_limit(metric, *_known(metric, scores, curve, rng), rng), "its limit")


def order_of(metric: Metric) -> float | None:
    """The p of the L^p calibration error of an event that a metric estimates; None where it estimates another thing.

    The smooth error is given p = 1: it never exceeds that error in the limit, and equals it where all forecasts err to
    one side.

    >>> import calibrant as cal
    >>> [order_of(metric) for metric in (cal.ECE, cal.RMSCE, cal.ECE_DEBIASED, cal.SMECE, cal.MCE, cal.SCE)]
    [1.0, 2.0, 2.0, 1.0, None, None]
    """
    return metric.facts.order


def _known(metric: Metric, scores: Law, curve: Any, rng: np.random.Generator) -> tuple[Array, Floats]:
    """Forecasts spread over their law, and the true probabilities of what they are about."""
    paired = math.isinf(metric.facts.cost)
    if isinstance(scores, SoftmaxScores):
        values = scores.draw(rng, PAIRED if paired else ROWS)
        return values, true_rows(curve, values)
    values, rest = scores.quantiles(PAIRED if paired else POINTS)
    return values, as_curve(curve).at(values, rest)


def _limit(metric: Metric, values: Array, chances: Floats, rng: np.random.Generator) -> float:
    if isinstance(metric, OfScores):
        return _mean_limit(metric, values, chances)
    # an error without bias may refuse soft labels; what it tends to does not
    for known in (metric, metric.facts.tends_to):
        if isinstance(known, Metric):
            with contextlib.suppress(CalibrationInputError):
                return known(Predictions.from_probs(chances, values, copy=False)).value
    return metric(Predictions.from_probs(redrawn_labels(chances, rng), values, copy=False)).value  # or it says why not


def _mean_limit(metric: Metric, values: Array, chances: Floats) -> float:
    """The mean over forecasts and labels: each label with its probability as its weight."""
    total = 0.0
    for label in range(chances.shape[1]) if chances.ndim == 2 else (0, 1):
        weight = chances[:, label] if chances.ndim == 2 else np.abs(1 - label - chances)
        if weight.any():
            labelled = Predictions.from_probs(np.full(len(values), label), values, sample_weight=weight, copy=False)
            total += metric(labelled).value * float(weight.mean())
    return total
