"""E-processes: evidence against calibration that may be looked at as often as one likes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from calibrant.kernels.totals import Floats
from calibrant.watch.bets import Betting, CellCounts


@final
@dataclass(frozen=True, eq=False)
class EProcess:
    r"""What bets on the windows of one question have paid so far, and what the next ones are learnt from.

    The payment of a strategy is a mixture over the window s in which it starts to bet,

    .. math:: M_t = \sum_{s \le t} w_s \prod_{i = s}^t e_i + \sum_{s > t} w_s

    and the e-value of the process is the mean over strategies. If the payments e are e-values given what came before,
    it is a test supermartingale: the chance that it ever reaches 1 / level is at most the level (Ville's inequality).
    Starts are spread evenly over the first `horizon` windows, and more thinly over each later stretch of as many.

    References: Shafer, Shen, Vereshchagin & Vovk (2011); Arnold, Henzi & Ziegel (2023).

    >>> from calibrant.watch.row_bets import RowBets
    >>> counts = CellCounts(np.array([2000]), np.array([100.]), np.array([70.]), np.array([60.]))
    >>> process = EProcess(RowBets())
    >>> for day in range(8):
    ...     process = process.after(counts)
    >>> round(math.exp(process.log_e))
    6462
    """

    betting: Betting
    horizon: int = 365
    tolerance: float = 0.0
    windows: int = 0
    memory: Floats | None = None
    started: Floats | None = None
    """The logarithm of the first of the two sums, of each strategy."""

    def after(self, counts: CellCounts) -> EProcess:
        """The process after another window."""
        bets = self.betting.bets(self.memory, counts.count.shape[:-1])
        return self.after_payment(self.betting.paid(bets, counts, self.tolerance), self.betting.lesson(counts))

    def after_payment(self, paid: Floats, lesson: Floats | None = None) -> EProcess:
        """The process after a window that paid so much (logarithms, one a strategy) and taught this lesson, if any."""
        window = self.windows + 1
        before = np.full(paid.shape, -math.inf) if self.started is None else self.started
        started = np.logaddexp(before, math.log(start_weight(window, self.horizon))) + paid
        memory = self.memory if lesson is None else self.betting.remembered(self.memory, lesson)
        return EProcess(self.betting, self.horizon, self.tolerance, window, memory, started)

    @property
    def log_e(self) -> Floats:
        """The logarithm of the e-value."""
        if self.started is None:
            return np.zeros(())
        each = np.logaddexp(self.started, math.log(weight_after(self.windows, self.horizon)))
        return np.asarray(np.logaddexp.reduce(each, axis=-1) - math.log(each.shape[-1]))


def start_weight(window: int, horizon: int) -> float:
    """The weight of a start in a window, counted from 1: the j-th stretch of `horizon` windows has 1 / (j (j + 1)).

    >>> start_weight(1, 4), start_weight(4, 4), start_weight(5, 4)
    (0.125, 0.125, 0.041666666666666664)
    """
    stretch = 1 + (window - 1) // horizon
    return 1 / (horizon * stretch * (stretch + 1))


def weight_after(window: int, horizon: int) -> float:
    """The weight of all starts after a window.

    >>> weight_after(0, 4), weight_after(4, 4), round(weight_after(5, 4) + start_weight(5, 4), 12)
    (1.0, 0.5, 0.5)
    """
    stretch = 1 + window // horizon
    return 1 / stretch - (window - (stretch - 1) * horizon) / (horizon * stretch * (stretch + 1))
