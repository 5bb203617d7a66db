"""The sweep: as many bins as the data allow without breaking monotonicity."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from calibrant.binning.contract import TABLE, RankBinning
from calibrant.binning.ranked import ByRank, EqualMass
from calibrant.binning.running import Ladder
from calibrant.bins import check_memory
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.selections import Mask
from calibrant.specification.facts import Facts, facts_of

FORGIVEN = 1e-12
"""How much less a frequency may be, by rounding, where a cut falls among tied forecasts."""
MOST_SWEPT = 1024
"""Numbers of bins that are looked at in cells."""
TOGETHER = 16
"""Numbers of bins of one table that are looked at together."""
SOME = 4096
"""Entries of a large table among which outcomes mostly fall somewhere."""


@runtime_checkable
class Countable(RankBinning, Protocol):
    """A binning of an event that makes as many bins as it is told."""

    @property
    def n_bins(self) -> int:
        """How many."""


@dataclass(frozen=True)
class Sweep(ByRank):
    """The largest number of bins up to which every smaller number, too, has non-decreasing bin frequencies.

    For b = 2, 3, .. n the samples are binned by `binning` (its own n_bins plays no role); the first b
    whose mean labels decrease between neighbouring non-empty bins ends the sweep. The number chosen
    is `requested` in the bins.

    References: Roelofs et al. (2022), algorithm 1.

    >>> import calibrant as cal
    >>> result = cal.ECE_SWEEP([0, 0, 1, 0, 1, 1], [.1, .2, .3, .4, .5, .6])
    >>> result.value, result.details["n_bins"]
    (0.25, 3)
    """

    binning: Countable = dataclasses.field(default_factory=EqualMass)

    @property
    def facts(self) -> Facts:  # type: ignore[override]  # what it sweeps decides
        """What is known of it."""
        return Facts("binning", chooses=True, reads=TABLE, cuts=facts_of(self.binning).cuts and "values")

    def __post_init__(self) -> None:
        if isinstance(self.binning, type) or not isinstance(self.binning, Countable):
            expected = "takes a binning of an event with a number of bins"
            raise CalibrationInputError("Sweep", expected, got=repr(self.binning), hint="EqualMass() or EqualWidth()")

    def cuts(self, ladder: Ladder) -> Ints:
        """The ranks at which the chosen number of bins cuts the sorted samples of one table."""
        (n_bins,) = self.choose(ladder).tolist()
        check_memory(1, n_bins, 1)
        return self.into(n_bins).cuts(ladder)

    def choose(self, ladder: Ladder) -> Ints:
        """The number of bins that the sweep of each replicate ends with; of one table, one number."""
        n, risen = ladder.n, _never_fall(ladder)
        chosen = np.where(risen, max(n, 1), 1)  # sorted outcomes rise already: every number of bins does
        if ladder.values.ndim == 1:
            return chosen if risen.all() else np.array([self._chosen(ladder)])
        left = np.flatnonzero(~risen)
        each, rising = ladder.some(left) if risen.any() else ladder, ~risen[left]
        for n_bins in range(2, n + 1 if len(left) else 2):
            cuts = self.into(n_bins).cuts(each)
            rising = rising & _rises(cuts, each.running_targets(cuts))
            if not rising.any():
                break
            chosen[left[rising]] = n_bins
            if 2 * rising.sum() < len(rising):  # those that are done cost less than copies of the others
                left, each, rising = left[rising], each.some(rising), rising[rising]
        return chosen

    def _chosen(self, ladder: Ladder) -> int:
        """The number of bins of one table, of which several are looked at together."""
        for first in range(2, ladder.n + 1, TOGETHER):
            numbers = range(first, min(first + TOGETHER, ladder.n + 1))
            cuts = [self.into(n_bins).cuts(ladder) for n_bins in numbers]
            targets, start = ladder.running_targets(np.concatenate(cuts)), 0
            for n_bins, each in zip(numbers, cuts, strict=True):
                if not _rises(each, targets[start : start + len(each)]):
                    return n_bins - 1
                start += len(each)
        return ladder.n

    def undecided(self, ladder: Ladder) -> Mask:
        """The cells at cuts between bins of which it is open whether their frequencies rise; else those of the choice.

        All cells, where no number of bins up to 1024 has frequencies that certainly fall, or cuts follow values.
        """
        wanted = np.zeros_like(ladder.cells)
        for n_bins, cuts in self._looked_at(ladder):
            doubtful, is_open, falls = _compared(ladder, cuts)
            if falls:
                chosen = self.into(n_bins - 1).cuts(ladder)
                return (wanted if wanted.any() else ladder.holding(chosen)) & ladder.cells
            near = np.unique(doubtful[:, None] + np.arange(3))
            near = near[is_open[near]]
            if len(doubtful) and not len(near):
                break
            wanted[ladder.entry(cuts[near])] = True
        return ladder.cells

    def possible_bins(self, ladder: Ladder) -> tuple[int, int] | None:
        """The fewest and the most bins that the sweep of the rows can end with; None where cells do not tell.

        >>> import calibrant as cal
        >>> first = cal.ECE_SWEEP.refine()
        >>> (ladder,) = first.summarise([0, 1, 0, 1, 0, 1], [.311, .312, .5, .6, .7, .9]).ladders()
        >>> cal.Sweep().possible_bins(ladder)
        (3, 3)
        """
        if ladder.n == 0:
            return 1, 1
        tied, fewest, n_bins = dataclasses.replace(ladder, closed=ladder.hidden), None, 1
        for n_bins, cuts in self._looked_at(tied):
            doubtful, _, falls = _compared(tied, cuts)
            if falls:
                return fewest or n_bins - 1, n_bins - 1
            fewest = fewest or (n_bins - 1 if len(doubtful) else None)
        return (fewest or n_bins, n_bins) if n_bins == ladder.n else None

    def _looked_at(self, ladder: Ladder) -> Iterator[tuple[int, Ints]]:
        """Numbers of bins from 2 to 1024, and their cuts; none where cuts follow values."""
        most = min(ladder.n, MOST_SWEPT) if facts_of(self.binning).cuts == "ranks" else 1
        for n_bins in range(2, most + 1):
            cuts = self.into(n_bins).cuts(ladder)
            if not np.diff(cuts).all():
                return
            yield n_bins, cuts

    def into(self, n_bins: int) -> Countable:
        """The binning that makes so many bins."""
        return dataclasses.replace(self.binning, n_bins=n_bins)  # type: ignore[type-var]

    def __str__(self) -> str:
        return f"{str(self.into(2)).removeprefix('2 ')} by monotonic sweep"


def _never_fall(ladder: Ladder) -> Mask:
    """Of which replicates the outcomes of sorted forecasts never fall; of one large table, some entries mostly tell."""
    if ladder.ties is None and len(ladder.values) > SOME:
        middle = len(ladder.values) // 2 - SOME // 2
        falls = (np.diff(ladder.rates_of(middle, middle + SOME)) < 0).any(axis=-1)
        if falls.all():
            return np.zeros(falls.size, bool)
    return np.atleast_1d((np.diff(ladder.rates, axis=-1) >= 0).all(axis=-1))


def _compared(ladder: Ladder, cuts: Ints) -> tuple[Ints, Mask, bool]:
    """Pairs of neighbouring bins that may fall, cuts at which cells hide outcomes, and whether a pair surely falls."""
    low, high, rest = _bounds(ladder, cuts)
    gains = (low[1:] - high[:-1], high[1:] - low[:-1])
    least, largest = ((gain + np.diff(rest)) / np.diff(cuts) for gain in gains)
    forgiven = np.where((rest[:-2] > 0) | (rest[1:-1] > 0) | (rest[2:] > 0), FORGIVEN / 2, 0.0)
    (doubtful,) = np.nonzero(~(least[1:] >= largest[:-1] - forgiven))
    return doubtful, high > low, bool((largest[1:] < least[:-1] - 2 * FORGIVEN).any())


def _bounds(ladder: Ladder, cuts: Ints) -> tuple[Ints, Ints, Floats]:
    """How many of the first samples can have come true, at least and at most, and what both have beyond whole numbers.

    Inside a cell, the order of those that came true and of the others is not known.
    """
    known, entry = ladder.running_targets(cuts), ladder.entry(cuts)
    before, after = (ladder.targets[place] for place in (entry, entry + 1))
    closed, inside, behind = ladder.cells[entry], cuts - ladder.ranks[entry], ladder.ranks[entry + 1] - cuts
    low = np.where(closed, np.maximum(before.floor, after.floor - behind), known.floor)
    most = np.minimum(before.floor + before.fractions + inside, after.floor + after.fractions)
    rest = np.where(closed, 0.0, (known - Totals.whole(known.floor)).value)
    return low, np.where(closed, most, known.floor), rest


def _rises(cuts: Ints, running: Totals) -> Mask:
    """Which rows have mean labels that never fall from one non-empty bin to the next; running totals up to each cut."""
    sizes, targets = np.diff(cuts), running.differences()
    tolerance = np.where(targets.fractions.any(axis=-1, keepdims=True), FORGIVEN, 0.0)  # cuts among ties are rounded
    rates = np.where(sizes > 0, targets.value / np.maximum(sizes, 1), -np.inf)
    before = np.maximum.accumulate(rates, axis=-1)[..., :-1]
    rising: Mask = ((rates[..., 1:] >= before - tolerance) | (sizes[..., 1:] == 0)).all(axis=-1)
    return rising
