"""Models: several sets of forecasts of the same rows, side by side and pair by pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from calibrant import recipes
from calibrant.inference.comparison import Comparison, compare_all
from calibrant.kernels.totals import Ints
from calibrant.predictions import Predictions
from calibrant.report.charts import lines
from calibrant.report.gaps import LEVEL
from calibrant.report.page import Cell, Figure, Grid, Section
from calibrant.report.sections.reliability import FEW, axis, compared
from calibrant.report.study import Study, tried
from calibrant.report.words import listed, quoted_p
from calibrant.text import inert

DRAWN, PAIRED = 4, 8
"""Models that are drawn, and that are compared pair by pair."""
_FORECASTS, _RESAMPLES = 1e6, 200
"""Forecasts of a model that pairs are compared on, and resamples of them."""


def models_section(studies: Sequence[Study]) -> Section:
    """Each model's numbers, their reliability in one picture, and paired differences."""
    first, n = studies[0], len(studies[0].predictions)
    rows: list[tuple[Cell, ...]] = []
    for study in studies:
        scores = [study.score(metric).value for metric in (recipes.LOG_LOSS, recipes.BRIER)]
        floor = study.ece.details.get("noise_floor", math.nan)
        rows.append((study.name, study.ece.value, floor, study.mcs.value, *scores, len(study.predictions)))
    header = ("model", "ECE", "noise floor", "confidence - right", "log loss", "Brier score", "rows")
    series, drawn = compared([(study.name, study.event) for study in studies[:DRAWN]], "Reliability by bin and model")
    picture = lines(
        "models-picture",
        series,
        axis(first),
        f"Reliability of {len(series)} models, n = {n:,}",
        "One line a model, 15 bins each; a calibrated model is on the dashed diagonal.",
        span=(0.0, 1.0),
        diagonal=True,
    )
    some = "" if len(studies) <= DRAWN else f" The first {DRAWN} of {len(studies)} models are drawn."
    caption = f"n = {n:,}. Dashed: calibrated. Bins of fewer than {FEW} samples are in the table only.{some}"
    pairs, said = _pairs(studies)
    names = ("metric", "pair", "difference", "90% from", "90% to", "p, corrected", "in words")
    grids = [Grid(header, rows, "Models side by side")]
    grids += [Grid(names, pairs, "Paired differences, first less second")] if pairs else []
    leads = (
        f"The verdict and all that follows is about the first, {inert(first.name, 60)}.",
        said,
    )
    return Section("models", "Models side by side", leads, (Figure("models-figure", picture, caption, drawn),), grids)


def lowest(studies: Sequence[Study]) -> str:
    """Which model has the lowest ECE and log loss, for the verdict."""
    names = [
        _lowest(studies, [study.ece.value for study in studies]),
        _lowest(studies, [study.score(recipes.LOG_LOSS).value for study in studies]),
    ]
    if len({len(study.predictions) for study in studies}) > 1 or not all(
        _same_truth(studies[0], study) for study in studies
    ):
        return f"The {len(studies)} files hold different rows: their numbers are not about the same data."
    if names[0] == names[1]:
        return f"Of {len(studies)} models, the lowest ECE and the lowest log loss: {names[0]}."
    return f"Of {len(studies)} models, the lowest ECE: {names[0]}; the lowest log loss: {names[1]}."


def _lowest(studies: Sequence[Study], values: Sequence[float]) -> str:
    """Who has the lowest value; several, where they are equal."""
    names = [study.name for study, value in zip(studies, values, strict=True) if value == min(values)]
    return listed(names, length=60) if names else inert(studies[0].name, 60)


def _same_truth(first: Study, second: Study) -> bool:
    """Whether two sets of forecasts can be of the same rows: their outcomes agree, one by one.

    Whether answers are right differs between models of the same questions, so that of confidences nothing is known.
    """
    if "confidence" in (first.predictions.kind, second.predictions.kind):
        return True
    truths = [(one.predictions.labels, one.predictions.soft) for one in (first, second)]
    return all(
        (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))
        for a, b in zip(*truths, strict=True)
    )


def _pairs(studies: Sequence[Study]) -> tuple[list[tuple[Cell, ...]], str]:
    """Paired differences, and what they are from."""
    chosen = list(studies[:PAIRED])
    rows = _some(chosen[0])
    models = {study.name: study.predictions if rows is None else study.predictions[rows] for study in chosen}
    resamples = int(np.clip(2e7 / (len(next(iter(models.values()))) * len(chosen)), 20, _RESAMPLES))
    found = _compared(models, resamples, studies[0].seed)
    if found is None:
        if chosen[0].predictions.kind == "confidence":
            return (
                [],
                "Of confidences it is not known whether files hold the same rows: no paired differences.",
            )
        return [], "These files do not hold the same rows and labels: models cannot be compared pair by pair."
    made = [
        _row(name, pair, one, resamples, len(pairs)) for name, pairs in found.items() for pair, one in pairs.items()
    ]
    more = "" if len(studies) <= PAIRED else f" The first {PAIRED} models are compared."
    part = "" if rows is None else f" They are of {len(rows):,} rows drawn at random."
    return made, (
        f"Differences are paired: each of {resamples} resamples draws the same rows for all models. p-values are "
        f"corrected for the number of pairs (Holm).{part}{more}"
    )


def _compared(
    models: Mapping[str, Predictions], resamples: int, seed: int
) -> dict[str, dict[tuple[str, str], Comparison]] | None:
    """Every pair by ECE and log loss; None where they are not of the same rows."""
    with np.errstate(invalid="ignore"):  # log losses may be infinite
        errors = tried(lambda: compare_all(recipes.ECE, models, resamples, seed))
        if errors is None:  # the truths that log losses are made of would not tell
            return None
        truths = {name: _of_truth(model) for name, model in models.items()}
        return {"ECE": errors, "log loss": compare_all(recipes.LOG_LOSS, truths, resamples, seed)}


def _row(name: str, pair: tuple[str, str], one: Comparison, resamples: int, pairs: int) -> tuple[Cell, ...]:
    p = math.nan if one.adjusted_p_value is None else one.adjusted_p_value
    sure = (one.interval.low > 0 or one.interval.high < 0) and p <= LEVEL
    words = f"{inert(pair[1] if one.difference > 0 else pair[0], 40)} is lower" if sure else "no clear difference"
    ends = (one.interval.low, one.interval.high)
    less = " less ".join(inert(part, 60) for part in pair)
    return (name, less, one.difference, *ends, quoted_p(p, resamples, pairs), words)


def _some(study: Study) -> Ints | None:
    """The rows that pairs are compared on, where not on all."""
    n, most = len(study.predictions), max(1000, int(_FORECASTS / study.width))
    if n <= most:
        return None
    rng = np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=(11,)))
    return np.sort(rng.choice(n, most, replace=False))


def _of_truth(predictions: Predictions) -> Predictions:
    """What the log loss needs of forecasts of many classes: the probability of the truth, as an event that happened."""
    if predictions.kind != "classes" or predictions.labels is None:
        return predictions
    given = predictions.probability_of(predictions.labels[:, None])[:, 0]
    happened = np.ones(len(given), np.int64)
    return Predictions.from_confidence(happened, given, sample_weight=predictions.weight, copy=False)
