"""Rows that are no whole distributions: shortlists of classes, and labels of which any may be true."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.checks import whole
from calibrant.door.arrays import Array, Layout, as_array, shown
from calibrant.door.labels import ROW_TOLERANCE, class_labels
from calibrant.door.samples import Door, Truth, class_keys
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Ints


def as_shortlist(door: Door, ids: Any, n_classes: Any, classes: Any) -> tuple[Ints, Array, tuple[Any, ...], Ints]:
    """Classes and probabilities of a shortlist, the likeliest first, the names of all classes, and the true ones."""
    keys, count = _all_classes(n_classes, classes)
    names, _ = as_array(ids, "ids")
    if door.values.ndim != 2 or names.shape != door.values.shape:
        got = f"shapes {names.shape} and {door.values.shape}"
        raise CalibrationInputError("ids", "must be (n, k), like probs", got=got)
    indices, _ = class_labels(names.ravel(), count, keys, "ids", Layout(names.shape))
    rows = np.asarray(indices).reshape(names.shape)
    ordered = np.sort(rows, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if twice.size:
        row = int(twice[0])
        raise CalibrationInputError("ids", "must differ within a row", got=str(names[row]), where=f"row {row}")
    totals = door.values.sum(axis=1, dtype=np.float64)
    if totals.max() > 1 + ROW_TOLERANCE:
        row = int(totals.argmax())
        raise CalibrationInputError("probs", "rows must sum to at most 1", got=f"{totals[row]:.6g}", where=f"row {row}")
    labels, _ = class_labels(door.truth, count, keys, door.truth_name, door.layout)
    place = np.lexsort((rows, -door.values), axis=1)  # ties go to the lowest class
    values = np.take_along_axis(door.values, place, axis=1)
    return np.take_along_axis(rows, place, axis=1), values, keys or tuple(range(count)), np.asarray(labels)


def as_label_rows(door: Door, classes: Any) -> Truth:
    """Labels (n, L) of which any may be true, as 0 and 1."""
    width = door.values.shape[-1]
    truth = (
        door.truth[:, None] if width == 1 and door.truth.ndim == 1 else door.truth
    )  # one column is taken as a vector
    if door.values.ndim != 2 or truth.shape != door.values.shape:
        got = f"shapes {truth.shape} and {door.values.shape}"
        raise CalibrationInputError(door.truth_name, f"must be (n, L), like {door.name}", got=got)
    if truth.dtype.kind == "U":
        raise CalibrationInputError(door.truth_name, "must hold 0 and 1", got=f"dtype {truth.dtype}")
    wrong = np.argwhere((truth != 0) & (truth != 1))
    if len(wrong):
        row, column = wrong[0].tolist()
        got, where = shown(truth[row, column]), f"row {row}, column {column}"
        raise CalibrationInputError(door.truth_name, "must hold 0 and 1", got=got, where=where)
    keys = range(width) if classes is None else class_keys(classes, width)
    return Truth(truth.astype(np.int8), None, tuple(map(str, keys)), None)


def _all_classes(n_classes: Any, classes: Any) -> tuple[tuple[Any, ...] | None, int]:
    """The names of all classes, where they have some, and how many there are."""
    if classes is None and n_classes is None:
        raise CalibrationInputError("n_classes", "is required", got="None", hint="how many classes are there in all?")
    if n_classes is not None:
        whole(n_classes, "n_classes", 2)
    count = len(classes) if n_classes is None else int(n_classes)
    return None if classes is None else class_keys(classes, count), count
