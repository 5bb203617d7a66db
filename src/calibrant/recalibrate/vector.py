"""Vector scaling: one factor and one intercept for each class."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.checks import number
from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats, Ints
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores
from calibrant.recalibrate.fitting.likelihood import (
    Likelihood,
    Point,
    Rows,
    minimised,
    require_every_class,
    solved,
    usual_temperature,
)
from calibrant.recalibrate.recalibrator import Recalibrator


@dataclass(eq=False)
class VectorScaling(Recalibrator):
    r"""Multiply the logits of each class by a factor and add an intercept: softmax(w * z + b).

    z are the logits as they come: a constant added to a row of them matters, and logits and log-probabilities give
    different fits. w and b, of either sign, minimise the convex

    .. math:: \sum_i \omega_i \big(-\ln \mathrm{softmax}(w * z_i + b)_{y_i}\big)
        + \frac{l_2}{K} \sum_k \big((w_k - 1)^2 + b_k^2\big)

    with weights that sum to 1, by Newton steps. A constant added to b changes nothing: its mean is 0. An event's z
    stands for the logits (0, z): the first factor multiplies 0 and stays at 1 / T, T the fitted temperature, or at 1
    where `l2 > 0`. With `l2=0` a class without rows is refused, for its intercept would run away, and where classes can
    be told apart without error the search is stopped with a warning; any `l2 > 0` keeps both finite. The certificate's
    gradient is in w and b + w * m, m the means of z. Cost: a few products of (n, 2K) with itself, 4 n K^2 each.

    References: Guo, Pleiss, Sun & Weinberger (2017), section 4.2.

    >>> rows = [[2., 0.], [3., 0.], [0., 1.], [0., 2.], [1., 0.], [1., 2.]]
    >>> fitted = VectorScaling().fit(rows, [0, 1, 1, 1, 0, 0])
    >>> fitted.weights_.round(4).tolist(), fitted.bias_.round(4).tolist()
    ([0.1115, 0.3319], [0.073, -0.073])
    """

    input: str = "logits"
    l2: float = 0.0
    classes: Sequence[Any] | None = None
    short: ClassVar[str] = "vector"
    of_events: ClassVar[bool] = False
    learns: ClassVar[tuple[str, ...]] = ("weights_", "bias_")

    def _check(self) -> None:
        super()._check()
        number(self.l2, "l2", "must be a finite number of at least 0", lambda l2: 0 <= l2 < np.inf)

    def _learn(self, lesson: Lesson) -> Ending:
        if self.l2 == 0:
            require_every_class(lesson, "pass l2=0.01 or use TemperatureScaling")
        logits = lesson.scores.logits.astype(np.float64)
        self.weights_, self.bias_, ending = fit_vector(logits, lesson.labels, lesson.weight, l2=self.l2)
        return ending

    def require_possible(self) -> None:
        for name in self.learns:
            possible.numbers(getattr(self, name), name, len(self.classes_))

    def _logits(self, scores: ModelScores) -> Array:
        return scores.restored(scores.logits.astype(np.float64) * self.weights_ + self.bias_)

    @property
    def affine(self) -> tuple[Floats, Floats]:
        """W and b."""
        return np.diag(self.weights_), self.bias_


def fit_vector(logits: Floats, labels: Ints, weight: Floats, *, l2: float = 0.0) -> tuple[Floats, Floats, Ending]:
    """The factors and intercepts of the smallest penalised mean log loss, and how the search for them ended.

    >>> logits, labels = np.array([[1., -1.], [1., -1.], [1., -1.], [-1., 1.]]), np.array([0, 0, 1, 1])
    >>> fit_vector(logits, labels, np.ones(4), l2=0.1)[0].round(4).tolist()
    [0.8811, 0.8811]
    """
    rows, width = Rows.of(logits, labels, weight), logits.shape[1]
    centre = np.array([np.ones(width), np.zeros(width)])
    likelihood = VectorLikelihood(rows, np.full_like(centre, l2 / width), centre)
    point, ending = minimised(likelihood, likelihood.moved(centre / usual_temperature(logits, labels, weight)))
    weights, bias = likelihood.raw(point.parameters)
    if not ending.converged:
        ending = dataclasses.replace(ending, message=f"{ending.message}; pass l2=0.01 or use TemperatureScaling")
    return weights, bias - bias.mean(), ending


@dataclass(frozen=True, eq=False)
class VectorLikelihood(Likelihood):
    """Scores w * z + b: parameters (2, K), w and b."""

    intercepts: ClassVar[Any] = 1

    def sloped(self, parameters: Floats, features: Floats) -> Floats:
        """w * z."""
        return features * parameters[0]

    def leaned(self, residuals: Floats, features: Floats) -> Floats:
        """The transpose of `sloped`."""
        return np.array([np.einsum("ij,ij->j", residuals, features), np.zeros(features.shape[1])])

    def step(self, point: Point) -> Floats:
        """Newton's step."""
        return solved(self._hessian(point.probabilities), point.gradient.ravel()).reshape(2, -1)

    def _hessian(self, probabilities: Floats) -> Floats:
        z, width = self.rows.features, self.rows.width
        root = np.sqrt(self.rows.weight)[:, None] * probabilities
        both = np.hstack([root * z, root])
        hessian = -(both.T @ both)
        heavy = probabilities * self.rows.weight[:, None]
        classes, middle = np.arange(width), self.rows.middle
        factor, intercept = 2 * self.penalty  # on w and on b - w * m, m the means of the features
        mean = np.einsum("ij,ij->j", heavy, z) - intercept * middle
        hessian[classes, classes] += np.einsum("ij,ij,ij->j", heavy, z, z) + factor + intercept * middle**2
        hessian[classes, classes + width] += mean
        hessian[classes + width, classes] += mean
        hessian[classes + width, classes + width] += heavy.sum(axis=0) + intercept
        return hessian
