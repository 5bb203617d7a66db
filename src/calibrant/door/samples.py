"""The door's checks: truth, forecasts, columns and weights brought to one row per sample, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.checks import is_number, number, whole
from calibrant.door.arrays import Array, Layout, as_array, as_numbers, shown
from calibrant.door.labels import check_probabilities, class_labels, event_labels, refuse_broken
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints

LEAST_WEIGHT = 1e-6
"""Weights of a smaller sum would be lost in the grain of exact totals."""
MOST_WEIGHT = float(2**36)
"""Weights of a larger sum would leave their range."""


@dataclass(frozen=True)
class Truth:
    """The labels as the door leaves them."""

    labels: Ints | None
    soft: Floats | None
    classes: tuple[str, ...]
    kept: Array | None
    """Which rows stay where a label is ignored."""


class Door:
    """Truth and forecasts with one row per sample, under the names that their giver knows them by."""

    def __init__(
        self,
        truth: Any,
        forecasts: Any,
        names: tuple[str, str],
        *,
        class_axis: Any = None,
        event: bool = False,
        whole: bool = True,
    ) -> None:
        self.truth_name, self.name = names
        self.whole = whole
        values, self.bits = as_numbers(forecasts, self.name, hint="names are labels, and the truth comes first")
        if values.size == 0:
            raise CalibrationInputError(self.name, "must not be empty", got=f"shape {values.shape}")
        if event and values.ndim != 1:
            raise CalibrationInputError(self.name, "must be 1-D", got=f"shape {values.shape}")
        truth, _ = as_array(truth, self.truth_name)
        _refuse_swapped(truth, values, self.truth_name)
        self.layout = Layout(values.shape, _checked_axis(class_axis, values, self.name))
        self.values = self.layout.rows(values)
        self.n = len(self.values)
        self.width = self.values.shape[1] if self.values.ndim == 2 else 0
        if self.width == 1 and whole:
            raise CalibrationInputError(
                self.name, "needs at least two columns", got="one", hint="pass a 1-D array for one event"
            )
        self.truth = self._matched(truth)

    def probabilities(self, normalize: bool = False) -> tuple[Array, dict[str, Ints]]:
        """The forecasts as probabilities, and what was done to which rows."""
        values, flags = self.values, {}
        if normalize:
            values = self._normalised()
            flags["divided by their sums"] = np.ones(self.n, np.int64)
        if check_probabilities(values, self.name, self.layout, bits=self.bits, whole=self.whole):
            rows = values.reshape(self.n, -1)
            flags["clipped: probabilities within 1e-6 of [0, 1]"] = ((rows < 0) | (rows > 1)).any(axis=1).astype(int)
            values = np.clip(values, 0.0, 1.0)
        return values, flags

    def logits(self) -> Array:
        """The forecasts as logits: any finite numbers."""
        if not (np.isfinite(self.values.min()) and np.isfinite(self.values.max())):
            refuse_broken(self.values, self.name, self.layout)
        return self.values

    def labels(self, classes: Any, ignore_index: Any) -> Truth:
        """The truth as hard labels or soft ones, the class names, and which rows stay."""
        keys = None if classes is None else class_keys(classes, self.width or 2)
        truth, kept = self._ignored(ignore_index, keys)
        if self.width:
            labels, soft = class_labels(truth, self.width, keys, self.truth_name, self.layout)
        else:
            labels, soft = event_labels(truth, keys, self.truth_name, self.layout)
        if kept is not None and not kept.any():
            raise CalibrationInputError(self.truth_name, "has no row left", got=f"only ignore_index={ignore_index}")
        return Truth(labels, soft, tuple(map(str, range(self.width) if keys is None else keys)), kept)

    def column(self, name: str, data: Any) -> Array:
        """One value per sample; in maps, one value per picture will do."""
        hint = "other keywords than the documented ones are sample columns"
        if np.isscalar(data):
            expected = f"must be an array with one value per sample ({self.n})"
            raise CalibrationInputError(name, expected, got=repr(data), hint=hint)
        return self._spread(as_array(data, name)[0], name, hint)

    def weight(self, data: Any, kept: Array | None) -> Floats:
        """Weights that are finite and not negative; those of the rows that stay have a sum to divide by."""
        weight = self._spread(as_numbers(data, "sample_weight")[0], "sample_weight").astype(np.float64)
        wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        if wrong.size:
            raise CalibrationInputError(
                "sample_weight",
                "must be finite and not negative",
                got=shown(weight[wrong[0]]),
                where=self.layout.place(wrong[0]),
            )
        with np.errstate(over="ignore"):
            total = (weight if kept is None else weight[kept]).sum()
        if not LEAST_WEIGHT < total < MOST_WEIGHT:
            raise CalibrationInputError(
                "sample_weight",
                f"must sum to more than {LEAST_WEIGHT:f} and less than 2^36",
                got=f"{total:g}",
                hint="divide the weights by their mean" if total > 0 else None,
            )
        return weight

    def _matched(self, truth: Array) -> Array:
        """The truth with one row per sample: a label each, or a row of soft labels."""
        if truth.shape in (self.layout.samples, (self.n,), (self.n, 1)):
            return truth.reshape(-1)
        if self.width and truth.shape == self.layout.shape:
            return self.layout.rows(truth)
        if self.width and truth.ndim == 2 and len(truth) == self.n:
            return truth
        raise CalibrationInputError(
            self.truth_name, f"must match {self.name} of shape {self.layout.shape}", got=f"shape {truth.shape}"
        )

    def _ignored(self, ignore_index: Any, keys: tuple[Any, ...] | None) -> tuple[Array, Array | None]:
        """The truth with ignored labels made harmless, and which rows stay."""
        if ignore_index is None:
            return self.truth, None
        number(ignore_index, "ignore_index", "must be a number", np.isfinite)
        if self.truth.ndim != 1 or self.truth.dtype.kind == "U":
            return self.truth, None
        kept = self.truth != ignore_index
        harmless = keys[0] if keys is not None and is_number(keys[0]) else 0
        return np.where(kept, self.truth, harmless), kept

    def _spread(self, column: Array, name: str, hint: str | None = None) -> Array:
        samples = self.layout.samples
        if column.shape in (samples, (self.n,), (self.n, 1)):
            return column.reshape(-1)
        if column.shape == samples[:1]:
            return np.repeat(column, self.n // len(column))
        raise CalibrationInputError(
            name, f"must have one value per sample ({self.n})", got=f"shape {column.shape}", hint=hint
        )

    def _normalised(self) -> Array:
        if not self.width:
            raise CalibrationInputError("normalize", "needs rows of classes", got="forecasts of one event")
        totals = self.values.sum(axis=1, dtype=np.float64)
        wrong = np.flatnonzero(~((totals > 0) & np.isfinite(totals)) | (self.values.min(axis=1) < 0))
        if wrong.size:
            raise CalibrationInputError(
                self.name,
                "rows to be normalised must be positive and finite",
                got=f"the sum {totals[wrong[0]]:g}",
                where=self.layout.place(wrong[0]),
            )
        return (self.values / totals[:, None]).astype(self.values.dtype)


def _checked_axis(class_axis: Any, values: Array, name: str) -> int | None:
    """The axis of the classes, counted from 0; None for forecasts of one event."""
    if class_axis is not None:
        if values.ndim == 1:
            raise CalibrationInputError("class_axis", "needs forecasts of classes", got="forecasts of one event")
        whole(class_axis, "class_axis", -values.ndim, values.ndim - 1)
        return int(class_axis) % values.ndim
    if values.ndim > 2:
        raise CalibrationInputError(
            name, "must be (n,) or (n, K)", got=f"shape {values.shape}", hint="pass class_axis=... for maps"
        )
    return values.ndim - 1 or None


def class_keys(classes: Any, count: int) -> tuple[Any, ...]:
    """What labels call the classes: numbers where all classes are given as numbers, else their names."""
    if isinstance(classes, (str, bytes, set, frozenset, Mapping)) or not np.iterable(classes):
        raise CalibrationInputError("classes", "must be a sequence of names", got=repr(classes))
    keys, _ = as_array(classes if hasattr(classes, "__array__") else list(classes), "classes")
    if keys.shape != (count,):
        got = f"{len(keys)} of them" if keys.ndim == 1 else f"shape {keys.shape}"
        raise CalibrationInputError("classes", f"must be {count} names", got=got)
    names = tuple(map(str, keys.tolist()))
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CalibrationInputError("classes", "must differ from each other", got=f"{twice!r} twice")
    return tuple(keys.tolist()) if keys.dtype.kind in "fiub" else names


def _refuse_swapped(truth: Array, values: Array, parameter: str) -> None:
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
