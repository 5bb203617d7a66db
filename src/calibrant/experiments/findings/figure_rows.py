"""Findings: the numbers that figures draw, a row a point; means and standard deviations over seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from calibrant import diagnostics
from calibrant.binning.fixed import EqualWidth
from calibrant.distances import tvd
from calibrant.errors.binned import BinnedError
from calibrant.errors.local import LocalCalibration
from calibrant.errors.mean_score import entropy as entropy_score
from calibrant.experiments.findings.sheets import Sheet, Spread
from calibrant.experiments.findings.tables import class_values
from calibrant.experiments.running.evidence import Evidence, Variant
from calibrant.experiments.training.trials import SIZES
from calibrant.inference.sensitivity import sensitivity
from calibrant.kernels.totals import Floats
from calibrant.lenses import Classwise, Flat, Groups, Lens, TopK
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.recipes import ECE, FULL_ECE, likert
from calibrant.selections import label_in
from calibrant.specification import spelling

REFERRED = tuple(step / 20 for step in range(20))
"""Shares of the samples that are left to somebody else."""
ROWS_KEPT = tuple(step / 10 for step in range(1, 11))
"""Shares of the rows of which the spread of an error is shown."""
SPREADS = {"full": FULL_ECE, "top 1": replace(FULL_ECE, lens=TopK(1))}
"""The errors whose spread is shown: of all classes and of the top class, in cells of the same tree."""
DECAYS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
"""How fast what lies a hundredth away counts less, where the choice is looked at."""
NEARBY = LocalCalibration()
TWENTIETHS = EqualWidth(20)
ALL = "all samples"
_LONG = ("model", "method", "measure", "value")


def top_k(evidence: Evidence) -> Sheet:
    """Errors of the k likeliest classes, beside ECE and the full error (Kirchenbauer, Oaks & Heim 2022, fig. 1)."""
    classes = _classes(evidence)
    names = {f"top {k}": f"top_k({k})/kdtree(0.1)" for k in evidence.study.top_k if k <= classes}
    return _metrics(
        evidence, "top_k", "Errors of the k likeliest classes", {"ECE, 15 bins": "ece", **names, "full": "full_ece"}
    )


def ranked_confidence(evidence: Evidence) -> Sheet:
    """The mean of the k-th largest output, less that of the base (Kirchenbauer, Oaks & Heim 2022, fig. 2)."""
    rows = []
    for variant in evidence.variants():
        base = evidence.variants(variant.model)[0]
        for k in range(1, min(10, _classes(evidence)) + 1):
            values, before = (evidence.values(each, f"ranked({k})/output") for each in (variant, base))
            less = values - before if len(values) == len(before) else values - before.mean()
            rows.append((variant.model, variant.label, k, Spread.of(less, digits=5)))
    title = "Mean k-th largest output, less the base's"
    return Sheet("ranked_confidence", title, ("model", "method", "k", "difference"), tuple(rows))


def top_k_accuracy(evidence: Evidence) -> Sheet:
    """How often the truth is among the k likeliest classes (Kirchenbauer, Oaks & Heim 2022, fig. 10)."""
    rows = [
        (variant.model, variant.label, k, Spread.of(evidence.values(variant, f"in_top_k({k})/hit")))
        for variant in evidence.variants()
        for k in range(1, min(10, _classes(evidence)) + 1)
    ]
    title = "Share of samples whose class is among the k likeliest"
    return Sheet("top_k_accuracy", title, ("model", "method", "k", "accuracy"), tuple(rows))


def entropy(evidence: Evidence) -> Sheet:
    """The mean entropy of the forecasts (Kirchenbauer, Oaks & Heim 2022, fig. 11)."""
    return _metrics(evidence, "entropy", "Mean entropy of the forecasts", {"entropy": "full/entropy"})


def groups(evidence: Evidence) -> Sheet:
    """Errors between groups of classes, of all samples and of those of each group (Kirchenbauer, Oaks & Heim 2022,
    fig. 3)."""
    rows: list[tuple[Any, ...]] = []
    for level, members in _hierarchy(evidence).items():
        whole = between(members)
        metrics = {  # the hierarchy reads these
            ALL: whole,
            **{f"samples of {name}": whole.replace(select=label_in(*classes)) for name, classes in members.items()},
        }
        sheet = _metrics(evidence, f"groups {level}", "", {"ECE, 15 bins": "ece"}, metrics)
        rows += [(model, method, level, *rest) for model, method, *rest in sheet.rows]
    header = ("model", "method", "level", "measure", "value")
    return Sheet("groups", "Errors between groups of classes", header, tuple(rows))


def hierarchy(evidence: Evidence) -> Sheet:
    """Errors between the groups of every level, from the coarsest to the classes themselves, which is the full error
    (Kirchenbauer, Oaks & Heim 2022, fig. 12)."""
    levels = sorted(_hierarchy(evidence).items(), key=lambda pair: len(pair[1]))
    rows: list[tuple[Any, ...]] = []
    for variant in evidence.variants() if levels else ():
        for level, members in levels:
            values = evidence.values_of(variant, f"groups {level}: {ALL}", between(members))
            rows.append((variant.model, variant.label, f"{level} ({len(members)})", Spread.of(values)))
        full = Spread.of(evidence.values(variant, "full_ece"))
        rows.append((variant.model, variant.label, f"classes ({_classes(evidence)})", full))
    return Sheet("hierarchy", "Errors between ever finer groups", ("model", "method", "level", "value"), tuple(rows))


def between(members: Mapping[str, Sequence[str]]) -> BinnedError:
    """The error of the forecasts of groups, as the full error is that of classes."""
    return BinnedError(lens=Groups(members), binning=FULL_ECE.binning)


def group_confidence(evidence: Evidence) -> Sheet:
    """What samples of each group give to every group, on average (Kirchenbauer, Oaks & Heim 2022, fig. 4)."""
    rows = []
    for level, members in _hierarchy(evidence).items():
        for variant in evidence.variants():
            outputs = [diagnostics.group_outputs(each, members) for each in _answers(evidence, variant)]
            rows += [
                (variant.model, variant.label, level, true, other, Spread.of([each[true][other] for each in outputs]))
                for true in members
                for other in members
            ]
    header = ("model", "method", "level", "samples of", "mean output of", "value")
    return Sheet("group_confidence", "Mean outputs of groups of classes", header, tuple(rows))


def likert_errors(evidence: Evidence) -> Sheet:
    """How far categories of confidence hold what they do not say (Kirchenbauer, Oaks & Heim 2022, fig. 5)."""
    metrics: dict[str, Metric] = {**likert(evidence.study.categories)}
    names = {"ECE, 15 bins": "ece", "full": "full_ece"}
    return _metrics(evidence, "likert_errors", "Errors of categories of confidence", names, metrics)


def likert_tvd(evidence: Evidence) -> Sheet:
    """Errors in categories of confidence, also those that leave none (Kirchenbauer, Oaks & Heim 2022, fig. 13)."""
    names, metrics = {"ECE, 15 bins": "ece", "full": "full_ece"}, within(evidence.study.categories)
    return _metrics(evidence, "likert_tvd", "Errors in categories of confidence, total variation", names, metrics)


def within(edges: Sequence[float] | Sequence[tuple[float, float]]) -> dict[str, Metric]:
    """The errors of categories with the total variation distance in the place of the distance of categories."""
    return {name: replace(each, distance=tvd) for name, each in likert(edges).items()}


def likert_counts(evidence: Evidence) -> Sheet:
    """How many samples each category of confidence holds (Kirchenbauer, Oaks & Heim 2022, fig. 6)."""
    edges = evidence.study.categories
    names = list(likert(edges))
    rows: list[tuple[Any, ...]] = []
    for variant in evidence.variants():
        counts = [diagnostics.interval_counts(each, edges) for each in _answers(evidence, variant)]
        columns = np.reshape(counts, (-1, len(names))).T
        rows += [
            (variant.model, variant.label, name, Spread.of(column, digits=1))
            for name, column in zip(names, columns, strict=True)
        ]
    return Sheet("likert_counts", "Samples in categories of confidence", _LONG, tuple(rows))


def gamma_sweep(evidence: Evidence) -> Sheet:
    """The full error of the base's first seed against the share of samples in a cell, with the spread of resamples and
    the sizes of cells; and, beside that of the top class, against the share of the rows (Kirchenbauer, Oaks & Heim
    2022, figs. 7-9)."""
    study, rows = evidence.study, []
    sweeps = (("full", FULL_ECE, "gamma", study.gammas), *((*each, "share", ROWS_KEPT) for each in SPREADS.items()))
    for variant in _bases(evidence):
        predictions = evidence.predictions(variant.trials[0])
        for name, metric, over, values in sweeps:
            swept = sensitivity(metric, predictions, over, values, study.bootstrap, seed=0)
            columns = (swept.settings, swept.values, swept.sds, *swept.bin_sizes.T)
            rows += [(variant.model, name, over, *map(float, point)) for point in zip(*columns, strict=True)]
    header = ("model", "metric", "over", "setting", "value", "sd", "smallest cell", "median cell", "largest cell")
    return Sheet("gamma_sweep", "Full ECE against the size of cells", header, tuple(rows))


def sizes(evidence: Evidence) -> Sheet:
    """Test error and ECE of networks that come in several widths or depths, base (Guo et al. 2017, fig. 2)."""
    rows: list[tuple[Any, ...]] = []
    titles = {variant.model: variant for variant in _bases(evidence)}
    for series, members in _series(evidence).items():
        for size, title in sorted(members.items()):
            if title in titles:
                misses, error = 1 - evidence.values(titles[title], "accuracy"), evidence.values(titles[title], "ece")
                cells = (("test error", misses), ("ECE", error))
                rows += [(series, title, float(size), name, Spread.of(values)) for name, values in cells]
    return Sheet("sizes", "Error by size", ("networks", "model", "size", "measure", "value"), tuple(rows))


def _series(evidence: Evidence) -> dict[str, dict[int, str]]:
    """Networks of which one size differs alone: (name by size) -> size -> title."""
    series: dict[str, dict[int, str]] = {}
    for model in evidence.study.models:
        for size, other in (SIZES, SIZES[::-1]):
            value, fixed = getattr(model, size), getattr(model, other)
            if value is not None:
                words = f"{model.name} by {size}" + (f", {other} {fixed}" if fixed is not None else "")
                series.setdefault(words, {})[value] = model.title
    return {words: members for words, members in series.items() if len(members) > 1}


def class_errors(evidence: Evidence) -> Sheet:
    """The thresholded adaptive error of each class of the base (Nixon et al. 2019, figs. 1 and 11)."""
    rows = [
        (variant.model, variant.label, label, name, Spread.of(values))
        for variant in _bases(evidence)
        for name in ("sce", "ace", "tace")
        for label, values in class_values(evidence, variant, name).items()
    ]
    return Sheet("class_errors", "Errors by class", ("model", "method", "class", "metric", "value"), tuple(rows))


def datapoint(evidence: Evidence) -> Sheet:
    """How often each class happens near each forecast of it, base (Nixon et al. 2019, fig. 4, top left)."""
    return _nearby(evidence, "datapoint", "Frequency of classes near a forecast", (NEARBY.decay,), NEARBY.cells)


def decay_rates(evidence: Evidence) -> Sheet:
    """The same for several decay rates: the faster, the fewer samples speak (Nixon et al. 2019, fig. 4, top right)."""
    return _nearby(evidence, "decay_rates", "Frequency of classes near a forecast, by decay rate", DECAYS, 20)


def sharpness(evidence: Evidence) -> Sheet:
    """Shares of the forecasts by their size, of all classes and of each, base (Nixon et al. 2019, fig. 4, bottom)."""
    rows: list[tuple[Any, ...]] = []
    for variant in _bases(evidence):
        seeds = [
            np.concatenate([_shares(Flat(), each), _shares(Classwise(), each)]) for each in _answers(evidence, variant)
        ]
        for name, shares in zip(("all classes", *_names(evidence)), np.stack(seeds, axis=1), strict=True):
            places = zip(pairwise(TWENTIETHS.edges.tolist()), shares.T, strict=True)
            rows += [
                (variant.model, variant.label, name, *ends, sum(ends) / 2, Spread.of(some)) for ends, some in places
            ]
    header = ("model", "method", "of", "low", "high", "forecast", "share")
    return Sheet("sharpness", "Shares of forecasts by their size", header, tuple(rows))


def reliability(evidence: Evidence) -> Sheet:
    """Confidence and accuracy in 15 bins of equal width, the rows of all seeds together."""
    rows: list[tuple[Any, ...]] = []
    for variant in evidence.variants():
        answers = list(_answers(evidence, variant))
        bins = ECE.conclude(sum(ECE.summarise(each) for each in answers)).bins if answers else None
        if bins is None or bins.low is None or bins.high is None:
            continue
        columns = (bins.low[0], bins.high[0], bins.counts[0], bins.forecast[0, :, 0], bins.frequency[0, :, 0])
        rows += [(variant.model, variant.label, *map(float, point)) for point in zip(*columns, strict=True)]
    header = ("model", "method", "low", "high", "samples", "confidence", "accuracy")
    return Sheet("reliability", "Reliability, rows of all seeds", header, tuple(rows))


def risk_coverage(evidence: Evidence) -> Sheet:
    """Accuracy on the rest when the most uncertain samples are referred (Ao, Rueger & Siddharthan 2023, fig. 2)."""
    rows: list[tuple[Any, ...]] = []
    for variant in evidence.variants():
        curves = [diagnostics.risk_coverage(each, entropy_score) for each in _answers(evidence, variant)]
        rows += [
            (
                variant.model,
                variant.label,
                share,
                Spread.of([curve.accuracy_after_referring(share) for curve in curves]),
            )
            for share in REFERRED
        ]
    header = ("model", "method", "referred", "accuracy of the rest")
    return Sheet("risk_coverage", "Accuracy when the most uncertain are referred", header, tuple(rows))


Finding = Callable[[Evidence], Sheet]


def _metrics(
    evidence: Evidence, name: str, title: str, named: Mapping[str, str], others: Mapping[str, Metric] | None = None
) -> Sheet:
    """Metrics of every variant, a row each: those that are spelled, and others under names of their own."""
    rows = []
    for variant in evidence.variants():
        columns = {label: evidence.values(variant, text) for label, text in named.items()}
        columns |= {
            label: evidence.values_of(variant, f"{name}: {label}", metric) for label, metric in (others or {}).items()
        }
        rows += [(variant.model, variant.label, label, Spread.of(values)) for label, values in columns.items()]
    return Sheet(name, title, _LONG, tuple(rows))


def _nearby(evidence: Evidence, name: str, title: str, decays: Sequence[float], cells: int) -> Sheet:
    """Frequencies near forecasts of 0, 1 / cells, .., 1, for each decay rate."""
    rows: list[tuple[Any, ...]] = []
    points = np.arange(cells + 1) / cells
    for variant in _bases(evidence):
        summaries = [NEARBY.summarise(each) for each in _answers(evidence, variant)]
        for decay in decays:
            curves = [replace(NEARBY, decay=decay).conclude(summary) for summary in summaries]
            for label in _names(evidence):
                columns = np.transpose([curve(points, label) for curve in curves])
                frequencies = zip(points.tolist(), columns, strict=True)
                rows += [
                    (variant.model, variant.label, label, decay, point, Spread.of(values))
                    for point, values in frequencies
                ]
    return Sheet(name, title, ("model", "method", "class", "decay", "forecast", "frequency"), tuple(rows))


def _shares(lens: Lens, predictions: Predictions) -> Floats:
    """The share of the forecasts in each twentieth: (questions, 20)."""
    bins = BinnedError(lens=lens, binning=TWENTIETHS)(predictions).bins
    assert bins is not None
    return bins.share


def _bases(evidence: Evidence) -> list[Variant]:
    return [variant for variant in evidence.variants() if variant.is_base]


def _answers(evidence: Evidence, variant: Variant) -> Iterator[Any]:
    """The test answers of each seed, where the method could be fitted."""
    for trial in variant.trials:
        if "failed" not in evidence.measure(trial, spelling.metrics("accuracy"), variant.method)["accuracy"]:
            yield evidence.predictions(trial, variant.method)


def _hierarchy(evidence: Evidence) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """The levels of the data set's classes that are neither one group nor the classes themselves."""
    return {level: members for level, members in evidence.hierarchy.items() if 1 < len(members) < _classes(evidence)}


def _names(evidence: Evidence) -> tuple[str, ...]:
    every = evidence.variants()
    return evidence.outcome(every[0].trials[0]).classes if every else ()


def _classes(evidence: Evidence) -> int:
    return len(_names(evidence))
