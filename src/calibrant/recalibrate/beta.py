"""Beta calibration: logistic regression of an event on ln p and -ln(1 - p), with slopes that keep the order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.door.logs import sigmoid
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import LARGEST, Lesson, ModelScores, logarithms
from calibrant.recalibrate.fitting.one_vs_all import Event, events, gathered, logits_of, mapped, together
from calibrant.recalibrate.platt import endless, fit_logistic, one_sided, parting
from calibrant.recalibrate.recalibrator import Recalibrator


@dataclass(eq=False)
class BetaCalibration(Recalibrator):
    r"""Map the probability p of an event to sigmoid(a ln p - b ln(1 - p) + c); classes one against all (`one_vs_all`).

    a, b >= 0 and c minimise the weighted mean log loss. They are those of a logistic regression; if a slope comes out
    negative, it is 0 and the others are sought again. The order of scores is kept: the map does not fall. With a = b it
    is Platt scaling, with a = b = 1 and c = 0 the identity. Logarithms are taken of the log-odds z,
    :math:`\ln p = -\ln(1 + e^{-z})` and :math:`-\ln(1 - p) = \ln(1 + e^z)`: from logits nothing is lost near 0 or 1;
    probabilities p and 1 - p are raised to 1e-12.

    Edges: where a threshold parts the outcomes, no slopes are steep enough; the search ends when the gradient is 1e-12
    of what it could be, with a warning. Where only one outcome occurs, a = b = 0 and the probability is 1 / (n + 2) or
    (n + 1) / (n + 2), with a warning. A logarithm that does not vary keeps the slope 1. Linear in the rows.

    Attributes: `a_`, `b_` and `c_`, numbers for an event, arrays for classes. The gradient of the certificate is that
    of the loss when both logarithms are scaled to [-1, 1].

    References: Kull, Silva Filho & Flach (2017).

    >>> p, happened = [.1, .1, .5, .5, .9, .9], [0, 0, 0, 1, 1, 0]
    >>> fitted = BetaCalibration("probabilities").fit(p, happened)
    >>> round(fitted.a_, 2), fitted.b_, fitted.predict_proba([.1, .5, .9]).round(3).tolist()
    (1.67, 0.0, [0.037, 0.361, 0.602])
    """

    input: str = "logits"
    classes: Sequence[Any] | None = None
    short: ClassVar[str] = "beta"
    learns: ClassVar[tuple[str, ...]] = ("a_", "b_", "c_")

    def _learn(self, lesson: Lesson) -> Ending:
        a, b, c, endings = zip(*[fit_beta(event) for event in events(lesson, lesson.scores.log_odds)], strict=True)
        self.a_, self.b_, self.c_ = gathered(a), gathered(b), gathered(c)
        return together(endings, lesson.classes)

    def require_possible(self) -> None:
        shape = () if self.is_event else (len(self.classes_),)
        for name in self.learns:
            possible.numbers(getattr(self, name), name, *shape, low=-LARGEST if name == "c_" else 0.0, high=LARGEST)

    def _map(self, scores: ModelScores) -> Floats:
        return mapped(scores, scores.log_odds, beta_curve, self.a_, self.b_, self.c_)

    def _logits(self, scores: ModelScores) -> Floats:
        return logits_of(scores, scores.log_odds, beta_odds, self.a_, self.b_, self.c_)


def beta_odds(log_odds: Floats, a: float, b: float, c: float) -> Floats:
    """a ln p - b ln(1 - p) + c at the log-odds of p, within the range of floats.

    >>> beta_odds(np.array([0., 1e308, -1e308]), 2., 2., 1.).tolist()
    [1.0, 1.7976931348623157e+308, -1.7976931348623157e+308]
    """
    happened, failed = logarithms(log_odds)
    with np.errstate(over="ignore"):  # only one of the logarithms is ever large
        return np.clip(a * happened + b * failed + c, -LARGEST, LARGEST)


def beta_curve(log_odds: Floats, a: float, b: float, c: float) -> Floats:
    """sigmoid(a ln p - b ln(1 - p) + c) at the log-odds of p.

    >>> beta_curve(np.array([0., 1e308, -1e308]), 2., 2., 0.).tolist()
    [0.5, 1.0, 0.0]
    """
    return sigmoid(beta_odds(log_odds, a, b, c))


def fit_beta(event: Event) -> tuple[float, float, float, Ending]:
    """a, b, c of the smallest log loss, and how the search ended.

    >>> event = Event(np.array([0., 0., 0., 1., 1., 1.]), np.array([0., 0., 1., 0., 1., 1.]), np.ones(6))
    >>> a, b, c, ending = fit_beta(event)
    >>> beta_curve(np.array([0., 1.]), a, b, c).round(6).tolist()  # two scores: their rates
    [0.333333, 0.666667]
    """
    if event.one_sided:
        return 0.0, 0.0, *one_sided(event)
    slopes, intercept, ending = _best(logarithms(event.scores), event)
    if parting(event) == 1:
        ending = endless(ending, "slope", max(slopes), "PlattScaling(smooth_targets=True) gives an end")
    return *slopes, intercept, ending


def _best(features: Floats, event: Event) -> tuple[tuple[float, float], float, Ending]:
    """The regression on both features or, if a slope is negative, the best of those that leave features out."""
    fit = _regression(features, event, [0, 1])
    if min(fit[1]) < 0:
        fewer = (_regression(features, event, kept) for kept in ([0], [1], []))
        fit = min((other for other in fewer if min(other[1]) >= 0), key=lambda other: other[0])
    return fit[1:]


def _regression(features: Floats, event: Event, kept: list[int]) -> tuple[float, tuple[float, float], float, Ending]:
    """Loss, both slopes, intercept and ending of the regression on some of the features."""
    fitted, intercept, loss, ending = fit_logistic(features[kept], event.outcomes, event.weight)
    slopes = dict(zip(kept, fitted, strict=True))
    return loss, (slopes.get(0, 0.0), slopes.get(1, 0.0)), intercept, ending
