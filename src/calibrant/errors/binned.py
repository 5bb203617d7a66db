"""The binned error: selection, lens, binning, distance and aggregate, in the words of the rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.aggregates import Across, Aggregate, mean, mean_of
from calibrant.binning import Binning, EqualWidth
from calibrant.binning.bounds import Boxes, Bracketed, Gaps, Swept, variation
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.bins import Bins
from calibrant.distances import Distance, tvd
from calibrant.errors.bounding import bounded, tied, unavailable
from calibrant.errors.of_bins import OfBins
from calibrant.kernels.totals import Floats, Totals
from calibrant.lenses import Lens, TopLabel
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.facts import Facts, facts_of
from calibrant.summaries import About

MOST_OPEN = 128
"""Numbers of bins over which bounds of a sweep are taken; where more are open, nothing is told."""


@dataclass(frozen=True, repr=False)
class BinnedError(OfBins):
    r"""A calibration error as five choices.

    .. math:: \mathrm{across}_v \; \mathrm{aggregate}_b \; \mathrm{distance}(\bar o_{vb}, \bar t_{vb})

    over the pools b that the binning makes of the lens's answers to question v, on the selected samples.
    An empty selection is nan, with a note.

    References: Kirchenbauer, Oaks & Heim (2022), eq. 3, for one question.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(lens=cal.TopK(2), binning=cal.KDTree(gamma=0.5))
    >>> print(metric([0, 1], [[.7, .2, .1], [.1, .8, .1]]))
    BinnedError 0.2500 (n=2, top 2 and the rest, kd-tree bins, gamma 0.5)
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    binning: Binning = EqualWidth()
    distance: Distance = tvd
    aggregate: Aggregate = mean
    across: Across = mean_of

    @property
    def part_facts(self) -> Facts:
        """What is known of the distance, passed through the aggregate."""
        return facts_of(self.distance).through(self.aggregate)

    @property
    def facts(self) -> Facts:
        """What is known of the parts, and the metrics that take this one's place when rows are resampled."""
        facts = self.facts_across()
        unrooted = None
        if facts.root != 1 and self.part_facts.root in (1, facts.root):  # of roots of roots no such metric is known
            unrooted = self.replace(across=mean_of) if self.part_facts.root == 1 else self.replace(aggregate=mean)
        return dataclasses.replace(
            facts,
            tends_to=None if facts.tends_to is None else self.replace(distance=facts.tends_to),
            unrooted=unrooted,
        )

    def of_bins(self, bins: Bins) -> Result:
        """Distances, one number a question, one number."""
        details: dict[str, float] = {}
        if facts_of(self.binning).chooses and bins.shape[0] == 1:
            details["n_bins"] = int(bins.requested[0])
        if facts_of(self.distance).tends_to is not None and bins.shape[0] == 1:  # without bias, it may be negative
            details["signed_square"] = float(mean(self._distances(bins), bins)[0])
        return self.combined(bins.about, self.pooled(bins), bins.held, bins=bins, details=details)

    def pooled(self, bins: Bins) -> Floats:
        """The aggregate of each question's distances."""
        return self.aggregate(self._distances(bins), bins)

    def within(self, table: Forecasts) -> Result:
        """Bins of tied cells, and between what the distances of the rows' own bins lie, by what is known of pieces."""
        binning = self.binning
        if not isinstance(binning, Bracketed | Swept):
            raise unavailable(self)
        result = self.of_bins(binning.conclude(tied(self, table)))  # type: ignore[arg-type]
        if isinstance(binning, Bracketed) and _is_exact(binning, table):
            return result
        ladders = list(table.ladders())
        chosen = [binning.possible_bins(ladder) for ladder in ladders] if isinstance(binning, Swept) else []
        ends = [self.over(ladder, binning, *chosen[place : place + 1]) for place, ladder in enumerate(ladders)]
        if len(chosen) == 1 and chosen[0] is not None:
            bins = {"n_bins_low": chosen[0][0], "n_bins_high": chosen[0][1]}
            result = dataclasses.replace(result, details={**result.details, **bins})
        return bounded(result, self, table, *np.array(ends).T)

    def over(
        self, ladder: Ladder, binning: Bracketed | Swept, chosen: tuple[int, int] | None = None
    ) -> tuple[float, float]:
        """The bounds of one question's value, over all numbers of bins that its rows may choose."""
        if ladder.n == 0:
            return np.nan, np.nan
        if isinstance(binning, Bracketed):
            return self.between(ladder, binning)
        if chosen is None or chosen[1] - chosen[0] > MOST_OPEN:
            return -np.inf, np.inf
        binnings = map(binning.into, range(chosen[0], chosen[1] + 1))
        low, high = np.array([self.between(ladder, each) for each in binnings if isinstance(each, Bracketed)]).T
        return low.min(), high.max()

    def between(self, ladder: Ladder, binning: Bracketed) -> tuple[float, float]:
        """The bounds of one question's value when its samples are cut by a binning."""
        boxes = Boxes.of(ladder, binning.possible_cuts(ladder))
        gaps, rises, facts = boxes.gaps, facts_of(self.aggregate).rises, facts_of(self.distance)
        within = _between(self.distance)
        if within is None or rises is None:
            raise unavailable(self)
        distances = within(gaps)
        is_open = gaps.few < gaps.many
        if rises == "sum":
            sums = [np.stack([gaps.few, gaps.many]) * each for each in distances]
            low, high = sums[0].min(axis=0).sum() / ladder.n, sums[1].max(axis=0).sum() / ladder.n
            if facts.order == 1 and facts.within is None:
                least, most = variation(*boxes.excess)
                low, high = max(low, least / ladder.n), min(high, most / ladder.n)
            high = min(high, distances[1][gaps.many > 0].max())
            return self._of_one(low, ladder), self._of_one(high, ladder)
        if is_open.any() and (rises != "each" or facts.low < 0):
            return self.part_facts.low, self.part_facts.high
        low = self._of_each(distances[0], gaps.few) if gaps.few.any() else self.part_facts.low
        return low, self._of_each(distances[1], gaps.many)

    def _of_one(self, distance: float, ladder: Ladder) -> float:
        """The aggregate of a question with one bin."""
        return self._of_each(np.array([distance]), np.array([ladder.n]))

    def _of_each(self, distances: Floats, counts: Floats) -> float:
        """The aggregate of a question's distances in bins of so many samples."""
        size = Totals.whole(counts.astype(np.int64).reshape(1, -1))
        nothing = Totals.zeros((1, len(counts), 1))
        bins = Bins(About(0, ""), size, nothing, nothing, np.array([len(counts)]))
        return float(self.aggregate(np.where(counts > 0, distances, 0.0)[None], bins)[0])

    def _distances(self, bins: Bins) -> Floats:
        return np.where(bins.counts > 0, self.distance(bins), 0.0)


def _is_exact(binning: Bracketed, table: Forecasts) -> bool:
    """Whether cells decide all bins, whatever marks say."""
    ladders = (dataclasses.replace(ladder, alike=None) for ladder in table.ladders() if ladder.n)
    return all(Boxes.of(ladder, binning.possible_cuts(ladder)).are_exact for ladder in ladders)


def _between(distance: Distance) -> Callable[[Gaps], tuple[Floats, Floats]] | None:
    """Between what a distance lies: as it says itself, or as a power of the size of the gap does."""
    facts = facts_of(distance)
    if facts.within is not None or facts.order is None or facts.tends_to is not None:
        return facts.within  # type: ignore[return-value]
    order = facts.order
    return lambda gaps: (np.power(gaps.least, order), np.power(gaps.most, order))
