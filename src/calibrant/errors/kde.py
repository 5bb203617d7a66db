"""The density error: forecasts against a kernel estimate of how often they come true."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.checks import number
from calibrant.errors.asking import OfTable
from calibrant.errors.bounding import approximate, tied
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.lenses import Lens, TopLabel
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.facts import Facts, error

STEP = 2.2 / ((1 << 14) - 1)
"""Forecasts are compared at the points -.6 + STEP * k inside (0, 1)."""
_NO_BANDWIDTH = "no bandwidth: forecasts that came true are missing or all alike"
FAINT = 1e-6
"""A density this small counts as none."""


@dataclass(frozen=True, repr=False)
class KDEError(OfTable):
    r"""How far are forecasts from the rate at which forecasts near them come true?

    .. math:: \Big(\frac{\int |x - \pi(x)|^r f(x) dx}{\int f(x) dx}\Big)^{1/r}, \quad
        f(x) = \sum_i k(x - p_i) + k(x - p_i'), \quad
        \pi(x) = \frac{1}{f(x)} \sum_{i: y_i = 1} k(x - p_i) + k(x - p_i')

    with r the order and k(u) = (1 - (u / 3h)^2)^3 within 3h of 0, the triweight whose standard deviation is h. Each
    forecast p is mirrored at the nearer end of [0, 1]: p' = -p below 1/2, else 2 - p. The bandwidth h is the standard
    deviation (ddof 0) of the forecasts that came true, times (2n)^(-1/5); `details["bandwidth"]` says it. Integrals
    are trapezoid sums over those of 2^14 points from -.6 to 1.6 that lie inside (0, 1); where f, made a density, is at
    most 1e-6, the gap counts 0. The kernel sums are exact but for rounding; their cost is linear in samples and points.

    Nan, with a note, where nothing came true, or all that did was forecast alike (h below the distance of the points);
    one such question makes the whole nan. Whole weights are repetition; fractional weights and soft labels are
    refused. Asks events (one coordinate) only.

    References: Zhang, Kailkhura & Han (2020); their program takes no root.

    >>> from calibrant.errors.kde import KDEError
    >>> result = KDEError()([1, 0, 1, 1], [.6, .7, .8, .9])
    >>> round(result.value, 6), round(result.details["bandwidth"], 6)
    (0.108846, 0.082286)
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    order: float = 1.0
    across: Across = mean_of

    def __post_init__(self) -> None:
        number(self.order, "order", "must be a finite order of at least 1", lambda order: 1 <= order < np.inf)

    @property
    def part_facts(self) -> Facts:
        """An estimate of the L^r error."""
        return error(order=self.order)

    def answer(self, summary: Forecasts) -> Result:
        """Estimate both densities of every question and compare."""
        if summary.about.soft:
            raise CalibrationInputError("KDEError", "needs one true class per row", got="soft labels")
        answers = [(*self._error(ladder), ladder.n) for ladder in summary.ladders()]
        values, bandwidths, sizes = np.array(answers, np.float64).T
        words = f"order {self.order:g}" if self.order != 1 else ""
        details = {} if summary.about.names else {"bandwidth": float(bandwidths[0])}
        notes = (_NO_BANDWIDTH,) if np.isnan(values[sizes > 0]).any() else ()
        return self.combined(summary.about, values, sizes, words, details=details, notes=notes)

    def within(self, table: Forecasts) -> Result:
        """Of tied cells: the bandwidth depends on how what came true scatters inside them, and the rate on both."""
        return approximate(self.answer(tied(self, table)), "a kernel estimate whose bandwidth depends on the rows")

    def _error(self, ladder: Ladder) -> tuple[float, float]:
        """One question's error and bandwidth."""
        values = ladder.values.astype(np.float64)
        hits, counts = ladder.targets.differences().value, np.diff(ladder.ranks).astype(np.float64)
        bandwidth = _deviation(values, hits) * (2 * max(ladder.n, 1)) ** -0.2
        if not bandwidth >= STEP:
            return np.nan, bandwidth
        points = np.linspace(-0.6, 1.6, 1 << 14)
        points = points[(points > 0) & (points < 1)]
        hits_near, near = _kernel_sums(values, np.array([hits, counts]), points, 3 * bandwidth)
        dense = near * 35 / (32 * 3 * bandwidth * ladder.n) > FAINT
        rate = hits_near / np.where(dense, near, 1.0)
        near[[0, -1]] /= 2  # the trapezoid rule
        error = (np.where(dense, np.abs(points - rate), 0.0) ** self.order * near).sum() / near.sum()
        return float(error ** (1 / self.order)), bandwidth


def _deviation(values: Floats, counts: Floats) -> float:
    """Standard deviation of counted values; nan where there is none."""
    total = counts.sum()
    if total == 0:
        return np.nan
    return float(np.sqrt((counts * (values - (counts * values).sum() / total) ** 2).sum() / total))


def _kernel_sums(values: Floats, counts: Floats, points: Floats, width: float) -> Floats:
    """Each row of counts, mirrored and summed under the kernel at every point: no binning, no loop over samples.

    The kernel is a polynomial of degree 6, so its sum over a window is a difference of running moments. These are
    taken about the middle of blocks one kernel width long, of which a window meets three, lest high powers cancel.
    """
    low = values < 0.5
    mirrored = np.concatenate([-values[low][::-1], values, 2.0 - values[~low][::-1]]) / width
    counts = np.concatenate([counts[:, low][:, ::-1], counts, counts[:, ~low][:, ::-1]], axis=1)
    block, at = np.floor(mirrored), points / width
    first, last = (np.searchsorted(mirrored, at + side) for side in (-1, 1))
    kernel = np.polynomial.Polynomial([1, 0, -3, 0, 3, 0, -1])
    inside = mirrored - block - 0.5
    running = np.zeros((len(counts), len(mirrored) + 1))
    sums = np.zeros((len(counts), len(points)))
    for power in range(7):
        np.cumsum(counts, axis=1, out=running[:, 1:])
        counts = counts * inside
        for home in (np.floor(at) - 1, np.floor(at), np.floor(at) + 1):
            start, stop = (np.clip(np.searchsorted(block, home, side), first, last) for side in ("left", "right"))
            taylor = kernel.deriv(power)(at - home - 0.5) * (-1) ** power / factorial(power)
            sums += taylor * (running[:, stop] - running[:, start])
    return sums
