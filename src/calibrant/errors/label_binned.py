"""The label-binned error: each sample's own forecast against its pool's mean label."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.binning.bounds import Boxes, Bracketed, Entries
from calibrant.binning.contract import RankBinning
from calibrant.binning.fixed import EqualWidth
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.checks import order
from calibrant.errors.asking import OfTable
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses import Lens, TopLabel
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.facts import Facts, error, facts_of


class OfRates(OfTable):
    """A metric of events that compares each forecast with the rate at which its bin came true."""

    binning: RankBinning

    @abstractmethod
    def of_cuts(self, ladder: Ladder, cuts: Ints) -> Floats:
        """The error of each replicate, cut at these ranks."""


@dataclass(frozen=True, repr=False)
class LabelBinnedError(OfRates):
    r"""Forecasts are kept as they are; only labels are averaged in each bin.

    .. math:: \Big(\frac1n \sum_i |p_i - \bar y_{b(i)}|^p\Big)^{1/p}

    Never below the binned error of the same bins. Asks events (one coordinate) only.

    References: Roelofs et al. (2022), eq. 3.

    >>> import calibrant as cal
    >>> metric = cal.LabelBinnedError(binning=cal.EqualWidth(1))
    >>> round(metric([1, 0], [.9, .3]).value, 10)  # (|.9 - .5| + |.3 - .5|) / 2
    0.3
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    binning: RankBinning = EqualWidth()
    p: float = 1.0
    across: Across = mean_of

    def __post_init__(self) -> None:
        require_cuts(self.binning, "LabelBinnedError")
        order(self.p, "LabelBinnedError")

    @property
    def part_facts(self) -> Facts:
        """An estimate of the L^p error."""
        return error(order=self.p)

    def answer(self, summary: Forecasts) -> Result:
        """Bin the table, then compare each entry with the mean labels of the bins it falls into."""
        bins = summary.cut(self.binning.cuts)
        values = np.array([self.of_cuts(ladder, self.binning.cuts(ladder)) for ladder in summary.ladders()])
        words = f"order {self.p:g}" if self.p != 1 else ""
        chosen = facts_of(self.binning).chooses and bins.shape[0] == 1
        details: dict[str, float] = {"n_bins": int(bins.requested[0])} if chosen else {}
        return self.combined(bins.about, values, bins.held, words, bins=bins, details=details)

    def of_cuts(self, ladder: Ladder, cuts: Ints) -> Floats:
        """Every stretch of equal forecast and bin counts by its length; nan without samples."""
        if ladder.n == 0:
            return np.full(ladder.targets.shape[:-1], np.nan)
        sizes = np.diff(cuts)
        rates = ladder.running_targets(cuts).differences().value / np.maximum(sizes, 1)
        if ladder.values.ndim > 1:  # samples are entries: each counts once
            near = np.repeat(rates.ravel(), np.broadcast_to(sizes, rates.shape).ravel())
            return self._mean(ladder.values - near.reshape(ladder.values.shape), np.ones(ladder.n))
        ends = np.unique(np.concatenate([ladder.ranks, cuts]))
        bin_ = np.searchsorted(cuts, ends[:-1], side="right") - 1
        values = ladder.values[ladder.entry(ends[:-1])].astype(np.float64)
        return self._mean(values - rates[bin_], np.diff(ends))

    def between(self, ladder: Ladder) -> tuple[float, float] | None:
        """Between what the distances of the forecasts of each entry from the frequencies of its bins lie.

        The p-th power of a distance is convex: forecasts in one bin are least far away all at their mean, and farthest
        at the ends of their cell. Those of a cell that may be cut can each be anywhere in it, and in any of its bins.
        """
        if not isinstance(self.binning, Bracketed):
            return None
        boxes, entries = Boxes.of(ladder, self.binning.possible_cuts(ladder)), Entries.of(ladder)
        first = np.searchsorted(boxes.ranks[1][1:-1], ladder.ranks[:-1], side="right")
        last = np.searchsorted(boxes.ranks[0][1:-1], ladder.ranks[1:], side="left")
        gaps, bins = boxes.gaps, [slice(start, stop + 1) for start, stop in zip(first, last, strict=True)]
        rarely = np.array([gaps.rarely[held].min() for held in bins])
        often = np.array([gaps.often[held].max() for held in bins])
        low, high, mean = entries.low, entries.high, np.clip(entries.means, entries.low, entries.high)
        is_cut = first < last
        near, far = np.where(is_cut, low, mean), np.where(is_cut, high, mean)
        least = np.maximum(np.maximum(rarely - far, near - often), 0.0) ** self.p
        share = np.where(high > low, (mean - low) / np.where(high > low, high - low, 1.0), 0.0)
        ends = [[np.abs(end - rate) ** self.p for rate in (rarely, often)] for end in (low, high)]
        chord = np.maximum(*((1 - share) * ends[0][side] + share * ends[1][side] for side in (0, 1)))
        most = np.where(is_cut, np.max(ends, axis=(0, 1)), chord)
        return tuple(float((entries.counts * each).sum() / ladder.n) ** (1 / self.p) for each in (least, most))

    def _mean(self, gaps: Floats, counts: Floats | Ints) -> Floats:
        """The L^p mean of gaps that count so often."""
        mean = (counts * np.power(np.abs(gaps), self.p)).sum(axis=-1) / counts.sum()
        return np.asarray(np.power(mean, 1 / self.p))


def require_cuts(binning: object, metric: str) -> None:
    """Refuse a binning that does not cut the sorted samples of an event."""
    if isinstance(binning, type) or not isinstance(binning, RankBinning):
        raise CalibrationInputError(
            metric,
            "needs bins of one coordinate",
            got=repr(binning),
            hint="use EqualWidth, Edges, EqualMass, Quantiles or Sweep",
        )
