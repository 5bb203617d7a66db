"""The source: what a loader read, before rows are held out and inputs are scaled."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.experiments.training.datasets.dataset import Hierarchy, standardise

Transform = Callable[[Array], Array]
"""Inputs as they were read, to inputs as a network takes them."""
LABELS = ("label", "labels", "y", "target")
"""The names that labels have where no other is given."""
SPLIT = "split"
"""The column that assigns rows to parts, where a file has it."""
_WORDS = {"train": "train", "validation": "validation", "val": "validation", "test": "test"}


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Inputs as they were read (pictures in uint8, numbers, texts) and the class index of each.

    >>> rows = LabelledRows(np.array([5.0, 6.0, 7.0]), np.array([0, 1, 0]))
    >>> rows[np.array([2])].inputs.tolist()
    [7.0]
    """

    inputs: Array
    labels: Array

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.labels):
            raise CalibrationInputError(
                "inputs and labels", "must be as many", got=f"{len(self.inputs)} and {len(self.labels)}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Array) -> LabelledRows:
        return LabelledRows(self.inputs[index], self.labels[index])


@dataclass(frozen=True, eq=False)
class RowsByPart:
    """Rows by part. A part that the files do not tell apart is None and will be held out of the training rows.

    >>> RowsByPart(LabelledRows(np.zeros((2, 1)), np.array([0, 1]))).test is None
    True
    """

    train: LabelledRows
    validation: LabelledRows | None = None
    test: LabelledRows | None = None


@dataclass(frozen=True, eq=False)
class Source:
    """All that the files of a data set tell.

    `fit` learns from the inputs of the training rows alone how all inputs are scaled.

    >>> rows = LabelledRows(np.array([[1.0], [3.0]]), np.array([0, 1]))
    >>> Source(("no", "yes"), RowsByPart(rows)).fit(rows.inputs)(rows.inputs).tolist()
    [[-1.0], [1.0]]
    """

    classes: tuple[str, ...]
    parts: RowsByPart
    hierarchy: Hierarchy = field(default_factory=dict)
    fit: Callable[[Array], Transform] = standardise


def coded(labels: Array, parameter: str) -> tuple[Array, tuple[str, ...]]:
    """Labels as class indices, and the classes: names in alphabetical order, whole numbers by size.

    >>> coded(np.array(["dog", "cat", "dog"]), "label")
    (array([1, 0, 1]), ('cat', 'dog'))
    >>> coded(np.array([10, 9]), "label")
    (array([1, 0]), ('9', '10'))
    """
    if labels.ndim != 1 or labels.dtype.kind not in "iubfU":
        raise CalibrationInputError(
            parameter, "must be one name or whole number a row", got=f"{labels.dtype} of shape {labels.shape}"
        )
    if labels.dtype.kind == "f":
        labels = _whole(labels, parameter)
    values, codes = np.unique(labels, return_inverse=True)
    if len(values) < 2:
        raise CalibrationInputError(parameter, "must tell at least two classes apart", got=len(values))
    return codes.astype(np.int64), tuple(str(value) for value in values.tolist())


def checked_labels(labels: Array, classes: int, parameter: str) -> Array:
    """Labels in int64, each an index below the number of classes.

    >>> checked_labels(np.array([0, 7], np.uint8), 3, "labels")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: labels: must have labels in 0..2, got 7 at row 1
    """
    if labels.ndim != 1 or labels.dtype.kind not in "iub":
        raise CalibrationInputError(
            parameter, "must be one whole number a row", got=f"{labels.dtype} of shape {labels.shape}"
        )
    stray = np.flatnonzero((labels < 0) | (labels >= classes))
    if stray.size:
        raise CalibrationInputError(
            parameter, f"must have labels in 0..{classes - 1}", got=int(labels[stray[0]]), where=f"row {stray[0]}"
        )
    return labels.astype(np.int64)


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


def by_column(rows: LabelledRows, split: Array | None, parameter: str) -> RowsByPart:
    """Rows by the words of a column: train, validation (or val) and test; without a column all are for training.

    >>> rows = LabelledRows(np.arange(3.0), np.array([0, 1, 1]))
    >>> parts = by_column(rows, np.array(["train", "val", "train"]), "a.csv")
    >>> parts.train.inputs.tolist(), parts.validation.inputs.tolist(), parts.test
    ([0.0, 2.0], [1.0], None)
    """
    if split is None:
        return RowsByPart(rows)
    words = [str(word).lower() for word in split.tolist()]
    odd = next((index for index, word in enumerate(words) if word not in _WORDS), None)
    if odd is not None:
        raise CalibrationInputError(
            parameter, f"column {SPLIT!r} must say train, validation or test", got=repr(words[odd]), where=f"row {odd}"
        )
    parts = np.array([_WORDS[word] for word in words])
    indices = {part: np.flatnonzero(parts == part) for part in ("train", "validation", "test")}
    if not indices["train"].size:
        raise CalibrationInputError(parameter, f"column {SPLIT!r} must leave rows to train on", got="none")
    return RowsByPart(**{part: rows[index] for part, index in indices.items() if index.size})


def _whole(labels: Array, parameter: str) -> Array:
    odd = np.flatnonzero(~(np.isfinite(labels) & (labels == np.floor(labels)) & (np.abs(labels) < 2**53)))
    if odd.size:
        raise CalibrationInputError(
            parameter,
            "must be names or whole numbers",
            got=float(labels[odd[0]]),
            where=f"row {odd[0]}",
            hint="a regression target is no class",
        )
    return labels.astype(np.int64)
