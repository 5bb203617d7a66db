"""From the store of a study to the CSV files beside its page: tables, and every value of every seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calibrant.experiments.findings.figures import FIGURES
from calibrant.experiments.findings.sheets import Sheet
from calibrant.experiments.findings.tables import TABLES
from calibrant.experiments.running import runner
from calibrant.experiments.running.evidence import Evidence, Variant
from calibrant.experiments.training.trial_outcomes import write_arrays
from calibrant.experiments.training.trials import ENSEMBLE
from calibrant.files.writing import whole_file, write_text


class Studied:
    """A store, asked for what a page needs."""

    def __init__(self, folder: Path) -> None:
        self.evidence = Evidence(*runner.reopen(folder))
        self.seed = {row.trial.id: row.trial.seed for row in self.evidence.rows}

    def base(self, model: str) -> Variant:
        """A network without intervention."""
        return self.evidence.variants(model)[0]


def keep_tables(studied: Studied, folder: Path, prefix: str = "") -> None:
    """Every table as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        write_text(folder / f"{prefix}{name}.csv", table(studied.evidence).to_csv())


def keep_all(studied: Studied, folder: Path, prefix: str = "") -> None:
    """Every table, every figure that has rows, and every value of every seed, as CSV."""
    keep_tables(studied, folder, prefix)
    for name, figure in FIGURES.items():
        sheet = figure.find(studied.evidence)
        if sheet.rows:
            write_text(folder / f"{prefix}figure_{name}.csv", sheet.to_csv())
    write_text(folder / f"{prefix}values.csv", by_seed(studied).to_csv())


def keep_base(studied: Studied, folder: Path, model: str) -> None:
    """The test logits of a network without intervention, in 16 bits, a seed each."""
    outcomes = [studied.evidence.outcome(trial) for trial in studied.base(model).trials]
    arrays = {f"test_logits_{index}": each.test.logits.astype(np.float16) for index, each in enumerate(outcomes)}
    write_arrays(
        folder / f"{model.replace(' ', '_')}_base.npz",
        {**arrays, "test_labels": outcomes[0].test.labels.astype(np.uint8)},
    )


def draw(shown: Any, path: Path) -> None:
    """A picture as SVG: the same numbers make the same file."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}), whole_file(path) as file:
        shown.savefig(file, format="svg", metadata={"Date": None})


def by_seed(studied: Studied) -> Sheet:
    """Every metric of every variant and seed, a row each; an ensemble has none of these."""
    rows = [
        (variant.model, variant.label, studied.seed[trial], name, float(value))
        for variant in studied.evidence.variants()
        if variant.intervention != ENSEMBLE
        for name in studied.evidence.study.metrics
        for trial, value in zip(variant.trials, studied.evidence.values(variant, name), strict=True)
    ]
    return Sheet("values", "Every value", ("model", "method", "seed", "metric", "value"), tuple(rows))
