"""Checked samples: what was forecast and what came true, one row a sample, and all that can be asked of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from calibrant.checks import class_name, is_whole
from calibrant.door.arrays import Array
from calibrant.door.kinds import CLASSES, Kind
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.kernels.caching import cached_property
from calibrant.kernels.precision import DOUBLE, Precision
from calibrant.kernels.sharing import read_only
from calibrant.kernels.totals import Floats, Ints


@dataclass(frozen=True, eq=False, repr=False)
class Checked:
    """Forecasts, truth, sample columns and weights that have passed the door."""

    forecasts: Kind
    """What was forecast, and all that can be asked of it."""
    labels: Ints | None
    """The true class (for an event: 1 if it happened; for independent labels: 0 or 1 each), or None where soft."""
    soft: Floats | None
    """Soft labels in the shape of the forecasts, or None."""
    classes: tuple[str, ...]
    columns: Mapping[str, Array] = field(default_factory=dict)
    weight: Floats | None = None
    precision: Precision = DOUBLE
    flags: Mapping[str, Ints] = field(default_factory=dict)
    """What was done to the rows, in words, and of how many rows each row says it."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """The columns of a file that "labels" and "forecasts" were read from, and "groups" where a log has rows that belong
    together; empty where they were given as arrays."""

    def __post_init__(self) -> None:
        for name in ("labels", "soft", "weight"):
            object.__setattr__(self, name, _locked(getattr(self, name)))
        for name in ("columns", "flags"):
            locked = {key: _locked(array) for key, array in getattr(self, name).items()}
            object.__setattr__(self, name, MappingProxyType(locked))

    def __reduce__(self) -> tuple[Any, ...]:  # through the constructor: NumPy forgets that an array was read-only
        known = vars(self) | {"columns": dict(self.columns), "flags": dict(self.flags)}
        return type(self), tuple(known[each.name] for each in dataclasses.fields(self))

    def __len__(self) -> int:
        return len(self.forecasts)

    def __repr__(self) -> str:
        values = "logits" if self.logits else "probabilities"
        return f"{type(self).__name__}(n={len(self)}, {self.forecasts.words}, {values})"

    def __getitem__(self, rows: Any) -> Self:
        """Some of the rows: a slice, a mask, indices or one index; may be none."""
        if is_whole(rows):
            rows = [rows]
        return dataclasses.replace(
            self,
            forecasts=self.forecasts[rows],
            labels=None if self.labels is None else self.labels[rows],
            soft=None if self.soft is None else self.soft[rows],
            columns={name: column[rows] for name, column in self.columns.items()},
            weight=None if self.weight is None else self.weight[rows],
            flags={words: counts[rows] for words, counts in self.flags.items()},
        )

    def blocks(self, elements: int) -> Iterator[Self]:
        """Consecutive parts of at most so many forecasts (views, not copies)."""
        elements = elements if isinstance(self.values, np.ndarray) else max(elements, self.values.at_once)
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
    def kind(self) -> str:
        """The kind of the forecasts: "event", "confidence", "classes", "top k" or "labels"."""
        return self.forecasts.name

    @property
    def values(self) -> Array:
        """Probabilities or logits, as they were given: (n,) for an event, (n, K) for classes."""
        return self.forecasts.values

    @property
    def logits(self) -> bool:
        """Whether the values are logits."""
        return self.forecasts.logits

    @property
    def n_classes(self) -> int:
        """K, or 0 for an event."""
        return self.forecasts.n_classes

    @property
    def probabilities(self) -> Array:
        """The forecasts as probabilities (float64 where they were logits)."""
        return self.forecasts.probabilities

    def leaders(self, k: int) -> Ints:
        """The k likeliest classes of each row, likeliest first; ties go to the lowest class."""
        return self.forecasts.leaders(k)

    def probability_of(self, classes: Ints) -> Array:
        """The probability of some classes of each row: (n, k) indices to (n, k) probabilities."""
        return self.forecasts.probability_of(classes)

    @property
    def predicted(self) -> Ints:
        """The likeliest class of each row."""
        self.require_classes("the predicted class")
        return self.forecasts.leaders(1)[:, 0]

    @property
    def confidence(self) -> Array:
        """The largest probability of each row (for an event, its probability)."""
        return read_only(self.forecasts.confidence)

    @property
    def truth_rows(self) -> Array:
        """The labels as an array like the probabilities: soft labels, or 0 and 1."""
        return self.soft if self.labels is None else self.forecasts.truth_rows(self.labels)  # type: ignore[return-value]

    def truth_of(self, classes: Ints) -> Array:
        """What came true of some classes (n, k) of each row: true or false, or the soft label of each."""
        if self.labels is not None:
            return self.forecasts.happened(self.labels, classes)
        return np.take_along_axis(self.truth_rows.reshape(len(self), self.n_classes or 1), classes, axis=1)

    def class_index(self, name: int | str) -> int:
        """The index of a class given by index or name."""
        if not self.n_classes:
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
            if isinstance(name, str) and name in (self.origin.get("labels"), self.origin.get("forecasts")):
                expected = "must be another one than those of labels and forecasts"
                hint = "label_in(...) and predicted_in(...) select the rows of a class"
                raise CalibrationInputError("column", expected, got=repr(name), hint=hint)
            raise CalibrationInputError("column", "is unknown", got=repr(name), hint=nearest(str(name), self.columns))
        return self.columns[name]

    def require_classes(self, question: str) -> None:
        """Refuse a question about classes of which one is true where forecasts are about events."""
        self.forecasts.require(CLASSES, question)

    def hard_labels(self, question: str) -> Ints:
        """One true class per row, refused where labels are soft, or where a row may carry several."""
        if self.labels is None or self.labels.ndim > 1:
            got = "soft labels" if self.labels is None else "independent labels"
            raise CalibrationInputError(question, "needs one true class per row", got=got)
        return self.labels


def sentences(remarks: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """What was done to how many rows, as sentences.

    >>> sentences((("left out: label 9", 2),))
    ('2 rows were left out: label 9',)
    """
    return tuple(f"{count} row{' was' if count == 1 else 's were'} {words}" for words, count in remarks)


def _locked(array: Any) -> Any:
    return read_only(array) if isinstance(array, np.ndarray) and array.flags.writeable else array
