"""Repair: what a recalibration would change, on rows that it was not fitted on."""

from __future__ import annotations

import math

from calibrant import recipes
from calibrant.recalibrate.choice import UNCHANGED
from calibrant.report.charts import Line, lines
from calibrant.report.page import Cell, Figure, Grid, Section
from calibrant.report.sections.reliability import axis, bars_of
from calibrant.report.study import Study


def repair_section(study: Study) -> Section:
    """Methods compared by cross-fitting, and reliability before and after the best of them."""
    title, found = "Recalibration", study.choice
    if found is None:
        reason = "Recalibration needs hard labels and at least 20 rows that can be fitted."
        return Section("repair", title, (reason,))
    header = ["method"]
    for name in next(iter(found.table.results.values())):
        header += [name, "90% from", "90% to"]
    rows: list[tuple[Cell, ...]] = []
    for method in found.ranking:
        cells: list[float] = []
        for one in found.table[method].values():
            ends = (math.nan, math.nan) if one.interval is None else (one.interval.low, one.interval.high)
            cells += [one.value, *ends]
        rows.append((method, *cells))
    n = len(study.repaired_rows)
    said = [found.verdict, f"Every row was mapped by a method fitted on the other folds (5 folds, n = {n:,}"]
    said[1] += ")." if n == len(study.predictions) else f" drawn at random from {len(study.predictions):,})."
    shown = next(name for name in [*found.ranking, UNCHANGED] if name != UNCHANGED or len(found.ranking) == 1)
    series = []
    for name in dict.fromkeys((UNCHANGED, shown)):
        bars = bars_of(recipes.ECE(found.forecasts[name]))
        series.append(Line(name, [bar.forecast for bar in bars], [bar.frequency for bar in bars], marks=True))
    series.append(Line("calibrated", [0.0, 1.0], [0.0, 1.0]))
    picture = lines(
        "repair-picture",
        series,
        axis(study),
        f"Reliability before and after, n = {n:,}",
        f"Reliability {UNCHANGED} and after {shown}, 15 bins each.",
    )
    caption = f"n = {n:,}, cross-fitted; {UNCHANGED} and after {shown}."
    figure = Figure("repair-figure", picture, caption, Grid(header, rows, "Methods"))
    return Section("repair", title, said, (figure,))
