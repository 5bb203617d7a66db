"""Lessons: scores with their true classes and weights, through the same checks as all predictions."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import kernels
from calibrant.checks import is_whole
from calibrant.door.arrays import TIES, Array, Layout, absent, as_array
from calibrant.door.kinds import COLUMNS
from calibrant.door.labels import ROW_TOLERANCE
from calibrant.door.logs import sigmoid
from calibrant.door.samples import Door, Truth, class_keys
from calibrant.exceptions import CalibrationInputError, CalibrationWarning
from calibrant.kernels.caching import cached_property
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions

HUGE = 1e100
"""Larger logits are refused where they are multiplied: their squares would overflow."""
LARGEST = float(np.finfo(np.float64).max)
"""Log-odds beyond this are as sure."""
FLOOR = 1e-12
"""Probabilities below this are raised to it before a logarithm is taken."""


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Checked scores: (n,) of one event, (n, K) of classes or (n, L) of labels, said to be logits or probabilities.

    >>> ModelScores(np.array([0.8, 0.5]), "probabilities").logits.round(3).tolist()
    [[-1.609, -0.223], [-0.693, -0.693]]
    """

    values: Array
    input: str
    independent: bool = False
    """Whether columns are labels of which any may be true, not classes of which one is."""

    @classmethod
    def of(cls, predictions: Predictions, input: str | None = None) -> ModelScores:
        """The forecasts of predictions, if all are there and of the kind of `input`."""
        forecasts, held = predictions.forecasts, "logits" if predictions.logits else "probabilities"
        if forecasts.n_classes:
            forecasts.require(COLUMNS, "recalibration")
        if input not in (None, held):
            expected, hint = f"must hold {input}, the input of the recalibrator", f'fit it with input="{held}"'
            raise CalibrationInputError("predictions", expected, got=held, hint=hint)
        return cls(forecasts.values, held, forecasts.of_events and forecasts.n_classes > 0)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def event(self) -> bool:
        """Whether these are about one event."""
        return self.values.ndim == 1

    @property
    def logits(self) -> Array:
        """(n, K) logits: as given, logarithms of probabilities, or for an event two columns (not, so)."""
        if self.input == "logits":
            _refuse_huge(self.values)
            return np.column_stack([np.zeros_like(self.values), self.values]) if self.event else self.values
        p = self.values.astype(np.float64)
        return np.log(np.maximum(np.column_stack([1.0 - p, p]) if self.event else p, FLOOR))

    @cached_property
    def probabilities(self) -> Floats:
        """Probabilities in the shape of the values, in float64."""
        if self.input == "probabilities":
            return self.values.astype(np.float64)
        return sigmoid(self.values) if self.event or self.independent else softmax(self.values)

    @cached_property
    def log_odds(self) -> Floats:
        r"""Log-odds of each event, :math:`\ln p_k - \ln(1 - p_k)`, in the shape of the values.

        From logits without forming 1 - p, so that nothing is lost near 1.
        """
        if self.input == "probabilities":
            p = self.probabilities
            return np.log(np.maximum(p, FLOOR)) - np.log(np.maximum(1.0 - p, FLOOR))
        return self.values.astype(np.float64) if self.event else _log_odds(self.values)

    @property
    def log_probabilities(self) -> Floats:
        """Logarithms of probabilities, (n, K), of an event two columns (not, so): of logits without rounding those.

        Of labels ln p of each, (n, L).

        >>> ModelScores(np.array([0.0, 800.0]), "logits").log_probabilities.round(3).tolist()
        [[-0.693, -0.693], [-800.0, 0.0]]
        """
        if self.input == "logits" and self.independent:
            return logarithms(self.values.astype(np.float64))[0]
        if self.input == "logits":
            return np.array([-1, 1]) * logarithms(self.log_odds)[::-1].T if self.event else log_softmax(self.values)
        p = self.probabilities
        with np.errstate(divide="ignore"):  # where 0 was said, a logarithm is infinite
            return np.log(np.column_stack([1.0 - p, p]) if self.event else p)

    def log_losses(self, labels: Ints) -> Floats:
        """Minus the logarithm of what each row gives to its true class; infinite where that is 0.

        >>> ModelScores(np.array([[0.0, 800.0]]), "logits").log_losses(np.array([0])).tolist()
        [800.0]
        """
        return 0.0 - self.log_probabilities[np.arange(len(labels)), labels]

    def restored(self, logits: Array) -> Array:
        """Logits (n, K) in the shape of the values: of an event, the second column less the first."""
        return logits[:, 1] - logits[:, 0] if self.event else logits

    def predictions(self, labels: Ints) -> Predictions:
        """These as forecasts that can be measured; logits stay logits, so that log losses are exact."""
        if self.independent:
            return Predictions.from_multilabel(labels, self.values, logits=self.input == "logits")
        return (Predictions.from_logits if self.input == "logits" else Predictions.from_probs)(labels, self.values)

    def instead(self, predictions: Predictions) -> Predictions:
        """The samples of predictions with these forecasts instead of theirs."""
        mapped = self.predictions(np.zeros(self.values.shape if self.independent else len(self), np.int64))
        return dataclasses.replace(
            predictions,
            forecasts=dataclasses.replace(predictions.forecasts, values=mapped.values, logits=mapped.logits),
            precision=mapped.precision,
            flags={**predictions.flags, **mapped.flags},
        )

    def __getitem__(self, rows: Any) -> ModelScores:
        return dataclasses.replace(self, values=self.values[rows])

    @property
    def digest(self) -> str:
        """What recognises the same scores again: a hash of their shape and of at most 131,072 entries."""
        flat = self.values.reshape(-1)
        step, width = max(1, flat.size >> 16), 1 if self.event else self.values.shape[1]
        while math.gcd(step, width) > 1:  # every column is to be met
            step += 1
        taken = flat[::step].astype(np.float64)
        return hashlib.sha256(repr(self.values.shape).encode() + taken.tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class Lesson:
    """Scores with their true classes and weights: what a recalibrator learns from."""

    scores: ModelScores
    labels: Ints
    weight: Floats
    classes: tuple[Any, ...]
    truth: Truth | None = None
    """What the labels were like, where rows of them were left out."""

    @classmethod
    def of(cls, predictions: Predictions, *, input: str, classes: Sequence[Any] | None = None) -> Lesson:
        """What predictions hold, with the names that `classes` gives to theirs."""
        scores = ModelScores.of(predictions, input)
        weight = np.ones(len(predictions)) if predictions.weight is None else predictions.weight
        if predictions.labels is None:
            raise CalibrationInputError("predictions", "need one true class per row", got="soft labels", hint=TIES)
        if not weight.sum() > 0:
            raise CalibrationInputError("predictions", "must have rows to learn from", got=f"{len(predictions)} rows")
        return cls(scores, predictions.labels, weight, _names_of(predictions, classes))

    @property
    def width(self) -> int:
        """The number of classes; an event has two."""
        return len(self.classes)

    def mean(self, values: Array) -> float:
        """The weighted mean of one value per row."""
        return float(values.astype(np.float64) @ self.weight / self.weight.sum())

    def mean_loss(self, losses: Floats) -> float:
        """The weighted mean of losses that may be infinite, or too large to be added; rows of weight 0 do not count."""
        counted = self.weight > 0
        with np.errstate(over="ignore"):
            return float((losses[counted] * (self.weight[counted] / self.weight.sum())).sum())

    def __getitem__(self, rows: Any) -> Lesson:
        return Lesson(self.scores[rows], self.labels[rows], self.weight[rows], self.classes)


def as_lesson(
    x: Any,
    y: Any,
    *,
    input: str,
    classes: Any = None,
    sample_weight: Any = None,
    ignore_index: float | None = None,
    class_axis: int | None = None,
    normalize: bool = False,
    missing: str = "error",
) -> Lesson:
    """Scores and labels as given, checked, with options as in `Predictions.from_probs`; or those of predictions.

    Labels are class indices, or names: those in `classes`, else, where each class occurs, in sorted order.

    >>> as_lesson([[2., 0.], [0., 1.]], ["cat", "dog"], input="logits").classes
    ('cat', 'dog')
    """
    if isinstance(x, Predictions):
        for name in ["y"] * (y is not None) + ["sample_weight"] * (sample_weight is not None):
            raise CalibrationInputError(name, "must be left out", got=f"Predictions and {name}")
        return Lesson.of(x, input=input, classes=classes)
    if y is None:
        raise CalibrationInputError("y", "is required", got="None", hint="call fit(X, y) or fit(predictions)")
    door = Door(y, x, ("y", "X"), class_axis, missing, sample_weight)
    _refuse_label_rows(door.truth)
    values = door.logits(normalize) if input == "logits" else door.probabilities(normalize)[0]
    keys = door.keys(classes)
    if keys is None and door.truth.dtype.kind == "U":
        keys = tuple(_named(door.truth[~absent(door.truth)], door.width or 2))
    if input == "logits" and _look_like_probabilities(values):
        doubt = 'X looks like probabilities but is taken as logits; pass input="probabilities" if that is what they are'
        warnings.warn(doubt, CalibrationWarning, stacklevel=3)
    truth = door.labels(keys, ignore_index)
    if truth.labels is None:
        raise CalibrationInputError("y", "needs one true class per row", got="soft labels")
    weight = door.weight(truth.kept)
    names = tuple(range(door.width or 2)) if keys is None else keys
    lesson = Lesson(ModelScores(values, input), truth.labels, np.ones(door.n) if weight is None else weight, names)
    return lesson if truth.kept is None else dataclasses.replace(lesson[truth.kept], truth=truth)


def as_scores(
    x: Any,
    *,
    input: str,
    width: int,
    independent: bool = False,
    classes: Sequence[Any] | None = None,
    class_axis: int | None = None,
    normalize: bool = False,
) -> tuple[ModelScores, Layout]:
    """Scores without labels, checked, for as many columns as were fitted (0: one event), and how they lay.

    Columns of a frame must be called as the classes are, unless those are the indices 0, 1, ...
    """
    values, _ = as_array(x, "X")
    axis = class_axis % values.ndim if is_whole(class_axis) else 1 if values.ndim == 2 else None
    unknown = np.zeros(Layout(values.shape, axis).samples, np.int64)
    door = Door(unknown, x if hasattr(x, "columns") else values, ("y", "X"), class_axis, None, whole=not independent)
    if door.width != width:
        expected = "1-D scores of one event" if width == 0 else f"{width} columns"
        raise CalibrationInputError("X", f"must be {expected}, as fitted", got=f"shape {values.shape}")
    door.keys(None if classes is None or list(classes) == list(range(width)) else classes)
    scores = door.logits(normalize) if input == "logits" else door.probabilities(normalize)[0]
    return ModelScores(scores, input, independent), door.layout


def log_softmax(logits: Array) -> Floats:
    """Logarithms of softmax probabilities in float64.

    >>> log_softmax(np.array([[0.0, 0.0]])).round(6).tolist()
    [[-0.693147, -0.693147]]
    """
    logs = logits.astype(np.float64)
    with np.errstate(over="ignore"):  # logits of +-1e308 differ by infinity
        logs -= logs.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return logs


def logarithms(log_odds: Floats) -> Floats:
    """ln p and -ln(1 - p), one a row, from the log-odds of p.

    >>> logarithms(np.array([0., 800.])).round(4).tolist()
    [[-0.6931, 0.0], [0.6931, 800.0]]
    """
    small = np.log1p(np.exp(-np.abs(log_odds)))
    return np.stack([np.minimum(log_odds, 0.0) - small, np.maximum(log_odds, 0.0) + small])


def softmax(logits: Array) -> Floats:
    """Softmax of each row in float64.

    >>> softmax(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """
    return kernels.softmax(logits, *kernels.normalisers(logits))


def _look_like_probabilities(values: Array) -> bool:
    """Whether there are more than a few rows of classes, all at least 0 and of sum 1: logits hardly ever are."""
    return values.ndim == 2 and len(values) >= 20 and all(map(_are_shares, (values[:100], values)))  # most end at 100


def _are_shares(rows: Array) -> bool:
    return bool(rows.min() >= 0 and (np.abs(rows.sum(axis=1, dtype=np.float64) - 1.0) <= ROW_TOLERANCE).all())


def _refuse_huge(values: Array) -> None:
    """Refuse logits whose squares would overflow; no float32 is so large."""
    if values.dtype.itemsize == 8 and (largest := max(-float(values.min()), float(values.max()))) > HUGE:
        raise CalibrationInputError("X", f"must hold logits below {HUGE:g} in size", got=f"{largest:g}")


def _log_odds(logits: Array) -> Floats:
    shifted = logits.astype(np.float64)
    rows, top = np.arange(len(shifted)), shifted.argmax(axis=1)
    shifted -= shifted[rows, top][:, None]
    odds = np.exp(shifted)
    odds[rows, top] = 0.0
    rest = odds.sum(axis=1)
    others = np.maximum(1.0 + rest[:, None] - odds, 1.0)
    others[rows, top] = rest
    return shifted - np.log(np.maximum(others, np.finfo(np.float64).tiny))


def _refuse_label_rows(truth: Array) -> None:
    """Refuse rows of 0 and 1 that are not all one-hot: what is true of them is no class."""
    if truth.ndim == 2 and truth.dtype.kind != "U" and ((truth == 0) | (truth == 1)).all():
        several = np.flatnonzero(truth.sum(axis=1) != 1)
        if several.size:
            got, hint = f"{truth[several[0]].sum():g}", "fit(Predictions.from_multilabel(y, X)) fits independent labels"
            raise CalibrationInputError("y", "rows must sum to 1", got=got, where=f"row {several[0]}", hint=hint)


def _names_of(predictions: Predictions, classes: Sequence[Any] | None) -> tuple[Any, ...]:
    """What classes are called: as `classes` says, else as predictions do; indices where they have no names."""
    count = predictions.n_classes or 2
    known, counted = predictions.classes, tuple(map(str, range(count)))
    if classes is None:
        return tuple(range(count)) if known in ((), counted) else known
    keys = class_keys(classes, count)
    if known not in ((), counted, tuple(map(str, keys))):
        raise CalibrationInputError("predictions", "must name the classes as the method does", got=", ".join(known[:5]))
    return keys


def _named(truth: Array, width: int) -> list[str]:
    names = sorted(set(truth.tolist()))
    if len(names) != width:
        got, hint = f"{len(names)} names", "pass classes=[...] in column order"
        raise CalibrationInputError("y", f"must name all {width} classes", got=got, hint=hint)
    return names
