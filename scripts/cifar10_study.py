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
from collections.abc import Iterator, Mapping
from pathlib import Path

import study_records
from claim_tables import BEFOREHAND, markdown
from network_claims import CLAIMS as NETWORKS
from study_claims import CLAIMS
from study_keeping import Studied, draw, keep_all, keep_base
from study_page import all_metrics, ensembles, judged_page, networks, told
from study_records import BASE, Records

from calibrant.experiments.findings.claims import Claim, Judgement, OutOfReach
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
    yield from answer(records, judgements)
    yield f"Printed by `scripts/cifar10_study.py` from the numbers in `{study}_study/`; the study is"
    yield f"`calibrant experiment run {study}`. {seeds} seeds of each setting, {TEST_ROWS:,} test rows; methods are"
    yield "fitted on the tenth of the training rows that was held out. Errors are in points, mean ± standard deviation"
    yield "over seeds. Histogram binning has cells of equal mass, and of equal width where n_bins is named."
    yield ""
    yield from networks([records])
    yield from beside(records)
    yield from ensembles(records)
    yield from judged_page(judgements, repetitions, BEFOREHAND)
    yield "## Pictures"
    yield ""
    for name, caption in CAPTIONS.items():
        yield f"![{caption}]({study}_study/{name}.svg)"
        yield ""
    yield from all_metrics(records)
    yield from limits(study)


def answer(records: Records, judgements: Mapping[Claim[Records] | OutOfReach, Judgement]) -> Iterator[str]:
    """The answer in five sentences, made of the numbers and the verdicts."""
    ends = told(judgements)
    bases = "; ".join(
        f"{model} has {100 * records.values[model, BASE, 'accuracy'].mean():.1f} % accuracy and an ECE of "
        f"{100 * records.values[model, BASE, 'ece'].mean():.1f} points"
        for model in records.models
    )
    yield f"Trained on CIFAR-10 from random weights, for few epochs: {bases}."
    yield "Of Ao, Rueger & Siddharthan (2023), that convolutional networks are over-confident"
    yield f"{ends('Convolutional networks')}, that transformers are under-confident {ends('Transformers')}, and"
    yield "that more than half of the classes are under-confident after temperature scaling"
    yield f"{ends('After temperature scaling')}."
    yield f"That label smoothing, focal loss and FLSD lower the ECE {ends('Label smoothing, focal')}; that focal"
    yield f"loss and FLSD overshoot into under-confidence {ends('Focal loss and FLSD overshoot')}."
    yield "Of Kirchenbauer, Oaks & Heim (2022), that ECE is a poor indicator of other errors"
    yield f"{ends('ECE is a poor')}, and that little is gained at k = 5 and over all classes {ends('At k = 5')}."
    yield "Of Nixon et al. (2019), that vector scaling beats temperature scaling by errors of classes"
    yield f"{ends('Vector scaling')}, and that calibration error differs between classes"
    yield f"{ends('Calibration error is')}."
    yield ""


def beside(records: Records) -> Iterator[str]:
    """The papers' own numbers above ours."""
    yield "## Beside the papers"
    yield ""
    yield "Ao, Rueger & Siddharthan (2023) on CIFAR-10: networks of their own, with weights that began on ImageNet, and"
    yield "another split. Only nearness can be asked for. Table 1, and under-confident classes of table 5:"
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


def limits(study: str) -> Iterator[str]:
    """What no number here can say."""
    yield "## What these numbers cannot say"
    yield ""
    if study == "cifar10_small":
        yield "- The networks are as small as two processors train in an hour and a half: less accurate than those of"
        yield "  the papers, and less overfitted. `calibrant experiment run cifar10` trains larger ones, on a GPU."
    yield "- Networks were trained for few epochs, in 16-bit floating point, from random weights. The transformer is"
    yield "  small; those of the papers had been trained on more data first."
    yield "- Strengths of interventions were given, not tuned: one each."
    yield "- The rules of `scripts/study_claims.py` and `scripts/network_claims.py` were written after the first"
    yield "  Fashion-MNIST study, whose results were known, and before this study had any."
    yield "- All networks share the split of the training rows and the test rows: comparisons of methods over seeds"
    yield "  hold no sampling error of those rows."


if __name__ == "__main__":
    main()
