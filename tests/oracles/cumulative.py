"""Cumulative differences between outcomes and forecasts, and how far a Brownian motion goes."""

import math
from collections.abc import Sequence
from fractions import Fraction


def path(scores: Sequence[float], labels: Sequence[float]) -> list[float]:
    """Mean of (label - score) over the samples up to each distinct score, Arrieta-Ibarra et al. (2022)."""
    n = len(scores)
    made = [0.0]
    for level in sorted(set(scores)):
        below = [i for i in range(n) if scores[i] <= level]
        made.append(float(sum(Fraction(labels[i]) - Fraction(scores[i]) for i in below) / n))
    return made


def ks(scores: Sequence[float], labels: Sequence[float]) -> float:
    """The farthest from 0, Gupta et al. (2021)."""
    return max(abs(point) for point in path(scores, labels))


def kuiper(scores: Sequence[float], labels: Sequence[float]) -> float:
    """From the lowest to the highest, Arrieta-Ibarra et al. (2022)."""
    return max(path(scores, labels)) - min(path(scores, labels))


def sigma(scores: Sequence[float]) -> float:
    """The standard deviation of the last point of the path, if the scores are calibrated."""
    return math.sqrt(math.fsum(score * (1 - score) for score in scores)) / len(scores)


def shortfall(scores: Sequence[float]) -> float:
    """How far below a Brownian motion's the highest point of such a path lies on average, Siegmund (1979)."""
    spreads = [score * (1 - score) for score in scores]
    step = math.fsum(v**1.5 for v in spreads) / math.fsum(spreads)  # of steps' deviations, weighted by their variances
    return 0.5826 * step / len(scores)


def stays_within(x: float) -> float:
    """The probability that a Brownian motion on [0, 1] stays within x of 0: the heat equation on an interval."""
    terms = range(1, 4 + 40 * math.ceil(x), 2)
    return 4 / math.pi * math.fsum((-1) ** (m // 2) / m * math.exp(-((m * math.pi / x) ** 2) / 8) for m in terms)


def range_density(x: float) -> float:
    """The density of the range of a Brownian motion on [0, 1], Feller (1951)."""
    terms = range(1, 4 + math.ceil(40 / x))
    return 8 * math.fsum(-((-1) ** k) * k**2 * math.exp(-((k * x) ** 2) / 2) / math.sqrt(2 * math.pi) for k in terms)


def range_exceeds(x: float, steps: int = 4000) -> float:
    """The probability that the range is at least x: Feller's density added up to 12 by Simpson's rule."""
    width = (12 - x) / steps
    weights = [1 if i in (0, steps) else 4 if i % 2 else 2 for i in range(steps + 1)]
    return width / 3 * math.fsum(w * range_density(x + i * width) for i, w in enumerate(weights))
