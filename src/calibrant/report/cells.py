"""Cells: the counts from which the page re-bins exactly, without a row of data in it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from calibrant.binning import Edges, EqualMass, cuts_by_rank
from calibrant.bins import Bins
from calibrant.errors.binned import BinnedError
from calibrant.exceptions import CalibrationInputError
from calibrant.lenses import TopLabel
from calibrant.predictions import Predictions
from calibrant.totals import Floats

MOST = 50
"""The most bins that the page can be asked for."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Samples in order of forecast, cut wherever any setting cuts.

    Bins of a setting are sums of neighbouring cells: equal-width ones between the fractions k/m (`edges`), equal-mass
    ones between the ranks ceil(k n / m) (`ranks`). A row of `width` is (count, sum of forecasts, sum of outcomes); a
    row of `mass` also has the smallest and the largest forecast.
    """

    n: float
    edges: Floats
    width: Floats
    ranks: Floats
    mass: Floats

    @classmethod
    def of(cls, event: Predictions) -> Cells:
        """The cells of the forecasts of one event.

        >>> cells = Cells.of(Predictions.from_confidence([1, 0, 1], [.9, .2, .85]))
        >>> cells.n, float(cells.width[:, 0].sum()), float(cells.mass[:, 2].sum())
        (3.0, 3.0, 2.0)
        """
        fractions = sorted({Fraction(k, m) for m in range(1, MOST + 1) for k in range(m + 1)})
        edges = np.array([float(fraction) for fraction in fractions])
        width = _sums(BinnedError(binning=Edges(edges.tolist()))(event).bins)
        ranks, mass = _by_rank(event)
        return cls(float(width[:, 0].sum()), edges, width, ranks, mass)

    def to_dict(self) -> dict[str, object]:
        """Plain numbers for the page; equal-width cells without samples are left out."""
        held = np.flatnonzero(self.width[:, 0])
        return {
            "n": self.n,
            "most": MOST,
            "edges": self.edges.tolist(),
            "held": held.tolist(),
            "width": self.width[held].tolist(),
            "ranks": self.ranks.tolist(),
            "mass": self.mass.tolist(),
        }


def _by_rank(event: Predictions) -> tuple[Floats, Floats]:
    """The ranks at which equal-mass bins cut, and the cells between them; none under fractional weights."""
    try:
        table = EqualMass(1).summarise(TopLabel()(event))
    except CalibrationInputError:
        return np.zeros(0), np.zeros((0, 5))
    (ladder,) = table.ladders()
    ranks = np.unique(np.concatenate([cuts_by_rank(ladder, m) for m in range(1, MOST + 1)]))
    bins = table.cut(lambda _: ranks)
    ends = [np.zeros((1, 0)) if end is None else end for end in (bins.low, bins.high)]
    return ranks.astype(np.float64), np.column_stack([_sums(bins), ends[0][0], ends[1][0]])


def _sums(bins: Bins | None) -> Floats:
    """Count, forecasts and outcomes of each bin of the one question."""
    assert bins is not None
    return np.column_stack([bins.counts[0], bins.outputs.value[0, :, 0], bins.targets.value[0, :, 0]])
