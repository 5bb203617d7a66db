"""Temperature scaling: one number that all logits are divided by."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant import kernels
from calibrant.checks import word
from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Certificate, Ending
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recipes import ECE

COLDEST, HOTTEST = 1e-3, 1e3
"""Temperatures that are looked at."""
GRID = np.arange(50, 200) / 100
"""Temperatures among which the calibration error is minimised."""
_FIRST = 512, 4096
"""Rows of the samples on which the search in a large matrix starts, one after the other."""

Moments = Callable[[float], tuple[float, float, float]]
"""A mean log loss and its first two derivatives, at an inverse temperature."""


@dataclass(eq=False)
class TemperatureScaling(Recalibrator):
    r"""Divide all logits by one temperature T: softmax(z / T); for one event sigmoid(z / T).

    T minimises the mean log loss, which is convex in 1 / T, by Newton steps kept inside a bracket; it is sought between
    0.001 and 1,000, and a warning tells when it ends at either: rows that are all right want T = 0, rows no better than
    chance want T without end. Where all logits of each row are equal, T is 1. With `objective="ece"` T is the first of
    0.5, 0.51, ..., 1.99 with the smallest ECE (15 equal-width bins; for one event, of its two columns), with a warning
    at either end. The likeliest class does not change.

    References: Guo, Pleiss, Sun & Weinberger (2017), section 4.2.

    >>> fitted = TemperatureScaling().fit([[2., 0.], [3., 0.], [0., 1.], [0., 2.]], [0, 1, 1, 1])
    >>> round(fitted.temperature_, 4), fitted.certificate_.converged
    (4.3809, True)
    """

    input: str = "logits"
    objective: str = "nll"
    classes: Sequence[Any] | None = None
    on_device: ClassVar[bool] = True
    short: ClassVar[str] = "temperature"
    learns: ClassVar[tuple[str, ...]] = ("temperature_",)

    def _check(self) -> None:
        super()._check()
        word(self.objective, "objective", "nll", "ece")

    def _learn(self, lesson: Lesson) -> Ending:
        logits = lesson.scores.logits
        if self.objective == "ece":
            self.temperature_, ending = fit_on_grid(np.asarray(logits), np.asarray(lesson.labels), lesson.weight)
            return ending
        self.temperature_, certificate = fit_temperature(logits, lesson.labels, lesson.weight)
        return certificate if self.input == "logits" else certificate.ending  # logits of probabilities were raised

    def require_possible(self) -> None:
        possible.numbers(self.temperature_, "temperature_", low=COLDEST, high=HOTTEST)

    def _logits(self, scores: ModelScores) -> Array:
        logits = scores.logits
        return scores.restored(logits / logits.dtype.type(self.temperature_))

    @property
    def affine(self) -> tuple[Floats, Floats]:
        """W and b."""
        return np.eye(len(self.classes_)) / self.temperature_, np.zeros(len(self.classes_))


def fit_temperature(logits: Array, labels: Ints, weight: Floats) -> tuple[float, Certificate]:
    """The temperature of the smallest mean log loss, and how the search for it ended.

    >>> temperature, ending = fit_temperature(np.array([[1., 0.], [1., 0.], [1., 0.]]), np.array([0, 0, 1]), np.ones(3))
    >>> round(temperature, 9), ending.converged  # 1 / ln 2
    (1.442695041, True)
    """
    moments, start = _moments(logits, labels, weight), 1.0
    predicted, largest, others, _ = kernels.beside(logits).logits_survey(logits)[2:]
    behind = largest - logits[np.arange(len(labels)), labels]
    separable = bool((behind <= 0)[weight > 0].all())
    flat = separable and bool((largest <= logits.min(axis=1))[weight > 0].all())
    if separable and not flat:
        start = 1 / COLDEST
    elif len(logits) >= 4 * _FIRST[-1]:
        for count in _FIRST:
            some = slice(None, None, len(logits) // count)
            end, _ = _descend(_moments(logits[some], labels[some], weight[some]), start, 1e-3)
            start = end if COLDEST < 1 / end < HOTTEST else 1.0  # a few rows may all be right
    inverse, tried = (start, 0) if separable else _descend(moments, start, _tolerance(logits))
    at_bound, message = _bound(inverse, separable, moments)
    accuracy = float(weight @ (predicted == labels) / weight.sum())
    return 1 / inverse, Certificate(
        converged=not at_bound,
        gradient_norm=abs(moments(inverse)[1]),
        iterations=tried,
        at_bound=at_bound,
        message=message,
        n=len(labels),
        log_loss_before=float(weight @ (np.log1p(others) + behind) / weight.sum()),
        log_loss_after=moments(inverse)[0],
        accuracy_before=accuracy,
        accuracy_after=accuracy,
    )


def fit_on_grid(logits: Array, labels: Ints, weight: Floats) -> tuple[float, Ending]:
    """The temperature of the grid that `best_on_grid` finds, and whether it is one of the ends.

    >>> temperature, ending = fit_on_grid(np.array([[1., 0.], [1., 0.]]), np.array([0, 0]), np.ones(2))
    >>> temperature, ending.at_bound
    (0.5, ('temperature',))
    """
    temperature = best_on_grid(logits, labels, weight)
    if temperature not in (GRID[0], GRID[-1]):
        return temperature, Ending(iterations=len(GRID))
    message = f"temperature ended at the end of its grid, {temperature:g}"
    return temperature, Ending(iterations=len(GRID), at_bound=("temperature",), message=message)


def best_on_grid(logits: Array, labels: Ints, weight: Floats) -> float:
    """The first temperature of the grid whose ECE is the smallest.

    >>> best_on_grid(np.array([[1., 0.], [1., 0.], [1., 0.]]), np.array([0, 0, 1]), np.ones(3))
    1.44
    """
    shifted = logits - logits.max(axis=1, keepdims=True)
    hits = (logits.argmax(axis=1) == labels).astype(np.int64)
    heavy = None if (weight == 1).all() else weight
    errors = []
    for temperature in GRID:
        confidence = 1.0 / np.exp(shifted / temperature, dtype=np.float64).sum(axis=1)
        errors.append(ECE(Predictions.from_confidence(hits, confidence, sample_weight=heavy, copy=False)).value)
    return float(GRID[int(np.argmin(errors))])


def _moments(logits: Array, labels: Ints, weight: Floats) -> Moments:
    @functools.cache
    def moments(inverse: float) -> tuple[float, float, float]:
        loss, slope, curvature = (
            float(weight @ each / weight.sum()) for each in kernels.beside(logits).tempered(logits, labels, inverse)
        )
        return loss, slope, curvature

    return moments


def _tolerance(logits: Array) -> float:
    """The relative step below which the search ends: what float32 can tell, where the kernel computes in it."""
    in_float32 = logits.dtype == np.float32 and (logits.size > 1 << 22 or not isinstance(logits, np.ndarray))
    return 1e-6 if in_float32 else 1e-10


def _descend(moments: Moments, at: float, tolerance: float) -> tuple[float, int]:
    """The inverse temperature where the slope is 0, or the bound it points beyond; and how many were tried."""
    low, high = 1 / HOTTEST, 1 / COLDEST
    for tried in range(1, 200):
        _, slope, curvature = moments(at)
        low, high = (at, high) if slope < 0 else (low, at)
        step = -slope / curvature if curvature > 0 else math.copysign(math.inf, -slope)
        if abs(step) <= tolerance * at or low >= high * (1 - 1e-15):
            return at, tried
        at = _inside(at + step, low, high, moments)
    return at, tried


def _inside(wanted: float, low: float, high: float, moments: Moments) -> float:
    """The step, if it stays in the bracket; else the bound, where it has not been tried, or the middle."""
    if low < wanted < high:
        return wanted
    if wanted >= high and high == 1 / COLDEST and moments(high)[1] <= 0:
        return high
    if wanted <= low and low == 1 / HOTTEST and moments(low)[1] >= 0:
        return low
    return math.sqrt(low * high)


def _bound(inverse: float, separable: bool, moments: Moments) -> tuple[tuple[str, ...], str]:
    """Whether the search ended at a bound, and what that means."""
    if COLDEST < 1 / inverse < HOTTEST:
        return (), ""
    side, bound = ("lower", COLDEST) if inverse > 1 else ("upper", HOTTEST)
    if separable:
        why = "the true class leads in every row, and the log loss falls for ever as the temperature does"
    elif moments(0.0)[1] >= 0:
        why = "on average the true classes have no higher logits than the others"
    else:
        why = f"the scale of the logits lies outside {COLDEST:g} to {HOTTEST:g}"
    return ("temperature",), f"temperature ended at its {side} bound {bound:g}: {why}"
