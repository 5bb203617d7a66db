"""Rebinning: the counts from which the page re-bins exactly, without a row of data in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.binning.fixed import Edges
from calibrant.binning.ladder import Forecasts
from calibrant.bins import Bins
from calibrant.errors.binned import BinnedError
from calibrant.inference.grouped import MOST_BINS, by_blocks, edges, grouped, ranks
from calibrant.kernels.totals import Floats
from calibrant.lenses.events import TopLabel
from calibrant.predictions import Predictions


@dataclass(frozen=True, eq=False)
class RebinningCounts:
    """Samples in order of forecast, cut wherever any setting cuts.

    Bins of a setting are sums of neighbouring cells: equal-width ones between the fractions k/m, equal-mass ones
    between the ranks ceil(k n / m) (`ranks`). A row of `width` is (count, sum of forecasts, sum of outcomes, sum of
    squared weights); a row of `mass` also has the smallest and the largest forecast.
    """

    n: float
    width: Floats
    ranks: Floats
    mass: Floats

    @classmethod
    def of(cls, event: Predictions, table: Forecasts | None = None, squares: Floats | None = None) -> RebinningCounts:
        """The cells of the forecasts of one event; `table` is its grouped table, where that is known.

        `squares` are squared weights, where those of the event are not meant.

        >>> cells = RebinningCounts.of(Predictions.from_confidence([1, 0, 1], [.9, .2, .85]))
        >>> cells.n, float(cells.width[:, 0].sum()), float(cells.mass[:, 2].sum())
        (3.0, 3.0, 2.0)
        """
        binning = Edges(edges().tolist())
        width = _sums(by_blocks(BinnedError(binning=binning), event).bins)
        if squares is None and event.weight is not None:
            squares = event.weight**2
        summed = width[:, 0]
        if squares is not None:
            summed = np.bincount(binning.assign(TopLabel()(event))[:, 0], squares, len(width)).astype(np.float64)
        width = np.column_stack([width, summed])
        table = grouped(event) if table is None else table
        cuts, mass = (np.zeros(0), np.zeros((0, 6))) if table is None else _by_rank(event, table, squares)
        return cls(float(width[:, 0].sum()), width, cuts, mass)

    def equal_mass(self, n_bins: int = 15) -> Floats:
        """Equal-mass bins that hold samples, as the page's script makes them; none under fractional weights.

        A row is (smallest forecast, largest, count, sum of forecasts, sum of outcomes, sum of squared weights).

        >>> cells = RebinningCounts.of(Predictions.from_confidence([1, 0, 1], [.9, .2, .7]))
        >>> cells.equal_mass(2).round(4).tolist()
        [[0.2, 0.7, 2.0, 0.9, 1.0, 2.0], [0.9, 0.9, 1.0, 0.9, 1.0, 1.0]]
        """
        if not len(self.mass):
            return np.zeros((0, 6))
        cuts = np.ceil(np.arange(1, n_bins + 1) * self.n / n_bins)
        owner = np.searchsorted(cuts, self.ranks[:-1], side="right")
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        sums = np.add.reduceat(self.mass[:, :4], first)
        return np.column_stack(
            [np.minimum.reduceat(self.mass[:, 4], first), np.maximum.reduceat(self.mass[:, 5], first), sums]
        )

    def to_dict(self) -> dict[str, object]:
        """Plain numbers for the page; equal-width cells without samples are left out."""
        held = np.flatnonzero(self.width[:, 0])
        return {
            "n": self.n,
            "most": MOST_BINS,
            "held": held.tolist(),
            "width": _plain(self.width[held]),
            "ranks": self.ranks.tolist(),
            "mass": _plain(self.mass),
        }


def squared_weights(event: Predictions, table: Forecasts, cuts: Floats, squares: Floats) -> Floats:
    """The sums of squared weights between ranks; tied forecasts share theirs evenly.

    >>> event = Predictions.from_probs([1, 0, 1], [.2, .9, .9], sample_weight=[1, 2, 1])
    >>> squared_weights(event, grouped(event), np.array([0, 1, 2, 4]), event.weight**2).round(4).tolist()
    [1.0, 1.6667, 3.3333]
    """
    entry = np.minimum(np.searchsorted(table.values, event.probabilities), len(table.values) - 1)
    held = squares > 0
    summed = np.bincount(entry[held], squares[held], len(table.values))
    corners = np.concatenate([[0], np.cumsum(table.counts.astype(np.int64))])
    return np.diff(np.interp(cuts, corners, np.concatenate([[0.0], np.cumsum(summed)])))


def _by_rank(event: Predictions, table: Forecasts, squares: Floats | None) -> tuple[Floats, Floats]:
    """The ranks at which equal-mass bins cut, and the cells between them."""
    cuts = ranks(int(table.counts.sum()))
    bins = table.cut(lambda _: cuts)
    ends = [np.zeros((1, 0)) if end is None else end for end in (bins.low, bins.high)]
    sums = _sums(bins)
    summed = sums[:, 0] if squares is None else squared_weights(event, table, cuts.astype(np.float64), squares)
    return cuts.astype(np.float64), np.column_stack([sums, summed, ends[0][0], ends[1][0]])


def _sums(bins: Bins | None) -> Floats:
    """Count, forecasts and outcomes of each bin of the one question."""
    assert bins is not None
    return np.column_stack([bins.counts[0], bins.outputs.value[0, :, 0], bins.targets.value[0, :, 0]])


def _plain(table: Floats) -> list[list[float]]:
    """Rows of numbers, whole ones without a point."""
    return [[int(value) if value == int(value) else value for value in row] for row in table.tolist()]
