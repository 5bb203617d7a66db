"""The binned error: selection, lens, binning, distance and aggregate, in the words of the rule."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from calibrant.aggregates import Across, Aggregate, mean, mean_of
from calibrant.binning import Binning, EqualWidth
from calibrant.bins import Bins
from calibrant.distances import Distance, tvd
from calibrant.errors.asking import OfBins
from calibrant.kernels.totals import Floats
from calibrant.lenses import Lens, TopLabel
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.facts import Facts, facts_of


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

    def _distances(self, bins: Bins) -> Floats:
        return np.where(bins.counts > 0, self.distance(bins), 0.0)
