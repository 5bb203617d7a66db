"""Bets: forecasts of a window counted in cells, and what a way to bet on such windows must be able to do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Protocol, final

import numpy as np

from calibrant.binning import cells
from calibrant.binning.ladder import Forecasts
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints, Totals

CUTS = (2.0**-9, 2.0**-7, 2.0**-5, 0.125, 0.25, 0.5, 0.75, 0.875, 1 - 2.0**-5, 1 - 2.0**-7, 1 - 2.0**-9)
"""Where the groups of neighbouring cells meet that learn a shift of their own."""
LARGEST_LOGIT = 8.0
"""Log-odds beyond this are taken as this where a slope is learnt."""


@cache
def groups() -> Ints:
    """The group of each cell, from 0 to 11.

    >>> groups()[cells.numbers(np.array([0.0, 0.2, 0.5, 1.0]))].tolist()
    [0, 4, 5, 11]
    """
    return np.searchsorted(np.array(CUTS), cells.lasts())


@cache
def middles() -> Floats:
    """The middle of each cell: a forecast that stands for the cell, whatever rows come.

    >>> middles()[cells.numbers(np.array([0.0, 0.5, 1.0]))].tolist()
    [0.0, 0.5, 1.0]
    """
    return (cells.firsts() + cells.lasts()) / 2


@cache
def log_odds() -> Floats:
    """The log-odds in the middle of each cell, from -8 to 8.

    >>> log_odds()[cells.numbers(np.array([0.0, 0.5, 1.0]))].tolist()
    [-8.0, 0.0, 8.0]
    """
    with np.errstate(divide="ignore"):
        odds = np.log(middles()) - np.log1p(-middles())
    return np.clip(odds, -LARGEST_LOGIT, LARGEST_LOGIT)


@final
@dataclass(frozen=True, eq=False)
class CellCounts:
    """Forecasts of an event in a window, counted in cells: how many, how many came true, and their sum.

    Axes before the last are replicates of a simulation.

    >>> import calibrant as cal
    >>> state = cal.scale.State.of(cal.Predictions.from_probs([1, 0, 1], [.9, .2, .9]), {"a": cal.ADAPTIVE_ECE})
    >>> (counts,) = CellCounts.of(state.summary(cal.ADAPTIVE_ECE))
    >>> counts.count.tolist(), counts.hits.tolist(), counts.total.round(9).tolist()
    ([1.0, 2.0], [0.0, 2.0], [0.2, 1.8])
    """

    cell: Ints
    count: Floats
    hits: Floats
    total: Floats

    @classmethod
    def of(cls, table: Forecasts) -> tuple[CellCounts, ...]:
        """The counts of each question of a table; refused where rows are weighted, for each must be one outcome."""
        if table.squares is not None:
            expected, hint = "has no place in a watch, where a row is one outcome", "leave the weights out"
            raise CalibrationInputError("sample_weight", expected, got="weights", hint=hint)
        hits = table.targets.value if isinstance(table.targets, Totals) else table.targets.astype(np.float64)
        whole = cls(cells.numbers(table.values), table.counts.astype(np.float64), hits, table.summed.value)
        bounds = zip(table.starts[:-1].tolist(), table.starts[1:].tolist(), strict=True)
        return tuple(whole._part(slice(start, stop)) for start, stop in bounds)

    def _part(self, place: slice) -> CellCounts:
        return CellCounts(self.cell[place], self.count[place], self.hits[place], self.total[place])

    @property
    def mean(self) -> Floats:
        """The mean forecast of each cell; one half where there is none."""
        half = np.full(self.count.shape, 0.5)
        return np.clip(np.divide(self.total, self.count, out=half, where=self.count > 0), 0.0, 1.0)

    @property
    def variance(self) -> Floats:
        """n m (1 - m) of each cell: the variance of so many outcomes at its mean forecast m."""
        return self.count * self.mean * (1 - self.mean)


class Betting(Protocol):
    """A way to bet on windows: several strategies, whose payments are averaged."""

    def lesson(self, counts: CellCounts) -> Floats:
        """What is to be remembered of a window."""

    def remembered(self, memory: Floats | None, lesson: Floats) -> Floats:
        """What is remembered after another lesson; None: there was none before."""

    def bets(self, memory: Floats | None, replicates: tuple[int, ...] = ()) -> Floats:
        """What is bet on the next window."""

    def paid(self, bets: Floats, counts: CellCounts, tolerance: float = 0.0) -> Floats:
        """The logarithm of what the bet of each strategy pays (..., strategies): of e-values, under calibration."""
