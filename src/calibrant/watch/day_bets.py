"""Bets on windows: the outcomes of a window may depend on each other, as those of a holiday or of one storm do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from calibrant.kernels.totals import Floats, Ints
from calibrant.watch.bets import LARGEST_LOGIT, CellCounts, log_odds

DECAYS = (0.97, 0.9)
"""How much of a window is remembered after the next one."""
MOST = 0.8
"""No bet can lose a larger share of what there is."""


@final
@dataclass(frozen=True)
class DayBets:
    r"""Bets on the mean gap of a window; their rows may depend on each other.

    They are valid where each outcome of a window has the probability of its forecast, given the number and all
    forecasts of the window's rows, and the windows closed before it. They are not where busy days have other rates.

    The gap of a window is

    .. math:: g = \frac{1}{n} \sum_c d_c (y_c - P_c)

    of y outcomes and the sum P of forecasts in each cell. The direction d is 1 for a shift of all forecasts, or the
    log-odds over 8 for a change of slope. A lesson (..., 2, 4) holds g, g^2, the variance that g would have if outcomes
    were independent, and 1, for each direction. A bet is the share lambda (..., 4), for each direction and each rate of
    forgetting.
    """

    def lesson(self, counts: CellCounts) -> Floats:
        """The gap, its square and its variance under independence, in each direction."""
        direction, n = directions(counts.cell), _samples(counts)
        gap = (direction * (counts.hits - counts.total)[..., None, :]).sum(axis=-1) / n
        variance = (direction**2 * counts.variance[..., None, :]).sum(axis=-1) / n**2
        return np.stack([gap, gap**2, variance, np.ones_like(gap)], axis=-1)

    def remembered(self, memory: Floats | None, lesson: Floats) -> Floats:
        """Sums of lessons (..., 2, decays, 4), each of less weight than the next."""
        decay = np.array(DECAYS)[:, None]
        return lesson[..., None, :] + decay * (0.0 if memory is None else memory)

    def bets(self, memory: Floats | None, replicates: tuple[int, ...] = ()) -> Floats:
        r"""The share that would have grown fastest, with a window without a gap added.

        .. math:: \lambda = \frac{\sum g}{\sum g^2 + \bar v}

        where v-bar is the mean variance of g under independence.
        """
        if memory is None:
            return np.zeros((*replicates, 2 * len(DECAYS)))
        gap, square, variance, windows = np.moveaxis(memory, -1, 0)
        scatter = square + variance / windows
        share = np.divide(gap, scatter, out=np.zeros_like(gap), where=scatter > 0)
        return share.reshape(*share.shape[:-2], -1)

    def paid(self, bets: Floats, counts: CellCounts, tolerance: float = 0.0) -> Floats:
        r"""What each bet pays: 1 + lambda g, the tolerance taken from the gap.

        .. math:: 1 + \frac{\lambda}{n} \sum_c d_c (y_c - n_c q_c), \quad
                  q_c = \frac{m_c e^{t_c}}{1 + m_c (e^{t_c} - 1)}

        where t is the tolerance with the sign of lambda d. Lambda is cut so that no outcomes can cost more than
        0.8 of what there is. q is concave in m where t > 0 and convex where t < 0, so that cells pay no more than rows.
        """
        direction = np.repeat(directions(counts.cell), len(DECAYS), axis=0)
        stake = bets[..., None] * direction
        odds = np.exp(np.sign(stake) * tolerance)
        mean, count = counts.mean[..., None, :], counts.count[..., None, :]
        expected = count * mean * odds / (1 + mean * (odds - 1))
        n = _samples(counts)
        loss = np.where(stake > 0, stake * expected, -stake * (count - expected)).sum(axis=-1) / n
        share = np.minimum(1.0, np.divide(MOST, loss, out=np.ones_like(loss), where=loss > 0))
        gain = (stake * (counts.hits[..., None, :] - expected)).sum(axis=-1) / n
        return np.log1p(share * gain)


def directions(cell: Ints) -> Floats:
    """What a gap in each cell counts (2, c): alike for all forecasts, or by their log-odds.

    >>> directions(np.array([0, 3490])).tolist()
    [[1.0, 1.0], [-1.0, 1.0]]
    """
    x = log_odds()[cell] / LARGEST_LOGIT
    return np.stack([np.ones_like(x), x])


def _samples(counts: CellCounts) -> Floats:
    """The number of samples (..., 1), at least 1."""
    return np.maximum(counts.count.sum(axis=-1, keepdims=True), 1.0)
