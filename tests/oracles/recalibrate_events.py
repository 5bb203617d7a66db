"""Recalibration of events, and of classes one against all, in plain loops."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from .isotonic import isotonic_regression

FLOOR = 1e-12


def one_against_all(scores: Sequence[Sequence[float]], curves: Sequence[Callable[[float], float]]) -> list[list[float]]:
    """Each class by its own curve, rows over their sums; a row of zeros as it was."""
    made = []
    for row in scores:
        said = [curves[k](row[k]) for k in range(len(row))]
        total = math.fsum(said)
        made.append([value / total for value in said] if total > 0 else list(row))
    return made


def logistic_slopes(
    features: Sequence[Sequence[float]], targets: Sequence[float], weight: Sequence[float], at: Sequence[float]
) -> list[float]:
    """The derivatives of the mean log loss of a logistic regression, the one of the intercept last."""
    total = math.fsum(weight)
    gaps = []
    for i in range(len(targets)):
        odds = math.fsum([*(at[j] * features[j][i] for j in range(len(features))), at[-1]])
        p = 1 / (1 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1 + math.exp(odds))
        gaps.append(weight[i] * (p - targets[i]) / total)
    columns = [*features, [1.0] * len(targets)]
    return [math.fsum(gaps[i] * column[i] for i in range(len(targets))) for column in columns]


def isotonic_map(scores: Sequence[float], outcomes: Sequence[int]) -> Callable[[float], float]:
    """Isotonic regression at the scores, a straight line between neighbours, constant outside."""
    levels = sorted(set(scores))
    fitted = dict(zip(scores, isotonic_regression(scores, outcomes), strict=True))

    def at(score: float) -> float:
        if score <= levels[0]:
            return fitted[levels[0]]
        for low, high in pairwise(levels):
            if score <= high:
                share = (score - low) / (high - low)
                return (1 - share) * fitted[low] + share * fitted[high]
        return fitted[levels[-1]]

    return at


def histogram_map(scores: Sequence[float], outcomes: Sequence[int], n_bins: int) -> Callable[[float], float]:
    """The mean outcome of the cell (k/b, (k+1)/b], its midpoint if it is empty."""

    def cell(score: float) -> int:
        return next(k for k in range(n_bins) if score <= (k + 1) / n_bins)

    def at(score: float) -> float:
        here = [outcomes[i] for i in range(len(scores)) if cell(scores[i]) == cell(score)]
        return math.fsum(here) / len(here) if here else (cell(score) + 0.5) / n_bins

    return at


def left_out_log_loss(scores: Sequence[Sequence[float]], labels: Sequence[int], n_bins: int) -> float:
    """Each row forecast by the cells of all other rows; classes one against all."""
    losses = []
    for i in range(len(labels)):
        others = [j for j in range(len(labels)) if j != i]
        curves = [
            histogram_map([scores[j][k] for j in others], [int(labels[j] == k) for j in others], n_bins)
            for k in range(len(scores[i]))
        ]
        (row,) = one_against_all([scores[i]], curves)
        losses.append(-math.log(max(row[labels[i]], FLOOR)))
    return math.fsum(losses) / len(losses)


def bbq_map(scores: Sequence[float], outcomes: Sequence[int]) -> Callable[[float], float]:
    """All equal-frequency histograms by their marginal likelihood, Naeini, Cooper & Hauskrecht (2015)."""
    n, levels = len(scores), sorted(set(scores))
    below = [sum(score <= level for score in scores) for level in levels]
    ends_of_all = []
    for n_bins in range(1, len(levels) + 1):
        if 10 * n_bins < round(n ** (1 / 3), 9) or n_bins > 10 * round(n ** (1 / 3), 9):
            continue
        ends = []
        for j in range(1, n_bins):
            nearest = min([0, *below], key=lambda count, j=j: (abs(n_bins * count - n * j), count))
            if 0 < nearest < n and nearest not in ends:
                ends.append(nearest)
        if ends not in ends_of_all:
            ends_of_all.append(ends)
    models = [_histogram(scores, outcomes, [below.index(end) for end in ends], levels) for ends in ends_of_all]
    best = max(score for score, _ in models)
    shares = [math.exp(score - best) for score, _ in models]

    def at(score: float) -> float:
        said = [share * curve(score) for share, (_, curve) in zip(shares, models, strict=True)]
        return math.fsum(said) / math.fsum(shares)

    return at


def _histogram(
    scores: Sequence[float], outcomes: Sequence[int], last: Sequence[int], levels: Sequence[float]
) -> tuple[float, Callable[[float], float]]:
    """The log marginal likelihood of one histogram and what it says; `last` are the last levels of the inner bins."""
    borders = [0.0, *((levels[k] + levels[k + 1]) / 2 for k in last), 1.0]
    b = len(borders) - 1
    score, values = 0.0, []
    for k in range(b):
        low = -1.0 if k == 0 else borders[k]
        inside = [outcomes[i] for i in range(len(scores)) if low < scores[i] <= borders[k + 1]]
        middle = (borders[k] + borders[k + 1]) / 2
        alpha, beta = 2 * middle / b, 2 * (1 - middle) / b
        hits, size = sum(inside), len(inside)
        score += math.lgamma(alpha + beta) - math.lgamma(size + alpha + beta)
        score += math.lgamma(hits + alpha) - math.lgamma(alpha)
        score += math.lgamma(size - hits + beta) - math.lgamma(beta)
        values.append((hits + alpha) / (size + alpha + beta))

    def at(value: float) -> float:
        return values[next(k for k in range(b) if value <= borders[k + 1])]

    return score, at
