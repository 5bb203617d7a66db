r"""Logistic recalibration: the line of log-odds that best turns forecasts into outcomes.

.. math:: \operatorname{logit} P(y = 1) = a + b \operatorname{logit} p

fitted by maximum likelihood. Two intercepts circulate. `offset_intercept` holds b = 1 and answers whether forecasts are
too high or too low as a whole ("calibration in the large"); `fitted_intercept` is the a that is fitted beside b.

The log-odds are those of the probabilities in the table: where logits were given, what rounding to a probability loses
near 0 and 1 is lost here, too. A forecast of exactly 0 or 1 has infinite log-odds. If its outcome agrees, it is right
under every a and every b > 0, so that it does not change the fit; it is left out, with a note. If its outcome
contradicts it, no such line is possible: the number is nan, with a note.

References: Cox (1958); Steyerberg (2019), chapter 15; Van Calster et al. (2019).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from calibrant.binning.bounds import MEAN_ROOM, Entries
from calibrant.binning.running import Ladder
from calibrant.door.logs import sigmoid
from calibrant.errors.likelihood_bounds import REACH, fit_distance
from calibrant.errors.statistic import ONE_OUTCOME, Noted, counted
from calibrant.kernels.totals import Floats
from calibrant.specification.facts import Facts, declare

ROUNDS = 1000
"""Steps of Newton's method before it is given up."""
TOLERANCE = 1e-12
UNFINISHED = "the fit did not converge"


def _influence(part: int, held: bool) -> Callable[[Ladder], tuple[float, Floats]]:
    """The influence on one coefficient of the line, or, where b = 1 is held, on the intercept.

    One sample more moves the coefficients by the inverse curvature times x (y - p); each is taken larger by what it
    drew the fit towards itself.
    """

    def influence(ladder: Ladder) -> tuple[float, Floats]:
        value = offset_intercept(ladder) if held else _line(ladder)[part]
        moves = np.zeros((len(ladder.values), 2))
        if not math.isfinite(value):
            return float(value), moves
        odds, counts, _, _ = _finite(ladder)
        design = np.stack([np.ones(len(odds)), odds])[: 1 if held else 2]
        log_odds = odds + value if held else np.array(_line(ladder)) @ design
        chance = sigmoid(log_odds)
        spread = chance * sigmoid(-log_odds)
        curved = np.linalg.pinv((design * (counts * spread)) @ design.T)
        drawn = np.einsum("jm,jk,km->m", design, curved, design) * spread
        pull = (curved @ design)[part] * ladder.n / (1 - np.minimum(drawn, 0.9))
        there = (ladder.values > 0) & (ladder.values < 1)
        moves[there] = pull[:, None] * (np.array([0.0, 1.0]) - chance[:, None])
        return float(value), moves

    return influence


def _within(part: int) -> Callable[[Ladder], tuple[float, float]]:
    """The bounds of one coefficient of the line."""
    return lambda ladder: line_within(ladder)[part]


@declare(Facts("statistic", "TableStatistic", calibrated=1.0, influence=_influence(1, held=False), within=_within(1)))
def fitted_slope(ladder: Ladder) -> float:
    r"""The calibration slope b: below 1, forecasts are too extreme; above 1, not extreme enough.

    Infinite, with a note, where one threshold separates the outcomes; nan where all outcomes or all forecasts are the
    same.

    >>> import calibrant as cal
    >>> round(cal.SLOPE([0, 1, 0, 1, 1, 0, 1, 0], [.1, .1, .4, .4, .7, .7, .9, .9]).value, 6)
    0.0
    >>> round(cal.SLOPE([0] * 3 + [1] + [0] + [1] * 3, [.1] * 4 + [.9] * 4).value, 6)  # ln 3 / ln 9
    0.5
    """
    return _line(ladder)[1]


@declare(Facts("statistic", "TableStatistic", calibrated=0.0, influence=_influence(0, held=False), within=_within(0)))
def fitted_intercept(ladder: Ladder) -> float:
    """The intercept a that is fitted beside the slope; nan wherever the slope is not finite.

    >>> import calibrant as cal
    >>> metric = cal.INTERCEPT.replace(statistic=fitted_intercept)
    >>> round(metric([0, 1, 0, 0, 1, 1], [.3, .3, .3, .7, .7, .7]).value, 6)
    0.0
    """
    return _line(ladder)[0]


_HELD = Facts("statistic", "TableStatistic", calibrated=0.0, influence=_influence(0, held=True))


@declare(dataclasses.replace(_HELD, within=lambda ladder: offset_within(ladder)))
def offset_intercept(ladder: Ladder) -> float:
    r"""The intercept a where b = 1 is held: above 0, events happen more often than forecast.

    It solves :math:`\sum_i y_i = \sum_i \operatorname{expit}(a + \operatorname{logit} p_i)`. Infinite, with a note,
    where all outcomes are the same.

    >>> import calibrant as cal
    >>> round(cal.INTERCEPT([0, 1, 1, 1], [.5, .5, .5, .5]).value, 6)  # ln 3
    1.098612
    """
    odds, counts, hits, note = _finite(ladder)
    if not len(odds):
        return Noted(math.nan, note)
    if not 0 < hits.sum() < counts.sum():
        return Noted(math.inf if hits.sum() else -math.inf, "all outcomes are the same: the intercept is infinite")
    (level,) = _fitted(np.ones((1, len(odds))), odds, counts, hits)
    return _noted(level, note)


def offset_within(ladder: Ladder) -> tuple[float, float]:
    r"""The intercept at slope 1 of forecasts in cells lies between these.

    With c = e^a, expit(a + logit p) = c p / (1 + (c - 1) p) is curved to one side: the sum over a cell is that at its
    mean, and half of the second derivative, which is largest at an end, times the summed squared distances from it.

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise([1, 0, 0, 1], [.311, .312, .313, .9]).ladders()
    >>> low, high = offset_within(ladder)
    >>> low < cal.INTERCEPT([1, 0, 0, 1], [.311, .312, .313, .9]).value < high < low + 1e-6
    True
    """
    tied, entries = _tied(ladder)
    middle = float(offset_intercept(tied))
    if not math.isfinite(middle):
        return middle, middle
    inside = entries.at(np.flatnonzero((ladder.values > 0) & (ladder.values < 1)))
    hits, n = float(inside.hits.sum()), float(inside.counts.sum())
    room = 1e-12 * min(hits, n - hits) + 1e-15 * n

    def expected(level: float, side: int) -> float:
        factor = math.expm1(level)
        means = np.clip(inside.means + side * MEAN_ROOM, inside.low, inside.high)
        bends = [-2 * (1 + factor) * factor / (1 + factor * p) ** 3 for p in (inside.low, inside.high)]
        curved = [bend * spread / 2 for bend in bends for spread in inside.spread]
        rest = np.max(curved, axis=0) if side > 0 else np.min(curved, axis=0)
        return float((inside.counts * (1 + factor) * means / (1 + factor * means) + rest).sum())

    ends = []
    for side in (-1, 1):  # the level moves away from the middle until even the other bound of the sum is passed
        near, far, step = middle, middle, 1e-12 * (1 + abs(middle))
        while side * (expected(far, -side) - hits) < room:
            near, far, step = far, far + side * step, 2 * step
            if step > REACH:
                return -math.inf, math.inf
        while abs(far - near) > 1e-3 * abs(far - middle):
            level = (near + far) / 2
            near, far = (near, level) if side * (expected(level, -side) - hits) >= room else (level, far)
        ends.append(far)
    return ends[0], ends[1]


def line_within(ladder: Ladder) -> tuple[tuple[float, float], tuple[float, float]]:
    r"""Intercept and slope of forecasts in cells lie between these; infinities where nothing can be told.

    At the fit of tied cells, the slope g of the likelihood of the rows is known between bounds, by Taylor's formula in
    each cell. Where the curvature is at least M in a box around that fit, the fit of the rows is no farther than
    :math:`\sqrt{g^	op M^{-1} g}` in the norm of M, if that still lies in the box.

    >>> import calibrant as cal
    >>> y, p = [1, 0, 0, 1, 1, 0, 0, 1], [.311, .312, .4, .9, .7, .7, .2, .5]
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise(y, p).ladders()
    >>> _, (low, high) = line_within(ladder)
    >>> low < cal.SLOPE(y, p).value < high < low + 0.01
    True
    """
    tied, entries = _tied(ladder)
    level, rise = map(float, _line(tied))
    if not math.isfinite(rise):
        mixed = entries.hidden & (entries.hits > 0) & (entries.hits < entries.counts)
        unknown = mixed.any() or (len(tied.values) == 1 and entries.hidden.any())
        ends = (-math.inf, math.inf) if unknown and _has_both(tied) else (rise, rise)
        return ((-math.inf, math.inf) if ends[0] < ends[1] else (level, level)), ends
    inside = entries.at(np.flatnonzero((ladder.values > 0) & (ladder.values < 1)))
    off = fit_distance(inside, level, rise)
    if off is None:
        return (-math.inf, math.inf), (-math.inf, math.inf)
    first, second = (off[0] + 1e-10 * (1 + abs(np.array([level, rise])))).tolist()
    return (level - first, level + first), (rise - second, rise + second)


def _has_both(ladder: Ladder) -> bool:
    """Whether forecasts inside (0, 1) have both outcomes."""
    _, counts, hits, _ = _finite(ladder)
    return 0 < hits.sum() < counts.sum()


def _tied(ladder: Ladder) -> tuple[Ladder, Entries]:
    """The table with the forecasts of each cell tied at their mean, and what is known of them."""
    entries = Entries.of(ladder)
    values = np.clip(ladder.forecasts, entries.low, entries.high)
    return dataclasses.replace(ladder, values=values, closed=None, alike=None), entries


def _line(ladder: Ladder) -> tuple[Noted, Noted]:
    """Intercept and slope of a table."""
    return line_through(*_finite(ladder))


def line_through(odds: Floats, counts: Floats, hits: Floats, note: str = "") -> tuple[Noted, Noted]:
    """Intercept and slope of outcomes on ascending log-odds, each with the note, or why it has no value.

    >>> level, rise = line_through(np.log([1 / 9, 9]), np.array([4.0, 4.0]), np.array([1.0, 3.0]))
    >>> round(level, 6) + 0.0, round(rise, 6)
    (0.0, 0.5)
    """
    happened, failed = odds[hits > 0], odds[hits < counts]
    nothing = Noted(math.nan, note if not len(odds) else ONE_OUTCOME)
    if not len(happened) or not len(failed):
        return nothing, nothing
    if odds[0] == odds[-1]:
        nothing = Noted(math.nan, "all forecasts are the same: the slope has no value")
        return nothing, nothing
    for sign, is_apart in ((1.0, happened[0] >= failed[-1]), (-1.0, happened[-1] <= failed[0])):
        if is_apart:
            separated = "a threshold separates the outcomes: the slope is infinite"
            return Noted(math.nan, separated), Noted(sign * math.inf, separated)
    centre = (counts * odds).sum() / counts.sum()
    scale = math.sqrt((counts * np.square(odds - centre)).sum() / counts.sum())
    design = np.stack([np.ones(len(odds)), (odds - centre) / scale])
    level, rise = _fitted(design, np.zeros(len(odds)), counts, hits)
    return _noted(level - rise * centre / scale, note), _noted(rise / scale, note)


def _noted(coefficient: float, note: str) -> Noted:
    return Noted(coefficient, UNFINISHED if math.isnan(coefficient) else note)


def _finite(ladder: Ladder) -> tuple[Floats, Floats, Floats, str]:
    """Log-odds that are finite, counts, hits, and what is to be noted; nothing where a certain forecast was wrong."""
    values, counts, hits = counted(ladder)
    if (hits[values == 0] > 0).any() or (hits < counts)[values == 1].any():
        nothing = np.zeros(0)
        return nothing, nothing, nothing, "a forecast of exactly 0 or 1 was wrong: no logistic curve allows that"
    there = (values > 0) & (values < 1)
    certain = int(counts[~there].sum())
    note = f"forecasts of exactly 0 or 1, all of them right, do not change the fit: {certain} left out" * bool(certain)
    values = values[there]
    return np.log(values) - np.log1p(-values), counts[there], hits[there], note


def _fitted(design: Floats, offset: Floats, counts: Floats, hits: Floats) -> Floats:
    """The coefficients of the rows of `design` that make the outcomes likeliest, by Newton's method; nan if it fails.

    The likelihood has one maximum. A step that lowers it is halved; it ends when a step is below 1e-12, or as small as
    rounding lets it become.
    """
    coefficients, last, squares = np.zeros(len(design)), math.inf, design[:, None] * design

    def log_odds(at: Floats) -> Floats:
        return offset + (at[:, None] * design).sum(axis=0)

    def likelihood(odds: Floats) -> float:
        return float((hits * odds - counts * np.logaddexp(0.0, odds)).sum())

    for _ in range(ROUNDS):
        odds = log_odds(coefficients)
        chance, height = sigmoid(odds), likelihood(odds)
        slope = (design * (hits - counts * chance)).sum(axis=1)
        bend = (squares * (counts * chance * sigmoid(-odds))).sum(axis=2)
        try:
            step = np.linalg.solve(bend, slope)
        except np.linalg.LinAlgError:
            break
        step *= REACH / max(REACH, np.abs((step[:, None] * design).sum(axis=0)).max())
        while likelihood(log_odds(coefficients + step)) < height - 1e-13 * abs(height):
            step /= 2
        size = float(np.abs(step).max() / (1.0 + np.abs(coefficients).max()))
        coefficients = coefficients + step
        if size <= TOLERANCE or last / 2 < size < 1e-8:
            return coefficients
        last = size
    return np.full(len(design), math.nan)
