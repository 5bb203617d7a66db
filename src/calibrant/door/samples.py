"""The door's checks: truth, forecasts, columns and weights brought to one row per sample, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.checks import flag, number, whole, word
from calibrant.door.arrays import DROP, Array, Layout, absent, as_array, as_forecasts, as_labels, as_numbers, shown
from calibrant.door.foreign import beside_forecasts
from calibrant.door.frames import column_keys, numbered, refuse_other_rows, row_labels
from calibrant.door.labels import (
    ROW_TOLERANCE,
    check_logits,
    check_probabilities,
    class_labels,
    clipped,
    event_labels,
    lifted,
    refuse_swapped,
)
from calibrant.door.options import OPTIONS
from calibrant.door.remarks import CLIPPED, DIVIDED, GAPS, LEFT_OUT, ignored
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
    """Which rows stay; None where all do."""
    left_out: Mapping[str, Array] = field(default_factory=dict)
    """Which rows do not stay, by the reason in words."""

    @property
    def told(self) -> dict[str, Ints]:
        """Of how many rows that do not stay each row that stays tells: of those between the one before and itself."""
        if self.kept is None:
            return {}
        count = int(self.kept.sum())
        near = np.minimum(np.cumsum(self.kept), count - 1)
        return {LEFT_OUT + words: np.bincount(near[rows], minlength=count) for words, rows in self.left_out.items()}


class Door:
    """Truth and forecasts with one row per sample, under the names that their giver knows them by."""

    def __init__(
        self,
        truth: Any,
        forecasts: Any,
        names: tuple[str, str],
        class_axis: Any = None,
        missing: Any = "error",
        sample_weight: Any = None,
        *,
        event: bool = False,
        whole: bool = True,
        ids: Any = None,
    ) -> None:
        """`missing` is None where rows without a value cannot be left out."""
        if missing is not None:
            word(missing, "missing", "error", "drop")
        self.drop = None if missing is None else missing == "drop"
        self.truth_name, self.name = names
        self._indexed: tuple[str, Any] | None = None
        hint = "names are labels, and the truth comes first"
        take = as_forecasts if whole else as_numbers
        values, self.bits = take(self._aligned(forecasts, self.name), self.name, hint=hint, drop=self.drop)
        self._whole = whole
        self.ids = None if ids is None else as_array(self._aligned(ids, "ids"), "ids", drop=self.drop)[0]
        if values.size == 0:
            raise CalibrationInputError(self.name, "must not be empty", got=f"shape {values.shape}")
        if event and values.ndim != 1:
            raise CalibrationInputError(self.name, "must be 1-D", got=f"shape {values.shape}")
        labels = as_labels(self._aligned(truth, self.truth_name), self.truth_name, drop=self.drop)
        refuse_swapped(labels, values, self.truth_name)
        self.layout = Layout(values.shape, _checked_axis(class_axis, values, labels, self.name))
        self.values = self.layout.rows(values)
        self.n = len(self.values)
        self.width = self.values.shape[1] if self.values.ndim == 2 else 0
        if self.width == 1 and whole:
            raise CalibrationInputError(
                self.name, "needs at least two columns", got="one", hint="pass a 1-D array for one event"
            )
        self.truth = self._matched(beside_forecasts(self.values, labels))
        self._columns = self._column_keys(truth, forecasts)
        self._weight = None if sample_weight is None else self._weights(sample_weight)
        self._gaps = self._filled() if self.drop else None
        self.lifted: dict[str, Ints] = {}
        """Which rows of logits had -inf."""
        self.survey: tuple[Any, ...] = ()
        """What the checks learned of each row of classes, as `Classes` takes it."""

    def probabilities(self, normalize: bool = False) -> tuple[Array, dict[str, Ints]]:
        """The forecasts as probabilities, and what was done to which rows."""
        values, flags = self.values, {}
        flag(normalize, "normalize")
        if normalize:
            values = self._normalised()
            flags[DIVIDED] = np.ones(self.n, np.int64)
        checks: Any = {"bits": self.bits, "whole": self._whole, "advice": self._advice}
        outside, self.survey = check_probabilities(values, self.name, self.layout, **checks)
        if outside:
            self.survey = ()
            values, flags[CLIPPED] = clipped(values)
        return values, flags

    def logits(self, normalize: bool = False, *, softmax: bool = False) -> Array:
        """The forecasts as logits: finite numbers, or -inf; surveyed for their softmax, where it will be asked for."""
        flag(normalize, "normalize")
        if normalize:
            hint = "the softmax gives rows that sum to 1"
            raise CalibrationInputError("normalize", "needs probabilities", got="logits", hint=hint)
        checks = (self.name, self.layout, self._advice)
        try:
            self.survey = check_logits(self.values, *checks, softmax=softmax)
        except CalibrationInputError:
            self.values, self.lifted = lifted(self.values)
            self.survey = check_logits(self.values, *checks, softmax=softmax)
        return self.values

    def keys(self, classes: Any, width: int | None = None) -> tuple[Any, ...] | None:
        """What labels call the classes: as was said, or as the columns of a frame are called; None for indices."""
        keys = self._columns if classes is None else class_keys(classes, width or self.width or 2)
        if keys is not None and self._columns is not None:
            refuse_other_names("classes", keys, self.name, self._columns)
        return keys

    def labels(self, classes: Any, ignore_index: Any, width: int | None = None) -> Truth:
        """The truth as hard labels or soft ones, the class names, and which rows stay.

        `width` is the number of classes, where it is not the number of columns.
        """
        counted, keys, width = width is not None, self.keys(classes, width), width or self.width
        kept, left_out = self.staying(ignore_index)
        truth = self.truth if kept is None else self._harmless(~kept, keys)
        if width:
            labels, soft = class_labels(truth, width, keys, self.truth_name, self.layout, counted=counted)
        else:
            labels, soft = event_labels(truth, keys, self.truth_name, self.layout)
        return Truth(labels, soft, numbered(width) if keys is None else tuple(map(str, keys)), kept, left_out)

    def staying(self, ignore_index: Any = None) -> tuple[Array | None, dict[str, Array]]:
        """Which rows stay (None: all), and which do not, by the reason in words."""
        left_out = {} if self._gaps is None else {GAPS: self._gaps}
        if ignore_index is not None:
            number(ignore_index, "ignore_index", "must be a number", np.isfinite)
            if self.truth.ndim == 1 and self.truth.dtype.kind != "U":
                gone = self.truth == ignore_index
                left_out[ignored(ignore_index)] = gone if self._gaps is None else gone & ~self._gaps
        kept: Any = ~np.any([*left_out.values()], axis=0) if left_out else np.True_
        if not kept.any():
            reasons = " and ".join(words for words, rows in left_out.items() if rows.any())
            raise CalibrationInputError(self.truth_name, "has no row left", got=f"only {reasons}")
        return None if kept.all() else kept, left_out

    def column(self, name: str, data: Any) -> Array:
        """One value per sample; in maps, one value per picture will do."""
        if name in OPTIONS:
            raise CalibrationInputError(name, f"is no option of {self.name}", hint="a sample column needs another name")
        hint = "other keywords than the documented ones are sample columns"
        if np.isscalar(data):
            expected = f"must be an array with one value per sample ({self.n})"
            raise CalibrationInputError(name, expected, got=repr(data), hint=hint)
        return self._spread(as_array(self._aligned(data, name), name)[0], name, hint)

    def weight(self, kept: Array | None) -> Floats | None:
        """Weights that are finite and not negative; those of the rows that stay have a sum to divide by."""
        if self._weight is None:
            return None
        weight = self._weight if self._gaps is None else np.where(self._gaps, 0.0, self._weight)
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
        if self.width and truth.ndim == 2 and len(truth) == self.n and truth.size:
            return truth
        raise CalibrationInputError(
            self.truth_name, f"must match {self.name} of shape {self.layout.shape}", got=f"shape {truth.shape}"
        )

    @property
    def _advice(self) -> str:
        return "" if self.drop is None else DROP

    def _weights(self, data: Any) -> Floats:
        numbers, _ = as_numbers(self._aligned(data, "sample_weight"), "sample_weight", drop=self.drop)
        return self._spread(numbers, "sample_weight").astype(np.float64)

    def _filled(self) -> Array:
        """Which rows have missing values; their forecasts are made harmless."""
        gaps: Any = absent(self.values).reshape(self.n, -1).any(axis=1)
        if gaps.any():
            self.values = self.values.copy()
            self.values[gaps] = 1 / (self.width or 2)
        for array in (self.truth, *(() if self.ids is None or len(self.ids) != self.n else (self.ids,))):
            gaps |= absent(array).reshape(self.n, -1).any(axis=1)
        return gaps if self._weight is None else gaps | absent(self._weight)

    def _harmless(self, gone: Array, keys: tuple[Any, ...] | None) -> Array:
        """The truth with labels of rows that do not stay made harmless."""
        truth, harmless = self.truth, np.asarray(0 if keys is None or isinstance(keys[0], str) else keys[0])
        if truth.dtype.kind == "U":
            harmless = np.asarray(truth[~gone].flat[0] if keys is None else str(keys[0]))
        elif truth.ndim == 2:
            harmless = np.eye(truth.shape[1])[0]
        return np.where(gone.reshape(-1, *([1] * (truth.ndim - 1))), harmless, truth)

    def _aligned(self, data: Any, name: str) -> Any:
        """The data, refused where rows are labelled otherwise than those of what was read before."""
        index = row_labels(data)
        if index is not None and self._indexed is not None:
            refuse_other_rows(name, index, *self._indexed)
        elif index is not None:
            self._indexed = (name, index)
        return data

    def _column_keys(self, truth: Any, forecasts: Any) -> tuple[Any, ...] | None:
        """What the columns of forecasts are called, where they are classes; columns of soft labels must agree."""
        if self.layout.class_axis != 1 or len(self.layout.shape) != 2 or self.ids is not None:
            return None
        keys, of_truth = column_keys(forecasts, self.name), column_keys(truth, self.truth_name)
        if keys is not None and of_truth is not None and self.truth.ndim == 2:
            refuse_other_names(self.truth_name, of_truth, self.name, keys)
        return of_truth if keys is None and not self._whole else keys

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
        self.values = np.asarray(self.values)
        with np.errstate(over="ignore"):
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


def _checked_axis(class_axis: Any, values: Array, truth: Array, name: str) -> int | None:
    """The axis of the classes, counted from 0; None for forecasts of one event."""
    if class_axis is not None:
        if values.ndim == 1:
            raise CalibrationInputError("class_axis", "needs forecasts of classes", got="forecasts of one event")
        whole(class_axis, "class_axis", -values.ndim, values.ndim - 1)
        return int(class_axis) % values.ndim
    if values.ndim <= 2:
        return values.ndim - 1 or None
    if truth.shape != values.shape:
        hint = "pass class_axis=... for maps of classes; maps of one event need labels of the same shape"
        raise CalibrationInputError(name, "must be (n,) or (n, K)", got=f"shape {values.shape}", hint=hint)
    for axis in range(values.ndim):
        if _are_shares(truth, axis):
            got, hint = (
                f"labels that sum to 1 along axis {axis}",
                f"pass class_axis={axis}, or both flat if it is one event",
            )
            raise CalibrationInputError(name, "must be of one event where class_axis is not given", got=got, hint=hint)
    return None


def _are_shares(values: Array, axis: int) -> bool:
    """Whether numbers sum to 1 along an axis, everywhere."""
    if values.dtype.kind == "U" or values.shape[axis] == 1:
        return False
    return bool((np.abs(values.sum(axis=axis, dtype=np.float64) - 1) <= ROW_TOLERANCE).all())


def refuse_other_names(
    name: str, keys: tuple[Any, ...], other: str, columns: tuple[Any, ...], hint: str | None = None
) -> None:
    """Refuse class names that are not those of the columns, in their order."""
    names, others = ([*map(str, each)] for each in (keys, columns))
    if names != others:
        raise CalibrationInputError(
            name,
            f"must be the columns of {other}, in their order: {', '.join(others)}",
            got=", ".join(names),
            hint=hint or f"reorder the columns, or pass {other}.to_numpy() to go by position",
        )


def class_keys(classes: Any, count: int | None) -> tuple[Any, ...]:
    """What labels call the classes, so many or any number: numbers where all are given as numbers, else their names."""
    if isinstance(classes, (str, bytes, set, frozenset, Mapping)) or not np.iterable(classes):
        raise CalibrationInputError("classes", "must be a sequence of names", got=repr(classes))
    keys, _ = as_array(classes if hasattr(classes, "__array__") else list(classes), "classes")
    if keys.ndim != 1 or count not in (None, len(keys)):
        got = f"{len(keys)} of them" if keys.ndim == 1 else f"shape {keys.shape}"
        raise CalibrationInputError("classes", "must be names" if count is None else f"must be {count} names", got=got)
    names = tuple(map(str, keys.tolist()))
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CalibrationInputError("classes", "must differ from each other", got=f"{twice!r} twice")
    return tuple(keys.tolist()) if keys.dtype.kind in "fiub" else names
