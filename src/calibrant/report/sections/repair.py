"""Repair: what a recalibration would change, on rows that it was not fitted on."""

from __future__ import annotations

import math

from calibrant.recalibrate.choice import LEVEL, UNCHANGED, Choice
from calibrant.recalibrate.methods import in_words
from calibrant.report.charts import lines
from calibrant.report.page import Cell, PageFigure, PageTable, Section
from calibrant.report.question import Question
from calibrant.report.quoting import counted, ends_at_value, points
from calibrant.report.sections.reliability_diagram import FEW, axis, compared
from calibrant.report.subject import Subject
from calibrant.result import Result
from calibrant.text import p_value


def repair_section(subject: Subject) -> Section:
    """Methods compared by cross-fitting, and reliability before and after the best of them."""
    title, choice = "Recalibration", subject.choice
    if choice is None:
        return Section("repair", title, (_untried(subject),))
    n = len(subject.repaired_rows)
    some = "" if n == len(subject.predictions) else f" drawn at random from {len(subject.predictions):,}"
    paragraphs = [
        recommendation(subject),
        *(gain(choice) if subject.is_changed else []),
        f"Methods were cross-fitted in 5 folds (n = {n:,}{some}): each row is recalibrated by a fit on the other "
        f"folds.{' Each label was recalibrated by itself.' if subject.together else ''}",
        *_infinite(choice),
        *ends_at_value(_results(choice)),
        *(f"{method} could not be fitted: {reason}." for method, reason in choice.failures.items()),
    ]
    lowest = next((name for name in choice.ranking if name != UNCHANGED), None)
    after = lowest if choice.best == UNCHANGED else choice.best
    shown = [UNCHANGED, *([] if after is None else [after])]
    asked = [Question(choice.forecasts[name], _worded(name), groups=subject.groups) for name in shown]
    series, drawn = compared(
        [(each.name, each.event, each.squares) for each in asked], "Reliability by bin, before and after"
    )
    described = " and after ".join(map(_worded, shown))
    picture = lines(
        "repair-picture",
        series,
        axis(subject),
        f"Reliability before and after recalibration, n = {n:,}",
        f"Reliability {described}; a calibrated model is on the dashed diagonal.",
        span=(0.0, 1.0),
        diagonal=True,
    )
    caption = (
        f"n = {n:,}, cross-fitted, {described}. Dashed: calibrated. Bins of fewer than {FEW} samples are in the table "
        "only."
    )
    figure = PageFigure("repair-figure", picture, caption, drawn)
    return Section("repair", title, paragraphs, (figure,), (_methods(choice, n),))


def recommendation(subject: Subject) -> str:
    """The one thing to do next: recalibrate by the method of `choose`, or why the probabilities stay as they are."""
    choice, test = subject.choice, subject.test
    if choice is None:
        return _untried(subject)
    if test is None or test.p_value > LEVEL:
        noise = "" if test is None else f" ({p_value(test.p_value, test.redraws)})"
        return f"Keep the probabilities: the calibration test does not reject them{noise}."
    before, after = (choice.table[name] for name in (UNCHANGED, choice.best))
    if choice.best == UNCHANGED:
        loss = _loss(before["log loss"].value)
        return f"Keep the probabilities: no method clearly lowers the log loss ({loss}) on rows it was not fitted on."
    n = len(subject.repaired_rows)
    sampled = "" if n == len(subject.predictions) else f"{n:,} sampled "
    name = f"Recalibrate by {in_words(choice.best)}: on {sampled}rows left out of the fit,"
    losses = " to ".join(_loss(results["log loss"].value) for results in (before, after))
    if not after["ECE"].value < before["ECE"].value:
        return f"{name} the log loss goes from {losses}."
    errors = f"{100 * before['ECE'].value:.1f} to {points(after['ECE'].value)}"
    of_each = ", the mean over labels," if subject.together else ""
    return f"{name} ECE{of_each} goes from {errors} and the log loss from {losses}."


def gain(choice: Choice) -> list[str]:
    """How sure the gain of the recommended method is, where there is an interval."""
    if choice.gain is None:
        return []
    between = choice.gain.interval
    sign, verb = (1, "falls") if choice.gain.value >= 0 else (-1, "rises")
    least, most = sorted(round(sign * end, 4) + 0.0 for end in (between.low, between.high))  # 0.0000, never -0.0000
    doubt = "" if between.low > 0 else " On new data the gain may be none."
    lower = f"the log loss {verb} by {abs(choice.gain.value):.4f} (90% interval {least:.4f} to {most:.4f})"
    return [f"On rows left out of the choice, {lower}.{doubt}"]


def _untried(subject: Subject) -> str:
    """Why no recalibration was tried, and what it takes."""
    if subject.lacking:
        return f"No recalibration is recommended: it {subject.lacking}."
    if subject.predictions.soft is not None and subject.of_one_event:
        return "No recalibration is recommended: it needs outcomes of 0 or 1. --ignore-index 0.5 leaves ties out."
    return "No recalibration is recommended: it needs hard labels, and 20 rows with more than one outcome."


def _worded(method: str) -> str:
    return method.replace("_", " ")


def _loss(loss: float) -> str:
    return f"{loss:.4f}" if math.isfinite(loss) else "infinite"


def _infinite(choice: Choice) -> list[str]:
    """Methods that rule out what happens."""
    return [
        f"{_worded(name).capitalize()}: the log loss is infinite, because the outcome of {counted(count, 'row')} had "
        "probability 0."
        for name, count in choice.infinite.items()
    ]


def _results(choice: Choice) -> dict[str, Result]:
    """All results of the table of methods, by metric and method."""
    rows = {_worded(method): choice.table[method] for method in choice.ranking}
    return {f"{name} ({method})": result for method, row in rows.items() for name, result in row.items()}


def _methods(choice: Choice, n: int) -> PageTable:
    metrics = next(iter(choice.table.results.values()))
    header = ["method", *(column for name in metrics for column in (name, "90% from", "90% to"))]
    rows: list[tuple[Cell, ...]] = []
    for method in choice.ranking:
        cells: list[float] = []
        for result in choice.table[method].values():
            ends = (math.nan, math.nan) if result.interval is None else (result.interval.low, result.interval.high)
            cells += [result.value, *ends]
        rows.append((_worded(method), *cells))
    return PageTable(header, rows, f"Methods, lowest cross-fitted log loss first, {counted(n, 'row')}")
