"""Dirichlet calibration: every recalibrated logit a combination of all log-probabilities, kept close to its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.recalibrate.certificate import Ending
from calibrant.recalibrate.likelihood import Rows, log_softmax, require_every_class
from calibrant.recalibrate.matrix import check_strengths, chosen_strengths, fit_matrix
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.scores import Lesson, Scores, softmax
from calibrant.totals import Floats


@dataclass(eq=False)
class DirichletCalibration(Recalibrator):
    r"""Make every logit a combination of all log-probabilities: softmax(W ln p + b), with p = softmax(z).

    It is the right map where the forecasts of each class follow a Dirichlet distribution. Penalties, their choice, cost
    and edges are those of `MatrixScaling`, with ln p in the place of z. Probabilities below 1e-12 count as that where
    they are given as such; from logits, ln p is as it is. For one event W ln(1 - p, p) + b is beta calibration without
    its bounds.

    References: Kull, Perello-Nieto, Kängsepp, Silva Filho, Song & Flach (2019).

    >>> rows = [[2., 0., 0.], [3., 1., 0.], [0., 1., 0.], [0., 2., 3.], [1., 0., 2.], [0., 0., 1.]]
    >>> fitted = DirichletCalibration(off_diagonal=1., intercept=1.).fit(rows, [1, 0, 1, 2, 0, 2])
    >>> fitted.weights_.round(3).tolist()
    [[1.001, -0.144, 0.242], [0.257, 0.836, -0.242], [-0.257, 0.144, 2.049]]
    """

    input: str = "logits"
    off_diagonal: float | None = None
    intercept: float | None = None
    classes: Sequence[Any] | None = None
    learns: ClassVar[tuple[str, ...]] = ("weights_", "bias_", "off_diagonal_", "intercept_")

    def _check(self) -> None:
        super()._check()
        check_strengths(self.off_diagonal, self.intercept)

    def _learn(self, given: Lesson) -> Ending:
        require_every_class(given, "use TemperatureScaling, or VectorScaling(l2=0.01)")
        rows = Rows.of(log_softmax(given.scores.logits), given.labels, given.weight)
        self.off_diagonal_, self.intercept_ = chosen_strengths(rows, self.off_diagonal, self.intercept)
        self.weights_, self.bias_, ending = fit_matrix(rows, self.off_diagonal_, self.intercept_)
        return ending

    def _map(self, given: Scores) -> Floats:
        return given.restored(softmax(log_softmax(given.logits) @ self.weights_.T + self.bias_))
