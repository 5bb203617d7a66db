"""Isotonic regression and the score decomposition that follows from it."""

import math
from collections.abc import Callable, Sequence

Score = Callable[[float, float], float]


def isotonic_regression(scores: Sequence[float], labels: Sequence[float]) -> list[float]:
    """The best non-decreasing function of the scores, at each sample, by the max-min formula.

    Barlow, Bartholomew, Bremner & Brunk (1972): the largest, over starts at or below the sample, of the smallest mean
    label up to any end at or above it. Tied scores stay together.
    """
    levels = sorted(set(scores))
    at = {level: [labels[i] for i in range(len(scores)) if scores[i] == level] for level in levels}
    running, counts = [0.0], [0]
    for level in levels:
        running.append(running[-1] + math.fsum(at[level]))
        counts.append(counts[-1] + len(at[level]))

    def mean(first: int, last: int) -> float:
        return (running[last + 1] - running[first]) / (counts[last + 1] - counts[first])

    best = {}
    for k, level in enumerate(levels):
        best[level] = max(min(mean(i, j) for j in range(k, len(levels))) for i in range(k + 1))
    return [best[score] for score in scores]


def pooled(heights: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Rising means by pooling neighbours that fall, Ayer et al. (1955)."""
    blocks: list[tuple[float, float, int]] = []
    for height, weight in zip(heights, weights, strict=True):
        blocks.append((height * weight, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            last, before = blocks.pop(), blocks.pop()
            blocks.append((before[0] + last[0], before[1] + last[1], before[2] + last[2]))
    return [total / weight for total, weight, count in blocks for _ in range(count)]


def squared(forecast: float, label: float) -> float:
    """The Brier score of one forecast."""
    return (forecast - label) ** 2


def logarithm(forecast: float, label: float) -> float:
    """The log loss of one forecast, hard labels."""
    given = forecast if label == 1 else 1 - forecast
    return math.inf if given == 0 else -math.log(given)


def decomposition(scores: Sequence[float], labels: Sequence[float], score: Score) -> dict[str, float]:
    """Mean scores of the forecasts, the recalibrated and the constant ones, Dimitriadis, Gneiting & Jordan (2021)."""
    n = len(scores)
    best = isotonic_regression(scores, labels)
    base = math.fsum(labels) / n
    given = math.fsum(score(scores[i], labels[i]) for i in range(n)) / n
    recalibrated = math.fsum(score(best[i], labels[i]) for i in range(n)) / n
    constant = math.fsum(score(base, labels[i]) for i in range(n)) / n
    return {
        "miscalibration": given - recalibrated,
        "discrimination": constant - recalibrated,
        "uncertainty": constant,
        "score": given,
    }
