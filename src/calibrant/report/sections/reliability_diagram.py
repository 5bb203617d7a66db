"""Reliability and noise: how often forecasts came true, and how far that could be chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.binning.fixed import EqualWidth
from calibrant.bins import Bins
from calibrant.inference.grouped import bin_numbers, by_blocks
from calibrant.kernels.totals import Floats
from calibrant.predictions import Predictions
from calibrant.recipes import ECE
from calibrant.report.charts import Bar, Line, histogram, reliability
from calibrant.report.corner import Corner, corner_of, leaves_room
from calibrant.report.page import Cell, PageFigure, PageTable, Section
from calibrant.report.question import Question
from calibrant.report.quoting import Quoted, amount, counted, sides
from calibrant.report.subject import Subject, redraws
from calibrant.result import Result
from calibrant.text import inert, p_value

HEADER = ("from", "to", "samples", "mean prediction", "observed", "90% from", "90% to", "gap")
TOGETHER = 1.2
"""The design effect above which dependence is spoken of."""
FEW = 10
"""Bins of fewer samples are left out where lines are compared: they jump about."""

MASSED = "ECE itself uses 15 bins of equal width, of which few hold samples here."


def axis(subject: Subject) -> tuple[str, str]:
    """What forecasts and outcomes are called."""
    if subject.together:
        return "predicted probability", "how often the label was true"
    if subject.predictions.forecasts.answers:
        return "confidence", "how often it was right"
    return "predicted probability", "how often it happened"


def reliability_figure(subject: Subject) -> PageFigure:
    """The reliability diagram that the reader can re-bin."""
    drawn = drawn_bins([subject])
    (bars,), corner = drawn.bars, drawn.corner
    words, (over, under) = axis(subject), sides(subject.predictions)
    picture = reliability(
        "reliability-picture",
        bars,
        words,
        f"Reliability diagram, {subject.size}",
        f"{words[1].capitalize()} against {words[0]} in {counted(len(bars), 'bin')} that hold samples; the table below "
        "has every number.",
        sides=(over, under),
        span=corner.span,
    )
    massed = " Each bin holds equally many samples." if drawn.cut == "mass" else ""
    pooled = f" All {len(subject.event):,} predictions are pooled, whatever the label is." if subject.together else ""
    caption = (
        f"Reliability diagram of the predicted probability that {subject.happening}, {subject.size}.{pooled} Bars of a "
        f"calibrated model end in the dashed boxes, near the diagonal.{corner.sentence}{massed}"
    )
    reading = (
        f"Grey bars: {words[1]}. The black stroke is its 90% interval (Wilson). The hatched part is the gap to the "
        f"mean {words[0]}: {over} where that is above the observed frequency, {under} where it is below. The "
        "dashed box is where the bar of a calibrated model would end in about 90 of 100 samples (normal approximation, "
        f"rough in bins of few samples). Below: how many samples each bin holds.{_remark(subject)}"
        f"{f' {MASSED}' if massed else ''}"
    )
    grid = PageTable(HEADER, [row(bar) for bar in bars], "Reliability by bin", "reliability-table")
    return PageFigure(
        "reliability-figure", picture, caption, grid, controls=drawn.cut, span=corner.span, reading=reading
    )


@dataclass(frozen=True)
class DrawnBins:
    """The bins that are drawn of each question, and the part of the unit square that holds them."""

    bars: list[list[Bar]]
    corner: Corner
    cut: str = "width"
    """"width" or "mass": what is equal of all bins."""


def drawn_bins(questions: Sequence[Question]) -> DrawnBins:
    """15 bins of equal width; of equal mass, where those would leave at least half of the square empty."""
    wide = [bars_of(by_blocks(ECE, each.event), each.event, each.squares) for each in questions]
    if not all(map(leaves_room, wide)):
        return DrawnBins(wide, Corner())
    massed = [_massed(each) for each in questions]
    cut, bars = ("mass", massed) if all(massed) else ("width", wide)
    corner = corner_of([bar for each in bars for bar in each], [each.event for each in questions])
    return DrawnBins(bars, corner, cut) if corner.is_part else DrawnBins(wide, Corner())


def _massed(question: Question) -> list[Bar]:
    """15 bins of equally many samples; none under fractional weights."""
    rows = question.cells.equal_mass(EqualWidth().n_bins).tolist()
    weighted = question.squares is not None
    return [
        Bar(low, high, count, forecasts / count, outcomes / count, squares if weighted else None)
        for low, high, count, forecasts, outcomes, squares in rows
    ]


def _remark(subject: Subject) -> str:
    """What weights and soft labels do to the uncertainty drawn."""
    remark = ""
    if subject.column is not None:
        what, units = ("rows of one", inert(subject.groups, 60)) if subject.groups else ("labels of a", "row")
        remark += (
            f" The {what} {units} need not be independent: intervals and boxes are as wide as the scatter between "
            "those makes them."
        )
    if subject.event.weight is not None:
        remark += (
            " Samples are weighted: counts are sums of weights, and intervals are those of Kish's effective number of "
            "samples."
        )
    if subject.event.soft is not None:
        remark += (
            " Labels are soft and scatter less than events do: intervals and boxes are too wide rather than too narrow."
        )
    return remark


def bars_of(result: Result, event: Predictions, squares: Floats | None = None) -> list[Bar]:
    """The bins of a result that hold samples; `squares` are squared weights, where those of the event are not meant."""
    bins = result.bins
    assert isinstance(bins, Bins)
    assert bins.low is not None
    assert bins.high is not None
    columns = [bins.low[0], bins.high[0], bins.counts[0], bins.forecast[0, :, 0], bins.frequency[0, :, 0]]
    if squares is None and event.weight is not None:
        squares = event.weight**2
    if squares is not None:
        columns.append(np.bincount(bin_numbers(EqualWidth(), event), squares, len(columns[0])))
    return [Bar(*map(float, each)) for each in zip(*columns, strict=True) if each[2] > 0]


def row(bar: Bar) -> tuple[Cell, ...]:
    """A bin as a row of the table."""
    samples = Quoted(bar.count, amount(bar.count))
    return (bar.low, bar.high, samples, bar.forecast, bar.frequency, *bar.interval, bar.forecast - bar.frequency)


def compared(
    questions: Sequence[Question], title: str, *, banded: bool = False
) -> tuple[list[Line], PageTable, DrawnBins]:
    """Reliability of several models in 15 bins each, as lines, with intervals if wanted, and as a table."""
    series: list[Line] = []
    rows: list[tuple[Cell, ...]] = []
    every = drawn_bins(questions)
    for name, bars in zip([each.name for each in questions], every.bars, strict=True):
        drawn = [bar for bar in bars if bar.effective >= FEW] or bars
        xs, ys = [bar.forecast for bar in drawn], [bar.frequency for bar in drawn]
        low, high = ([bar.interval[end] for bar in drawn] if banded else None for end in (0, 1))
        series.append(Line(name, xs, ys, low, high, marks=True))
        rows += [(name, *row(bar)) for bar in bars]
    return series, PageTable(("model", *HEADER), rows, title), every


def noise_section(subject: Subject) -> Section:
    """What ECE would be if the forecasts were calibrated."""
    title = "Noise floor"
    null = subject.null
    if null is None:
        reason = "Labels are soft: predictions do not say how soft labels scatter, so there is no noise floor."
        return Section("noise", title, (reason,))
    value, drawn = subject.ece.value, redraws(subject.ece)
    where = "above" if null.excess >= 0 else "below"
    sentence = (
        "A calibrated model does not show an ECE of 0, because outcomes are random. If these predictions were "
        f"calibrated, {subject.rows} would show an ECE of {null.mean:.4f} on average (the noise "
        f"floor) and at most {null.quantile(0.95):.4f} in 95 of 100 samples. Observed: {value:.4f}, which is "
        f"{abs(null.excess):.4f} {where} the floor ({p_value(null.p_value, drawn)}, from {len(null.values)} "
        f"{'redraws of the labels' if subject.column is None else 'redraws'})."
    )
    picture = histogram(
        "noise-picture",
        null.values,
        value,
        ("ECE if the predictions were calibrated", "redraws"),
        f"Noise floor of ECE, {subject.size}",
        f"Redraws between {null.values.min():.4f} and {null.values.max():.4f}; observed {value:.4f}.",
    )
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    rows: list[tuple[Cell, ...]] = [("mean (the noise floor)", null.mean)]
    rows += [(f"{100 * q:g}% of samples are below", null.quantile(q)) for q in shares]
    grid = PageTable(("if calibrated", "ECE"), [*rows, ("observed", value)], "ECE under calibration")
    caption = f"{subject.size}, {len(null.values)} redraws. Red: the ECE of the data."
    paragraphs = [sentence]
    if subject.whole.effect > TOGETHER:
        what = f"rows of one {inert(subject.groups, 60)}" if subject.groups else "labels of one row"
        paragraphs.append(
            f"Outcomes of {what} depend on each other: their sum varies {subject.whole.effect:.1f} times as much as if "
            "they were independent. The floor and its p-value allow for that."
        )
    return Section("noise", title, paragraphs, (PageFigure("noise-figure", picture, caption, grid),))
