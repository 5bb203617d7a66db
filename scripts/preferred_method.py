"""Which recalibration method is preferred, by ECE and by the sweep: Roelofs et al. (2022), figure 2 and tables 4 to 7.

    python scripts/preferred_method.py --data FOLDER --out docs/preferred_method.md

In the paper's design: three methods, two of them fitted to the top label; all rows, and tenths of the validation and
of the test rows at random; two errors that choose. The models are ours: those of `recalibration_study.py`, and six
further language models. A rule that compares choices needs data without any difference: methods that are all alike.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Mapping
from itertools import starmap
from pathlib import Path

import numpy as np
from claim_tables import markdown, wrapped
from recalibration_study import data_sets, halves

import calibrant as cal
from calibrant.files import reading as io
from calibrant.files.writing import write_text

METHODS = {
    "histogram binning": cal.HistogramBinning,
    "temperature scaling": cal.TemperatureScaling,
    "isotonic regression": cal.IsotonicCalibration,
}
TABLES = ("uncalibrated", "temperature scaling", "isotonic regression", "histogram binning")
"""What tables 4 to 7 are of."""
SHARE = 0.1
CHOOSING = {
    "ECE": cal.ECE,
    "ECE, 10 bins": cal.ECE.replace(binning=cal.EqualWidth(10)),
    "sweep": cal.ECE_SWEEP,
}
LANGUAGE_MODELS = ("GPT2", "Gemma_7B", "LLaMa2_7B", "Mistral_7B", "Phi_2", "SOLAR_10_7B")
Halves = tuple[cal.Predictions, cal.Predictions]
"""Validation and test predictions."""


def main() -> None:
    """Fit, choose, print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, required=True)
    asked.add_argument("--out", type=Path)
    asked.add_argument("--samples", type=int, default=100, help="samples of a tenth of the rows")
    given = asked.parse_args()
    models = {**data_sets(given.data), **language_models(given.data)}
    text = "\n".join(page(models, given.samples))
    print(text)
    if given.out:
        write_text(given.out, text + "\n")


def language_models(folder: Path) -> dict[str, Halves]:
    """Halves of the questions."""
    file = folder / "llm_mmlu_cloze/mmlu_cloze_logprobs.npz"
    return {f"MMLU, {name.replace('_', ' ')}": halves(io.read(file, logits=f"logp_{name}")) for name in LANGUAGE_MODELS}


def recalibrated(validation: cal.Predictions, test: cal.Predictions) -> dict[str, cal.Predictions]:
    """Confidences of the top label after each method: of scaled logits, or mapped by themselves."""
    made = {"uncalibrated": top(test)}
    for name, method in METHODS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.CalibrationWarning)
            if method is cal.TemperatureScaling:
                fitted = method(input="logits" if test.logits else "probabilities")
                made[name] = top(fitted.fit(validation.values, validation.labels).recalibrate(test))
            else:
                before, after = top(validation), top(test)
                fitted = method(input="probabilities").fit(before.probabilities, before.labels)
                made[name] = cal.Predictions.from_confidence(after.labels, fitted.predict_proba(after.probabilities))
    return made


def top(predictions: cal.Predictions) -> cal.Predictions:
    """Whether the top label was right, and its probability."""
    view = cal.TopLabel()(predictions)
    return cal.Predictions.from_confidence((view.targets >= 0).astype(int), view.outputs[:, 0, 0])


def tenths(rows: Halves, samples: int) -> Iterator[Halves]:
    """A tenth of the validation and of the test rows, drawn at random."""
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        drawn = [np.sort(rng.choice(len(each), max(50, round(SHARE * len(each))), replace=False)) for each in rows]
        yield rows[0][drawn[0]], rows[1][drawn[1]]


def choice(made: Mapping[str, cal.Predictions], metric: cal.Metric) -> str:
    """The method with the smallest error."""
    return min(METHODS, key=lambda name: metric(made[name]).value)


def alike(made: Mapping[str, cal.Predictions], seed: int) -> dict[str, cal.Predictions]:
    """Three methods that are equally good: they move calibrated forecasts of the same rows at random, all alike."""
    rng = np.random.default_rng(seed)
    p = made["temperature scaling"].probabilities
    happened = (rng.random(len(p)) < p).astype(int)
    moved = (np.clip(p + rng.normal(0, 0.02, len(p)), 0.0, 1.0) for _ in METHODS)
    return {name: cal.Predictions.from_confidence(happened, each) for name, each in zip(METHODS, moved, strict=True)}


def page(models: Mapping[str, Halves], samples: int) -> Iterator[str]:
    """The page, line by line."""
    whole = {name: recalibrated(*rows) for name, rows in models.items()}
    small = {name: list(starmap(recalibrated, tenths(rows, samples))) for name, rows in models.items()}
    null = {name: [alike(made, seed) for seed, made in enumerate(several)] for name, several in small.items()}
    differing = [name for name, made in whole.items() if len(chosen(made, "ECE")) > 1]
    shares = {each: disagreement(small, each) for each in ("ECE", "ECE, 10 bins")}
    yield "# Which recalibration method is preferred?"
    yield ""
    yield from wrapped(
        f"With all rows, ECE and the sweep prefer different methods for {len(differing)} of {len(models)} models; "
        "Roelofs et al. (2022) found 3 of 10.",
        f"With a tenth of the rows they differ in {shares['ECE']:.0%} of the samples (22% in the paper), and where "
        f"ECE has 10 bins instead of 15 in {shares['ECE, 10 bins']:.0%} (27%).",
        f"But of three methods that are equally good, they prefer different ones in {disagreement(null, 'ECE'):.0%} "
        "of the samples.",
        "So different choices alone do not show that the bias of ECE decides them.",
    )
    yield ""
    yield "Printed by `scripts/preferred_method.py`: figure 2 and tables 4 to 7 of Roelofs et al. (2022), in"
    yield "their design. Errors are those of the top label. Temperature scaling is fitted to all classes, histogram"
    yield "binning and isotonic regression to the top label, on validation rows; where a file has no"
    yield f"validation rows, both are random halves. Then both are cut to a tenth at random, {samples} times, and"
    yield "methods are fitted anew. Equal methods move calibrated forecasts of the same rows at random, all alike."
    yield "Errors are in percent."
    yield "The ten networks of the paper are not among these models. Histogram binning has cells of equal mass, whose"
    yield "number is chosen by log loss."
    yield ""
    yield "## Figure 2"
    yield ""
    header = ["model", "best by ECE", "best by the sweep", "tenths that differ", "with 10 bins", "equal methods differ"]
    yield from markdown(header, (figure_row(name, whole[name], small[name], null[name]) for name in models))
    for number, method in enumerate(TABLES, 4):
        yield ""
        yield f"## Table {number}: {method}"
        yield ""
        yield "Ranks of the models are in brackets."
        yield ""
        changes = cal.diagnostics.rank_changes(
            {name: made[method] for name, made in whole.items()}, {"ECE": cal.ECE, "sweep": cal.ECE_SWEEP}
        )
        yield from markdown(["model", "ECE", "sweep", "difference", "relative, %"], table_rows(changes))


def chosen(made: Mapping[str, cal.Predictions], error: str) -> set[str]:
    """What the error and the sweep choose."""
    return {choice(made, CHOOSING[each]) for each in (error, "sweep")}


def disagreement(several: Mapping[str, list[dict[str, cal.Predictions]]], error: str) -> float:
    """The share of samples in which the error and the sweep choose different methods."""
    return float(np.mean([len(chosen(made, error)) > 1 for one in several.values() for made in one]))


def figure_row(name: str, made: dict[str, cal.Predictions], *several: list[dict[str, cal.Predictions]]) -> list[str]:
    """The choices of all rows, and how often those of tenths differ."""
    small, null = ({name: each} for each in several)
    shares = [disagreement(small, "ECE"), disagreement(small, "ECE, 10 bins"), disagreement(null, "ECE")]
    return [name, *(choice(made, CHOOSING[each]) for each in ("ECE", "sweep")), *(f"{each:.0%}" for each in shares)]


def table_rows(changes: cal.diagnostics.RankChanges) -> Iterator[list[str]]:
    """Errors with their ranks, and their differences, from the smallest ECE on."""
    for place in np.argsort(changes.values[:, 0]):
        first, second = 100 * changes.values[place]
        ranks = changes.ranks[place]
        relative = f"{100 * (first - second) / first:.2f}" if first else ""
        yield [
            changes.models[place], f"{first:.2f} ({ranks[0]})", f"{second:.2f} ({ranks[1]})",
            f"{first - second:.2f}", relative,
        ]  # fmt: skip


if __name__ == "__main__":
    main()
