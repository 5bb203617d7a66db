"""The smooth error on a mesh: how relplot approximates it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.errors.asking import OfTable
from calibrant.kernels.totals import Floats
from calibrant.lenses import Lens, TopLabel
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.facts import Facts, error

LEAST_POINTS = 200
"""Points at which the smoothed residuals are averaged, at least; ten per bandwidth."""
LEAST_CELLS = 1000
"""Cells of the mesh onto which samples are shared, at least; ten per bandwidth."""
LEAST_WIDTH = 1e-3
FLOOR = 1e-4
"""Added to the smoothed counts."""
HALVINGS = 10


@dataclass(frozen=True, repr=False)
class MeshSmoothError(OfTable):
    r"""`SmoothError` on a mesh, with relplot's ends and its search for the bandwidth.

    .. math:: \mathrm{error}(\sigma) = \sum_t |r_\sigma(t)| \Big/ \sum_t (c_\sigma(t) + 10^{-4})

    over equally spaced t, where r and c are the residuals p - y and the counts of samples. Both are shared linearly
    between mesh points, reflected at 0 and 1, smoothed by a normal density cut off at one half, and interpolated. The
    reflection has no second copy of a mesh point at 0 or 1: a sample there counts half as much as any other. The
    bandwidth is halved ten times between 0 and 1, towards where error(sigma) = sigma.

    >>> import calibrant as cal
    >>> y, p = [1, 0, 1, 1], [.6, .7, .8, .9]
    >>> round(MeshSmoothError()(y, p).value, 4), round(cal.SMECE(y, p).value, 4)
    (0.0958, 0.0963)
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    across: Across = mean_of

    @property
    def part_facts(self) -> Facts:
        """What is known of the smooth error."""
        return error(order=1.0, cost=8.0)

    def answer(self, summary: Forecasts) -> Result:
        """Smooth the residuals of every question and average."""
        answers = [(self.error_of(ladder), ladder.n) for ladder in summary.ladders()]
        values, sizes = np.array(answers, np.float64).T
        return self.combined(summary.about, values, sizes, "on a mesh")

    def error_of(self, ladder: Ladder) -> float:
        """One question's error."""
        if ladder.n == 0:
            return np.nan
        residuals = (ladder.outputs - ladder.targets).differences().value
        samples = ladder.values.astype(np.float64), residuals, np.diff(ladder.ranks).astype(np.float64)
        narrow, wide = 0.0, 1.0
        if _smoothed(*samples, wide) > wide:
            return _smoothed(*samples, wide)
        for _ in range(HALVINGS):
            width = (narrow + wide) / 2
            if width < LEAST_WIDTH or width < _smoothed(*samples, width):
                narrow = width
            else:
                wide = width
        return _smoothed(*samples, wide)


def _smoothed(values: Floats, residuals: Floats, counts: Floats, width: float) -> float:
    """The error at a bandwidth."""
    cells = max(LEAST_CELLS, round(20 / width) // 2)
    points = np.linspace(0.0, 1.0, max(LEAST_POINTS, round(10 / width)))
    mesh = np.linspace(0.0, 1.0, cells + 1)
    kernel = np.exp(-np.square(mesh - 0.5) / (2 * width**2)) / (np.sqrt(2 * np.pi) * width)
    place = values * cells
    cell = np.minimum(place.astype(np.int64), cells - 1)
    share = place - cell

    def at_points(weights: Floats) -> Floats:
        total = np.zeros(cells + 1)
        np.add.at(total, cell, weights * (1 - share))
        np.add.at(total, cell + 1, weights * share)
        return np.interp(points, mesh, _reflected(total, kernel))

    return float(np.abs(at_points(residuals)).sum() / (at_points(counts) + FLOOR).sum())


def _reflected(total: Floats, kernel: Floats) -> Floats:
    """The total on the mesh, reflected at both ends without a copy of the end points, smoothed by the kernel."""
    mirrored = np.concatenate([total[:0:-1], total, total[-2::-1]])
    length = len(mirrored) + len(kernel) - 1
    smoothed = np.fft.irfft(np.fft.rfft(mirrored, length) * np.fft.rfft(kernel, length), length)
    first = len(total) - 1 + len(kernel) // 2
    return smoothed[first : first + len(total)]
