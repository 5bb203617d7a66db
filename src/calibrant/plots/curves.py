"""Curves: how often forecasts come true, as a function of the forecast and without bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.binning.running import Ladder
from calibrant.door.arrays import Array
from calibrant.errors.isotonic import isotonic_curve
from calibrant.errors.smooth import SmoothError
from calibrant.kernels.totals import Floats

CELLS = 4096
"""Cells of [0, 1] between whose ends samples are shared."""
POINTS = 513


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of a reliability curve, and what to call it; nan where it says nothing."""

    name: str
    forecast: Floats
    frequency: Floats


CurveOf = Callable[[Ladder], Curve]
"""A way to a curve from the table of distinct forecasts of one event."""


def isotonic(ladder: Ladder) -> Curve:
    """The isotonic regression of outcomes on forecasts, at each distinct forecast.

    References: Dimitriadis, Gneiting & Jordan (2021).

    >>> import calibrant as cal
    >>> summary = cal.IsotonicError().summarise(cal.Predictions.from_probs([0, 1, 0, 1], [.1, .3, .6, .8]))
    >>> isotonic(*summary.ladders()).frequency.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    if ladder.n == 0:
        return Curve("isotonic", np.zeros(0), np.zeros(0))
    return Curve("isotonic", ladder.values.astype(np.float64), isotonic_curve(ladder))


def smooth(ladder: Ladder) -> Curve:
    r"""The kernel average of outcomes, as wide as the smooth calibration error.

    .. math:: \hat r(t) = \frac{\sum_i y_i K_\sigma(t, p_i)}{\sum_i K_\sigma(t, p_i)}, \quad
        K_\sigma(t, p) = \varphi_\sigma(t - p) + \varphi_\sigma(t + p) + \varphi_\sigma(t + p - 2)

    with sigma the bandwidth of `SmoothError`, at least .01. Samples are shared linearly between the ends of 4096 cells.
    Beyond the smallest and largest forecast, and where less than one sample's worth of weight is within reach, there is
    no curve (nan).

    References: Blasiok & Nakkiran (2023).

    >>> import calibrant as cal
    >>> summary = cal.SMECE.summarise(cal.Predictions.from_probs([0, 1, 0, 1], [.5, .5, .5, .5]))
    >>> curve = smooth(*summary.ladders())
    >>> float(curve.frequency[256].round(10)), bool(np.isnan(curve.frequency[0]))
    (0.5, True)
    """
    points = np.linspace(0.0, 1.0, POINTS)
    if ladder.n == 0:
        return Curve("smooth", points, np.full(POINTS, np.nan))
    sigma = max(SmoothError().error_of(ladder)[1], 0.01)
    mass, hits = (_shared(ladder, each) for each in (np.diff(ladder.ranks), ladder.targets.differences().value))
    cells = np.arange(CELLS + 1) / CELLS
    distances = ((points[:, None] - at[None, :]) / sigma for at in (cells, -cells, 2.0 - cells))
    kernel = sum(np.exp(-0.5 * np.square(distance)) for distance in distances)
    weight = kernel @ mass
    within = (points >= ladder.values[0] - 1 / POINTS) & (points <= ladder.values[-1] + 1 / POINTS) & (weight >= 1)
    return Curve("smooth", points, np.where(within, (kernel @ hits) / np.maximum(weight, 1.0), np.nan))


def _shared(ladder: Ladder, amounts: Array) -> Floats:
    """Amounts at the distinct forecasts, shared between the ends of the cells that hold them."""
    place = ladder.values.astype(np.float64) * CELLS
    cell = np.minimum(place.astype(np.int64), CELLS - 1)
    right = place - cell
    left = np.bincount(cell, amounts * (1 - right), CELLS + 1)
    return np.asarray(left + np.bincount(cell + 1, amounts * right, CELLS + 1), np.float64)
