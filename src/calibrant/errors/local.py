"""Local calibration: how often the event happens when the forecast is near one probability."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.binning.contract import TABLE
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.checks import number, whole
from calibrant.door.arrays import as_numbers
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.kernels.totals import Floats
from calibrant.lenses.events import Classwise, TopLabel
from calibrant.predictions import Predictions
from calibrant.selections import Selection
from calibrant.specification.naming import identity
from calibrant.summaries import About

Balance = Callable[[Floats, Floats, Floats], Floats]
"""How the mean labels left and right of each grid point (2, ...) and their weights (2, ...) make one number; the third
(2, ...) are the weight and the weighted labels of points on the grid point itself, which are on both sides."""


def halves(means: Floats, weights: Floats, shared: Floats) -> Floats:
    """Left and right count the same; a side without points is left out.

    >>> halves(np.array([[.2, .2], [.8, np.nan]]), np.array([[3., 3.], [1., 0.]]), np.zeros((2, 2))).tolist()
    [0.5, 0.2]
    """
    there = weights > 0
    with np.errstate(invalid="ignore"):
        return np.where(there, means, 0.0).sum(axis=0) / there.sum(axis=0)


def by_count(means: Floats, weights: Floats, shared: Floats) -> Floats:
    """Left and right count by the decayed weight of their points: the decayed mean of all labels, each counted once.

    >>> float(by_count(np.array([.25, .75]), np.array([3., 1.]), np.zeros(2)))
    0.375
    >>> float(by_count(np.array([.5, 1.]), np.array([2., 1.]), np.array([1., 1.])))  # a label of 1 on the grid point
    0.5
    """
    with np.errstate(invalid="ignore"):
        labels = np.where(weights > 0, means * weights, 0.0).sum(axis=0) - shared[1]
        return labels / (weights.sum(axis=0) - shared[0])


@dataclass(frozen=True)
class LocalCalibration:
    r"""How often does the event happen near each probability, for any probability?

    On the grid :math:`g_j = j / \text{cells}`, a point at distance :math:`\delta` has weight
    :math:`d^{\,\delta / 0.01}`, d the `decay`. The canonical value at g_j is the `balance` of two weighted means of
    labels, over :math:`p_i \le g_j` and over :math:`p_i \ge g_j`; in between it is interpolated linearly.

    A point on a grid point (within 1e-9 cells or the rounding of the forecasts) is on both sides, so that
    f(1 - p, 1 - y) = 1 - f(p, y). Without samples every value is nan. Each class is asked of all samples;
    `subset=predicted_in(c)` keeps those predicted as class c. Weights must be whole. Summaries add, as those of metrics
    do. Cost: one sort, then two passes over the grid.

    References: Nixon et al. (2019), appendix A, which names no decay: 0.9 looks about ten hundredths far.

    >>> import calibrant as cal
    >>> curves = LocalCalibration(decay=.5).fit(cal.Predictions.from_probs([0, 1, 1, 1], [.2, .2, .3, .6]))
    >>> curves([.25, .4]).round(6).tolist(), curves.gap([.25]).tolist()
    ([0.75, 0.999513], [0.5])
    """

    decay: float = 0.9
    cells: int = 100
    balance: Balance = halves
    subset: Selection | None = None

    def __post_init__(self) -> None:
        # 0.001^100, from 0 to 1, is a weight that float64 still holds
        number(self.decay, "decay", "must lie in [0.001, 1]", lambda decay: 0.001 <= decay <= 1)
        whole(self.cells, "cells", 1, 10_000)
        if not callable(self.balance):
            raise CalibrationInputError(
                "balance",
                "must be a function of means and weights",
                got=repr(self.balance),
                hint="use halves or by_count",
            )
        if not (self.subset is None or isinstance(self.subset, Selection)):
            raise CalibrationInputError(
                "subset", "must be a selection or None", got=repr(self.subset), hint="use predicted_in(c)"
            )

    def fit(self, predictions: Predictions) -> LocalCurves:
        """The curve of each class, or of the event."""
        return self.conclude(self.summarise(predictions))

    def summarise(self, predictions: Predictions) -> Forecasts:
        """The table of distinct forecasts of each class, or of the event."""
        chosen = predictions if self.subset is None else predictions[self.subset(predictions)]
        view = (Classwise() if predictions.n_classes else TopLabel())(chosen)
        about = dataclasses.replace(view.about, reads=self._reads(view.about))
        return Forecasts.of(dataclasses.replace(view, about=about), "LocalCalibration")

    def _reads(self, about: About) -> tuple[tuple[str, str], ...]:
        """The choices that `summarise` reads."""
        asked = "every class" if about.names else about.question
        return (("selection", identity(self.subset)), ("question", asked), ("binning", TABLE))

    def conclude(self, summary: Forecasts) -> LocalCurves:
        """Two passes over the grid, from the left and from the right."""
        summary.about.require(self._reads(summary.about), "summary", "must be one of LocalCalibration")
        sums, shared = (np.array(parts) for parts in zip(*map(self._new, summary.ladders()), strict=True))
        for j in range(1, self.cells + 1):
            sums[..., j] += self._step * sums[..., j - 1]
        left, right = sums[:, 0], sums[:, 1, :, ::-1]
        weights, labels = np.moveaxis(np.stack([left, right]), 2, 0)
        with np.errstate(invalid="ignore"):
            values = self.balance(labels / weights, weights, np.moveaxis(shared, 1, 0))
        return LocalCurves(self, summary.about, np.arange(self.cells + 1) / self.cells, values)

    @property
    def _step(self) -> float:
        """The decay from one grid point to the next."""
        return float(self.decay ** (100 / self.cells))

    def _new(self, ladder: Ladder) -> tuple[Floats, Floats]:
        """Weight and weighted labels of the points that each grid point meets first, (side, 2, cells + 1), and of those
        that lie on it, (2, cells + 1)."""
        place = ladder.values.astype(np.float64) * self.cells
        near = np.abs(place - np.rint(place)) <= 1e-9 + place * 2.0**-ladder.precision.bits  # 1 - .37 is not .63
        place = np.where(near, np.rint(place), place)
        amounts = (np.diff(ladder.ranks), ladder.targets.differences().value)
        new = np.empty((2, 2, self.cells + 1))
        for side, distance in enumerate((place, self.cells - place)):
            point = np.ceil(distance)
            weight = self._step ** (point - distance)
            new[side] = [np.bincount(point.astype(np.int64), weight * amount, self.cells + 1) for amount in amounts]
        on = np.rint(place).astype(np.int64)
        return new, np.array([np.bincount(on, near * amount, self.cells + 1) for amount in amounts])


@dataclass(frozen=True, eq=False, repr=False)
class LocalCurves:
    """Canonical values on a grid, queried at any probability.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.9, .1], [.6, .4]], classes=["cat", "dog"])
    >>> curves = LocalCalibration(cells=10).fit(p)
    >>> curves, curves.grid.shape, curves.values.shape
    (LocalCurves(n=2, 2 classes, 10 cells, decay 0.9), (11,), (2, 11))
    >>> curves([.1, .25, .4], of="dog").round(4).tolist(), curves.gap([.25], of="dog").round(4).tolist()
    ([0.0203, 0.5, 0.9797], [0.25])
    """

    local: LocalCalibration
    about: About
    grid: Floats
    values: Floats
    """One row a class, or one for the event: (v, cells + 1)."""

    def __call__(self, p: ArrayLike, of: int | str | None = None) -> Floats:
        """How often the event, or the class `of` (index or name), happens near each probability."""
        row = self.values[self._row(of)]
        points = as_numbers(np.atleast_1d(p), "p")[0].reshape(np.shape(p))
        if not ((points >= 0) & (points <= 1)).all():
            raise CalibrationInputError("p", "must lie in [0, 1]", got=f"{points.min():g} to {points.max():g}")
        return np.interp(points, self.grid, row)

    def gap(self, p: ArrayLike, of: int | str | None = None) -> Floats:
        """What happens near each probability, less the probability: above 0 where too little is promised."""
        return self(p, of) - np.asarray(p, np.float64)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        empty = ("no samples: the selection is empty",) if np.isnan(self.values).all() else ()
        return (*self.about.notes, *empty)

    def _row(self, of: int | str | None) -> int:
        names = self.about.names
        if not names:
            if of is not None:
                raise CalibrationInputError("of", "must be left out where forecasts are of one event", got=repr(of))
            return 0
        if isinstance(of, str) and of in names:
            return names.index(of)
        if isinstance(of, (int, np.integer)) and 0 <= of < len(names):
            return int(of)
        raise CalibrationInputError("of", "must be a class", got=repr(of), hint=nearest(str(of), names))

    def __repr__(self) -> str:
        what = f"{len(self.values)} classes" if self.about.names else self.about.question
        return f"LocalCurves(n={self.about.n}, {what}, {self.local.cells} cells, decay {self.local.decay:g})"
