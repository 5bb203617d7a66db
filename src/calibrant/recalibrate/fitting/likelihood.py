"""Likelihoods: the mean log loss of a softmax of linear scores, its gradient, and the Newton search for its minimum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import Lesson
from calibrant.recalibrate.fitting.one_vs_all import absent
from calibrant.recalibrate.temperature import fit_temperature

FLAT = 1e-8
"""A minimum is found where no entry of the gradient is larger."""
_STILL = 1e-9
"""Steps that change no score by more end the search."""
_STEPS = 100
"""Newton steps that are taken at most."""
_RIDGE = 1e-10
"""Added to a Hessian of unit diagonal: directions that change no probability are left alone."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Features (n, K) in float64 with true classes and weights that sum to 1; rows of weight 0 are left out."""

    features: Floats
    """Less their means: exactly 0 where one does not vary."""
    labels: Ints
    weight: Floats
    middle: Floats
    """The means."""

    @classmethod
    def of(cls, features: Floats, labels: Ints, weight: Floats) -> Rows:
        """Rows of positive weight."""
        some = weight > 0
        if not some.all():
            features, labels, weight = features[some], labels[some], weight[some]
        weight = weight / weight.sum()
        apart = features - features[0]
        mean = weight @ apart
        apart -= mean
        return cls(apart, labels, weight, features[0] + mean)

    @property
    def given(self) -> Floats:
        """Features as they came."""
        return self.features + self.middle

    @property
    def width(self) -> int:
        """The number of classes."""
        return self.features.shape[1]

    def of_truth(self, scores: Floats) -> Floats:
        """The score of each row's true class."""
        return scores[np.arange(len(scores)), self.labels]

    def __getitem__(self, rows: Array) -> Rows:
        weight = self.weight[rows]
        return Rows(self.features[rows], self.labels[rows], weight / weight.sum(), self.middle)


@dataclass(frozen=True, eq=False)
class Point:
    """Parameters with what the likelihood is there: the penalised mean log loss, its gradient, the probabilities."""

    parameters: Floats
    loss: float
    gradient: Floats
    probabilities: Floats
    rounding: float
    """By how much rounding may change the loss."""


@dataclass(frozen=True, eq=False)
class Likelihood(ABC):
    r"""The mean log loss of softmax(u), scores u linear in the parameters t, plus a penalty.

    .. math:: \sum_i \omega_i \Big(\ln \sum_k e^{u_{ik}} - u_{i y_i}\Big) + \sum_j c_j (t_j - m_j)^2

    with weights that sum to 1. It is convex. The penalty is on slopes and intercepts for features as they came; the
    search is for those slopes and the intercepts for features less their means, which rounding does not blur however
    far from 0 the features are. `raw` and `moved` lead from one to the other. Subclasses say what the scores are and
    how Newton's step is solved for.
    """

    rows: Rows
    penalty: Floats
    """c: one strength for each parameter, in their shape."""
    centre: Floats
    """m: where the penalty is 0."""
    intercepts: ClassVar[Any]
    """Their place among the parameters."""

    @abstractmethod
    def sloped(self, parameters: Floats, features: Floats) -> Floats:
        """Scores (n, K) of features, without intercepts."""

    @abstractmethod
    def leaned(self, residuals: Floats, features: Floats) -> Floats:
        """The transpose of `sloped`: 0 for intercepts."""

    @abstractmethod
    def step(self, point: Point) -> Floats:
        """Newton's step, or nearly."""

    def unmet(self, point: Point) -> Floats:
        """The gradient, less what points out of the parameters' bounds."""
        return point.gradient

    @final
    def scores(self, parameters: Floats) -> Floats:
        """Scores (n, K) of the rows."""
        scores = self.sloped(parameters, self.rows.features)
        scores += parameters[self.intercepts]
        return scores

    @final
    def gathered(self, residuals: Floats) -> Floats:
        """What residuals (n, K) of the scores mean for the parameters: the transpose of `scores`."""
        sums = self.leaned(residuals, self.rows.features)
        sums[self.intercepts] = residuals.sum(axis=0)
        return sums

    @final
    def raw(self, parameters: Floats) -> Floats:
        """Parameters for features as they came."""
        raw = parameters.copy()
        raw[self.intercepts] -= self.sloped(parameters, self.rows.middle[None])[0]
        return raw

    @final
    def moved(self, raw: Floats) -> Floats:
        """Parameters for features less their means."""
        moved = raw.copy()
        moved[self.intercepts] += self.sloped(raw, self.rows.middle[None])[0]
        return moved

    @final
    def pulled(self, gradient: Floats) -> Floats:
        """A gradient in raw parameters as one in those of the search: the transpose of `raw`."""
        return gradient - self.leaned(gradient[self.intercepts][None], self.rows.middle[None])

    @final
    def at(self, parameters: Floats) -> Point:
        """Loss, gradient and probabilities."""
        rows, away = self.rows, self.raw(parameters) - self.centre
        shifted = self.scores(parameters)
        top = shifted.max(axis=1)
        shifted -= top[:, None]
        truth = rows.of_truth(shifted)
        raised = np.exp(shifted, out=shifted)
        total = raised.sum(axis=1)
        probabilities = np.divide(raised, total[:, None], out=raised)
        loss = float(rows.weight @ (np.log(total) - truth) + np.sum(self.penalty * away**2))
        residuals = probabilities * rows.weight[:, None]
        residuals[np.arange(len(residuals)), rows.labels] -= rows.weight
        gradient = self.gathered(residuals) + self.pulled(2 * self.penalty * away)
        rounding = 4e-16 * max(1.0, abs(loss), float(rows.weight @ np.abs(top)))
        return Point(parameters, loss, gradient, probabilities, rounding)


def minimised(likelihood: Likelihood, start: Floats, *, spare: float = 0.0) -> tuple[Point, Ending]:
    """The smallest loss by damped Newton steps, and how the search ended.

    It ends where a step would change no score by more than 1e-9 and the gradient is flat, or would gain no more than
    `spare`, or where rounding hides the rest. Where the loss falls for ever and the parameters grow without end, steps
    keep changing scores by about 1 while the gain shrinks by no more than a constant factor: the search then stops when
    no more than 1e-10 is left to gain, and has not converged.
    """
    point, tried, before = likelihood.at(start), 0, 0.0
    while tried < _STEPS:
        step = likelihood.step(point)
        reach, gain = _reach(likelihood, step), -float(np.sum(point.gradient * step))
        if gain <= spare or (reach <= _STILL and _largest(likelihood, point) <= 0.1 * FLAT):
            break
        if gain <= 1e-10 and reach > 0.1 and gain > 0.1 * before:
            return point, _ended(likelihood, point, tried, runaway=True)
        tried += 1
        ahead = _ahead(likelihood, point, step, gain)
        if ahead is None:
            break
        point, before = ahead, gain
    return point, _ended(likelihood, point, tried, runaway=False)


def solved(hessian: Floats, gradient: Floats) -> Floats:
    """Newton's step for a Hessian that may be singular.

    >>> solved(np.array([[2., -2.], [-2., 2.]]), np.array([1., -1.])).round(6).tolist()
    [-0.25, 0.25]
    """
    diagonal = np.sqrt(np.maximum(np.diag(hessian), 0.0))
    scale = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 1e-150)
    unit = hessian * scale * scale[:, None]
    unit[np.diag_indices_from(unit)] += _RIDGE
    step: Floats = np.linalg.solve(unit, gradient * scale).astype(np.float64)
    return -step * scale


def usual_temperature(features: Floats, labels: Ints, weight: Floats) -> float:
    """The temperature at which a search starts: the best one, or half the range of a row where there is none."""
    temperature, ending = fit_temperature(features, labels, weight)
    if not ending.at_bound:
        return temperature
    return float(np.sqrt(np.mean(np.ptp(features, axis=1) ** 2)) / 2) or 1.0


def require_every_class(lesson: Lesson, hint: str) -> None:
    """Refuse labels without a class: nothing would keep its intercept finite."""
    missing = absent(lesson)
    if missing:
        raise CalibrationInputError("y", "must have rows of every class", got=f"none of {missing}", hint=hint)


def _reach(likelihood: Likelihood, step: Floats) -> float:
    """The largest change of a score against that of the true class."""
    change = likelihood.scores(step)
    change -= likelihood.rows.of_truth(change)[:, None]
    return float(max(change.max(), -change.min()))


def _ahead(likelihood: Likelihood, point: Point, step: Floats, gain: float) -> Point | None:
    """The first of the whole step, its half, its quarter, ... that lowers the loss; none if rounding hides the rest."""
    for halvings in range(30):
        share = 0.5**halvings
        ahead = likelihood.at(point.parameters + share * step)
        if ahead.loss <= point.loss - 1e-4 * share * gain + point.rounding:
            stuck = gain <= point.rounding and _largest(likelihood, ahead) >= _largest(likelihood, point)
            return None if stuck else ahead
    return None


def _largest(likelihood: Likelihood, point: Point) -> float:
    return float(np.abs(likelihood.unmet(point)).max())


def _ended(likelihood: Likelihood, point: Point, tried: int, runaway: bool) -> Ending:
    largest = _largest(likelihood, point)
    message = ""
    if runaway:
        message = (
            "the log loss falls for ever as the parameters grow, for some classes can be told apart without error: "
            "the search was stopped when less than 1e-10 was left to gain"
        )
    elif largest > FLAT:
        message = f"the search ended after {tried} steps with a gradient of {largest:.1e}, above {FLAT:g}"
    return Ending(converged=not message, gradient_norm=largest, iterations=tried, message=message)
