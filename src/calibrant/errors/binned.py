"""The binned error: selection, lens, binning, distance and aggregate, in the words of the rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.aggregates import Across, Aggregate, mean, mean_of
from calibrant.binning import Binning, EqualWidth
from calibrant.distances import Distance, debiased_squared, tvd
from calibrant.errors.asking import choices, combine, views
from calibrant.lenses import Lens, TopLabel
from calibrant.metric import Metric, Result
from calibrant.predictions import Predictions
from calibrant.selections import Selection, everything
from calibrant.sweep import Sweep
from calibrant.views import View


@dataclass(frozen=True, repr=False)
class BinnedError(Metric):
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

    def summarise(self, predictions: Predictions) -> Any:
        """The binning's summary of the lens's views, block by block where the state stays small."""
        return sum(self.summarise_view(view) for view in views(self, predictions, self.binning.block))

    def summarise_view(self, view: View) -> Any:
        """The binning's summary of what the lens saw."""
        return self.binning.summarise(view)

    def conclude(self, summary: Any) -> Result:
        """Bins, distances, one number a question, one number."""
        bins = self.binning.conclude(summary)
        distances = np.where(bins.counts > 0, self.distance(bins), 0.0)
        details: dict[str, float] = {}
        if isinstance(self.binning, Sweep) and bins.shape[0] == 1:
            details["n_bins"] = int(bins.requested[0])
        if self.distance is debiased_squared and bins.shape[0] == 1:
            details["signed_square"] = float(mean(distances, bins)[0])
        values = self.aggregate(distances, bins)
        return combine(
            self, bins.about, values, bins.counts.sum(axis=1), choices(self, bins.about), bins=bins, details=details
        )
