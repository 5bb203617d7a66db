"""Models: several sets of forecasts of the same rows, side by side and pair by pair."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from calibrant import recipes
from calibrant.door.kinds import COLUMNS
from calibrant.inference.comparison import Comparison, compare_all, corrected_for_number
from calibrant.kernels.totals import Ints
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.report.charts import lines
from calibrant.report.page import Cell, PageFigure, PageTable, Section
from calibrant.report.quoting import listed, quoted_p
from calibrant.report.sections.reliability_diagram import FEW, axis, compared
from calibrant.report.subject import Subject, tried
from calibrant.result import Result
from calibrant.text import inert

DRAWN, PAIRED = 4, 8
"""Models that are drawn, and that are compared pair by pair."""
_FORECASTS, _RESAMPLES = 1e6, 200
"""Forecasts of a model that pairs are compared on, and resamples of them."""


def models_section(subjects: Sequence[Subject]) -> Section:
    """Each model's numbers, their reliability in one picture, and paired differences."""
    first = subjects[0]
    rows: list[tuple[Cell, ...]] = []
    for subject in subjects:
        scores = [_value(subject.score(metric)) for metric in (recipes.LOG_LOSS, recipes.BRIER)]
        floor = subject.ece.details.get("noise_floor", math.nan)
        rows.append((subject.name, subject.ece.value, floor, subject.mcs.value, *scores, len(subject.predictions)))
    gap = "confidence - right" if first.predictions.forecasts.answers else "forecast - frequency"
    header = ("model", "ECE", "noise floor", gap, "log loss", "Brier score", "rows")
    events = [(subject.name, subject.event, subject.squares) for subject in subjects[:DRAWN]]
    series, drawn = compared(events, "Reliability by bin and model")
    picture = lines(
        "models-picture",
        series,
        axis(first),
        f"Reliability of {len(series)} models, {first.size}",
        "One line a model, 15 bins each; a calibrated model is on the dashed diagonal.",
        span=(0.0, 1.0),
        diagonal=True,
    )
    some = "" if len(subjects) <= DRAWN else f" The first {DRAWN} of {len(subjects)} models are drawn."
    caption = f"{first.size}. Dashed: calibrated. Bins of fewer than {FEW} samples are in the table only.{some}"
    pairs, remark = _pairs(subjects)
    names = ("metric", "pair", "difference", "90% from", "90% to", "p, corrected", "in words")
    grids = [PageTable(header, rows, "Models side by side")]
    grids += [PageTable(names, pairs, "Paired differences, first less second")] if pairs else []
    leads = (
        f"The verdict and all that follows is about the first, {inert(first.name, 60)}.",
        remark,
    )
    return Section(
        "models", "Models side by side", leads, (PageFigure("models-figure", picture, caption, drawn),), grids
    )


def lowest(subjects: Sequence[Subject]) -> str:
    """Which model has the lowest ECE and log loss, for the verdict."""
    losses = [_value(subject.score(recipes.LOG_LOSS)) for subject in subjects]
    names = [_lowest(subjects, values) for values in ([subject.ece.value for subject in subjects], losses)]
    if len({len(subject.predictions) for subject in subjects}) > 1 or not all(
        _same_truth(subjects[0], subject) for subject in subjects
    ):
        return f"The {len(subjects)} files hold different rows: their numbers are not about the same data."
    if math.isnan(sum(losses)):
        return f"Of {len(subjects)} models, the lowest ECE: {names[0]}."
    if names[0] == names[1]:
        return f"Of {len(subjects)} models, the lowest ECE and the lowest log loss: {names[0]}."
    return f"Of {len(subjects)} models, the lowest ECE: {names[0]}; the lowest log loss: {names[1]}."


def _value(result: Result | None) -> float:
    return math.nan if result is None else result.value


def _lowest(subjects: Sequence[Subject], values: Sequence[float]) -> str:
    """Who has the lowest value; several, where they are equal."""
    names = [subject.name for subject, value in zip(subjects, values, strict=True) if value == min(values)]
    return listed(names, length=60) if names else inert(subjects[0].name, 60)


def _same_truth(first: Subject, second: Subject) -> bool:
    """Whether two sets of forecasts can be of the same rows: their outcomes agree, one by one.

    Whether answers are right differs between models of the same questions, so that of confidences nothing is known.
    """
    if not (first.predictions.forecasts.knows_truth and second.predictions.forecasts.knows_truth):
        return True
    truths = [(subject.predictions.labels, subject.predictions.soft) for subject in (first, second)]
    return all(
        (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))
        for a, b in zip(*truths, strict=True)
    )


def _pairs(subjects: Sequence[Subject]) -> tuple[list[tuple[Cell, ...]], str]:
    """Paired differences, and what they are from."""
    chosen = list(subjects[:PAIRED])
    rows = _some(chosen[0])
    models = {subject.name: subject.predictions if rows is None else subject.predictions[rows] for subject in chosen}
    resamples = int(np.clip(2e7 / (len(next(iter(models.values()))) * len(chosen)), 20, _RESAMPLES))
    comparisons = _compared(chosen[0].asked(recipes.ECE), models, resamples, subjects[0])
    if comparisons is None:
        if not chosen[0].predictions.forecasts.knows_truth:
            return (
                [],
                "Of confidences it is not known whether files hold the same rows: no paired differences.",
            )
        return [], "These files do not hold the same rows and labels: models cannot be compared pair by pair."
    differences = [_row(name, pair, comparison) for (name, pair), comparison in comparisons.items()]
    more = "" if len(subjects) <= PAIRED else f" The first {PAIRED} models are compared."
    part = "" if rows is None else f" They are of {len(rows):,} rows drawn at random."
    together = f", rows of one {inert(subjects[0].groups, 60)} together" if subjects[0].groups else ""
    return differences, (
        f"Differences are paired: each of {resamples} resamples draws the same rows for all models{together}. "
        f"p-values are corrected for their number (Holm); a model is called better where p is at most 0.05.{part}{more}"
    )


def _compared(
    error: Metric, models: Mapping[str, Predictions], resamples: int, first: Subject
) -> dict[tuple[str, tuple[str, str]], Comparison] | None:
    """Every pair by ECE and log loss; None where they are not of the same rows."""
    with np.errstate(invalid="ignore"):  # log losses may be infinite
        errors = tried(lambda: compare_all(error, models, resamples, first.seed, groups=first.groups))
        if errors is None:  # the truths that log losses are made of would not tell
            return None
        truths = tried(lambda: {name: _of_truth(model) for name, model in models.items()})
        together = {"ECE": errors}
        if truths is not None:
            together["log loss"] = compare_all(recipes.LOG_LOSS, truths, resamples, first.seed, groups=first.groups)
    return corrected_for_number(
        {(name, pair): comparison for name, pairs in together.items() for pair, comparison in pairs.items()}
    )


def _row(name: str, pair: tuple[str, str], comparison: Comparison) -> tuple[Cell, ...]:
    p = math.nan if comparison.adjusted_p_value is None else comparison.adjusted_p_value
    ends = (comparison.interval.low, comparison.interval.high)
    less = " less ".join(inert(part, 60) for part in pair)
    words = comparison.verdict(*(inert(part, 40) for part in pair))
    return (name, less, comparison.difference, *ends, quoted_p(p), words)


def _some(subject: Subject) -> Ints | None:
    """The rows that pairs are compared on, where not on all."""
    n, most = len(subject.predictions), max(1000, int(_FORECASTS / subject.width))
    if n <= most:
        return None
    rng = np.random.default_rng(np.random.SeedSequence(subject.seed, spawn_key=(11,)))
    return np.sort(rng.choice(n, most, replace=False))


def _of_truth(predictions: Predictions) -> Predictions:
    """What the log loss needs of forecasts of many classes: the probability of the truth, as an event that happened."""
    if predictions.forecasts.of_events or predictions.labels is None:
        return predictions
    predictions.forecasts.require(COLUMNS, "log loss")
    probabilities = predictions.probability_of(predictions.labels[:, None])[:, 0]
    happened = np.ones(len(probabilities), np.int64)
    truths = Predictions.from_confidence(happened, probabilities, sample_weight=predictions.weight, copy=False)
    return dataclasses.replace(truths, columns=predictions.columns)
