"""The report of a state: its numbers, exact or within ranges, a reliability diagram, and what it cannot show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import calibrant
from calibrant.errors.bounding import APPROXIMATE, UNDETERMINED
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import Metric
from calibrant.report import Report
from calibrant.report.charts import Bar, planes, reliability
from calibrant.report.limit_checks import LimitCheck
from calibrant.report.page import Cell, Page, PageFigure, PageTable, Section, Verdict
from calibrant.report.quoting import counted
from calibrant.report.sections.reliability_diagram import HEADER, row
from calibrant.result import Result
from calibrant.scale.state import Results, State
from calibrant.text import inert

_CANNOT = (
    "A state keeps counts, not rows. It cannot show what needs rows: whether the error is more than noise (p-values, "
    "noise floors), confidence intervals of errors, recalibration, single samples, or groups that were not named when "
    "it was made. For those, write a report of a file of predictions."
)


def state_report(
    state: State,
    name: str,
    command: str,
    *,
    limits: Mapping[Metric, float] | None = None,
    title: str = "",
    about: Sequence[str] = (),
) -> Report:
    """The report of a state under a name; `command` is how it was made. Other options are those of `Report.of`.

    >>> import calibrant as cal
    >>> state = cal.scale.State.of(cal.Predictions.from_probs([1, 0], [.9, .2]), {"ece": cal.ECE})
    >>> state_report(state, "monday.state", "calibrant report monday.state").verdict.sentence
    'ECE 0.1500 over 2 rows (event, 15 equal-width bins).'
    """
    results = state.results()
    if not results:
        raise CalibrationInputError("state", "must tell at least one metric", got="; ".join(results.refused.values()))
    drawn = _drawn(results)
    groups = [] if state.by is None else [_groups(state, results)]
    first = next(iter(results.values())) if drawn is None else drawn
    sections = [_numbers(results), _diagram(drawn), *groups]
    verdict = Verdict(
        f"{first.name} {first.value:.4f} over {counted(state.n, 'row')} ({_asked(first)}).",
        ("A state cannot tell whether that is more than chance.",),
        "unsure",
    )
    page = Page(
        title=f"Calibration of {inert(name, 120)}" if not title else inert(title, 200),
        verdict=verdict,
        sections=[*sections, Section("limits", "What a state cannot show", (_CANNOT,)), _methods(command)],
        data={"planes": planes()},
        about=[inert(line, 400) for line in about if line],
        checks=[
            LimitCheck.of(state.result(metric), limit, confident=False) for metric, limit in (limits or {}).items()
        ],
    )
    return Report(page)


def _numbers(results: Results) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for name, result in results.items():
        low, high = result.bounds or (result.value, result.value)
        rows.append((name, result.value, low, high, _exactness(result), _asked(result)))
    header = ("metric", "value", "surely from", "to", "how it is known", "what it asks")
    grid = PageTable(header, rows, "Metrics of all rows")
    paragraphs = [
        "Exact values are those of the rows, to the last digit. A range surely holds the value of the rows. It is due "
        "to the order of forecasts within cells, which was not kept; it is not about sampling.",
        *(f"{name} is not told: {reason}." for name, reason in results.refused.items()),
    ]
    return Section("family", "Numbers", paragraphs, (), (grid,))


def _exactness(result: Result) -> str:
    """How a value is known: exactly, within a range, or as its notes say."""
    if UNDETERMINED in result.notes:
        return "undetermined"
    if any(note.startswith(APPROXIMATE) for note in result.notes):
        return "approximate, without bounds"
    return "exact" if result.bounds is None or result.bounds[0] == result.bounds[1] else "a range"


def _asked(result: Result) -> str:
    return ", ".join(word for word in (result.question, result.choices) if word)


def _drawn(results: Mapping[str, Result]) -> Result | None:
    """The result whose bins are drawn: the first of one event in several bins that are known exactly."""
    for result in results.values():
        bins = result.bins
        if bins is None or bins.low is None or result.bounds is not None or len(result.about.names):
            continue
        if bins.shape[0] == 1 and bins.shape[1] > 1 and bins.outputs.shape[2] == 1:
            return result
    return None


def _diagram(drawn: Result | None) -> Section:
    """The reliability diagram of a result's bins, or why there is none."""
    title = "Reliability"
    if drawn is None:
        reason = "No metric of this state has exact bins of one event; keep ECE in it."
        return Section("reliability", title, (reason,))
    bins = drawn.bins
    assert bins is not None
    assert bins.low is not None
    assert bins.high is not None
    if round(float(bins.counts.sum())) != drawn.n:
        return Section("reliability", title, ("Rows are weighted: a state does not know how far their bins scatter.",))
    columns = (bins.low[0], bins.high[0], bins.counts[0], bins.forecast[0, :, 0], bins.frequency[0, :, 0])
    bars = [Bar(*map(float, each)) for each in zip(*columns, strict=True) if each[2] > 0]
    answers = drawn.question in ("top label", "top answer")
    words = ("confidence", "how often it was right") if answers else ("forecast", "how often it happened")
    over, under = ("over-confident", "under-confident") if answers else ("too high", "too low")
    description = f"{words[1].capitalize()} against {words[0]} in {counted(len(bars), 'bin')} that hold samples."
    picture = reliability(
        "reliability-picture", bars, words, f"Reliability diagram, {drawn.n:,} rows", description, sides=(over, under)
    )
    caption = (
        f"{drawn.n:,} rows, {drawn.choices}. Grey bars: {words[1]}; the black stroke is its 90% interval (Wilson). The "
        f"hatched part is the gap to the mean {words[0]}: {over} where the {words[0]} is above what came true, {under} "
        "where it is below. The dashed box is where the bar of a calibrated model would end in about 90 of 100 samples "
        "(normal approximation). Counts are exact."
    )
    grid = PageTable(HEADER, [row(bar) for bar in bars], "Reliability by bin", "reliability-table")
    return Section("reliability", title, (), (PageFigure("reliability-figure", picture, caption, grid),))


def _groups(state: State, results: Mapping[str, Result]) -> Section:
    """Each metric of the rows of each value of the column."""
    table = state.table({name: state.metrics[name] for name in results})
    rows: list[tuple[Cell, ...]] = [
        (name, max(result.n for result in each.values()), *(result.value for result in each.values()))
        for name, each in table.results.items()
    ]
    grid = PageTable((state.by or "", "rows", *results), rows, f"Metrics by {inert(state.by or '', 60)}")
    return Section("groups", "Groups", ("Values of metrics that are ranges stand for their range here.",), (), (grid,))


def _methods(command: str) -> Section:
    rows = [("command", command), ("calibrant", calibrant.__version__), ("NumPy", np.__version__)]
    return Section("methods", "Methods", (), (), (PageTable(("what", "value"), rows, "To make this page again"),))
