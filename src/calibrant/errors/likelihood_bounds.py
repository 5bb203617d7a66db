"""Bounds of a logistic likelihood whose forecasts are counted in cells: its slope, and how curved it is at least."""

from __future__ import annotations

import numpy as np

from calibrant.binning.bounds import HALF_UNIT, Entries
from calibrant.door.logs import sigmoid
from calibrant.kernels.totals import Floats

Range = tuple[Floats, Floats]
"""The least and the largest that something can be."""


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
        off = 2 * HALF_UNIT / (p * (1 - p)) + bent * entries.spread[1] / entries.counts / 2
    off = np.minimum(np.nan_to_num(off, nan=np.inf), odds[1] - odds[0])
    kept = np.clip(off, 1e-12, 0.5)
    matrix = np.array([[(weight * (1 - kept) * x**power).sum() for power in (row, row + 1)] for row in (0, 1)])
    matrix[1, 1] -= (weight * (1 / kept - 1) * np.square(off)).sum()
    return matrix * (1 - 1e-12)


def _happened(entries: Entries, steep: Range, lean: Range, odds: Range) -> tuple[float, float]:
    """The summed log-odds of what happened: their mean is known, and how far they scatter at most."""
    there = entries.hits > 0
    hits, low, high = (each[there] for each in (entries.hits, entries.low, entries.high))
    ends = []
    for side, true in zip((-1, 1), entries.true_outputs, strict=True):
        mean = np.clip(true[there] / hits + side * HALF_UNIT, low, high)
        far = hits * (high - mean + 2 * HALF_UNIT) * (mean - low + 2 * HALF_UNIT)
        most = np.minimum(far, entries.spread[1][there]) + hits * HALF_UNIT**2
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
        moved = n * np.abs(slope) * HALF_UNIT
        scatter = entries.spread[0], entries.spread[1] + n * HALF_UNIT**2
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
