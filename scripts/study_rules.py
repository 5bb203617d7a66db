"""What claims about networks say is above 0: differences over seeds, in points unless a claim says otherwise.

Methods that were fitted to the same networks are compared within seeds, retrained networks by Welch's t test; numbers
of which only mean and deviation were kept are compared by Welch's test, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from study_records import BASE, Records

from calibrant.distances import tvd
from calibrant.experiments.findings import figure_rows
from calibrant.experiments.findings.claims import Difference, UntestableError
from calibrant.inference.consistency import Null, consistency
from calibrant.lenses.events import TopLabel
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.recipes import FULL_ECE, TACE, likert

THEIRS = ("label_smoothing", "mixup", "focal", "temperature", "bcts", "histogram")
"""How the interventions of Kirchenbauer, Oaks & Heim (2022) begin; their claims about all are about these."""
TRANSFORMERS = ("vit",)
"""How the names of transformers begin."""
FITTED = 0.95
"""A network that gets at least this share of its training rows right has fitted them."""
LITTLE = 0.1
"""An error that falls by less than this share of the base's has improved very little."""
FEWEST = 20
"""Samples that a category must hold for anything to be said of it."""
REDRAWS = 49
"""Redrawn labels behind a noise floor."""
ENDS = (0.0, 0.33, 0.66, 1.0)
MIDDLE = "[0.33, 0.66)"
NEARLY_NONE = 0.0005
"""An error that is smaller than this is nearly none."""
REFERRED = ("0.15", "0.2", "0.25", "0.3", "0.35", "0.4")
"""Shares of samples referred to experts between which the paper sees the largest gain."""
FINE_CHANGE = 0.1
"""Points of accuracy within which it counts as unchanged."""


def ece_falls(records: Records) -> Iterator[Difference]:
    """The base less every intervention."""
    for model, method in records.tried(*THEIRS):
        yield records.less("ece", model, BASE, method)


def ece_falls_without_focal(records: Records) -> Iterator[Difference]:
    """The same of all but focal loss, which the paper leaves out for ImageNet."""
    for model, method in records.tried(*(each for each in THEIRS if each != "focal")):
        yield records.less("ece", model, BASE, method)


def little_gain(records: Records) -> Iterator[Difference]:
    for metric in ("top5_ece", "full_ece"):
        for model, method in records.tried(*THEIRS):
            yield left_of(records, metric, model, method)


def left_of(records: Records, metric: str, model: str, method: str) -> Difference:
    """What a method leaves of an error less nine tenths of the base's."""
    values = {**records.values, (model, BASE, metric): (1 - LITTLE) * records.values[model, BASE, metric]}
    left = replace(records, values=values).less(metric, model, method)
    return replace(left, name=f"{model}, {metric}, {method} less {1 - LITTLE:g} of {BASE}")


def orders_differ(records: Records) -> Iterator[Difference]:
    """For each two methods: another error, the other way round than ECE; as certain as the less certain of both."""
    for model in records.models:
        for pair in combinations(records.methods(model), 2):
            first = records.less("ece", model, *pair)
            for metric in ("top5_ece", "full_ece", "sce", "ace", "wsece"):
                other = records.less(metric, model, *pair)
                yield _reversed(first, other, f"{model}, {metric}, {pair[0]} and {pair[1]}")


def _reversed(first: Difference, other: Difference, name: str) -> Difference:
    """Above 0 where two differences have other signs; its t statistic is the smaller of theirs."""
    mean = -other.mean * float(np.sign(first.mean))
    steps = min(abs(first.mean) / first.error, abs(other.mean) / other.error)
    return Difference(name, mean, abs(mean) / steps if steps else math.inf, min(first.df, other.df))


def smoothing_harms(records: Records) -> Iterator[Difference]:
    for model, method in records.tried("label_smoothing"):
        for measure in ("top 2", "top 3", "top 4", "top 5", "full"):
            yield rise_of(records, "figure_top_k", "value", model, method, measure=measure)


def rise_of(records: Records, sheet: str, column: str, model: str, method: str, **asked: str) -> Difference:
    """A mean of a sheet after a method less that of the base."""
    after, before = (records.cell(sheet, column, model=model, method=each, **asked) for each in (method, BASE))
    return after.less(before, f"{model}, {', '.join(asked.values())}, {method} less {BASE}")


def rises(records: Records, sheet: str, column: str = "value", **asked: str) -> Iterator[Difference]:
    """The same of every intervention."""
    for model, method in records.tried(*THEIRS):
        yield rise_of(records, sheet, column, model, method, **asked)


def largest_output_falls(records: Records) -> Iterator[Difference]:
    for model, method in records.tried(*THEIRS):
        cell = records.cell("figure_ranked_confidence", "difference", model=model, method=method, k="1")
        yield replace(cell, name=f"{model}, {method}", mean=-cell.mean)


def mass_goes_elsewhere(records: Records) -> Iterator[Difference]:
    """How far apart methods are in the mean second largest output, beside temperature scaling: two-sided."""
    asked = {"sheet": "figure_ranked_confidence", "column": "difference", "k": "2"}
    for model, method in records.tried(*(each for each in THEIRS if each != "temperature")):
        cell, usual = (records.cell(model=model, method=each, **asked) for each in (method, "temperature"))
        apart = cell.less(usual, f"{model}, {method} beside temperature")
        yield replace(apart, mean=abs(apart.mean), sides=2)


def groups_rise(records: Records) -> Iterator[Difference]:
    for level in _levels(records):
        yield from rises(records, "figure_groups", level=level, measure=figure_rows.ALL)


def groups_fall(records: Records) -> Iterator[Difference]:
    for rise in groups_rise(records):
        yield replace(rise, mean=-rise.mean)


def groups_alone_rise(records: Records) -> Iterator[Difference]:
    for level in _levels(records):
        members = dict.fromkeys(
            row["measure"]
            for row in records.sheets["figure_groups"]
            if row["level"] == level and row["measure"].startswith("samples of")
        )
        for measure in members:
            yield from rises(records, "figure_groups", level=level, measure=measure)


def _levels(records: Records) -> list[str]:
    if "figure_groups" not in records.sheets:
        raise UntestableError("no rows of figure_groups were kept")
    return records.kept("figure_groups", "level")


def entropy_rises(records: Records) -> Iterator[Difference]:
    others = replace(records, left_out=(*records.left_out, "histogram"))
    yield from rises(others, "figure_entropy", measure="entropy")


def middle_grows(records: Records) -> Iterator[Difference]:
    for rise in rises(records, "figure_likert_counts", measure=MIDDLE):
        yield replace(rise, mean=rise.mean / 100, error=rise.error / 100)


def stable_cells(records: Records) -> Iterator[Difference]:
    """The steps of the full error at the ends of the range of gammas less the mean step around 1/16."""
    if "figure_gamma_sweep" not in records.sheets:
        raise UntestableError("no rows of figure_gamma_sweep were kept")
    for model in records.models:
        swept = {
            float(row["setting"]): (100 * float(row["value"]), 100 * float(row["sd"]))
            for row in records.sheets["figure_gamma_sweep"]
            if (row["model"], row["over"]) == (model, "gamma")
        }
        if not {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625} <= set(swept):
            raise UntestableError("gammas from 1/2 to 1/64 were not swept")
        middle = _step(swept, 0.125, 0.03125)
        for words, ends in (("from 1/2 to 1/4", (0.5, 0.25)), ("from 1/32 to 1/64", (0.03125, 0.015625))):
            step = _step(swept, *ends)
            weights = {gamma: step.get(gamma, 0.0) - middle.get(gamma, 0.0) / 2 for gamma in swept}
            mean = sum(weight * swept[gamma][0] for gamma, weight in weights.items())
            error = np.sqrt(sum((weight * swept[gamma][1]) ** 2 for gamma, weight in weights.items()))
            yield Difference(f"{model}, step {words} less that around 1/16", mean, float(error), 1000)


def _step(swept: dict[float, tuple[float, float]], first: float, second: float) -> dict[float, float]:
    """How far the error moves between two gammas: the weights of their errors, which are taken as independent."""
    sign = 1.0 if swept[second][0] >= swept[first][0] else -1.0
    return {first: -sign, second: sign}


def finer_groups(records: Records) -> Iterator[Difference]:
    """Errors above their noise floors, of each level of groups less the coarser one, which has the same rows."""
    levels = sorted(records.groups.values(), key=len)
    metrics: list[Metric] = [*(figure_rows.between(members) for members in levels), FULL_ECE]
    if not records.predictions or not levels:
        raise UntestableError("no predictions were kept, or classes have no groups")
    for model, several in records.predictions.items():
        excess = [[100 * _redrawn(metric, each).excess for metric in metrics] for each in several]
        rises = np.diff(excess, axis=1).T
        errors = np.mean([_row_errors(metrics, each) for each in several], axis=0)
        for place, (rise, error) in enumerate(zip(rises, errors, strict=True), start=1):
            rows = Difference("", 0.0, float(error), REDRAWS - 1)
            yield Difference.of("", rise).less(rows, f"{model}, level {place + 1} less level {place}")


def _row_errors(metrics: list[Metric], predictions: Predictions) -> np.ndarray:
    """Standard errors of the differences between successive metrics, from resamples of rows, in points."""
    rows = np.random.default_rng(0).integers(len(predictions), size=(REDRAWS, len(predictions)))
    values = [[100 * metric(predictions[each]).value for metric in metrics] for each in np.sort(rows, axis=1)]
    return np.diff(values, axis=1).std(axis=0, ddof=1)


def _redrawn(metric: Metric, predictions: Predictions) -> Null:
    return consistency(metric, predictions, n=REDRAWS, seed=0)


def middle_category(records: Records) -> Iterator[Difference]:
    """In the middle category: the total variation distance among redraws; the distance of categories nearly 0."""
    if not records.predictions:
        raise UntestableError("no predictions were kept")
    metric = likert(list(ENDS))[MIDDLE]
    for model, several in records.predictions.items():
        confidences = [TopLabel()(each).outputs for each in several]
        if min(int(((ENDS[1] <= each) & (each < ENDS[2])).sum()) for each in confidences) < FEWEST:
            raise UntestableError(f"the category {MIDDLE} holds fewer than {FEWEST} samples")
        nulls = [_redrawn(replace(metric, distance=tvd), each) for each in several]
        ranked = [100 * np.append(null.result.value, null.values) for null in nulls]
        yield _among_redraws(f"{model}, total variation less that of redraws", ranked)
        nulls = [_redrawn(metric, each) for each in several]
        own = Difference.of("", [100 * (NEARLY_NONE - null.excess) for null in nulls])
        rows = Difference("", 0.0, 100 * float(np.mean([null.sd for null in nulls])), REDRAWS - 1)
        yield own.less(rows, f"{model}, {100 * NEARLY_NONE:g} less the distance of categories above its floor")


def _among_redraws(name: str, several: list[np.ndarray]) -> Difference:
    """The number of each seed, then those of its redraws: the mean over seeds among those of redraws.

    As if all seeds had large and small ones at once: they share the rows and labels.
    """
    redrawn = np.sort([others for _, *others in several], axis=1).mean(axis=0)
    return Difference.among(name, float(np.mean([seen for seen, *_ in several])), redrawn)


def vector_by_classes(records: Records) -> Iterator[Difference]:
    for model in records.models:
        for metric in ("sce", "ace"):
            yield records.less(metric, model, "temperature", "vector")


def temperature_by_ece(records: Records) -> Iterator[Difference]:
    for model in records.models:
        for other in ("vector", "matrix", "isotonic"):
            yield records.less("ece", model, other, "temperature")


def training_error_vanishes(records: Records) -> Iterator[Difference]:
    for model, epochs in _fitted(records):
        cell = records.cell(
            "figure_over_training", "value", model=model, method=BASE, rows="train", metric="ece", epoch=epochs[-1]
        )
        yield Difference(f"{model}, 1 less the last ECE", 1 - cell.mean, cell.error, cell.df)


def validation_error_grows(records: Records) -> Iterator[Difference]:
    for model, epochs in _fitted(records):
        asked = {"model": model, "method": BASE, "rows": "validation", "metric": "ece"}
        last, middle = (
            records.cell("figure_over_training", "value", epoch=epoch, **asked)
            for epoch in (epochs[-1], epochs[len(epochs) // 2])
        )
        yield last.less(middle, f"{model}, last epoch less the middle one")


def _fitted(records: Records) -> list[tuple[str, list[str]]]:
    """Networks that have fitted their training rows, and the epochs after which they were measured."""
    if "figure_over_training" not in records.sheets:
        raise UntestableError("no rows of figure_over_training were kept")
    rows = records.sheets["figure_over_training"]
    courses = {
        model: list(dict.fromkeys(row["epoch"] for row in rows if row["model"] == model)) for model in records.models
    }
    asked = {"method": BASE, "rows": "train", "metric": "accuracy"}
    fitted = [
        (model, epochs)
        for model, epochs in courses.items()
        if records.cell("figure_over_training", "value", model=model, epoch=epochs[-1], **asked).mean >= 100 * FITTED
    ]
    if not fitted:
        raise UntestableError(f"no network fits its training rows: all have less than {FITTED:.0%} of them right")
    return fitted


def classes_differ(records: Records) -> Iterator[Difference]:
    """How far apart the classes' errors above their noise floors are, among those of redrawn labels."""
    if not records.predictions:
        raise UntestableError("no predictions were kept")
    for model, several in records.predictions.items():
        yield _among_redraws(model, [100 * _ranges(_redrawn(TACE, each)) for each in several])


def _ranges(null: Null) -> np.ndarray:
    """Of the labels, then of each redraw: all are treated alike, so that any rank is as likely as any other."""
    parts = np.vstack([null.result.values, null.parts])
    return np.ptp(parts - parts.mean(axis=0), axis=1)


def over_confident(records: Records) -> Iterator[Difference]:
    """Of all but transformers, which the paper finds under-confident (table 1)."""
    for model in records.models:
        if not model.startswith(TRANSFORMERS):
            yield confidence_gap(records, model, BASE)


def confidence_gap(records: Records, model: str, method: str) -> Difference:
    """MCS; its error is that over seeds together with that of the test rows, which seeds share."""
    hits = records.metric(model, method, "accuracy").mean / 100
    rows = Difference("", 0.0, 100 * float(np.sqrt(hits * (1 - hits) / records.rows)), records.rows - 1)
    return records.metric(model, method, "mcs").less(rows, f"{model}, {method}, MCS")


def focal_overshoots(records: Records) -> Iterator[Difference]:
    for model, method in records.tried("focal", "flsd"):
        gap = confidence_gap(records, model, method)
        yield replace(gap, name=f"{gap.name} below 0", mean=-gap.mean)


def temperature_overshoots(records: Records) -> Iterator[Difference]:
    """Classes count as under- or over-confident at random where nothing is wrong: half of them, give or take."""
    for model in records.models:
        cell = records.cell("miscalibration", "classes under %", 1.0, model=model, method="temperature")
        tosses = Difference("", 50.0, 50 / np.sqrt(records.classes), np.inf)
        yield cell.less(tosses, f"{model}, classes under-confident less 50 %")


def class_wise_errors(records: Records) -> Iterator[Difference]:
    for model in records.models:
        for metric in ("ece", "wsece"):
            yield records.less(metric, model, "temperature", "cwmcs")
        sizes = (np.abs(records.values[model, method, "wsmcs"]) for method in ("temperature", "cwmcs"))
        first, second = sizes
        yield Difference.of(f"{model}, size of wsMCS, temperature less cwmcs", 100 * (first - second))


def class_wise_accuracy(records: Records) -> Iterator[Difference]:
    for model in records.models:
        change = records.less("accuracy", model, "cwmcs")
        name = f"{model}, {FINE_CHANGE:g} less the change of accuracy"
        yield Difference(name, FINE_CHANGE - abs(change.mean), change.error, change.df)


def failures(records: Records) -> Iterator[Difference]:
    column = "accuracy of the rest"
    for model in records.models:
        for share in REFERRED:
            own, other = (
                records.cell("figure_risk_coverage", column, model=model, method=method, referred=share)
                for method in ("cwmcs", "temperature")
            )
            yield own.less(other, f"{model}, {share} referred, cwmcs less temperature")
