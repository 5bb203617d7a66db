"""Proper scores: the loss in all, and how much of it calibration, sharpness and the task itself make up."""

from __future__ import annotations

import math
from functools import partial

from calibrant import recipes
from calibrant.errors.isotonic import IsotonicError, Score, logarithmic, quadratic
from calibrant.errors.mean_score import MeanScore
from calibrant.inference.grouped import concluded
from calibrant.report.page import Cell, PageTable, Section
from calibrant.report.subject import Subject, tried


def scores_section(subject: Subject) -> Section:
    """Accuracy, log loss and Brier score with intervals; the decomposition of the main event's."""
    metrics: dict[str, tuple[MeanScore, str]] = {
        "log loss": (recipes.LOG_LOSS, "Minus the logarithm of the probability of the outcome, on average."),
        "Brier score": (recipes.BRIER, "Squared distance of the prediction from the outcome, on average."),
    }
    if subject.predictions.forecasts.answers:
        metrics["accuracy"] = (recipes.ACCURACY, f"How often is {subject.answer} right?")
    rows: list[tuple[Cell, ...]] = []
    for name, (metric, question) in metrics.items():
        result = subject.score(metric)
        if result is None:
            continue
        ends = (math.nan, math.nan) if result.interval is None else (result.interval.low, result.interval.high)
        rows.append((name, result.value, *ends, question))
    grids = [PageTable(("metric", "value", "90% from", "90% to", "what it asks"), rows, f"Scores, {subject.size}")]
    paragraphs = ["A proper score is lowest on average for the true probabilities, so it counts every kind of error."]
    if subject.lacking:
        paragraphs.append(f"Left out: log loss and Brier score of all classes (each {subject.lacking}).")
    parts = _parts(subject)
    if parts:
        names = ("score", "in all", "miscalibration", "discrimination", "uncertainty")
        parts_of = "miscalibration - discrimination + uncertainty"
        title = f"What the scores are made of, for the prediction that {subject.happening}: {parts_of}"
        grids.append(PageTable(names, parts, title))
        paragraphs.append(
            "Miscalibration is by how much isotonic recalibration, fitted on these very rows, would lower the score "
            "(CORP). Discrimination is what the recalibrated predictions gain over the base rate. Uncertainty is the "
            "score of the base rate itself."
        )
        if subject.event.soft is not None:
            paragraphs.append(
                "Labels are soft: the expected Brier score is the mean over outcomes drawn at those rates. "
                "The Brier score above is the squared distance from the rates themselves."
            )
    if any(math.isinf(cell) for row in rows for cell in row if isinstance(cell, float)):
        paragraphs.append("A log loss is infinite where an outcome had probability 0.")
    return Section("scores", "Proper scores", paragraphs, (), grids)


def _parts(subject: Subject) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    brier = "Brier score" if subject.event.soft is None else "expected Brier score"
    scores: dict[str, Score] = {brier: quadratic, "log loss": logarithmic}
    for name, score in scores.items():
        metric = IsotonicError(score=score)
        table = subject.table
        result = tried(partial(metric, subject.event)) if table is None else concluded(metric, table)
        if result is not None:
            parts = [result.details[key] for key in ("score", "miscalibration", "discrimination", "uncertainty")]
            rows.append((name, *parts))
    return rows
