"""What a study left behind: values by seed, rows of tables and figures, logits; from the CSV files beside its page."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.experiments.findings.claims import Difference, UntestableError
from calibrant.predictions import Predictions

BASE = "base"
PREFIXES = ("more_", "series_")
"""How the files of further studies in a folder begin."""
EQUAL_WIDTH = ("histogram",)
"""Methods that earlier results have with cells of equal width, which no claim is about."""


@dataclass(frozen=True, eq=False)
class Records:
    """Numbers of a study: values of metrics for each seed, rows of sheets, predictions of a base for each seed."""

    values: Mapping[tuple[str, str, str], Any]
    """(model, method, metric) -> a value a seed."""
    sheets: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    predictions: Mapping[str, Sequence[Predictions]] = field(default_factory=dict)
    """Test predictions of networks without intervention, a seed each."""
    groups: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    rows: int = 0
    """Test rows."""
    classes: int = 0
    left_out: tuple[str, ...] = ()
    """Methods that no claim is about."""

    @property
    def models(self) -> list[str]:
        """The networks, in their order."""
        return list(dict.fromkeys(model for model, _, _ in self.values))

    def methods(self, model: str) -> list[str]:
        """Everything that was done to a network."""
        known = dict.fromkeys(method for name, method, _ in self.values if name == model)
        return [method for method in known if method not in (BASE, *self.left_out)]

    def tried(self, *beginnings: str) -> list[tuple[str, str]]:
        """Networks and those of their methods whose names begin so; interventions are followed by their strength."""
        pairs = [
            (model, method)
            for model in self.models
            for beginning in beginnings
            for method in self.methods(model)
            if method == beginning or method.startswith(f"{beginning} ")
        ]
        if not pairs:
            raise UntestableError(f"{' or '.join(beginnings)} was not tried")
        return pairs

    def less(self, metric: str, model: str, method: str, other: str = BASE, factor: float = 100.0) -> Difference:
        """A metric after a method less that after another: of the same seeds where neither was retrained."""
        name = f"{model}, {metric}, {method} less {other}"
        first, second = (factor * self.values[model, each, metric] for each in (method, other))
        if is_retrained(method) or is_retrained(other):
            return Difference.of("", first).less(Difference.of("", second), name)
        return Difference.of(name, first - second)

    def metric(self, model: str, method: str, metric: str) -> Difference:
        """A metric in points, of the values of seeds or, where no more was kept, of their mean and deviation."""
        if (model, method, metric) in self.values:
            return Difference.of("", 100 * self.values[model, method, metric])
        return self.cell("metrics", metric, model=model, method=method)

    def cell(self, sheet: str, column: str, factor: float = 100.0, **asked: str) -> Difference:
        """A mean over seeds in a sheet, with its error."""
        if sheet not in self.sheets:
            raise UntestableError(f"no rows of {sheet} were kept")
        rows = [row for row in self.sheets[sheet] if all(row[key] == value for key, value in asked.items())]
        if not rows:
            raise UntestableError(f"{sheet} has no row of {', '.join(asked.values())}")
        row, seeds = rows[0], int(rows[0][f"{column} seeds"])
        if seeds < 2:
            raise UntestableError(f"{column} of {', '.join(asked.values())} has a value for {seeds} seeds")
        mean, error = (factor * float(row[name]) for name in (column, f"{column} sd"))
        return Difference(", ".join(asked.values()), mean, error / np.sqrt(seeds), seeds - 1)

    def kept(self, sheet: str, column: str) -> list[str]:
        """The different values of a column of a sheet, in their order."""
        return list(dict.fromkeys(row[column] for row in self.sheets.get(sheet, ())))


def joined(several: Sequence[Records]) -> Records:
    """The networks of several studies with the same test rows as those of one, without what each leaves out."""
    kept = {
        key: values for records in several for key, values in records.values.items() if key[1] not in records.left_out
    }
    names = dict.fromkeys(name for records in several for name in records.sheets)
    sheets = {name: [row for records in several for row in records.sheets.get(name, ())] for name in names}
    return replace(several[0], values=kept, sheets=sheets, left_out=())


def is_retrained(method: str) -> bool:
    """Whether a method is an intervention: those have a strength behind their name."""
    return " " in method.partition("(")[0]


def read(folder: Path, *, prefix: str = "", classes: Sequence[str], **about: Any) -> Records:
    """The records in a folder of CSV files, of several studies with prefixes; what else is known of the data."""
    sheets = {
        path.stem.removeprefix(prefix): _rows(path)
        for path in sorted(folder.glob(f"{prefix}*.csv"))
        if prefix or not path.stem.startswith(PREFIXES)
    }
    several: dict[tuple[str, str, str], list[float]] = {}
    for row in sheets.get("values", []):
        several.setdefault((row["model"], row["method"], row["metric"]), []).append(float(row["value"]))
    predictions = {
        path.stem.removesuffix("_base").replace("_", " "): _predictions(path, classes)
        for path in sorted(folder.glob("*_base.npz"))
        if not prefix
    }
    values = {key: np.array(each) for key, each in several.items()}
    return Records(values, sheets, predictions, classes=len(classes), **about)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _predictions(path: Path, classes: Sequence[str]) -> list[Predictions]:
    with np.load(path) as arrays:
        labels = arrays["test_labels"].astype(np.int64)
        several = [arrays[name].astype(np.float32) for name in arrays.files if name.startswith("test_logits")]
    return [Predictions.from_logits(labels, logits, classes=list(classes)) for logits in several]
