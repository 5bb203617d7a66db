"""Dirichlet calibration: every recalibrated logit a combination of all log-probabilities, kept close to its own."""

from __future__ import annotations

from typing import ClassVar

from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting.lessons import log_softmax
from calibrant.recalibrate.matrix import Mixture


class DirichletCalibration(Mixture):
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

    short: ClassVar[str] = "dirichlet"

    @staticmethod
    def _features(logits: Array) -> Floats:
        return log_softmax(logits)
