"""Recalibration methods on real predictions: which helps, by which metric, and does the answer depend on the metric?

python scripts/recalibration_study.py --data FOLDER --out docs/recalibration_study.md

Without --data only the predictions that come with the package are used. Methods are fitted on validation rows alone;
where a file has none, on a random half (seed 0), and measured on the other half.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from claim_tables import claims_table, false_table, stated, wrapped
from recalibration_claims import CLAIMS, FREE

import calibrant as cal
from calibrant.experiments.findings.claims import LEVEL, Judgement
from calibrant.files import reading as io
from calibrant.files.writing import write_text
from calibrant.recalibrate.fitting.lessons import Lesson
from calibrant.recalibrate.histogram import CELLS, even_edges, left_out_loss
from calibrant.recalibrate.methods import SHORT

METRICS = {
    "log loss": cal.LOG_LOSS, "Brier": cal.BRIER, "ECE": cal.ECE, "sweep": cal.ECE_SWEEP, "SCE": cal.SCE,
    "ACE": cal.ACE, "TACE": cal.TACE, "wsECE": cal.WSECE, "MCS": cal.MCS, "accuracy": cal.ACCURACY,
}  # fmt: skip
IN_POINTS = ("ECE", "sweep", "SCE", "ACE", "TACE", "wsECE", "MCS", "accuracy")
UNCHANGED = "as it is"


def main() -> None:
    """Fit, measure, answer."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path)
    asked.add_argument("--out", type=Path)
    asked.add_argument("--methods", nargs="*", default=[name for name, method in SHORT.items() if method.learns])
    asked.add_argument("--samples", type=int, default=50, help="samples of 10 %% of the rows")
    asked.add_argument("--repetitions", type=int, default=100, help="data sets under which a claim is false")
    given = asked.parse_args()
    studied = {name: Studied(name, *rows, given.methods) for name, rows in data_sets(given.data).items()}
    judgements = {claim: claim.verdict({name: one.fitted for name, one in studied.items()}) for claim in CLAIMS}
    parts = [
        *opening(studied, judgements),
        "",
        *claims_table(judgements),
        *false_table(CLAIMS, given.repetitions),
        *(line for one in studied.values() for line in one.table()),
        *answers(studied, given.samples),
    ]
    text = "\n".join(parts)
    print(text)
    if given.out:
        write_text(given.out, text + "\n")


def data_sets(folder: Path | None) -> dict[str, tuple[cal.Predictions, cal.Predictions]]:
    """Validation and test predictions by name."""
    made = {
        "Fashion-MNIST, CNN (shipped)": tuple(
            io.read(io.SHIPPED / f"fashion_mnist_{part}.npz") for part in ("validation", "test")
        )
    }
    if folder is None:
        return made
    pairs = {
        "Fashion-MNIST, MLP": "own_fashion_mnist_mlp/fashion_mnist_mlp.npz",
        "CIFAR-10, ResNet-50": "aigen_resnet50_c10/cifar10_resnet50.npz",
    }
    for name, path in pairs.items():
        made[name] = tuple(
            io.read(folder / path, label=f"labels_{part}", logits=f"logits_{part}") for part in ("val", "test")
        )
    whole = {
        "CIFAR-10, LeNet-5": io.read(folder / "netcal_cifar_probs/lenet-5-cifar-10.npz"),
        "CIFAR-100, wide ResNet": io.read(folder / "netcal_cifar_probs/wideresnet-16-4-cifar-100.npz"),
        "MMLU, Llama 3 8B": io.read(folder / "llm_mmlu_cloze/mmlu_cloze_logprobs.npz", logits="logp_LLaMa3_8B"),
    }
    return made | {name: halves(predictions) for name, predictions in whole.items()}


def halves(predictions: cal.Predictions) -> tuple[cal.Predictions, cal.Predictions]:
    """Two random halves (seed 0) of the rows, each in their order."""
    order = np.random.default_rng(0).permutation(len(predictions))
    half = len(order) // 2
    return predictions[np.sort(order[:half])], predictions[np.sort(order[half:])]


class Studied:
    """One data set: every method fitted on its validation rows and measured on its test rows."""

    def __init__(self, name: str, validation: cal.Predictions, test: cal.Predictions, methods: list[str]) -> None:
        self.name, self.validation, self.test = name, validation, test
        self.made: dict[str, cal.Predictions] = {UNCHANGED: test}
        self.failed: dict[str, str] = {}
        kind = "logits" if test.logits else "probabilities"
        tried = {method: SHORT[method](input=kind) for method in methods}
        tried[FREE] = cal.MatrixScaling(input=kind, off_diagonal=0, intercept=0)
        for method, recalibrator in tried.items():
            started = time.perf_counter()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", cal.CalibrationWarning)
                    fitted = recalibrator.fit(validation.values, validation.labels)
                self.made[method] = fitted.recalibrate(test)
            except cal.CalibrationInputError as reason:
                self.failed[method] = str(reason)
            print(f"# {name}: {method} {time.perf_counter() - started:.1f} s", flush=True)
        self.values = {
            method: {label: metric(one).value for label, metric in METRICS.items()} for method, one in self.made.items()
        }

    @property
    def fitted(self) -> dict[str, cal.Predictions]:
        """Test predictions after each method."""
        return {method: predictions for method, predictions in self.made.items() if method != UNCHANGED}

    def table(self) -> list[str]:
        """Methods by metrics."""
        header = ["method", *(f"{name}, points" if name in IN_POINTS else name for name in METRICS)]
        rows = [[method, *(shown(name, values[name]) for name in METRICS)] for method, values in self.values.items()]
        size = f"{len(self.validation):,} fitting rows, {len(self.test):,} test rows, {self.test.n_classes} classes."
        failed = [f"{method} could not be fitted: {reason}." for method, reason in self.failed.items()]
        return ["", f"## {self.name}", "", size, "", *markdown(header, rows), *(["", *failed] if failed else [])]

    def best(self, metric: str) -> str:
        """The method with the smallest value (in size), among those that were fitted."""
        fitted = [method for method in self.values if method != UNCHANGED]
        return min(fitted, key=lambda method: abs(self.values[method][metric]))


def answers(studied: dict[str, Studied], samples: int) -> list[str]:
    """What the studies asked, answered by these numbers."""
    return [
        *ranking(studied),
        *over_correction(studied),
        *preferences(studied, samples),
        *cells(studied),
        *tempered(studied),
    ]


def ranking(studied: dict[str, Studied]) -> list[str]:
    """Does the ranking of methods depend on the metric?"""
    names = [name for name in METRICS if name not in ("MCS", "accuracy")]
    rows = [[one.name, *(one.best(name) for name in names)] for one in studied.values()]
    agreement = []
    for a, b in itertools.combinations(names, 2):
        taus = [
            kendall(*(np.array([values[name] for values in one.values.values()]) for name in (a, b)))
            for one in studied.values()
        ]
        agreement.append((float(np.mean(taus)), a, b))
    agreement.sort()
    least = "; ".join(f"{a} and {b} {tau:.2f}" for tau, a, b in agreement[:3])
    most = "; ".join(f"{a} and {b} {tau:.2f}" for tau, a, b in agreement[-3:])
    return [
        "", "## Does the ranking depend on the metric?", "",
        "The best by each metric on these rows; what is noise among these differences, the claims above say:", "",
        *markdown(["data", *names], rows), "",
        f"Mean Kendall correlation of the rankings, least alike: {least}; most alike: {most}.",
    ]  # fmt: skip


def over_correction(studied: dict[str, Studied]) -> list[str]:
    """Does temperature scaling over-correct into under-confidence?"""
    rows, turned = [], 0
    for one in studied.values():
        kind = "logits" if one.test.logits else "probabilities"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.CalibrationWarning)
            searched = cal.TemperatureScaling(input=kind, objective="ece")
            by_ece = searched.fit(one.validation.values, one.validation.labels)
        by_nll = cal.TemperatureScaling(input=kind).fit(one.validation.values, one.validation.labels)
        after = [fitted.recalibrate(one.test) for fitted in (by_nll, by_ece)]
        tests = [cal.consistency(cal.MCS, predictions, n=400, seed=0).p_value for predictions in after]
        values = [one.values[UNCHANGED]["MCS"], *(cal.MCS(predictions).value for predictions in after)]
        turned += values[0] > 0 > values[1] and tests[0] < 0.05
        temperatures = [f"{fitted.temperature_:.3f}" for fitted in (by_nll, by_ece)]
        rows.append(
            [one.name, *(f"{100 * value:+.2f}" for value in values), *(f"{p:.3f}" for p in tests), *temperatures]
        )
    header = [
        "data",
        "MCS before",
        "after, by log loss",
        "after, by ECE",
        "p, by log loss",
        "p, by ECE",
        "T, by log loss",
        "T, by ECE",
    ]
    return [
        "", "## Does temperature over-correct into under-confidence?", "",
        f"MCS in points (above 0: over-confident); p tests it against 0. Turned from over- to under-confident by more "
        f"than noise (by log loss): {turned} of {len(studied)}.", "", *markdown(header, rows),
    ]  # fmt: skip


def preferences(studied: dict[str, Studied], samples: int) -> list[str]:
    """Does the preferred method change between ECE and the sweep, on all rows and on samples of 10 %?"""
    rows = []
    for one in studied.values():
        fitted = [method for method in one.made if method != UNCHANGED]
        rng = np.random.default_rng(0)
        found = []
        for _ in range(samples):
            part = rng.choice(len(one.test), len(one.test) // 10, replace=False)
            taken = {method: one.made[method][part] for method in fitted}
            found.append(
                [
                    min(fitted, key=lambda m, metric=metric: metric(taken[m]).value)
                    for metric in (cal.ECE, cal.ECE_SWEEP)
                ]
            )
        apart = np.mean([a != b for a, b in found])
        kept = [
            np.mean([pair[index] == one.best(name) for pair in found]) for index, name in enumerate(("ECE", "sweep"))
        ]
        rows.append(
            [
                one.name,
                one.best("ECE"),
                one.best("sweep"),
                f"{100 * apart:.0f}%",
                *(f"{100 * share:.0f}%" for share in kept),
            ]
        )
    header = [
        "data",
        "best by ECE",
        "best by sweep",
        "10% samples where they differ",
        "ECE keeps its choice",
        "sweep keeps its choice",
    ]
    return [
        "", "## Does the preferred method change between ECE and the sweep?", "",
        f"On all test rows, and on {samples} random samples of 10% of them (seed 0).", "", *markdown(header, rows),
    ]  # fmt: skip


def cells(studied: dict[str, Studied]) -> list[str]:
    """Which cells should histogram binning have?"""
    measures = {name: METRICS[name] for name in ("log loss", "Brier", "ECE", "SCE")}
    rows = []
    for data in studied.values():
        input = "logits" if data.test.logits else "probabilities"
        lesson = Lesson.of(data.validation, input=input)
        width = min(CELLS, key=lambda count: left_out_loss(lesson, lambda event: even_edges(count)))
        for words, options in {
            "equal mass, number by log loss (default)": {},
            "equal width, number by log loss": {"binning": cal.EqualWidth(width)},
            "15 of equal mass": {"binning": cal.EqualMass(15)},
            "15 of equal width": {"binning": cal.EqualWidth(15)},
        }.items():
            fitted = cal.HistogramBinning(input, **options).fit(data.validation)
            values = {name: metric(fitted.recalibrate(data.test)).value for name, metric in measures.items()}
            numbers = [shown(name, value) for name, value in values.items()]
            rows.append([data.name, words, str(fitted.n_bins_), *numbers])
    header = ["data", "cells of histogram binning", "number"]
    return [
        "", "## Which cells should histogram binning have?", "",
        *markdown([*header, *(f"{name}, points" if name in IN_POINTS else name for name in measures)], rows),
    ]  # fmt: skip


def tempered(studied: dict[str, Studied]) -> list[str]:
    """One temperature looked at closely."""
    one = studied.get("CIFAR-10, ResNet-50")
    if one is None:
        return []
    fitted = cal.TemperatureScaling().fit(one.validation.values, one.validation.labels)
    rows = []
    for name, temperature in (("1", 1.0), ("1.1", 1.1), ("fitted by log loss", fitted.temperature_)):
        made = cal.Predictions.from_logits(one.test.labels, one.test.values.astype(np.float64) / temperature)
        rows.append(
            [f"{name}: {temperature:.4f}", f"{cal.LOG_LOSS(made).value:.4f}", f"{100 * cal.ECE(made).value:.3f}"]
        )
    return ["", "## CIFAR-10, ResNet-50 by temperature", "", str(fitted.certificate_) + ".", "",
            *markdown(["temperature", "test log loss", "test ECE, points"], rows)]  # fmt: skip


def opening(studied: dict[str, Studied], judgements: Mapping[Any, Judgement]) -> list[str]:
    """The answer in five sentences, and what this page is."""
    best, _, _, matrix = judgements.values()
    chosen = {one.name: one.best("log loss") for one in studied.values()}
    before = [one.values[UNCHANGED]["ECE"] for one in studied.values()]
    after = [one.values[chosen[one.name]]["ECE"] for one in studied.values()]
    fallen = sum(late < early for early, late in zip(before, after, strict=True))
    other_metrics = "the best method by ECE is worse than others by other metrics (Kirchenbauer, Oaks & Heim 2022)"
    sentences = (
        f"Recalibration lowers the ECE on {fallen} of {len(studied)} sets of real predictions: with the method of "
        f"lowest log loss, which was chosen on the same rows, the mean ECE falls from {100 * np.mean(before):.1f} to "
        f"{100 * np.mean(after):.1f} points.",
        f"{stated(judgements, 'What is best', other_metrics)}: on other rows it is clearly worse in {clear(best)} of "
        f"{len(best.differences)} comparisons.",
        f"{stated(judgements, 'The preferred', 'ECE and the sweep prefer different methods (Roelofs et al. 2022)')}.",
        stated(judgements, "Temperature", "temperature scaling overshoots into under-confidence")
        + " (Ao, Rueger & Siddharthan 2023, of transformers).",
        stated(judgements, "Matrix", "matrix scaling without a penalty overfits where classes are many")
        + " (Nixon et al. 2019)"
        + "".join(f"; {each.name} is {each.mean:+.1f} points of ECE" for each in matrix.differences)
        + ".",
    )
    return [
        "# Recalibration on real predictions",
        "",
        *wrapped(*(sentence[0].upper() + sentence[1:] for sentence in sentences)),
        "",
        "Printed by `scripts/recalibration_study.py`. Methods are fitted on validation rows alone (a random half,",
        "seed 0, where a file has none) and measured on the others, with their default options. Errors, MCS and",
        "accuracy are in percentage points. Lower is better, except for accuracy; MCS is best at 0. These are single",
        "test sets without intervals: small differences between methods are noise.",
    ]


def clear(judgement: Judgement) -> int:
    """How many differences are clearly above 0."""
    return sum(difference.p_above <= LEVEL for difference in judgement.differences)


def kendall(a: np.ndarray, b: np.ndarray) -> float:
    """Kendall's tau-a: the share of pairs in the same order less that of pairs in the other; infinities are ties."""
    ranks = [np.unique(values, return_inverse=True)[1] for values in (a, b)]
    pairs = itertools.combinations(zip(*ranks, strict=True), 2)
    return float(np.mean([np.sign(i - k) * np.sign(j - m) for (i, j), (k, m) in pairs]))


def shown(metric: str, value: float) -> str:
    """A value as the tables have it."""
    return f"{100 * value:.2f}" if metric in IN_POINTS else f"{value:.4f}"


def markdown(header: list[str], rows: list[list[str]]) -> list[str]:
    """A table."""
    return [f"| {' | '.join(cells)} |" for cells in [header, ["---"] * len(header), *rows]]


if __name__ == "__main__":
    main()
