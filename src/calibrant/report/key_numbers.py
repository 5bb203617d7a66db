"""Key numbers: the three numbers of the first screen, each with its interval and what to hold it against."""

from __future__ import annotations

import dataclasses
import math

from calibrant.recipes import ACCURACY, LOG_LOSS
from calibrant.report.quoting import KeyNumber, sides
from calibrant.report.subject import Subject
from calibrant.result import Result


def key_numbers(subject: Subject) -> list[KeyNumber]:
    """ECE, the mean gap, and accuracy of answers or the slope of an event; log loss where there is neither.

    >>> import calibrant as cal
    >>> predictions = cal.Predictions.from_probs([0, 1] * 20, [[.9, .1], [.4, .6]] * 20)
    >>> [(number.name, number.shown) for number in key_numbers(Subject(predictions, "model"))]
    [('ECE', '25.0 points'), ('Confidence − accuracy', '−25.0 points'), ('Accuracy', '100.0%')]
    """
    answers, (over, under) = subject.predictions.forecasts.answers, sides(subject.predictions)
    floor = subject.ece.details.get("noise_floor")
    gap = "Confidence − accuracy" if answers else "Mean prediction − frequency"
    held = "0 is calibrated" if floor is None else f"a calibrated model would show about {100 * floor:.1f}"
    pooled = ", all labels pooled" if subject.together > 1 else ""
    return [
        _number("ECE", subject.ece, "points", f"Mean gap between prediction and frequency{pooled}; {held}."),
        _mean_gap(gap, subject, f"0 is calibrated; above {over}, below {under}."),
        _third(subject),
    ]


def _mean_gap(name: str, subject: Subject, meaning: str) -> KeyNumber:
    """The mean gap; the interval of a mean holds under soft labels too."""
    number, whole = _number(name, subject.mcs, "points", meaning), subject.whole
    return (
        dataclasses.replace(number, low=whole.low, high=whole.high) if subject.predictions.soft is not None else number
    )


def _third(subject: Subject) -> KeyNumber:
    if subject.predictions.forecasts.answers:
        accuracy = subject.score(ACCURACY)
        if accuracy is not None:
            return _number("Accuracy", accuracy, "%", f"How often {subject.answer} is right.")
    elif subject.line and math.isfinite(subject.line[1].value):
        return _number(
            "Calibration slope", subject.line[1], "", "1 is calibrated; below 1, predictions are too extreme."
        )
    loss = _number("Log loss", subject.score(LOG_LOSS), "", "Lower is better; it counts errors of every kind.")
    impossible = "A prediction of exactly 0 or 1 was wrong. Keep predictions away from 0 and 1, or recalibrate."
    return dataclasses.replace(loss, meaning=impossible) if math.isinf(loss.value) else loss


def _number(name: str, result: Result | None, unit: str, meaning: str) -> KeyNumber:
    interval = None if result is None else result.interval
    ends = (math.nan, math.nan) if interval is None else (interval.low, interval.high)
    return KeyNumber(name, math.nan if result is None else result.value, *ends, unit, meaning)
