"""Simulated models in the plainest way: true errors by sums, fits by searching grids, sweeps sample by sample."""

import math
from collections.abc import Callable, Sequence


def beta_constant(a: float, b: float) -> float:
    """1 / B(a, b)."""
    return math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))


def true_error(a: float, b: float, curve: Callable[[float, float], float], p: float, strips: int = 200_000) -> float:
    """(E |s - T(s)|^p)^(1/p) of beta scores by midpoints, each half seen from its end so that the density is finite."""
    total = 0.0
    for near, far, flipped in ((a, b, False), (b, a, True)):
        power = min(near, 1.0)
        end = 0.5**power
        for strip in range(strips):
            distance = ((strip + 0.5) * end / strips) ** (1 / power)
            x, q = (1 - distance, distance) if flipped else (distance, 1 - distance)
            density = distance ** (near - power) * (1 - distance) ** (far - 1) / power
            total += abs(x - min(1.0, max(0.0, curve(x, q)))) ** p * density * end / strips
    return (beta_constant(a, b) * total) ** (1 / p)


def beta_nll(scores: Sequence[float], a: float, b: float) -> float:
    """Negative log-likelihood of a beta law."""
    constant = math.log(beta_constant(a, b))
    return -math.fsum((a - 1) * math.log(x) + (b - 1) * math.log(1 - x) + constant for x in scores)


def shrinking_grid(
    loss: Callable[..., float], centre: Sequence[float], widths: Sequence[float], tolerance: float = 1e-7
) -> tuple[list[float], float]:
    """The least loss on 11 points an axis; the grid is halved around it, or moved there if it lies on the border."""
    centre, widths = list(centre), list(widths)
    while max(widths) > tolerance:
        axes = [[c + w * (k - 5) / 5 for k in range(11)] for c, w in zip(centre, widths, strict=True)]
        points: list[list[float]] = [[]]
        for axis in axes:
            points = [[*point, value] for point in points for value in axis]
        best = min(points, key=lambda point: loss(*point))
        inside = all(axis[0] < value < axis[-1] for axis, value in zip(axes, best, strict=True))
        centre = best
        if inside:
            widths = [width / 2 for width in widths]
    return centre, loss(*centre)


def curve_value(name: str, b0: float, b1: float, s: float) -> float:
    """The curve as the paper's table writes it, before clipping."""
    if name == "log_log":
        return math.exp(b0) * s**b1
    if name == "logflip_logflip":
        return 1 - math.exp(b0) * (1 - s) ** b1
    bent = b1 * math.log(s / (1 - s)) if name == "logit_logit" else b1 * math.log(1 - s)
    return 1 / (1 + math.exp(-(b0 + bent)))


def curve_nll(name: str, b0: float, b1: float, scores: Sequence[float], hits: Sequence[int]) -> float:
    """Negative log-likelihood of outcomes; infinite where a probability leaves (0, 1)."""
    total = 0.0
    for s, hit in zip(scores, hits, strict=True):
        p = curve_value(name, b0, b1, s)
        if not 0 < p < 1:
            return math.inf
        total -= math.log(p if hit else 1 - p)
    return total


def quantile(values: Sequence[float], share: float) -> float:
    """The empirical quantile, straight between the sorted values."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def induced_truth(row: Sequence[float], members: Sequence[Sequence[int]], curve: Callable[[list[float]], list[float]]):
    """Class probabilities that give each coordinate of a lens what the curve says, shared out as forecast.

    Kirchenbauer, Oaks & Heim (2022), section 3.2: the induced problem; `members` are the classes of each coordinate.
    """
    outputs = [math.fsum(row[c] for c in classes) for classes in members]
    wanted, truth = curve(outputs), [0.0] * len(row)
    for output, share, classes in zip(outputs, wanted, members, strict=True):
        for c in classes:
            truth[c] = share * (row[c] / output if output > 0 else 1 / len(classes))
    return truth


def pointwise_error(rows: Sequence[Sequence[float]], truths: Sequence[Sequence[float]]) -> float:
    """Mean total variation distance of forecasts and truths, Kirchenbauer, Oaks & Heim (2022), eq. 12."""
    total = [
        math.fsum(abs(p - t) for p, t in zip(row, truth, strict=True)) / 2
        for row, truth in zip(rows, truths, strict=True)
    ]
    return math.fsum(total) / len(total)
