"""What a binning is: how samples are pooled, one batch at a time."""

from __future__ import annotations

from typing import Never, Protocol, runtime_checkable

import numpy as np

from calibrant.binning.ladder import Ladders
from calibrant.bins import Bins
from calibrant.kernels.totals import Ints
from calibrant.summaries import Summary
from calibrant.views import View

MOST_BINS = 1_000_000
STREAM = 1 << 22
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
class CutsEach(Protocol):
    """A binning of an event that cuts many replicates at once."""

    def cuts_of_each(self, ladders: Ladders) -> tuple[Ints, Ints]:
        """The ranks at which each replicate is cut, and how many bins each gets."""


def enclosed(inner: Ints, n: int) -> Ints:
    """Cuts with the first and the last rank around them."""
    ends = (np.full((*inner.shape[:-1], 1), rank) for rank in (0, n))
    return np.concatenate([next(ends), inner, next(ends)], axis=-1)


def of_each(cuts: Ints, count: int) -> tuple[Ints, Ints]:
    """The cuts of each of so many replicates, and how many bins they make."""
    return np.broadcast_to(cuts, (count, cuts.shape[-1])), np.full(count, cuts.shape[-1] - 1)


def counted_bins(count: int, kind: str) -> str:
    """So many bins of a kind, in words."""
    return f"{count} {kind} bin{'' if count == 1 else 's'}"
