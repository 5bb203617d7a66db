"""Rows that are no whole distributions: shortlists of classes, and labels of which any may be true."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.checks import whole
from calibrant.door.arrays import Array, Layout, shown
from calibrant.door.labels import ROW_TOLERANCE, class_labels
from calibrant.door.samples import Door, Truth, class_keys
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Ints


def all_classes(n_classes: Any, classes: Any) -> tuple[tuple[Any, ...] | None, int]:
    """The names of all classes, where they have some, and how many there are."""
    if classes is None and n_classes is None:
        raise CalibrationInputError("n_classes", "is required", got="None", hint="how many classes are there in all?")
    if n_classes is not None:
        whole(n_classes, "n_classes", 2)
    if classes is None:
        return None, int(n_classes)
    keys = class_keys(classes, None if n_classes is None else int(n_classes))
    return keys, len(keys)


def as_shortlist(
    values: Array, names: Any, kept: Array | None, count: int, keys: tuple[Any, ...] | None
) -> tuple[Ints, Array]:
    """Classes (n, k) and probabilities of a shortlist, the likeliest first; ties go to the lowest class."""
    if values.ndim != 2 or names.shape != values.shape:
        got = f"shapes {names.shape} and {values.shape}"
        raise CalibrationInputError("ids", "must be (n, k), like probs", got=got)
    if kept is not None:
        harmless = names[np.flatnonzero(kept)[0]]
        names = np.where(kept[:, None], names, harmless)
    indices, _ = class_labels(names.ravel(), count, keys, "ids", Layout(names.shape))
    rows = np.asarray(indices).reshape(names.shape)
    ordered = np.sort(rows, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if twice.size:
        row = int(twice[0])
        raise CalibrationInputError("ids", "must differ within a row", got=str(names[row]), where=f"row {row}")
    totals = values.sum(axis=1, dtype=np.float64)
    if totals.max() > 1 + ROW_TOLERANCE:
        row = int(totals.argmax())
        raise CalibrationInputError("probs", "rows must sum to at most 1", got=f"{totals[row]:.6g}", where=f"row {row}")
    short = 1 - totals - (count - values.shape[1]) * values.min(axis=1)
    if kept is not None:
        short = np.where(kept, short, 0.0)
    if short.max() > ROW_TOLERANCE:
        row = int(short.argmax())
        expected = f"must be of the likeliest: {count - values.shape[1]} classes of less cannot make up the rest"
        raise CalibrationInputError("probs", expected, got=f"the sum {totals[row]:.6g}", where=f"row {row}")
    place = np.lexsort((rows, -values), axis=1)
    return np.take_along_axis(rows, place, axis=1), np.take_along_axis(values, place, axis=1)


def as_label_rows(door: Door, classes: Any) -> Truth:
    """Labels (n, L) of which any may be true, as 0 and 1."""
    truth = door.truth
    if door.values.shape[-1] == 1 and truth.ndim == 1:  # the door takes one column for labels
        truth = truth[:, None]
    if door.values.ndim != 2 or truth.shape != door.values.shape:
        got = f"shapes {truth.shape} and {door.layout.shape}"
        raise CalibrationInputError(door.truth_name, f"must be (n, L), like {door.name}", got=got)
    if truth.dtype.kind == "U":
        raise CalibrationInputError(door.truth_name, "must hold 0 and 1", got=f"dtype {truth.dtype}")
    keys = door.keys(classes)
    kept, left_out = door.staying()
    truth = truth if kept is None else np.where(kept[:, None], truth, 0)
    wrong = np.argwhere((truth != 0) & (truth != 1))
    if len(wrong):
        row, column = wrong[0].tolist()
        got, where = shown(truth[row, column]), f"row {row}, column {column}"
        raise CalibrationInputError(door.truth_name, "must hold 0 and 1", got=got, where=where)
    return Truth(truth.astype(np.int8), None, tuple(map(str, keys or range(truth.shape[1]))), kept, left_out)
