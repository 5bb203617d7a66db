"""Distances of intervals: how far outcomes leave the range in which they were shown."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from calibrant.binning.bounds import Gaps
from calibrant.bins import Bins
from calibrant.checks import interval
from calibrant.distances.distance import error_of, require_event
from calibrant.distances.of_gaps import tvd
from calibrant.kernels.totals import Floats
from calibrant.specification.facts import Facts


@dataclass(frozen=True)
class inter_interval:  # noqa: N801
    r"""How far the mean label lies outside [low, high]: :math:`\max(0, l - \bar y_b, \bar y_b - h)`.

    The forecast itself plays no role: what counts is whether samples shown as "likely" are likely.

    References: Kirchenbauer, Oaks & Heim (2022), eq. 7.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(binning=cal.EqualWidth(1), distance=cal.inter_interval(0, .33))
    >>> round(metric([1, 0, 1, 1], [.1, .2, .25, .3]).value, 10)
    0.42
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        interval(self.low, self.high, "inter_interval")

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        facts = error_of(max(self.low, 1.0 - self.high), None)
        return dataclasses.replace(facts, calibrated=math.nan, interval=(self.low, self.high), within=self._between)

    def _between(self, gaps: Gaps) -> tuple[Floats, Floats]:
        """Outside on either side, the distance rises with that from the interval."""
        least = np.maximum(0.0, np.maximum(self.low - gaps.often, gaps.rarely - self.high))
        return least, np.maximum(0.0, np.maximum(self.low - gaps.rarely, gaps.often - self.high))

    def __call__(self, bins: Bins) -> Floats:
        require_event(bins, "inter_interval")
        rate = bins.frequency[:, :, 0]
        return np.nan_to_num(np.maximum(0.0, np.maximum(self.low - rate, rate - self.high)))


@dataclass(frozen=True)
class interval_tvd:  # noqa: N801
    r"""The TVD where the mean label lies outside [low, high], else 0; never less than `inter_interval`.

    That bound holds for bins whose forecasts lie in [low, high].

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(binning=cal.EqualWidth(1), distance=cal.interval_tvd(0, .33))
    >>> round(metric([1, 0, 1, 1], [.1, .2, .25, .3]).value, 10)
    0.5375
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        interval(self.low, self.high, "interval_tvd")

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return dataclasses.replace(error_of(1.0, None), calibrated=math.nan, within=self._between)

    def _between(self, gaps: Gaps) -> tuple[Floats, Floats]:
        """The size of the gap where the frequency is surely outside, 0 where it is surely inside."""
        outside = (gaps.often < self.low) | (gaps.rarely > self.high)
        inside = (gaps.rarely >= self.low) & (gaps.often <= self.high)
        return np.where(outside, gaps.least, 0.0), np.where(inside, 0.0, gaps.most)

    def __call__(self, bins: Bins) -> Floats:
        require_event(bins, "interval_tvd")
        rate = bins.frequency[:, :, 0]
        return np.where((rate >= self.low) & (rate <= self.high), 0.0, tvd(bins))
