"""The verdict: what the numbers say, in words, for a reader who reads nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.recalibrate.choice import UNCHANGED
from calibrant.report.quoting import percent, points, sides
from calibrant.report.sections.models import lowest
from calibrant.report.sections.repair import gained
from calibrant.report.subject import Subject, redraws
from calibrant.text import p_value

LEVEL = 0.05
"""The p-value below which a finding is called more than noise."""
TELLING = 0.01
"""Errors below a hundredth are called small, whatever their p-value."""
BLURRED = 0.05
"""If calibrated forecasts of so many rows may show an error of more than this, no error can be ruled out."""
RULE_OF_THREE = 3.0
"""What never happened in n rows may still happen in 3 / n of them (95 %)."""
MIXED = 0.25
"""If over- and under-confidence are closer than this ratio, both are named."""


@dataclass(frozen=True)
class Verdict:
    """A sentence, what supports it, and its tone: "good", "poor" or "unsure"."""

    sentence: str
    supporting: tuple[str, ...]
    tone: str


def verdict(subject: Subject, others: Sequence[Subject] = ()) -> Verdict:
    """What a release manager needs to know.

    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> print(verdict(Subject(cal.Predictions.from_probs(rng.random(2000) < p, p), "model")).sentence)
    No miscalibration beyond noise: ECE is 3.0 points, and calibrated forecasts would show 2.7 (p = 0.32).
    """
    compared = [lowest([subject, *others])] if others else []
    supporting = tuple(filter(None, [_on_average(subject), _sizes(subject), _repair(subject), *compared]))
    p = subject.ece.details.get("null_p_value")
    if p is None or p != p:
        return Verdict(_without_noise_floor(subject), supporting, "unsure")
    if p > LEVEL:
        return _nothing_found(subject, supporting)
    noise = p_value(p, redraws(subject.ece))
    if subject.ece.value < TELLING:
        sentence = f"Nearly calibrated: ECE is {points(subject.ece.value)}, small but more than noise ({noise})."
        return Verdict(sentence, supporting, "unsure")
    help_ = _help(subject)
    sentence = f"{_direction(subject)}, more than noise ({noise}){f'; {help_}' if help_ else ''}."
    return Verdict(sentence, supporting, "poor")


def _nothing_found(subject: Subject, supporting: tuple[str, ...]) -> Verdict:
    """No error beyond noise: because there is none, or because so few rows could not show it."""
    floor, mean = subject.ece.details["noise_floor"], subject.mcs.details.get("null_p_value", 1.0)
    if mean <= LEVEL / 5:  # a second look at the same data must not add many false alarms
        lead = f"{_off(subject)} in the mean, more than noise"
        but = f"ECE, {points(subject.ece.value)}, is not (calibrated forecasts would show {100 * floor:.1f})"
        return Verdict(f"{lead} ({p_value(mean, redraws(subject.mcs))}), though {but}.", supporting, "unsure")
    most = max(subject.ece.details["noise_95"], RULE_OF_THREE / subject.ece.n)
    p = p_value(subject.ece.details["null_p_value"], redraws(subject.ece))
    numbers = f"ECE is {points(subject.ece.value)}, and calibrated forecasts would show {100 * floor:.1f} ({p})"
    if most <= BLURRED:
        return Verdict(f"No miscalibration beyond noise: {numbers}.", supporting, "good")
    hidden = f"with {subject.rows}, up to {100 * min(most, 1.0):.1f} points would pass for noise"
    return Verdict(f"Too few rows to tell: {numbers}; {hidden}.", supporting, "unsure")


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
    clear = subject.mcs.details.get("null_p_value", 0.0) <= LEVEL
    mixed = min(over, under) > max(MIXED * max(over, under), floor / 2)
    if clear and not mixed:
        return _off(subject)
    if min(over, under) > 0 and RULE_OF_THREE / subject.ece.n <= BLURRED:
        high, low = sides(subject.predictions)
        return (
            f"Miscalibrated both ways: {high} by {points(over)} in some ranges and {low} by {points(under)} in others"
        )
    return f"Miscalibrated: ECE is {points(subject.ece.value)}"


def _off(subject: Subject) -> str:
    """By how much the mean is off: confidence has a direction, the forecast of an event is too high or too low."""
    predictions, gap = subject.predictions, subject.mcs.value
    words = f"{sides(predictions)[gap < 0]} by {points(abs(gap))}"
    return words.capitalize() if predictions.forecasts.answers else f"Forecasts are {words}"


def _help(subject: Subject) -> str:
    """What a temperature would do, on rows it was not fitted on."""
    choice = subject.choice
    if choice is None or "temperature" not in choice.forecasts or subject.temperature is None:
        return ""
    before, after = (choice.table[name]["ECE"].value for name in (UNCHANGED, "temperature"))
    temperature, inside = subject.temperature
    floor = subject.ece.details["noise_floor"]
    left = (after - floor) / (before - floor) if before > floor else 1.0  # of what is more than noise
    if left > 0.8:
        return "a temperature would not mend it"
    if not inside:
        return "a temperature would mend it only by making all forecasts alike" if temperature > 1 else ""
    amount = "most" if left < 0.5 else "part"
    change = f"ECE {100 * before:.1f} to {100 * after:.1f} points"
    return f"a temperature of {temperature:.2g} would remove {amount} of it ({change})"


def _on_average(subject: Subject) -> str:
    """The plainest statement there is."""
    forecast, truth = subject.forecast, subject.frequency
    if subject.predictions.forecasts.answers:
        return f"On average it is {percent(forecast)} sure, and right {percent(truth)} of the time."
    over = f"Over all {subject.together} labels, on" if subject.together > 1 else "On"
    what = "a label is true" if subject.together else "it happens"
    return f"{over} average {percent(forecast)} is forecast, and {what} in {percent(truth)} of the cases."


def _sizes(subject: Subject) -> str:
    between = subject.ece.interval
    sentence = f"ECE, the mean gap between forecast and frequency, is {points(subject.ece.value)} (percentage points)"
    if between is not None and between.low == between.low:
        sentence += f", 90% interval {100 * between.low:.1f} to {100 * between.high:.1f}"
    floor = subject.ece.details.get("noise_floor")
    if floor is not None:
        sentence += f"; noise floor {100 * floor:.1f}, what calibrated forecasts would show with {subject.rows}"
    return f"{sentence}."


def _repair(subject: Subject) -> str:
    return "" if subject.choice is None else gained(subject.choice)
