"""Tests of calibration in plain loops: score statistics of residuals, and what the omnibus looks at."""

import math
from collections.abc import Sequence

Numbers = Sequence[float]


def cox(outcomes: Numbers, forecasts: Numbers, weights: Numbers) -> float:
    """The score statistic of intercept 0 and slope 1 of a logistic regression on the logit."""
    first = second = plain = mixed = square = 0.0
    for y, p, w in zip(outcomes, forecasts, weights, strict=True):
        x = math.log(p / (1 - p))
        first += w * (y - p)
        second += w * (y - p) * x
        plain += w * w * p * (1 - p)
        mixed += w * w * p * (1 - p) * x
        square += w * w * p * (1 - p) * x * x
    determinant = plain * square - mixed * mixed
    return (square * first**2 - 2 * mixed * first * second + plain * second**2) / determinant


def spiegelhalter(outcomes: Numbers, forecasts: Numbers, weights: Numbers) -> float:
    """The Brier score less its expectation, over its standard deviation."""
    rows = list(zip(outcomes, forecasts, weights, strict=True))
    excess = sum(w * ((y - p) ** 2 - p * (1 - p)) for y, p, w in rows)
    return excess / math.sqrt(sum(w * w * (1 - 2 * p) ** 2 * p * (1 - p) for _, p, w in rows))


def hosmer_lemeshow(outcomes: Numbers, forecasts: Numbers, weights: Numbers, bins: Sequence[Sequence[int]]) -> float:
    """The sum over bins, each a list of rows, of squared residual over variance."""
    total = 0.0
    for rows in bins:
        residual = sum(weights[i] * (outcomes[i] - forecasts[i]) for i in rows)
        total += residual**2 / sum(weights[i] ** 2 * forecasts[i] * (1 - forecasts[i]) for i in rows)
    return total


def farthest(outcomes: Numbers, forecasts: Numbers, weights: Numbers) -> float:
    """The largest cumulative residual after any distinct forecast, over its standard deviation at the end."""
    rows = list(zip(outcomes, forecasts, weights, strict=True))
    sums = [sum(w * (y - p) for y, p, w in rows if p <= at) for at in set(forecasts)]
    return max(map(abs, sums)) / math.sqrt(sum(w * w * p * (1 - p) for _, p, w in rows))


def kernel(outcomes: Numbers, forecasts: Numbers, weights: Numbers, scale: float) -> float:
    """The similarity-weighted products of the residuals of all pairs of rows, over their summed variance."""
    rows = list(zip(outcomes, forecasts, weights, strict=True))
    total = 0.0
    for i, (y, p, w) in enumerate(rows):
        for j, (z, q, v) in enumerate(rows):
            if i != j:
                total += math.exp(-abs(p - q) / scale) * w * (y - p) * v * (z - q)
    return total / sum(w * w * p * (1 - p) for _, p, w in rows)
