"""The isotonic error: what a score would gain if forecasts were recalibrated without losing their order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant import kernels
from calibrant.aggregates import Across, mean_of
from calibrant.binning.bounds import MEAN_ROOM, Entries, extreme_orders, outward
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.errors.asking import OfTable
from calibrant.errors.bounding import within_of
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.tallies import rising_corners
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.lenses import Lens, TopLabel
from calibrant.result import Result
from calibrant.selections import Mask, Selection, everything
from calibrant.specification.facts import Facts, declare, error, facts_of
from calibrant.specification.naming import spoken

Score = Callable[[Floats, Floats], Floats]
"""The mean score of forecasts x of an event that happens at rates r; proper if x = r is best."""


MOST_EXACT = 1 << 31
"""Samples whose rates are compared in whole numbers; of more, products would leave int64."""
ROUNDING = 2.0**-50
"""More than the rounding of squares to units and of a few quotients can leave of nothing."""


def quadratic_within(ladder: Ladder) -> tuple[float, float]:
    """The mean Brier score of forecasts in cells: sums of what happened, p y and p^2 decide it.

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise([0, 1], [.25, .75]).ladders()
    >>> quadratic_within(ladder)
    (0.0625, 0.0625)
    """
    squared = ladder.squared_outputs
    assert squared is not None  # tables of cells have them
    rest = float((squared.sum(0) + ladder.targets.differences().sum(0)).value)
    low, high = (float(true.sum()) for true in Entries.of(ladder).true_outputs)
    return (rest - 2 * high) / ladder.n, (rest - 2 * low) / ladder.n


def logarithmic_within(ladder: Ladder) -> tuple[float, float]:
    """Between what the mean log loss of forecasts in cells lies.

    The forecasts of what happened, and of the others, have known means: all at their mean they lose least, all at the
    ends of their cell most.

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise([0, 1, 1], [.311, .312, .9]).ladders()
    >>> [round(end, 5) for end in logarithmic_within(ladder)]
    [0.54754, 0.54754]
    """
    return log_loss_within(Entries.of(ladder))


def log_loss_within(entries: Entries) -> tuple[float, float]:
    """Between what the mean log loss of the forecasts of entries lies.

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise([1], [.5]).ladders()
    >>> [round(end, 5) for end in log_loss_within(Entries.of(ladder))]
    [0.69315, 0.69315]
    """
    failed, n, ends = entries.counts - entries.hits, float(entries.counts.sum()), []
    for side, end in ((1, 1), (-1, 0)):
        true, false = entries.true_outputs[end], entries.false_outputs[1 - end]
        with np.errstate(divide="ignore", invalid="ignore"):
            means = true / entries.hits + side * MEAN_ROOM, false / failed - side * MEAN_ROOM
        happened = _lost(entries, entries.hits, means[0], lambda p: -np.log(p), at_ends=side < 0)
        ends.append((happened + _lost(entries, failed, means[1], lambda p: -np.log1p(-p), at_ends=side < 0)) / n)
    return ends[0], ends[1]


def _lost(entries: Entries, counts: Floats, means: Floats, loss: Callable[[Floats], Floats], *, at_ends: bool) -> float:
    """The summed loss of so many forecasts of each entry with these means: all at the mean, or at the entry's ends."""
    there = counts > 0
    low, high, mean = (each[there] for each in (entries.low, entries.high, np.clip(means, entries.low, entries.high)))
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = loss(mean)
        if at_ends:
            chord = loss(low) + (loss(high) - loss(low)) * (mean - low) / (high - low)
            losses = np.where(high > low, chord, losses)
    return float((counts[there] * losses).sum())


_SCORE = Facts("score", estimator="IsotonicError", low=0.0)


@declare(dataclasses.replace(_SCORE, high=1.0, multiples=(1, -2, 1), within=quadratic_within))
def quadratic(forecast: Floats, rate: Floats) -> Floats:
    r"""The Brier score of an event, :math:`r (1 - x)^2 + (1 - r) x^2`.

    >>> quadratic(np.array([.75, .5]), np.array([1., 0.])).tolist()
    [0.0625, 0.25]
    """
    return rate * np.square(1.0 - forecast) + (1.0 - rate) * np.square(forecast)


@declare(dataclasses.replace(_SCORE, within=logarithmic_within))
def logarithmic(forecast: Floats, rate: Floats) -> Floats:
    r"""The log loss in nats, :math:`-r \ln x - (1 - r) \ln(1 - x)` with 0 ln 0 = 0.

    Infinite where what was ruled out came true.

    >>> logarithmic(np.array([1., 1., .5]), np.array([1., .9, 1.])).round(4).tolist()
    [0.0, inf, 0.6931]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        happened = np.where(rate > 0, rate * np.log(forecast), 0.0)
        failed = np.where(rate < 1, (1.0 - rate) * np.log1p(-forecast), 0.0)
    return 0.0 - happened - failed


@dataclass(frozen=True, repr=False)
class IsotonicError(OfTable):
    r"""How much worse are the forecasts than the best non-decreasing function of them?

    .. math:: \mathrm{MCB} = \frac1n \sum_i \big( S(p_i, r_i) - S(\hat r_i, r_i) \big)

    S is the proper `score`, r_i the rate at which forecasts equal to p_i came true, and r-hat the isotonic regression
    of these rates on the forecasts (`isotonic_curve`), the best recalibration under every proper score at once. The
    details are `miscalibration`, MCB; `discrimination`, DSC, the mean of S(y-bar, r_i) - S(r-hat_i, r_i);
    `uncertainty`, UNC = S(y-bar, y-bar); and `score`, which is MCB - DSC + UNC. Where there are several questions, each
    part is combined as the value is. What rounding leaves of MCB or DSC is cut off: below 0, and under `quadratic`,
    whose sums are exact, below 2^-50. The bins of the result are the pools of equal r-hat.

    Tied forecasts are one; soft labels count as rates. Under `logarithmic`, a forecast of 0 that came true (or of 1
    that did not) makes MCB and score infinite; DSC and UNC stay finite. Where all outcomes are equal, DSC and UNC are
    0. Cost: one sort, then linear. Asks events (one coordinate) only.

    References: Dimitriadis, Gneiting & Jordan (2021), the CORP score decomposition.

    >>> result = IsotonicError()([0, 1, 0, 1], [.1, .3, .6, .8])  # r-hat is 0, .5, .5, 1
    >>> {name: round(part, 10) for name, part in result.details.items()}
    {'miscalibration': 0.1, 'discrimination': 0.125, 'uncertainty': 0.25, 'score': 0.225}
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    score: Score = quadratic
    across: Across = mean_of

    def __post_init__(self) -> None:
        if not callable(self.score):
            raise CalibrationInputError(
                "score",
                "must be a function of forecasts and rates",
                got=repr(self.score),
                hint="use quadratic or logarithmic",
            )

    @property
    def part_facts(self) -> Facts:
        """What is cut off at 0 is never negative; a score that is bounded bounds it."""
        score = facts_of(self.score)
        return error(high=score.high - score.low)

    @property
    def undecided(self) -> Callable[[Ladder], Mask] | None:
        """Known of scores that follow from sums."""
        return _undecided if facts_of(self.score).multiples else None

    def answer(self, summary: Forecasts) -> Result:
        """Pool the table, score it as it is, recalibrated and flat."""
        each: list[tuple[float, float, float]] = []

        def cuts(ladder: Ladder) -> Ints:
            pools = Pools.of(ladder)
            each.append(self._parts(ladder, pools))
            return pools.ranks

        bins = summary.cut(cuts)
        sizes, parts = bins.held, np.array(each).T
        mcb, dsc, unc = (self.across(part, sizes)["value"] for part in parts)
        details = {"miscalibration": mcb, "discrimination": dsc, "uncertainty": unc, "score": mcb - dsc + unc}
        words = "isotonic", f"{spoken(self.score)} score"
        return self.combined(bins.about, parts[0], sizes, *words, bins=bins, details=details)

    def between(self, ladder: Ladder) -> tuple[float, float] | None:
        """The score of the forecasts less that of the best recalibration, each between its bounds."""
        ends = within_of(self.score, ladder)
        if ends is None:
            return None
        (low, high), (least, most) = ends, self._best(ladder)
        return max(low - most, 0.0), max(high - least, 0.0)

    def within(self, table: Forecasts) -> Result:
        """The value with its bounds, and those of the discrimination as details."""
        result, ladders = super().within(table), list(table.ladders())
        ends = np.array([self._discriminates(ladder) if ladder.n else (np.nan, np.nan) for ladder in ladders]).T
        sizes = np.array([ladder.n for ladder in ladders], np.float64)
        low, high = outward(*(np.array(self.across(each, sizes)["value"]) for each in ends))
        details = {**result.details, "discrimination_low": max(float(low), 0.0), "discrimination_high": float(high)}
        return dataclasses.replace(result, details=details)

    def _discriminates(self, ladder: Ladder) -> tuple[float, float]:
        """Between what the score that the base rate loses to the best recalibration lies."""
        base = ladder.happened.value / ladder.n
        flat, (least, most) = float(self.score(base, base)[0]), self._best(ladder)
        return max(flat - most, 0.0), max(flat - least, 0.0)

    def _best(self, ladder: Ladder) -> tuple[float, float]:
        """Between what the score of the best recalibration lies.

        It is lowest where in each cell those that failed come first: no order of outcomes rises more. Functions that
        are constant on cells are some of those that rise.
        """
        scores = []
        for table in (extreme_orders(ladder)[0], ladder):
            scores.append(self._least(Pools.of(table), ladder.n))
        return scores[0], scores[1]

    def _least(self, pools: Pools, n: int) -> float:
        """The mean score of the best recalibration."""
        return float((pools.sizes * self.score(pools.rates, pools.rates)).sum() / n)

    def _parts(self, ladder: Ladder, pools: Pools) -> tuple[float, float, float]:
        """MCB, DSC and UNC of one question."""
        if ladder.n == 0:
            return np.nan, np.nan, np.nan
        base = ladder.happened.value / ladder.n
        unc = float(self.score(base, base)[0])
        multiples = facts_of(self.score).multiples
        if multiples is None:
            share, best = ladder.counts / ladder.n, self.score(pools.curve, ladder.rates)
            flat_and_given = base, ladder.values.astype(np.float64)
            dsc, mcb = (float((share * (self.score(each, ladder.rates) - best)).sum()) for each in flat_and_given)
            return max(mcb, 0.0), max(dsc, 0.0), unc
        least = self._least(pools, ladder.n)
        mcb, dsc = _summed(ladder, multiples) / ladder.n - least, unc - least
        return mcb * (mcb > ROUNDING), dsc * (dsc > ROUNDING), unc


def _summed(ladder: Ladder, multiples: tuple[int, int, int]) -> float:
    """A score that is made of outcomes, forecasts of what came true and squared forecasts: exact sums, rounded once."""
    true, squared = ladder.true_outputs, ladder.squared_outputs
    if true is None and squared is None and ladder.n < MOST_EXACT and ladder.targets_are_whole:
        limbs = kernels.table_sums(ladder.values, ladder.counts, ladder.hits)
        pair = Totals(np.array(limbs[::2]), np.array(limbs[1::2]))
        sums = Totals.joined([ladder.happened, pair])
        return float(sums.times(np.array(multiples)).sum(0).value)
    happened, values = ladder.targets.differences(), ladder.values.astype(np.float64)
    if true is None:
        whole = happened.is_whole
        true = Totals.of(values).times(happened.floor) if whole else Totals.of(values * happened.value)
    if squared is None:
        squared = Totals.of(np.square(values)).times(ladder.counts)
    parts = zip((happened, true, squared), multiples, strict=True)
    return float(
        Totals.joined([part.sum(0).reshape(1).times(np.array(multiple)) for part, multiple in parts]).sum(0).value
    )


def _undecided(ladder: Ladder) -> Mask:
    """The cells at the ends of pools, and those in which a pool may end; under soft labels, all.

    Outcomes inside a cell add up to no less than if those that failed came first. Where even then the sum stays above
    the pool's line, no order inside the cell can make a corner.
    """
    if ladder.true_outputs is None or ladder.n == 0:
        return ladder.cells
    pools, counts, happened = Pools.of(ladder), ladder.counts, ladder.targets.differences().value
    corners = pools.corners
    wanted = np.zeros(len(counts), bool)
    wanted[corners[:-1]] = wanted[corners[1:] - 1] = True
    pool, failed = np.repeat(np.arange(len(corners) - 1), np.diff(corners)), counts - happened
    begin = corners[:-1][pool]
    line = pools.rates[pool] * (ladder.ranks[:-1] + failed - ladder.ranks[begin])
    risen = (ladder.targets[:-1] - ladder.targets[begin]).value
    return wanted | ((happened > 0) & (failed > 0) & (risen < line + 1e-9 + 1e-14 * ladder.n))


@declare(Facts("smoother", estimator="CurveError"))
def isotonic_curve(ladder: Ladder) -> Floats:
    r"""The isotonic regression of outcomes on forecasts, at each distinct forecast: the CORP reliability curve.

    .. math:: \hat r_k = \max_{i \le k} \min_{j \ge k} \frac{t_i + \dots + t_j}{n_i + \dots + n_j}

    with n_k forecasts of the k-th distinct value, t_k of which came true.

    >>> import calibrant as cal
    >>> summary = IsotonicError().summarise(cal.Predictions.from_probs([0, 1, 0, 1], [.1, .3, .6, .8]))
    >>> [isotonic_curve(ladder).tolist() for ladder in summary.ladders()]
    [[0.0, 0.5, 0.5, 1.0]]
    """
    return Pools.of(ladder).curve


@dataclass(frozen=True, eq=False)
class Pools:
    """Stretches of the entries of one question whose rates rise from one to the next.

    >>> import calibrant as cal
    >>> (ladder,) = IsotonicError().summarise([0, 1, 0, 1], [.1, .3, .6, .8]).ladders()
    >>> pools = Pools.of(ladder)
    >>> pools.sizes.tolist(), pools.rates.tolist()
    ([1, 2, 1], [0.0, 0.5, 1.0])
    """

    corners: Ints
    """The entries at which pools begin, and the end."""
    ranks: Ints
    """How many samples lie before each, and in all."""
    totals: Floats
    """How many of each pool's samples came true."""

    @classmethod
    def of(cls, ladder: Ladder) -> Pools:
        """The pools of the isotonic regression; without samples, one that is empty."""
        if ladder.n == 0:
            return cls(np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(1))
        if ladder.n < MOST_EXACT and ladder.targets_are_whole:
            corners, ranks, came = kernels.rising(ladder.counts, ladder.hits)
            return cls(corners, ranks, np.diff(came).astype(np.float64))

        def between(corners: Ints) -> tuple[Ints, Floats]:
            return np.diff(ladder.ranks[corners]), ladder.targets[corners].differences().value

        corners = rising_corners(len(ladder.values), between)
        return cls(corners, ladder.ranks[corners], between(corners)[1])

    @property
    def sizes(self) -> Ints:
        """How many samples each pool has."""
        return np.diff(self.ranks)

    @property
    def rates(self) -> Floats:
        """How often the samples of each pool came true."""
        return self.totals / np.maximum(self.sizes, 1)

    @property
    def curve(self) -> Floats:
        """The rate of the pool of each entry."""
        return np.repeat(self.rates, np.diff(self.corners))
