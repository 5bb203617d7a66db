"""Parts: rows that a file assigns to training, validation and testing itself."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.experiments.training.datasets.source import Parts, Rows

LABELS = ("label", "labels", "y", "target")
"""The names that labels have where no other is given."""
SPLIT = "split"
"""The column that assigns rows to parts, where a file has it."""
_WORDS = {"train": "train", "validation": "validation", "val": "validation", "test": "test"}


def label_name(names: Collection[str], label: str | None, parameter: str) -> str:
    """The column of labels: the one that was asked for, or the one that has a usual name.

    >>> label_name(["text", "label"], None, "reviews.csv")
    'label'
    >>> label_name(["text", "label"], "stars", "reviews.csv")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: reviews.csv: must have the label column 'stars'; there are: label, text
    """
    if label is not None:
        if label not in names:
            raise CalibrationInputError(parameter, f"must have the label column {label!r}", hint=nearest(label, names))
        return label
    usual = [name for name in LABELS if name in names]
    if len(usual) != 1:
        raise CalibrationInputError(
            parameter,
            f"must have one column of labels ({', '.join(LABELS)})",
            got=" and ".join(usual) or "none",
            hint="name it after a #, as in csv:rows.csv#species",
        )
    return usual[0]


def by_column(rows: Rows, split: Array | None, parameter: str) -> Parts:
    """Rows by the words of a column: train, validation (or val) and test; without a column all are for training.

    >>> rows = Rows(np.arange(3.0), np.array([0, 1, 1]))
    >>> parts = by_column(rows, np.array(["train", "val", "train"]), "a.csv")
    >>> parts.train.inputs.tolist(), parts.validation.inputs.tolist(), parts.test
    ([0.0, 2.0], [1.0], None)
    """
    if split is None:
        return Parts(rows)
    words = [str(word).lower() for word in split.tolist()]
    odd = next((index for index, word in enumerate(words) if word not in _WORDS), None)
    if odd is not None:
        raise CalibrationInputError(
            parameter, f"column {SPLIT!r} must say train, validation or test", got=repr(words[odd]), where=f"row {odd}"
        )
    parts = np.array([_WORDS[word] for word in words])
    found = {part: np.flatnonzero(parts == part) for part in ("train", "validation", "test")}
    if not found["train"].size:
        raise CalibrationInputError(parameter, f"column {SPLIT!r} must leave rows to train on", got="none")
    return Parts(**{part: rows[index] for part, index in found.items() if index.size})
