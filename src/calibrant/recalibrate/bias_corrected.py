"""Bias-corrected temperature scaling: one temperature for all logits and one intercept for each class."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats, Ints
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores
from calibrant.recalibrate.fitting.likelihood import Likelihood, Point, Rows, minimised, require_every_class, solved
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.temperature import COLDEST, HOTTEST, fit_temperature

_BEYOND = {
    1
    / COLDEST: f"temperature ended at its lower bound {COLDEST:g}: the log loss falls for ever as the temperature does",
    1 / HOTTEST: f"temperature ended at its upper bound {HOTTEST:g}: beside the intercepts the logits tell nothing",
}


@dataclass(eq=False)
class BiasCorrectedTemperatureScaling(Recalibrator):
    r"""Divide all logits by one temperature T and add an intercept to each class: softmax(z / T + b).

    T and b minimise the mean log loss, which is convex in (1 / T, b), by Newton steps; T stays between 0.001 and 1,000.
    A constant added to b changes nothing: its mean is 0. A class without rows is refused, for its intercept would run
    away. For one event this is sigmoid(z / T + c) with c the difference of the two intercepts. The likeliest class may
    change. Cost: a few products of (n, K) with itself, n K^2 each.

    References: Alexandari, Kundaje & Shrikumar (2020).

    >>> rows = [[2., 0.], [3., 0.], [0., 1.], [0., 2.], [1., 0.]]
    >>> fitted = BiasCorrectedTemperatureScaling().fit(rows, [0, 1, 1, 1, 0])
    >>> round(fitted.temperature_, 4), fitted.bias_.round(4).tolist(), fitted.certificate_.converged
    (2.0452, [-0.3944, 0.3944], True)
    """

    input: str = "logits"
    classes: Sequence[Any] | None = None
    short: ClassVar[str] = "bcts"
    of_events: ClassVar[bool] = False
    learns: ClassVar[tuple[str, ...]] = ("temperature_", "bias_")

    def _learn(self, lesson: Lesson) -> Ending:
        require_every_class(lesson, "use TemperatureScaling, or VectorScaling(l2=0.01)")
        logits = lesson.scores.logits.astype(np.float64)
        self.temperature_, self.bias_, ending = fit_bias_corrected(logits, lesson.labels, lesson.weight)
        return ending

    def require_possible(self) -> None:
        possible.numbers(self.temperature_, "temperature_", low=COLDEST, high=HOTTEST)
        possible.numbers(self.bias_, "bias_", len(self.classes_))

    def _logits(self, scores: ModelScores) -> Array:
        return scores.restored(scores.logits.astype(np.float64) / self.temperature_ + self.bias_)

    @property
    def affine(self) -> tuple[Floats, Floats]:
        """W and b."""
        return np.eye(len(self.classes_)) / self.temperature_, self.bias_


def fit_bias_corrected(logits: Floats, labels: Ints, weight: Floats) -> tuple[float, Floats, Ending]:
    """The temperature and the intercepts of the smallest mean log loss, and how the search for them ended.

    >>> logits, labels = np.zeros((4, 2)), np.array([0, 1, 1, 1])
    >>> fit_bias_corrected(logits, labels, np.ones(4))[1].round(4).tolist()  # half the log-odds of 3 to 1
    [-0.5493, 0.5493]
    """
    likelihood = TemperatureLikelihood.of(Rows.of(logits, labels, weight))
    temperature, _ = fit_temperature(logits, labels, weight)
    plain = np.append(1 / temperature, np.zeros(logits.shape[1]))
    even = likelihood.at(plain)  # intercepts that make up for the means of the logits
    start = min(likelihood.at(likelihood.moved(plain)), even, key=lambda point: point.loss)
    point, ending = minimised(likelihood, start.parameters)
    inverse = float(np.clip(point.parameters[0], 1 / HOTTEST, 1 / COLDEST))
    bias = likelihood.raw(point.parameters)[1:]
    if not ending.converged:
        hint = "use TemperatureScaling, or VectorScaling(l2=0.01)"
        ending = dataclasses.replace(ending, message=f"{ending.message}; {hint}")
    if inverse in _BEYOND:
        ending = dataclasses.replace(ending, converged=False, at_bound=("temperature",), message=_BEYOND[inverse])
    return 1 / inverse, bias - bias.mean(), ending


@dataclass(frozen=True, eq=False)
class TemperatureLikelihood(Likelihood):
    """Scores a z + b: parameters (a, b_1, ..., b_K) with a between two bounds, which may be equal."""

    bounds: tuple[float, float]
    intercepts: ClassVar[Any] = np.s_[1:]

    @classmethod
    def of(cls, rows: Rows, bounds: tuple[float, float] = (1 / HOTTEST, 1 / COLDEST)) -> TemperatureLikelihood:
        """Without a penalty."""
        none = np.zeros(rows.width + 1)
        return cls(rows, none, none, bounds)

    def sloped(self, parameters: Floats, features: Floats) -> Floats:
        """a z."""
        return features * parameters[0]

    def leaned(self, residuals: Floats, features: Floats) -> Floats:
        """The transpose of `sloped`."""
        return np.append(np.vdot(residuals, features), np.zeros(features.shape[1]))

    def step(self, point: Point) -> Floats:
        """Newton's step, or the best one that takes a to its bound, where Newton's would pass it."""
        hessian, gradient = self._hessian(point.probabilities), point.gradient
        step = solved(hessian, gradient)
        wanted = point.parameters[0] + step[0]
        inside = np.clip(wanted, *self.bounds)
        if wanted != inside:
            step[0] = inside - point.parameters[0]
            step[1:] = solved(hessian[1:, 1:], gradient[1:] + hessian[1:, 0] * step[0])
        return step

    def unmet(self, point: Point) -> Floats:
        """The gradient, less what points out of the bounds of a."""
        (least, most), inverse, slope = self.bounds, point.parameters[0], point.gradient[0]
        out = (inverse >= most and slope < 0) or (inverse <= least and slope > 0)
        return point.gradient[1:] if out else point.gradient

    def _hessian(self, probabilities: Floats) -> Floats:
        z, weight = self.rows.features, self.rows.weight
        heavy = probabilities * weight[:, None]
        around = z - np.einsum("ij,ij->i", probabilities, z)[:, None]
        hessian = np.empty((self.rows.width + 1,) * 2)
        hessian[1:, 1:] = np.diag(heavy.sum(axis=0)) - heavy.T @ probabilities
        hessian[0, 1:] = hessian[1:, 0] = np.einsum("ij,ij->j", heavy, around)
        hessian[0, 0] = np.einsum("ij,ij,ij->", heavy, around, around)
        return hessian
