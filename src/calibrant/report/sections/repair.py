"""Repair: what a recalibration would change, on rows that it was not fitted on."""

from __future__ import annotations

import math

from calibrant.recalibrate.choice import UNCHANGED, Choice
from calibrant.report.charts import lines
from calibrant.report.page import Cell, PageFigure, PageTable, Section
from calibrant.report.question import Question
from calibrant.report.quoting import counted
from calibrant.report.sections.reliability_diagram import FEW, axis, compared
from calibrant.report.subject import Subject
from calibrant.text import p_value


def repair_section(subject: Subject) -> Section:
    """Methods compared by cross-fitting, and reliability before and after the best of them."""
    title, choice = "Recalibration", subject.choice
    if subject.lacking:
        return Section("repair", title, (f"Recalibration {subject.lacking}: give them all to try it.",))
    if choice is None:
        reason = (
            "Recalibration is tried where labels are hard, and at least 20 rows of more than one outcome are there."
        )
        return Section("repair", title, (reason,))
    n = len(subject.repaired_rows)
    some = "" if n == len(subject.predictions) else f" drawn at random from {len(subject.predictions):,}"
    paragraphs = [
        gained(choice),
        f"Every row was mapped by a method fitted on the other rows only (5 folds, n = {n:,}{some}): what is shown is "
        f"what to expect on new data.{' Each label was mapped by itself.' if subject.together else ''}",
        *_infinite(choice),
        *(f"{method} could not be fitted: {reason}" for method, reason in choice.failures.items()),
    ]
    lowest = next((name for name in choice.ranking if name != UNCHANGED), None)
    after = lowest if choice.best == UNCHANGED else choice.best
    shown = [UNCHANGED, *([] if after is None else [after])]
    asked = [Question(choice.forecasts[name], name, groups=subject.groups) for name in shown]
    series, drawn = compared(
        [(each.name, each.event, each.squares) for each in asked], "Reliability by bin, before and after"
    )
    picture = lines(
        "repair-picture",
        series,
        axis(subject),
        f"Reliability before and after recalibration, n = {n:,}",
        f"Reliability {' and after '.join(shown)}; a calibrated model is on the dashed diagonal.",
        span=(0.0, 1.0),
        diagonal=True,
    )
    caption = (
        f"n = {n:,}, cross-fitted, {' and after '.join(shown)}; dashed: calibrated. Bins of fewer than {FEW} samples "
        "are in the table only."
    )
    figure = PageFigure("repair-figure", picture, caption, drawn)
    return Section("repair", title, paragraphs, (figure,), (_methods(choice, n),))


def gained(choice: Choice) -> str:
    """What the best method gains, and how sure that is."""
    before = choice.table[UNCHANGED]["log loss"].value
    if not choice.rejected:
        p = p_value(choice.test.p_value, choice.test.redraws)
        return f"The calibration test does not reject these forecasts ({p}): leave them alone."
    if choice.best == UNCHANGED:
        return (
            f"No method lowers the log loss ({_said(before)}) on rows it was not fitted on: leave the forecasts alone."
        )
    after, name = choice.table[choice.best]["log loss"].value, choice.best.replace("_", " ").capitalize()
    if choice.gain is None:
        return (
            f"{name} recalibration would bring the log loss from infinite (something happened that "
            f"was given probability 0) to {after:.4f} on rows it was not fitted on."
        )
    between = choice.gain.interval
    least, most = (round(end, 4) + 0.0 for end in (between.low, between.high))  # 0.0000, never -0.0000
    return (
        f"{name} recalibration would lower the log loss from {before:.4f} to {after:.4f} on rows "
        f"it was not fitted on (90% interval of the gain {least:.4f} to {most:.4f}, on rows left out of the choice)"
        f"{'' if between.low > 0 else '; on new data the gain may be none'}."
    )


def _said(loss: float) -> str:
    return f"{loss:.4f}" if math.isfinite(loss) else "infinite"


def _infinite(choice: Choice) -> list[str]:
    """Methods that rule out what happens."""
    return [
        f"{name.capitalize()}: the log loss is infinite. In {counted(count, 'row')}, something happened that was given "
        "probability 0."
        for name, count in choice.infinite.items()
    ]


def _methods(choice: Choice, n: int) -> PageTable:
    metrics = next(iter(choice.table.results.values()))
    header = ["method", *(column for name in metrics for column in (name, "90% from", "90% to"))]
    rows: list[tuple[Cell, ...]] = []
    for method in choice.ranking:
        cells: list[float] = []
        for result in choice.table[method].values():
            ends = (math.nan, math.nan) if result.interval is None else (result.interval.low, result.interval.high)
            cells += [result.value, *ends]
        rows.append((method, *cells))
    return PageTable(header, rows, f"Methods, lowest cross-fitted log loss first, {counted(n, 'row')}")
