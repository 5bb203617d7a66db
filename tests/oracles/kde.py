"""The density error: forecasts against kernel estimates on a grid, summed sample by sample."""

import math
from collections.abc import Sequence
from itertools import pairwise

POINTS = 2**14
STEP = 2.2 / (POINTS - 1)


def bandwidth(scores: Sequence[float], hits: Sequence[int]) -> float:
    """Spread of the scores that came true, times (2n)^(-1/5), Zhang, Kailkhura & Han (2020)."""
    correct = [score for score, hit in zip(scores, hits, strict=True) if hit]
    if not correct:
        return math.nan
    mean = math.fsum(correct) / len(correct)
    variance = math.fsum((score - mean) ** 2 for score in correct) / len(correct)
    return math.sqrt(variance) * (2 * len(scores)) ** -0.2


def triweight(distance: float, h: float) -> float:
    """The density of the triweight kernel with standard deviation h, 0 beyond 3h."""
    u = distance / (3 * h)
    return 35 / 32 * (1 - u * u) ** 3 / (3 * h) if abs(u) < 1 else 0.0


def density(x: float, scores: Sequence[float], h: float) -> float:
    """The density of the scores at x, each mirrored at the nearer end of [0, 1]."""
    total = 0.0
    for score in scores:
        mirrored = -score if score < 0.5 else 2 - score
        total += triweight(x - score, h) + triweight(x - mirrored, h)
    return total / len(scores)


def kde_error(scores: Sequence[float], hits: Sequence[int], order: float = 1) -> float:
    """Mean gap between x and the accuracy near x, rooted; nan where the grid cannot see the bandwidth."""
    h = bandwidth(scores, hits)
    if not h >= STEP:
        return math.nan
    correct = [score for score, hit in zip(scores, hits, strict=True) if hit]
    share = len(correct) / len(scores)
    gaps, masses = [], []
    for k in range(POINTS):
        x = -0.6 + k * STEP
        if not 0 < x < 1:
            continue
        f1, f2 = density(x, correct, h), density(x, scores, h)
        accuracy = min(1.0, share * f1 / f2) if f2 > 1e-6 else x
        gaps.append(abs(x - accuracy) ** order * f2)
        masses.append(f2)
    return (_trapezoid(gaps) / _trapezoid(masses)) ** (1 / order)


def _trapezoid(heights: Sequence[float]) -> float:
    return math.fsum((left + right) / 2 for left, right in pairwise(heights))
