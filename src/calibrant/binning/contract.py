"""What a binning is: how samples are pooled, one batch at a time."""

from __future__ import annotations

from typing import Never, Protocol, runtime_checkable

import numpy as np

from calibrant.binning.running import Ladder
from calibrant.bins import Bins
from calibrant.kernels.totals import Ints
from calibrant.selections import Mask
from calibrant.summaries import Summary
from calibrant.views import View

MOST_BINS = 1_000_000
STREAM = 1 << 21
"""Forecasts that are viewed at once where the state stays small."""
TABLE = "table of forecasts"
"""What everything that follows from the sorted forecasts of an event reads."""


class Binning(Protocol):
    """How samples are pooled: a summary of each batch that adds, and the bins that follow from the sum."""

    @property
    def block(self) -> int | None:
        """Forecasts to view at once; None where the summary keeps all samples anyway."""

    def summarise(self, view: View) -> Summary:
        """What must be kept of a batch."""

    def conclude(self, summary: Never) -> Bins:
        """The bins of all batches together; it gets what it made, whatever that is."""

    def assign(self, view: View) -> Ints:
        """The bin of each answer (n, v); -1 where the view drops it."""


def bins_of(binning: Binning, summary: Summary) -> Bins:
    """The bins that a binning makes of a summary of its own."""
    return binning.conclude(summary)  # type: ignore[arg-type]


@runtime_checkable
class RankBinning(Binning, Protocol):
    """A binning that cuts the sorted samples of an event."""

    def cuts(self, ladder: Ladder) -> Ints:
        """The ranks at which sorted samples are cut."""


@runtime_checkable
class Refinable(RankBinning, Protocol):
    """A binning that can say which cells of neighbouring forecasts hide something from it."""

    def undecided(self, ladder: Ladder) -> Mask:
        """The cells that must be opened for the bins to be those of the forecasts themselves."""


@runtime_checkable
class Choosing(RankBinning, Protocol):
    """A binning that lets the samples choose how many bins there are."""

    def choose(self, ladder: Ladder) -> Ints:
        """The number of bins of each replicate; of one table, one number."""

    def into(self, n_bins: int) -> RankBinning:
        """The binning that makes so many."""


def enclosed(inner: Ints, n: int) -> Ints:
    """Cuts with the first and the last rank around them."""
    ends = (np.full((*inner.shape[:-1], 1), rank) for rank in (0, n))
    return np.concatenate([next(ends), inner, next(ends)], axis=-1)


def counted_bins(count: int, kind: str) -> str:
    """So many bins of a kind, in words."""
    return f"{count} {kind} bin{'' if count == 1 else 's'}"
