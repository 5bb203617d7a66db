"""The label-binned error: each sample's own forecast against its pool's mean label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.binning import Edges, EqualMass, EqualWidth, Quantiles
from calibrant.checks import order
from calibrant.errors.asking import OfTable, choices, combine
from calibrant.exceptions import CalibrationInputError
from calibrant.forecasts import Ladder
from calibrant.lenses import Lens, TopLabel
from calibrant.metric import Result
from calibrant.selections import Selection, everything
from calibrant.sweep import Sweep

RankBinning = EqualWidth | Edges | EqualMass | Quantiles | Sweep


@dataclass(frozen=True, repr=False)
class LabelBinnedError(OfTable):
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
        if not isinstance(self.binning, RankBinning):
            raise CalibrationInputError(
                "LabelBinnedError",
                "needs bins of one coordinate",
                got=repr(self.binning),
                hint="use EqualWidth, Edges, EqualMass, Quantiles or Sweep",
            )
        order(self.p, "LabelBinnedError")

    def conclude(self, summary: Any) -> Result:
        """Bin the table, then compare each entry with the mean labels of the bins it falls into."""
        bins = summary.cut(self.binning.cuts)
        values = np.array([self._error(ladder) for ladder in summary.ladders()])
        words = choices(self, bins.about) + (f", order {self.p:g}" if self.p != 1 else "")
        details: dict[str, float] = {}
        if isinstance(self.binning, Sweep) and bins.shape[0] == 1:
            details["n_bins"] = int(bins.requested[0])
        return combine(self, bins.about, values, bins.counts.sum(axis=1), words, bins=bins, details=details)

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
        error = np.power(np.abs(ladder.values[entry].astype(np.float64) - rate[bin_]), self.p)
        return float(np.power((np.diff(ends) * error).sum() / ladder.n, 1 / self.p))
