"""Forecasts: the sorted table of distinct forecasts of an event, from which any binning of it follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, TypeVar

import numpy as np

from calibrant import kernels
from calibrant.binning.sorting import columns, distinct, reduced, small
from calibrant.bins import Bins, check_memory
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.precision import Precision
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.summaries import About, Summary
from calibrant.views import View

MOST_SAMPLES = float(1 << 62)
"""Ranks beyond this would leave their range."""


@dataclass(frozen=True, eq=False)
class Forecasts(Summary):
    """Per question, forecasts in order, each distinct one or cell of neighbours an entry with totals of its own.

    The questions' tables follow each other; question q is entries starts[q] .. starts[q + 1]. Tied
    forecasts are one entry by construction, so no order of rows can matter. Whole weights count as
    repetition. `targets` are whole counts, or exact totals under soft labels. The value of a cell is some forecast
    in it, for those who need a number.
    """

    values: Array
    counts: Array
    targets: Array | Totals
    starts: Ints
    precision: Precision
    squares: Totals | None = None
    """Summed squares of the weights of each entry; None where every weight was 1, so that they are the counts."""
    outputs: Totals | None = None
    """Summed forecasts of each entry; None where every entry is one distinct forecast, made so often."""
    axes: ClassVar[Mapping[str, str]] = {
        **{"values": "m", "counts": "m", "targets": "m", "starts": "q", "squares": "m", "outputs": "m"},
    }

    @classmethod
    def of(cls, view: View, piece: str) -> Forecasts:
        """The table of a view; `piece` is the one that needs it, named where it cannot be."""
        view.require_event(piece, "KDTree or Grid for vectors")
        view.require_whole_weights(piece)
        if view.weight is not None or view.targets.ndim > 1:
            return cls._of_any(view)
        tables = [distinct(values, hits) for values, hits in columns(view)]
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
            None if self.outputs is None else Totals.joined([table.summed for table in both])[order],
        )._collapsed()

    def canonical(self) -> Forecasts:
        """One entry a distinct forecast, in order; squares of weights only where they are not the counts."""
        table = self._collapsed()
        plain = table.squares is None or table.squares.same(_totals(table.counts))
        return dataclasses.replace(table, squares=None) if plain else table

    def faults(self) -> Iterator[str]:
        """What cannot be: forecasts that are no probabilities, counts below 1, more targets than samples."""
        yield from super().faults()
        counts, targets = _totals(self.counts), _totals(self.targets)
        if not ((self.values >= 0) & (self.values <= 1)).all() or not 0 < self.precision.bits <= 53:
            yield "values that are no probabilities of their precision"
        if not (self.counts > 0).all() or targets.negative.any() or (counts - targets).negative.any():
            yield "counts below 1 or targets outside of 0 to their counts"

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
            targets: Array | Totals = small(reduced(self.targets[order], first))
        else:
            targets = self.targets[order].reduced(first)
            targets = small(targets.floor) if targets.is_whole else targets
        return dataclasses.replace(
            self,
            values=values[first],
            counts=small(reduced(self.counts[order], first)),
            targets=targets,
            starts=np.searchsorted(question[first], np.arange(len(self.starts))),
            squares=None if self.squares is None else self.squares[order].reduced(first),
            outputs=None if self.outputs is None else self.outputs[order].reduced(first),
        )

    @property
    def summed(self) -> Totals:
        """Summed forecasts of each entry."""
        return Totals.of(self.values).times(self.counts) if self.outputs is None else self.outputs

    def gathered(self, values: Array) -> Forecasts:
        """The entries moved to other values, in order; those that meet are one cell."""
        return dataclasses.replace(self, values=values, outputs=self.summed)._collapsed()

    def recounted(self, counts: Ints, targets: Ints) -> Forecasts:
        """The same forecasts, made and come true so often; those that are never made are left out."""
        there = counts > 0
        starts = np.concatenate([[0], np.cumsum(there)])[self.starts]
        plain = dataclasses.replace(self, squares=None, outputs=None, starts=starts)
        return dataclasses.replace(plain, values=self.values[there], counts=counts[there], targets=targets[there])

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
            sums.append(ladder.cut(ranks))
            ends.append(ladder.ends(ranks))
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
    """One question's entries in order of forecast, with running totals; or the samples of many replicates, one a row.

    Values are (m,) or (r, m), totals (m + 1,) or (r, m + 1). Replicates have equally many samples, each an entry.
    """

    values: Array
    ranks: Ints
    """How many samples lie before each entry, and at the end how many there are: (m + 1,)."""
    outputs: Totals
    targets: Totals
    precision: Precision
    ties: tuple[Ints, Ints] | None = None
    """Of samples that tie (r, m): where the group of each begins, and where the next one does."""

    @classmethod
    def of(cls, forecasts: Forecasts, start: int, stop: int) -> Ladder:
        """The part of a table that belongs to one question."""
        values = forecasts.values[start:stop]
        counts = forecasts.counts[start:stop].astype(np.int64)
        targets = _totals(forecasts.targets[start:stop])
        ranks = np.concatenate([[0], np.cumsum(counts)])
        outputs = Totals.of(values).times(counts) if forecasts.outputs is None else forecasts.outputs[start:stop]
        return cls(values, ranks, outputs.cumulative(), targets.cumulative(), forecasts.precision)

    @classmethod
    def of_replicates(cls, values: Array, labels: Ints, precision: Precision) -> Ladder:
        """Replicates (r, n) of forecasts of an event, and whether it happened."""
        values, hits = kernels.ordered(values, labels)
        running = np.zeros((len(values), values.shape[1] + 1), np.int64)
        np.cumsum(hits, axis=1, out=running[:, 1:])
        totals = Totals.of(values).cumulative(), Totals.whole(running)
        return cls(values, np.arange(running.shape[1]), *totals, precision, _ties(values))

    @property
    def n(self) -> int:
        """How many samples there are, or each replicate has."""
        return int(self.ranks[-1])

    @property
    def rates(self) -> Floats:
        """How often the forecast of each entry came true."""
        if self.ties is None:
            return self.targets.differences().value / np.diff(self.ranks)
        (begin, end), running = self.ties, self.targets.value  # whole
        return (taken(running, end) - taken(running, begin)) / (end - begin)

    @property
    def each(self) -> Ladder:
        """The replicates; one question is one of them."""
        outputs, targets = (totals.reshape(-1, totals.shape[-1]) for totals in (self.outputs, self.targets))
        return dataclasses.replace(self, outputs=outputs, targets=targets)

    def some(self, rows: Array) -> Ladder:
        """Some of the replicates."""
        values = self.values if self.values.ndim == 1 else self.values[rows]
        ties = None if self.ties is None else (self.ties[0][rows], self.ties[1][rows])
        return Ladder(values, self.ranks, self.outputs[rows], self.targets[rows], self.precision, ties)

    def running_targets(self, ranks: Ints) -> Totals:
        """The targets of the first samples, up to each rank.

        A rank c inside the tie group [a, z) of total S adds S * (c - a) / (z - a), rounded to a unit: tied
        forecasts share their group's mean label.
        """
        if self._single:
            return taken(self.targets, ranks)
        entry, after = self._entries(ranks)
        first = self.ranks[entry]
        before = taken(self.targets, entry)
        return before + (taken(self.targets, after) - before).share(ranks - first, self.ranks[after] - first)

    def running_outputs(self, ranks: Ints) -> Totals:
        """The summed forecasts of the first samples, up to each rank."""
        if self._single or self.ties is not None:
            return taken(self.outputs, ranks)
        entry, _ = self._entries(ranks)
        return self.outputs[entry] + Totals.of(self.values[entry]).times(ranks - self.ranks[entry])

    def cut(self, ranks: Ints) -> tuple[Totals, Totals, Totals]:
        """Size, outputs and targets between neighbouring ranks."""
        outputs, targets = (at(ranks).differences() for at in (self.running_outputs, self.running_targets))
        return Totals.whole(np.broadcast_to(np.diff(ranks), outputs.shape)), outputs, targets

    def ends(self, ranks: Ints) -> tuple[Floats, Floats]:
        """The smallest and the largest forecast between neighbouring ranks; nan where there is none."""
        held = np.diff(ranks) > 0
        low, high = (np.where(held, self.at(end), np.nan) for end in (ranks[..., :-1], ranks[..., 1:] - 1))
        return low, high

    def at(self, ranks: Ints) -> Floats:
        """The forecast at each rank; beyond the ends, that at the end."""
        if self.n == 0:
            return np.full(ranks.shape, np.nan)
        return taken(self.values, self.entry(np.clip(ranks, 0, self.n - 1))).astype(np.float64)

    def below(self, edges: Floats, closed: str) -> Ints:
        """How many samples lie below each edge (at or below it, when bins are right-closed)."""
        values, at = self.precision.comparable(self.values, edges)
        side: Literal["left", "right"] = "right" if closed == "right" else "left"
        places = [row.searchsorted(at, side) for row in np.atleast_2d(values)]  # few edges in a sorted row: fast
        return self.ranks[np.array(places, np.int64).reshape(*values.shape[:-1], len(at))]

    def before(self, ranks: Ints) -> Ints:
        """How many samples have a smaller forecast than the one at each rank."""
        return self.ranks[self._entries(ranks)[0]]

    def entry(self, ranks: Ints) -> Ints:
        """The entry that holds each rank; the last one where there is none."""
        return np.minimum(np.searchsorted(self.ranks, ranks, side="right") - 1, self.values.shape[-1] - 1)

    @cached_property
    def _single(self) -> bool:
        """Whether every entry is one sample, and no other sample has its forecast."""
        return self.ties is None and len(self.ranks) == self.n + 1 and bool((np.diff(self.ranks) == 1).all())

    def _entries(self, ranks: Ints) -> tuple[Ints, Ints]:
        """The first entry with the forecast that holds each rank, and the first behind them."""
        entry = self.entry(ranks)
        return (entry, entry + 1) if self.ties is None else (taken(self.ties[0], entry), taken(self.ties[1], entry))


T = TypeVar("T", Array, Totals)


def taken(rows: T, places: Ints) -> T:
    """The entries at some places: of one row that all share, or of each row.

    >>> taken(np.array([[1, 2], [3, 4]]), np.array([1, 1, 0])).tolist()
    [[2, 2, 1], [4, 4, 3]]
    """
    each = len(rows.shape) > 1 and places.ndim > 1
    return rows[np.arange(rows.shape[0])[:, None], places] if each else rows[..., places]


def _ties(values: Array) -> tuple[Ints, Ints] | None:
    """Of sorted rows, where the group of equal values that holds each begins and ends; None where all differ."""
    new = np.ones(values.shape, bool)
    np.not_equal(values[:, 1:], values[:, :-1], out=new[:, 1:])
    if new.all():
        return None
    place = np.arange(values.shape[1])
    begins = np.maximum.accumulate(np.where(new, place, 0), axis=1)
    ends = np.full(new.shape, len(place))
    ends[:, :-1] = np.where(new[:, 1:], place[1:], len(place))
    return begins, np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]


def _totals(targets: Array | Totals) -> Totals:
    return targets if isinstance(targets, Totals) else Totals.whole(targets)
