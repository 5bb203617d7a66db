"""What clinicians and forecasters ask for, in the plainest loops: of forecasts p and outcomes y (0 or 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

Numbers = Sequence[float]


def observed_over_expected(p: Numbers, y: Numbers) -> float:
    """Sum of outcomes over sum of forecasts, Steyerberg (2019), chapter 15."""
    return math.fsum(y) / math.fsum(p)


def brier_skill(p: Numbers, y: Numbers) -> float:
    """1 less the Brier score over that of the base rate, Wilks (2019), section 9.4."""
    base = math.fsum(y) / len(y)
    return 1 - math.fsum((f - t) ** 2 for f, t in zip(p, y, strict=True)) / math.fsum((base - t) ** 2 for t in y)


def auroc(p: Numbers, y: Numbers) -> float:
    """Share of pairs that are in order, ties one half, Hanley & McNeil (1982)."""
    happened = [f for f, t in zip(p, y, strict=True) if t == 1]
    failed = [f for f, t in zip(p, y, strict=True) if t == 0]
    return math.fsum(_above(a, b) for a in happened for b in failed) / (len(happened) * len(failed))


def delong_variance(p: Numbers, y: Numbers) -> float:
    """The variance of the area, DeLong, DeLong & Clarke-Pearson (1988), equations 4 to 6."""
    happened = [f for f, t in zip(p, y, strict=True) if t == 1]
    failed = [f for f, t in zip(p, y, strict=True) if t == 0]
    first = [math.fsum(_above(a, b) for b in failed) / len(failed) for a in happened]
    second = [math.fsum(_above(a, b) for a in happened) / len(happened) for b in failed]
    return _variance(first) / len(first) + _variance(second) / len(second)


def net_benefit(p: Numbers, y: Numbers, threshold: float) -> float:
    """True positives less false ones by the odds of the threshold, Vickers & Elkin (2006)."""
    benefit = 0.0
    for f, t in zip(p, y, strict=True):
        if f >= threshold:
            benefit += 1 if t == 1 else -threshold / (1 - threshold)
    return benefit / len(p)


def logistic(p: Numbers, y: Numbers, a: float, b: float) -> tuple[float, float]:
    """The derivatives of the log likelihood of a + b logit p by a and by b: both are 0 where it is largest."""
    by_a, by_b = [], []
    for f, t in zip(p, y, strict=True):
        x = math.log(f) - math.log(1 - f)
        rest = t - 1 / (1 + math.exp(-a - b * x))
        by_a.append(rest)
        by_b.append(rest * x)
    return math.fsum(by_a), math.fsum(by_b)


def loess(p: Numbers, y: Numbers, x: float, span: float, degree: int) -> float:
    """The tricube-weighted polynomial at x of the nearest floor(span n) samples, Cleveland & Devlin (1988)."""
    far = sorted(abs(f - x) for f in p)[max(1, math.floor(span * len(p) + 1e-9)) - 1]
    rows, right = [[0.0] * (degree + 1) for _ in range(degree + 1)], [0.0] * (degree + 1)
    for f, t in zip(p, y, strict=True):
        u = (f - x) / far
        weight = (1 - abs(u) ** 3) ** 3 if abs(u) < 1 else 0.0
        for i in range(degree + 1):
            right[i] += weight * t * u**i
            for j in range(degree + 1):
                rows[i][j] += weight * u ** (i + j)
    return _solved(rows, right)[0]


def quantile(values: Numbers, q: float) -> float:
    """The value at place (n - 1) q of the sorted ones, in between a straight line (R's type 7)."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * q
    low = ordered[math.floor(place)]
    return low + (place - math.floor(place)) * (ordered[math.ceil(place)] - low)


def risks(certainty: Numbers, wrong: Numbers) -> list[float]:
    """The error rate of the k most certain, k = 1 to n; ties share their errors, Geifman & El-Yaniv (2017)."""
    order = sorted(range(len(wrong)), key=lambda i: -certainty[i])
    running, found = 0.0, []
    for k, i in enumerate(order, 1):
        tied = [wrong[j] for j in order if certainty[j] == certainty[i]]
        running += math.fsum(tied) / len(tied)
        found.append(running / k)
    return found


def aurc(certainty: Numbers, wrong: Numbers) -> float:
    """The mean of the risks, Geifman, Uziel & El-Yaniv (2019)."""
    return math.fsum(risks(certainty, wrong)) / len(wrong)


def excess_aurc(certainty: Numbers, wrong: Numbers) -> float:
    """AURC less that of an order with all errors last, Geifman, Uziel & El-Yaniv (2019)."""
    best = sorted(wrong)
    return aurc(certainty, wrong) - aurc([-float(i) for i in range(len(best))], best)


def augrc(certainty: Numbers, wrong: Numbers) -> float:
    """The area, by trapezoids, under the share kept and wrong against the share kept, Traub et al. (2024)."""
    n = len(wrong)
    heights = [0.0] + [k * risk / n for k, risk in enumerate(risks(certainty, wrong), 1)]
    return math.fsum((a + b) / 2 / n for a, b in pairwise(heights))


def murphy(p: Numbers, y: Numbers, n_bins: int) -> dict[str, float]:
    """The parts of the Brier score in right-closed bins of equal width, Stephenson et al. (2008), equation 4."""
    n, base = len(p), math.fsum(y) / len(y)
    parts = dict.fromkeys(("reliability", "resolution", "within_bin_variance", "within_bin_covariance"), 0.0)
    for b in range(n_bins):
        rows = [i for i in range(n) if max(0, math.ceil(p[i] * n_bins) - 1) == b]
        if not rows:
            continue
        f, t = (math.fsum(column[i] for i in rows) / len(rows) for column in (p, y))
        parts["reliability"] += len(rows) * (f - t) ** 2 / n
        parts["resolution"] += len(rows) * (t - base) ** 2 / n
        parts["within_bin_variance"] += math.fsum((p[i] - f) ** 2 for i in rows) / n
        parts["within_bin_covariance"] += 2 * math.fsum((p[i] - f) * (y[i] - t) for i in rows) / n
    return parts | {"uncertainty": base * (1 - base)}


def _above(a: float, b: float) -> float:
    return 1.0 if a > b else 0.5 if a == b else 0.0


def _variance(values: Numbers) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _solved(rows: list[list[float]], right: list[float]) -> list[float]:
    """Gauss with the largest pivot."""
    n = len(right)
    table = [[*row, value] for row, value in zip(rows, right, strict=True)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(table[i][k]))
        table[k], table[pivot] = table[pivot], table[k]
        for i in range(n):
            if i != k:
                factor = table[i][k] / table[k][k]
                table[i] = [a - factor * b for a, b in zip(table[i], table[k], strict=True)]
    return [table[k][n] / table[k][k] for k in range(n)]
