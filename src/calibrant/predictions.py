"""Predictions: the only door. What has passed it is checked, and everything behind it trusts it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant import kernels
from calibrant.checks import class_name, is_whole
from calibrant.door import leaks
from calibrant.door.arrays import Array
from calibrant.door.samples import Door, Truth
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.kernels.precision import DOUBLE, Precision
from calibrant.kernels.sharing import read_only, unshared
from calibrant.kernels.totals import Floats, Ints


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Forecasts and what came true, checked once.

    Made by `from_probs`, `from_logits` and `from_confidence`. A 1-D forecast is about one
    event; an (n, K) forecast is about K classes. Logits are held as logits. The arrays it holds are
    read-only.

    >>> import calibrant as cal
    >>> cal.Predictions.from_probs([0, 2], [[.7, .2, .1], [.1, .3, .6]], classes=["cat", "dog", "owl"])
    Predictions(n=2, 3 classes, probabilities)
    """

    values: Array
    """Probabilities or logits: (n,) for an event, (n, K) for classes."""
    labels: Ints | None
    """The true class (for an event: 1 if it happened), or None where labels are soft."""
    soft: Floats | None
    """Soft labels in the shape of the values, or None."""
    kind: str
    """"classes", "event", or "confidence" (the event that the top answer is right)."""
    classes: tuple[str, ...]
    columns: Mapping[str, Array] = field(default_factory=dict)
    weight: Floats | None = None
    precision: Precision = DOUBLE
    logits: bool = False
    flags: Mapping[str, Ints] = field(default_factory=dict)
    """What was done to the rows, in words, and of how many rows each row says it."""

    def __post_init__(self) -> None:
        for name in ("values", "labels", "soft", "weight"):
            object.__setattr__(self, name, _locked(getattr(self, name)))
        for name in ("columns", "flags"):
            locked = {key: _locked(array) for key, array in getattr(self, name).items()}
            object.__setattr__(self, name, MappingProxyType(locked))

    def __reduce__(self) -> tuple[Any, ...]:  # through the constructor: NumPy forgets that an array was read-only
        known = vars(self) | {"columns": dict(self.columns), "flags": dict(self.flags)}
        return type(self), tuple(known[each.name] for each in dataclasses.fields(self))

    @classmethod
    def from_probs(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        classes: Iterable[Any] | None = None,
        sample_weight: Any = None,
        ignore_index: float | None = None,
        class_axis: int | None = None,
        normalize: bool = False,
        missing: str = "error",
        copy: bool = True,
        **columns: Any,
    ) -> Predictions:
        """Probabilities: 1-D for one event, (n, K) for classes; other keywords are sample columns.

        `class_axis` says where the classes are when there are more than two axes (segmentation
        maps); maps of one event need none. `ignore_index` is a label whose rows are left out;
        `normalize` divides each row by its sum; `missing="drop"` leaves out rows where a label, a
        forecast or a weight is missing. Named columns of a frame are classes of these names.

        Arrays are copied, so that later changes of them change nothing here, and a buffer can be
        used again for the next batch. With `copy=False` no more is copied than a conversion needs:
        forecasts and columns then change with the arrays that were given. Memory maps (`np.memmap`)
        and Arrow buffers are never copied.

        >>> import calibrant as cal
        >>> cal.Predictions.from_probs([1, 0], [.9, .2], region=["north", "south"])
        Predictions(n=2, one event, probabilities)
        """
        door = Door(y_true, y_proba, ("y_true", "y_proba"), class_axis, missing, sample_weight)
        forecasts, truth = door.probabilities(normalize), door.labels(classes, ignore_index)
        return cls._through(door, forecasts, truth, columns, copy, y_proba, precision=Precision(door.bits))

    @classmethod
    def from_logits(
        cls,
        y_true: Any,
        logits: Any,
        *,
        classes: Iterable[Any] | None = None,
        sample_weight: Any = None,
        ignore_index: float | None = None,
        class_axis: int | None = None,
        normalize: bool = False,
        missing: str = "error",
        copy: bool = True,
        **columns: Any,
    ) -> Predictions:
        """Logits (or log-probabilities): 1-D through the sigmoid, (n, K) through the softmax.

        The other options are as in `from_probs`; `normalize` is refused, because there is nothing to normalise.

        >>> import calibrant as cal
        >>> p = cal.Predictions.from_logits([0, 1], [[2., 0.], [0., 1.]])
        >>> p.probabilities.round(3).tolist()
        [[0.881, 0.119], [0.269, 0.731]]
        """
        door = Door(y_true, logits, ("y_true", "logits"), class_axis, missing, sample_weight)
        forecasts, truth = door.logits(normalize), door.labels(classes, ignore_index)
        return cls._through(door, (forecasts, {}), truth, columns, copy, logits, logits=True)

    @classmethod
    def from_confidence(
        cls,
        correct: Any,
        confidence: Any,
        *,
        sample_weight: Any = None,
        ignore_index: float | None = None,
        missing: str = "error",
        copy: bool = True,
        **columns: Any,
    ) -> Predictions:
        """Only the top answer was kept: was it right, and how sure was the model of it?

        Arrays are copied, or not, as in `from_probs`; so are the options.

        >>> import calibrant as cal
        >>> cal.Predictions.from_confidence([True, False], [.9, .6])
        Predictions(n=2, the top answer, probabilities)
        """
        door = Door(correct, confidence, ("correct", "confidence"), None, missing, sample_weight, event=True)
        forecasts, truth, precision = door.probabilities(), door.labels(None, ignore_index), Precision(door.bits)
        predictions = cls._through(door, forecasts, truth, columns, copy, None, precision=precision)
        return dataclasses.replace(predictions, kind="confidence")

    @classmethod
    def _through(
        cls, door: Door, forecasts: Any, truth: Truth, arrays: Mapping[str, Any], copy: Any, source: Any, **known: Any
    ) -> Predictions:
        if not isinstance(copy, (bool, np.bool_)):
            hint = "a sample column needs another name"
            raise CalibrationInputError("copy", "must be True or False", got=type(copy).__name__, hint=hint)
        values, flags = forecasts
        columns = {name: door.column(name, data) for name, data in arrays.items()}
        if copy and truth.kept is None:  # leaving rows out is a copy
            values, columns = unshared(values), {name: unshared(column) for name, column in columns.items()}
        predictions = cls(
            values=values,
            labels=truth.labels,
            soft=truth.soft,
            kind="classes" if door.width else "event",
            classes=truth.classes,
            columns=columns,
            weight=door.weight(truth.kept),
            flags={**flags, **leaks.flags(source, door.n)},
            **known,
        )
        leaks.follow(source, predictions.values)
        rows = predictions if truth.kept is None else predictions[truth.kept]
        return dataclasses.replace(rows, flags={**rows.flags, **truth.told})

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        what = {"event": "one event", "confidence": "the top answer"}.get(self.kind, f"{len(self.classes)} classes")
        return f"Predictions(n={len(self)}, {what}, {'logits' if self.logits else 'probabilities'})"

    def __getitem__(self, rows: Any) -> Predictions:
        """Some of the rows: a slice, a mask, indices or one index; may be none."""
        if is_whole(rows):
            rows = [rows]
        return dataclasses.replace(
            self,
            values=self.values[rows],
            labels=None if self.labels is None else self.labels[rows],
            soft=None if self.soft is None else self.soft[rows],
            columns={name: column[rows] for name, column in self.columns.items()},
            weight=None if self.weight is None else self.weight[rows],
            flags={words: counts[rows] for words, counts in self.flags.items()},
        )

    def blocks(self, elements: int) -> Iterator[Predictions]:
        """Consecutive parts of at most so many forecasts (views, not copies)."""
        step = max(1, elements // max(1, self.values.size // max(1, len(self))))
        for start in range(0, max(1, len(self)), step):
            yield self if step >= len(self) else self[start : start + step]

    @property
    def remarks(self) -> tuple[tuple[str, int], ...]:
        """What was done to how many rows, in words."""
        counts = {words: int(rows.sum()) for words, rows in self.flags.items()}
        return tuple(sorted((words, count) for words, count in counts.items() if count))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to how many rows, as sentences."""
        return sentences(self.remarks)

    @cached_property
    def soft_rows(self) -> int:
        """How many labels are soft."""
        if self.soft is None:
            return 0
        between = (self.soft > 0) & (self.soft < 1)
        return int((between.any(axis=1) if between.ndim == 2 else between).sum())

    @cached_property
    def fractional_rows(self) -> int:
        """How many weights are no whole numbers."""
        return 0 if self.weight is None else int((self.weight != np.floor(self.weight)).sum())

    @property
    def n_classes(self) -> int:
        """K, or 0 for an event."""
        return len(self.classes) if self.kind == "classes" else 0

    @property
    def probabilities(self) -> Array:
        """The forecasts as probabilities (float64 where they were logits)."""
        if not self.logits:
            return self.values
        if self.values.ndim == 1:
            return sigmoid(self.values)
        return kernels.softmax(self.values, *self.normalisers)

    @cached_property
    def normalisers(self) -> tuple[Floats, Floats]:
        """The largest logit of each row, and the sum of exp(z - largest) over the other classes."""
        return kernels.normalisers(self.values)

    def leaders(self, k: int) -> Ints:
        """The k likeliest classes of each row, likeliest first; ties go to the lowest class."""
        return self._top if k == 1 else kernels.leaders(self.values, k)

    def probability_of(self, classes: Ints) -> Array:
        """The probability of some classes of each row: (n, k) indices to (n, k) probabilities."""
        taken = np.take_along_axis(self.values, classes, axis=1)
        return kernels.softmax(taken, *self.normalisers) if self.logits else taken

    @property
    def predicted(self) -> Ints:
        """The likeliest class of each row."""
        self.require_classes("the predicted class")
        return self.leaders(1)[:, 0]

    @cached_property
    def confidence(self) -> Array:
        """The largest probability of each row (for an event, its probability)."""
        if self.kind != "classes":
            return read_only(self.probabilities)
        return read_only(self.probability_of(self.leaders(1))[:, 0])

    @property
    def truth_rows(self) -> Array:
        """The labels as an array like the probabilities: soft labels, or one-hot."""
        if self.soft is not None:
            return self.soft
        labels = self.hard_labels("one-hot rows")
        if self.kind != "classes":
            return labels.astype(np.float64)
        rows = np.zeros(self.values.shape)
        rows[np.arange(len(self)), labels] = 1.0
        return rows

    def class_index(self, name: int | str) -> int:
        """The index of a class given by index or name."""
        self.require_classes("a class")
        class_name(name, "class")
        if isinstance(name, str):
            if name not in self.classes:
                raise CalibrationInputError("class", "is unknown", got=repr(name), hint=nearest(name, self.classes))
            return self.classes.index(name)
        if not 0 <= name < self.n_classes:
            raise CalibrationInputError("class", f"must lie in 0..{self.n_classes - 1}", got=name)
        return int(name)

    def column(self, name: str) -> Array:
        """A sample column by name."""
        if not isinstance(name, str) or name not in self.columns:
            raise CalibrationInputError("column", "is unknown", got=repr(name), hint=nearest(str(name), self.columns))
        return self.columns[name]

    def require_classes(self, question: str) -> None:
        """Refuse a question about classes where the forecast is about one event."""
        if self.kind != "classes":
            raise CalibrationInputError(
                question,
                "is a question about classes",
                got="forecasts of one event" if self.kind == "event" else "confidences of top answers",
                hint="pass np.column_stack([1 - p, p]) to make it two classes" if self.kind == "event" else None,
            )

    def hard_labels(self, question: str) -> Ints:
        """The labels, refused where they are soft."""
        if self.labels is None:
            raise CalibrationInputError(question, "needs one true class per row", got="soft labels")
        return self.labels

    @cached_property
    def _top(self) -> Ints:
        return read_only(kernels.leaders(self.values, 1))


def require_predictions(predictions: object, parameter: str = "predictions", where: str | None = None) -> None:
    """Refuse bare arrays where checked predictions are needed."""
    if not isinstance(predictions, Predictions):
        hint = "make them with Predictions.from_probs(y, p) or from_logits"
        got = type(predictions).__name__
        raise CalibrationInputError(parameter, "must be Predictions", got=got, where=where, hint=hint)


def sentences(remarks: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """What was done to how many rows, as sentences.

    >>> sentences((("left out: label 9", 2),))
    ('2 rows were left out: label 9',)
    """
    return tuple(f"{count} row{' was' if count == 1 else 's were'} {words}" for words, count in remarks)


def _locked(array: Any) -> Any:
    return read_only(array) if array is not None and array.flags.writeable else array


def sigmoid(logits: Array) -> Floats:
    """1 / (1 + exp(-z)), without overflow at either end."""
    scores = np.exp(-np.abs(logits, dtype=np.float64))
    return np.where(logits >= 0, 1.0, scores) / (1.0 + scores)
