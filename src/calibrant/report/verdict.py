"""The verdict: what the numbers say, in words, for a reader who reads nothing else."""

from __future__ import annotations

import numpy as np

from calibrant.door.checked import sentences
from calibrant.door.remarks import LEFT_OUT
from calibrant.inference.confidence import BLURRED, largest_error
from calibrant.inference.omnibus import MEMBERS, OF_CLASSES, OF_LABELS, CalibrationTest
from calibrant.recalibrate.choice import LEVEL
from calibrant.recipes import AUROC
from calibrant.report.page import Verdict
from calibrant.report.quoting import percent, points, sides
from calibrant.report.sections.repair import gain, recommendation
from calibrant.report.subject import Subject
from calibrant.result import Result
from calibrant.text import p_value

TELLING = 0.01
"""Errors below a hundredth are called small, whatever their p-value."""
OF_RARER = 0.1
"""But not errors above a tenth of how often the rarer outcome of an event is seen: risks of 2 % may be off by half."""
MIXED = 0.25
"""If over- and under-confidence are closer than this ratio, both are named."""
_HIDDEN = {
    OF_LABELS: "Single labels are miscalibrated, which pooled labels hide",
    OF_CLASSES: "Some classes are predicted too often and others too rarely, which the likeliest class hides",
}
"""What the test of classes or labels finds where the main question alone shows nothing."""


def verdict(subject: Subject) -> Verdict:
    """What a release manager needs to know: its words and its p-value are those of the test of calibration.

    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> print(verdict(Subject(cal.Predictions.from_probs(rng.random(2000) < p, p), "model")).sentence)
    No miscalibration beyond noise (p = 0.67): ECE is 3.0 points, and calibrated forecasts would show 2.7.
    """
    test, action = subject.test, recommendation(subject)
    sure = gain(subject.choice) if subject.choice is not None and subject.is_changed else []
    supporting = (_on_average(subject), *_reversed(subject), *sure, *_left_out(subject))
    if test is None:
        return Verdict(_without_noise_floor(subject), supporting, "unsure", action)
    noise = p_value(test.p_value, test.redraws)
    if test.p_value > LEVEL:
        return _nothing_found(subject, noise, supporting, action)
    if hidden := _hidden(test):
        return Verdict(f"{hidden} ({noise}).", supporting, "poor", action)
    if _is_small(subject):
        sentence = f"Nearly calibrated: ECE is {points(subject.ece.value)}, small but more than noise ({noise})."
        return Verdict(sentence, supporting, "unsure", action)
    return Verdict(f"{_direction(subject)}, more than noise ({noise}).", supporting, "poor", action)


def _is_small(subject: Subject) -> bool:
    """Whether the error is small, of a rare event also beside how rare it is."""
    rarer = min(subject.frequency, 1 - subject.frequency) if subject.of_one_event else 1.0
    return subject.ece.value < min(TELLING, OF_RARER * rarer)


def _hidden(test: CalibrationTest) -> str:
    """What is off by class or by label, where the main question alone shows nothing; empty elsewhere."""
    if len(MEMBERS) * min(test.p_values[name] for name in MEMBERS) <= LEVEL:
        return ""
    return _HIDDEN.get(test.loudest, "")


def _reversed(subject: Subject) -> list[str]:
    """A warning where the event is clearly rarer at higher predictions: mostly those of the other class."""
    ranking = subject.statistic(AUROC) if subject.of_one_event else None
    if ranking is None or ranking.interval is None or ranking.interval.high >= 0.5:
        return []
    return [
        f"The event is rarer where predictions are higher (AUROC {ranking.value:.2f}). "
        "Check that they are probabilities of the event, not of the other class."
    ]


def _left_out(subject: Subject) -> list[str]:
    """Which rows of the data the numbers are not about."""
    remarks = tuple(remark for remark in subject.predictions.remarks if remark[0].startswith(LEFT_OUT))
    return [f"{sentence}." for sentence in sentences(remarks)]


def _nothing_found(subject: Subject, noise: str, supporting: tuple[str, ...], action: str) -> Verdict:
    """No error beyond noise: because there is none, or because so few rows could not show it."""
    floor, most = subject.ece.details["noise_floor"], largest_error(subject.ece)
    numbers = f"ECE is {points(subject.ece.value)}, and calibrated forecasts would show {100 * floor:.1f}"
    if most <= BLURRED:
        return Verdict(f"No miscalibration beyond noise ({noise}): {numbers}.", supporting, "good", action)
    hidden = f"With {subject.rows}, the error may be as large as {points(most)}"
    sentence = f"Too few rows to tell ({noise}): {numbers}. {hidden}."
    return Verdict(sentence, supporting, "unsure", "Collect more labelled rows; until then, keep the probabilities.")


def _without_noise_floor(subject: Subject) -> str:
    """What can be said of soft labels: how large the error is, and the mean's interval."""
    size = f"ECE is {points(subject.ece.value)}; how much of it is noise cannot be told from soft labels"
    between = subject.whole
    if not (between.low > 0 or between.high < 0):
        return f"{size}. In the mean, forecasts are neither clearly too high nor too low."
    ends = sorted(100 * abs(end) for end in (between.low, between.high))
    between_them = f"90% interval {ends[0]:.1f} to {ends[1]:.1f}"
    return f"{_off(subject)} in the mean ({between_them}). {size}."


def _direction(subject: Subject) -> str:
    """Over- or under-confident, by how much; or both, which the mean hides."""
    bins = subject.ece.bins
    assert bins is not None
    parts = bins.share[0] * np.where(bins.counts[0] > 0, bins.gap[0, :, 0], 0.0)
    over, under = float(parts[parts > 0].sum()), float(-parts[parts < 0].sum())
    floor = subject.ece.details["noise_floor"]
    clear = subject.whole.p <= LEVEL
    mixed = min(over, under) > max(MIXED * max(over, under), floor / 2)
    if clear and not mixed:
        return _off(subject) + _shift(subject)
    if min(over, under) > floor:
        high, low = sides(subject.predictions)
        above, below = float(bins.share[0][parts > 0].sum()), float(bins.share[0][parts < 0].sum())
        return (
            f"Miscalibrated both ways: {high} by {points(over / above)} on average for {percent(above)} of the "
            f"predictions, and {low} by {points(under / below)} for {percent(below)}"
        )
    slope = subject.line[1] if subject.line else None
    if slope is not None and _excludes(slope, 1.0):
        extreme = "too extreme" if slope.value < 1 else "not extreme enough"
        return f"Forecasts are {extreme}: their calibration slope is {slope.value:.2f}, and 1 is calibrated"
    return f"Miscalibrated: ECE is {points(subject.ece.value)}"


def _shift(subject: Subject) -> str:
    """By how much the log-odds of an event are off, where that is all that is wrong: the slope may be 1."""
    sure = [_excludes(result, calibrated) for result, calibrated in zip(subject.line, (0.0, 1.0), strict=False)]
    if subject.predictions.forecasts.answers or sure != [True, False]:
        return ""
    return f" on average, by a shift of the log-odds of {abs(subject.line[0].value):.2f}"


def _excludes(result: Result, value: float) -> bool:
    return result.interval is not None and not result.interval.low <= value <= result.interval.high


def _off(subject: Subject) -> str:
    """By how much the mean is off: confidence has a direction, the forecast of an event is too high or too low."""
    predictions, gap = subject.predictions, subject.mcs.value
    words = f"{sides(predictions)[gap < 0]} by {points(abs(gap))}"
    return words.capitalize() if predictions.forecasts.answers else f"Forecasts are {words}"


def _on_average(subject: Subject) -> str:
    """The plainest statement there is."""
    forecast, truth = subject.forecast, subject.frequency
    if subject.predictions.forecasts.answers:
        return f"On average it is {percent(forecast)} sure, and right {percent(truth)} of the time."
    over = f"Over all {subject.together} labels, on" if subject.together > 1 else "On"
    what = "a label is true" if subject.together else "it happens"
    return f"{over} average {percent(forecast)} is forecast, and {what} in {percent(truth)} of the cases."
