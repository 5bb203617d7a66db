"""The cumulative error: how far outcomes run ahead of forecasts or behind, added up in order of forecast."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant import kernels
from calibrant.aggregates import Across, mean_of
from calibrant.binning import cells
from calibrant.binning.ladder import MOST_COUNTED, Forecasts
from calibrant.binning.running import Ladder
from calibrant.errors.asking import OfTable
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Totals
from calibrant.lenses.events import TopLabel
from calibrant.lenses.lens import Lens
from calibrant.result import Result
from calibrant.selections import Mask, Selection, everything
from calibrant.specification.facts import Facts, declare, facts_of
from calibrant.specification.naming import spoken

Statistic = Callable[[Floats], float]
"""A number that says how far a path C_0 = 0, C_1, ... goes."""


def _of_path(tail: Callable[[float], float], extremes: int) -> Facts:
    """What is known of a statistic of paths whose steps together are no longer than 1."""
    facts = Facts("statistic", "CumulativeError", low=0.0, high=1.0, sides=1, calibrated=0.0, lower_is_better=True)
    return dataclasses.replace(facts, tail=(tail, extremes))


@declare(_of_path(lambda x: brownian_reach(x), 1))
def ks(path: Floats) -> float:
    r"""The farthest from 0, after Kolmogorov and Smirnov: :math:`\max_k |C_k|`.

    >>> ks(np.array([0., .1, -.2]))
    0.2
    """
    return float(np.abs(path).max())


@declare(_of_path(lambda x: brownian_range(x), 2))
def kuiper(path: Floats) -> float:
    r"""From the lowest to the highest, after Kuiper: :math:`\max_k C_k - \min_k C_k`, C_0 = 0 included.

    >>> round(kuiper(np.array([0., .1, -.2])), 10)
    0.3
    """
    return float(path.max() - path.min())


@dataclass(frozen=True, repr=False)
class CumulativeError(OfTable):
    r"""How far do outcomes ever run ahead of forecasts or behind, without any bins?

    .. math:: C_k = \frac1n \sum_{i \le k} (y_i - p_i) \quad \text{in order of forecast, tied forecasts at once}

    The value is `statistic` of the path (`cumulative_path`): `ks` or `kuiper`. For one question, `details["p_value"]`
    is the probability that calibrated forecasts give as much or more. Whole weights count as repetition in the path; in
    the p-value a weighted row is one independent row. Their path, scaled by :math:`\sigma^2 = \sum_i v_i / n^2` with
    :math:`v_i = w_i^2 p_i (1 - p_i)` and :math:`n = \sum_i w_i`, is nearly a Brownian motion seen at its steps only,
    and so falls short of the extremes between them:

    .. math:: \left(\text{value} + e\, \frac{0.5826}{n} \frac{\sum_i v_i^{3/2}}{\sum_i v_i}\right) \Big/ \sigma

    is held against `brownian_reach` (ks: e = 1 extreme) or `brownian_range` (kuiper: e = 2). (Where rows of different
    weights tie, their :math:`\sum w^3` is taken as :math:`(\sum w^2)^2 / \sum w`, which is at most that.) A statistic
    of one's own has no p-value. Where sigma is 0, p is 1 for a value of 0, else 0. Many ties, and soft labels, scatter
    less than this assumes: their p-values are too large rather than too small. Cost: one sort. Asks events (one
    coordinate) only.

    References: Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu (2022); Gupta et al. (2021) for `ks`; Siegmund (1979) for
    the shortfall of a walk.

    >>> result = CumulativeError()([0, 0, 1, 1], [.2, .4, .4, .6])  # C is 0, -.05, 0, .1
    >>> round(result.value, 10), round(result.details["p_value"], 4)
    (0.1, 0.8817)
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    statistic: Statistic = ks
    across: Across = mean_of

    def __post_init__(self) -> None:
        if not callable(self.statistic):
            raise CalibrationInputError(
                "statistic", "must be a function of a path", got=repr(self.statistic), hint="use ks or kuiper"
            )

    @property
    def part_facts(self) -> Facts:
        """What is known of the statistic."""
        return facts_of(self.statistic)

    @property
    def undecided(self) -> Callable[[Ladder], Mask] | None:
        """Known of statistics that look at extremes alone."""
        return self._may_go_beyond if facts_of(self.statistic).tail else None

    def _may_go_beyond(self, ladder: Ladder) -> Mask:
        """The cells inside which the path may go farther up or down than at any end of a cell."""
        _, extremes = facts_of(self.statistic).tail or (None, 0)
        path = (ladder.targets - ladder.outputs).value
        top, bottom, is_open = _peaks(ladder)
        reach = np.array([path.max(), -path.min()]) if extremes > 1 else np.full(2, np.abs(path).max())
        margin = 1e-6 + 1e-14 * ladder.n
        return is_open & ((top > reach[0] - margin) | (-bottom > reach[1] - margin))

    def between(self, ladder: Ladder) -> tuple[float, float] | None:
        """Of the path at the ends of cells, and of one that goes as far inside them as it can."""
        if facts_of(self.statistic).tail is None:
            return None
        path = cumulative_path(ladder)
        top, bottom, is_open = _peaks(ladder)
        inside = np.concatenate([top[is_open & ladder.hidden], bottom[is_open & ladder.hidden]]) / ladder.n
        return self.statistic(path), self.statistic(np.concatenate([path, inside]))

    def answer(self, summary: Forecasts) -> Result:
        """Follow each question's path."""
        values, tails, sizes = np.array([self._error(ladder) for ladder in summary.ladders()]).T
        details = {"p_value": float(tails[0])} if len(values) == 1 and facts_of(self.statistic).tail else {}
        in_cells = details and summary.closed is not None and summary.closed.any()
        notes = ("p-value: forecasts count as the mean of their cell",) if in_cells else ()
        words = f"{spoken(self.statistic)} of cumulative differences"
        return self.combined(summary.about, values, sizes, words, details=details, notes=notes)

    def _error(self, ladder: Ladder) -> tuple[float, float, int]:
        """Value, p-value and size of one question."""
        if ladder.n == 0:
            return np.nan, np.nan, 0
        tail, extremes = facts_of(self.statistic).tail or (None, 0)
        if tail is None:
            return self.statistic(cumulative_path(ladder)), 1.0, ladder.n
        ends, total, cubed = _ends(ladder)
        value = self.statistic(np.array([0.0, *ends]) / ladder.n)
        if value == 0:
            return value, 1.0, ladder.n
        if total == 0:
            return value, 0.0, ladder.n
        shortfall = extremes * _SHORTFALL * cubed / total
        return value, tail((value * ladder.n + shortfall) / math.sqrt(total)), ladder.n


def _ends(ladder: Ladder) -> tuple[Floats, float, float]:
    r"""How far n C goes down and up, :math:`\sum_i v_i` and :math:`\sum_i v_i^{3/2}`."""
    plain = ladder.squares is None and ladder.closed is None and ladder.true_outputs is None
    if plain and ladder.targets_are_whole and ladder.n < MOST_COUNTED:
        hi, lo, total, cubed = kernels.path_ends(ladder.values, ladder.counts, ladder.hits)
        return Totals(hi, lo).value, total, cubed
    path, forecasts, times = (ladder.targets - ladder.outputs).value, ladder.forecasts, ladder.counts
    squares, cubes = (times, times) if ladder.squares is None else (ladder.squares, ladder.squares**2 / times)
    spread = forecasts * (1.0 - forecasts)
    cubed = float((cubes * (spread * np.sqrt(spread))).sum())
    return np.array([path.min(), path.max()]), float((squares * spread).sum()), cubed


def _peaks(ladder: Ladder) -> tuple[Floats, Floats, Mask]:
    """How far n C can go up and down inside each entry, and where there are both outcomes.

    If the y that came true came first, the path went up by y less their forecasts, which sum to y times the smallest
    forecast of the cell at least, and to all less the others at their largest. If they came last, it went down by the
    forecasts of the others, no larger than the mean.
    """
    path = (ladder.targets - ladder.outputs).value
    happened, summed = (totals.differences().value for totals in (ladder.targets, ladder.outputs))
    counts = np.diff(ladder.ranks)
    failed = counts - happened
    first = cells.firsts()[cells.numbers(ladder.values)]
    top = path[:-1] + happened - np.maximum(happened * first, summed - failed * ladder.values)
    bottom = path[:-1] - failed * summed / counts
    return top, bottom, (happened > 0) & (failed > 0)


def cumulative_path(ladder: Ladder) -> Floats:
    """C_0 = 0 and C_k after each distinct forecast, exact sums divided once.

    >>> import calibrant as cal
    >>> summary = CumulativeError().summarise(cal.Predictions.from_probs([0, 0, 1, 1], [.2, .4, .4, .6]))
    >>> [cumulative_path(ladder).round(10).tolist() for ladder in summary.ladders()]
    [[0.0, -0.05, 0.0, 0.1]]
    """
    return (ladder.targets - ladder.outputs).value / max(ladder.n, 1)


def brownian_reach(x: float) -> float:
    r"""The probability that a Brownian motion on [0, 1] gets x or more away from 0.

    .. math:: 2 \sum_{k \ge 1} (-1)^{k-1} \operatorname{erfc}\frac{(2k - 1) x}{\sqrt 2}
        = 1 - \frac4\pi \sum_{k \ge 1} \frac{(-1)^{k-1}}{2k - 1} e^{-(2k-1)^2 \pi^2 / 8 x^2}

    The first series from x = 1 on, the second below, 1 below x = 0.1; of ten terms the last do not matter any more.

    >>> round(brownian_reach(2.2414), 4)
    0.05
    """
    if x < 0.1:
        return 1.0
    if x < 1:
        terms = ((-1) ** (k - 1) / (2 * k - 1) * math.exp(-(((2 * k - 1) * math.pi / x) ** 2) / 8) for k in _TERMS)
        return 1 - 4 / math.pi * sum(terms)
    return 2 * sum((-1) ** (k - 1) * math.erfc((2 * k - 1) * x / math.sqrt(2)) for k in _TERMS)


def brownian_range(x: float) -> float:
    r"""The probability that the highest and the lowest point of a Brownian motion on [0, 1] are x or more apart.

    .. math:: 4 \sum_{k \ge 1} (-1)^{k-1} k \operatorname{erfc}\frac{k x}{\sqrt 2}
        = 1 - 8 \sum_{k \ge 1} \Big(\frac{1}{(2k-1)^2 \pi^2} + \frac{1}{x^2}\Big) e^{-(2k-1)^2 \pi^2 / 2 x^2}

    The first series from x = 2 on, the second below, 1 below x = 0.1; of ten terms the last do not matter any more.

    References: Feller (1951), whose density of the range the first series integrates.

    >>> round(brownian_range(2.4977), 4)
    0.05
    """
    if x < 0.1:
        return 1.0
    if x < 2:
        squares = [((2 * k - 1) * math.pi) ** 2 for k in _TERMS]
        return 1 - 8 * sum((1 / m + 1 / x**2) * math.exp(-m / x**2 / 2) for m in squares)
    return 4 * sum((-1) ** (k - 1) * k * math.erfc(k * x / math.sqrt(2)) for k in _TERMS)


_TERMS = range(1, 11)
_SHORTFALL = 0.5826
"""By how many steps the highest point of a normal walk stays below a Brownian motion's: -zeta(1/2) / sqrt(2 pi)."""
