"""Curves of an event: its smooth and isotonic reliability, the numbers of prediction models, and decisions."""

from __future__ import annotations

import math

import numpy as np

from calibrant.errors.decision import net_benefits
from calibrant.inference.bands import ConfidenceBand, banded
from calibrant.inference.reliability_curves import Curve, CurveOf, isotonic, smooth
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric
from calibrant.recipes import AUROC, BRIER_SKILL, E90, ICI, INTERCEPT, OE_RATIO, SLOPE
from calibrant.report.charts import Line, lines
from calibrant.report.page import Cell, PageFigure, PageTable, Section
from calibrant.report.quoting import listed
from calibrant.report.sections.reliability_diagram import axis, drawn_bins
from calibrant.report.subject import Subject, tried
from calibrant.result import Result

POINTS = 33
"""Predictions at which curves are drawn."""
THRESHOLDS = np.arange(1, 100) / 100
"""Thresholds of the decision curve, as shares of the axis."""
NUMBERS: dict[str, tuple[Metric, str]] = {
    "calibration slope": (SLOPE, "1 is calibrated; below 1 predictions are too extreme, above 1 not extreme enough"),
    "calibration intercept": (INTERCEPT, "0 is calibrated; above 0 predictions are too low on average (log-odds)"),
    "observed / expected": (OE_RATIO, "1 is calibrated; how often it happened over how often it was predicted"),
    "ICI": (ICI, "mean distance of a smooth curve (loess) from the predictions; 0 is calibrated"),
    "E90": (E90, "the distance from that curve that 90% of the predictions do not exceed"),
    "AUROC": (AUROC, "how often a case has a higher prediction than a non-case; 0.5 is chance"),
    "Brier skill score": (BRIER_SKILL, "1 is perfect; 0 is no better than always predicting the base rate"),
}


def curves_section(subject: Subject) -> Section | None:
    """Smooth and isotonic curves with bands, and the numbers that prediction models are judged by; of events only."""
    if not subject.of_one_event or subject.table is None:
        return None
    curves = [_curve(subject, smooth), _curve(subject, isotonic)]
    at = _points(curves[0])
    figures = [_figure(subject, curves, at)] if len(at) > 1 else []
    paragraphs, grids = _numbers(subject)
    return Section("curves", "Calibration curves", paragraphs, figures, grids)


def _figure(subject: Subject, curves: list[Curve], at: Floats) -> PageFigure:
    names = ("smooth (local regression)", "isotonic (CORP)")
    series = [_line(name, curve, at) for name, curve in zip(names, curves, strict=True)]
    unknown = [math.nan] * len(at)
    columns = [part or unknown for line in series for part in (line.y, line.low, line.high)]
    rows: list[tuple[Cell, ...]] = list(zip(at.tolist(), *columns, strict=True))
    corner = drawn_bins([subject]).corner
    picture = lines(
        "curves-picture",
        series,
        axis(subject),
        f"Calibration curves, {subject.size}",
        "A smooth and an isotonic curve; a calibrated model is on the dashed diagonal.",
        span=corner.span,
        diagonal=True,
    )
    bands = (
        "Shaded: 90% confidence bands, at each prediction."
        if series[0].low is not None
        else "No bands: they need independent rows of weight 1 and hard labels."
    )
    caption = (
        f"{subject.size}. Dashed: calibrated. {bands} The bandwidth of the smooth curve is chosen by leave-one-out "
        f"cross-validation. The isotonic curve never falls and needs no bandwidth.{corner.sentence}"
    )
    header = ("prediction", "smooth", "90% from", "90% to", "isotonic", "90% from", "90% to")
    return PageFigure("curves-figure", picture, caption, PageTable(header, rows, "Points of the curves"))


def _numbers(subject: Subject) -> tuple[list[str], list[PageTable]]:
    """The table of numbers, and what is said of it."""
    results = {name: subject.statistic(metric) for name, (metric, _) in NUMBERS.items()}
    known = {name: result for name, result in results.items() if result is not None}
    rows: list[tuple[Cell, ...]] = [(name, *_cells(result), NUMBERS[name][1]) for name, result in known.items()]
    paragraphs = ["Does the event happen as often as predicted, at every predicted probability?"]
    undefined = {name: result for name, result in known.items() if math.isnan(result.value)}
    if undefined:
        notes = dict.fromkeys(note for result in undefined.values() for note in result.notes)
        paragraphs.append(f"Not defined: {listed(list(undefined), most=9)} ({'; '.join(notes)}).")
    bare = [name for name, result in known.items() if result.interval is None and name not in undefined]
    if bare:
        paragraphs.append(f"No interval is known to cover for: {listed(bare, most=9)}.")
    missing = [name for name in NUMBERS if name not in known]
    if missing:
        paragraphs.append(f"Not defined for these data: {listed(missing, most=9)}.")
    header = ("number", "value", "90% from", "90% to", "what it means")
    return paragraphs, [PageTable(header, rows, "Numbers of prediction models")] if rows else []


def _cells(result: Result) -> tuple[float, float, float]:
    ends = (math.nan, math.nan) if result.interval is None else (result.interval.low, result.interval.high)
    return (result.value, *ends)


def _curve(subject: Subject, curve: CurveOf) -> Curve:
    """The curve with its band, or without one where rows are not independent, weighted, or softly labelled."""
    table = subject.table
    assert table is not None
    band = tried(lambda: banded(ConfidenceBand(), curve, table)) if subject.cluster is None else None
    return curve(next(table.ladders())) if band is None else band


def _points(curve: Curve) -> Floats:
    """Points of the smooth curve where it is known, evenly spread."""
    known = curve.forecast[~np.isnan(curve.frequency)]
    return known[np.unique(np.rint(np.linspace(0, len(known) - 1, POINTS)).astype(np.int64))] if len(known) else known


def _line(name: str, curve: Curve, at: Floats) -> Line:
    """A curve at some points; between forecasts its band goes from the left's lower end to the right's upper."""
    known = ~np.isnan(curve.frequency)
    xs = curve.forecast[known]
    left = np.maximum(np.searchsorted(xs, at, side="right") - 1, 0)
    right = np.minimum(np.searchsorted(xs, at), len(xs) - 1)
    low, high = (
        None if end is None else end[known][place].tolist() for end, place in ((curve.low, left), (curve.high, right))
    )
    return Line(name, at.tolist(), np.interp(at, xs, curve.frequency[known]).tolist(), low, high)


def decisions_section(subject: Subject) -> Section | None:
    """The decision curve: what acting above a threshold is worth, against acting on all and on none; of events only."""
    if not subject.of_one_event or subject.table is None:
        return None
    corner = drawn_bins([subject]).corner
    low, high = corner.span
    thresholds = low + (high - low) * THRESHOLDS
    model = net_benefits(next(subject.table.ladders()), thresholds)
    rate = subject.frequency
    everybody = rate - (1 - rate) * thresholds / (1 - thresholds)
    lowest = -0.25 * max(float(model.max()), float(everybody.max()), 0.01)
    xs = thresholds.tolist()
    series = [
        Line(name, xs, np.where(values < lowest, np.nan, values).tolist())
        for name, values in (("act on the predictions", model), ("act on all", everybody), ("act on none", 0 * model))
    ]
    picture = lines(
        "decisions-picture",
        series,
        ("threshold: act where the prediction is at least this", "net benefit"),
        f"Decision curve, {subject.size}",
        "Net benefit of acting on the predictions, on all samples and on none.",
    )
    rows = [tuple(row) for row in np.column_stack([thresholds, model, everybody])[4::5].tolist()]
    header = ("threshold", "act on the predictions", "act on all")
    part = f" Thresholds go from {low:g} to {high:g}, where the predictions are." if corner.is_part else ""
    caption = (
        f"{subject.size}. Net benefit is true positives less false positives per sample, a false one weighted by the "
        f"odds of the threshold (Vickers & Elkin 2006). Acting on none has 0.{part}"
    )
    figure = PageFigure("decisions-figure", picture, caption, PageTable(header, rows, "Net benefit by threshold"))
    return Section("decisions", "Decision curve", (_worth(thresholds, model, everybody),), (figure,))


def _worth(thresholds: Floats, model: Floats, everybody: Floats) -> str:
    """At which thresholds the predictions are worth using: the longest stretch of them."""
    useful = np.flatnonzero(model > np.maximum(everybody, 0.0))
    if not len(useful):
        return "At no threshold is acting on the predictions worth more than acting on all samples, or on none."
    stretch = max(np.split(useful, np.flatnonzero(np.diff(useful) > 1) + 1), key=len)
    first, last = (f"{100 * thresholds[place]:.3g}%" for place in (stretch[0], stretch[-1]))
    return f"At thresholds from {first} to {last}, acting on the predictions is worth more than acting on all or none."
