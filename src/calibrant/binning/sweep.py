"""The sweep: as many bins as the data allow without breaking monotonicity."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from calibrant.binning.contract import TABLE
from calibrant.binning.ladder import Ladder, Ladders
from calibrant.binning.ranked import ByRank, EqualMass
from calibrant.bins import check_memory
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints
from calibrant.selections import Mask
from calibrant.specification.facts import Facts


@runtime_checkable
class Countable(Protocol):
    """A binning of an event that makes as many bins as it is told."""

    @property
    def n_bins(self) -> int:
        """How many."""

    def cuts(self, ladder: Ladder | Ladders) -> Ints:
        """The ranks at which one question's sorted samples are cut."""


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

    facts: ClassVar[Facts] = Facts("binning", chooses=True, reads=TABLE)

    def __post_init__(self) -> None:
        if isinstance(self.binning, type) or not isinstance(self.binning, Countable):
            expected = "takes a binning of an event with a number of bins"
            raise CalibrationInputError("Sweep", expected, got=repr(self.binning), hint="EqualMass() or EqualWidth()")

    def cuts(self, ladder: Ladder) -> Ints:
        """The ranks at which the chosen number of bins cuts the sorted samples."""
        n_bins = self.choose(ladder)
        check_memory(1, n_bins, 1)
        return self.cuts_into(ladder, n_bins)

    def cuts_of_each(self, ladders: Ladders) -> tuple[Ints, Ints]:
        """The ranks at which each of many replicates is cut, padded with empty bins, and how many bins it chose."""
        n = ladders.n
        chosen = np.where((np.diff(ladders.rates, axis=1) >= 0).all(axis=1), n, 1)
        left = np.flatnonzero(chosen < n)
        for n_bins in range(2, n + 1):
            left = left[self._monotone_each(ladders, n_bins, left)]
            if not len(left):
                break
            chosen[left] = n_bins
        cuts = np.full((ladders.count, int(chosen.max()) + 1), n)
        for n_bins in np.unique(chosen):
            rows = np.flatnonzero(chosen == n_bins)
            cuts[rows, : n_bins + 1] = self.cuts_into(ladders.some(rows), int(n_bins))
        return cuts, chosen

    def _monotone_each(self, ladders: Ladders, n_bins: int, rows: Ints) -> Mask:
        """Which of some replicates have mean labels that never fall from one non-empty bin to the next."""
        cuts = self.cuts_into(ladders.some(rows), n_bins)
        cuts = np.broadcast_to(cuts, (len(rows), n_bins + 1))
        sizes = np.diff(cuts, axis=1)
        targets = ladders.targets_at(cuts, rows).differences()
        tolerance = np.where(targets.fractions.any(axis=1), 1e-12, 0.0)[:, None]  # a cut fell among equal forecasts
        rates = np.where(sizes > 0, targets.value / np.maximum(sizes, 1), -np.inf)
        before = np.maximum.accumulate(rates, axis=1)[:, :-1]
        return ((rates[:, 1:] >= before - tolerance) | (sizes[:, 1:] == 0)).all(axis=1)

    def choose(self, ladder: Ladder) -> int:
        """The number of bins that the sweep ends with."""
        if ladder.n == 0:
            return 1
        if _rises(ladder.rates, 0.0):
            return ladder.n  # sorted outcomes rise already: every number of bins does
        for n_bins in range(2, ladder.n + 1):
            if not self._monotone(ladder, n_bins):
                return n_bins - 1
        return ladder.n

    def _monotone(self, ladder: Ladder, n_bins: int) -> bool:
        ranks = self.cuts_into(ladder, n_bins)
        ranks = ranks[np.append(True, np.diff(ranks) > 0)]
        targets = ladder.running_targets(ranks).differences()
        return _rises(targets.value / np.diff(ranks), 0.0 if targets.is_whole else 1e-12)

    def cuts_into(self, ladder: Ladder | Ladders, n_bins: int) -> Ints:
        """The ranks at which so many bins cut the sorted samples."""
        return dataclasses.replace(self.binning, n_bins=n_bins).cuts(ladder)  # type: ignore[type-var]

    def __str__(self) -> str:
        kind = str(dataclasses.replace(self.binning, n_bins=2)).removeprefix("2 ")  # type: ignore[type-var]
        return f"{kind} by monotonic sweep"


def _rises(rates: Floats, tolerance: float) -> bool:
    return bool(np.all(rates[1:] >= rates[:-1] - tolerance))
