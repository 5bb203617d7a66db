"""Group gaps: how far forecasts are from outcomes in the mean, group by group."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from calibrant.door.arrays import Array
from calibrant.inference.comparison import holm
from calibrant.inference.grouped import BLOCK
from calibrant.inference.skewness import skewed_by
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions
from calibrant.report.charts import SHORT, signed_bars
from calibrant.report.quoting import Quoted, quoted_p, sides

LEVEL = 0.05
"""The corrected p-value up to which a group is flagged."""
FEW = 5
"""Where the rarer outcome was seen fewer times, the interval of a gap holds the exact one of its frequency."""
_NORMAL = 9.0
"""The variance, in units of the largest weight, from which on the sum of the gaps is taken to be normal."""


@dataclass(frozen=True)
class Gap:
    """One group: its rows, what was forecast, what came true, and how sure the difference is."""

    name: str
    rows: int
    forecast: float
    frequency: float
    low: float
    high: float
    """The 90 % interval of the gap: Student's t corrected for skewness, and exact where one outcome is rare; nan for a
    single row."""
    p: float
    """How likely calibrated forecasts would be as far off."""
    sides: tuple[str, str] = ("over-confident", "under-confident")
    """What forecasts above, and below, what came true are called."""
    effect: float = 1.0
    """By how much the variance grows because forecasts are not independent (design effect); at least 1."""
    units: int = 0
    """Rows, or clusters of forecasts, that are independent of each other."""

    @property
    def value(self) -> float:
        """Mean forecast less frequency."""
        return self.forecast - self.frequency

    @property
    def cells(self) -> tuple[str | float | Quoted, ...]:
        """What tables say of it: name, gap, p-value, flag, interval of the gap, rows, mean prediction, frequency."""
        p = quoted_p(self.p)
        return self.name, self.value, p, self.flag, self.low, self.high, self.rows, self.forecast, self.frequency

    @property
    def flag(self) -> str:
        """Over- or under-confident, too high or too low, if that is more than noise."""
        return self.sides[self.value < 0] if self.p <= LEVEL else ""


def gaps(event: Predictions, group: Array, names: Sequence[str], cluster: Ints | None = None) -> list[Gap]:
    """The gap of every group that has forecasts; group[i] is the group of forecast i.

    Forecasts of one cluster may depend on each other; only clusters are taken to be independent.

    >>> event = Predictions.from_probs([1, 0, 0, 0], [.9, .1, .5, .5])
    >>> [(gap.name, gap.rows, round(gap.value, 4)) for gap in gaps(event, np.array([0, 0, 1, 1]), ["a", "b"])]
    [('a', 2, 0.0), ('b', 2, 0.5)]
    """
    many = len(names)
    size, promised, kept, variance, heaviest = np.zeros((5, many))
    single, joint = np.zeros((2, 8, many))
    if cluster is not None and (np.diff(cluster) < 0).any():
        order = np.argsort(cluster, kind="stable")
        event, group, cluster = event[order], group[order], cluster[order]
    for start, stop in itertools.pairwise(_borders(len(event), cluster)):
        part, inside = event[start:stop], group[start:stop]
        p, truth = np.asarray(part.probabilities, np.float64), part.truth_rows
        weight = np.ones(len(p)) if part.weight is None else part.weight
        rest = weight * (p - truth)
        for sums, values in (
            (size, weight), (promised, weight * p), (kept, weight * truth), (variance, weight**2 * p * (1 - p)),
        ):  # fmt: skip
            sums += np.bincount(inside, values, many)
        np.maximum.at(heaviest, inside, weight)
        single += _moments(rest, weight, inside, many)
        if cluster is not None:
            cells, cell = np.unique(cluster[start:stop] * many + inside, return_inverse=True)
            rests, weights = (np.bincount(cell.ravel(), values).astype(np.float64) for values in (rest, weight))
            joint += _moments(rests, weights, cells % many, many)
    units = single if cluster is None else joint
    with np.errstate(invalid="ignore", divide="ignore"):
        forecast, frequency = promised / size, kept / size
        gap = forecast - frequency
        spread, alone = _spread(units, gap), _spread(single, gap)
        effect = np.maximum(np.where(alone > 0, spread / alone, units[3] / single[3]), 1.0)
    times = np.nan_to_num(effect, nan=1.0)  # of groups without forecasts
    p_values = tail(promised - kept, variance * times, heaviest * times)
    held = np.flatnonzero(single[0]).tolist()
    ends = np.full((2, many), np.nan)
    rows = size**2 / np.maximum(single[3], 1e-300) / times
    for index in held:
        moments = units[:, index] / size[index] ** np.array([0, 2, 2, 2, 3, 3, 3, 3])
        ends[:, index] = _ends(moments, forecast[index], frequency[index], rows[index])
    numbers = np.array([forecast, frequency, *ends, p_values])
    entries = [Gap(names[index], int(single[0, index]), *numbers[:, index].tolist()) for index in held]
    more = zip(entries, effect[held].tolist(), units[0, held].astype(int).tolist(), strict=True)
    return [dataclasses.replace(entry, sides=sides(event), effect=e, units=u) for entry, e, u in more]


def _borders(n: int, cluster: Ints | None) -> list[int]:
    """Where blocks of forecasts end: after about as many as are looked at together, and between clusters."""
    ends = np.arange(BLOCK, n, BLOCK)
    if cluster is not None:
        last = np.append(np.flatnonzero(np.diff(cluster)) + 1, n)
        ends = np.unique(last[np.searchsorted(last, ends)])
    return [0, *ends[ends < n].tolist(), n]


def _moments(rest: Floats, weight: Floats, inside: Array, groups: int) -> Floats:
    """Of each group how many units, and the sums of products of rests and weights: rr, rw, ww, and three."""
    columns = (weight > 0, rest**2, weight * rest, weight**2, rest**3, rest**2 * weight, rest * weight**2, weight**3)
    return np.array([np.bincount(inside, values, groups) for values in columns])


def _spread(moments: Floats, gap: Floats) -> Floats:
    """The summed (rest - gap x weight)^2."""
    _, squares, crossed, weights, *_ = moments
    return np.maximum(squares - 2 * gap * crossed + gap**2 * weights, 0.0)


def _ends(moments: Floats, forecast: float, frequency: float, rows: float) -> tuple[float, float]:
    """The ends of a group's interval, from moments of its mean and its effective number of rows."""
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    n, gap = int(moments[0]), forecast - frequency
    if n < 2:
        return math.nan, math.nan
    cubes = float(moments[4:] @ [1.0, -3 * gap, 3 * gap**2, -(gap**3)])
    low, high = skewed_by(gap, float(_spread(moments, np.asarray(gap))), cubes, n, 0.9)
    happened = min(max(frequency, 0.0), 1.0) * rows
    if min(happened, rows - happened) >= FEW:
        return low, high
    least = betaincinv(happened, rows - happened + 1, 0.05) if happened > 0 else 0.0
    most = betaincinv(happened + 1, rows - happened, 0.95) if happened < rows else 1.0
    return min(low, forecast - float(most)), max(high, forecast - float(least))


def corrected(groups: Sequence[Gap]) -> list[Gap]:
    """The same groups with p-values corrected for their number by Holm's method.

    >>> [gap.p for gap in corrected([Gap("a", 9, .5, .4, 0., .2, .04), Gap("b", 9, .5, .4, 0., .2, .01)])]
    [0.04, 0.02]
    """
    p_values = holm(np.array([group.p for group in groups]))
    return [dataclasses.replace(group, p=float(p)) for group, p in zip(groups, p_values, strict=True)]


def most_drawn(names: Sequence[str]) -> int:
    """How many bars a picture has room for: fewer where a name is so long that it needs a line of its own.

    >>> most_drawn(["north", "south"]), most_drawn(["education = college or university"])
    (16, 10)
    """
    return 16 if max(map(len, names), default=0) <= SHORT else 10


def gap_bars(identity: str, shown: Sequence[Gap], title: str, what: str) -> Markup:
    """The gaps of groups or classes as bars, what is more than noise flagged."""
    over, under = shown[0].sides
    return signed_bars(
        identity,
        [gap.name for gap in shown],
        [gap.value for gap in shown],
        title,
        f"Bars of {what}: to the right {over}, to the left {under}.",
        label=f"← {under} · points · {over} →",
        low=[gap.low for gap in shown],
        high=[gap.high for gap in shown],
        flagged=[bool(gap.flag) for gap in shown],
    )


def tail(total: Floats, variance: Floats, heaviest: Floats) -> Floats:
    r"""How likely calibrated forecasts are to have a summed gap t at least as far from 0.

    .. math:: \operatorname{erfc}\big(|t| / \sqrt{2V}\big), \qquad V = \sum_i w_i^2 p_i (1 - p_i)

    where V is at least nine times the square of the largest weight M; below, the sum is not normal and Bernstein's
    bound :math:`2 \exp(-t^2 / (2V + 2 M |t| / 3))` stands for it, which is too large rather than too small. So is the
    whole under soft labels, which scatter less.

    >>> tail(np.array([196.0, 1.0]), np.array([1e4, 1.0]), np.array([1.0, 1.0])).round(4).tolist()
    [0.05, 1.0]
    """
    p_values = np.ones(len(total))
    for index, (t, v, most) in enumerate(zip(np.abs(total), variance, heaviest, strict=True)):
        if not t > 1e-9 * most:
            continue
        if v >= _NORMAL * most**2:
            p_values[index] = math.erfc(t / math.sqrt(2 * v))
        else:
            p_values[index] = min(1.0, 2 * math.exp(-(t**2) / (2 * v + 2 * most * t / 3)))
    return p_values
