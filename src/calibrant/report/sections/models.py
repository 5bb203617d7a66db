"""Models: several sets of predictions of the same rows, side by side and pair by pair."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant import recipes
from calibrant.door.kinds import COLUMNS
from calibrant.inference.comparison import Comparison, compare, corrected_for_number
from calibrant.kernels.totals import Ints
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.report.charts import lines
from calibrant.report.page import Cell, PageFigure, PageTable, Section
from calibrant.report.quoting import Quoted, quoted_p
from calibrant.report.sections.reliability_diagram import FEW, axis, compared
from calibrant.report.subject import Subject, tried
from calibrant.text import inert

DRAWN, PAIRED = 6, 8
"""Models that are drawn, and that are compared pair by pair."""
BANDED = 2
"""Models up to which intervals are drawn: more would hide each other."""
_FORECASTS, _RESAMPLES = 1e6, 200
"""Forecasts of a model that pairs are compared on, and resamples of them."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Paired differences of models in each metric, or the reason why there are none."""

    comparisons: dict[str, dict[tuple[str, str], Comparison]]
    """By metric, then by pair; p-values are corrected for the number of all."""
    remark: str

    def between(self, metric: str, first: str, second: str) -> Comparison | None:
        """The comparison of two models, whichever comes first in it."""
        pairs = self.comparisons.get(metric, {})
        return pairs.get((first, second)) or pairs.get((second, first))

    def worse(self, metric: str, first: str, second: str) -> bool | None:
        """Whether the first is clearly worse than the second; None where the difference may be noise."""
        comparison = self.between(metric, first, second)
        if comparison is None or comparison.worse is None:
            return None
        return comparison.worse == ((first, second) in self.comparisons[metric])

    def rivals(self, metric: str, best: str, names: Sequence[str]) -> list[str]:
        """Models that are not clearly worse than the best."""
        return [name for name in names if name != best and self.worse(metric, name, best) is not True]


def metrics_of(subject: Subject) -> dict[str, Metric]:
    """What models are compared by, as far as these predictions have it."""
    metrics: dict[str, Metric] = {"ECE": subject.asked(recipes.ECE), "log loss": recipes.LOG_LOSS}
    if subject.predictions.forecasts.answers:
        metrics["accuracy"] = recipes.ACCURACY
    if not subject.lacking:
        metrics["Brier score"] = recipes.BRIER
    if subject.of_one_event:
        metrics["AUROC"] = recipes.AUROC
    return metrics


def pairs_of(subjects: Sequence[Subject]) -> Pairs:
    """Every pair of models in every metric, on the same rows."""
    chosen, first = list(subjects[:PAIRED]), subjects[0]
    rows = _some(first)
    models = {subject.name: subject.predictions if rows is None else subject.predictions[rows] for subject in chosen}
    resamples = int(np.clip(2e7 / (len(next(iter(models.values()))) * len(chosen)), 20, _RESAMPLES))
    every: dict[tuple[str, tuple[str, str]], Comparison] = {}
    with np.errstate(invalid="ignore"):  # log losses may be infinite
        for metric, pair in itertools.product(metrics_of(first), itertools.combinations(models, 2)):
            comparison = tried(partial(_compared, first, metric, models[pair[0]], models[pair[1]], resamples))
            if comparison is not None:
                every[metric, pair] = comparison
    if sum(metric == "ECE" for metric, _ in every) < math.comb(len(models), 2):
        if first.predictions.forecasts.knows_truth:
            return Pairs({}, "These files do not hold the same rows and labels: models cannot be compared.")
        return Pairs({}, "Models cannot be compared: of confidences it is not known whether files hold the same rows.")
    sorted_out: dict[str, dict[tuple[str, str], Comparison]] = {}
    for (metric, pair), comparison in corrected_for_number(every).items():
        sorted_out.setdefault(metric, {})[pair] = comparison
    return Pairs(sorted_out, _remark(subjects, resamples, rows))


def _remark(subjects: Sequence[Subject], resamples: int, rows: Ints | None) -> str:
    """What the differences are from."""
    groups = subjects[0].groups
    together = f", and rows of one {inert(groups, 60)} together" if groups else ""
    more = "" if len(subjects) <= PAIRED else f" The first {PAIRED} models are compared."
    part = "" if rows is None else f" They are of {len(rows):,} rows drawn at random."
    return (
        f"Differences are paired: each of {resamples} resamples draws the same rows for all models{together}. "
        f"p-values are corrected for the number of all comparisons (Holm).{part}{more}"
    )


def _compared(first: Subject, metric: str, model: Predictions, rival: Predictions, resamples: int) -> Comparison:
    asked = metrics_of(first)[metric]
    if metric == "log loss":
        model, rival = _of_truth(model, rival), _of_truth(rival, model)
    return compare(asked, model, rival, resamples, first.seed, groups=first.groups)


def models_figure(subjects: Sequence[Subject]) -> PageFigure:
    """The reliability of all models in one picture, with intervals where there are two."""
    first, drawn = subjects[0], subjects[:DRAWN]
    series, grid, bins = compared(drawn, "Reliability by bin and model", banded=len(subjects) <= BANDED)
    picture = lines(
        "models-picture",
        series,
        axis(first),
        f"Reliability of {len(series)} models, {first.size}",
        "One line a model, 15 bins each; a calibrated model is on the dashed diagonal.",
        span=bins.corner.span,
        diagonal=True,
    )
    some = "" if len(subjects) <= DRAWN else f" The first {DRAWN} of {len(subjects)} models are drawn."
    shaded = " Shaded: 90% intervals (Wilson)." if len(subjects) <= BANDED else ""
    caption = (
        f"{first.size}. Dashed: calibrated.{shaded} 15 equal-{bins.cut} bins; those of fewer than {FEW} samples are in "
        f"the table only.{bins.corner.sentence}{some}"
    )
    return PageFigure("models-figure", picture, caption, grid)


def models_table(subjects: Sequence[Subject], pairs: Pairs) -> PageTable:
    """Models by metrics, the best of each column marked, and what is clearly worse than it."""
    names = [subject.name for subject in subjects]
    columns: list[list[Cell]] = [list(names)]
    metrics = {
        name: metric
        for name, metric in metrics_of(subjects[0]).items()
        if name in pairs.comparisons or not pairs.comparisons
    }
    for name, metric in metrics.items():
        values = [value_of(subject, name) for subject in subjects]
        columns.append(_marked(name, names, values, pairs, rising=metric.facts.lower_is_better is False))
    columns += [
        [subject.ece.details.get("noise_floor", math.nan) for subject in subjects],
        [subject.mcs.value for subject in subjects],
        [len(subject.predictions) for subject in subjects],
    ]
    gap = "confidence - accuracy" if subjects[0].predictions.forecasts.answers else "prediction - frequency"
    header = ("model", *metrics, "ECE if calibrated", gap, "rows")
    legend = "; best: the best of its column; worse: clearly worse than that" if pairs.comparisons else ""
    return PageTable(header, list(zip(*columns, strict=True)), f"Models and metrics{legend}")


def value_of(subject: Subject, name: str) -> float:
    """A metric of a model, nan where it is not defined."""
    metric = metrics_of(subject).get(name)
    if metric is None:
        return math.nan
    result = subject.ece if name == "ECE" else subject.statistic(metric) if name == "AUROC" else subject.score(metric)  # type: ignore[arg-type]
    return math.nan if result is None else result.value


def best_of(names: Sequence[str], values: Sequence[float], *, rising: bool) -> str | None:
    """The model with the best value; None where no value is known.

    >>> best_of(["a", "b"], [0.2, 0.1], rising=False), best_of(["a"], [math.nan], rising=True)
    ('b', None)
    """
    known = [(value, name) for name, value in zip(names, values, strict=True) if not math.isnan(value)]
    return (max if rising else min)(known, key=lambda pair: pair[0])[1] if known else None


def _marked(metric: str, names: Sequence[str], values: Sequence[float], pairs: Pairs, *, rising: bool) -> list[Cell]:
    best = best_of(names, values, rising=rising)
    cells: list[Cell] = []
    for name, value in zip(names, values, strict=True):
        shown = PageTable((), (), "").shown(value)
        is_best = best is not None and value == values[names.index(best)]
        worse = best is not None and pairs.worse(metric, name, best)
        mark = " best" if is_best and pairs.comparisons else " worse" if worse else ""
        cells.append(Quoted(value, f"{shown}{mark}"))
    return cells


def pairs_section(pairs: Pairs) -> Section:
    """All paired differences."""
    rows: list[tuple[Cell, ...]] = []
    for metric, comparisons in pairs.comparisons.items():
        for pair, comparison in comparisons.items():
            p = math.nan if comparison.adjusted_p_value is None else comparison.adjusted_p_value
            ends = (comparison.interval.low, comparison.interval.high)
            less = " less ".join(inert(part, 60) for part in pair)
            words = comparison.verdict(*(inert(part, 40) for part in pair))
            rows.append((less, metric, comparison.difference, quoted_p(p), *ends, words))
    header = ("pair", "metric", "difference", "p, corrected", "90% from", "90% to", "in words")
    grids = [PageTable(header, rows, "Paired differences, first less second")] if rows else []
    return Section("pairs", "Paired differences", (pairs.remark,), (), grids)


def _some(subject: Subject) -> Ints | None:
    """The rows that pairs are compared on, where not on all."""
    n, most = len(subject.predictions), max(1000, int(_FORECASTS / subject.width))
    if n <= most:
        return None
    rng = np.random.default_rng(np.random.SeedSequence(subject.seed, spawn_key=(11,)))
    return np.sort(rng.choice(n, most, replace=False))


def _of_truth(predictions: Predictions, other: Predictions) -> Predictions:
    """What the log loss needs of predictions of many classes: the probability of the truth, as an event that happened.

    Refused where the other model has other labels, which these events would not show.
    """
    if predictions.forecasts.of_events or predictions.labels is None:
        return predictions
    predictions.forecasts.require(COLUMNS, "log loss")
    if other.labels is None or not np.array_equal(predictions.labels, other.labels):
        return predictions
    probabilities = predictions.probability_of(predictions.labels[:, None])[:, 0]
    happened = np.ones(len(probabilities), np.int64)
    truths = Predictions.from_confidence(happened, probabilities, sample_weight=predictions.weight, copy=False)
    return dataclasses.replace(truths, columns=predictions.columns)
