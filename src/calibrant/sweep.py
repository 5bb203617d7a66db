"""The sweep: as many bins as the data allow without breaking monotonicity."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from calibrant.binning import ByRank, EqualMass, EqualWidth, cuts_at, cuts_by_rank
from calibrant.exceptions import CalibrationInputError
from calibrant.forecasts import Ladder
from calibrant.totals import Floats, Ints


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

    binning: EqualMass | EqualWidth = dataclasses.field(default_factory=EqualMass)

    def __post_init__(self) -> None:
        if not isinstance(self.binning, (EqualMass, EqualWidth)):
            raise CalibrationInputError("Sweep", "takes EqualMass() or EqualWidth()", got=repr(self.binning))

    def cuts(self, ladder: Ladder) -> Ints:
        """The ranks at which the chosen number of bins cuts the sorted samples."""
        return self._cuts(ladder, self.choose(ladder))

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
        ranks = self._cuts(ladder, n_bins)
        ranks = ranks[np.append(True, np.diff(ranks) > 0)]
        targets = ladder.running_targets(ranks).differences()
        fractions = bool(targets.lo.any() or (targets.hi & ((1 << 26) - 1)).any())
        return _rises(targets.value / np.diff(ranks), 1e-12 if fractions else 0.0)

    def _cuts(self, ladder: Ladder, n_bins: int) -> Ints:
        if isinstance(self.binning, EqualMass):
            return cuts_by_rank(ladder, n_bins)
        return cuts_at(ladder, np.arange(n_bins + 1) / n_bins, self.binning.closed)

    def __str__(self) -> str:
        kind = "equal-mass" if isinstance(self.binning, EqualMass) else "equal-width"
        return f"{kind} bins by monotonic sweep"


def _rises(rates: Floats, tolerance: float) -> bool:
    return bool(np.all(rates[1:] >= rates[:-1] - tolerance))
