"""Vector scaling: one factor and one intercept for each class."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.checks import number
from calibrant.recalibrate.certificate import Ending
from calibrant.recalibrate.likelihood import (
    Likelihood,
    Point,
    Rows,
    centred,
    minimised,
    require_every_class,
    solved,
    usual_temperature,
)
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.scores import Lesson, Scores, softmax
from calibrant.totals import Floats, Ints


@dataclass(eq=False)
class VectorScaling(Recalibrator):
    r"""Multiply the logits of each class by a factor and add an intercept: softmax(w * z + b).

    z are the logits less the mean of their row, so that a constant added to a row, which no probability shows, changes
    nothing. w and b, of either sign, minimise the convex

    .. math:: \sum_i \omega_i \big(-\ln \mathrm{softmax}(w * z_i + b)_{y_i}\big)
        + \frac{l_2}{K} \sum_k \big((w_k - 1)^2 + b_k^2\big)

    with weights that sum to 1, by Newton steps. A constant added to b changes nothing: its mean is 0; with two classes
    only the sum of both factors counts: they are equal. With `l2=0` a class without rows is refused, for its intercept
    would run away, and where classes can be told apart without error the search is stopped with a warning; any `l2 > 0`
    keeps both finite. Cost: a few products of (n, 2K) with itself, 4 n K^2 each.

    References: Guo, Pleiss, Sun & Weinberger (2017), section 4.2, there on logits as they come.

    >>> rows = [[2., 0.], [3., 0.], [0., 1.], [0., 2.], [1., 0.]]
    >>> fitted = VectorScaling().fit(rows, [0, 1, 1, 1, 0])
    >>> fitted.weights_.round(4).tolist(), fitted.bias_.round(4).tolist()
    ([0.4889, 0.4889], [-0.3944, 0.3944])
    """

    input: str = "logits"
    l2: float = 0.0
    classes: Sequence[Any] | None = None
    learns: ClassVar[tuple[str, ...]] = ("weights_", "bias_")

    def _check(self) -> None:
        super()._check()
        number(self.l2, "l2", "must be a finite number of at least 0", lambda l2: 0 <= l2 < np.inf)

    def _learn(self, given: Lesson) -> Ending:
        if self.l2 == 0:
            require_every_class(given, "pass l2=0.01 or use TemperatureScaling")
        made = fit_vector(centred(given.scores.logits), given.labels, given.weight, l2=self.l2)
        self.weights_, self.bias_, ending = made
        return ending

    def _map(self, given: Scores) -> Floats:
        return given.restored(softmax(centred(given.logits) * self.weights_ + self.bias_))


def fit_vector(logits: Floats, labels: Ints, weight: Floats, *, l2: float = 0.0) -> tuple[Floats, Floats, Ending]:
    """The factors and intercepts of the smallest penalised mean log loss, and how the search for them ended.

    >>> logits, labels = np.array([[1., -1.], [1., -1.], [1., -1.], [-1., 1.]]), np.array([0, 0, 1, 1])
    >>> fit_vector(logits, labels, np.ones(4), l2=0.1)[0].round(4).tolist()
    [0.8811, 0.8811]
    """
    rows, width = Rows.of(logits, labels, weight), logits.shape[1]
    centre = np.repeat([1.0, 0.0], width)
    likelihood = Scaled(rows, np.full(2 * width, l2 / width), centre)
    start = centre / usual_temperature(logits, labels, weight)
    point, ending = minimised(likelihood, start)
    weights, bias = point.parameters.reshape(2, width)
    if width == 2:
        weights = np.full(2, weights.mean())
    if not ending.converged:
        ending = dataclasses.replace(ending, message=f"{ending.message}; pass l2=0.01 or use TemperatureScaling")
    return weights, bias - bias.mean(), ending


@dataclass(frozen=True, eq=False)
class Scaled(Likelihood):
    """Scores w * z + b: parameters (w_1, ..., w_K, b_1, ..., b_K)."""

    def scores(self, parameters: Floats) -> Floats:
        """Scores (n, K) of the features."""
        made = self.rows.features * parameters[: self.rows.width]
        made += parameters[self.rows.width :]
        return made

    def gathered(self, residuals: Floats) -> Floats:
        """The transpose of `scores`."""
        return np.concatenate([np.einsum("ij,ij->j", residuals, self.rows.features), residuals.sum(axis=0)])

    def step(self, point: Point) -> Floats:
        """Newton's step."""
        return solved(self._hessian(point.probabilities), point.gradient)

    def _hessian(self, probabilities: Floats) -> Floats:
        z, width = self.rows.features, self.rows.width
        root = np.sqrt(self.rows.weight)[:, None] * probabilities
        both = np.hstack([root * z, root])
        made = -(both.T @ both)
        heavy = probabilities * self.rows.weight[:, None]
        classes = np.arange(width)
        mean = np.einsum("ij,ij->j", heavy, z)
        made[classes, classes] += np.einsum("ij,ij,ij->j", heavy, z, z)
        made[classes, classes + width] += mean
        made[classes + width, classes] += mean
        made[classes + width, classes + width] += heavy.sum(axis=0)
        return made + np.diag(2 * self.penalty)
