"""The kernel calibration error, pair by pair."""

import math
import statistics
from collections.abc import Callable, Sequence

from .lenses import Rows

Point = Sequence[float]
Similarity = Callable[[Point, Point], float]


# --- kernels --------------------------------------------------------------------------------------


def total_variation(p: Point, q: Point) -> float:
    """Half the summed absolute differences; of one coordinate, the absolute difference."""
    gaps = math.fsum(abs(a - b) for a, b in zip(p, q, strict=True))
    return gaps if len(p) == 1 else gaps / 2


def exponential(scale: float) -> Similarity:
    """exp(-distance / scale) in the total variation distance, Widmann, Lindsten & Zachariah (2019)."""
    return lambda p, q: math.exp(-total_variation(p, q) / scale)


def gaussian(scale: float) -> Similarity:
    """exp(-distance^2 / (2 scale^2)) in the Euclidean distance."""
    return lambda p, q: math.exp(-(math.dist(p, q) ** 2) / (2 * scale**2))


def median_scale(outputs: Rows, distance: Callable[[Point, Point], float], most: int = 1000) -> float:
    """Median of the positive distances, 1 where there are none; at most so many evenly spaced sorted points."""
    size = min(len(outputs), most)
    points = [sorted(outputs)[i * len(outputs) // size] for i in range(size)]
    distances = [distance(points[i], points[j]) for i in range(size) for j in range(i)]
    positive = [value for value in distances if value > 0]
    return statistics.median(positive) if positive else 1.0


# --- estimators: Widmann, Lindsten & Zachariah (2019) --------------------------------------------


def term(outputs: Rows, targets: Rows, i: int, j: int, kernel: Similarity) -> float:
    """Similarity of two forecasts times the inner product of their residuals."""
    first = [t - p for t, p in zip(targets[i], outputs[i], strict=True)]
    second = [t - p for t, p in zip(targets[j], outputs[j], strict=True)]
    return kernel(outputs[i], outputs[j]) * math.fsum(a * b for a, b in zip(first, second, strict=True))


def biased(outputs: Rows, targets: Rows, kernel: Similarity) -> float:
    """Mean over all ordered pairs, a sample with itself included."""
    n = len(outputs)
    return math.fsum(term(outputs, targets, i, j, kernel) for i in range(n) for j in range(n)) / n**2


def unbiased(outputs: Rows, targets: Rows, kernel: Similarity) -> float:
    """Mean over all pairs of two samples; nan for one sample."""
    n = len(outputs)
    terms = [term(outputs, targets, i, j, kernel) for j in range(n) for i in range(j)]
    return math.fsum(terms) / len(terms) if terms else math.nan


def block_values(outputs: Rows, targets: Rows, blocks: Sequence[Sequence[int]], kernel: Similarity) -> list[float]:
    """The unbiased value of each block of samples."""
    return [unbiased([outputs[i] for i in block], [targets[i] for i in block], kernel) for block in blocks]


# --- tests of calibration -------------------------------------------------------------------------


def biased_p_value(value: float, n: int, coordinates: int) -> float:
    """Bound on the chance of so large a biased value under calibration."""
    largest = 1 if coordinates == 1 else 2
    root = math.sqrt(n * value / largest)
    return 1.0 if root < 1 else math.exp(-((root - 1) ** 2) / 2)


def unbiased_p_value(value: float, n: int, coordinates: int) -> float:
    """Bound on the chance of so large an unbiased value under calibration."""
    largest = 1 if coordinates == 1 else 2
    return 1.0 if value < 0 else math.exp(-(n // 2) * value**2 / (2 * largest**2))
