"""Platt scaling: logistic regression of an event on its log-odds, or of a class on its logit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.checks import flag, word
from calibrant.door.logs import sigmoid
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import LARGEST, Lesson, ModelScores
from calibrant.recalibrate.fitting.one_vs_all import Event, events, gathered, logits_of, mapped, together
from calibrant.recalibrate.recalibrator import Recalibrator

SPREAD = 1e-12
"""Scores no further than this from their middle are taken to be equal."""
_STEPS = 200
"""Newton steps at most; ten are many, and thirty where the scores part the outcomes."""


@dataclass(eq=False)
class PlattScaling(Recalibrator):
    r"""Map the score z of an event to sigmoid(a z + b); classes one against all (`one_vs_all`).

    Slope a and intercept b minimise the weighted mean log loss

    .. math:: \frac{\sum_i w_i \big( \ln(1 + e^{a z_i + b}) - t_i (a z_i + b) \big)}{\sum_i w_i}

    where t_i is 1 or 0 as the event came true or not; with `smooth_targets`, it is (n+ + 1) / (n+ + 2) or 1 / (n- + 2),
    n+ and n- being the weights of the rows in which it did and did not. The slope is negative, and the order of
    scores reversed, where higher scores came true less often.

    With `scores="log_odds"`, z_k is the log-odds of class k against all others, from logits or probabilities, so that a
    calibrated model stays as it is: a = 1, b = 0. With `scores="logits"`, z_k is the logit of class k itself, which the
    other logits do not move: what Platt's method is where each class has a score of its own, such as the margin of a
    support vector machine. It needs `input="logits"`. Of one event both are the same.

    Edges: where a threshold parts the outcomes, no slope is steep enough; the search ends when the gradient is 1e-12 of
    what it could be, with a warning. Where only one outcome occurs, the event gets the probability that smoothed
    targets have, with a warning: a = 0, and b is ln(n + 1) or -ln(n + 1). Where all scores are equal, a = 1.
    Newton's method with a line search: linear in the rows.

    Attributes: `slope_` and `intercept_`, numbers for an event, arrays for classes. The gradient of the certificate is
    that of the loss when the scores are scaled to [-1, 1].

    References: Platt (1999), section 2; Lin, Lin & Weng (2007); Zadrozny & Elkan (2002) for classes one against all.

    >>> fitted = PlattScaling().fit([0., 0., 0., 1., 1., 1.], [0, 0, 1, 0, 1, 1])  # rates 1/3 and 2/3
    >>> round(fitted.slope_, 6), round(fitted.intercept_, 6), fitted.predict_proba([0., 1.]).round(4).tolist()
    (1.386294, -0.693147, [0.3333, 0.6667])
    """

    input: str = "logits"
    smooth_targets: bool = False
    classes: Sequence[Any] | None = None
    scores: str = "log_odds"
    later: ClassVar[tuple[str, ...]] = ("scores",)
    short: ClassVar[str] = "platt"
    learns: ClassVar[tuple[str, ...]] = ("slope_", "intercept_")

    def _check(self) -> None:
        super()._check()
        flag(self.smooth_targets, "smooth_targets")
        word(self.scores, "scores", "log_odds", "logits")
        if self.scores == "logits" and self.input != "logits":
            hint = 'scores="log_odds" takes log-odds of probabilities'
            raise CalibrationInputError("scores", 'needs input="logits" to be "logits"', got=self.input, hint=hint)

    def _learn(self, lesson: Lesson) -> Ending:
        fits = [fit_platt(event, smooth=self.smooth_targets) for event in events(lesson, self._scores(lesson.scores))]
        slopes, intercepts, endings = zip(*fits, strict=True)
        self.slope_, self.intercept_ = gathered(slopes), gathered(intercepts)
        return together(endings, lesson.classes)

    def require_possible(self) -> None:
        shape = () if self.is_event else (len(self.classes_),)
        for name in self.learns:
            possible.numbers(getattr(self, name), name, *shape, low=-LARGEST, high=LARGEST)

    def _map(self, scores: ModelScores) -> Floats:
        return mapped(scores, self._scores(scores), platt_curve, self.slope_, self.intercept_)

    def _logits(self, scores: ModelScores) -> Floats:
        return logits_of(scores, self._scores(scores), platt_odds, self.slope_, self.intercept_)

    def _scores(self, scores: ModelScores) -> Floats:
        """What is multiplied by the slope."""
        return scores.values.astype(np.float64) if self.scores == "logits" else scores.log_odds


def platt_odds(log_odds: Floats, slope: float, intercept: float) -> Floats:
    """slope z + intercept, within the range of floats.

    >>> platt_odds(np.array([0., 1e308]), 2., 1.).tolist()
    [1.0, 1.7976931348623157e+308]
    """
    with np.errstate(over="ignore"):
        return np.clip(slope * log_odds + intercept, -LARGEST, LARGEST)


def platt_curve(log_odds: Floats, slope: float, intercept: float) -> Floats:
    """sigmoid(slope z + intercept).

    >>> platt_curve(np.array([0., 1e308, -1e308]), 2., 0.).tolist()
    [0.5, 1.0, 0.0]
    """
    return sigmoid(platt_odds(log_odds, slope, intercept))


def fit_platt(event: Event, *, smooth: bool = False) -> tuple[float, float, Ending]:
    """The slope and intercept of the smallest log loss, and how the search ended.

    >>> event = Event(np.array([0., 0., 0., 1., 1., 1.]), np.array([0., 0., 1., 0., 1., 1.]), np.ones(6))
    >>> slope, intercept, ending = fit_platt(event, smooth=True)  # rates 0.4 and 0.6
    >>> round(slope, 6), round(intercept, 6)
    (0.81093, -0.405465)
    """
    targets = event.outcomes
    if smooth:
        targets = smoothed(event)
    elif event.one_sided:
        return 0.0, *one_sided(event)
    (slope,), intercept, _, ending = fit_logistic(event.scores[None], targets, event.weight)
    if not smooth and parting(event):
        ending = endless(ending, "slope", slope, "smooth_targets=True gives an end")
    return slope, intercept, ending


def smoothed(event: Event) -> Floats:
    """Targets between 0 and 1: (n+ + 1) / (n+ + 2) where the event came true, and 1 / (n- + 2) where not.

    >>> smoothed(Event(np.zeros(3), np.array([1., 1., 0.]), np.ones(3))).round(4).tolist()
    [0.75, 0.75, 0.3333]
    """
    happened = event.happened
    failed = event.total - happened
    return np.where(event.outcomes == 1, (happened + 1) / (happened + 2), 1 / (failed + 2))


def one_sided(event: Event) -> tuple[float, Ending]:
    """The intercept for an event that always came true, or never: that of smoothed targets.

    >>> one_sided(Event(np.zeros(3), np.ones(3), np.ones(3)))[0] == math.log(4)
    True
    """
    always = event.outcomes[0] == 1
    share, odds = ("(n + 1)", 1) if always else ("1", -1)
    message = f"the event {'always' if always else 'never'} comes true: its probability is set to {share} / (n + 2)"
    return odds * math.log1p(event.total), Ending(False, 0.0, 0, ("intercept",), message)


def parting(event: Event) -> int:
    """1 where the outcomes are parted by a threshold of the scores, -1 where they are in reverse, else 0.

    Scores at the threshold may have both outcomes.

    >>> outcomes = np.array([0., 0., 1., 1.])
    >>> [parting(Event(np.array(z), outcomes, np.ones(4))) for z in ([1., 2., 2., 3.], [3., 2., 2., 1.], [1.] * 4)]
    [1, -1, 0]
    """
    true, false = (event.scores[event.outcomes == outcome] for outcome in (1, 0))
    if event.scores.max() / 2 - event.scores.min() / 2 <= SPREAD:
        return 0
    return int(false.max() <= true.min()) - int(true.max() <= false.min())


def endless(ending: Ending, parameter: str, reached: float, hint: str) -> Ending:
    """An ending at a point that is only the best so far."""
    message = (
        f"a threshold parts the outcomes, so that the log loss falls for ever as the {parameter} grows; "
        f"it was left at {reached:.4g}; {hint}"
    )
    return Ending(False, ending.gradient_norm, ending.iterations, (parameter,), message)


def fit_logistic(features: Floats, targets: Floats, weight: Floats) -> tuple[list[float], float, float, Ending]:
    """Slopes, intercept and mean log loss of a logistic regression on the rows of `features` (m, n).

    Features are centred and scaled first, so that no unit is too large or too small. One that does not vary keeps the
    slope 1.

    >>> slopes, intercept, loss, ending = fit_logistic(np.zeros((1, 4)), np.array([0., 0., 0., 1.]), np.ones(4))
    >>> slopes, round(intercept, 6), ending.converged  # the rate is 1/4
    ([1.0], -1.098612, True)
    """
    low, high = features.min(axis=1), features.max(axis=1)
    centre, half = low / 2 + high / 2, high / 2 - low / 2
    varies = half > SPREAD
    scaled = np.where(varies[:, None], (features - centre[:, None]) / np.where(varies, half, 1.0)[:, None], 0.0)
    design = np.concatenate([scaled, np.ones((1, len(targets)))])
    fitted, loss, ending = _newton(design, targets, weight / weight.sum())
    slopes = np.where(varies, fitted[:-1] / np.where(varies, half, 1.0), 1.0)
    return slopes.tolist(), float(fitted[-1] - (slopes * centre).sum()), loss, ending


@dataclass(frozen=True, eq=False)
class _Point:
    """A point of the search: the loss there, its gradient and its curvature."""

    at: Floats
    loss: float
    gradient: Floats
    curvature: Floats

    @property
    def norm(self) -> float:
        """The largest entry of the gradient."""
        return float(np.abs(self.gradient).max())

    def step(self) -> Floats:
        """Newton's step; none in directions that have less than 1e-14 of the largest curvature."""
        return np.linalg.lstsq(self.curvature, -self.gradient, rcond=1e-14)[0].astype(np.float64)


def _newton(design: Floats, targets: Floats, weight: Floats) -> tuple[Floats, float, Ending]:
    """The point of the smallest loss, from slopes of 0 and the intercept that is then best."""
    rate, rest = float(weight @ targets), float(weight @ (1.0 - targets))
    start = np.append(np.zeros(len(design) - 1), math.log(rate) - math.log(rest))
    point, steps = _point(design, targets, weight, start), 0
    while steps < _STEPS and point.norm > 1e-12 * rate * rest:
        lower = _lower(point, lambda at: _point(design, targets, weight, at))
        if lower is None:
            break
        point, steps = lower, steps + 1
    converged = point.norm <= 1e-7 * rate * rest
    message = "" if converged else f"the search ended after {steps} steps with a gradient of {point.norm:.1e}"
    return point.at, point.loss, Ending(converged, point.norm, steps, message=message)


def _lower(point: _Point, look: Callable[[Floats], _Point]) -> _Point | None:
    """What Newton's step leads to, or half of it, a quarter and so on: the first to lower the loss as promised."""
    step = point.step()
    if np.abs(step).max() <= 1e-14 * (1 + np.abs(point.at).max()):
        return None
    promise = 1e-4 * float(point.gradient @ step)
    for halvings in range(60):
        share = 0.5**halvings
        ahead = look(point.at + share * step)
        if ahead.loss <= point.loss * (1 + 1e-14) + share * promise:  # what rounding may add to a loss
            return ahead
    return None


def _point(design: Floats, targets: Floats, weight: Floats, at: Floats) -> _Point:
    odds = at @ design
    small = np.exp(-np.abs(odds))
    loss = weight @ (np.maximum(odds, 0.0) - targets * odds + np.log1p(small))
    likelier, other = 1.0 / (1.0 + small), small / (1.0 + small)
    gap = (1.0 - targets) * np.where(odds >= 0, likelier, other) - targets * np.where(odds >= 0, other, likelier)
    return _Point(at, float(loss), design @ (weight * gap), (design * (weight * likelier * other)) @ design.T)
