"""Groups and intervals: who is promised too much, and what "likely" means here."""

from __future__ import annotations

import math

import numpy as np

from calibrant import recipes
from calibrant.arrays import Array
from calibrant.errors.mean_score import MeanScore, output
from calibrant.inference.comparison import holm
from calibrant.predictions import Predictions
from calibrant.report.charts import signed_bars
from calibrant.report.page import Figure, Grid, Section
from calibrant.report.study import Study

MOST_COLUMNS, MOST_VALUES, DRAWN, LEAST_ROWS = 12, 200, 24, 20
"""Columns looked at, values of a column, groups drawn, rows a group must have to be tested."""
LIKERT = (("almost never", 0.0, 0.1), ("unlikely", 0.1, 0.35), ("even", 0.35, 0.65), ("likely", 0.65, 0.9),
          ("almost certain", 0.9, 1.0))  # fmt: skip
"""Words that people use, and the forecasts they stand for."""


def groups_section(study: Study) -> Section | None:
    """Signed gaps of the values of each column, the worst flagged after Holm's correction."""
    event = study.event
    found = []
    for column in [name for name, values in event.columns.items() if _is_grouping(values)][:MOST_COLUMNS]:
        values = event.columns[column]
        for value in np.unique(values):
            rows = event[values == value]
            if len(rows) >= LEAST_ROWS:
                found.append((f"{column} = {value}", rows))
    if not found:
        return None
    corrected = holm(np.array([gap_p_value(rows) for _, rows in found]))
    table = [
        (name, len(rows), gap, recipes.ECE(rows).value, float(p), _flag(gap, p))
        for (name, rows), p in zip(found, corrected, strict=True)
        for gap in (recipes.MCS(rows).value,)
    ]
    table.sort(key=lambda one: -abs(one[2]))
    flagged = [one for one in table if one[5]]
    said = (
        f"{len(flagged)} of {len(table)} groups are off by more than noise after Holm's correction for their number"
        + (f"; farthest: {flagged[0][0]} ({100 * flagged[0][2]:+.1f} points)." if flagged else ".")
    )
    drawn = table[:DRAWN]
    some = "" if len(drawn) == len(table) else f" The {DRAWN} farthest off of {len(table)} are drawn."
    picture = signed_bars(
        "groups-picture",
        [one[0] for one in drawn],
        [one[2] for one in drawn],
        f"Signed gaps by group, n = {len(event):,}",
        "Bars to the right are over-confident groups, to the left under-confident ones.",
        label="forecast less frequency, points",
    )
    header = ("group", "samples", "forecast less frequency", "ECE", "p, corrected", "flag")
    caption = f"n = {len(event):,}; groups of at least {LEAST_ROWS} rows.{some}"
    figure = Figure("groups-figure", picture, caption, Grid(header, table[:MOST_VALUES], "Groups"))
    return Section("groups", "Groups", (said,), (figure,))


def likert_section(study: Study) -> Section:
    """What came true of forecasts that people would call unlikely, even, likely."""
    event = study.event
    p = np.asarray(event.probabilities, np.float64)
    rows = []
    for word, low, high in LIKERT:
        inside = (p >= low) & ((p < high) | (high == 1.0))
        part = event[inside]
        gap = recipes.MCS(part).value if len(part) else math.nan
        promised = MeanScore(score=output)(part).value if len(part) else math.nan
        rows.append((word, f"{low:g} to {high:g}", len(part), promised, promised - gap, gap))
    header = ("in words", "forecasts", "samples", "mean forecast", "came true", "gap")
    grid = Grid(header, rows, "Forecasts in words")
    said = "If a forecast is shown to people as a word, does the word keep its promise?"
    return Section("likert", "Forecasts as words", (said,), (), (grid,))


def gap_p_value(event: Predictions) -> float:
    r"""How likely calibrated forecasts would be as far from the outcomes in the mean, by the normal approximation.

    .. math:: z = \frac{\sum_i w_i (p_i - y_i)}{\sqrt{\sum_i w_i^2 p_i (1 - p_i)}}

    >>> round(gap_p_value(Predictions.from_probs([1, 0, 0, 0], [.5, .5, .5, .5])), 4)
    0.3173
    """
    p = np.asarray(event.probabilities, np.float64)
    truth = event.truth_rows
    weight = np.ones(len(p)) if event.weight is None else event.weight
    spread = math.sqrt(float((weight**2 * p * (1 - p)).sum()))
    gap = abs(float((weight * (p - truth)).sum()))
    return 1.0 if gap == 0 else math.erfc(gap / spread / math.sqrt(2)) if spread > 0 else 0.0


def _flag(gap: float, p: float) -> str:
    if not p <= 0.05:
        return ""
    return "over-confident" if gap > 0 else "under-confident"


def _is_grouping(values: Array) -> bool:
    """Words, truth values or whole numbers, of a few kinds."""
    return values.dtype.kind in "Ubiu" and 1 < len(np.unique(values)) <= MOST_VALUES
