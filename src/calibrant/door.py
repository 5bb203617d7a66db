"""The door's checks: truth, forecasts, columns and weights brought to one row per sample, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.arrays import Array, as_array, as_numbers
from calibrant.exceptions import CalibrationInputError
from calibrant.labels import class_labels, event_labels
from calibrant.totals import Floats, Ints

MOST_WEIGHT = float(2**36)
"""Weights beyond this sum would leave the range of exact totals."""


class Door:
    """Shapes: brings truth, forecasts, columns and weights to one row per sample."""

    def __init__(
        self,
        truth: Array,
        values: Array,
        class_axis: int | None,
        columns: dict[str, Any],
        weight: Any,
        parameter: str = "y_proba",
    ) -> None:
        self.parameter = parameter
        if values.ndim > 2 and class_axis is None:
            raise CalibrationInputError(
                parameter, "must be (n,) or (n, K)", got=f"shape {values.shape}", hint="pass class_axis=... for maps"
            )
        if class_axis is not None and values.ndim > 1:
            if not -values.ndim <= class_axis < values.ndim:
                raise CalibrationInputError("class_axis", f"must lie in 0..{values.ndim - 1}", got=class_axis)
            if truth.shape == values.shape:
                truth = np.moveaxis(truth, class_axis, -1).reshape(-1, values.shape[class_axis])
            values = np.moveaxis(values, class_axis, -1)
        self.samples = values.shape[: max(1, values.ndim - 1)]
        self.values = np.ascontiguousarray(values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values)
        if self.values.ndim == 2 and self.values.shape[1] == 1:
            raise CalibrationInputError(
                parameter, "needs at least two columns", got="one", hint="pass a 1-D array for one event"
            )
        self.n = len(self.values)
        if truth.ndim > 1 and truth.shape == self.samples:
            truth = truth.reshape(-1)
        elif truth.ndim == 2 and truth.shape[1] == 1:
            truth = truth[:, 0]
        if len(truth) != self.n or truth.ndim > 2 or (truth.ndim == 2 and self.values.ndim == 1):
            raise CalibrationInputError(
                "y_true", f"must match {parameter} of shape {values.shape}", got=f"shape {truth.shape}"
            )
        self.truth = truth
        self.columns = {name: self._column(name, data) for name, data in columns.items()}
        self.weight = None if weight is None else self._weight(weight)

    def truth_of(
        self, width: int, classes: Sequence[Any] | None, ignore_index: int | None
    ) -> tuple[Ints | None, Floats | None, tuple[str, ...], Array | None]:
        """Hard labels or soft ones, the class names, and which rows stay."""
        truth, kept = self._ignored(ignore_index)
        names = _class_names(classes, width)
        if width:
            labels, soft = class_labels(truth, width, names, "y_true")
        else:
            labels, soft = event_labels(truth, names or (), "y_true")
        if kept is not None and not kept.any():
            raise CalibrationInputError("y_true", "has no row left", got=f"only ignore_index={ignore_index}")
        return labels, soft, names or tuple(str(index) for index in range(width)), kept

    def _ignored(self, ignore_index: int | None) -> tuple[Array, Array | None]:
        """The truth with ignored labels made harmless, and which rows stay."""
        if ignore_index is None or self.truth.ndim != 1 or self.truth.dtype.kind not in "fiub":
            return self.truth, None
        kept = self.truth != ignore_index
        return np.where(kept, self.truth, 0), kept

    def _column(self, name: str, data: Any) -> Array:
        column, _ = as_array(data, name)
        if column.shape != self.samples and column.shape == self.samples[:1]:  # one value per picture
            column = np.broadcast_to(column.reshape(-1, *(1,) * (len(self.samples) - 1)), self.samples)
        if column.size != self.n:
            raise CalibrationInputError(
                name,
                f"must have one value per sample ({self.n})",
                got=f"shape {column.shape}",
                hint="other keywords than the documented ones are sample columns",
            )
        return column.reshape(-1)

    def _weight(self, data: Any) -> Floats:
        weight = self._column("sample_weight", as_numbers(data, "sample_weight")[0]).astype(np.float64)
        wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        if wrong.size:
            raise CalibrationInputError(
                "sample_weight", "must be finite and not negative", got=f"{weight[wrong[0]]:g}", where=f"row {wrong[0]}"
            )
        if not 0 < weight.sum() < MOST_WEIGHT:
            raise CalibrationInputError(
                "sample_weight",
                "must sum to more than 0 and less than 2^36",
                got=f"{weight.sum():g}",
                hint="divide the weights by their mean",
            )
        return weight


def _class_names(classes: Sequence[Any] | None, width: int) -> tuple[str, ...] | None:
    if classes is None:
        return None
    if isinstance(classes, str):
        raise CalibrationInputError("classes", "must be a sequence of names", got=repr(classes))
    names = tuple(str(name) for name in classes)
    if len(names) != (width or 2):
        raise CalibrationInputError("classes", f"must be {width or 2} names", got=f"{len(names)} of them")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CalibrationInputError("classes", "must differ from each other", got=f"{twice!r} twice")
    return names


def refuse_swapped(truth: Array, values: Array) -> None:
    """Truth comes first: a matrix of fractions is no truth, and 0s and 1s are no forecasts of fractions."""
    matrix_first = truth.ndim > values.ndim and truth.dtype.kind == "f"
    fractions_first = (
        truth.ndim == values.ndim == 1
        and truth.dtype.kind == "f"
        and values.size > 0
        and bool(np.all((values == 0) | (values == 1)))
        and bool(np.any((truth > 0) & (truth < 1)))
    )
    if matrix_first or fractions_first:
        raise CalibrationInputError(
            "y_true",
            "must be the labels",
            got="what look like probabilities",
            hint="the arguments seem swapped: the truth comes first",
        )


def normalised(values: Array) -> Array:
    """Rows divided by their sums."""
    if values.ndim != 2:
        raise CalibrationInputError("normalize", "needs rows of classes", got="forecasts of one event")
    totals = values.sum(axis=1, dtype=np.float64)
    wrong = np.flatnonzero(~((totals > 0) & np.isfinite(totals)) | (values.min(axis=1) < 0))
    if wrong.size:
        raise CalibrationInputError(
            "y_proba",
            "rows to be normalised must be positive and finite",
            got=f"the sum {totals[wrong[0]]:g}",
            where=f"row {wrong[0]}",
        )
    return (values / totals[:, None]).astype(values.dtype)
