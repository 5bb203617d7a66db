"""Registers: summaries as whole numbers at fixed places, which other libraries may add as they add any tensor."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from calibrant.binning import cells
from calibrant.binning.ladder import Forecasts
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.precision import Precision, counted
from calibrant.kernels.totals import Ints, Totals
from calibrant.summaries import About, Summary, Sums

LIMBS = 3
"""A total is a whole part and two limbs of 26 bits."""
MOST = 1 << 43
"""Whole parts lie below this, so that 2^20 of them add within int64."""
MOST_BYTES = 1 << 30
"""Registers that need more are refused before they are allocated."""
BITS = 54
"""More than forecasts have significand bits."""
NONE = np.zeros(0, np.int64)
SUMS = ("outputs", "true_outputs", "squared_outputs")
"""The totals of forecasts in each cell, beside those of outcomes."""


class Addends(NamedTuple):
    """Numbers to be added to registers: counts (m,) at their places, totals (LIMBS, k) at their columns."""

    places: Ints
    counts: Ints
    columns: Ints
    totals: Ints


class Body(Protocol):
    """The numbers of one kind of summary, behind those that all have."""

    @property
    def sizes(self) -> tuple[int, int]:
        """How many counts and totals there are."""

    def encode(self, summary: Any) -> Addends:
        """The numbers of a batch, where they are not 0."""

    def decode(self, about: About, counts: Ints, totals: Ints) -> Summary:
        """The summary of numbers that were added up."""


@dataclass(frozen=True, eq=False)
class Registers:
    """Where the numbers of summaries stand that are `about` the same, whatever the rows.

    The first counts are a signature, once for each batch: sums of batches that were read in one way are a multiple of
    it. Then come the numbers of rows, and how many rows each of the `remarks` tells of.

    >>> import calibrant as cal
    >>> template = cal.ECE.summarise([1], [1.0])
    >>> registers = Registers(template.about, body_of(template), signature("ECE", 0), ())
    >>> registers.shapes
    ((13,), (3, 45))
    >>> batch = registers.encode(cal.ECE.summarise([1, 0], [.9, .2]))
    >>> cal.ECE.conclude(registers.decode(batch.counts, batch.totals)).value == cal.ECE([1, 0], [.9, .2]).value
    True
    """

    about: About
    body: Body
    signature: Ints
    remarks: Sequence[str]

    def __post_init__(self) -> None:
        needed = 8 * sum(map(math.prod, self.shapes))
        if needed > MOST_BYTES:
            expected = f"must need at most {MOST_BYTES >> 30} GiB"
            hint = "ask about fewer classes, or use fixed bins"
            raise CalibrationInputError("state", expected, got=f"{needed / (1 << 30):.1f} GiB", hint=hint)

    @property
    def shapes(self) -> tuple[tuple[int], tuple[int, int]]:
        """The shapes of counts and totals."""
        counts, totals = self.body.sizes
        return (self._shared + counts,), (LIMBS, totals)

    @property
    def _shared(self) -> int:
        """How many counts every summary has."""
        return len(self.signature) + 3 + len(self.remarks)

    def encode(self, summary: Summary) -> Addends:
        """The numbers of a batch, where they are not 0."""
        about = self.about - self.about + summary.about  # refused where the questions differ
        remarks = dict(about.remarks)
        for words in remarks.keys() - set(self.remarks):
            hint = "pass ignore_index to Calibration itself"
            raise CalibrationInputError("rows", "must be told of in known words", got=f"rows {words}", hint=hint)
        rows = [about.n, about.soft, about.fractional, *(remarks.get(words, 0) for words in self.remarks)]
        places, counts, columns, totals = self.body.encode(summary)
        places = np.concatenate([np.arange(self._shared), self._shared + places])
        return Addends(places, np.concatenate([self.signature, rows, counts]), columns, totals)

    def decode(self, counts: Ints, totals: Ints) -> Summary:
        """The summary whose numbers were added up in registers."""
        n, soft, fractional, *told = counts[len(self.signature) : self._shared].tolist()
        remarks = tuple((words, rows) for words, rows in zip(self.remarks, told, strict=True) if rows)
        about = dataclasses.replace(self.about, n=n, soft=soft, fractional=fractional, remarks=remarks)
        return self.body.decode(about, counts[self._shared :], totals)


@dataclass(frozen=True, eq=False)
class SumBody:
    """Totals, one behind the other."""

    template: Sums

    @property
    def sizes(self) -> tuple[int, int]:
        """Totals alone."""
        return 0, sum(math.prod(each.shape) for each in self.template.totals.values())

    def encode(self, summary: Sums) -> Addends:
        """All totals."""
        totals = Totals.joined([each.reshape(math.prod(each.shape)) for each in summary.totals.values()])
        return Addends(NONE, NONE, np.arange(len(totals.hi)), limbs(totals))

    def decode(self, about: About, counts: Ints, totals: Ints) -> Sums:
        """The template with other totals."""
        shapes = {name: each.shape for name, each in self.template.totals.items()}
        stops = np.cumsum([math.prod(shape) for shape in shapes.values()])[:-1]
        parts = zip(shapes.items(), np.split(totals, stops, axis=1), strict=True)
        sums = {name: from_limbs(part).reshape(*shape) for (name, shape), part in parts}
        return dataclasses.replace(self.template, about=about, **sums)


@dataclass(frozen=True)
class CellBody:
    """Of each question and cell a count, two marks and four totals, whether it has forecasts or not."""

    questions: int

    @property
    def size(self) -> int:
        """Cells of all questions."""
        return self.questions * len(cells.lasts())

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of each precision and batches without `true_outputs` stand before counts and marks."""
        return 2 * BITS + 1 + 3 * self.size, (1 + len(SUMS)) * self.size

    def encode(self, table: Forecasts) -> Addends:
        """The cells that have forecasts."""
        question = np.repeat(np.arange(self.questions), np.diff(table.starts))
        place = question * len(cells.lasts()) + cells.numbers(table.values)
        known = np.zeros(2 * BITS + 1, np.int64)
        for precision, rows in table.precisions:
            known[2 * precision.bits + precision.summed] = rows
        known[-1] = table.true_outputs is None
        counts = [known, table.counts, *np.transpose(table.marks)]  # type: ignore[arg-type]  # cells have marks
        places = np.concatenate([np.arange(len(known)), *(len(known) + part * self.size + place for part in range(3))])
        targets = table.targets if isinstance(table.targets, Totals) else Totals.whole(table.targets)
        totals = [targets, *(getattr(table, name) or Totals.zeros(len(place)) for name in SUMS)]
        columns = np.concatenate([part * self.size + place for part in range(len(totals))])
        return Addends(places, np.concatenate(counts, dtype=np.int64), columns, limbs(Totals.joined(totals)))

    def decode(self, about: About, counts: Ints, totals: Ints) -> Forecasts:
        """The table of the cells that have forecasts."""
        known, (sizes, *marks) = counts[: 2 * BITS + 1], counts[2 * BITS + 1 :].reshape(3, self.size)
        held = np.flatnonzero(sizes)
        number = held % len(cells.lasts())
        parts = totals.reshape(LIMBS, 1 + len(SUMS), self.size)[:, :, held]
        targets, *sums = (from_limbs(parts[:, part]) for part in range(1 + len(SUMS)))
        fields: dict[str, Any] = dict(zip(SUMS, sums, strict=True))
        if known[-1]:
            fields["true_outputs"] = None
        rows = [(Precision(place // 2, place % 2 == 1), int(known[place])) for place in range(2 * BITS)]
        return Forecasts(
            about,
            cells.lasts()[number],
            sizes[held],
            targets,
            np.searchsorted(held, np.arange(self.questions + 1) * len(cells.lasts())),
            counted(tuple(rows)),
            closed=~cells.atoms()[number],
            marks=np.stack(marks, axis=1)[held],
            **fields,
        ).canonical()


def body_of(template: Summary) -> Body | None:
    """Where the numbers stand that only summaries of a kind have; None where they would grow with the rows.

    >>> import calibrant as cal
    >>> body_of(cal.ECE.summarise([1], [1.0])).sizes, body_of(cal.ADAPTIVE_ECE.summarise([1], [1.0]))
    ((0, 45), None)
    """
    if isinstance(template, Forecasts) and not template.keeps_rows:
        return CellBody(len(template.starts) - 1)
    if isinstance(template, Sums) and getattr(template, "cells", None) is None:
        return SumBody(template)
    return None


def signature(reading: str, classes: int) -> Ints:
    """A 1, the number of classes, and eight bytes of a hash: of each batch that is read in one way the same.

    Bytes, because torchmetrics takes whole numbers for equal whose relative difference is small.

    >>> signature("ECE", 10)[:2].tolist(), len(signature("ECE", 10))
    ([1, 10], 10)
    """
    known = hashlib.sha256(f"{reading}, {classes}".encode()).digest()[:8]
    return np.array([1, classes, *known])


def agree(counts: Ints, shared: Ints) -> bool:
    """Whether all batches whose counts were added up have this signature.

    >>> agree(signature("ECE", 10) + signature("ECE", 10), signature("ECE", 10))
    True
    >>> agree(signature("ECE", 8) + signature("ECE", 12), signature("ECE", 10))
    False
    """
    return np.array_equal(counts[: len(shared)], shared * counts[0])


def limbs(totals: Totals) -> Ints:
    """Totals (m,) as whole parts and two limbs each (LIMBS, m).

    >>> limbs(Totals.of(np.array([2.25, -0.5]))).tolist()
    [[2, -1], [16777216, 33554432], [0, 0]]
    """
    if (largest := np.abs(totals.value).max(initial=0.0)) >= MOST:
        raise CalibrationInputError("totals", "of one process must stay below 2^43", got=f"{largest:.3g}")
    whole = totals.floor
    rest = totals - Totals.whole(whole)
    return np.stack([whole, rest.hi, rest.lo])


def from_limbs(numbers: Ints) -> Totals:
    """The totals of limbs, carried or not.

    >>> from_limbs(np.array([[1, -1], [1 << 26, 1 << 25], [0, 0]])).value.tolist()
    [2.0, -0.5]
    """
    whole, high, low = numbers
    return Totals.whole(whole) + Totals.normal(high, low)
