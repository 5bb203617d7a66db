"""Labels: the truth as class indices, or as soft rows, checked."""

from __future__ import annotations

import numpy as np

from calibrant.arrays import Array, as_array, place
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.totals import Floats, Ints

TOLERANCE = 1e-6
"""How far outside [0, 1] a probability may lie (it is clipped)."""
ROW_TOLERANCE = 1e-3
"""How far from 1 a row of probabilities may sum."""


def event_labels(y_true: Array, classes: tuple[str, ...], parameter: str) -> tuple[Ints | None, Floats | None]:
    """Outcomes of one event: 0 / 1 (or two class names), else soft outcomes in [0, 1]."""
    labels, _ = as_array(y_true, parameter)
    if labels.dtype.kind in "US":
        if not classes:
            raise CalibrationInputError(
                parameter,
                "must be 0 or 1",
                got=repr(str(labels.ravel()[0])),
                hint="pass classes=(name when it did not happen, name when it did)",
            )
        if len(classes) != 2:
            raise CalibrationInputError("classes", "of one event are two names", got=f"{len(classes)} of them")
        return _indices(labels, classes, parameter), None
    numbers = _finite(labels, parameter)
    wrong = np.flatnonzero((numbers < 0) | (numbers > 1))
    if wrong.size:
        raise CalibrationInputError(
            parameter,
            "outcomes of an event must be 0 or 1",
            got=f"{numbers[wrong[0]]:g}",
            where=f"row {wrong[0]}",
            hint="forecasts of several classes are an (n, K) matrix",
        )
    if np.all((numbers == 0) | (numbers == 1)):
        return numbers.astype(np.int64), None
    return None, numbers.astype(np.float64)


def class_labels(
    y_true: Array, n_classes: int, classes: tuple[str, ...] | None, parameter: str
) -> tuple[Ints | None, Floats | None]:
    """Labels of K classes: indices or names or one-hot rows as indices, else soft rows."""
    labels, _ = as_array(y_true, parameter)
    if labels.ndim == 2:
        return _rows(labels, n_classes, parameter)
    if labels.dtype.kind in "US":
        if classes is None:
            raise CalibrationInputError(
                parameter, "must be class indices", got=repr(str(labels[0])), hint="pass classes=[...] to use names"
            )
        return _indices(labels, classes, parameter), None
    numbers = _finite(labels, parameter)
    broken = np.flatnonzero(numbers != np.floor(numbers))
    if broken.size:
        raise CalibrationInputError(
            parameter, "must be whole class indices", got=f"{numbers[broken[0]]:g}", where=f"row {broken[0]}"
        )
    outside = np.flatnonzero((numbers < 0) | (numbers >= n_classes))
    if outside.size:
        label = int(numbers[outside[0]])
        hint = "labels count from 0" if label == n_classes else None
        if label < 0 or label == 255:
            hint = f"pass ignore_index={label} to leave such rows out"
        raise CalibrationInputError(
            parameter, f"must lie in 0..{n_classes - 1}", got=label, where=f"row {outside[0]}", hint=hint
        )
    return numbers.astype(np.int64), None


def _rows(labels: Array, n_classes: int, parameter: str) -> tuple[Ints | None, Floats | None]:
    """One-hot rows as indices; other rows as soft labels."""
    if labels.dtype.kind not in "fiub":
        raise CalibrationInputError(parameter, "rows must hold numbers", got=f"dtype {labels.dtype}")
    if labels.shape[1] != n_classes:
        raise CalibrationInputError(parameter, f"soft labels need {n_classes} columns", got=labels.shape[1])
    soft = labels.astype(np.float64)
    check_probabilities(soft, parameter)
    if np.all((soft == 0) | (soft == 1)):
        return soft.argmax(axis=1), None
    return None, np.clip(soft, 0.0, 1.0)


def check_probabilities(values: Array, parameter: str, block: int = 1 << 18) -> bool:
    """Refuse what is no probability and rows that do not sum to 1; say whether anything needs clipping."""
    rows = values.reshape(len(values), -1)
    step = max(1, block // rows.shape[1])
    clip = False
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        low, high = part.min(), part.max()
        if not (low >= -TOLERANCE and high <= 1 + TOLERANCE):  # NaN compares false
            _refuse_value(values, parameter)
        clip = clip or bool(low < 0 or high > 1)
        if values.ndim == 2:
            totals = part.sum(axis=1)
            if not (abs(totals.min() - 1) <= ROW_TOLERANCE and abs(totals.max() - 1) <= ROW_TOLERANCE):
                row = int(np.argmax(np.abs(totals - 1)))
                raise CalibrationInputError(
                    parameter,
                    "rows must sum to 1",
                    got=f"{totals[row]:.6g}",
                    where=f"row {start + row}",
                    hint="pass normalize=True if that is intended",
                )
    return clip


def _refuse_value(values: Array, parameter: str) -> None:
    flat = values.ravel()
    broken = np.flatnonzero(~np.isfinite(flat))
    if broken.size:
        raise CalibrationInputError(
            parameter,
            "must be finite",
            got=str(flat[broken[0]]),
            where=place(int(broken[0]), values.shape),
            hint=f"{broken.size} such values in all",
        )
    index = int(np.argmax(np.maximum(-flat, flat - 1)))
    raise CalibrationInputError(
        parameter,
        "must lie in [0, 1]",
        got=f"{flat[index]:.6g}",
        where=place(index, values.shape),
        hint=_what_are_these(values),
    )


def _what_are_these(values: Array) -> str | None:
    """Percentages and logits are recognised, to be named in the error; never to be converted."""
    low, high = float(values.min()), float(values.max())
    if values.ndim == 2 and np.allclose(values.sum(axis=1), 100, atol=1):
        return "these look like percentages: divide by 100"
    if values.ndim == 1 and low >= 0 and 1 < high <= 100 and np.any(values > 2):
        return "if these are percentages, divide by 100; if they are logits, use Predictions.from_logits"
    if low < -0.5 or high > 1.5:
        return "if these are logits, use Predictions.from_logits"
    return None


def _indices(labels: Array, classes: tuple[str, ...], parameter: str) -> Ints:
    position = {name: index for index, name in enumerate(classes)}
    found, inverse = np.unique(labels.astype(str), return_inverse=True)
    for name in found:
        if str(name) not in position:
            row = int(np.flatnonzero(labels.astype(str) == name)[0])
            raise CalibrationInputError(
                parameter,
                "must name one of the classes",
                got=repr(str(name)[:60]),
                where=f"row {row}",
                hint=nearest(str(name), classes)[:200],
            )
    return np.array([position[str(name)] for name in found], np.int64)[inverse.ravel()]


def _finite(labels: Array, parameter: str) -> Array:
    if labels.dtype.kind not in "fiub":
        raise CalibrationInputError(parameter, "must hold class indices or names", got=f"dtype {labels.dtype}")
    numbers = labels.astype(np.float64) if labels.dtype.kind == "f" else labels.astype(np.int64)
    broken = np.flatnonzero(~np.isfinite(numbers))
    if broken.size:
        raise CalibrationInputError(
            parameter, "must have no missing values", got=str(numbers[broken[0]]), where=f"row {broken[0]}"
        )
    return numbers
