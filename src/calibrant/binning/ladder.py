"""Forecasts: the sorted table of distinct forecasts of an event, from which any binning of it follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibrant.bins import Bins, check_memory
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.precision import Precision
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.views import About, Summary, View

MOST_SAMPLES = float(1 << 62)
"""Ranks beyond this would leave their range."""


@dataclass(frozen=True, eq=False)
class Forecasts(Summary):
    """Per question, each distinct forecast once, ascending, with how often it was made and came true.

    The questions' tables follow each other; question q is entries starts[q] .. starts[q + 1]. Tied
    forecasts are one entry by construction, so no order of rows can matter. Whole weights count as
    repetition. `targets` are whole counts, or exact totals under soft labels.
    """

    values: Array
    counts: Array
    targets: Array | Totals
    starts: Ints
    precision: Precision
    squares: Totals | None = None
    """Summed squares of the weights of each entry; None where every weight was 1, so that they are the counts."""

    @classmethod
    def of(cls, view: View, piece: str) -> Forecasts:
        """The table of a view; `piece` is the one that needs it, named where it cannot be."""
        view.require_event(piece, "KDTree or Grid for vectors")
        view.require_whole_weights(piece)
        if view.weight is not None or view.targets.ndim > 1:
            return cls._of_any(view)
        tables = [_distinct(values, hits) for values, hits in _columns(view)]
        values, counts, targets = (np.concatenate(parts) for parts in zip(*tables, strict=True))
        starts = np.cumsum([0, *(len(table[0]) for table in tables)])
        return cls(view.about, values, counts, targets, starts, view.precision)

    @classmethod
    def _of_any(cls, view: View) -> Forecasts:
        """Of weighted rows and soft labels: first every answer as an entry of its own."""
        parts = []
        for question in range(view.questions):
            rows = view.rows_of(question)
            weight = np.ones(len(rows)) if view.weight is None else view.weight[rows]
            rows, weight = rows[weight > 0], weight[weight > 0]
            truth = Totals.of(view.truth_of(question, rows)[:, 0]).times(weight)
            parts.append((view.outputs[rows, question % view.v, 0], weight.astype(np.int64), truth, weight))
        values, counts, targets, weights = zip(*parts, strict=True)
        weight = np.concatenate(weights)
        return cls(
            view.about,
            np.concatenate(values) + 0,  # -0.0 becomes 0.0
            np.concatenate(counts),
            Totals.joined(targets),
            np.cumsum([0, *map(len, values)]),
            view.precision,
            None if (weight == 1).all() else Totals.of(np.square(weight)),
        )._collapsed()

    def _joined(self, other: Forecasts, about: About) -> Forecasts:
        both = (self, other)
        total = sum(float(table.counts.sum(dtype=np.float64)) for table in both)
        if total >= MOST_SAMPLES:
            raise CalibrationInputError("samples", "of sorted forecasts must be fewer than 2^62", got=f"{total:.3g}")
        question = np.concatenate([table._question for table in both])
        order = np.argsort(question, kind="stable")
        whole = isinstance(self.targets, np.ndarray) and isinstance(other.targets, np.ndarray)
        plain = self.squares is None and other.squares is None
        return Forecasts(
            about,
            np.concatenate([table.values for table in both])[order],
            np.concatenate([table.counts.astype(np.int64) for table in both])[order],
            np.concatenate([table.targets.astype(np.int64) for table in both])[order]  # type: ignore[union-attr]
            if whole
            else Totals.joined([_totals(table.targets) for table in both])[order],
            self.starts + other.starts,
            min(self.precision, other.precision, key=lambda precision: precision.bits),
            None if plain else Totals.joined([table.squares or _totals(table.counts) for table in both])[order],
        )._collapsed()

    @property
    def _question(self) -> Ints:
        """The question of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def _collapsed(self) -> Forecasts:
        """Entries of equal question and value as one."""
        order = np.lexsort((self.values, self._question))
        question, values = self._question[order], self.values[order]
        new = (values[1:] != values[:-1]) | (question[1:] != question[:-1])
        first = np.flatnonzero(np.append(True, new)[: len(values)])
        if isinstance(self.targets, np.ndarray):
            targets: Array | Totals = _small(_reduced(self.targets[order], first))
        else:
            targets = self.targets[order].reduced(first)
            targets = _small(targets.floor) if targets.is_whole else targets
        return dataclasses.replace(
            self,
            values=values[first],
            counts=_small(_reduced(self.counts[order], first)),
            targets=targets,
            starts=np.searchsorted(question[first], np.arange(len(self.starts))),
            squares=None if self.squares is None else self.squares[order].reduced(first),
        )

    def ladders(self) -> Iterator[Ladder]:
        """Each question's table with running totals."""
        for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True):
            yield Ladder.of(self, start, stop)

    def cut(self, cuts: Callable[[Ladder], Ints]) -> Bins:
        """The bins when each question's samples, in order of forecast, are cut at the ranks that `cuts` names."""
        sums, ends = [], []
        for ladder in self.ladders():  # one in memory at a time
            ranks = cuts(ladder)
            check_memory(len(self.starts) - 1, len(ranks) - 1, 1)
            size, outputs, targets, *borders = ladder.cut(ranks)
            sums.append((size, outputs, targets))
            ends.append(borders)
        width = max(len(low) for low, _ in ends)
        size, outputs, targets = (Totals.stack(parts, width) for parts in zip(*sums, strict=True))
        low, high = np.full((2, len(ends), width), np.nan)
        for index, borders in enumerate(ends):
            low[index, : len(borders[0])], high[index, : len(borders[1])] = borders
        return Bins(
            self.about,
            size,
            outputs.reshape(*outputs.shape, 1),
            targets.reshape(*targets.shape, 1),
            np.array([len(low) for low, _ in ends]),
            low,
            high,
        )


@dataclass(frozen=True, eq=False)
class Ladder:
    """One question's table of distinct forecasts, with running totals up to each entry."""

    values: Array
    ranks: Ints
    """How many samples lie before each entry, and at the end how many there are: (m + 1,)."""
    outputs: Totals
    targets: Totals
    precision: Precision
    squares: Floats
    """Summed squares of the weights of each entry."""

    @classmethod
    def of(cls, forecasts: Forecasts, start: int, stop: int) -> Ladder:
        """The part of a table that belongs to one question."""
        values = forecasts.values[start:stop]
        counts = forecasts.counts[start:stop].astype(np.int64)
        targets = _totals(forecasts.targets[start:stop])
        ranks = np.concatenate([[0], np.cumsum(counts)])
        outputs = Totals.of(values).times(counts).cumulative()
        squares = counts.astype(np.float64) if forecasts.squares is None else forecasts.squares[start:stop].value
        return cls(values, ranks, outputs, targets.cumulative(), forecasts.precision, squares)

    @property
    def n(self) -> int:
        """How many samples there are."""
        return int(self.ranks[-1])

    @property
    def rates(self) -> Floats:
        """How often each distinct forecast came true."""
        return self.targets.differences().value / np.diff(self.ranks)

    def running_targets(self, ranks: Ints) -> Totals:
        """The targets of the first samples, up to each rank.

        A rank c inside the tie group [a, z) of total S adds S * (c - a) / (z - a), rounded to a unit: tied
        forecasts share their group's mean label.
        """
        entry, inside, size = self._inside(ranks)
        group = self.targets[entry + 1] - self.targets[entry]
        return self.targets[entry] + group.share(inside, size)

    def cut(self, ranks: Ints) -> tuple[Totals, Totals, Totals, Floats, Floats]:
        """Size, outputs, targets, smallest and largest forecast between neighbouring ranks."""
        low, high = np.full((2, len(ranks) - 1), np.nan)
        if self.n == 0:
            nothing = Totals.zeros(len(ranks) - 1)
            return nothing, nothing, nothing, low, high
        entry, inside, _ = self._inside(ranks)
        outputs = self.outputs[entry] + Totals.of(self.values[entry]).times(inside)
        filled = np.diff(ranks) > 0
        low[filled] = self.values[self._entry(ranks[:-1][filled])]
        high[filled] = self.values[self._entry(ranks[1:][filled] - 1)]
        targets = self.running_targets(ranks)
        return Totals.whole(np.diff(ranks)), outputs.differences(), targets.differences(), low, high

    def below(self, edges: Floats, closed: str) -> Ints:
        """How many samples lie below each edge (at or below it, when bins are right-closed)."""
        values, at = self.precision.comparable(self.values, edges)
        return self.ranks[np.searchsorted(values, at, side="right" if closed == "right" else "left")]

    def before(self, ranks: Ints) -> Ints:
        """How many samples have a smaller forecast than the one at each rank."""
        return self.ranks[self._entry(ranks)]

    def _entry(self, ranks: Ints) -> Ints:
        return np.searchsorted(self.ranks, ranks, side="right") - 1

    def _inside(self, ranks: Ints) -> tuple[Ints, Ints, Ints]:
        """The entry that holds each rank, how far inside it lies, and how large it is."""
        entry = np.minimum(self._entry(ranks), len(self.values) - 1)
        return entry, ranks - self.ranks[entry], self.ranks[entry + 1] - self.ranks[entry]


class Ladders(Protocol):
    """The sorted samples of many replicates of an event, as binnings need them: each result has a row a replicate."""

    @property
    def count(self) -> int:
        """How many replicates there are."""

    @property
    def n(self) -> int:
        """How many samples each of them has."""

    @property
    def rates(self) -> Floats:
        """How often each sample's group of equal forecasts came true."""

    def below(self, edges: Floats, closed: str) -> Ints:
        """How many samples lie below each edge (at or below it, when bins are right-closed)."""

    def before(self, ranks: Ints) -> Ints:
        """How many samples have a smaller forecast than the one at each rank."""

    def targets_at(self, ranks: Ints, rows: Ints | None = None) -> Totals:
        """The running targets up to ranks, of some of the replicates."""

    def some(self, rows: Ints) -> Ladders:
        """Some of the replicates."""


def _columns(view: View) -> Iterator[tuple[Array, Array]]:
    """The outputs and hits of each question, hard labels."""
    whole = view.group is None and view.keep is None
    for question in range(view.questions):
        column = question % view.v
        if whole:
            if column % 16 == 0:  # several columns at once: one walk over the matrix each
                together = np.ascontiguousarray(view.outputs[:, column : column + 16, 0].T)
            yield together[column % 16], view.targets == column
        else:
            rows = view.rows_of(question)
            yield view.outputs[rows, column, 0], view.targets[rows] == column


def _distinct(values: Array, hits: Array) -> tuple[Array, Array, Array]:
    """Distinct values in order, their counts and hits; the label rides in the lowest bit, so one sort does."""
    values = np.ascontiguousarray(values) + values.dtype.type(0)  # -0.0 becomes 0.0
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    keys = (values.view(unsigned) << unsigned.type(1)) | hits.astype(unsigned)
    keys.sort()
    levels = keys >> unsigned.type(1)
    first = np.flatnonzero(np.append(True, levels[1:] != levels[:-1])[: len(levels)])
    counts = np.diff(np.append(first, len(keys)))
    positives = _reduced((keys & unsigned.type(1)).astype(np.int64), first)
    return levels[first].view(values.dtype), _small(counts), _small(positives)


def _reduced(array: Array, first: Ints) -> Array:
    return np.add.reduceat(array, first) if len(first) else array[:0]


def _small(counts: Array) -> Array:
    """Counts in the narrowest whole type: the table is kept, the arithmetic is int64."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


def _totals(targets: Array | Totals) -> Totals:
    return targets if isinstance(targets, Totals) else Totals.whole(targets)
