"""The family: every calibration number with interval, noise floor, definition and the question it answers."""

from __future__ import annotations

import dataclasses
import math

from calibrant import recipes
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.omnibus import MEMBERS
from calibrant.metric import Metric
from calibrant.report.page import Cell, PageTable, Section
from calibrant.report.quoting import ends_at_value, listed, quoted_p
from calibrant.report.subject import Subject, redraws
from calibrant.result import Result
from calibrant.text import inert

HEADER = ("metric", "value", "p, corrected", "noise floor", "90% from", "90% to", "rows", "what it asks")

_GAP = "the gap is |mean forecast - frequency|"
_EVENT: dict[str, tuple[Metric, str, str]] = {
    "ECE": (
        recipes.ECE,
        "How far are predictions from observed frequencies, on average?",
        f"sum over 15 equal-width bins of (share of samples) x gap; {_GAP} of the bin",
    ),
    "ECE, equal mass": (
        recipes.ADAPTIVE_ECE,
        "The same, where every bin holds equally many samples.",
        "as ECE, over 15 bins of equally many samples in order of forecast",
    ),
    "ECE, sweep": (
        recipes.ECE_SWEEP,
        "The same, where the data choose the number of bins.",
        "as equal mass, with the largest number of bins whose frequencies rise with the prediction (monotone)",
    ),
    "ECE, debiased": (
        recipes.ECE_DEBIASED,
        "How far off, corrected for the bias that chance causes?",
        "square root of the share-weighted mean over 15 equal-mass bins of gap^2 - frequency (1 - frequency) / (n - 1)",
    ),
    "smooth ECE": (
        recipes.SMECE,
        "How far off, without any bins?",
        "integral of |kernel-smoothed (outcome - forecast)|, the kernel as wide as the result",
    ),
    "MCE": (
        recipes.MCE,
        "How large is the gap of the worst bin?",
        "largest gap of the 15 equal-width bins, however few samples it holds",
    ),
    "MCS": (
        recipes.MCS,
        "Are predictions too high on average (above 0) or too low (below 0)?",
        "mean forecast - frequency, over all samples",
    ),
    "largest drift": (
        recipes.ECCE_MAD,
        "How far do summed outcomes ever run ahead of summed predictions, or behind?",
        "largest |sum of (outcome - forecast) / n|, summed in order of forecast",
    ),
}
_CLASSES: dict[str, tuple[Metric, str, str]] = {
    "SCE": (
        recipes.SCE,
        "How far off is the probability of each class, averaged over the classes?",
        "mean over classes of the ECE of that class's probability",
    ),
    "ACE": (
        recipes.ACE,
        "The same over bins of equally many samples.",
        "as SCE, over 15 equal-mass bins a class",
    ),
    "TACE": (
        recipes.TACE,
        "The same, leaving out near-zero probabilities.",
        "as ACE, of probabilities above 0.01 only",
    ),
    "wsECE": (
        recipes.WSECE,
        "ECE among the rows of each true class; even calibrated forecasts are not at 0.",
        "mean over true classes, weighted by their rows, of the ECE of the top label",
    ),
    "full ECE": (
        recipes.FULL_ECE,
        "How far off is the whole vector of probabilities?",
        "share-weighted mean over kd-tree bins of half the summed |mean probability - frequency| over classes",
    ),
    "top-5 ECE": (
        recipes.TOP5_ECE,
        "How far off are the probabilities of the five likeliest classes, taken together?",
        "share-weighted mean over kd-tree bins of half the summed |mean probability - frequency| over the five largest "
        "probabilities and the rest",
    ),
}
_LABELS: dict[str, tuple[Metric, str, str]] = {
    "ECE by label": (
        recipes.SCE,
        "How far off is the probability of each label, averaged over the labels?",
        "mean over labels of the ECE of that label's forecasts",
    ),
    "ECE by label, equal mass": (
        recipes.ACE,
        "The same over bins of equally many samples.",
        "as ECE by label, over 15 equal-mass bins a label",
    ),
}
_WIDEST = {"full ECE": 100, "ACE": 200, "TACE": 200, "ECE by label, equal mass": 200}
"""Classes up to which whole vectors are binned, and up to which each class gets bins of its own."""


def family_section(subject: Subject) -> Section:
    """The table of the family, and its definitions."""
    results: dict[str, Result] = {}
    left_out: list[str] = []
    dear: list[str] = []
    asked = _LABELS if subject.together else _CLASSES if subject.predictions.n_classes else {}
    too_wide = {name for name in asked if subject.width > _WIDEST.get(name, subject.width)}
    for about_event, metrics in ((True, _EVENT), (False, asked)):
        for name, (metric, _, _) in metrics.items():
            result = None if name in too_wide else subject.measured(metric, about_event=about_event)
            if result is None:
                (dear if name in too_wide else left_out).append(name)
            else:
                results[name] = result
    results = {name: _beside_test(subject, result, name in _EVENT) for name, result in results.items()}
    fewest = min(filter(None, map(redraws, results.values())), default=None)
    rows = [row(name, result, {**_EVENT, **asked}[name][1], fewest) for name, result in results.items()]
    definitions = [(name, _definition(name), repr(result.metric)) for name, result in results.items()]
    grids = (
        PageTable(HEADER, rows, "Calibration numbers"),
        PageTable(("metric", "definition", "in Python"), definitions, "Definitions", folded=True),
    )
    return Section("family", "The calibration numbers", _said(subject, results, left_out, dear), (), grids)


def _beside_test(subject: Subject, result: Result, about_event: bool) -> Result:
    """The result with a p-value that may stand among others: no smaller than those of the calibration test.

    A closed test: every number about classes tests that labels follow the forecasts, every number about the event that
    the event does, which follows from it. So one of them is called only where the tests of both are, that of the event
    by the smallest p-value of its members times their number.
    """
    p, test = result.details.get("null_p_value"), subject.test
    if p is None or test is None:
        return result
    members = [test.p_values[name] for name in MEMBERS]
    main = min(1.0, len(members) * min(members)) if about_event and len(test.p_values) > len(members) else 0.0
    return dataclasses.replace(result, details={**result.details, "corrected_p_value": max(p, test.p_value, main)})


def row(name: str, result: Result, question: str, fewest: int | None) -> tuple[Cell, ...]:
    """A result as a row: value, interval, noise floor, p-value (no smaller than the fewest redraws can tell), rows."""
    ends = (math.nan, math.nan) if result.interval is None else (result.interval.low, result.interval.high)
    p = result.details.get("corrected_p_value", math.nan)
    return (
        name,
        result.value,
        quoted_p(p, fewest),
        result.details.get("noise_floor", math.nan),
        *ends,
        result.n,
        question,
    )


def _needs_all(metric: Metric, subject: Subject) -> bool:
    """Whether a metric is refused because the probability of each class is not known."""
    try:
        metric(subject.class_rows[:1])
    except CalibrationInputError as error:
        return error.expected == subject.lacking
    return False


def _definition(name: str) -> str:
    return {**_EVENT, **_CLASSES, **_LABELS}[name][2]


def _said(subject: Subject, results: dict[str, Result], left_out: list[str], dear: list[str]) -> list[str]:
    about_classes = [name for name in results if name not in _EVENT]
    soft = subject.event.soft is not None
    paragraphs = [_lead(subject, about_classes)]
    if about_classes and len(subject.class_rows) < len(subject.predictions):
        paragraphs.append(
            f"{listed(about_classes)} are measured on {len(subject.class_rows):,} rows drawn at random, because all "
            f"{len(subject.predictions):,} would take too long to resample."
        )
    if subject.is_large:
        paragraphs.append(
            "The sweep, the smooth ECE and the largest drift are computed from predictions in groups (4,096 by width "
            f"and as many by rank). All other numbers of {'pooled labels' if subject.together else 'one event'} are of "
            "the predictions themselves."
        )
    if soft:
        paragraphs.append("Labels are soft: predictions do not say how they scatter, so there are no noise floors.")
    floorless = [name for name, result in results.items() if "noise_floor" not in result.details]
    return (
        paragraphs + ends_at_value(results) + _without_interval(results) + _left_out(subject, floorless, left_out, dear)
    )


def _without_interval(results: dict[str, Result]) -> list[str]:
    """Why some numbers have no interval, each reason once."""
    names: dict[str, list[str]] = {}
    for name, result in results.items():
        if result.interval is None:
            names.setdefault(result.notes[-1], []).append(name)
    return [f"Without an interval: {listed(several, most=20)} ({reason})." for reason, several in names.items()]


def _left_out(subject: Subject, floorless: list[str], left_out: list[str], dear: list[str]) -> list[str]:
    """What is not in the table, and why."""
    paragraphs = []
    if subject.lacking:
        needing = [name for name in left_out if name in _CLASSES and _needs_all(_CLASSES[name][0], subject)]
        floors = [f"the noise floor of {name}" for name in floorless]
        paragraphs.append(f"Left out: {listed([*needing, *floors], most=20)} (each {subject.lacking}).")
        left_out = [name for name in left_out if name not in needing]
    elif subject.groups and floorless and subject.event.soft is None:
        paragraphs.append(
            f"{listed(floorless, most=20)}: no noise floor is known where rows of one {inert(subject.groups, 60)} may "
            "depend on each other."
        )
    if left_out:
        paragraphs.append(f"Not defined for these data: {listed(left_out, most=20)}.")
    if dear:
        paragraphs.append(
            f"Left out, because resampling them for {subject.width:,} {'labels' if subject.together else 'classes'} "
            f"would take long: {listed(dear)}."
        )
    return paragraphs


def _lead(subject: Subject, about_classes: list[str]) -> str:
    """What stands beside each number, and how many redraws it is from."""
    of_classes = f", {subject.class_resamples} for questions about {subject.every}" if about_classes else ""
    beside = (
        ""
        if subject.event.soft is not None
        else " The noise floor is what calibrated predictions would show on average, and p the chance that they would "
        "show as much or more. No p is smaller than that of the calibration test, so that the table as a whole raises "
        f"few false alarms (a closed test). Floors and p are from {subject.resamples} redraws of the labels "
        f"({subject.smooth_resamples} for the smooth ECE{of_classes})."
    )
    pooled = " All but those by label pool the predictions of all labels." if subject.together else ""
    return f"Each number answers another question; intervals are 90% intervals.{beside}{pooled}"
