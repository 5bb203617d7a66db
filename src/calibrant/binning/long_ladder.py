"""Long ladders: of many distinct forecasts, running totals are made only where somebody asks for them."""

from __future__ import annotations

import numpy as np

from calibrant import kernels
from calibrant.binning.running import Ladder
from calibrant.door.arrays import Array
from calibrant.kernels.caching import cached_property
from calibrant.kernels.precision import DOUBLE, Precision
from calibrant.kernels.totals import Floats, Ints, Totals

LONG = 1 << 16
"""Distinct forecasts from which on running totals are made when they are asked for."""
STEP = 64
"""Entries between those whose running totals a long ladder keeps."""
COST = 512
"""Entries whose running totals take about as long as those of one place alone."""


def ladder_of(values: Array, counts: Array, hits: Array, precisions: tuple[Precision, ...]) -> Ladder:
    """One question's distinct forecasts in order, how often each was made and came true, without weights.

    >>> ladder = ladder_of(np.array([.25, .5]), np.array([1, 3]), np.array([0, 2]), (DOUBLE,))
    >>> ladder.ranks.tolist(), ladder.outputs.value.tolist(), ladder.targets.value.tolist()
    ([0, 1, 4], [0.0, 0.25, 1.75], [0.0, 0.0, 2.0])
    """
    if len(values) > LONG:
        return LongLadder(values, counts, hits, precisions)
    running = _totals_at_every(1, values, counts, hits)
    return Ladder(values, *running, next(iter(precisions), DOUBLE), precisions=precisions)


def _totals_at_every(step: int, values: Array, counts: Array, hits: Array) -> tuple[Ints, Totals, Totals]:
    """How many samples lie before every so manieth entry, their outputs and their targets; and all."""
    ranks, hi, lo, came = kernels.running(values, counts, hits, step)
    return ranks, Totals(hi, lo), Totals(came, np.zeros_like(came))


class LongLadder(Ladder):
    """One question's many distinct forecasts with their counts and hits; running totals are made when asked for.

    A few of them, at every 64th entry, are enough to tell those at some ranks.
    """

    targets_are_whole = True

    def __new__(cls, *columns: object, **fields: object) -> Ladder:  # type: ignore[misc]
        """Without columns, a ladder of these fields: so `dataclasses.replace` makes one."""
        return super().__new__(cls) if columns else Ladder(**fields)  # type: ignore[arg-type]

    def __init__(self, values: Array, counts: Array, hits: Array, precisions: tuple[Precision, ...]) -> None:
        known = {"values": values, "counts": counts, "hits": hits, "precisions": precisions, "precision": precisions[0]}
        vars(self).update(known)

    def __getattr__(self, name: str) -> object:
        if name not in ("ranks", "outputs", "targets"):
            raise AttributeError(name)
        totals = _totals_at_every(1, self.values, self.counts, self.hits)
        vars(self).update(zip(("ranks", "outputs", "targets"), totals, strict=True))
        return vars(self)[name]

    @cached_property
    def _marks(self) -> tuple[Ints, Totals, Totals]:
        return _totals_at_every(STEP, self.values, self.counts, self.hits)

    @property
    def n(self) -> int:
        """How many samples there are."""
        return int(self._marks[0][-1])

    def rates_of(self, start: int, stop: int) -> Floats:
        """How often each of some entries came true."""
        return self.hits[start:stop] / self.counts[start:stop]

    def running_targets(self, ranks: Ints) -> Totals:
        """As `Ladder`, in one look at the entries around each rank."""
        if self._is_made_for(ranks):
            return super().running_targets(ranks)
        entry, first, hits = self._found(ranks)
        return Totals.whole(hits) + Totals.whole(self.hits[entry]).share(ranks - first, self.counts[entry])

    def entry(self, ranks: Ints) -> Ints:
        """The entry that holds each rank; the last one where there is none."""
        return super().entry(ranks) if self._is_made_for(ranks) else self._found(ranks)[0]

    def _found(self, ranks: Ints) -> tuple[Ints, Ints, Ints]:
        """The entry that holds each rank, how many samples lie before it, and their hits; all lie before the end."""
        marks, _, hits = self._marks
        block = np.clip(np.searchsorted(marks, ranks, side="right") - 1, 0, len(marks) - 2)
        _, counts, happened = self._of_blocks(block, STEP)
        is_before = marks[block][..., None] + counts.cumsum(-1) <= ranks[..., None]
        first, before = ((each * is_before).sum(-1) for each in (counts, happened))
        entry = np.minimum(block * STEP + is_before.sum(-1), len(self.values) - 1)
        return entry, marks[block] + first, hits[block].floor + before

    def _ranks_before(self, entries: Ints) -> Ints:
        if self._is_made_for(entries):
            return super()._ranks_before(entries)
        block = entries // STEP
        return self._marks[0][block] + self._of_blocks(block, entries % STEP)[1].sum(-1)

    def _outputs_before(self, entries: Ints) -> Totals:
        if self._is_made_for(entries):
            return super()._outputs_before(entries)
        block = entries // STEP
        places, counts, _ = self._of_blocks(block, entries % STEP)
        return self._marks[1][block] + Totals.of(self.values[places]).times(counts).sum(-1)

    def _targets_before(self, entries: Ints) -> Totals:
        if self._is_made_for(entries):
            return super()._targets_before(entries)
        block = entries // STEP
        return self._marks[2][block] + Totals.whole(self._of_blocks(block, entries % STEP)[2].sum(-1))

    def _is_made_for(self, places: Ints) -> bool:
        """Whether running totals of all entries are there, or would take no longer than those of so many places."""
        return "ranks" in vars(self) or places.size * COST > len(self.values)

    def _of_blocks(self, block: Ints, size: Ints | int) -> tuple[Ints, Ints, Ints]:
        """The first entries of some blocks (b, 64), their counts and hits; those of the others are 0."""
        inside = np.arange(STEP)
        places = block[..., None] * STEP + inside
        there = (inside < np.asarray(size)[..., None]) & (places < len(self.values))
        places = np.minimum(places, len(self.values) - 1)
        return places, *(each[places].astype(np.int64) * there for each in (self.counts, self.hits))

    @property
    def _single(self) -> bool:  # looking for ties would take longer than allowing for them
        return False
