"""Bounds of a logistic likelihood whose forecasts are counted in cells: gains, slope, curvature, fits nearby."""

from __future__ import annotations

import math

import numpy as np

from calibrant.binning.bounds import MEAN_ROOM, Entries
from calibrant.door.logs import sigmoid
from calibrant.kernels.totals import Floats

Range = tuple[Floats, Floats]
"""The least and the largest that something can be."""
REACH = 8.0
"""How far one step moves any log-odds, at most: far from the answer a parabola says little."""


def fit_distance(entries: Entries, level: float, rise: float) -> tuple[Floats, float] | None:
    r"""How far the line of the rows can be from a + b logit p, in a and b, and how much likelier it is at most.

    With g for the slope of the likelihood and M for what its curvature exceeds in a box, it is no farther than
    :math:`r = \sqrt{g^\top M^{-1} g}` in the norm of M, if that still lies in the box, and gains at most r^2 / 2. None
    where no box is found.

    >>> import calibrant as cal
    >>> y, p = [1, 0, 0, 1, 1, 0, 0, 1], [.311, .312, .4, .9, .7, .7, .2, .5]
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise(y, p).ladders()
    >>> away, gain = fit_distance(Entries.of(ladder), -0.1, 0.9)
    >>> bool((away < 3).all()), gain < 1
    (True, True)
    """
    gradient, box = slope_bounds(entries, level, rise), np.zeros(2)
    for _ in range(6):
        curvature = least_curvature(entries, level, rise, box)
        least, most = np.linalg.eigvalsh(curvature)
        if not (box <= REACH).all() or not least > 1e-12 * most:
            break
        inverse = np.linalg.inv(curvature)
        corners = [np.array([first, second]) for first in gradient[0] for second in gradient[1]]
        reach = math.sqrt(max(float(corner @ inverse @ corner) for corner in corners))
        away = reach * np.sqrt(np.diag(inverse)) * (1 + 1e-9)
        if (away <= box).all():
            return away, reach**2 / 2
        box = 2 * away + 1e-12
    return None


def gain_bounds(entries: Entries, level: float, rise: float) -> tuple[float, float]:
    r"""Between what the log loss of forecasts less that of expit(a + b logit p) lies, summed.

    Those that happened count ln s - ln p, the others ln(1 - s) - ln(1 - p): by Taylor's formula about their mean, which
    is known, with the second derivative between bounds. It is 0 where s = p, so bounds are narrow near calibration.

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise([1, 0], [.311, .312]).ladders()
    >>> low, high = gain_bounds(Entries.of(ladder), 0.0, 0.0)
    >>> low < -np.log(.311) - np.log(1 - .312) - 2 * np.log(2) < high < low + 1e-4
    True
    """
    happened = _gained(entries, entries.hits, entries.true_outputs, level, rise, 1)
    failed = _gained(entries, entries.counts - entries.hits, entries.false_outputs, level, rise, -1)
    return happened[0] + failed[0], happened[1] + failed[1]


def slope_bounds(entries: Entries, level: float, rise: float) -> tuple[tuple[float, float], tuple[float, float]]:
    r"""Between what the derivatives of the log-likelihood of a + b logit p by a and b lie.

    They are :math:`\sum_i y_i - s_i` and :math:`\sum_i x_i (y_i - s_i)` with x = logit p and s = expit(a + b x).

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise([1, 0, 1], [.311, .312, .9]).ladders()
    >>> (low, high), _ = slope_bounds(Entries.of(ladder), 0.0, 1.0)
    >>> low < 2 - .311 - .312 - .9 < high
    True
    """
    p = np.clip(entries.means, entries.low, entries.high)
    x = _logit(p)
    s = sigmoid(level + rise * x)
    width = s * (1 - s)
    odds = _logit(entries.low), _logit(entries.high)
    chance = _sorted(*(sigmoid(level + rise * each) for each in odds))
    spread = _spread(chance)
    with np.errstate(divide="ignore"):
        steep = _sorted(*(1 / np.square(each * (1 - each)) for each in (entries.low, entries.high)))
    lean = 2 * entries.low - 1, 2 * entries.high - 1
    uneven = 1 - 2 * chance[1], 1 - 2 * chance[0]
    bend = _times(_times(spread, steep), _plus(_scaled(uneven, rise * rise), _scaled(lean, rise)))
    expected = _summed(entries, s, width * rise / (p * (1 - p)), bend, chance)
    inner = _plus(chance, _scaled(_times(odds, spread), rise))
    outer = _plus(_scaled(spread, 2 * rise), _scaled(_times(_times(odds, spread), uneven), rise * rise))
    bend = _times(steep, _plus(outer, _times(inner, lean)))
    weighted = _summed(entries, x * s, (s + x * rise * width) / (p * (1 - p)), bend, _times(odds, chance))
    happened = _happened(entries, steep, lean, odds)
    room = 1e-14 * float((entries.counts * (1 + np.abs(x))).sum())
    hits = float(entries.hits.sum())
    return (
        (hits - expected[1] - room, hits - expected[0] + room),
        (happened[0] - weighted[1] - room, happened[1] - weighted[0] + room),
    )


def least_curvature(entries: Entries, level: float, rise: float, box: Floats) -> Floats:
    """A matrix that the curvature of the likelihood exceeds wherever a and b are no farther away than the box.

    Of each cell the squares of (1, x) are at least those of the mean x. That is known but for d, and with z and z + u
    for vectors, (z + u)(z + u)' exceeds (1 - e) z z' - (1 / e - 1) u u' for every e; here e is d, at most one half.

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise([1, 0, 1], [.311, .312, .9]).ladders()
    >>> bool(np.linalg.eigvalsh(least_curvature(Entries.of(ladder), 0.0, 1.0, np.zeros(2)))[0] > 0)
    True
    """
    odds = _logit(entries.low), _logit(entries.high)
    lines = [level + side * box[0] + (rise + way * box[1]) * x for side in (-1, 1) for way in (-1, 1) for x in odds]
    ends = np.min(lines, axis=0), np.max(lines, axis=0)
    weight = np.min([sigmoid(end) * sigmoid(-end) for end in ends], axis=0) * entries.counts
    p = np.clip(entries.means, entries.low, entries.high)
    x = _logit(p)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        bent = np.max([np.abs(2 * end - 1) / np.square(end * (1 - end)) for end in (entries.low, entries.high)], axis=0)
        off = MEAN_ROOM / (p * (1 - p)) + bent * entries.spread[1] / entries.counts / 2
    off = np.minimum(np.nan_to_num(off, nan=np.inf), odds[1] - odds[0])
    kept = np.clip(off, 1e-12, 0.5)
    matrix = np.array([[(weight * (1 - kept) * x**power).sum() for power in (row, row + 1)] for row in (0, 1)])
    matrix[1, 1] -= (weight * (1 / kept - 1) * np.square(off)).sum()
    return matrix * (1 - 1e-12)


def _gained(entries: Entries, counts: Floats, sums: Range, level: float, rise: float, sign: int) -> tuple[float, float]:
    """What so many forecasts of each entry, of which the sums are known, gain if they happened (1), or did not (-1)."""
    there = counts > 0
    n, low, high, most = (each[there] for each in (counts, entries.low, entries.high, entries.spread[1]))
    least, largest = (np.clip(sums[end][there] / n + (2 * end - 1) * MEAN_ROOM, low, high) for end in (0, 1))
    middle, half = (least + largest) / 2, (largest - least) / 2

    def logs(p: Floats) -> Range:
        line = sign * (level + rise * _logit(p))
        return -np.logaddexp(0.0, -line), np.log(p) if sign > 0 else np.log1p(-p)

    lines = _sorted(*(sign * (level + rise * _logit(p)) for p in (low, high)))
    chance, opposite = (sigmoid(lines[0]), sigmoid(lines[1])), (sigmoid(-lines[1]), sigmoid(-lines[0]))
    own = (low, high) if sign > 0 else (1 - high, 1 - low)
    lean = _sorted(sign * (2 * low - 1), sign * (2 * high - 1))
    steep = _sorted(1 / np.square(low * (1 - low)), 1 / np.square(high * (1 - high)))
    bend = _times(_times(_scaled(opposite, rise), steep), _plus(lean, _scaled(chance, -rise)))
    bend = _plus(bend, (1 / np.square(own[1]), 1 / np.square(own[0])))
    slope = sign * sigmoid(-sign * (level + rise * _logit(middle))) * rise / (middle * (1 - middle))
    slope = slope - sign / (middle if sign > 0 else 1 - middle)
    far = n * (high - least + MEAN_ROOM) * (largest - low + MEAN_ROOM)
    rest = _times(bend, (np.zeros_like(n), np.minimum(far, most) + n * np.square(half)))
    mapped, before = logs(middle)
    value, moved = n * (mapped - before), n * np.abs(slope) * half
    (first, own_first), (last, own_last) = logs(low), logs(high)
    limits = _plus(_sorted(first, last), _scaled(_sorted(own_first, own_last), -1.0))
    room = 1e-14 * n * (1 - mapped - before)
    ends = (
        np.maximum(value - moved + rest[0] / 2, n * limits[0]),
        np.minimum(value + moved + rest[1] / 2, n * limits[1]),
    )
    return float((ends[0] - room).sum()), float((ends[1] + room).sum())


def _happened(entries: Entries, steep: Range, lean: Range, odds: Range) -> tuple[float, float]:
    """The summed log-odds of what happened: their mean is known, and how far they scatter at most."""
    there = entries.hits > 0
    hits, low, high = (each[there] for each in (entries.hits, entries.low, entries.high))
    ends = []
    for side, true in zip((-1, 1), entries.true_outputs, strict=True):
        mean = np.clip(true[there] / hits + side * MEAN_ROOM, low, high)
        far = hits * (high - mean + MEAN_ROOM) * (mean - low + MEAN_ROOM)
        most = np.minimum(far, entries.spread[1][there]) + hits * MEAN_ROOM**2
        with np.errstate(over="ignore", invalid="ignore"):
            bends = [steep[1][there] * each[there] * most / 2 for each in lean]
        rest = np.minimum(np.minimum(*bends), 0.0) if side < 0 else np.maximum(np.maximum(*bends), 0.0)
        sums = hits * _logit(mean) + rest
        limit = hits * odds[0 if side < 0 else 1][there]
        sums = np.where(np.isnan(sums), limit, np.maximum(sums, limit) if side < 0 else np.minimum(sums, limit))
        ends.append(float(sums.sum()))
    return ends[0], ends[1]


def _summed(entries: Entries, value: Floats, slope: Floats, bend: Range, limits: Range) -> tuple[float, float]:
    """The sum of a function over forecasts, by its value and slope at the mean of entries and its second derivative.

    No cell exceeds its number of forecasts times the limits of the function.
    """
    n = entries.counts
    with np.errstate(over="ignore", invalid="ignore"):
        moved = n * np.abs(slope) * MEAN_ROOM
        scatter = entries.spread[0], entries.spread[1] + n * MEAN_ROOM**2
        rest = _times(bend, scatter)
        low, high = n * value - moved + rest[0] / 2, n * value + moved + rest[1] / 2
    low = np.where(np.isnan(low), n * limits[0], np.maximum(low, n * limits[0]))
    high = np.where(np.isnan(high), n * limits[1], np.minimum(high, n * limits[1]))
    return float(low.sum()), float(high.sum())


def _logit(p: Floats) -> Floats:
    return np.log(p) - np.log1p(-p)


def _spread(chance: Range) -> Range:
    """s (1 - s): largest where s is nearest to one half."""
    even = np.clip(0.5, *chance)
    low, high = (each * (1 - each) for each in chance)
    return np.minimum(low, high), even * (1 - even)


def _sorted(first: Floats, second: Floats) -> Range:
    return np.minimum(first, second), np.maximum(first, second)


def _plus(first: Range, second: Range) -> Range:
    return first[0] + second[0], first[1] + second[1]


def _scaled(each: Range, factor: float) -> Range:
    return _sorted(each[0] * factor, each[1] * factor)


def _times(first: Range, second: Range) -> Range:
    with np.errstate(over="ignore", invalid="ignore"):
        products = [one_end * other for one_end in first for other in second]
    return np.min(products, axis=0), np.max(products, axis=0)
