"""Ladders: sorted forecasts with running totals, from which any binning of an event follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from calibrant import kernels
from calibrant.door.arrays import Array
from calibrant.kernels.caching import cached_property
from calibrant.kernels.precision import Precision
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.selections import Mask


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
    squares: Floats | None = None
    """Of one question: summed squares of the weights of each entry; None where every weight was 1."""
    closed: Mask | None = None
    """Which entries are cells of neighbouring forecasts; None where none is."""
    true_outputs: Totals | None = None
    squared_outputs: Totals | None = None
    """Where entries may be cells, as in `Forecasts`."""
    alike: Mask | None = None
    """Where entries may be cells, which of them hold one forecast alone, as their marks tell."""
    precisions: tuple[Precision, ...] = ()
    """Of one question: how finely some forecasts are known, the coarsest first."""

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

    @cached_property
    def counts(self) -> Array:
        """How many samples each entry of one question has."""
        return np.diff(self.ranks)

    @cached_property
    def hits(self) -> Array:
        """How many of them came true, where that is a whole number."""
        return self.targets.differences().floor

    @property
    def targets_are_whole(self) -> bool:
        """Whether they are counts, as under hard labels."""
        return self.targets.is_whole

    @property
    def happened(self) -> Totals:
        """How many samples came true: (1,)."""
        return self._targets_before(np.array([len(self.values)]))

    @property
    def rates(self) -> Floats:
        """How often the forecast of each entry came true."""
        if self.ties is None:
            return self.rates_of(0, self.values.shape[-1])
        (begin, end), running = self.ties, self.targets.value  # whole
        return (taken(running, end) - taken(running, begin)) / (end - begin)

    def rates_of(self, start: int, stop: int) -> Floats:
        """How often each of some entries came true, ties apart."""
        some = slice(start, stop + 1)
        return self.targets[..., some].differences().value / np.diff(self.ranks[some])

    def some(self, rows: Array) -> Ladder:
        """Some of the replicates."""
        ties = None if self.ties is None else (self.ties[0][rows], self.ties[1][rows])
        return Ladder(self.values[rows], self.ranks, self.outputs[rows], self.targets[rows], self.precision, ties)

    @property
    def cells(self) -> Mask:
        """Which entries are cells of neighbouring forecasts, whose order is not known."""
        return np.zeros(len(self.values), bool) if self.closed is None else self.closed

    @property
    def hidden(self) -> Mask:
        """Which entries are cells of several forecasts, whose order is not known."""
        return self.cells if self.alike is None else self.cells & ~self.alike

    @property
    def forecasts(self) -> Floats:
        """The forecast of each entry; the mean forecast of a cell."""
        if self.closed is None:
            return self.values.astype(np.float64)
        means = self.outputs.differences().value / np.diff(self.ranks)
        return np.where(self.closed, means, self.values.astype(np.float64))

    def holding(self, ranks: Ints) -> Mask:
        """The entries next to cuts at these ranks."""
        held = np.zeros(len(self.values), bool)
        beside = np.concatenate([ranks - 1, ranks])
        held[self.entry(beside[(beside >= 0) & (beside < self.n)])] = True
        return held

    def running_targets(self, ranks: Ints) -> Totals:
        """The targets of the first samples, up to each rank.

        A rank c inside the tie group [a, z) of total S adds S * (c - a) / (z - a), rounded to a unit: tied
        forecasts share their group's mean label.
        """
        if self._single:
            return taken(self.targets, ranks)
        entry, after = self._entries(ranks)
        first, before = self._ranks_before(entry), self._targets_before(entry)
        return before + (self._targets_before(after) - before).share(ranks - first, self._ranks_before(after) - first)

    def running_outputs(self, ranks: Ints) -> Totals:
        """The summed forecasts of the first samples, up to each rank."""
        if self._single or self.ties is not None:
            return taken(self.outputs, ranks)
        entry, after = self._entries(ranks)
        is_whole = ranks == self._ranks_before(after)  # of cells, more than their value is known
        inside = Totals.of(self.values[entry]).times(np.where(is_whole, 0, ranks - self._ranks_before(entry)))
        return self._outputs_before(entry + is_whole) + inside

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
        return self._ranks_before(np.array(places, np.int64).reshape(*values.shape[:-1], len(at)))

    def before(self, ranks: Ints) -> Ints:
        """How many samples have a smaller forecast than the one at each rank."""
        return self._ranks_before(self._entries(ranks)[0])

    def entry(self, ranks: Ints) -> Ints:
        """The entry that holds each rank; the last one where there is none."""
        return np.minimum(np.searchsorted(self.ranks, ranks, side="right") - 1, self.values.shape[-1] - 1)

    def _ranks_before(self, entries: Ints) -> Ints:
        return self.ranks[entries]

    def _outputs_before(self, entries: Ints) -> Totals:
        return taken(self.outputs, entries)

    def _targets_before(self, entries: Ints) -> Totals:
        return taken(self.targets, entries)

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
