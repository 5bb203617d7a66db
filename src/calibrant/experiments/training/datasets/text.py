"""Texts with labels: a CSV or TSV file with a column of texts, read as bags of words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.parts import SPLIT, by_column, label_name
from calibrant.experiments.training.datasets.source import Rows, Source, Transform, coded
from calibrant.experiments.training.datasets.words import fit_counts, fit_tf_idf
from calibrant.files.csv import read_csv

TEXT = "text"
"""The column of texts."""


def read_text(path: Path, label: str | None = None) -> Source:
    """Texts weighted by tf-idf: columns `text` and `label`, and `split` where the file assigns rows to parts."""
    return _source(path, label, fit_tf_idf)


def read_counts(path: Path, label: str | None = None) -> Source:
    """Texts as counts of words, from the same files."""
    return _source(path, label, fit_counts)


def _source(path: Path, label: str | None, fit: Callable[[Array], Transform]) -> Source:
    if not path.is_file():
        raise CalibrationInputError(
            str(path), "must be a CSV or TSV file with the columns text and label", got="no such file"
        )
    columns = read_csv(path)
    if TEXT not in columns:
        raise CalibrationInputError(str(path), f"must have the column {TEXT!r}", got=", ".join(columns))
    name = label_name([column for column in columns if column != TEXT], label, str(path))
    labels, classes = coded(columns[name], f"{path}, column {name!r}")
    texts = np.array(columns.raw[TEXT], dtype=object)  # as written, whatever numbers they may look like
    split = columns.get(SPLIT)
    return Source(classes, by_column(Rows(texts, labels), split, str(path)), fit=fit)
