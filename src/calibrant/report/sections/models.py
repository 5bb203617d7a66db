"""Models: several sets of forecasts of the same rows, side by side and pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from calibrant import recipes
from calibrant.inference.comparison import compare_all
from calibrant.report.charts import Line, lines
from calibrant.report.page import Cell, Figure, Grid, Section
from calibrant.report.sections.reliability import axis, bars_of
from calibrant.report.study import Study, tried


def models_section(studies: Sequence[Study]) -> Section:
    """Each model's numbers, their reliability in one picture, and paired differences."""
    first = studies[0]
    rows: list[tuple[Cell, ...]] = []
    for study in studies:
        scores = [metric(study.predictions).value for metric in (recipes.LOG_LOSS, recipes.BRIER)]
        rows.append((study.name, study.ece.value, study.mcs.value, *scores, len(study.predictions)))
    header = ("model", "ECE", "MCS", "log loss", "Brier", "rows")
    series = []
    for study in studies[:4]:
        bars = bars_of(study.ece)
        series.append(Line(study.name, [bar.forecast for bar in bars], [bar.frequency for bar in bars], marks=True))
    picture = lines(
        "models-picture",
        series,
        axis(first),
        f"Reliability of {len(studies)} models, n = {len(first.predictions):,}",
        "One line a model, 15 bins each; the table below has the numbers.",
    )
    caption = f"n = {len(first.predictions):,}." + ("" if len(studies) <= 4 else " The first four models are drawn.")
    figure = Figure("models-figure", picture, caption, Grid(header, rows, "Models side by side"))
    pairs = _pairs(studies)
    said = "Differences are paired: every resample draws the same rows for both models; p-values are Holm's."
    if not pairs:
        said = "The files do not hold the same rows, so that models cannot be compared pair by pair."
    names = ("metric", "pair", "difference", "90% from", "90% to", "p, corrected")
    grids = (Grid(names, pairs, "Paired differences, first less second"),) if pairs else ()
    return Section("models", "Models side by side", (said,), (figure,), grids)


def _pairs(studies: Sequence[Study]) -> list[tuple[Cell, ...]]:
    made: list[tuple[Cell, ...]] = []
    events = {study.name: study.event for study in studies}
    whole = {study.name: study.predictions for study in studies}
    resamples = min(study.resamples for study in studies)
    for name, metric, models in (("ECE", recipes.ECE, events), ("log loss", recipes.LOG_LOSS, whole)):
        found = tried(partial(compare_all, metric, models, resamples, studies[0].seed))
        for pair, one in (found or {}).items():
            ends = (one.interval.low, one.interval.high)
            made.append((name, " less ".join(pair), one.difference, *ends, one.adjusted_p_value or 0.0))
    return made
