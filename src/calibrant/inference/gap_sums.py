"""Intervals of summed gaps: of the L1 and the L2 calibration error of bins, in closed form, for their own limits.

Resampled errors are biased upwards, so that a bootstrap interval of a small error misses it. Here the error's
distribution is known for given gaps, because counts of a bin are binomial.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from calibrant.bins import Bins
from calibrant.kernels.caching import cached_property
from calibrant.kernels.totals import Floats, Ints

FEW = 10
"""Where fewer events or non-events happened, or in all bins together fewer of each bin's rarer outcome, the lower end
is that of the shape-free bound, if it is lower."""
SOFTENED = 2.0
"""The lower end is sought among gaps that exceed so many standard errors, each less these: where only some bins are
off, the others show nothing but noise."""
STEEPEST = 2.0
"""Skewness beyond this is not believed: its expansion would turn back."""
CLOSE = 1e-10
"""The ends are found to this part of their range."""


@dataclass(frozen=True, eq=False)
class GapSum:
    r"""Bins (m,) of which the gaps are summed: :math:`T = \sum_j w_j |Y_j / N_j - c_j|`.

    N_j are effective numbers of samples, c_j mean forecasts, Y_j / N_j frequencies, w_j weights of sum 1, and n the
    effective number of rows. For gaps G the counts are binomial with chances q_j = c_j + G_j (between 0 and 1), so that
    the mean, the variance and the skewness of T are known, and with them its quantiles (Cornish & Fisher).

    >>> sums = GapSum(np.array([50., 50.]), np.array([.3, .8]), np.array([.3, .6]), np.array([.5, .5]), 100.0)
    >>> [round(end, 3) for end in sums.interval(1.66)]
    [0.008, 0.18]
    """

    size: Floats
    forecast: Floats
    frequency: Floats
    share: Floats
    n: float
    dependence: float = 1.0
    """The variance of T over that of independent bins: above 1 where bins share outcomes."""
    rarer: float = np.inf
    """How often the rarer outcome, event or not, was seen in all bins."""

    @classmethod
    def of(cls, bins: Bins, weights: Floats, effect: float = 1.0) -> GapSum:
        """The bins of all questions, each question with its weight; each row is worth 1 / effect of one."""
        held = bins.counts > 0
        within = bins.counts / np.maximum(bins.counts.sum(axis=1, keepdims=True), 1e-300)
        size = bins.effective / effect
        rows = size.sum(axis=1).max(initial=0.0)
        share, size, frequency = (within * weights[:, None])[held], size[held], bins.frequency[held][:, 0]
        rarer = min(float(frequency @ size), float((1 - frequency) @ size))
        return cls(size, bins.forecast[held][:, 0], frequency, share, float(rows), rarer=rarer)

    @property
    def gap(self) -> Floats:
        """Frequency less mean forecast."""
        return self.frequency - self.forecast

    @property
    def value(self) -> float:
        """The summed gaps T."""
        return float(self.share @ np.abs(self.gap))

    @cached_property
    def counts(self) -> Ints:
        """Effective numbers as whole ones, of which there are binomial chances."""
        return np.maximum(np.rint(self.size), 1).astype(np.int64)

    @cached_property
    def spread(self) -> Floats:
        """The variance of each outcome, with two samples more that happened as often as forecast."""
        chance = (self.frequency * self.size + 2 * self.forecast) / (self.size + 2)
        return np.clip(chance * (1 - chance), 0.0, 0.25)

    def interval(self, z: float) -> tuple[float, float]:
        """Where the sum of the true gaps may lie; z is the quantile of the level, on the scale of standard deviations.

        The upper end is sought along gaps that are the same number of standard errors in every bin, the shape that adds
        least to T by chance; the lower end along the gaps that exceed two standard errors, less these. What never
        happened may still happen: where bins show one outcome alone, the upper end allows for the other.
        """
        sides = np.where(self.gap >= 0, 1.0, -1.0)
        errors = np.sqrt(self.spread / self.size)
        high = max(self._reached(sides * np.maximum(errors, 1e-9), -z), self._unseen(z))
        if self.value <= self._quantile(np.zeros_like(self.gap), z):
            return 0.0, high
        clear = sides * np.maximum(np.abs(self.gap) - SOFTENED * errors, 0.0)
        low = self._reached(clear if clear.any() else self.gap, z)
        if self.rarer < FEW or float(np.minimum(self.frequency, 1 - self.frequency) @ self.size) < FEW:
            low = min(low, self._shape_free(z))
        return low, high

    def _unseen(self, z: float) -> float:
        """What bins that show one outcome alone may add, 0 where all show both.

        The largest chance of the other outcome that none of their rows shows, by the level of z, times their weight.
        If no bin shows the other outcome, the rows are those of the data.
        """
        alone = (self.frequency == 0) | (self.frequency == 1)
        n, share = float(self.size[alone].sum()), float(self.share[alone].sum())
        if self.rarer < 0.5:
            n, share = self.n, 1.0
        return share * (1 - NormalDist().cdf(-z) ** (1 / n)) if n else 0.0

    def _shape_free(self, z: float) -> float:
        """What is left of T without all that chance may have added, whatever the gaps are."""
        among = max(float(self.share @ np.square(self.gap)) - self.value**2, 0.0) / self.n
        error = np.sqrt(self.dependence * float(np.square(self.share) @ (self.spread / self.size)) + among)
        return max(0.0, self.value - self._quantile(np.zeros_like(self.gap), 0.0) - z * error)

    def _reached(self, shape: Floats, z: float) -> float:
        """The summed gaps at which a quantile of T, along a shape of gaps, reaches the T that was seen."""
        far = first(lambda scale: self._quantile(scale * shape, z) - self.value, float(1 / np.abs(shape).max()))
        chance = np.clip(self.forecast + far * shape, 0.0, 1.0)
        return float(self.share @ np.abs(chance - self.forecast))

    def _quantile(self, gaps: Floats, z: float) -> float:
        """A quantile of T, given gaps."""
        chance = np.clip(self.forecast + gaps, 0.0, 1.0)
        off = np.abs(chance - self.forecast)
        mean, variance, third = distances(self.counts, chance, self.counts * self.forecast)
        each = self.share / self.counts
        among = max(float(self.share @ np.square(off)) - float(self.share @ off) ** 2, 0.0) / self.n
        deviation = np.sqrt(self.dependence * float(np.square(each) @ variance) + among)
        cubes = self.dependence**2 * float(each**3 @ third)  # of k bins that are one, k^3 instead of k
        skewness = np.clip(cubes / deviation**3, -STEEPEST, STEEPEST) if deviation > 0 else 0.0
        return float(each @ mean + deviation * (z + skewness * (z * z - 1) / 6))

    def squared_interval(self, z: float) -> tuple[float, float]:
        r"""Where the root of the sum of squared true gaps, :math:`\sqrt{\sum_j w_j \mu_j^2}`, may lie.

        D, the sum of squared gaps less their sampling variances, has no bias, and for a true sum t nearly the variance
        :math:`4 t \bar v / n + 2 \sum_j (w_j v_j / N_j)^2 + (\kappa - 1) t^2 / n`, where v_j is the variance of an
        outcome in bin j, v-bar its mean weighted by the squared gaps, or the plain mean if larger, and kappa the
        mean fourth power of the gaps over the square of their mean square.
        """
        variance = self.frequency * (1 - self.frequency) / np.maximum(self.size - 1, 1)
        excess = np.square(self.gap) - np.where(self.size >= 2, variance, self.spread / self.size)
        unbiased, clear = float(self.share @ excess), np.maximum(excess, 0.0)
        total = float(self.share @ clear)
        kurtosis = float(self.share @ np.square(clear)) / total**2 if total > 0 else 1.0
        mean = max(float((self.share * clear) @ self.spread) / total if total > 0 else 0.0, float(self.spread.mean()))
        least = 2 * self.dependence * float(np.square(self.share) @ np.square(self.spread / self.size))

        def deviation(t: float) -> float:
            return float(np.sqrt(4 * t * mean / self.n + least + max(kurtosis - 1, 0.0) * t * t / self.n))

        high = first(lambda t: t - z * deviation(t) - unbiased, 1e-4)
        low = first(lambda t: t + z * deviation(t) - unbiased, 1e-4)
        return float(np.sqrt(low)), float(np.sqrt(high))


def first(excess: Callable[[float], float], start: float, most: float = 1e12) -> float:
    """The smallest number from which on a rising function is not negative: doubled until it is, then closed in upon.

    By interpolation that takes at most one step more than bisection (Oliveira & Takahashi, 2020); here about ten.

    >>> round(first(lambda x: x**3 - 125, 1.0), 6)
    5.0
    """
    low, below, high = 0.0, excess(0.0), start
    if below >= 0:
        return 0.0
    while not (above := excess(high)) >= 0:
        if high >= most:
            return high
        low, below, high = high, above, 2 * high
    width = radius = high - low
    while high - low > 2 * CLOSE * width:
        middle, falsi = (low + high) / 2, (low * above - high * below) / (above - below)
        side = 1.0 if middle > falsi else -1.0
        truncated = falsi + side * min(0.2 / width * (high - low) ** 2, abs(middle - falsi))
        projected = middle - side * min(radius - (high - low) / 2, abs(truncated - middle))
        value = excess(projected)
        low, below, high, above = (low, below, projected, value) if value >= 0 else (projected, value, high, above)
        radius /= 2
    return high


def distances(counts: Ints, chance: Floats, from_: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and third central moment of the distance |X - a| of a binomial count from a.

    By the binomial distribution of counts smaller by 0 to 3, which gives the moments of X below a.

    >>> [float(moment[0]) for moment in distances(np.array([1]), np.array([0.5]), np.array([0.25]))]  # .25 or .75
    [0.5, 0.0625, 0.0]
    """
    part = _falling(counts, chance, np.floor(from_))
    first_, second, third = part[1], part[2] + part[1], part[3] + 3 * part[2] + part[1]
    short = from_ * part[0] - first_
    cubed = from_**3 * part[0] - 3 * from_**2 * first_ + 3 * from_ * second - third
    variance, off = counts * chance * (1 - chance), counts * chance - from_
    mean, square = 2 * short + off, variance + off**2
    cube = 2 * cubed + variance * (1 - 2 * chance) + 3 * off * variance + off**3
    return mean, np.maximum(square - mean**2, 0.0), cube - 3 * mean * square + 2 * mean**3


def _falling(counts: Ints, chance: Floats, below: Floats) -> Floats:
    """E[X (X - 1) .. (X - k + 1)] over X <= below, (4, m) for k = 0 to 3."""
    from scipy.special import bdtr  # type: ignore[import-untyped]

    order = np.arange(4)[:, None]
    left, most = counts - order, below - order
    share = bdtr(np.clip(most, 0, np.maximum(left, 0)), np.maximum(left, 1), chance)
    share[most >= left] = 1.0  # also where one outcome is left
    factor = np.cumprod(np.vstack([np.ones_like(chance), left[:3] * chance]), axis=0)
    return np.where((most >= 0) & (left >= 0), factor * share, 0.0)
