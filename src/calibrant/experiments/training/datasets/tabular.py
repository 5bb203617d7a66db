"""Tabular data: rows of numbers from CSV, Parquet or JSONL columns, and arrays from NPZ files."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.bounded import MOST_BYTES
from calibrant.experiments.training.datasets.source import (
    LABELS,
    SPLIT,
    LabelledRows,
    RowsByPart,
    Source,
    by_column,
    checked_labels,
    coded,
    label_name,
)
from calibrant.files.columns import Columns
from calibrant.files.formats import read_arrays

INPUTS = ("inputs", "x", "X", "features", "data", "images")
"""The names that inputs have in a NPZ file."""
_PARTS = {"train": ("train",), "validation": ("validation", "val", "valid"), "test": ("test",)}


def read_columns(path: Path, label: str | None = None) -> Source:
    """A table of columns: labels in one, numbers in all others; a column `split` assigns rows to parts.

    Columns of text, missing and infinite numbers are refused: how they become numbers is the user's to say.
    """
    columns = _columns(path)
    name = label_name(list(columns), label, str(path))
    features = [column for column in columns if column not in (name, SPLIT)]
    if not features:
        raise CalibrationInputError(str(path), "must have columns beside the labels", got="none")
    labels, classes = coded(columns[name], f"{path}, column {name!r}")
    numbers = _finite(np.stack([_numbers(columns, column) for column in features], axis=1), path)
    return Source(classes, by_column(LabelledRows(numbers, labels), columns.get(SPLIT), str(path)))


def read_named_arrays(path: Path, label: str | None = None) -> Source:
    """The arrays of a NPZ file: inputs and labels, or both for each part.

    One pair is `inputs` (or x, X, features, data, images) and `labels` (or label, y, target), with or without an array
    `split`; the pairs of parts carry the part in their names, as in `x_train` and `y_train` or `train_images` and
    `train_labels`. Inputs are rows of numbers, grey pictures (n, height, width), or pictures with their channels first,
    or last where there are one or three. An array `classes` names the classes, of which labels are then the indices.
    """
    columns = _columns(path)
    if "train" in {part for part in _PARTS if _named(columns, INPUTS, _PARTS[part])}:
        pairs = {part: pair for part, words in _PARTS.items() if (pair := _pair(columns, words, path))}
        split = None
    else:
        labels_key = label_name(list(columns), label, str(path))
        inputs_key = _named(columns, INPUTS, ())
        if inputs_key is None:
            raise CalibrationInputError(str(path), f"must hold inputs ({', '.join(INPUTS)})", got=", ".join(columns))
        pairs = {"train": (inputs_key, labels_key)}
        split = columns.get(SPLIT)
    rows, classes = _coded_pairs(columns, pairs, path)
    return Source(classes, by_column(rows["train"], split, str(path)) if split is not None else RowsByPart(**rows))


def _columns(path: Path) -> Columns:
    try:
        return read_arrays(path)
    except OSError as reason:
        raise CalibrationInputError(str(path), "must be a file that can be read", got=reason.strerror) from None


def _numbers(columns: Columns, name: str) -> Array:
    values = columns.read_numbers(name)
    if values.dtype.kind not in "iubf" or values.ndim != 1:
        raise CalibrationInputError(
            str(columns.source), f"column {name!r} must hold one number a row", got=f"{values.dtype} {values.shape}"
        )
    return values


def _finite(inputs: Array, path: Path) -> Array:
    if inputs.dtype.kind == "f" and not np.isfinite(inputs).all():
        where = np.argwhere(~np.isfinite(inputs))[0]
        raise CalibrationInputError(
            str(path), "must hold finite numbers", got=str(inputs[tuple(where)]), where=f"row {where[0]}"
        )
    return inputs


def _pair(columns: Columns, words: tuple[str, ...], path: Path) -> tuple[str, str] | None:
    """The names of a part's inputs and labels; inputs without labels are refused."""
    inputs, labels = _named(columns, INPUTS, words), _named(columns, LABELS, words)
    if inputs is not None and labels is None:
        raise CalibrationInputError(str(path), f"must hold labels beside {inputs!r}", got=", ".join(columns))
    return None if inputs is None or labels is None else (inputs, labels)


def _named(columns: Iterable[str], names: tuple[str, ...], words: tuple[str, ...]) -> str | None:
    """The first key that is one of the names, with one of the words before or after it where there are words."""
    keys = [f"{a}_{b}" for name in names for word in words for a, b in ((name, word), (word, name))] or names
    there = set(columns)
    return next((key for key in keys if key in there), None)


def _coded_pairs(
    columns: Columns, pairs: dict[str, tuple[str, str]], path: Path
) -> tuple[dict[str, LabelledRows], tuple[str, ...]]:
    """Rows by part, their labels coded together so that a number means one class in all parts."""
    labels = {part: _flat(columns[key]) for part, (_, key) in pairs.items()}
    every = np.concatenate(list(labels.values()))
    if "classes" in columns:
        classes = tuple(str(name) for name in columns["classes"].tolist())
        codes = checked_labels(every, len(classes), str(path))
    else:
        codes, classes = coded(every, f"{path}, labels")
    chunks = np.split(codes, np.cumsum([len(part) for part in labels.values()])[:-1])
    inputs = {part: _inputs(columns, key, path) for part, (key, _) in pairs.items()}
    return {part: LabelledRows(inputs[part], chunk) for part, chunk in zip(labels, chunks, strict=True)}, classes


def _flat(labels: Array) -> Array:
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _inputs(columns: Columns, key: str, path: Path) -> Array:
    inputs = columns[key]
    if inputs.dtype.kind not in "iubf" or inputs.ndim not in (2, 3, 4) or not inputs.size:
        raise CalibrationInputError(
            str(path), f"{key!r} must hold rows of numbers or pictures", got=f"{inputs.dtype} of shape {inputs.shape}"
        )
    if math.prod(inputs.shape) * 4 > MOST_BYTES:
        raise CalibrationInputError(str(path), "must fit into memory", got=f"shape {inputs.shape} in {key!r}")
    if inputs.ndim == 3:
        inputs = inputs[:, None]
    elif inputs.ndim == 4 and inputs.shape[-1] in (1, 3) and inputs.shape[1] not in (1, 3):
        inputs = np.moveaxis(inputs, -1, 1)
    return _finite(inputs, path)
