"""Matrix scaling: every recalibrated logit a combination of all logits, kept close to its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.checks import number
from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores
from calibrant.recalibrate.fitting.likelihood import Rows, require_every_class
from calibrant.recalibrate.fitting.penalised_matrix import chosen_strengths, fit_matrix
from calibrant.recalibrate.recalibrator import Recalibrator


@dataclass(eq=False)
class Mixture(Recalibrator):
    """softmax(W f(z) + b) of features f of the logits, with penalties on what is off the diagonal and on b."""

    input: str = "logits"
    off_diagonal: float | None = None
    intercept: float | None = None
    classes: Sequence[Any] | None = None
    of_events: ClassVar[bool] = False
    costly: ClassVar[bool] = True
    learns: ClassVar[tuple[str, ...]] = ("weights_", "bias_", "off_diagonal_", "intercept_")

    @staticmethod
    @abstractmethod
    def _features(logits: Array) -> Floats:
        """What the matrix is applied to."""

    def _check(self) -> None:
        super()._check()
        for name, strength in (("off_diagonal", self.off_diagonal), ("intercept", self.intercept)):
            if strength is not None:
                expected = "must be None or a finite number of at least 0"
                number(strength, name, expected, lambda value: 0 <= value < np.inf)

    def _learn(self, lesson: Lesson) -> Ending:
        require_every_class(lesson, "use TemperatureScaling, or VectorScaling(l2=0.01)")
        rows = Rows.of(self._features(lesson.scores.logits), lesson.labels, lesson.weight)
        self.off_diagonal_, self.intercept_ = chosen_strengths(rows, self.off_diagonal, self.intercept)
        self.weights_, self.bias_, ending = fit_matrix(rows, self.off_diagonal_, self.intercept_)
        return ending

    def require_possible(self) -> None:
        width = len(self.classes_)
        possible.numbers(self.weights_, "weights_", width, width)
        possible.numbers(self.bias_, "bias_", width)
        for name in ("off_diagonal_", "intercept_"):
            possible.numbers(getattr(self, name), name, low=0.0)

    def _logits(self, scores: ModelScores) -> Array:
        return scores.restored(self._features(scores.logits) @ self.weights_.T + self.bias_)


class MatrixScaling(Mixture):
    r"""Make every logit a combination of all logits: softmax(W z + b), with off-diagonal and intercept regularisation.

    z are the logits as they come: a constant added to a row of them matters, and logits and log-probabilities give
    different fits. W and b minimise the convex

    .. math:: \sum_i \omega_i \big(-\ln \mathrm{softmax}(W z_i + b)_{y_i}\big)
        + \frac{\lambda}{K (K - 1)} \sum_{j \ne k} W_{jk}^2 + \frac{\mu}{K} \sum_k b_k^2

    with weights that sum to 1, :math:`\lambda` = `off_diagonal` and :math:`\mu` = `intercept`; the diagonal is free.
    A strength that is None is chosen by the log loss on held-out rows: with :math:`c` and :math:`d` in (10, 1, 0.1,
    0.01, 0.001), :math:`\lambda = c K (K - 1) T^2` and :math:`\mu = d K`, T the fitted temperature; first c = d from
    strong to weak until the loss rises, then d alone in the same way. `off_diagonal_` and `intercept_` are what was
    used. Rows are parted in three by class and, within it, by how well the true class does, in turns: no chance is
    involved, and a class that cannot be parted is never held out. Above 200 classes only one part is held out, and
    d = c.

    With both strengths 0 it overfits wherever K^2 is not far below n, and W is not unique: what changes no probability
    stays as in the identity over T. An event's z stands for the logits (0, z); the first column of W multiplies 0 and
    stays so too. A class without rows is refused, and where the free diagonal can tell classes apart without error the
    search is stopped with a warning. The certificate's gradient is in W and b + W m, m the means of z. The likeliest
    class may change.

    Cost: 4 n K^2 operations for each product with the Hessian, tens of products for each of about ten steps, K^3 for
    each step, and four arrays of (n, K) in float64. Choosing strengths fits some twenty times, though less exactly, and
    from one to the next.

    References: Guo, Pleiss, Sun & Weinberger (2017), section 4.2; Kull, Perello-Nieto, Kängsepp, Silva Filho, Song &
    Flach (2019).

    >>> rows = [[2., 0., 0.], [3., 1., 0.], [0., 1., 0.], [0., 2., 3.], [1., 0., 2.], [0., 0., 1.]]
    >>> fitted = MatrixScaling(off_diagonal=1., intercept=1.).fit(rows, [1, 0, 1, 2, 0, 2])
    >>> fitted.weights_.round(3).tolist()
    [[0.99, -0.045, 0.304], [0.32, 0.734, -0.304], [-0.32, 0.045, 0.978]]
    """

    short: ClassVar[str] = "matrix"

    @staticmethod
    def _features(logits: Array) -> Floats:
        return logits.astype(np.float64)

    @property
    def affine(self) -> tuple[Floats, Floats]:
        """W and b."""
        return self.weights_, self.bias_
