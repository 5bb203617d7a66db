"""The data set: rows ready for a network, in three parts that share no row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError

Hierarchy = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Level -> group -> names of classes; a group map of one level is what the lens `Groups` takes."""


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs (n, ...) in float32 and C order, labels (n,) in int64.

    >>> from calibrant.experiments.training.datasets import Split
    >>> Split(np.zeros((2, 3), np.float32), np.array([0, 1]))
    Split(2 rows of shape (3,))
    """

    inputs: Array
    labels: Array

    def __post_init__(self) -> None:
        if self.inputs.dtype != np.float32 or not self.inputs.flags.c_contiguous:
            raise CalibrationInputError("inputs", "must be float32 in C order", got=str(self.inputs.dtype))
        if self.labels.dtype != np.int64 or self.labels.shape != self.inputs.shape[:1]:
            raise CalibrationInputError(
                "labels",
                f"must be {len(self.inputs)} numbers in int64",
                got=f"{self.labels.dtype} of shape {self.labels.shape}",
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Split({len(self)} rows of shape {self.inputs.shape[1:]})"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named data set: three splits, the names of the classes, and how the classes fall into groups.

    >>> from calibrant.experiments.training.datasets import Dataset, Split
    >>> rows = Split(np.zeros((2, 3), np.float32), np.array([0, 1]))
    >>> Dataset("pets", rows, rows, rows, ("cat", "dog")).shape
    (3,)
    """

    name: str
    train: Split
    validation: Split
    test: Split
    classes: tuple[str, ...]
    hierarchy: Hierarchy = field(default_factory=dict)

    def __post_init__(self) -> None:
        for level, groups in self.hierarchy.items():
            _refuse_overlap(level, groups, self.classes)
        for split in (self.train, self.validation, self.test):
            _refuse_stray_labels(split.labels, len(self.classes), self.name)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.train.inputs.shape[1:])


def _refuse_overlap(level: str, groups: Mapping[str, tuple[str, ...]], classes: tuple[str, ...]) -> None:
    members = [name for group in groups.values() for name in group]
    if sorted(members) != sorted(classes):
        odd = set(members) ^ set(classes) or {name for name in members if members.count(name) > 1}
        raise CalibrationInputError(
            f"hierarchy level {level!r}", "must hold every class once", got=f"{sorted(odd)[0]!r} missing, twice or new"
        )


def _refuse_stray_labels(labels: Array, classes: int, name: str) -> None:
    stray = np.flatnonzero((labels < 0) | (labels >= classes))
    if stray.size:
        raise CalibrationInputError(
            name, f"must have labels in 0..{classes - 1}", got=int(labels[stray[0]]), where=f"row {stray[0]}"
        )
