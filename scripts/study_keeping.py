"""From the store of a study to the CSV files beside its page: tables, and every value of every seed."""

from __future__ import annotations

from pathlib import Path

from calibrant.experiments.findings.sheets import Sheet
from calibrant.experiments.findings.tables import TABLES
from calibrant.experiments.running import runner
from calibrant.experiments.running.evidence import Evidence, Variant
from calibrant.files.writing import write_text


class Studied:
    """A store, asked for what a page needs."""

    def __init__(self, folder: Path) -> None:
        self.evidence = Evidence(*runner.reopen(folder))
        self.seed = {row.trial.id: row.trial.seed for row in self.evidence.rows}

    def base(self, model: str) -> Variant:
        """A network without intervention."""
        return self.evidence.variants(model)[0]


def keep_tables(studied: Studied, folder: Path, prefix: str) -> None:
    """Every table as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        write_text(folder / f"{prefix}{name}.csv", table(studied.evidence).to_csv())


def by_seed(studied: Studied) -> Sheet:
    """Every metric of every variant and seed, a row each."""
    rows = [
        (variant.model, variant.label, studied.seed[trial], name, float(value))
        for variant in studied.evidence.variants()
        for name in studied.evidence.study.metrics
        for trial, value in zip(variant.trials, studied.evidence.values(variant, name), strict=True)
    ]
    return Sheet("values", "Every value", ("model", "method", "seed", "metric", "value"), tuple(rows))
