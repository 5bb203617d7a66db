"""Binnings of events by rank: all samples are kept, as the table of distinct forecasts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant import kernels
from calibrant.binning.bounds import Cuts
from calibrant.binning.contract import MOST_BINS, TABLE, counted_bins, enclosed
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.binning.unsorted import Unsorted, cut_at_ranks, suits
from calibrant.bins import Bins, check_memory
from calibrant.checks import whole
from calibrant.kernels.totals import Ints, Totals
from calibrant.selections import Mask
from calibrant.specification.facts import Facts
from calibrant.views import View

FEW_CUTS = 64
"""Bins into which one question is cut without its table; into more, the sorted table is cut sooner."""


class ByRank(ABC):
    """Binnings of events that cut the sorted samples: all of them are kept, as the table of distinct forecasts."""

    facts: ClassVar[Facts] = Facts("binning", reads=TABLE)
    block: ClassVar[None] = None

    def summarise(self, view: View) -> Forecasts:
        """The table of distinct forecasts; of many questions on a device, what will make it."""
        return Unsorted(view) if suits(view) else Forecasts.of(view, type(self).__name__)

    def conclude(self, summary: Forecasts) -> Bins:
        """Cut each question's samples."""
        if isinstance(summary, Unsorted) and self.facts.cuts == "ranks":
            return cut_at_ranks(summary.view, self.cuts(summary.counted))
        return summary.cut(self.cuts)

    @abstractmethod
    def cuts(self, ladder: Ladder) -> Ints:
        """The ranks at which sorted samples are cut."""

    def assign(self, view: View) -> Ints:
        """The bin of each answer, by its rank; among tied forecasts, earlier rows go to lower bins."""
        codes = np.full(view.outputs.shape[:2], -1)
        for question, ladder in enumerate(self.summarise(view).ladders()):
            rows = view.rows_of(question)
            order = rows[np.argsort(view.outputs[rows, question % view.v, 0], kind="stable")]
            weight = np.ones(len(order)) if view.weight is None else view.weight[order]
            rank = np.cumsum(weight) - weight  # whole weights take several ranks
            codes[order, question % view.v] = np.searchsorted(self.cuts(ladder)[1:-1], rank, side="right")
        return codes


class AtRanks(ByRank):
    """Binnings whose cuts can be told from cells, but for where exactly they fall in the cells that hold them."""

    def undecided(self, ladder: Ladder) -> Mask:
        """The cells next to cuts."""
        return ladder.holding(self.cuts(ladder)) & ladder.cells


@dataclass(frozen=True)
class EqualMass(AtRanks):
    """n_bins bins of equally many samples, by rank: bin k starts at rank ceil(k n / b).

    Sizes differ by at most one. Tied forecasts share their mean label where a cut falls among them,
    so that row order cannot matter. More bins than samples leaves bins empty.

    >>> import calibrant as cal
    >>> cal.ADAPTIVE_ECE([1, 0, 1], [.9, .2, .85]).bins.counts.sum()
    np.float64(3.0)
    """

    n_bins: int = 15
    facts: ClassVar[Facts] = Facts("binning", reads=TABLE, cuts="ranks")

    def __post_init__(self) -> None:
        whole(self.n_bins, "n_bins", 1, MOST_BINS)

    def cuts(self, ladder: Ladder) -> Ints:
        """The ranks ceil(k n / b)."""
        return self._ranks(ladder.n)

    def _ranks(self, n: int) -> Ints:
        steps = np.arange(self.n_bins + 1)
        if n * self.n_bins >= 1 << 62:
            steps = steps.astype(object)
        return (-(-steps * n // self.n_bins)).astype(np.int64)  # ceil(k n / b) in integers

    def at_once(self, view: View) -> Bins | None:
        """The bins of plain events, by what lies before each cut."""
        if suits(view):
            return cut_at_ranks(view, self._ranks(len(view.outputs)))
        if not view.is_plain_events or not isinstance(view.outputs, np.ndarray):
            return None
        if view.v == 1 and self.n_bins > FEW_CUTS:
            return None
        n, v, _ = view.outputs.shape
        check_memory(v, self.n_bins, 1)
        cuts = self._ranks(n)
        hi, lo, before, hits, inside, size, at, last = kernels.column_cuts(view.outputs[:, :, 0], view.targets, cuts)
        outputs = Totals(hi, lo).differences()
        targets = (Totals.whole(before) + Totals.whole(hits).share(inside, np.maximum(size, 1))).differences()
        counts = np.broadcast_to(np.diff(cuts), (v, self.n_bins))
        low, high = (np.where(counts > 0, ends, np.nan) for ends in (at[:, :-1], last[:, 1:]))
        sums = (Totals.whole(counts), outputs.reshape(v, -1, 1), targets.reshape(v, -1, 1))
        return Bins(view.about, *sums, np.full(v, self.n_bins), low, high)

    def possible_cuts(self, ladder: Ladder) -> Cuts:
        """The same ranks: their number alone says where they are."""
        return Cuts.at(self.cuts(ladder))

    def __str__(self) -> str:
        return counted_bins(self.n_bins, "equal-mass")


@dataclass(frozen=True)
class Quantiles(AtRanks):
    """n_bins bins cut at values: edge i is the sorted value at index round(i n / b); ties stay together.

    A forecast goes to the bin numbered by how many edges are at or below it; bins may be empty.
    References: Nixon et al. (2019), as their code bins.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(binning=cal.Quantiles(2))
    >>> metric([1, 0, 1, 1], [.9, .2, .9, .9]).bins.counts.tolist()
    [[1.0, 3.0]]
    """

    n_bins: int = 15
    facts: ClassVar[Facts] = Facts("binning", reads=TABLE, cuts="values")

    def __post_init__(self) -> None:
        whole(self.n_bins, "n_bins", 1, MOST_BINS)

    def cuts(self, ladder: Ladder) -> Ints:
        """The ranks at which the values at equally spaced ranks cut the sorted samples."""
        if ladder.n == 0:
            return np.zeros(self.n_bins + 1, np.int64)
        return enclosed(ladder.before(self._wanted(ladder.n)), ladder.n)

    def possible_cuts(self, ladder: Ladder) -> Cuts:
        """A value in a cell cuts before it: between the first of the cell and itself."""
        wanted, cuts = self._wanted(ladder.n), self.cuts(ladder)
        most = np.where(ladder.hidden[ladder.entry(wanted)], wanted, cuts[1:-1])
        return Cuts(cuts, enclosed(most, ladder.n), np.full(len(cuts), np.nan))

    def _wanted(self, n: int) -> Ints:
        """The ranks of the values at which samples are cut."""
        wanted = np.rint(np.arange(1, self.n_bins) * n / self.n_bins).astype(np.int64)  # halves to even
        return np.minimum(wanted, n - 1)

    def __str__(self) -> str:
        return counted_bins(self.n_bins, "quantile")
