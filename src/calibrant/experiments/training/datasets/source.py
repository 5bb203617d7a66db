"""The source: what a loader read, before rows are held out and inputs are scaled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.dataset import Hierarchy
from calibrant.experiments.training.datasets.scaling import standardise

Transform = Callable[[Array], Array]
"""Inputs as they were read, to inputs as a network takes them."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Inputs as they were read (pictures in uint8, numbers, texts) and the class index of each.

    >>> rows = Rows(np.array([5.0, 6.0, 7.0]), np.array([0, 1, 0]))
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

    def __getitem__(self, index: Array) -> Rows:
        return Rows(self.inputs[index], self.labels[index])


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows by part. A part that the files do not tell apart is None and will be held out of the training rows.

    >>> Parts(Rows(np.zeros((2, 1)), np.array([0, 1]))).test is None
    True
    """

    train: Rows
    validation: Rows | None = None
    test: Rows | None = None


@dataclass(frozen=True, eq=False)
class Source:
    """All that the files of a data set tell.

    `fit` learns from the inputs of the training rows alone how all inputs are scaled.

    >>> rows = Rows(np.array([[1.0], [3.0]]), np.array([0, 1]))
    >>> Source(("no", "yes"), Parts(rows)).fit(rows.inputs)(rows.inputs).tolist()
    [[-1.0], [1.0]]
    """

    classes: tuple[str, ...]
    parts: Parts
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
