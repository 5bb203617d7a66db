r"""Platt's excess loss: how much log loss the best line of log-odds would save.

.. math:: \frac1n \sum_i L(p_i, y_i) - \inf_{a, b} \frac1n \sum_i L(s_i, y_i),
   \quad s_i = \operatorname{expit}(a + b \operatorname{logit} p_i)

with L(p, y) = -y ln p - (1 - y) ln(1 - p) and forecasts clipped to 2^-32 and 1 - 2^-32, so that it is always finite.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from calibrant.binning.bounds import Entries
from calibrant.binning.running import Ladder
from calibrant.errors.isotonic import log_loss_within, logarithmic
from calibrant.errors.likelihood_bounds import fit_distance, gain_bounds
from calibrant.errors.logistic import UNFINISHED, line_through
from calibrant.errors.statistic import Noted, counted
from calibrant.kernels.totals import Floats
from calibrant.specification.facts import declare, error

CLIP = 2.0**-32
"""Forecasts nearer to 0 or 1 count as this near: so near, cells do not tell them apart."""
_FAINT = 1e-6
"""Samples of both outcomes beyond all forecasts, so few that they move no line but one without end."""


def excess_within(ladder: Ladder) -> tuple[float, float]:
    """Between what Platt's excess loss of forecasts in cells lies.

    Every line saves no more than the best, so that of tied cells bounds it from below. From above, the best saves no
    more than that line and what `fit_distance` adds, and no more than a map would that told apart all forecasts.

    >>> import calibrant as cal
    >>> y, p = [1, 0, 0, 1, 1, 0, 0, 1], [.311, .312, .4, .9, .7, .7, .2, .5]
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise(y, p).ladders()
    >>> low, high = excess_within(ladder)
    >>> low < cal.TableStatistic(statistic=platt_excess)(y, p).value < high < low + 1e-5
    True
    """
    entries, n = _clipped(Entries.of(ladder)), float(ladder.n)
    p, counts, hits = entries.means.clip(entries.low, entries.high), entries.counts, entries.hits
    mixed, known, odds = entries.hidden & (hits > 0) & (hits < counts), ~entries.hidden, _logit(p)
    (least, most), rest = log_loss_within(entries), _told_apart(p[known], counts[known], hits[known]) / n
    line = line_through(odds, counts, hits)
    is_fit = math.isfinite(line[1])
    if not (mixed.any() or _overlap(p, counts, hits)):
        return max(least - rest, 0.0), max(most - rest, 0.0)
    line = line if is_fit else _held_line(odds, counts, hits)
    if not math.isfinite(line[1]):
        return 0.0, max(most - rest, 0.0)
    low, high = (end / n for end in gain_bounds(entries, *line))
    off = fit_distance(entries, *line) if is_fit else None
    highest = most - rest if off is None else min(most - rest, high + off[1] / n)
    return max(low, 0.0), max(highest, low, 0.0)


@declare(
    dataclasses.replace(
        error(high=-math.log(CLIP)),
        slot="statistic",
        estimator="TableStatistic",
        words="Platt's excess loss",
        within=lambda ladder: excess_within(ladder),
    )
)
def platt_excess(ladder: Ladder) -> float:
    """How much smaller the mean log loss of these samples is after Platt scaling fitted on them.

    It is 0 for forecasts that no line of log-odds improves, and never negative. Where a threshold separates the
    outcomes, or all are the same, no line is the best, and the number is what lines approach. Being fitted on the
    samples that it is measured on, it is above 0 by about 1 / n for a calibrated model, too.

    References: Platt (1999); Lin, Lin & Weng (2007).

    >>> import calibrant as cal
    >>> metric = cal.TableStatistic(statistic=platt_excess)
    >>> y, p = [0] * 3 + [1] + [0] + [1] * 3, [.1] * 4 + [.9] * 4  # the best line says 1/4 and 3/4
    >>> after = cal.LOG_LOSS(y, [.25] * 4 + [.75] * 4).value
    >>> round(metric(y, p).value, 10) == round(cal.LOG_LOSS(y, p).value - after, 10)
    True
    """
    values, counts, hits = counted(ladder)
    p = values.clip(CLIP, 1 - CLIP)
    odds, loss = _logit(p), float((counts * logarithmic(p, hits / counts)).sum())
    level, rise = line_through(odds, counts, hits)
    if rise.note == UNFINISHED:
        return rise
    best = _told_apart(odds if _overlap(p, counts, hits) else p, counts, hits)
    if math.isfinite(rise):
        line = level + rise * odds
        best = float((hits * np.logaddexp(0.0, -line) + (counts - hits) * np.logaddexp(0.0, line)).sum())
    return max(loss - best, 0.0) / ladder.n


def _overlap(values: Floats, counts: Floats, hits: Floats) -> bool:
    """Whether values, ascending, with both outcomes are such that no threshold separates these."""
    happened, failed = values[hits > 0], values[hits < counts]
    return bool(len(happened) and len(failed) and happened[0] < failed[-1] and failed[0] < happened[-1])


def _told_apart(values: Floats, counts: Floats, hits: Floats) -> float:
    """The summed log loss of the rates of distinct values, ascending, which no function of them undercuts."""
    _, first = np.unique(values, return_index=True)
    counts, hits = np.add.reduceat(counts, first), np.add.reduceat(hits, first)
    return float((counts * logarithmic(hits / counts, hits / counts)).sum())


def _held_line(odds: Floats, counts: Floats, hits: Floats) -> tuple[Noted, Noted]:
    """A line as good as any where no line is the best."""
    few = np.array([_FAINT])
    odds = np.concatenate([odds[:1] - 1, odds, odds[-1:] + 1])
    return line_through(odds, np.concatenate([few, counts, few]), np.concatenate([few / 2, hits, few / 2]))


def _clipped(entries: Entries) -> Entries:
    """The entries where forecasts nearer to 0 or 1 count as clipped; no cell has such forecasts and others."""
    low, high = (each.clip(CLIP, 1 - CLIP) for each in (entries.low, entries.high))
    hidden = entries.hidden & (low < high)
    least, most = (np.where(hidden, each, 0.0) for each in entries.spread)
    return dataclasses.replace(entries, hidden=hidden, low=low, high=high, spread=(least, most))


def _logit(p: Floats) -> Floats:
    return np.log(p) - np.log1p(-p)
