"""Datapoint-specific calibration: how often the event happens near one score."""

import math
from collections.abc import Sequence

SNAP = 1e-9  # cells; 1 - 0.37 is not the float 0.63
CELL = 0.01


def decayed_mean(points: Sequence[float], labels: Sequence[float], at: float, decay: float) -> float:
    """Mean label of points, each weighted decay ** (distance / 0.01), Nixon et al. (2019), appendix A."""
    weights = [decay ** (abs(point - at) / CELL) for point in points]
    return math.fsum(w * label for w, label in zip(weights, labels, strict=True)) / math.fsum(weights)


def canonical(points: Sequence[float], labels: Sequence[float], at: float, decay: float = 0.9) -> float:
    """Average of the decayed means left and right of a grid point, Nixon et al. (2019), appendix A.

    A point on the grid point lies on both sides; a side without points is left out.
    """
    left = [i for i in range(len(points)) if (points[i] - at) / CELL <= SNAP]
    right = [i for i in range(len(points)) if (at - points[i]) / CELL <= SNAP]
    sides = [
        decayed_mean([points[i] for i in side], [labels[i] for i in side], at, decay) for side in (left, right) if side
    ]
    return math.fsum(sides) / len(sides) if sides else math.nan


def local_calibration(
    points: Sequence[float], labels: Sequence[float], query: float, decay: float = 0.9, n_cells: int = 100
) -> float:
    """Interpolation between the nearest two canonical values, Nixon et al. (2019), appendix A."""
    place = query * n_cells
    if abs(place - round(place)) <= SNAP:
        return canonical(points, labels, round(place) / n_cells, decay)
    below = math.floor(place)
    low = canonical(points, labels, below / n_cells, decay)
    high = canonical(points, labels, (below + 1) / n_cells, decay)
    return low + (place - below) * (high - low)
