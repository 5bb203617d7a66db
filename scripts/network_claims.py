"""Claims about kinds of networks and single methods.

Written before the studies `cifar10` and `fashion_mnist_series` had results; what `fashion_mnist` found of two of the
networks was known. Later changes, when verdicts were known, are named at the ends of the pages.
Of Kirchenbauer, Oaks & Heim (2022), Ao, Rueger & Siddharthan (2023) and Guo et al. (2017); each with a rule over seeds
and data under which it is false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import study_false_data as false_data
from study_claims import AO, CALIBRATED, KIRCHENBAUER, MOST, NO_DIFFERENCE
from study_records import BASE, Records
from study_rules import TRANSFORMERS, confidence_gap, left_of, rise_of

from calibrant.experiments.findings.claims import Claim, Difference, OutOfReach, UntestableError

AGAIN = ("cnn glorot", "cnn normal")
"""The two-layer network again, with other first weights, of which one kind is bad on purpose."""
GUO = "Guo et al. (2017), section 3, figure 2 (shown on the slides)"


def transformers_under(records: Records) -> Iterator[Difference]:
    models = [model for model in records.models if model.startswith(TRANSFORMERS)]
    if not models:
        raise UntestableError("no transformer was trained in this study")
    for model in models:
        gap = confidence_gap(records, model, BASE)
        yield replace(gap, name=f"{gap.name} below 0", mean=-gap.mean)


def others_over(records: Records) -> Iterator[Difference]:
    for model in dict.fromkeys([*records.models, *records.kept("metrics", "model")]):
        if not model.startswith((*TRANSFORMERS, *AGAIN)):
            yield confidence_gap(records, model, BASE)


def histogram_improves(records: Records) -> Iterator[Difference]:
    for model in _with_histogram(records):
        for measure in ("top 2", "top 3", "top 4", "top 5"):
            increase = rise_of(records, "figure_top_k", "value", model, "histogram", measure=measure)
            yield replace(increase, mean=-increase.mean)


def histogram_not_full(records: Records) -> Iterator[Difference]:
    for model in _with_histogram(records):
        yield left_of(records, "full_ece", model, "histogram")


def _with_histogram(records: Records) -> list[str]:
    models = [model for model in records.models if "histogram" in records.methods(model)]
    if not models:
        raise UntestableError("histogram binning with cells of equal mass was not tried")
    return models


def losses_lower_ece(records: Records) -> Iterator[Difference]:
    for model, method in records.tried("label_smoothing", "focal", "flsd"):
        yield records.less("ece", model, BASE, method)


def smoothing_stops_short(records: Records) -> Iterator[Difference]:
    """Label smoothing leaves less over-confidence than there was, and some of it."""
    for model, method in records.tried("label_smoothing"):
        yield records.less("mcs", model, BASE, method)
        yield confidence_gap(records, model, method)


def mixup_lowers(records: Records) -> Iterator[Difference]:
    for model, method in records.tried("mixup"):
        yield records.less("ece", model, BASE, method)
        cell = records.cell("figure_ranked_confidence", "difference", model=model, method=method, k="1")
        yield replace(cell, name=f"{model}, largest output, base less {method}", mean=-cell.mean)


def larger_is_worse(records: Records) -> Iterator[Difference]:
    yield from _slopes(records, "ece")


def larger_is_more_accurate(records: Records) -> Iterator[Difference]:
    yield from _slopes(records, "accuracy")


def _slopes(records: Records, metric: str) -> Iterator[Difference]:
    """By how much a metric of the base changes when a size is doubled: the slope of a straight line, a seed each."""
    if "figure_sizes" not in records.sheets:
        raise UntestableError("no network was trained in several sizes in this study")
    for series in records.kept("figure_sizes", "networks"):
        rows = [row for row in records.sheets["figure_sizes"] if row["networks"] == series]
        sizes = {row["model"]: float(row["size"]) for row in rows}
        doublings = np.log2(list(sizes.values()))
        doublings -= doublings.mean()
        values = np.array([records.values[model, BASE, metric] for model in sizes])
        yield Difference.of(f"{series}, {metric} a doubling", 100 * doublings @ values / (doublings @ doublings))


CLAIMS: tuple[Claim[Records] | OutOfReach, ...] = (
    Claim(
        "Transformers are under-confident", f"{AO}, section 5.1, table 1",
        "MCS of the base is below 0 (error of seeds and of test rows)", transformers_under,
        false_data.calibrated_transformer, CALIBRATED,
    ),
    Claim(
        "Convolutional networks are over-confident", f"{AO}, section 5.1, table 1",
        "MCS of the base is above 0, for most of them (error of seeds and of test rows)", others_over,
        false_data.calibrated, CALIBRATED, share=MOST,
    ),
    Claim(
        "Label smoothing, focal loss and FLSD lower the ECE of cross-entropy", f"{AO}, section 5.2, table 3",
        "base less intervention", losses_lower_ece, false_data.equal, NO_DIFFERENCE,
    ),
    Claim(
        "Label smoothing lowers the over-confidence and does not overshoot", f"{AO}, table 3 (CIFAR-10)",
        "MCS of the base less that of label smoothing; MCS of label smoothing is above 0",
        smoothing_stops_short, false_data.calibrated, CALIBRATED,
    ),
    Claim(
        "Mix-up lowers the ECE and the largest output", f"{KIRCHENBAUER}, section 5.1, figures 1 and 2",
        "base less mix-up, both", mixup_lowers, partial(false_data.equal, more=("mixup 0.2",)), NO_DIFFERENCE,
    ),
    Claim(
        "Histogram binning improves the error at most values of k", f"{KIRCHENBAUER}, section 5.1, figure 1",
        "base less histogram binning with cells of equal mass, top 2 to top 5, for most networks and k",
        histogram_improves, partial(false_data.equal, more=("histogram",)), NO_DIFFERENCE, share=MOST,
    ),
    Claim(
        "Histogram binning does not improve the error over all classes", f"{KIRCHENBAUER}, section 5.1, figure 1",
        "full error: at least nine tenths of the base's are left after histogram binning with cells of equal mass",
        histogram_not_full, partial(false_data.shrunk, more=("histogram",)),
        "all methods leave nine tenths of the base's errors",
    ),
    Claim(
        "Wider and deeper networks are less well calibrated", GUO,
        "the slope of ECE over the logarithm of the width or depth, every series",
        larger_is_worse, false_data.equal_sizes, "errors that do not follow the width", unit="points a doubling",
    ),
    Claim(
        "Wider and deeper networks are more accurate", GUO,
        "the slope of the accuracy over the logarithm of the width or depth, every series",
        larger_is_more_accurate, false_data.equal_sizes, "errors that do not follow the width",
        unit="points a doubling",
    ),
)  # fmt: skip
"""Every claim about kinds of networks."""
