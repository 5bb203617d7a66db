"""Labels: the truth as class indices, or as soft rows, checked; and what makes a row of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant import kernels
from calibrant.door.arrays import DROP, Array, Layout, absent, as_array, shown
from calibrant.door.foreign import were_within
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.kernels.logits import in_float32
from calibrant.kernels.totals import Floats, Ints

TOLERANCE = 1e-6
"""How far outside [0, 1] a probability may lie (it is clipped)."""
LIFTED = 1000
"""How far below the largest logit of its row -inf is put: its probability is 0 in double precision."""
ROW_TOLERANCE = 1e-3
"""How far from 1 a row of probabilities may sum, unless its precision is coarser still."""

SEVERAL = "where several labels of a row may be true, use Predictions.from_multilabel"

IN_FLOAT32 = "exponentiated in float32: probabilities are within 1e-6 of those computed in float64"
"""What is said of rows of logits on a device."""


def event_labels(
    labels: Array, keys: tuple[Any, ...] | None, parameter: str, layout: Layout
) -> tuple[Ints | None, Floats | None]:
    """Outcomes of one event: 0 / 1 (or what the two classes are called), else soft outcomes in [0, 1]."""
    if labels.dtype.kind == "U" and keys is None:
        raise CalibrationInputError(
            parameter,
            "must be 0 or 1",
            got=repr(str(labels[0])),
            hint="write 0 and 1, or pass classes=(name when it did not happen, name when it did)",
        )
    if _are_keys(labels, keys):
        return _indices(labels, keys, parameter, layout), None
    if _are_in_range(labels, 2):
        return _own(labels), None
    _refuse_missing(labels, parameter, layout)
    wrong = np.flatnonzero((labels < 0) | (labels > 1))
    if wrong.size:
        raise CalibrationInputError(
            parameter,
            "outcomes of an event must be 0 or 1",
            got=shown(labels[wrong[0]]),
            where=layout.place(wrong[0]),
            hint="forecasts of several classes are an (n, K) matrix",
        )
    if np.all((labels == 0) | (labels == 1)):
        return labels.astype(np.int64), None
    return None, labels.astype(np.float64)


def class_labels(
    labels: Array,
    width: int,
    keys: tuple[Any, ...] | None,
    parameter: str,
    layout: Layout,
    *,
    counted: bool = False,
) -> tuple[Ints | None, Floats | None]:
    """Labels of K classes: indices or what the classes are called or one-hot rows as indices, else soft rows.

    `counted` says that K was given, and does not follow from the forecasts.
    """
    if labels.ndim == 2:
        return _soft_rows(labels, width, parameter, layout)
    if labels.dtype.kind == "U" and keys is None:
        raise CalibrationInputError(
            parameter, "must be class indices", got=repr(str(labels[0])), hint="pass classes=[...] to use names"
        )
    if _are_keys(labels, keys):
        return _indices(labels, keys, parameter, layout), None
    if _are_in_range(labels, width):
        return _own(labels), None
    _refuse_missing(labels, parameter, layout)
    broken = np.flatnonzero(np.isinf(labels) | (labels != np.floor(labels)))
    if broken.size:
        raise CalibrationInputError(
            parameter, "must be whole class indices", got=shown(labels[broken[0]]), where=layout.place(broken[0])
        )
    outside = np.flatnonzero((labels < 0) | (labels >= width))
    if outside.size:
        label = int(labels[outside[0]])
        hint = "labels count from 0" if label == width else _classes_told(keys, width, counted=counted)
        if (label < 0 or label == 255) and parameter != "ids":
            hint = f"pass ignore_index={label} to leave such rows out"
        raise CalibrationInputError(
            parameter, f"must lie in 0..{width - 1}", got=label, where=layout.place(outside[0]), hint=hint
        )
    return labels.astype(np.int64), None


def check_probabilities(
    values: Array,
    parameter: str,
    layout: Layout,
    *,
    bits: int = 53,
    forecasts: bool = True,
    whole: bool = True,
    advice: str = DROP,
) -> tuple[bool, tuple[Array, ...]]:
    """Refuse what is no probability and (of whole rows) what does not sum to 1; say whether anything needs clipping.

    Then the column of each row's largest entry, and that entry; nothing of a column. Hints are given for forecasts
    only: labels are no logits, and no option normalises them.
    """
    low, high, *told = _surveyed(values)
    sums, leaders = told[:2], tuple(told[2:])
    if not (low >= -TOLERANCE and high <= 1 + TOLERANCE):  # NaN compares false
        values = np.asarray(values)  # the words are made on the host
        _refuse_broken(values, parameter, layout, advice)
        _refuse_outside(values, parameter, layout, _what_are_these(values, whole) if forecasts else None)
    if whole and len(values) and any(abs(total - 1) > max(ROW_TOLERANCE, 2.0**-bits) for total in sums):
        totals = values.sum(axis=1)
        row = int(np.argmax(np.abs(totals - 1)))
        raise CalibrationInputError(
            parameter,
            "rows must sum to 1",
            got=f"{totals[row]:.6g}",
            where=layout.place(row),
            hint=f"pass normalize=True if that is intended; {SEVERAL}" if forecasts and totals[row] > 0 else None,
        )
    return bool(low < 0 or high > 1), leaders


def _surveyed(values: Array) -> tuple[Any, ...]:
    """The smallest and the largest value; of rows the smallest and the largest sum, too, and each one's leader."""
    if values.ndim == 2:
        return kernels.beside(values).row_survey(values)
    return kernels.beside(values).extremes(values)


def check_logits(
    values: Array, parameter: str, layout: Layout, advice: str, *, softmax: bool = False
) -> tuple[Array, ...]:
    """Refuse logits that are not finite; where the softmax of rows will be asked for, what it needs of each row."""
    survey: tuple[Array, ...] = ()
    if values.ndim == 1:
        low, high = kernels.beside(values).extremes(values)
    elif softmax:
        low, high, *rest = kernels.beside(values).logits_survey(values)
        survey = tuple(rest)
    else:
        low, high = kernels.beside(values).row_survey(values)[:2]
    if not (np.isfinite(low) and np.isfinite(high)):
        _refuse_broken(np.asarray(values), parameter, layout, advice)
    return survey


def answered(correct: Any) -> tuple[Array, dict[str, Ints]]:
    """Whether answers were right, with what nobody knows as wrong; and which rows those are.

    >>> labels, rows = answered([1, None, 0])
    >>> labels.tolist(), [told.tolist() for told in rows.values()]
    ([1.0, 0.0, 0.0], [[0, 1, 0]])
    """
    labels = as_array(correct, "correct", drop=True)[0]
    gaps = absent(labels)
    if labels.dtype.kind == "U" or not gaps.any():
        return labels, {}
    return np.where(gaps, 0, labels), {"counted as wrong: no answer": gaps.astype(int)}


def lifted(values: Array) -> tuple[Array, dict[str, Ints]]:
    """Logits with -inf, the log-probability of what cannot be, put 1,000 below the largest of its row, where its
    probability is 0; and which rows had it. What is not finite otherwise stays, to be refused.

    >>> values, rows = lifted(np.array([[0.5, -np.inf], [1.0, 2.0]]))
    >>> values.tolist(), [told.tolist() for told in rows.values()]
    ([[0.5, -999.5], [1.0, 2.0]], [[1, 0]])
    """
    if not isinstance(values, np.ndarray) or values.min() != -np.inf:
        return values, {}
    rows = values.reshape(len(values), -1)
    top = rows.max(axis=1, keepdims=True) if values.ndim == 2 else np.zeros((len(values), 1), values.dtype)
    impossible = np.isneginf(rows) & np.isfinite(top)
    raised = np.where(impossible, top - LIFTED, rows).reshape(values.shape)
    return raised, {f"read with -inf as {LIFTED:,} below their largest logit": impossible.any(axis=1).astype(int)}


def told_of_logits(values: Array) -> dict[str, Ints]:
    """Which rows will be computed with in float32: float32 logits of many classes, on a device of several."""
    exact = values.ndim == 1 or values.dtype == np.float64
    if isinstance(values, np.ndarray):
        exact = exact or not in_float32(values)
    return {} if exact else {IN_FLOAT32: np.ones(len(values), int)}


def clipped(values: Array) -> tuple[Array, Ints]:
    """Probabilities moved into [0, 1], and which rows had others."""
    if not isinstance(values, np.ndarray):
        return kernels.beside(values).clipped(values)
    rows = values.reshape(len(values), -1)
    return np.clip(values, 0.0, 1.0), ((rows < 0) | (rows > 1)).any(axis=1).astype(int)


def _refuse_broken(values: Array, parameter: str, layout: Layout, advice: str) -> None:
    """Refuse nan and infinities, by the first of them; advice is for nan."""
    broken = np.argwhere(~np.isfinite(values))
    if len(broken):
        count = f"{len(broken)} such values in all"
        raise CalibrationInputError(
            parameter,
            "must be finite",
            got=str(values[tuple(broken[0])]),
            where=layout.place(*broken[0]),
            hint=f"{count}; {advice}" if advice and np.isnan(values[tuple(broken[0])]) else count,
        )


def _refuse_outside(values: Array, parameter: str, layout: Layout, hint: str | None) -> None:
    worst = np.unravel_index(int(np.argmax(np.maximum(-values, values - 1))), values.shape)
    raise CalibrationInputError(
        parameter,
        "must lie in [0, 1]",
        got=shown(values[worst]),
        where=layout.place(*worst),
        hint=hint,
    )


def _what_are_these(values: Array, whole: bool) -> str | None:
    """Percentages and logits are recognised, to be named in the error; never to be converted."""
    low, high = float(values.min()), float(values.max())
    if values.ndim == 2 and high <= 101 and np.allclose(values.sum(axis=1), 100, atol=1):
        return "these look like percentages: divide by 100"
    if values.ndim == 1 and low >= 0 and 1 < high <= 100 and np.any(values > 2):
        return "if these are percentages, divide by 100; if they are logits, use Predictions.from_logits"
    if not whole and low >= 0 and 2 < high <= 100:
        return "if these are percentages, divide by 100; if they are logits of labels, pass logits=True"
    if (low < -0.5 or high > 1.5) and not whole:
        return "logits of labels are taken with logits=True; logits of some classes must become probabilities first"
    if low < -0.5 or high > 1.5:
        return "if these are logits, use Predictions.from_logits"
    return None


def _soft_rows(labels: Array, width: int, parameter: str, layout: Layout) -> tuple[Ints | None, Floats | None]:
    """One-hot rows as indices; other rows as soft labels."""
    if labels.dtype.kind == "U":
        raise CalibrationInputError(parameter, "rows of soft labels must hold numbers", got=f"dtype {labels.dtype}")
    if labels.shape[1] != width:
        raise CalibrationInputError(parameter, f"soft labels need {width} columns", got=labels.shape[1])
    soft = labels.astype(np.float64)
    several = np.flatnonzero(soft.sum(axis=1) > 1) if np.isin(soft, (0.0, 1.0)).all() else np.zeros(0, np.int64)
    if several.size:
        got, where = shown(soft[several[0]].sum()), layout.place(several[0])
        raise CalibrationInputError(parameter, "rows must sum to 1", got=got, where=where, hint=SEVERAL)
    check_probabilities(soft, parameter, layout, forecasts=False)
    soft = np.clip(soft, 0.0, 1.0)
    return (soft.argmax(axis=1), None) if np.all((soft == 0) | (soft == 1)) else (None, soft)


def _are_in_range(labels: Array, width: int) -> bool:
    """Whether whole numbers are class indices; of others the other checks say what is wrong."""
    if labels.dtype.kind not in "iub" or not labels.size:
        return False
    if were_within(labels, width):
        return True
    low, high = kernels.beside(labels).extremes(labels)
    return low >= 0 and high < width


def _own(labels: Array) -> Ints:
    """Whole numbers as labels."""
    return labels.astype(np.int64, copy=False) if isinstance(labels, np.ndarray) else labels


def _are_keys(labels: Array, keys: tuple[Any, ...] | None) -> bool:
    """Whether labels call the classes by name, or by the numbers that name them."""
    return keys is not None and (labels.dtype.kind == "U" or not isinstance(keys[0], str))


def _indices(labels: Array, keys: Any, parameter: str, layout: Layout) -> Ints:
    _refuse_missing(labels, parameter, layout)
    if labels.dtype.kind == "U":
        keys = tuple(map(str, keys))
    position = {key: index for index, key in enumerate(keys)}
    names, inverse = np.unique(labels, return_inverse=True)
    for label in names.tolist():
        if label not in position:
            raise CalibrationInputError(
                parameter,
                "must name one of the classes",
                got=repr(label),
                where=layout.place(np.flatnonzero(labels == label)[0]),
                hint=nearest(str(label), map(str, keys)),
            )
    return np.array([position[label] for label in names.tolist()], np.int64)[inverse.ravel()]


def _classes_told(keys: tuple[Any, ...] | None, width: int, *, counted: bool) -> str | None:
    """How many classes there are and what the first are called, or who said so; columns of numbers need no words."""
    if keys is None:
        return f"n_classes is {width}, and must count all classes" if counted else None
    more = f" and {len(keys) - 5} more" if len(keys) > 6 else ""
    return f"there are {len(keys)} classes: {', '.join(map(str, keys[: 5 if more else 6]))}{more}"


def _refuse_missing(labels: Array, parameter: str, layout: Layout) -> None:
    missing = np.flatnonzero(labels != labels)  # nan alone differs from itself
    if missing.size:
        where = layout.place(missing[0])
        raise CalibrationInputError(parameter, "must have no missing values", got="nan", where=where, hint=DROP)


def refuse_swapped(truth: Array, values: Array, parameter: str) -> None:
    """Truth comes first: fractions are no labels where the forecasts look like labels."""
    if truth.dtype.kind != "f" or not (truth > np.floor(truth)).any():
        return
    looks_like_labels = _are_labels(values[:1]) and _are_labels(values)  # one row tells most forecasts apart
    if truth.ndim > values.ndim or (truth.ndim == values.ndim and looks_like_labels):
        raise CalibrationInputError(
            parameter,
            "must be the labels",
            got="what look like probabilities",
            hint="the arguments seem swapped: the truth comes first",
        )


def _are_labels(values: Array) -> bool:
    """Whether numbers could be class indices, or rows one-hot."""
    if values.ndim == 1:
        return bool(np.all((values >= 0) & (values == np.floor(values))))
    return bool(np.all((values == 0) | (values == 1)))
