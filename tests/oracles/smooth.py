"""The smooth error: residuals under a reflected normal kernel, summed sample by sample and image by image."""

import math
from collections.abc import Sequence


def reflected_normal(t: float, p: float, sigma: float) -> float:
    """The normal density around p, folded back into [0, 1] at both ends, Blasiok & Nakkiran (2023)."""
    total = 0.0
    images = math.ceil(5 * sigma) + 1  # an image further off than 9 sigma is below 1e-17
    for m in range(-images, images + 1):
        for distance in (t - p + 2 * m, t + p + 2 * m):
            if abs(distance) < 9 * sigma:
                total += math.exp(-0.5 * (distance / sigma) ** 2)
    return total / (sigma * math.sqrt(2 * math.pi))


def smooth_error(scores: Sequence[float], labels: Sequence[float], sigma: float, per_sigma: int = 100) -> float:
    """The integral of |smoothed residual| by the trapezoid rule with so many points in a bandwidth."""
    points = math.ceil(per_sigma / sigma)
    heights = []
    for j in range(points + 1):
        t = j / points
        terms = [(y - p) * reflected_normal(t, p, sigma) for p, y in zip(scores, labels, strict=True)]
        heights.append(abs(math.fsum(terms)) / len(scores))
    return (math.fsum(heights) - (heights[0] + heights[-1]) / 2) / points


def fixed_point(scores: Sequence[float], labels: Sequence[float], halvings: int = 30, per_sigma: int = 100) -> float:
    """The bandwidth that equals the error at it, by halving [0, 1]."""
    low, high = 0.0, 1.0
    for _ in range(halvings):
        middle = (low + high) / 2
        if smooth_error(scores, labels, middle, per_sigma) > middle:
            low = middle
        else:
            high = middle
    return (low + high) / 2
