"""Bounds: what running totals can be where forecasts are counted in cells and their order inside is not known."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self, runtime_checkable

import numpy as np

from calibrant.binning import cells
from calibrant.binning.contract import RankBinning
from calibrant.binning.running import Ladder
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.selections import Mask

HALF_UNIT = 2.0**-53
"""Forecasts are summed in units of 2^-52, so that each is off by half of one at most."""
MEAN_ROOM = 2.0**-51
"""How far the float of a mean is from the mean of the forecasts, at most: half a unit, and what floats are rounded."""
MARGIN = 2.0**-40
"""More than rounding moves a sum of some thousand terms, relative to the larger of it and 1."""


@dataclass(frozen=True, eq=False)
class Cuts:
    """Where sorted samples are cut: between which ranks, and at which value if one decides it."""

    least: Ints
    most: Ints
    edges: Floats
    """The forecast at or below which samples lie before the cut; nan where a rank decides."""

    @classmethod
    def at(cls, ranks: Ints) -> Self:
        """Cuts at known ranks.

        >>> Cuts.at(np.array([0, 2])).most.tolist()
        [0, 2]
        """
        return cls(ranks, ranks, np.full(len(ranks), np.nan))


@runtime_checkable
class Bracketed(RankBinning, Protocol):
    """A binning that can say between which ranks it cuts where forecasts are in cells."""

    def possible_cuts(self, ladder: Ladder) -> Cuts:
        """Where the sorted samples may be cut."""


@runtime_checkable
class Swept(RankBinning, Protocol):
    """A binning that can say how many bins the rows may choose where forecasts are in cells."""

    def possible_bins(self, ladder: Ladder) -> tuple[int, int] | None:
        """The fewest and the most bins; None where cells do not tell."""

    def into(self, n_bins: int) -> RankBinning:
        """The binning that makes so many."""


@dataclass(frozen=True, eq=False)
class Entries:
    """What is known of the forecasts of each entry of a table: how many, what they sum to, where they lie.

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise([0, 1, 1], [.311, .312, .9]).ladders()
    >>> entries = Entries.of(ladder)
    >>> entries.counts.tolist(), entries.hits.tolist(), entries.means.round(4).tolist()
    ([2.0, 1.0], [1.0, 1.0], [0.3115, 0.9])
    """

    hidden: Mask
    counts: Floats
    hits: Floats
    outputs: Floats
    low: Floats
    """No forecast of the entry is smaller."""
    high: Floats
    spread: tuple[Floats, Floats]
    """Between what the summed squared distances of forecasts from their mean lie."""
    true_outputs: tuple[Floats, Floats]
    """Between what the summed forecasts of those that came true lie, each rounded to a unit."""
    false_outputs: tuple[Floats, Floats]
    """The same of the others."""

    @classmethod
    def of(cls, ladder: Ladder) -> Self:
        """What a table tells of its entries; a cell that holds one forecast alone is known to half a unit."""
        counts = np.diff(ladder.ranks).astype(np.float64)
        hits, outputs = (totals.differences().value for totals in (ladder.targets, ladder.outputs))
        number, means = cells.numbers(ladder.values), outputs / counts
        ends = cells.firsts()[number], cells.lasts()[number]
        near = np.clip(means - MEAN_ROOM, *ends), np.clip(means + MEAN_ROOM, *ends)
        values = ladder.values.astype(np.float64)
        low, high = (
            np.where(ladder.hidden, end, np.where(ladder.cells, middle, values))
            for end, middle in zip(ends, near, strict=True)
        )
        most = counts * np.maximum(high + HALF_UNIT - means, 0.0) * np.maximum(means - low + HALF_UNIT, 0.0)
        least = np.zeros_like(most)
        if ladder.squared_outputs is not None:
            squared = ladder.squared_outputs.value
            known, room = squared - outputs * means, 8 * HALF_UNIT * (counts + squared)
            least, most = np.maximum(known - room, 0.0), np.minimum(most, np.maximum(known + room, 0.0))
        spread = np.where(ladder.hidden, np.minimum(least, most), 0.0), np.where(ladder.hidden, most, 0.0)
        true, false = (low * hits, high * hits), (low * (counts - hits), high * (counts - hits))
        if ladder.true_outputs is not None:
            true = (ladder.true_outputs.value,) * 2
            false = ((ladder.outputs.differences() - ladder.true_outputs).value,) * 2
        return cls(ladder.hidden, counts, hits, outputs, low, high, spread, true, false)

    @property
    def means(self) -> Floats:
        """The mean forecast of each entry."""
        return self.outputs / self.counts

    def at(self, places: Ints) -> Entries:
        """The entries at some places."""
        columns = (self.counts, self.hits, self.outputs, self.low, self.high)
        counts, hits, outputs, low, high = (column[places] for column in columns)
        ranges = (self.spread, self.true_outputs, self.false_outputs)
        spread, true, false = ((least[places], most[places]) for least, most in ranges)
        return Entries(self.hidden[places], counts, hits, outputs, low, high, spread, true, false)


@dataclass(frozen=True, eq=False)
class Boxes:
    """Between what running totals lie at each cut: ranks, outcomes, and forecasts less outcomes."""

    ranks: tuple[Ints, Ints]
    targets: tuple[Floats, Floats]
    excess: tuple[Floats, Floats]

    @classmethod
    def of(cls, ladder: Ladder, cuts: Cuts) -> Self:
        """Of a question's table.

        The k smallest of n forecasts in [a, b] with sum P, mean m and squared distances V from it sum to between
        max(k a, P - (n - k) b, k m - sqrt(V k (n - k) / n)) and k m; of y outcomes they have between
        max(0, k - (n - y)) and min(k, y), tied forecasts k y / n. Where a cut at a value e may lie at several k, those
        are left out for which k forecasts up to e and n - k above it cannot sum to P.
        """
        at = np.minimum(ladder.entry(cuts.least), len(ladder.values) - 1)
        inside = cuts.most <= ladder.ranks[at + 1]
        entry, first = Entries.of(ladder).at(at), ladder.ranks[at].astype(np.float64)
        k = _feasible(entry, cuts.least - first, np.minimum(cuts.most, ladder.ranks[at + 1]) - first, cuts.edges)
        hits, excess = _in_entry(entry, k, cuts.edges)
        before = ladder.targets[at], (ladder.outputs - ladder.targets)[at]
        known = [totals.value + part for totals, part in zip(before, (hits, excess), strict=True)]
        exact = (cuts.least == cuts.most) & (~ladder.cells[at] | (k[0] == 0) | (k[0] == entry.counts))
        totals = [at(cuts.least) for at in (ladder.running_outputs, ladder.running_targets)]
        known[0] = np.where(exact, totals[1].value, known[0])
        known[1] = np.where(exact, (totals[0] - totals[1]).value, known[1])
        ranks = np.where(inside, first + k, [cuts.least, cuts.most]).astype(np.int64)
        if not inside.all():
            known = [np.where(inside, *each) for each in zip(known, _across(ladder, cuts), strict=True)]
        return cls((ranks[0], ranks[1]), (known[0][0], known[0][1]), (known[1][0], known[1][1]))

    @property
    def are_exact(self) -> bool:
        """Whether nothing is open."""
        return all(np.array_equal(low, high) for low, high in (self.ranks, self.targets, self.excess))

    @property
    def gaps(self) -> Gaps:
        """What is known of the bins between neighbouring cuts."""
        counts, hits, excess = (
            np.stack([low[1:] - high[:-1], high[1:] - low[:-1]])
            for low, high in (self.ranks, self.targets, self.excess)
        )
        room = 8 * HALF_UNIT * max(np.abs(each).max() for each in self.excess)  # large sums are rounded
        excess = np.stack([excess[0] - room, excess[1] + room])
        counts = np.maximum(counts, 0).astype(np.float64)
        few, many = np.maximum(counts, 1.0)
        low = np.where(excess[0] < 0, excess[0] / few, excess[0] / many)
        high = np.where(excess[1] > 0, excess[1] / few, excess[1] / many)
        rates = np.maximum(hits[0], 0.0) / many, hits[1] / few
        ends = (np.clip(each, floor, 1.0) for each, floor in ((low, -1), (high, -1), (rates[0], 0), (rates[1], 0)))
        return Gaps(counts[0], counts[1], *ends)


@dataclass(frozen=True, eq=False)
class Gaps:
    """Between what the sizes, the gaps (mean forecast less frequency) and the frequencies of bins lie.

    >>> gaps = Gaps(*np.array([[4.0], [4.0], [-0.1], [0.3], [0.5], [0.75]]))
    >>> gaps.least.tolist(), gaps.most.tolist()
    ([0.0], [0.3])
    """

    few: Floats
    many: Floats
    low: Floats
    high: Floats
    rarely: Floats
    often: Floats

    @property
    def least(self) -> Floats:
        """No gap is smaller in size."""
        return np.maximum(np.maximum(self.low, -self.high), 0.0)

    @property
    def most(self) -> Floats:
        """No gap is larger in size."""
        return np.maximum(-self.low, self.high)


def extreme_orders(ladder: Ladder) -> tuple[Ladder, Ladder]:
    """Two tables between which the order of outcomes lies: in each cell those that failed come first, or last.

    Their values say no more than the order.

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise([1, 0, 1], [.311, .312, .9]).ladders()
    >>> [table.targets.differences().value.tolist() for table in extreme_orders(ladder)]
    [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
    """
    counts, hits = np.diff(ladder.ranks), ladder.targets.differences()
    happened = np.where(ladder.hidden, hits.floor, 0)
    failed = np.where(ladder.hidden, counts - hits.floor - hits.fractions, 0)
    parts = [
        (failed, Totals.zeros(counts.shape)),
        (counts - failed - happened, hits - Totals.whole(happened)),  # tied ones, and a soft label
        (happened, Totals.whole(happened)),
    ]
    tables = []
    for order in (parts, parts[::-1]):
        sizes = np.stack([size for size, _ in order], axis=1).ravel()
        targets = Totals.joined([part.reshape(-1, 1) for _, part in order], axis=1).reshape(-1)[sizes > 0]
        ranks = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        values = np.arange(1, len(ranks)) / len(ranks)
        nothing = Totals.zeros(len(ranks))
        tables.append(Ladder(values, ranks, nothing, targets.cumulative(), ladder.precision))
    return tables[0], tables[1]


def variation(low: Floats, high: Floats) -> tuple[float, float]:
    """The least and the most that |c_1 - c_0| + |c_2 - c_1| + .. can be, where each c lies in its box.

    The least: keep the interval of all c with the least sum so far, and move to the nearer end of the next box only
    where they miss each other. The most is taken at ends of boxes.

    >>> variation(np.array([0., 0., -1.]), np.array([0., 1., 3.]))
    (0.0, 3.0)
    """
    least, near, far = 0.0, float(low[0]), float(high[0])
    most = np.zeros(2)
    ends = np.stack([low, high], axis=1)
    for here, there in pairwise(ends):
        start, stop = float(there[0]), float(there[1])
        if stop < near or start > far:
            step = near - stop if stop < near else start - far
            least, near = least + step, stop if stop < near else start
            far = near
        else:
            near, far = max(near, start), min(far, stop)
        most = (most[:, None] + np.abs(there - here[:, None])).max(axis=0)
    return least, float(most.max())


def outward(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds a little further apart than rounding can have moved them.

    >>> low, high = outward(np.array([0.1]), np.array([0.1]))
    >>> bool(low[0] < 0.1 < high[0])
    True
    """
    room = (np.where(np.isfinite(each), MARGIN * np.maximum(1.0, np.abs(each)), 0.0) for each in (low, high))
    return low - next(room), high + next(room)


def _feasible(entry: Entries, least: Floats, most: Floats, edges: Floats) -> Floats:
    """The least and the largest number of forecasts of an entry that can lie at or below an edge: (2, cuts)."""
    n, mean = entry.counts, entry.means
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.ceil(n * (edges - mean - 4 * HALF_UNIT) / (edges - entry.low) - 1e-6)
        high = np.floor(n * (entry.high - mean + 4 * HALF_UNIT) / (entry.high - edges) + 1e-6)
    low, high = (np.where(entry.hidden & np.isfinite(each), each, end) for each, end in ((low, least), (high, most)))
    return np.stack([np.clip(low, least, most), np.clip(high, least, most)])


def _in_entry(entry: Entries, k: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Outcomes, and forecasts less outcomes, of the k[0] to k[1] smallest forecasts of an entry: (2, cuts) each.

    As a function of k the least excess is convex and the largest concave, both in straight pieces (but for the one
    with the root, which is used where k is known): their extremes lie at the ends of k and at the corners.
    """
    n, y, total, mean = entry.counts, entry.hits, entry.outputs, entry.means
    low, high = np.maximum(entry.low - HALF_UNIT, 0.0), np.minimum(entry.high + HALF_UNIT, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        corner = np.nan_to_num((n * high - total) / (high - low))
    places = np.clip(np.stack([k[0], k[1], y, n - y, corner]), k[0], k[1])
    root = np.sqrt(np.maximum(entry.spread[1] * k[0] * (n - k[0]) / n, 0.0))
    least = np.maximum(places * low, total - (n - places) * high)
    least = np.where(k[0] == k[1], np.maximum(least, places * mean - root), least)
    most = places * mean
    cut = places * edges + np.minimum(0.0, n * (mean - edges)) + n * 2 * HALF_UNIT
    most = np.where(np.isnan(edges), most, np.minimum(most, cut))
    fewest = np.where(entry.hidden, np.maximum(0.0, places - (n - y)), places * y / n)
    largest = np.where(entry.hidden, np.minimum(places, y), places * y / n)
    hits = np.stack([fewest[0], largest[1]])
    return hits, np.stack([(least - largest).min(axis=0), (most - fewest).max(axis=0)])


def _across(ladder: Ladder, cuts: Cuts) -> tuple[Floats, Floats]:
    """As `_in_entry`, of cuts that may lie in several entries: totals rise with the rank."""
    ends = [Boxes.of(ladder, Cuts.at(ranks)) for ranks in (cuts.least, cuts.most)]
    hits = np.stack([ends[0].targets[0], ends[1].targets[1]])
    outputs = ends[0].excess[0] + ends[0].targets[1], ends[1].excess[1] + ends[1].targets[0]
    return hits, np.stack([outputs[0] - hits[1], outputs[1] - hits[0]])
