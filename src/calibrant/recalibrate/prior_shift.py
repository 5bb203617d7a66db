"""Prior shift: one intercept for each class, for classes that have become more or less frequent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.bias_corrected import TemperatureLikelihood
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores
from calibrant.recalibrate.fitting.likelihood import Rows, minimised, require_every_class
from calibrant.recalibrate.recalibrator import Recalibrator


@dataclass(eq=False)
class PriorShift(Recalibrator):
    r"""Add an intercept to each class and nothing else: softmax(z + b).

    It undoes a known change of prevalence: a model that was trained on classes of the shares :math:`\pi` (after
    re-weighting or down-sampling, say) is corrected for shares :math:`\pi'` by

    .. math:: b_k = \ln \pi'_k - \ln \pi_k

    `fitted_prevalence` and `true_prevalence` are these shares: a positive number for each class (shares or counts), or,
    for an event, its probability, which then holds for each of several independent labels. The rows of `fit` say what
    classes there are; their labels change nothing. Without the two, b minimises the log loss of the rows, by Newton
    steps: mean forecasts then equal the shares of classes among the rows. A class without rows is then refused, for its
    intercept would run away. A constant added to b changes nothing: its mean is 0. The order of scores of an event is
    kept; of classes the likeliest may change.

    Attributes: `bias_`, (K,); for an event the intercepts of (not, so).

    References: Elkan (2001), theorem 2; Saerens, Latinne & Decaestecker (2002), equation 2.4.

    >>> p, happened = [.2, .5, .5, .8], [0, 0, 1, 1]
    >>> shift = PriorShift("probabilities", fitted_prevalence=.5, true_prevalence=.1).fit(p, happened)
    >>> shift.predict_proba([.5, .9]).round(4).tolist()  # odds of 1 and 9, divided by 9
    [0.1, 0.5]
    >>> learnt = PriorShift("probabilities").fit([.2, .5, .5, .8], [0, 0, 0, 1])
    >>> float(learnt.predict_proba([.2, .5, .5, .80]).mean().round(6))
    0.25
    """

    input: str = "logits"
    fitted_prevalence: Any = None
    true_prevalence: Any = None
    classes: Sequence[Any] | None = None
    short: ClassVar[str] = "prior_shift"
    learns: ClassVar[tuple[str, ...]] = ("bias_",)

    def _check(self) -> None:
        super()._check()
        if (self.fitted_prevalence is None) != (self.true_prevalence is None):
            expected = "must be given with true_prevalence, or neither"
            raise CalibrationInputError("fitted_prevalence", expected, got="one of them")

    def _learn(self, lesson: Lesson) -> Ending:
        ending = Ending()
        if self.fitted_prevalence is None:
            require_every_class(lesson, "pass fitted_prevalence and true_prevalence, or use TemperatureScaling")
            bias, ending = _learnt(lesson)
        else:
            bias = _logarithms(self.true_prevalence, "true_prevalence", lesson)
            bias = bias - _logarithms(self.fitted_prevalence, "fitted_prevalence", lesson)
        self.bias_ = bias - bias.mean()
        return ending

    def require_possible(self) -> None:
        possible.numbers(self.bias_, "bias_", len(self.classes_))

    def _logits(self, scores: ModelScores) -> Array:
        return scores.restored(scores.logits.astype(np.float64) + self.bias_)

    @property
    def affine(self) -> tuple[Floats, Floats]:
        """W and b."""
        return np.eye(len(self.bias_)), self.bias_


def _learnt(lesson: Lesson) -> tuple[Floats, Ending]:
    """The intercepts of the smallest mean log loss, and how the search for them ended."""
    rows = Rows.of(lesson.scores.logits.astype(np.float64), lesson.labels, lesson.weight)
    likelihood = TemperatureLikelihood.of(rows, bounds=(1.0, 1.0))
    point, ending = minimised(likelihood, likelihood.moved(np.append(1.0, np.zeros(rows.width))))
    return likelihood.raw(point.parameters)[1:], ending


def _logarithms(prevalence: Any, name: str, lesson: Lesson) -> Floats:
    """Logarithms of the share of each class; of an event (not, so)."""
    shares = np.asarray(prevalence, np.float64)
    if shares.ndim == 0 and lesson.scores.event:
        shares = np.array([1.0 - shares, shares])
    if shares.shape != (lesson.width,) or not (np.isfinite(shares) & (shares > 0)).all():
        wanted = "a probability between 0 and 1" if lesson.scores.event else f"{lesson.width} positive numbers"
        raise CalibrationInputError(name, f"must be {wanted}", got=str(prevalence))
    return np.log(shares)
