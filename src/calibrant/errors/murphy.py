"""The Brier score by bins: what of it is miscalibration, what the forecasts tell apart, and what is left."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.binning.bounds import Boxes, Bracketed, outward
from calibrant.binning.contract import RankBinning
from calibrant.binning.fixed import EqualWidth
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.bins import Bins
from calibrant.distances import squared
from calibrant.errors.asking import OfTable
from calibrant.errors.binned import BinnedError
from calibrant.errors.label_binned import require_cuts
from calibrant.errors.statistic import counted
from calibrant.kernels.totals import Floats
from calibrant.lenses.events import TopLabel
from calibrant.lenses.lens import Lens
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.facts import Facts, error


@dataclass(frozen=True, repr=False)
class BrierDecomposition(OfTable):
    r"""Which part of the Brier score is miscalibration, seen through bins?

    .. math:: \mathrm{BS} = \underbrace{\sum_b \tfrac{n_b}{n} (\bar p_b - \bar y_b)^2}_{\text{reliability}}
        - \underbrace{\sum_b \tfrac{n_b}{n} (\bar y_b - \bar y)^2}_{\text{resolution}}
        + \underbrace{\bar y (1 - \bar y)}_{\text{uncertainty}}
        + \underbrace{\tfrac1n \sum_i (p_i - \bar p_{b(i)})^2}_{\text{within-bin variance}}
        - \underbrace{\tfrac2n \sum_i (p_i - \bar p_{b(i)}) (y_i - \bar y_{b(i)})}_{\text{within-bin covariance}}

    The value is the reliability, lower is better. The details are all five parts and the `score` that they add up to.
    Murphy's three parts alone make the score only where all forecasts of a bin are equal. `IsotonicError` splits the
    score without bins.

    Tied forecasts that a binning cuts apart share their mean label; soft labels count as shares of outcomes. Where
    there are several questions, each part is combined as the value is. Asks events (one coordinate) only.

    References: Murphy (1973); Stephenson, Coelho & Jolliffe (2008) for the terms within bins.

    >>> import calibrant as cal
    >>> result = cal.BrierDecomposition(binning=cal.EqualWidth(2))([0, 1, 0, 1], [.1, .3, .7, .9])
    >>> {name: round(part, 10) for name, part in result.details.items() if "within" not in name}
    {'reliability': 0.09, 'resolution': 0.0, 'uncertainty': 0.25, 'score': 0.25}
    >>> {name: round(part, 10) for name, part in result.details.items() if "within" in name}
    {'within_bin_variance': 0.01, 'within_bin_covariance': 0.1}
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    binning: RankBinning = EqualWidth()
    across: Across = mean_of

    def __post_init__(self) -> None:
        require_cuts(self.binning, "BrierDecomposition")

    @property
    def part_facts(self) -> Facts:
        """A mean of squares that is 0 under calibration."""
        return error()

    def answer(self, summary: Forecasts) -> Result:
        """Bin the table, split each question's score and combine the parts."""
        bins = summary.cut(self.binning.cuts)
        sizes = bins.counts.sum(axis=1)
        parts = _parts(bins, *self._products(summary, bins))
        details = {name: self.across(part, sizes)["value"] for name, part in parts.items()}
        score = sum(sign * details[name] for name, sign in zip(parts, (1, -1, 1, 1, -1), strict=True))
        details["score"] = float(score)
        return self.combined(bins.about, parts["reliability"], sizes, bins=bins, details=details)

    def between(self, ladder: Ladder) -> tuple[float, float] | None:
        """Of the reliability, which is a binned error of squared gaps."""
        if not isinstance(self.binning, Bracketed):
            return None
        return BinnedError(binning=self.binning, distance=squared).between(ladder, self.binning)

    def within(self, table: Forecasts) -> Result:
        """The value with its bounds, and those of the resolution as details."""
        result, ends = super().within(table), []
        assert isinstance(self.binning, Bracketed)
        for ladder in table.ladders():
            if ladder.n == 0:
                ends.append([np.nan, np.nan])
                continue
            gaps, base = Boxes.of(ladder, self.binning.possible_cuts(ladder)).gaps, ladder.targets[-1:].value / ladder.n
            near = np.maximum(np.maximum(gaps.rarely - base, base - gaps.often), 0.0)
            far = np.maximum(gaps.often - base, base - gaps.rarely)
            ends.append([(n * size**2).sum() / ladder.n for n, size in ((gaps.few, near), (gaps.many, far))])
        sizes = np.array([ladder.n for ladder in table.ladders()], np.float64)
        low, high = outward(*(np.array(self.across(each, sizes)["value"]) for each in np.array(ends).T))
        bounds = {"resolution_low": max(float(low), 0.0), "resolution_high": float(high)}
        return dataclasses.replace(result, details={**result.details, **bounds})

    def _products(self, summary: Forecasts, bins: Bins) -> Floats:
        """The sums of p^2 and of p y in each bin: (2, questions, bins)."""
        products = np.zeros((2, *bins.counts.shape))
        for question, ladder in enumerate(summary.ladders()):
            if ladder.n:
                values, counts, hits = counted(ladder)
                cuts, known = self.binning.cuts(ladder), (ladder.squared_outputs, ladder.true_outputs)
                sums = (counts * values**2, hits * values)
                amounts_of = (each if total is None else total.value for total, each in zip(known, sums, strict=True))
                for product, amounts in zip(products, amounts_of, strict=True):
                    running = np.append(0.0, np.cumsum(amounts))
                    product[question, : len(cuts) - 1] = np.diff(np.interp(cuts, ladder.ranks, running))
        return products


def _parts(bins: Bins, squares: Floats, products: Floats) -> dict[str, Floats]:
    """The five parts of each question's Brier score; nan where it has no samples."""
    counts, filled = bins.counts, np.maximum(bins.counts, 1.0)
    outputs, hits = bins.outputs.value[:, :, 0], bins.targets.value[:, :, 0]
    n = np.where(counts.any(axis=1), counts.sum(axis=1), np.nan)
    base = hits.sum(axis=1) / n
    return {
        "reliability": (counts * bins.gap[:, :, 0] ** 2).sum(axis=1) / n,
        "resolution": (counts * (hits / filled - base[:, None]) ** 2).sum(axis=1) / n,
        "uncertainty": base * (1.0 - base),
        "within_bin_variance": np.maximum((squares - outputs**2 / filled).sum(axis=1) / n, 0.0),
        "within_bin_covariance": 2.0 * (products - outputs * hits / filled).sum(axis=1) / n,
    }
