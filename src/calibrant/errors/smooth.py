"""The smooth error: residuals averaged under a kernel whose width is as large as the error it shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.binning.bounds import HALF_UNIT, Entries
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.checks import number
from calibrant.errors.asking import OfTable
from calibrant.kernels.totals import Floats
from calibrant.lenses import Lens, TopLabel
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.facts import Facts, error

GRID = 1 << 16
"""Cells of [0, 1] between whose ends residuals are shared."""
FINENESS = 256
"""Points per bandwidth at which smoothed residuals are integrated."""
SHARED = 1e-10
"""How far sharing residuals between ends of cells of width 2^-16 moves smECE, twice, times sigma^2."""
ROUNDED = 2e-6
"""How far a trapezoid sum is from its integral at most, twice."""
TOLERANCE = 1e-12
"""How near a bandwidth comes to the error that it gives."""


@dataclass(frozen=True, repr=False)
class SmoothError(OfTable):
    r"""How large are the residuals that remain when forecasts are blurred by as much as those residuals?

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Big|\frac1n \sum_i (y_i - p_i) K_\sigma(t, p_i)\Big| dt, \quad
        K_\sigma(t, p) = \sum_{m \in \mathbb Z} \varphi_\sigma(t - p + 2m) + \varphi_\sigma(t + p + 2m)

    where K is the normal density reflected at 0 and 1. It falls as sigma grows; without a `bandwidth`, sigma is the one
    number where smECE_sigma = sigma. `details["bandwidth"]` says which was used.

    Computed in cosines: with :math:`c_k = \frac1n \sum_i (y_i - p_i) \cos \pi k p_i`, the smoothed residual is
    :math:`c_0 + 2 \sum_k c_k e^{-(\pi k \sigma)^2 / 2} \cos \pi k t`. Samples are shared linearly between the ends of
    2^16 cells and the integral is a trapezoid sum: together off by less than 1e-6, 1e-5 at a fixed bandwidth of .001.

    Continuous in the forecasts, as no binned error is. One sample: its residual. No residuals: 0. Soft labels count as
    they are; whole weights are repetition, fractional ones are refused. Asks events (one coordinate) only.

    References: Blasiok & Nakkiran (2023).

    >>> from calibrant.errors.smooth import SmoothError
    >>> result = SmoothError()([1, 0, 1, 1], [.6, .7, .8, .9])
    >>> round(result.value, 6), round(result.details["bandwidth"], 6)
    (0.096327, 0.096327)
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    bandwidth: float | None = None
    across: Across = mean_of

    def __post_init__(self) -> None:
        if self.bandwidth is not None:
            expected = "must be None or a finite number of at least 0.001"
            number(self.bandwidth, "bandwidth", expected, lambda width: 1e-3 <= width < np.inf)

    @property
    def part_facts(self) -> Facts:
        """In the limit it never exceeds the L1 error, and equals it where all forecasts err to one side."""
        return error(order=1.0, cost=8.0)

    def answer(self, summary: Forecasts) -> Result:
        """Smooth the residuals of every question and integrate."""
        answers = [(*self.error_of(ladder), ladder.n) for ladder in summary.ladders()]
        values, bandwidths, sizes = np.array(answers, np.float64).T
        words = f"bandwidth {self.bandwidth:g}" if self.bandwidth is not None else ""
        details = {} if summary.about.names else {"bandwidth": float(bandwidths[0])}
        return self.combined(summary.about, values, sizes, words, details=details)

    def error_of(self, ladder: Ladder) -> tuple[float, float]:
        """One question's error and bandwidth."""
        if ladder.n == 0:
            return np.nan, np.nan
        cosines = _cosines(ladder.values.astype(np.float64), _residuals(ladder))
        sigma = _fixed_point(cosines) if self.bandwidth is None else float(self.bandwidth)
        return _smoothed(cosines, sigma), sigma

    def between(self, ladder: Ladder) -> tuple[float, float]:
        """smECE falls as sigma grows: where it is no farther than d away at sigma + d, the fixed point is no farther.

        Nor is it lower than sigma - d, where it is no farther than d away there.
        """
        cosines, (first, second) = _in_cells(ladder)

        def away(at: float) -> float:
            return ROUNDED + (first + second / at) / at if at > 0 else math.inf

        if self.bandwidth is not None:
            sigma = float(self.bandwidth)
            value = _smoothed(cosines, sigma)
            return value - away(sigma), value + away(sigma)
        sigma = _fixed_point(cosines)
        near, far = 0.0, 1.0
        for _ in range(50):
            distance = (near + far) / 2
            near, far = (near, distance) if away(sigma + distance) <= distance else (distance, far)
        below = away(sigma)
        for _ in range(50):
            below = max(below, away(sigma - below)) * (1 + 1e-6)
        low = sigma - below if away(sigma - below) <= below else 0.0
        return max(low, abs(float(cosines[0])) - ROUNDED), sigma + far


def _residuals(ladder: Ladder) -> Floats:
    """What outcomes of each entry exceed its forecasts by, per sample of all."""
    return (ladder.targets - ladder.outputs).differences().value / ladder.n


def _cosines(values: Floats, residuals: Floats) -> Floats:
    """The cosine coefficients c_0 .. c_GRID of residuals at these forecasts."""
    place = values * GRID
    cell = np.minimum(place.astype(np.int64), GRID - 1)
    share = place - cell
    shared = np.bincount(cell, residuals * (1 - share), GRID + 1) + np.bincount(cell + 1, residuals * share, GRID + 1)
    return np.fft.rfft(shared, 2 * GRID).real


def _in_cells(ladder: Ladder) -> tuple[Floats, tuple[float, float]]:
    r"""The cosine coefficients of residuals in cells, and how far smECE of the rows is away: x / sigma + z / sigma^2.

    In each cell the sum of the residuals r stands at the mean m, and :math:`D = \sum r (p - m)` as a pair of opposite
    residuals D / (b - a) at its ends a and b. What is left are second moments about m, at most
    :math:`\max|r| \sum (p - m)^2 + |D| |a + b - 2 m|`, and, under soft labels, D itself, which is not known. The
    first derivative of a normal density has the integral :math:`\sqrt{2 / \pi} / \sigma` of its size, the second
    :math:`4 / (\sqrt{2 \pi e} \sigma^2)`, half of which is counted.
    """
    entries = Entries.of(ladder)
    mean, low, high, spread = entries.means, entries.low, entries.high, entries.spread[1]
    dipole, doubt = np.zeros(len(mean)), np.where(ladder.hidden, np.sqrt(entries.counts * spread), 0.0)
    if ladder.true_outputs is not None and ladder.squared_outputs is not None:
        squares = ladder.squared_outputs.value - entries.outputs * mean
        dipole = np.where(ladder.hidden, ladder.true_outputs.value - entries.hits * mean - squares, 0.0)
        doubt = 16 * HALF_UNIT * entries.counts
    pair = dipole / np.where(high > low, high - low, 1.0) / ladder.n
    places = np.concatenate([np.clip(mean, low, high), high, low])
    cosines = _cosines(places, np.concatenate([_residuals(ladder), pair, -pair]))
    largest = np.maximum(np.where(entries.hits < entries.counts, high, 0.0), np.where(entries.hits > 0, 1 - low, 0.0))
    second = largest * spread + np.abs(dipole * (low + high - 2 * mean))
    away = math.sqrt(2 / math.pi) * doubt.sum(), 2 / math.sqrt(2 * math.pi * math.e) * second.sum()
    return cosines, (float(away[0]) / ladder.n, float(away[1]) / ladder.n + SHARED)


def _smoothed(cosines: Floats, sigma: float) -> float:
    """smECE at one bandwidth: reflection makes [0, 1] half a circle, on which |smoothed residual| has its mean."""
    points = min(GRID, 1 << int(FINENESS / max(sigma, 1 / GRID)).bit_length())
    kept = min(points, int(3 / max(sigma, 1 / GRID))) + 1  # cosines above are damped below 1e-19
    damped = cosines[:kept] * np.exp(-((np.pi * sigma * np.arange(kept)) ** 2) / 2)
    return float(np.abs(np.fft.irfft(damped, 2 * points, norm="forward")).mean())


def _fixed_point(cosines: Floats) -> float:
    """The bandwidth at which smECE equals it: at least |c_0|, the limit that smECE falls to, so at most smECE there.

    By false position; an end that stays is drawn nearer by halving what is left there. smECE - sigma falls faster than
    sigma grows, so what is left of it bounds the distance to the answer.
    """
    low = abs(float(cosines[0]))
    ends = [low, _smoothed(cosines, low)]
    left = [ends[1] - low, _smoothed(cosines, ends[1]) - ends[1]]
    side = int(-left[1] < left[0])
    sigma, excess, last = ends[side], left[side], -1
    while abs(excess) > TOLERANCE and ends[1] - ends[0] > TOLERANCE:
        sigma = (ends[0] * left[1] - ends[1] * left[0]) / (left[1] - left[0])
        excess = _smoothed(cosines, sigma) - sigma
        side = int(excess < 0)
        ends[side], left[side] = sigma, excess
        left[1 - side] /= 2 if side == last else 1
        last = side
    return sigma
