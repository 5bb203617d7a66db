"""Bets on rows: odds that are shifted in one direction; outcomes must be independent, given their forecasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from calibrant.kernels.totals import Floats, Ints
from calibrant.watch.bets import CUTS, CellCounts, groups, log_odds

LARGEST_SHIFT = 1.0
"""No bet is on a larger shift of log-odds."""
PRIOR = 10.0
"""What is added to the variance of outcomes when a shift is learnt, so that few outcomes teach little."""


@final
@dataclass(frozen=True)
class Strategy:
    """What is learnt from the sums of groups, and how much of a window is remembered after the next one."""

    name: str
    decay: float
    learn: Callable[[Floats], Floats]


def level(memory: Floats) -> Floats:
    r"""One shift for all forecasts.

    .. math:: \delta = \frac{\sum (y - p)}{\sum p (1 - p) + 10}

    >>> level(np.array([[[30., 50., 0., 0., 0.]]]))[0, 0].tolist()
    [0.5, 0.0]
    """
    residual, variance = (memory[..., place].sum(axis=-1, keepdims=True) for place in (0, 1))
    shift = np.broadcast_to(residual / (variance + PRIOR), memory.shape[:-1])
    return np.stack([shift, np.zeros_like(shift)], axis=-1)


def slope(memory: Floats) -> Floats:
    r"""A shift that is a straight line a + b x of the log-odds x: one step of Newton's method, from no shift.

    .. math:: (a, b)^T = (H + 10 I)^{-1} \sum (y - p) (1, x)^T, \quad H = \sum p (1 - p) (1, x)^T (1, x)

    >>> slope(np.array([[[30., 50., 0., 0., 80.]]]))[0, 0].tolist()
    [0.5, 0.0]
    """
    r, v, xr, xv, xxv = np.moveaxis(memory.sum(axis=-2), -1, 0)
    v, xxv = v + PRIOR, xxv + PRIOR
    determinant = v * xxv - xv * xv
    line = np.stack([xxv * r - xv * xr, v * xr - xv * r], axis=-1) / determinant[..., None]
    return np.broadcast_to(line[..., None, :], (*memory.shape[:-1], 2))


def by_group(memory: Floats) -> Floats:
    """A shift for each group of neighbouring forecasts, learnt as `level` learns its one.

    >>> by_group(np.array([[[30., 50., 0., 0., 0.], [0., 9., 0., 0., 0.]]]))[0, :, 0].tolist()
    [0.5, 0.0]
    """
    shift = memory[..., 0] / (memory[..., 1] + PRIOR)
    return np.stack([shift, np.zeros_like(shift)], axis=-1)


STRATEGIES = (
    Strategy("level", 0.97, level),
    Strategy("slope", 0.97, slope),
    Strategy("groups", 0.97, by_group),
    Strategy("recent", 0.85, level),
)
"""The four ways to bet that are averaged: each is a martingale under calibration, and so is their mean."""


@final
@dataclass(frozen=True)
class RowBets:
    """Bets that the odds of forecasts are shifted; valid where outcomes are independent, given their forecasts.

    More exactly, the outcomes of a window must be independent of each other, given all forecasts of the window and the
    windows closed before it, each with the probability of its forecast.

    A lesson (..., groups, 5) is, for each group of cells, the sums of r, v, x r, x v and x^2 v: r is what came true
    less the forecasts, v the variance, x the log-odds. A bet (..., strategies, groups, 2) is the shift of the log-odds
    in each group, and what is added to it for each unit of x.
    """

    def lesson(self, counts: CellCounts) -> Floats:
        """Sums over the cells of each group."""
        x, residual, variance = log_odds()[counts.cell], counts.hits - counts.total, counts.variance
        each = np.stack([residual, variance, x * residual, x * variance, x * x * variance], axis=-1)
        member = (groups()[counts.cell] == np.arange(len(CUTS) + 1)[:, None]).astype(np.float64)
        return np.einsum("gc,...cs->...gs", member, each)

    def remembered(self, memory: Floats | None, lesson: Floats) -> Floats:
        """Sums of lessons, each of less weight than the next."""
        decay = np.array([strategy.decay for strategy in STRATEGIES])[:, None, None]
        return lesson[..., None, :, :] + decay * (0.0 if memory is None else memory)

    def bets(self, memory: Floats | None, replicates: tuple[int, ...] = ()) -> Floats:
        """What each strategy has learnt; no shift before the first lesson."""
        if memory is None:
            return np.zeros((*replicates, len(STRATEGIES), len(CUTS) + 1, 2))
        learnt = [strategy.learn(memory[..., place, :, :]) for place, strategy in enumerate(STRATEGIES)]
        return np.stack(learnt, axis=-3)

    def paid(self, bets: Floats, counts: CellCounts, tolerance: float = 0.0) -> Floats:
        r"""What the bet of each strategy pays.

        .. math:: \sum_c \delta_c y_c - n_c \ln \frac{1 + m_c (e^{\delta_c + t_c} - 1)}{1 + m_c (e^{t_c} - 1)}

        over the cells: n forecasts of mean m, y of which came true, delta the shift beyond the tolerance, t the
        tolerance with the sign of delta. If each outcome happens with the probability of its forecast, or with odds
        that are at most e^t times as large or as small, independently of the others, the expected payment is at most
        1. The term of a row is convex in its forecast. So the payment of cells never exceeds that of their rows
        (Jensen's inequality).
        """
        shift = shifts(bets, counts.cell, tolerance)
        count, hits, mean = (part[..., None, :] for part in (counts.count, counts.hits, counts.mean))
        edge = np.sign(shift) * tolerance
        price = np.log1p(mean * np.expm1(shift + edge)) - np.log1p(mean * np.expm1(edge))
        return (shift * hits - count * price).sum(axis=-1)


def shifts(bets: Floats, cell: Ints, tolerance: float) -> Floats:
    """The shift of each cell's log-odds that each strategy bets on (..., strategies, c), less the tolerance.

    >>> shifts(np.full((12, 2), [0.5, 0.0]), np.array([9]), 0.1).tolist()
    [0.4]
    """
    own = bets[..., groups()[cell], :]
    shift = own[..., 0] + own[..., 1] * log_odds()[cell]
    beyond = np.sign(shift) * np.maximum(np.abs(shift) - tolerance, 0.0)
    return np.clip(beyond, -LARGEST_SHIFT, LARGEST_SHIFT)
