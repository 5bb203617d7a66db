"""Distances near the ends: a gap counts more where events are rare or nearly sure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.bins import Bins
from calibrant.checks import number
from calibrant.distances.distance import error_of, require_event
from calibrant.kernels.totals import Floats
from calibrant.specification.facts import Facts, declare


@declare(error_of(1.0, None))
def relative(bins: Bins) -> Floats:
    r"""The gap of an event as a share of how likely it is, or is not, whichever is larger; between 0 and 1.

    .. math:: \frac{|\bar p_b - \bar y_b|}{\min(\max(\bar p_b, \bar y_b),\; 1 - \min(\bar p_b, \bar y_b))}

    A forecast of .01 for what happens once in 1,000 times is off by 0.9, one of .3 for .301 by 0.003; near 1 the same
    holds of what does not happen. A bin that never happens has the distance 1 unless its forecasts are all 0, so empty
    tails of few samples count fully: choose bins that hold enough.

    References: Nixon et al. (2019), section 4.2, which asks for such a weight and leaves it open.

    >>> import calibrant as cal
    >>> bins = cal.ECE([1] + [0] * 999, [.01] * 1000).bins
    >>> cal.relative(bins).max().round(4), cal.tvd(bins).max().round(4)
    (np.float64(0.9), np.float64(0.009))
    """
    require_event(bins, "relative")
    forecast, frequency = (np.nan_to_num(values[:, :, 0]) for values in (bins.forecast, bins.frequency))
    scale = np.minimum(np.maximum(forecast, frequency), 1.0 - np.minimum(forecast, frequency))
    gap = np.abs(bins.gap[:, :, 0])
    return np.minimum(np.divide(gap, scale, out=np.zeros_like(gap), where=gap > 0), 1.0)


@dataclass(frozen=True)
class log_odds:  # noqa: N801 - a distance reads as a function
    r"""The difference of log-odds between forecast and outcome of an event.

    .. math:: |l(\bar p_b) - l(\bar y_b)|, \qquad l(q) = \ln \frac{n_b q + a}{n_b (1 - q) + a}

    ln 10 = 2.3 is a factor of ten in the odds, wherever they lie. a = `prior` > 0 is added to both counts of both, so
    that a bin in which all or nothing happened has a finite value; with one half the estimated log-odds have the least
    bias. Where forecast and outcome agree it is 0.

    References: Nixon et al. (2019), section 4.2, which asks for such a weight; Haldane (1956) for the half.

    >>> import calibrant as cal
    >>> round(cal.BinnedError(distance=cal.log_odds())([1] * 10 + [0] * 990, [.1] * 1000).value, 4)
    2.354
    """

    prior: float = 0.5

    def __post_init__(self) -> None:
        number(self.prior, "prior", "must be a finite number above 0", lambda prior: 0 < prior < np.inf)

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return error_of(math.inf, None)

    def __call__(self, bins: Bins) -> Floats:
        require_event(bins, "log_odds")
        forecast, outcome = (
            self._odds(np.nan_to_num(values[:, :, 0]), bins.counts) for values in (bins.forecast, bins.frequency)
        )
        return np.abs(forecast - outcome)

    def _odds(self, share: Floats, size: Floats) -> Floats:
        return np.log(size * share + self.prior) - np.log(size * (1.0 - share) + self.prior)
