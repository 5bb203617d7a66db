"""The neighbour error: each sample's own forecast against the mean label of the samples near it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.checks import number, order, whole
from calibrant.errors.asking import OfTable
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses import Lens, TopLabel
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.facts import Facts, error
from calibrant.specification.naming import spoken

Neighbours = Callable[[Ladder], tuple[Ints, Ints]]
"""A table of distinct forecasts to the first entry in each forecast's neighbourhood, and the first behind it."""


@dataclass(frozen=True)
class nearest_forecasts:  # noqa: N801 - neighbours read as a function
    """The smallest closed interval around each forecast that holds k samples, its own among them.

    All samples at the interval's ends belong to it, so there may be more than k; with fewer than k samples, it is all
    of them. Distances are compared as in `forecasts_within`.

    >>> from calibrant.errors.neighbour import NeighbourError, nearest_forecasts
    >>> metric = NeighbourError(neighbours=nearest_forecasts(2))
    >>> round(metric([1, 0, 1], [.1, .2, .9]).value, 10)  # (|.1 - 1/2| + |.2 - 1/2| + |.9 - 1/2|) / 3
    0.3666666667
    """

    k: int = 100
    facts: ClassVar[Facts] = Facts("neighbours", estimator="NeighbourError")

    def __post_init__(self) -> None:
        whole(self.k, "k", 1)

    def __call__(self, ladder: Ladder) -> tuple[Ints, Ints]:
        values = ladder.values.astype(np.float64)
        last = np.searchsorted(ladder.ranks, ladder.ranks[:-1] + min(self.k, ladder.n)) - 1  # k samples from each on
        fits = last < len(values)
        low, high = values[fits], values[last[fits]]
        # Moving right, such a window's low end nears a forecast while its high end leaves it: best is where they cross.
        cross = np.searchsorted(low + high, 2 * values)
        windows = np.clip([cross - 1, cross], 0, len(low) - 1)
        return _within(ladder, np.maximum(values - low[windows], high[windows] - values).min(axis=0))

    def __str__(self) -> str:
        return f"{self.k} nearest forecasts"


@dataclass(frozen=True)
class forecasts_within:  # noqa: N801 - neighbours read as a function
    """The samples whose forecasts are at most `radius` away.

    Distances are compared as finely as forecasts are known, and a few bits coarser (2^-44 for float64, 2^-20 for
    float32): .8 is .1 from .7, though not in floats.

    >>> from calibrant.errors.neighbour import NeighbourError, forecasts_within
    >>> metric = NeighbourError(neighbours=forecasts_within(.1))
    >>> round(metric([1, 0, 1], [.7, .8, .95]).value, 10)  # (|.7 - 1/2| + |.8 - 1/2| + |.95 - 1|) / 3
    0.1833333333
    """

    radius: float
    facts: ClassVar[Facts] = Facts("neighbours", estimator="NeighbourError")

    def __post_init__(self) -> None:
        number(self.radius, "radius", "must be a finite number of at least 0", lambda radius: 0 <= radius < np.inf)

    def __call__(self, ladder: Ladder) -> tuple[Ints, Ints]:
        return _within(ladder, self.radius)

    def __str__(self) -> str:
        return f"forecasts within {self.radius:g}"


@dataclass(frozen=True, repr=False)
class NeighbourError(OfTable):
    r"""Is each forecast as large as the rate at which the samples near it, itself included, came true?

    .. math:: \Big(\frac1n \sum_i \Big|p_i - \frac1{|N_i|} \sum_{j \in N_i} y_j\Big|^p\Big)^{1/p}

    The general form of the label-binned error, where :math:`N_i` is the bin of i. `neighbours` is any callable from a
    `Ladder`, the table of distinct forecasts, to the ranges of its entries that are near each of them. Samples with
    the same forecast share their neighbours, so no order of rows can matter. Few neighbours make the error large, since
    their mean label is noise: with one, it is the mean of :math:`|p_i - y_i|`.

    Asks events (one coordinate) only. Whole weights are repetition; fractional ones are refused. An empty selection
    is nan with a note. Costs O(n log n).

    References: Roelofs et al. (2022), eq. 2.

    >>> from calibrant.errors.neighbour import NeighbourError, nearest_forecasts
    >>> print(NeighbourError(neighbours=nearest_forecasts(1))([1, 0], [.9, .3]))
    NeighbourError 0.2000 (n=2, event, 1 nearest forecasts)
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    neighbours: Neighbours = nearest_forecasts()
    p: float = 1.0
    across: Across = mean_of

    def __post_init__(self) -> None:
        if isinstance(self.neighbours, type) or not callable(self.neighbours):
            raise CalibrationInputError(
                "neighbours", "must be a piece such as nearest_forecasts(100)", got=repr(self.neighbours)
            )
        order(self.p, "NeighbourError")

    @property
    def part_facts(self) -> Facts:
        """An estimate of the L^p error."""
        return error(order=self.p)

    def answer(self, summary: Forecasts) -> Result:
        """Compare each entry of the table with the mean label of the entries near it."""
        errors, sizes = zip(*((self._error(ladder), float(ladder.n)) for ladder in summary.ladders()), strict=True)
        words = spoken(self.neighbours), f"order {self.p:g}" if self.p != 1 else ""
        return self.combined(summary.about, np.array(errors), np.array(sizes), *words)

    def _error(self, ladder: Ladder) -> float:
        """One question: every entry counts as often as it was made."""
        if ladder.n == 0:
            return float("nan")
        start, stop = self.neighbours(ladder)
        if (stop <= start).any():
            raise CalibrationInputError("neighbours", "must be at least one for every forecast", got="an empty range")
        rate = (ladder.targets[stop] - ladder.targets[start]).value / (ladder.ranks[stop] - ladder.ranks[start])
        errors = np.power(np.abs(ladder.values.astype(np.float64) - rate), self.p)
        return float(np.power((np.diff(ladder.ranks) * errors).sum() / ladder.n, 1 / self.p))


def _within(ladder: Ladder, radius: Floats | float) -> tuple[Ints, Ints]:
    """The entries at most so far from each, in the decimals that the forecasts stand for."""
    values = ladder.values.astype(np.float64)
    reach = radius + 2.0 ** -(ladder.precision.bits * 5 // 6)
    return np.searchsorted(values, values - reach, "left"), np.searchsorted(values, values + reach, "right")
