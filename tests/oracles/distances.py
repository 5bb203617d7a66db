"""Distances, aggregates and across rules: how far apart, and how pools and questions are combined.

A distance takes a bin's mean output and mean target, both lists. An aggregate takes the list of
``(size, value)`` of the bins, empty ones with size 0. An across rule takes the list of ``(size, value)`` of
the views. Nothing to combine gives nan.
"""

import math
from collections.abc import Callable, Sequence

Vector = Sequence[float]
Distance = Callable[[Vector, Vector], float]
Sized = Sequence[tuple[float, float]]
Aggregate = Callable[[Sized], float]

SLACK = 1e-7


def gap(output: Vector, target: Vector) -> list[float]:
    """Mean output less mean target, coordinate by coordinate."""
    return [a - b for a, b in zip(output, target, strict=True)]


def tvd(output: Vector, target: Vector) -> float:
    """Half the absolute gaps, or the one gap of an event, Kirchenbauer et al. (2022), section 3.2."""
    total = math.fsum(abs(value) for value in gap(output, target))
    return total if len(output) == 1 else total / 2


def lp(p: float) -> Distance:
    """The p-norm of the gap, Kirchenbauer, Oaks & Heim (2022), section 4.3."""
    return lambda output, target: math.fsum(abs(g) ** p for g in gap(output, target)) ** (1 / p)


def power(p: float) -> Distance:
    """The p-th power of the absolute gap of one event, Roelofs et al. (2022), eq. 4."""
    return lambda output, target: abs(only(gap(output, target))) ** p


def squared(output: Vector, target: Vector) -> float:
    """The squared gap of one event, Roelofs et al. (2022), eq. 4 with p = 2."""
    return only(gap(output, target)) ** 2


def signed(output: Vector, target: Vector) -> float:
    """Confidence less accuracy, positive when over-confident, Ao, Rueger & Siddharthan (2023), eq. 5."""
    return only(gap(output, target))


def weighted(weights: Vector) -> Distance:
    """The 2-norm of the gap with one weight a coordinate, Kirchenbauer, Oaks & Heim (2022), eq. 9."""
    return lambda output, target: math.sqrt(
        math.fsum(w * g * g for w, g in zip(weights, gap(output, target), strict=True))
    )


def mahalanobis(matrix: Sequence[Vector]) -> Distance:
    """The root of gap M gap', never of less than 0, Kirchenbauer, Oaks & Heim (2022), eq. 11."""

    def distance(output: Vector, target: Vector) -> float:
        g = gap(output, target)
        terms = [g[i] * matrix[i][j] * g[j] for i in range(len(g)) for j in range(len(g))]
        return math.sqrt(max(0.0, math.fsum(terms)))

    return distance


def inter_interval(low: float, high: float) -> Distance:
    """How far the mean label lies outside an interval, Kirchenbauer, Oaks & Heim (2022), eq. 7."""
    return lambda output, target: max(0.0, low - only(target), only(target) - high)


def interval_tvd(low: float, high: float) -> Distance:
    """The absolute gap where the mean label is outside an interval, Kirchenbauer et al. (2022), code."""
    return lambda output, target: 0.0 if low <= only(target) <= high else tvd(output, target)


def relative(output: Vector, target: Vector) -> float:
    """The gap as a share of the likelier of event and outcome, or of what does not happen, Nixon et al. (2019), 4.2."""
    p, y = only(output), only(target)
    shares = [abs(a - b) / max(a, b) for a, b in ((p, y), (1 - p, 1 - y)) if max(a, b) > 0]
    return max(shares)


def log_odds(size: float, prior: float = 0.5) -> Distance:
    """How far the log-odds are apart in a bin of so many samples, a share of a sample added to both counts."""

    def distance(output: Vector, target: Vector) -> float:
        p, y = only(output), only(target)
        odds = [(size * share + prior) / (size * (1 - share) + prior) for share in (p, y)]
        return abs(math.log(odds[0] / odds[1]))

    return distance


def mean(values: Sized) -> float:
    """Mean over bins weighted by their sizes, Kirchenbauer, Oaks & Heim (2022), eq. 3."""
    total = math.fsum(size for size, _ in values)
    return math.fsum(size * value for size, value in values if size) / total if total else math.nan


def root(p: float) -> Aggregate:
    """The p-th root of the weighted mean, Roelofs et al. (2022), eq. 4."""
    return lambda values: mean(values) ** (1 / p)


def root_mean(values: Sized) -> float:
    """The root of the weighted mean, of 0 where that is negative, Kumar, Liang & Ma (2019), section 5."""
    result = mean(values)
    return result if math.isnan(result) else math.sqrt(max(0.0, result))


def maximum(values: Sized) -> float:
    """The largest value of a non-empty bin, Guo et al. (2017), eq. 5."""
    return max((value for size, value in values if size), default=math.nan)


def uniform(values: Sized) -> float:
    """Every requested bin with weight 1/r, an empty one adding nothing, Nixon et al. (2019), section 5.3."""
    if not any(size for size, _ in values):
        return math.nan
    return math.fsum(value for size, value in values if size) / len(values)


def mean_of(values: Sized) -> float:
    """Plain mean over the views that hold anything, the macro subset error of Obadinma et al. (2021)."""
    kept = [value for size, value in values if size]
    return math.fsum(kept) / len(kept) if kept else math.nan


def mean_of_all(values: Sized) -> float:
    """Plain mean over all views, an empty one counting 0, as in the code of Nixon et al. (2019)."""
    kept = [value for size, value in values if size]
    return math.fsum(kept) / len(values) if kept else math.nan


def root_mean_of(values: Sized) -> float:
    """The root of the plain mean over views of squares, of 0 where that is negative, Kumar, Liang & Ma (2019)."""
    square = mean_of(values)
    return square if math.isnan(square) else math.sqrt(max(0.0, square))


def weighted_by_size(values: Sized) -> float:
    """Mean over views weighted by their sizes, Ao, Rueger & Siddharthan (2023), eq. 4."""
    return mean(values)


def contraharmonic(values: Sized) -> float:
    """Sum of squares over sum of the views' values, 0 where all are 0, Obadinma et al. (2021)."""
    kept = [value for size, value in values if size]
    if not kept:
        return math.nan
    return math.fsum(value**2 for value in kept) / math.fsum(kept) if any(kept) else 0.0


def signed_balance(values: Sized) -> dict[str, float]:
    """The weighted subset miscalibration score and its parts, Ao, Rueger & Siddharthan (2023), eqs. 6 to 8.

    A view within 1e-7 of 0 is neither over- nor under-confident; an empty view is no class at all.
    """
    kept = [(size, value) for size, value in values if size]
    total = math.fsum(size for size, _ in kept)
    positive = [(size, value) for size, value in kept if value > SLACK]
    negative = [(size, value) for size, value in kept if value < -SLACK]
    over = math.fsum(size * value for size, value in positive) / total if kept else math.nan
    under = math.fsum(size * value for size, value in negative) / total if kept else math.nan
    over_share = len(positive) / len(kept) if kept else math.nan
    under_share = len(negative) / len(kept) if kept else math.nan
    return {
        "value": over_share * over + under_share * under,
        "over": over,
        "under": under,
        "over_share": over_share,
        "under_share": under_share,
        "over_mean": mean_of(positive) if positive else 0.0,
        "under_mean": mean_of(negative) if negative else 0.0,
    }


def only(values: Vector) -> float:
    """The one coordinate of an event."""
    (value,) = values
    return value
