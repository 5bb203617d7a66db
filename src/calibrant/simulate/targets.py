"""Targets: what a metric estimates, and its value for a model that is known."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.bins import Bins
from calibrant.door.arrays import Array
from calibrant.door.class_kinds import redrawn_labels
from calibrant.errors.mean_score import OfScores
from calibrant.errors.of_bins import OfBins
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import check_seed
from calibrant.kernels.totals import Floats, Totals
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.simulate.calibration_curves import as_curve
from calibrant.simulate.classes import SoftmaxScores, true_rows
from calibrant.simulate.sampling import Law, check_law
from calibrant.simulate.truth import true_calibration_error
from calibrant.specification.facts import facts_of

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


def true_value(
    metric: Metric, scores: Law, curve: Any, seed: int = 0, *, p: float | None = None, pointwise: bool = False
) -> Target:
    """What would this metric be for this model if data were endless, and its bins no matter?

    Of an event, a metric that estimates an L^p calibration error (`order_of`) has `true_calibration_error` as its
    target. Any other metric, and every metric of classes, has its own limit as its target: its value on a large draw in
    which each label is replaced by its true probabilities. That limit keeps the metric's bins. (Where a metric
    refuses soft labels, they are drawn; a debiased square tends to the plain one; a mean score is averaged over
    the labels.) `seed` makes the draw repeatable. With `p`, the target is the true L^p error, whatever the metric.

    `pointwise` asks for the error itself, of classes and a lens of vectors: the mean distance between each forecast and
    the true distribution given it, without any bins. It is known where the truth follows what the lens shows: of
    `Full()`, and of any lens with `Induced(lens, curve)`. The limit at fixed bins is never above it.

    References: Roelofs et al. (2022), eq. 1; Nixon et al. (2019), figures 7-8; Kirchenbauer, Oaks & Heim (2022),
    eqs. 12-16.

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
    if pointwise:
        return Target(_without_bins(metric, scores, curve, seed), "pointwise error")
    wanted = p or (None if isinstance(scores, SoftmaxScores) else order_of(metric))
    if wanted is not None:
        return Target(true_calibration_error(scores, curve, wanted), f"L{wanted:g} error")  # type: ignore[arg-type]
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    return Target(_limit(metric, *_known(metric, scores, curve, rng), rng), "its limit")


def _without_bins(metric: Metric, scores: Law, curve: Any, seed: int) -> float:
    """The metric of a large draw with known chances in which every row is a bin of its own."""
    lens = metric.lens if isinstance(metric, OfBins) else None
    shown = facts_of(lens)
    follows = (shown.as_given and shown.alone is None) or lens == getattr(curve, "lens", None)
    if not isinstance(metric, OfBins) or not isinstance(scores, SoftmaxScores) or not follows:
        raise CalibrationInputError(
            "pointwise",
            "needs a binned error of classes whose truth follows what its lens shows",
            got=f"{metric.name}, {curve!r}"[:80],
            hint="use Full(), or Induced(lens, curve) with the lens of the metric; of an event, pass p",
        )
    values = scores.draw(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,))), ROWS)
    view = metric.view(Predictions.from_probs(true_rows(curve, values), values, copy=False))
    rows = view.rows_of(0)
    outputs, truth = (Totals.of(part[rows, 0][None].astype(np.float64)) for part in (view.outputs, view.truth_rows))
    size = Totals.whole(np.ones((1, len(rows)), np.int64))
    return metric.of_bins(Bins(view.about, size, outputs, truth, np.array([len(rows)]))).value


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
