"""Errors of a smooth calibration curve: how far it lies from the forecasts, over the sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.aggregates import Across, Aggregate, mean, mean_of
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.checks import number, whole
from calibrant.errors.asking import OfTable
from calibrant.errors.bounding import approximate, tied
from calibrant.errors.statistic import counted
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses.events import TopLabel
from calibrant.lenses.lens import Lens
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.facts import Facts, error
from calibrant.specification.naming import spoken

Smoother = Callable[[Ladder], Floats]
"""How often the event happens at each distinct forecast, as a smooth curve says."""

VERTICES = 129
"""Distinct forecasts at which a local regression is fitted; between them it is interpolated."""


@dataclass(frozen=True)
class loess:  # noqa: N801 - a smoother reads as a function
    r"""Local polynomial regression of outcomes on forecasts, with tricube weights.

    At a forecast x, the polynomial of the `degree` fitted to the q = floor(span * n) samples that are nearest, with
    weights :math:`(1 - (|p_i - x| / h)^3)^3`, h the distance of the farthest of them. Where fewer distinct forecasts
    than the degree asks for have weight, it passes through their mean outcomes. Fitted at every distinct forecast; of
    more than 129, at 129 of them that are spread evenly, with straight lines in between, which changes
    the ICI by about 1e-6. Not robust: outcomes are 0 or 1, none of them an outlier.

    References: Cleveland & Devlin (1988); span 0.75 and degree 2 as in Austin & Steyerberg (2019).

    >>> import calibrant as cal
    >>> (ladder,) = cal.ICI.summarise([0, 1, 0, 1, 1], [.1, .3, .5, .7, .9]).ladders()
    >>> loess(span=1.0)(ladder).round(4).tolist()
    [0.1377, 0.4798, 0.0, 0.6099, 1.1033]
    """

    span: float = 0.75
    degree: int = 2

    def __post_init__(self) -> None:
        number(self.span, "span", "must lie in (0, 1]", lambda share: 0 < share <= 1)
        whole(self.degree, "degree", 0, 2)

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return Facts("smoother", "CurveError", words=f"loess of span {self.span:g}, degree {self.degree}")

    def __call__(self, ladder: Ladder) -> Floats:
        values, counts, hits = counted(ladder)
        vertices = np.unique(np.rint(np.linspace(0, len(values) - 1, VERTICES)).astype(np.int64))
        points = values[vertices]
        fits = []
        for x, reach in zip(points, _reaches(ladder, points, max(1, int(self.span * ladder.n + 1e-9))), strict=True):
            inside = slice(np.searchsorted(values, x - reach), np.searchsorted(values, x + reach, side="right"))
            fits.append(self._sums((values[inside] - x) / (reach or 1.0), counts[inside], hits[inside]))
        moments, sums = map(np.stack, zip(*fits, strict=True))
        inverses = np.linalg.pinv(moments, rcond=1e-12, hermitian=True)
        return np.interp(values, points, (inverses[:, 0] * sums).sum(axis=1))

    def _sums(self, away: Floats, counts: Floats, hits: Floats) -> tuple[Floats, Floats]:
        """Both sides of the normal equations of one fit, in distances from its point over the largest of them."""
        far = np.abs(away)
        nearness = 1.0 - far * far * far  # NumPy's powers are slow
        weight = nearness * nearness * nearness
        powers = np.arange(self.degree + 1)
        moments = _moments(weight * counts, away, 2 * self.degree)[powers[:, None] + powers]
        return moments, _moments(weight * hits, away, self.degree)


@dataclass(frozen=True, repr=False)
class CurveError(OfTable):
    r"""How far is a smooth calibration curve from the forecasts, over the sample?

    .. math:: \mathrm{aggregate}_i \; |\hat c(p_i) - p_i|

    with the curve c of the `smoother`, cut off at 0 and 1: `loess`, `isotonic_curve`, or a function of your own from a
    table to its curve. The aggregate says which number of these distances is meant: `mean` makes it the integrated
    calibration index (ICI), `sample_quantile(0.5)` and `sample_quantile(0.9)` are E50 and E90, `maximum` is Emax.

    Whole weights are repetition, fractional ones are refused; soft labels count as shares of outcomes. The span of a
    smoother does not shrink as samples are added, so bends that are narrower than it stay hidden. Asks events only.

    References: Austin & Steyerberg (2019); Harrell (2015) for Emax.

    >>> import calibrant as cal
    >>> print(cal.ICI([0, 0, 1, 0, 1, 1], [.1, .2, .4, .6, .7, .9]))
    ICI 0.3167 (n=6, event, loess of span 0.75, degree 2)
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    smoother: Smoother = loess()
    aggregate: Aggregate = mean
    across: Across = mean_of

    @property
    def part_facts(self) -> Facts:
        """An error of L1 kind, passed through the aggregate."""
        return error(order=1.0, cost=64.0).through(self.aggregate)

    def answer(self, summary: Forecasts) -> Result:
        """The distance at each distinct forecast, each of which counts as often as it was made."""
        bins = summary.cut(_apart)
        distances = np.zeros(bins.counts.shape)
        for row, ladder in zip(distances, summary.ladders(), strict=True):
            if ladder.n:
                curve = np.clip(self.smoother(ladder), 0.0, 1.0)
                row[: len(curve)] = np.abs(curve - ladder.values.astype(np.float64))
        sizes = bins.counts.sum(axis=1)
        return self.combined(summary.about, self.aggregate(distances, bins), sizes, spoken(self.smoother))

    def within(self, table: Forecasts) -> Result:
        """Of tied cells: which samples are nearest, and so a smooth curve, may depend on their order inside."""
        return approximate(self.answer(tied(self, table)), "a smooth curve")


def _moments(weight: Floats, away: Floats, most: int) -> Floats:
    """The weighted sums of the powers 0 .. most."""
    sums = [weight.sum()]
    for _ in range(most):
        weight = weight * away
        sums.append(weight.sum())
    return np.array(sums)


def _apart(ladder: Ladder) -> Ints:
    """Cuts that make every distinct forecast a bin."""
    return ladder.ranks if ladder.n else np.zeros(2, np.int64)


def _reaches(ladder: Ladder, points: Floats, q: int) -> Floats:
    """The distance of the q-th nearest sample from each point.

    The nearest samples are neighbours in order; where they begin is found by halving the ranks that are left.
    """

    def value_at(ranks: Ints) -> Floats:
        return ladder.values[np.searchsorted(ladder.ranks, ranks, side="right") - 1].astype(np.float64)

    first, last = np.zeros(len(points), np.int64), np.full(len(points), ladder.n - q)
    while (first < last).any():
        middle = (first + last) // 2
        is_left = points - value_at(middle) > value_at(np.minimum(middle + q, ladder.n - 1)) - points
        first, last = np.where(is_left & (first < last), middle + 1, first), np.where(is_left, last, middle)
    return np.maximum(points - value_at(first), value_at(first + q - 1) - points)
