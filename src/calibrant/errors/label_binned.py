"""The label-binned error: each sample's own forecast against its pool's mean label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.binning.contract import Binning
from calibrant.binning.fixed import EqualWidth
from calibrant.binning.ladder import Forecasts, Ladder
from calibrant.checks import order
from calibrant.errors.asking import OfRates, error
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses.events import TopLabel
from calibrant.lenses.lens import Lens
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.facts import Facts, facts_of


@runtime_checkable
class RankBinning(Binning, Protocol):
    """A binning that cuts the sorted samples of an event."""

    def cuts(self, ladder: Ladder) -> Ints:
        """The ranks at which one question's sorted samples are cut."""


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
        values = np.array([self._error(ladder) for ladder in summary.ladders()])
        words = f"order {self.p:g}" if self.p != 1 else ""
        chosen = facts_of(self.binning).chooses and bins.shape[0] == 1
        details: dict[str, float] = {"n_bins": int(bins.requested[0])} if chosen else {}
        return self.combined(bins.about, values, bins.counts.sum(axis=1), words, bins=bins, details=details)

    def _error(self, ladder: Ladder) -> float:
        """One question: every stretch of equal forecast and bin counts by its length."""
        if ladder.n == 0:
            return float("nan")
        cuts = self.binning.cuts(ladder)
        size, _, targets, *_ = ladder.cut(cuts)
        rate = targets.value / np.maximum(size.value, 1.0)
        ends = np.unique(np.concatenate([ladder.ranks, cuts]))
        entry = np.searchsorted(ladder.ranks, ends[:-1], side="right") - 1
        bin_ = np.searchsorted(cuts, ends[:-1], side="right") - 1
        return float(self.of_rates(ladder.values[entry].astype(np.float64), rate[bin_], np.diff(ends)))

    def of_rates(self, values: Floats, rates: Floats, counts: Floats | Ints) -> Floats:
        """The L^p mean of the distances."""
        errors = np.power(np.abs(values - rates), self.p)
        return np.power((counts * errors).sum(axis=-1) / counts.sum(axis=-1), 1 / self.p)


def require_cuts(binning: object, metric: str) -> None:
    """Refuse a binning that does not cut the sorted samples of an event."""
    if isinstance(binning, type) or not isinstance(binning, RankBinning):
        raise CalibrationInputError(
            metric,
            "needs bins of one coordinate",
            got=repr(binning),
            hint="use EqualWidth, Edges, EqualMass, Quantiles or Sweep",
        )
