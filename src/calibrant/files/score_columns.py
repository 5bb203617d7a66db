"""Score columns: the forecasts in a file whose labels may be missing, and what stands beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.checks import number
from calibrant.door.arrays import Array, absent
from calibrant.door.remarks import GAPS, LEFT_OUT, ignored
from calibrant.exceptions import CalibrationInputError
from calibrant.files.column_names import LABELS, OTHER_LABELS, called
from calibrant.files.columns import MULTILABEL
from calibrant.files.finding import Finder

Columns = dict[str, Array]
Names = tuple[str, ...] | None


@dataclass(frozen=True)
class ScoreColumns:
    """The forecasts of a file whose labels may be missing."""

    values: Array
    are_logits: bool
    classes: Names
    columns: Columns
    """All other columns."""
    remarks: tuple[tuple[str, int], ...] = ()
    """What was done to how many rows."""


def scores_found(
    finder: Finder,
    keys: Mapping[str, str | None],
    probs: str | None,
    logits: str | None,
    *,
    classes: Any = None,
    ignore_index: float | None = None,
) -> ScoreColumns:
    """What `read_scores` returns.

    `keys` are the columns of labels, weights and correct answers, where they are named; they stay columns.
    """
    named = [name for name in keys.values() if name is not None]
    finder.require(named, "must have the columns that are named", f"there are: {', '.join(map(repr, finder.arrays))}")
    finder.used |= set(named)
    forecasts, names, raw = _forecasts(finder, probs, logits)
    finder.used -= set(named)
    names = _class_names(finder, classes, names)
    columns = _beside(finder, forecasts, keys)
    left_out = _left_out(finder, forecasts, columns, keys, ignore_index)
    if not left_out:
        return ScoreColumns(forecasts, raw, names, columns)
    kept = ~np.logical_or.reduce(list(left_out.values()))
    remarks = tuple((LEFT_OUT + reason, int(rows.sum())) for reason, rows in left_out.items())
    return ScoreColumns(forecasts[kept], raw, names, {name: column[kept] for name, column in columns.items()}, remarks)


def _forecasts(finder: Finder, probs: str | None, logits: str | None) -> tuple[Array, Names, bool]:
    """The forecasts, as `Finder.forecasts` has them; of a confidence or an array alone, those."""
    if set(finder.arrays) == {"array"}:
        return finder.numbers("array"), None, logits is not None
    if probs is None and logits is None and {"confidence", "correct"} <= set(finder.arrays):
        probs = "confidence"
    if probs is None and logits is None and finder.shortlist() is not None:
        expected = "must have the probability of every class"
        raise CalibrationInputError(str(finder.source), expected, got="the likeliest alone")
    return finder.forecasts(probs, logits)


def _class_names(finder: Finder, classes: Any, names: Names) -> Names:
    """The names of the classes: those that are given, or that the file has."""
    agreed = finder.agreed(finder.class_names() if classes is None and names is None else classes, names)
    return tuple(map(str, agreed)) if np.iterable(agreed) else None


def _beside(finder: Finder, forecasts: Array, keys: Mapping[str, str | None]) -> Columns:
    """What else has one value a row; independent labels, and labels of the points of maps, too."""
    columns = finder.columns(forecasts, reserved=())
    truth = next((name for name in (keys["label"], *LABELS) if name in finder.arrays), None)
    if forecasts.ndim > 2 and truth is not None:
        columns[truth] = finder.arrays[truth]
    if MULTILABEL in finder.arrays:
        columns = {MULTILABEL: finder.arrays[MULTILABEL], **columns}
    correct = keys["correct"]
    if correct in (None, "correct"):
        return columns
    if "correct" in columns:
        expected = f"must have no column 'correct' beside {correct!r}"
        raise CalibrationInputError(str(finder.source), expected, got="one", hint="rename one of them")
    return {"correct" if name == correct else name: column for name, column in columns.items()}


def _left_out(
    finder: Finder, forecasts: Array, columns: Columns, keys: Mapping[str, str | None], ignore_index: float | None
) -> dict[str, Array]:
    """Which rows do not stay, by reason: those without a forecast; of others, those with the label that is left out."""
    rows = len(forecasts)
    gaps = absent(forecasts).reshape(rows, -1).any(axis=1) if finder.drop else np.zeros(rows, bool)
    reasons: dict[str, Any] = {GAPS: gaps}
    if ignore_index is not None:
        number(ignore_index, "ignore_index", "must be a number", np.isfinite)
        usual = [*(name for name in LABELS if name in columns), *called(columns, OTHER_LABELS)]
        label = "correct" if keys["correct"] else keys["label"] or next(iter(usual), None)
        if label is None or columns[label].shape != (rows,):
            got = "no labels" if label is None else "maps"
            hint = "leave it out; calibrant measure takes it"
            raise CalibrationInputError("ignore_index", "needs one label a row", got=got, hint=hint)
        reasons[ignored(ignore_index)] = ~gaps & (columns[label] == ignore_index)
    return {reason: mask for reason, mask in reasons.items() if mask.any()}
