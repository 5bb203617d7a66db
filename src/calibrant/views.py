"""Views: what a lens sees of each row."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrant.door.arrays import Array
from calibrant.door.logs import Given, Logs
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.caching import cached_property
from calibrant.kernels.precision import Precision
from calibrant.kernels.totals import Floats, Ints
from calibrant.summaries import About, Summary


@dataclass(frozen=True, eq=False)
class View(Summary):
    """Outputs (n, v, d): each row answers v questions of d coordinates; d = 1 is an event.

    `targets` is the index, among the row's v * d coordinates, of the one that came true (-1: none),
    or an array like `outputs` for soft labels. `keep` (n, v) drops answers. `group` (n,) sends the
    rows to copies of the stack of questions: row i counts for questions group[i] * v .. + v - 1. `logits` knows the
    logarithms of outputs that came from logits; who replaces the outputs makes it None.

    >>> import calibrant as cal
    >>> view = cal.TopLabel()(cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]]))
    >>> view.outputs.ravel().tolist(), view.targets.tolist()
    ([0.9, 0.8], [0, -1])
    """

    outputs: Array
    targets: Array
    precision: Precision
    keep: Array | None = None
    group: Ints | None = None
    groups: int = 1
    weight: Floats | None = None
    logits: Logs | None = None

    @property
    def axes(self) -> dict[str, str]:  # type: ignore[override]  # soft targets have more axes
        """Rows, questions, coordinates."""
        targets = "n" if self.targets.ndim == 1 else "nvd"
        return {"outputs": "nvd", "targets": targets, "keep": "nv", "group": "n", "weight": "n"}

    @property
    def v(self) -> int:
        """Questions per row."""
        return self.outputs.shape[1]

    @property
    def d(self) -> int:
        """Coordinates per question."""
        return self.outputs.shape[2]

    @property
    def questions(self) -> int:
        """Questions in all, every group's copy counted."""
        return self.groups * self.v

    @property
    def is_plain_events(self) -> bool:
        """Whether every row answers all questions, each of one event, rows count alike, and labels are hard."""
        alike = self.keep is None and self.group is None and self.weight is None
        return alike and self.d == 1 and self.targets.ndim == 1

    def _joined(self, other: View, about: About) -> View:
        if self.outputs.shape[1:] != other.outputs.shape[1:]:
            raise CalibrationInputError("summaries", "must have the same coordinates to be added", got="different ones")
        check_rows(self.outputs.nbytes + other.outputs.nbytes)
        both = (self, other)
        soft = any(view.targets.ndim > 1 for view in both)
        return dataclasses.replace(
            self,
            about=about,
            outputs=np.concatenate([view.outputs for view in both]),
            targets=np.concatenate([view.truth_rows if soft else view.targets for view in both]),
            keep=_joined([view.keep for view in both], [view.outputs.shape[:2] for view in both]),
            group=None if self.group is None else np.concatenate([self.group, _there(other.group)]),
            weight=_joined([view.weight for view in both], [view.outputs.shape[:1] for view in both]),
            precision=min(self.precision, other.precision, key=lambda precision: precision.bits),
            logits=None,
        )

    def canonical(self) -> View:
        """The rows sorted by all that they hold, hard labels as indices, and nothing that goes without saying.

        Rows of labels of which several are true are of int8, and soft ones of float64, whatever they were joined with.
        """
        targets = self.targets
        if targets.ndim == 3:
            truth = targets.reshape(len(targets), math.prod(targets.shape[1:]))
            hard = np.isin(truth, (0, 1)).all()
            targets = targets.astype(np.int8 if hard else np.float64)
            if hard and (truth.sum(axis=1) <= 1).all():
                targets = np.where(truth.any(axis=1), truth.argmax(axis=1), -1)
        columns = {
            "outputs": self.outputs + self.outputs.dtype.type(0),  # -0.0 becomes 0.0
            "targets": targets + targets.dtype.type(0),
            "group": self.group,
            "keep": None if self.keep is None or self.keep.all() else self.keep,
            "weight": None if self.weight is None or (self.weight == 1).all() else self.weight + 0.0,
        }
        rows = np.concatenate([_as_bytes(column) for column in columns.values() if column is not None], axis=1)
        order = np.argsort(rows.view(f"V{rows.shape[1]}").ravel(), kind="stable")
        held = {name: None if column is None else column[order] for name, column in columns.items()}
        return dataclasses.replace(self, **held, logits=None)  # type: ignore[arg-type]

    def faults(self) -> Iterator[str]:
        """What cannot be: outputs that are no probabilities, weights below 0, places that are not there."""
        yield from super().faults()
        limits = {"outputs": (0, 1), "group": (0, self.groups - 1), "weight": (0, 1 << 36)}
        limits["targets"] = (-1, self.v * self.d - 1) if self.targets.ndim == 1 else (0, 1)
        for name, (low, high) in limits.items():
            column = getattr(self, name)
            if column is not None and not ((column >= low) & (column <= high)).all():
                yield f"{name} outside of {low} to {high}"
        if self.groups != 1 and (self.group is None or len(self.about.names) != self.questions):
            yield f"{self.groups} groups"
        if self.weight is not None and not self.about.fractional and (self.weight % 1).any():
            yield "fractional weights that were not counted"
        if not 0 < self.precision.bits <= 53:
            yield f"a precision of {self.precision.bits} bits"

    def require_event(self, piece: str, instead: str) -> None:
        """Refuse a piece that needs d = 1."""
        if self.d != 1:
            raise CalibrationInputError(
                piece,
                "needs a lens with one coordinate per question",
                got=f"{self.about.question} with {self.d}",
                hint=f"use {instead}",
            )

    def require_whole_weights(self, piece: str) -> None:
        """Refuse a piece that counts samples where weights are fractions."""
        if self.about.fractional:
            raise CalibrationInputError(
                piece,
                "counts samples, so weights must be whole",
                got="fractional weights",
                hint="use EqualWidth or Edges",
            )

    def rows_of(self, question: int) -> Ints:
        """The rows that answer one question."""
        group, column = divmod(question, self.v)
        rows = self._rows_by_group[group]
        return rows if self.keep is None else rows[self.keep[rows, column]]

    def truth_of(self, question: int, rows: Ints) -> Array:
        """The targets (rows, d) of one question: 0 / 1, or soft."""
        column = question % self.v
        if self.targets.ndim == 3:
            return self.targets[rows, column]
        coordinate = self.targets[rows] - column * self.d
        return coordinate[:, None] == np.arange(self.d)

    @cached_property
    def _rows_by_group(self) -> list[Ints]:
        if self.group is None:
            return [np.arange(len(self.outputs))]
        order = np.argsort(self.group, kind="stable")
        return np.split(order, np.searchsorted(self.group[order], np.arange(1, self.groups)))

    @property
    def logs(self) -> Logs:
        """The logarithms of the outputs."""
        return self.logits or Given(self.outputs)

    @property
    def truth_rows(self) -> Array:
        """The targets as an array like the outputs: soft, or 0 / 1."""
        if self.targets.ndim == 3:
            return self.targets
        n, v, d = self.outputs.shape
        return (self.targets[:, None] == np.arange(v * d)).reshape(n, v, d).astype(np.float64)


MOST_BYTES = 1 << 34
"""A summary that keeps more than this is refused before it is made."""


def check_rows(needed: int) -> None:
    """Refuse rows that are too many to be kept, before they are put together."""
    if needed > MOST_BYTES:
        expected = f"that a summary keeps must fit {MOST_BYTES / (1 << 30):g} GiB"
        size = f"{needed / (1 << 30):.3g} GiB"
        raise CalibrationInputError("rows", expected, got=size, hint="use a metric that keeps totals, such as ECE")


def _as_bytes(column: Array) -> Array:
    """The bytes of each row, little-endian."""
    written = column.astype(column.dtype.newbyteorder("<"), order="C")
    return written.view(np.uint8).reshape(len(column), math.prod(column.shape[1:]) * written.itemsize)


def _there(array: Ints | None) -> Ints:
    if array is None:
        raise CalibrationInputError("summaries", "must come from the same lens to be added", got="one without groups")
    return array


def _joined(parts: list[Array | None], shapes: list[tuple[int, ...]]) -> Array | None:
    """Concatenated, where None stands for ones; None if all are."""
    if all(part is None for part in parts):
        return None
    return np.concatenate(
        [
            np.ones(shape, bool if len(shape) == 2 else float) if part is None else part
            for part, shape in zip(parts, shapes, strict=True)
        ]
    )
