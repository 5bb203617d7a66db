"""Local lines: outcomes as a smooth function of forecasts, with a bandwidth that is chosen for this curve."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from calibrant.binning.running import Ladder
from calibrant.errors.statistic import counted
from calibrant.kernels.totals import Floats, Ints

CELLS = 1024
"""Cells of [0, 1] between whose ends samples are shared."""
BANDWIDTHS = 0.005 * 2.0 ** (np.arange(14) / 2)
"""Those that are tried: .005 to .453."""
RIDGE = 1e-3
"""What is added to the spread of forecasts under the kernel, in squared bandwidths: without any there is no slope."""
FILLED = 1e-6
"""Cells with less of a sample are empty: sums by Fourier transforms are off by rounding."""
ALONE = 0.95
"""A sample that makes up more of the curve at its own forecast is predicted by the mean outcome when it is left out."""


@dataclass(frozen=True, eq=False)
class LocalLines:
    r"""Local linear regression of outcomes on forecasts, with normal weights of standard deviation h.

    .. math:: \hat c(t) = \bar y_t + (t - \bar p_t) \frac{s_{py}}{s_{pp} + h^2 / 1000}

    with the mean forecast, mean outcome, variance and covariance under the weights :math:`e^{-(p_i - t)^2 / 2h^2}`. So
    it follows a steep curve up to its ends, where averages lag behind. Of the bandwidths .005, .007, .01 .. .453, in
    steps of 2^(1/2), h is the one of the smallest squared error when each sample is left out in turn; none is less than
    half the widest gap between forecasts, the outermost twentieths of the samples aside. Samples are shared linearly
    between the ends of 1024 cells, and the curve is computed there.

    References: Fan & Gijbels (1996), section 3.

    >>> import calibrant as cal
    >>> p = np.linspace(0, 1, 101)
    >>> lines = LocalLines.of(*cal.IsotonicError().summarise((p > .5).astype(int), p).ladders())
    >>> round(lines.bandwidth, 4), lines.frequency[[200, 512, 800]].round(3).tolist()
    (0.01, [0.0, 0.301, 1.0])
    """

    mass: Floats
    bandwidth: float
    frequency: Floats
    """The curve at the ends of cells."""
    weight: Floats
    """The weight of samples within reach there: that of one at the place itself is 1."""

    @classmethod
    def of(cls, ladder: Ladder) -> LocalLines:
        """The samples of a table in cells, and the curve of the bandwidth that predicts them best."""
        values, counts, hits = counted(ladder)
        mass, happened = _shared(values, counts), _shared(values, hits)
        first = min(int(np.searchsorted(BANDWIDTHS, _widest_gap(ladder) / 2)), len(BANDWIDTHS) - 1)
        frequency, weight, own = _curves(mass, happened, first)
        best = _left_out(mass, happened, frequency, own).argmin()
        return cls(mass, float(BANDWIDTHS[first + best]), frequency[best], weight[best])

    def shares(self, points: Floats) -> tuple[Ints, Floats]:
        """The cells that hold samples, and what one outcome in each of them adds to the curve at each point."""
        held = np.flatnonzero(self.mass > FILLED)
        cells, mass = held / CELLS, self.mass[held]
        distance = np.square((cells - points[:, None]) / self.bandwidth)
        kernel = np.exp(0.5 * (distance.min(axis=1, keepdims=True) - distance))  # the nearest weighs 1, however far
        kernel /= (kernel @ mass)[:, None]
        centre = kernel @ (mass * cells)
        apart = cells - centre[:, None]
        spread = (kernel * np.square(apart)) @ mass + RIDGE * self.bandwidth**2
        return held, kernel * (1.0 + ((points - centre) / spread)[:, None] * apart)


def _curves(mass: Floats, hits: Floats, first: int) -> tuple[Floats, Floats, Floats]:
    """For each bandwidth from the first: the curve, the weight within reach, and the share of one outcome in it."""
    sums = np.fft.irfft(_moments()[:, None, first:] * np.fft.rfft([mass, hits], 3 * CELLS)[:, None], 3 * CELLS)
    (weight, happened), (moment, crossed), (second, _) = sums[..., : CELLS + 1]
    weight = np.maximum(weight, FILLED)
    centre, rate = moment / weight, happened / weight
    spread = np.maximum(second / weight - np.square(centre), 0.0) + RIDGE * np.square(BANDWIDTHS[first:, None])
    slope = (crossed / weight - centre * rate) / spread
    return rate - centre * slope, weight, (1.0 + np.square(centre) / spread) / weight


def _left_out(mass: Floats, hits: Floats, frequency: Floats, own: Floats) -> Floats:
    """The squared error of samples that are left out, for each bandwidth."""
    held = mass > FILLED
    curve, own = frequency[:, held], own[:, held]
    base, alone = hits.sum() / mass.sum(), own > ALONE
    curve, rest = np.where(alone, base, curve), np.where(alone, 1.0, 1.0 - np.minimum(own, ALONE))
    errors = hits[held] * np.square(1.0 - curve) + (mass - hits)[held] * np.square(curve)
    return np.asarray((errors / np.square(rest)).sum(axis=1), np.float64)


@cache
def _moments() -> NDArray[np.complex128]:
    """Fourier transforms of the kernels times powers of the distance; no end of [0, 1] is in reach of the other."""
    size = 3 * CELLS
    steps = (np.arange(size) + CELLS) % size - CELLS
    kernel = np.exp(-0.5 * np.square(steps / CELLS / BANDWIDTHS[:, None])) * (steps <= CELLS)
    return np.asarray(np.fft.rfft([kernel * (-steps / CELLS) ** power for power in (0, 1, 2)]))


def _widest_gap(ladder: Ladder) -> float:
    """The widest gap between neighbouring forecasts, the outermost twentieths of the samples aside."""
    first, last = ladder.entry(np.array([0.05, 0.95] * np.array(ladder.n)).astype(np.int64))
    return float(np.diff(ladder.values[first : last + 1].astype(np.float64)).max(initial=0.0))


def _shared(values: Floats, amounts: Floats) -> Floats:
    """Amounts at the distinct forecasts, shared between the ends of the cells that hold them."""
    place = values * CELLS
    cell = np.minimum(place.astype(np.int64), CELLS - 1)
    right = place - cell
    left = np.bincount(cell, amounts * (1 - right), CELLS + 1)
    return np.asarray(left + np.bincount(cell + 1, amounts * right, CELLS + 1), np.float64)
