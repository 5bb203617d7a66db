"""Gates: calibration as a condition, for tests of models and for model selection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Unpack

from calibrant.checks import number
from calibrant.door.options import DoorOptions
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.confidence import Confidence
from calibrant.inference.consistency import consistency
from calibrant.metric import Metric, checked
from calibrant.predictions import Predictions
from calibrant.recipes import ECE
from calibrant.result import Result
from calibrant.specification.facts import Facts


def assert_calibrated(
    y_true: object,
    y_proba: object = None,
    *,
    metric: Metric = ECE,
    at_most: float | None = None,
    confident: bool = False,
    level: float = 0.05,
    n: int = 400,
    seed: int = 0,
    groups: str | None = None,
    **options: Unpack[DoorOptions],
) -> Result:
    """Fail a test where a model is not calibrated: its error exceeds `at_most`, or else is more than noise.

    With `at_most` the value is held against that limit (`is_above`); with `confident` too, its interval is: the
    assertion fails only where the whole `Confidence` interval at 1 - 2 `level` is beyond the limit. So a model that is
    exactly at the limit fails in about `level` of all samples. A metric without an interval is then refused.

    Without `at_most` the error is held against what calibrated forecasts would show with as many rows (`consistency`,
    n redraws): the assertion fails where p is below `level`. A number that does not exist fails too. `groups` names a
    column whose rows may depend on each other. Other options stand beside labels and probabilities, as in
    `Predictions.from_probs`.

    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> print(cal.assert_calibrated(rng.random(1000) < p, p))
    ECE 0.0374 (n=1000, event, 15 equal-width bins)
    >>> cal.assert_calibrated(rng.random(1000) < p**2, p, at_most=0.05)
    Traceback (most recent call last):
    AssertionError: ECE 0.1663 (n=1000, event, 15 equal-width bins) is above 0.05
    """
    predictions = checked(y_true, y_proba, options, assert_calibrated)
    if confident and at_most is None:
        raise CalibrationInputError("confident", "is for a limit", got="no at_most", hint="such as at_most=0.05")
    most = 0.5 if confident else 1
    number(level, "level", f"must lie between 0 and {most}", lambda share: 0 < share < most)
    result = metric(predictions, interval=Confidence(1 - 2 * level, seed, groups) if confident else None)
    if at_most is not None:
        number(at_most, "at_most", "must be a number of at least 0", lambda limit: limit >= 0)
        if is_above(result, at_most, confident=confident):
            raise AssertionError(f"{result} is above {at_most:g}")
        return result
    if (n + 1) * level <= 1:
        raise CalibrationInputError("n", f"must allow p-values below {level:g}", got=n, hint="use more redraws")
    null = consistency(metric, predictions, n=n, seed=seed, groups=groups, result=result)
    if not null.p_value >= level:
        raise AssertionError(
            f"{result} is more than noise: calibrated forecasts would show {null.mean:.4f} on average "
            f"(p = {null.p_value:.2g})"
        )
    return result


def is_above(result: Result, limit: float, *, confident: bool = False) -> bool:
    """Whether a result is farther than a limit from its value under calibration; from 0 where that is unknown.

    Where only bounds of the value are known, as of counts in cells, both must lie within the limit. With `confident`,
    whether the whole interval lies beyond it; a result without an interval is refused then. A value that is
    infinite or does not exist is above every limit.

    >>> import calibrant as cal
    >>> result = cal.ECE([1, 0, 1, 1] * 9, [.9, .3, .6, .8] * 9, interval=cal.Confidence())
    >>> print(result.interval, is_above(result, 0.1), is_above(result, 0.1, confident=True))
    [0.0765, 0.2500] at 90% True False
    """
    if not confident or not math.isfinite(result.value):
        return not most_from_calibration(result) <= limit
    if result.interval is None or math.isnan(result.interval.low):
        reason = next((note for note in result.notes if "no interval" in note), "none")
        raise CalibrationInputError("confident", "needs an interval", got=reason, hint="hold the value against it")
    best, (low, high) = best_value(result.metric.facts) or 0.0, (result.interval.low, result.interval.high)
    return max(low - best, best - high) > limit


class Classifier(Protocol):
    """What scikit-learn calls a fitted classifier with probabilities."""

    classes_: Sequence[object]

    def predict_proba(self, X: object, /) -> object:  # noqa: N803
        """Probabilities (n, K)."""


@dataclass(frozen=True)
class Scorer:
    """A metric as scikit-learn's model selection wants it: called with a fitted classifier, X and y; greater is better.

    Calibration errors count by minus their distance from the value of a calibrated model, losses by minus their value,
    accuracies as they are. Where a metric of your own does not declare which way is better, pass `greater_is_better`.
    `cross_val_score(model, X, y, scoring=Scorer(cal.ECE))`.

    >>> import numpy as np, calibrant as cal
    >>> class Even:
    ...     classes_ = [0, 1]
    ...     def predict_proba(self, X):
    ...         return np.full((len(X), 2), 0.5)
    >>> Scorer(cal.BRIER)(Even(), [[0], [0]], [0, 1]), Scorer(cal.ACCURACY)(Even(), [[0], [0]], [0, 0])
    (-0.5, 1.0)
    """

    metric: Metric = ECE
    greater_is_better: bool | None = None

    def __call__(self, estimator: Classifier, X: object, y: object, sample_weight: object = None) -> float:  # noqa: N803
        """The score of a fitted classifier on rows."""
        if not hasattr(estimator, "predict_proba"):
            got = type(estimator).__name__
            raise CalibrationInputError("estimator", "must have predict_proba", got=got, hint="wrap it in Recalibrated")
        predictions = Predictions.from_probs(
            y, estimator.predict_proba(X), classes=list(estimator.classes_), sample_weight=sample_weight, copy=False
        )
        return self.score(self.metric(predictions))

    def score(self, result: Result) -> float:
        """A result as a score: the nearer to its value under calibration, or else the better, the greater."""
        facts, rises = self.metric.facts, self.greater_is_better
        if rises is None and facts.lower_is_better is not None:
            rises = not facts.lower_is_better
        if rises is None and best_value(facts) is None:
            expected = "must be said of a metric of which it is unknown"
            raise CalibrationInputError("greater_is_better", expected, got=self.metric.name, hint="True or False")
        if rises:
            return result.value
        return -result.value if best_value(facts) is None else -distance_from_calibration(result)


def distance_from_calibration(result: Result) -> float:
    """How far a result is from its value under calibration; where that is unknown, from 0.

    >>> import calibrant as cal
    >>> round(distance_from_calibration(cal.MCS([1, 1], [.9, .7])), 10)
    0.2
    """
    return abs(result.value - (best_value(result.metric.facts) or 0.0))


def most_from_calibration(result: Result) -> float:
    """How far a result may be from its value under calibration: that of the farther of its bounds, where it has any.

    >>> import calibrant as cal
    >>> table = cal.ADAPTIVE_ECE.refine().summarise([0, 1], [.311, .312])
    >>> round(most_from_calibration(cal.ADAPTIVE_ECE.within(table)), 3)
    0.689
    """
    best = best_value(result.metric.facts) or 0.0
    return max(abs(value - best) for value in (result.value, *(result.bounds or ())))


def best_value(facts: Facts) -> float | None:
    """The value that is best: that under calibration, or 0 of a number with two sides of one length; else None.

    >>> import calibrant as cal
    >>> best_value(cal.ECE.facts), best_value(cal.LOG_LOSS.facts)
    (0.0, None)
    """
    if facts.calibrated is not None and math.isfinite(facts.calibrated):
        return facts.calibrated
    return 0.0 if math.isfinite(facts.low) and facts.low == -facts.high else None
