"""Ensemble temperature scaling: forecasts at a fitted temperature, as they were, and uniform, mixed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores, log_softmax, softmax
from calibrant.recalibrate.fitting.likelihood import FLAT
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.temperature import COLDEST, HOTTEST, fit_temperature

_FACES = [face for size in (1, 2, 3) for face in combinations(range(3), size)]
"""Which of three weights may differ from 0."""


@dataclass(eq=False)
class EnsembleTemperatureScaling(Recalibrator):
    r"""Mix the forecasts at a fitted temperature, as they were, and uniform ones.

    .. math:: w_1 \mathrm{softmax}(z / T) + w_2 \mathrm{softmax}(z) + w_3 / K, \quad w \ge 0, \; w_1 + w_2 + w_3 = 1

    First T minimises the mean log loss of softmax(z / T), between 0.001 and 1,000 as in `TemperatureScaling`; then w
    minimises that of the mixture, convex in w. `gradient_norm` is the most by which a condition of a minimum on the
    simplex is missed; a weight of 0 is no fault. Where T = 1 only w_1 + w_2 counts. The order of the classes in a row
    does not change. Cost: linear in n K.

    References: Zhang, Kailkhura & Han (2020).

    >>> scores = [8., 6., 4., 9., -7., -5., -8., -3., 7., 1.]
    >>> fitted = EnsembleTemperatureScaling().fit(scores, [1, 1, 1, 1, 0, 0, 0, 0, 0, 1])
    >>> round(fitted.temperature_, 4), fitted.weights_.round(4).tolist()
    (3.2125, [0.0, 0.7915, 0.2085])
    """

    input: str = "logits"
    classes: Sequence[Any] | None = None
    short: ClassVar[str] = "ensemble"
    of_events: ClassVar[bool] = False
    learns: ClassVar[tuple[str, ...]] = ("temperature_", "weights_")

    def _learn(self, lesson: Lesson) -> Ending:
        logits = lesson.scores.logits.astype(np.float64)
        self.temperature_, ending = fit_temperature(logits, lesson.labels, lesson.weight)
        rows = np.arange(len(logits))
        parts = [softmax(each)[rows, lesson.labels] for each in (logits / self.temperature_, logits)]
        truth = np.column_stack([*parts, np.full(len(logits), 1 / lesson.width)])
        self.weights_, mixed = fit_mixture(truth, lesson.weight)
        return dataclasses.replace(
            mixed,
            converged=mixed.converged and ending.converged,
            at_bound=ending.at_bound,
            message=ending.message or mixed.message,
        )

    def require_possible(self) -> None:
        possible.numbers(self.temperature_, "temperature_", low=COLDEST, high=HOTTEST)
        weights = possible.numbers(self.weights_, "weights_", 3, low=0.0, high=1.0)
        if abs(weights.sum() - 1.0) > 1e-9:  # what rounding leaves is far less
            raise ValueError("weights_ do not sum to 1")

    def _map(self, scores: ModelScores) -> Floats:
        logits = scores.logits.astype(np.float64)
        first, second, third = self.weights_
        mixed = first * softmax(logits / self.temperature_) + second * softmax(logits) + third / logits.shape[1]
        return mixed[:, 1] if scores.event else mixed

    def _logits(self, scores: ModelScores) -> Array:
        logits = scores.logits.astype(np.float64)
        with np.errstate(divide="ignore"):
            first, second, third = np.log(self.weights_)  # minus infinity takes no part
        mixed = np.logaddexp(first + log_softmax(logits / self.temperature_), second + log_softmax(logits))
        return scores.restored(np.logaddexp(mixed, third - np.log(logits.shape[1])))


def fit_mixture(truth: Floats, weight: Floats) -> tuple[Floats, Ending]:
    """Weights of three forecasts with the smallest mean log loss of their mixture, and how the search for them ended.

    `truth` (n, 3) is what each forecast gave to the true class. Each step goes to the minimum over the simplex of the
    second-order expansion, by the least of the minima over its seven faces.

    >>> truth = np.array([[.9, .5, .2], [.9, .5, .2], [.9, .5, .2], [.1, .5, .2]])
    >>> fit_mixture(truth, np.ones(4))[0].round(4).tolist()  # w_1 .9 + (1 - w_1) / 2 = 3 / 4
    [0.625, 0.375, 0.0]
    """
    share, at, tried = weight / weight.sum(), np.full(3, 1 / 3), 0
    while tried < 100:
        ratio = truth / (truth @ at)[:, None]
        slope = 1.0 - share @ ratio  # 0 where a weight is free, at least 0 where it is 0
        missed = float(np.abs(np.where(at > 0, slope, np.minimum(slope, 0.0))).max())
        step = _least(at, slope, (ratio * share[:, None]).T @ ratio) - at
        length = _length(truth @ at, truth @ step, share, float(slope @ step))
        if np.abs(step).max() <= 1e-12 or length == 0:
            break
        tried += 1
        at = np.maximum(at + length * step, 0.0)
        at /= at.sum()
    converged = missed <= FLAT
    message = "" if converged else f"the search for weights ended with conditions missed by {missed:.1e}"
    return at, Ending(converged=converged, gradient_norm=missed, iterations=tried, message=message)


def _least(at: Floats, slope: Floats, hessian: Floats) -> Floats:
    """The point of the simplex with the least slope'(x - at) + (x - at)'H(x - at) / 2."""
    best, least = at, 0.0
    for face in _FACES:
        point = _on_face(list(face), slope - hessian @ at, hessian)
        if (point >= 0).all():
            value = float(slope @ (point - at) + (point - at) @ hessian @ (point - at) / 2)
            best, least = (point, value) if value < least else (best, least)
    return best


def _on_face(face: list[int], linear: Floats, hessian: Floats) -> Floats:
    """Where linear'x + x'Hx / 2 is stationary among points of weight 1 with no weight off the face."""
    size = len(face)
    system = np.ones((size + 1, size + 1))
    system[-1, -1] = 0.0
    system[:size, :size] = hessian[np.ix_(face, face)]
    point = np.zeros(3)
    point[face] = np.linalg.lstsq(system, np.append(-linear[face], 1.0), rcond=1e-13)[0][:size]
    return point


def _length(mixed: Floats, change: Floats, share: Floats, slope: float) -> float:
    """The first of 1, 1/2, 1/4, ... of the step that lowers the loss, 0 if none does."""
    for halvings in range(30):
        length = 0.5**halvings
        inside = (mixed + length * change > 0).all()
        if inside and share @ np.log1p(length * change / mixed) >= -1e-4 * length * slope - 4e-16:
            return length
    return 0.0
