"""What the CIFAR-10 studies say about claims in the literature, beside the papers' own numbers: a page for each study.

    calibrant experiment run cifar10 --device cuda --store STORE
    python scripts/cifar10_study.py --store STORE   # the numbers beside the page, and the page
    python scripts/cifar10_study.py                 # the page, of the numbers beside it
    python scripts/cifar10_study.py --study cifar10_small [--store STORE]

A folder of the page's name has the numbers of all tables and figures as CSV, the pictures that the page shows, and the
logits of the first and the last network without intervention.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import study_records
from claim_tables import markdown, require_told, stated, wrapped
from network_claims import CLAIMS as NETWORKS
from study_claims import CLAIMS
from study_keeping import Studied, draw, keep_all, keep_base
from study_page import all_metrics, ensembles, judged_page, networks
from study_records import BASE, Records

from calibrant.experiments.findings.claims import (
    CONTRADICTED,
    HOLDS,
    UNDECIDED,
    UNTESTABLE,
    Claim,
    Judgement,
    OutOfReach,
)
from calibrant.experiments.findings.figures import FIGURES
from calibrant.experiments.training.datasets.cifar import CIFAR10_CLASSES, CIFAR10_HIERARCHY
from calibrant.files.writing import write_text

TEST_ROWS = 10_000
DOCS = Path(__file__).parents[1] / "docs"
TITLES = {"cifar10": "CIFAR-10", "cifar10_small": "CIFAR-10 with small networks"}
LEFT_OUT = ("histogram(n_bins=15)", "matrix(off_diagonal=0, intercept=0)")
"""Methods that are compared with their own kind alone."""
ASKED = (*(claim for claim in CLAIMS if isinstance(claim, Claim)), *NETWORKS)
"""Every claim but those that other studies could not test and this one can."""
WRITTEN = {
    "cifar10": "The rules were written before this study had given any result.",
    "cifar10_small": "The rules were written before these networks had given any result. Some were made stricter while "
    "the networks were training, and some were brought closer to the papers after the results were known: the end of "
    "the page names those.",
}
"""When the rules were written."""
TABLE_1 = {
    "ResNet34": (90.20, 4.10, 4.60, 0.041, 1.10, 2.60, 0.002, 0.50, 1.50, 0.001),
    "DenseNet121": (81.70, 11.30, 11.30, 0.114, 1.70, 4.30, 0.012, 0.80, 2.20, 0.001),
    "VGG16": (87.60, 7.10, 7.40, 0.071, 3.70, 3.50, 0.037, 1.70, 1.60, 0.012),
}
"""Ao, Rueger & Siddharthan (2023), table 1, CIFAR-10: accuracy; ECE, wsECE, wsMCS of the base, temperature, cwMCS."""
TABLE_3 = {
    BASE: (6.51, 0.650, 92.40), "temperature": (5.34, 0.532, 92.40), "label_smoothing": (2.79, 0.332, 94.90),
    "focal": (3.78, -0.339, 94.30), "flsd": (3.61, -0.334, 94.20), "cwmcs": (1.38, 0.224, 92.40),
}  # fmt: skip
"""The same, table 3, ResNet-50 on CIFAR-10: ECE, wsMCS, accuracy."""
TABLE_5 = {"ResNet34": (0, 30), "DenseNet121": (0, 40), "VGG16": (0, 40)}
"""The same, table 5, CIFAR-10: per cent of classes under-confident, base and after temperature scaling."""
CAPTIONS = {
    "top_k": "Errors of the k likeliest classes.",
    "hierarchy": "Errors between ever finer groups of classes.",
    "over_training": "Metrics over training, on training and validation rows.",
    "reliability": "Confidence and accuracy.",
    "gamma_sweep": "The full error by size of cells; spread by share of rows.",
    "risk_coverage": "Accuracy when the most uncertain samples are referred.",
}


def main() -> None:
    """Keep the numbers of the store, where there is one; print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", choices=TITLES, default="cifar10")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--repetitions", type=int, default=400, help="data sets under which a claim is false")
    options = parser.parse_args()
    folder = DOCS / f"{options.study}_study"
    if options.store is not None:
        keep(Studied(options.store), folder)
    about = {"rows": TEST_ROWS, "groups": CIFAR10_HIERARCHY, "left_out": LEFT_OUT}
    records = study_records.read(folder, classes=CIFAR10_CLASSES, **about)
    lines = page(options.study, records, options.repetitions)
    write_text(folder.with_suffix(".md"), "\n".join(line.rstrip() for line in lines) + "\n")


def keep(studied: Studied, folder: Path) -> None:
    """Tables, figures, single values, some logits, and the pictures."""
    keep_all(studied, folder)
    models = [model.title for model in studied.evidence.study.models]
    for model in (models[0], models[-1]):
        keep_base(studied, folder, model)
    for name in CAPTIONS:
        draw(FIGURES[name].draw(FIGURES[name].find(studied.evidence)), folder / f"{name}.svg")


def page(study: str, records: Records, repetitions: int) -> Iterator[str]:
    """The page, line by line: its answer, the claims, the evidence."""
    judgements = {claim: claim.verdict(records) for claim in ASKED}
    seeds = max(len(values) for values in records.values.values())
    yield f"# {TITLES[study]}: what calibration papers say, tried"
    yield ""
    yield from answer(study, records, judgements)
    yield f"Printed by `scripts/cifar10_study.py` from the numbers in `{study}_study/`; the study is"
    yield f"`calibrant experiment run {study}`. {seeds} seeds of each setting, {TEST_ROWS:,} test rows; methods are"
    yield "fitted on the tenth of the training rows that was held out. Errors are in points, mean ± standard deviation"
    yield "over seeds. Histogram binning has cells of equal mass, and of equal width where n_bins is named."
    yield ""
    yield from networks([records])
    yield from beside(records)
    yield from ensembles(records)
    yield from judged_page(judgements, repetitions, WRITTEN[study])
    yield "## Pictures"
    yield ""
    for name, caption in CAPTIONS.items():
        yield f"![{caption}]({study}_study/{name}.svg)"
        yield ""
    yield from all_metrics(records)
    yield from limits(study)


def answer(study: str, records: Records, judgements: Mapping[Claim[Records] | OutOfReach, Judgement]) -> Iterator[str]:
    """The answer in five sentences: of the small networks written by hand, else made of the verdicts."""
    yield from wrapped(*(small_answer if study == "cifar10_small" else any_answer)(records, judgements))
    yield ""


def small_answer(records: Records, judgements: Mapping[Claim[Records] | OutOfReach, Judgement]) -> Iterator[str]:
    """Sentences that must be written anew where a verdict that they tell has changed."""
    require_told(TOLD, judgements)
    eces, accuracies = (
        _listed(f"{100 * records.values[model, BASE, name].mean():.{digits}f}" for model in records.models)
        for name, digits in (("ece", 1), ("accuracy", 0))
    )
    rises = [
        -records.less("ece", model, BASE, method).mean
        for model, method in records.tried("label_smoothing", "mixup", "focal", "flsd")
    ]
    gaps = [
        records.values[model, method, "mcs"].mean()
        for model, method in records.tried("label_smoothing", "mixup", "focal", "flsd")
    ]
    if min(rises) < 0 or max(gaps) > 0:
        raise SystemExit("the opening tells otherwise: not every intervention raises the ECE by under-confidence")
    yield (
        f"Small networks that were trained on CIFAR-10 for few epochs need little calibration: their ECE is {eces} "
        f"points ({_listed(records.models)}), at accuracies of {accuracies} %."
    )
    yield (
        "Label smoothing, mix-up, focal loss and FLSD, each in one untuned strength, leave both convolutional "
        f"networks under-confident and raise their ECE by {min(rises):.1f} to {max(rises):.1f} points, where the "
        "papers report lower ECEs."
    )
    yield (
        "Ao, Rueger & Siddharthan (2023) found most convolutional networks over-confident and most transformers "
        "under-confident: here one of two convolutional networks is over-confident, and the other is "
        "under-confident, as is, narrowly, the one transformer."
    )
    yield (
        "Of Kirchenbauer, Oaks & Heim (2022), it is contradicted that all interventions lower the ECE and the "
        "largest output; whether ECE is a poor indicator of other errors stays undecided."
    )
    yield (
        "Of Nixon et al. (2019), it stays undecided whether vector scaling beats temperature scaling by SCE and ACE "
        "and whether calibration error differs between classes; overfitting cannot be tested, as no network fits 95 "
        "% of its training rows."
    )


def _listed(words: Iterable[str]) -> str:
    """Words with commas and an "and"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


TOLD = {
    "Label smoothing, focal": CONTRADICTED,
    "Focal loss and FLSD overshoot": HOLDS,
    "Label smoothing lowers": CONTRADICTED,
    "Mix-up lowers": CONTRADICTED,
    "Convolutional networks": CONTRADICTED,
    "Transformers": HOLDS,
    "All interventions but focal loss reduce": CONTRADICTED,
    "All interventions, focal loss too": CONTRADICTED,
    "All interventions reduce the largest": CONTRADICTED,
    "ECE is a poor": UNDECIDED,
    "Vector scaling": UNDECIDED,
    "Calibration error is": UNDECIDED,
    "On training rows": UNTESTABLE,
    "On other rows": UNTESTABLE,
}
"""What the opening about the small networks says of claims, by how they begin."""


def any_answer(records: Records, judgements: Mapping[Claim[Records] | OutOfReach, Judgement]) -> Iterator[str]:
    """Sentences made of the numbers and the verdicts, whatever these are."""

    def says(beginning: str, words: str) -> str:
        return stated(judgements, beginning, words)

    bases = "; ".join(
        f"{model} has {100 * records.values[model, BASE, 'accuracy'].mean():.1f} % accuracy and an ECE of "
        f"{100 * records.values[model, BASE, 'ece'].mean():.1f} points"
        for model in records.models
    )
    yield f"The networks were trained on CIFAR-10 from random weights, for few epochs: {bases}."
    yield (
        "Of Ao, Rueger & Siddharthan (2023), "
        f"{says('Convolutional', 'most convolutional networks are over-confident')}, and "
        f"{says('Transformers', 'transformers are under-confident')}."
    )
    yield (
        f"Of the same paper, {says('Label smoothing, focal', 'label smoothing, focal loss and FLSD lower the ECE')}, "
        f"and {says('Focal loss and FLSD', 'focal loss and FLSD overshoot into under-confidence')}."
    )
    yield (
        f"Of Kirchenbauer, Oaks & Heim (2022), {says('ECE is a poor', 'ECE is a poor indicator of other errors')}, "
        f"and {says('At k = 5', 'interventions improve the top-5 and the full error very little')}."
    )
    yield (
        f"Of Nixon et al. (2019), {says('Vector', 'vector scaling beats temperature scaling by SCE and ACE')}, and "
        f"{says('Calibration error is', 'calibration error differs between classes')}."
    )


def beside(records: Records) -> Iterator[str]:
    """The papers' own numbers above ours."""
    yield "## Beside the papers"
    yield ""
    yield "Ao, Rueger & Siddharthan (2023) on CIFAR-10: networks of their own, with weights that began on ImageNet, and"
    yield "another split. Only nearness can be asked for. Table 1, and under-confident classes of table 5. The paper"
    yield "says that more than half are under-confident after temperature scaling; on CIFAR-10 its own are 30 to 40 %."
    yield ""
    named = [f"{name}, {method}" for method in (BASE, "temperature", "cwmcs") for name in ("ECE %", "wsECE %", "wsMCS")]
    header = ["network", "accuracy %", *named, "classes under %, base", "after temperature"]
    rows = [[f"{name} (paper)", *TABLE_1[name], *TABLE_5[name]] for name in TABLE_1]
    for row in records.sheets["side_by_side"]:
        under = [_cell(records, row["model"], method, "classes under %") for method in (BASE, "temperature")]
        rows.append([row["model"], *(f"{float(row[name]):.3g}" for name in header[1:-2]), *under])
    yield from markdown(header, rows)
    yield "Table 3, where theirs is ResNet-50. Beside the ECE, its wsMCS are ten times as large as those of table 1;"
    yield "ours have the scale of table 1:"
    yield ""
    columns = ("ECE %", "wsMCS", "accuracy %")
    trained = [model for model, _ in records.tried("label_smoothing")]
    rows = [
        [
            model,
            method,
            *(
                f"{there:g} / {_cell(records, model, method, name)}"
                for there, name in zip(TABLE_3[kind], columns, strict=True)
            ),
        ]
        for kind in TABLE_3
        for model, method in ([(model, BASE) for model in trained] if kind == BASE else records.tried(kind))
        if model in trained
    ]
    yield from markdown(["network", "method", *(f"{name}, paper / ours" for name in columns)], rows)


def _cell(records: Records, model: str, method: str, column: str) -> str:
    """A mean of the table of over- and under-confidence."""
    rows = records.sheets["miscalibration"]
    return next(f"{float(row[column]):.3g}" for row in rows if (row["model"], row["method"]) == (model, method))


CORRECTED = (
    "- After the results of this study were known, some rules were brought closer to the papers. Claims of",
    "  Kirchenbauer et al. about all interventions are judged by their interventions alone: that there are more",
    '  outputs of medium confidence went from "contradicted" to "undecided". Claims about overfitting need a network',
    '  that fits its training rows: one went from "contradicted", one from "undecided" to "not testable here".',
    "  Transformers do not count among networks that should be over-confident, and class-wise temperatures must be",
    "  better in most comparisons instead of all: no verdict changed. The claim about all interventions, focal loss",
    "  too, was added.",
)
"""What was changed after the results of the small networks were known."""


def limits(study: str) -> Iterator[str]:
    """What no number here can say."""
    yield "## What these numbers cannot say"
    yield ""
    if study == "cifar10_small":
        yield "- The networks are as small as two processors train in an hour and a half: less accurate than those of"
        yield "  the papers, and less overfitted. `calibrant experiment run cifar10` trains larger ones, on a GPU."
    yield "- Networks were trained for few epochs, in 16-bit floating point, from random weights. The transformer is"
    yield "  small; those of the papers had been trained on more data first."
    yield "- Strengths of interventions were given, not tuned: one each. Kirchenbauer et al. tuned theirs for the"
    yield "  lowest ECE. So what is contradicted of an intervention is contradicted of this strength alone."
    yield "- The rules of `scripts/study_claims.py` and `scripts/network_claims.py` were written after the first"
    yield "  Fashion-MNIST study, whose results were known, and before this study had any."
    if study == "cifar10_small":
        yield from CORRECTED
    yield "- All networks share the split of the training rows and the test rows: comparisons of methods over seeds"
    yield "  hold no sampling error of those rows."


if __name__ == "__main__":
    main()
