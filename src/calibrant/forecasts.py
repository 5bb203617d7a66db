"""Forecasts: the sorted table of distinct forecasts of an event, from which any binning of it follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arrays import Array
from calibrant.bins import Bins, check_memory
from calibrant.precision import Precision
from calibrant.totals import Floats, Ints, Totals
from calibrant.views import About, Summary, View


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
        parts: list[tuple[Array, Array, Totals]] = []
        lengths = []
        for question in range(view.questions):
            rows = view.rows_of(question)
            if view.weight is not None:
                rows = rows[view.weight[rows] > 0]
            counts = np.ones(len(rows), np.int64) if view.weight is None else view.weight[rows].astype(np.int64)
            truth = view.truth_of(question, rows)[:, 0]
            parts.append((view.outputs[rows, question % view.v, 0], counts, Totals.of(truth).times(counts)))
            lengths.append(len(rows))
        return cls._collapsed(
            view.about, np.repeat(np.arange(len(lengths)), lengths), parts, len(lengths), view.precision
        )

    def __add__(self, other: Forecasts) -> Forecasts:
        if not isinstance(other, Forecasts):
            return NotImplemented
        questions = len(self.starts) - 1
        about = self.about + other.about
        keys = np.concatenate([np.repeat(np.arange(questions), np.diff(table.starts)) for table in (self, other)])
        parts = [(table.values, table.counts, _totals(table.targets)) for table in (self, other)]
        precision = self.precision if self.precision.bits <= other.precision.bits else other.precision
        return self._collapsed(about, keys, parts, questions, precision)

    @classmethod
    def _collapsed(
        cls, about: About, keys: Ints, parts: list[tuple[Array, Array, Totals]], questions: int, precision: Precision
    ) -> Forecasts:
        """Rows of (question, value, count, target) with equal question and value as one entry."""
        values = np.concatenate([part[0] for part in parts]) + 0  # -0.0 becomes 0.0
        counts = np.concatenate([part[1] for part in parts]).astype(np.int64)
        hi = np.concatenate([part[2].hi for part in parts])
        lo = np.concatenate([part[2].lo for part in parts])
        order = np.lexsort((values, keys))
        keys, values = keys[order], values[order]
        first = np.flatnonzero(np.append(True, (values[1:] != values[:-1]) | (keys[1:] != keys[:-1]))[: len(values)])
        targets = Totals.normal(_reduced(hi[order], first), _reduced(lo[order], first))
        whole = not about.soft and not (targets.lo.any() or (targets.hi & ((1 << 26) - 1)).any())
        return cls(
            about,
            values[first],
            _small(_reduced(counts[order], first)),
            _small(targets.hi >> 26) if whole else targets,
            np.searchsorted(keys[first], np.arange(questions + 1)),
            precision,
        )

    def ladders(self) -> Iterator[Ladder]:
        """Each question's table with running totals."""
        for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True):
            yield Ladder.of(self, slice(start, stop))

    def cut(self, cuts: Callable[[Ladder], Ints]) -> Bins:
        """The bins when each question's samples, in order of forecast, are cut at the ranks that `cuts` names."""
        rows: list[Any] = []
        for ladder in self.ladders():  # one in memory at a time
            ranks = cuts(ladder)
            check_memory(len(self.starts) - 1, len(ranks) - 1, 1)
            rows.append(ladder.cut(ranks))
        width = max(len(low) for *_, low, _ in rows)
        size, outputs, targets = (Totals.stack([row[part] for row in rows], width) for part in range(3))
        low, high = np.full((2, len(rows), width), np.nan)
        for index, row in enumerate(rows):
            low[index, : len(row[3])], high[index, : len(row[4])] = row[3:]
        return Bins(
            self.about,
            size,
            outputs.reshape(*outputs.shape, 1),
            targets.reshape(*targets.shape, 1),
            np.array([len(row[3]) for row in rows]),
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

    @classmethod
    def of(cls, forecasts: Forecasts, entries: slice) -> Ladder:
        """The part of a table that belongs to one question."""
        values = forecasts.values[entries]
        counts = forecasts.counts[entries].astype(np.int64)
        targets = _totals(forecasts.targets[entries])
        ranks = np.concatenate([[0], np.cumsum(counts)])
        outputs = Totals.of(values).times(counts).cumulative()
        return cls(values, ranks, outputs, targets.cumulative(), forecasts.precision)

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
