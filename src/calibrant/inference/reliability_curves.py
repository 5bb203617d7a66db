"""Reliability curves: how often forecasts come true as a function of the forecast, and how surely that is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from calibrant.binning.contract import Binning, RankBinning
from calibrant.binning.fixed import EqualWidth
from calibrant.binning.running import Ladder
from calibrant.errors.isotonic import isotonic_curve
from calibrant.errors.local_linear import BANDWIDTHS, CELLS, LocalLines
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.proportions import largest_chance, least_chance, wilson
from calibrant.kernels.totals import Floats, Ints
from calibrant.specification.facts import facts_of

POINTS = 257
"""Points at most at which a band is computed."""
EVERY = CELLS // (POINTS - 1)
"""The ends of cells that are points of the smooth curve."""
TURN = math.acos((2 * math.sqrt(2) / 3) ** 0.5)
"""How far the weights of a normal kernel turn from a bandwidth to the next, in radians."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of a reliability curve, and what to call it; nan where it says nothing. With a band, also its ends.

    >>> Curve("isotonic", np.array([.2, .8]), np.array([.1, .9])).low is None
    True
    """

    name: str
    forecast: Floats
    frequency: Floats
    low: Floats | None = None
    high: Floats | None = None
    covers: str = ""
    """What lies between the ends, in words."""


CurveOf = Callable[[Ladder], Curve]
"""A way to a curve from the table of distinct forecasts of one event."""
ConfidenceOf = Callable[[Ladder, float, bool], Curve]
"""A way to a curve with its confidence band, of a level, at each point or for all at once."""
Bound = Callable[[Ints, Ints, float], Floats]
"""A way to an end of the chances, from hits, sizes and a tail."""
F = TypeVar("F", bound=CurveOf)


@runtime_checkable
class HasConfidence(Protocol):
    """A curve that knows how surely it is known."""

    @property
    def confidence(self) -> ConfidenceOf:
        """The curve with its confidence band."""


def known_within(confidence: ConfidenceOf) -> Callable[[F], F]:
    """A decorator: this is the confidence band of the curve.

    >>> @known_within(lambda ladder, level, simultaneous: Curve("flat", np.zeros(1), np.zeros(1)))
    ... def flat(ladder):
    ...     return Curve("flat", np.zeros(1), np.zeros(1))
    >>> isinstance(flat, HasConfidence)
    True
    """

    def declared(curve: F) -> F:
        curve.confidence = confidence  # type: ignore[attr-defined]
        return curve

    return declared


def spread(length: int) -> Ints:
    """The places of at most 257 entries of so many, spread evenly from the first to the last.

    >>> spread(3).tolist(), len(spread(5000))
    ([0, 1, 2], 257)
    """
    return np.unique(np.rint(np.linspace(0, length - 1, POINTS)).astype(np.int64)) if length else np.zeros(0, np.int64)


def _isotonic_confidence(ladder: Ladder, level: float, simultaneous: bool) -> Curve:
    """Bounds from stretches of neighbouring forecasts, chosen without a look at the outcomes."""
    curve = isotonic(ladder)
    at = spread(len(curve.forecast))
    bounds = _bounds_of_all if simultaneous else _bounds_of_each
    low, high = bounds(ladder, at, 1 - level) if ladder.n else (np.zeros(0), np.zeros(0))
    frequency = curve.frequency[at]
    covers = "how often the event happens, where that does not fall as the forecast rises"
    return Curve(
        "isotonic", curve.forecast[at], frequency, np.minimum(low, frequency), np.maximum(high, frequency), covers
    )


@known_within(_isotonic_confidence)
def isotonic(ladder: Ladder) -> Curve:
    r"""The isotonic regression of outcomes on forecasts, at each distinct forecast.

    The confidence band needs that the event happens no less often where the forecast is higher. Then a stretch of
    forecasts up to x happens at most as often as x does, and the lower end of Clopper & Pearson's interval of the
    stretch is one of x; what begins at x bounds it from above. For all points at once, all stretches between about
    8 n^(1/3) places of equal mass are taken, each at its share of the error (Bonferroni), and the sharpest bound
    counts; at one point, the stretches that end there and hold n^(2/3) / 8 samples, twice as many, and so on. Both
    cover at least at their level, whatever the number of samples.

    References: Dimitriadis, Gneiting & Jordan (2021); for the band Dimitriadis, Duembgen, Henzi, Puke & Ziegel (2023).

    >>> import calibrant as cal
    >>> summary = cal.IsotonicError().summarise(cal.Predictions.from_probs([0, 1, 0, 1], [.1, .3, .6, .8]))
    >>> isotonic(*summary.ladders()).frequency.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    if ladder.n == 0:
        return Curve("isotonic", np.zeros(0), np.zeros(0))
    return Curve("isotonic", ladder.values.astype(np.float64), isotonic_curve(ladder))


def _smooth_confidence(ladder: Ladder, level: float, simultaneous: bool) -> Curve:
    """The wider of two intervals: Wilson's, of as many samples as a point of the curve rests on, and the normal one."""
    curve, lines = _smoothed(ladder)
    known = ~np.isnan(curve.frequency)
    ends = np.full((2, POINTS), np.nan)
    if lines is not None and known.any():
        held, shares = lines.shares(curve.forecast[known])
        shares *= np.sqrt(lines.mass[held])
        length = _turned(shares) + TURN * (len(BANDWIDTHS) - 1) if simultaneous else 2 * TURN
        z = _tube(length, 1 - level)
        chances, middle = np.clip(lines.frequency[held], 0.0, 1.0), lines.frequency[::EVERY][known]
        reach = z * np.sqrt(np.square(shares) @ (chances * (1 - chances)))
        low, high = wilson(curve.frequency[known], 1 / np.square(shares).sum(axis=1), z)
        ends[:, known] = np.clip([np.minimum(low, middle - reach), np.maximum(high, middle + reach)], 0.0, 1.0)
    return replace(curve, low=ends[0], high=ends[1], covers="the true curve, smoothed as this one is")


@known_within(_smooth_confidence)
def smooth(ladder: Ladder) -> Curve:
    r"""Straight lines fitted to the outcomes around each point (`LocalLines`), cut off at 0 and 1.

    The bandwidth is chosen for the curve: the one of the smallest error when each sample is left out in turn. Beyond
    the smallest and largest forecast, and where less than one sample's worth of weight is within reach, there is no
    curve (nan).

    With the weights l with which outcomes make up the curve, the confidence band is the wider of Wilson's interval of
    :math:`1 / \sum_i l_i(t)^2` samples and :math:`\hat c(t) \pm z (\sum_i l_i(t)^2 \hat c(p_i) (1 - \hat
    c(p_i)))^{1/2}`. z is that of the tube formula. Since the data have chosen the bandwidth, the path at a point goes
    to the next bandwidths on both sides; for all points at once it goes from the first point to the last and through
    all bandwidths. It covers the true curve
    smoothed in the same way, :math:`\sum_i l_i(t) \pi(p_i)`: where the true curve bends within a bandwidth, that is
    not the true curve itself.

    References: Fan & Gijbels (1996), section 3; Sun & Loader (1994) for the band.

    >>> import calibrant as cal
    >>> summary = cal.SMECE.summarise(cal.Predictions.from_probs([0, 1, 0, 1], [.5, .5, .5, .5]))
    >>> curve = smooth(*summary.ladders())
    >>> float(curve.frequency[128].round(10)), bool(np.isnan(curve.frequency[0]))
    (0.5, True)
    """
    return _smoothed(ladder)[0]


def _smoothed(ladder: Ladder) -> tuple[Curve, LocalLines | None]:
    """The smooth curve, and the lines of which it is made where there are samples."""
    points = np.linspace(0.0, 1.0, POINTS)
    if ladder.n == 0:
        return Curve("smooth", points, np.full(POINTS, np.nan)), None
    lines, near = LocalLines.of(ladder), 1 / POINTS
    within = (points >= ladder.values[0] - near) & (points <= ladder.values[-1] + near) & (lines.weight[::EVERY] >= 1)
    frequency = np.where(within, np.clip(lines.frequency[::EVERY], 0.0, 1.0), np.nan)
    return Curve("smooth", points, frequency), lines


@dataclass(frozen=True)
class binned:  # noqa: N801 - a curve reads as a function
    """The observed frequency of each bin at its mean forecast; nan where a bin is empty.

    The confidence band of each bin is Wilson's interval. For all bins at once it is Clopper & Pearson's, at the
    level whose power is the one that is asked for (Sidak), since bins are independent. It covers how often, on
    average, the event happens at the forecasts that are in the bin. Binnings that look at outcomes have no such band.

    >>> import calibrant as cal
    >>> (ladder,) = cal.IsotonicError().summarise([0, 1, 1], [.25, .3, .9]).ladders()
    >>> curve = binned(cal.EqualWidth(2))(ladder)
    >>> [curve.forecast.round(3).tolist(), curve.frequency.tolist()]
    [[0.275, 0.9], [0.5, 1.0]]
    """

    binning: Binning = EqualWidth()

    def __call__(self, ladder: Ladder) -> Curve:
        """The curve of a table."""
        _, _, forecast, frequency = self._columns(ladder)
        return Curve("binned", forecast, frequency)

    def confidence(self, ladder: Ladder, level: float, simultaneous: bool) -> Curve:
        """The curve with its confidence band."""
        if facts_of(self.binning).chooses:
            got, hint = str(self.binning), "use a binning with a number of bins, such as EqualMass(15)"
            raise CalibrationInputError("band", "needs bins that outcomes do not choose", got=got, hint=hint)
        sizes, hits, forecast, frequency = self._columns(ladder)
        filled = sizes > 0
        ends = np.full((2, len(sizes)), np.nan)
        if simultaneous:
            tail = (1 - level ** (1 / max(1, filled.sum()))) / 2
            ends[:, filled] = [bound(hits[filled], sizes[filled], tail) for bound in (least_chance, largest_chance)]
        else:
            ends[:, filled] = wilson(frequency[filled], sizes[filled], _normal((1 + level) / 2))
        return Curve(
            "binned", forecast, frequency, ends[0], ends[1], "how often the event happens in the bin, on average"
        )

    def _columns(self, ladder: Ladder) -> tuple[Floats, Floats, Floats, Floats]:
        """Sizes, hits, mean forecasts and frequencies of the bins."""
        if not isinstance(self.binning, RankBinning):
            raise CalibrationInputError("binning", "must pool the forecasts of one event", got=str(self.binning))
        sizes, outputs, hits = (totals.value for totals in ladder.cut(self.binning.cuts(ladder)))
        with np.errstate(invalid="ignore"):
            return sizes, hits, outputs / sizes, hits / sizes


def _bounds_of_all(ladder: Ladder, at: Ints, error: float) -> tuple[Floats, Floats]:
    """Ends at some entries, all of which hold at once: from every stretch between places of equal mass."""
    wanted = np.linspace(0, ladder.n, 2 + math.ceil(8 * ladder.n ** (1 / 3)))
    places = np.unique(np.searchsorted(ladder.ranks, wanted))
    begin, end = np.triu_indices(len(places), 1)
    low, high = (
        _bounds(bound, ladder, places[begin], places[end], error / (2 * len(begin)))
        for bound in (least_chance, largest_chance)
    )
    least, most = np.zeros(len(places)), np.ones(len(places))
    np.maximum.at(least, end, low)
    np.minimum.at(most, begin, high)
    least, most = np.maximum.accumulate(least), np.minimum.accumulate(most[::-1])[::-1]
    return least[np.searchsorted(places, at + 1, side="right") - 1], most[np.searchsorted(places, at)]


def _bounds_of_each(ladder: Ladder, at: Ints, error: float) -> tuple[Floats, Floats]:
    """Ends at some entries, each by itself: from stretches that end or begin there."""
    shortest = max(1, round(ladder.n ** (2 / 3) / 8))
    lengths = shortest * 2 ** np.arange(1 + math.floor(math.log2(ladder.n / shortest)))
    tail = error / (2 * len(lengths))
    ranks, at = ladder.ranks, at[:, None]
    before = np.minimum(np.searchsorted(ranks, ranks[at + 1] - lengths), at)
    after = np.maximum(np.searchsorted(ranks, ranks[at] + lengths, side="right") - 1, at + 1)
    return (
        _bounds(least_chance, ladder, before, np.broadcast_to(at + 1, before.shape), tail).max(axis=1),
        _bounds(largest_chance, ladder, np.broadcast_to(at, after.shape), after, tail).min(axis=1),
    )


def _bounds(bound: Bound, ladder: Ladder, begin: Ints, end: Ints, tail: float) -> Floats:
    """The bound that each stretch between entries gives; equal counts are looked up once, since a look-up is slow."""
    hits, sizes = (ladder.targets[end] - ladder.targets[begin]).floor, ladder.ranks[end] - ladder.ranks[begin]
    pairs, place = np.unique(hits * (ladder.n + 1) + sizes, return_inverse=True)
    return bound(pairs // (ladder.n + 1), pairs % (ladder.n + 1), tail)[place].reshape(begin.shape)


def _normal(share: float) -> float:
    from scipy.special import ndtri  # type: ignore[import-untyped]

    return float(ndtri(share))


def _turned(shares: Floats) -> float:
    """How far rows turn from the first to the last, in radians."""
    unit = shares / np.sqrt(np.square(shares).sum(axis=1, keepdims=True))
    return float(np.arccos(np.clip((unit[1:] * unit[:-1]).sum(axis=1), -1.0, 1.0)).sum())


def _tube(length: float, error: float) -> float:
    r"""The z that a smooth Gaussian path of unit variance leaves with the chance `error`, in either direction.

    .. math:: 2 (1 - \Phi(z)) + \frac{\kappa}{\pi} e^{-z^2 / 2} = \alpha

    with the length kappa of the path of its weights on the unit sphere.
    """
    from scipy.optimize import brentq  # type: ignore[import-untyped]
    from scipy.special import ndtr

    return float(brentq(lambda z: 2 * ndtr(-z) + length / math.pi * math.exp(-z * z / 2) - error, 0.0, 40.0))
