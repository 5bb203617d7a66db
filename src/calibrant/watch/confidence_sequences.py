"""Confidence sequences: intervals that cover at all looks together, however often one looks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from calibrant.door.logs import sigmoid
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.platt import fit_logistic
from calibrant.result import Interval
from calibrant.watch.bets import CellCounts

KIND = "confidence sequence"
STEEPEST = 50.0
"""A slope beyond this is that of outcomes which a threshold parts: nothing is said of it."""
NARROWEST = 1e-9
"""Log-odds of forecasts that differ by less are taken as the same: they tell nothing of a slope."""
FARTHEST = 1e4
"""An interval that reaches farther than this from its start is taken as open."""

RATES = np.concatenate([sign * 2.0 ** np.arange(-16, 3) for sign in (-1, 1)])
"""The rates lambda over which the mean gap's martingales are mixed, each with the same weight."""
WINDOW_RATES = 2.0 ** (np.arange(-12, 21) / 2)
"""The same of the gaps of windows, for each sign; large ones are of use where events are rare."""


def mean_gap_sequence(n: float, hits: float, total: float, level: float) -> Interval:
    r"""An interval for the mean of forecasts less the mean of the true probabilities (MCS), over all rows so far.

    The mean true probability is q where

    .. math:: \frac{1}{38} \sum_\lambda \exp\big(\lambda Y - n \ln(1 + q (e^\lambda - 1))\big) < \frac{1}{1 - level}

    for Y outcomes of n rows and lambda = +-2^k, k from -16 to 2. By Jensen's inequality the sum is at most a martingale
    of the rows. So the chance that the interval ever misses is at most 1 - level. True probabilities may change from
    row to row; outcomes must be independent, given the past.

    References: Robbins (1970); Howard, Ramdas, McAuliffe & Sekhon (2021).

    >>> print(mean_gap_sequence(10_000, 2_400, 2_500., 0.95))
    [-0.0058, 0.0254] at 95%
    """
    rate, growth = hits / n, np.expm1(RATES)

    def inside(q: float) -> bool:
        terms = RATES * hits - n * np.log1p(q * growth)
        return float(np.logaddexp.reduce(terms)) - math.log(len(RATES)) < -math.log(1 - level)

    low, high = (_border(inside, rate, end) for end in (0.0, 1.0))
    return Interval(total / n - high, total / n - low, level, KIND, "mixture of martingales", round(n))


def window_gap_sequence(forecasts: Floats, frequencies: Floats, level: float) -> Interval:
    r"""An interval for the mean over windows of their expected gap, where outcomes of a window may move together.

    The gap x of a window is its mean forecast f less its observed frequency; each window counts alike. The mean of the
    expected gaps of t windows, each given the forecasts of its window and all earlier windows, is m where

    .. math:: \frac{1}{66} \sum_{s, \lambda}
              \exp\Big(s \lambda \sum_i (x_i - m) - \sum_i \psi_{c_i}(\lambda) (x_i - \hat x_i)^2\Big)
              < \frac{1}{1 - level}, \quad \psi_c(\lambda) = \frac{-\ln(1 - c \lambda) - c \lambda}{c^2}

    over the signs s = +-1 and lambda = 2^(k/2), k from -12 to 20; x-hat is the mean of earlier gaps, from f - 1 to f,
    and -c is the least that s (x - x-hat) can be. A lambda of at least 1 / c counts no more. Nothing is assumed of
    outcomes: the chance that the interval ever misses is at most 1 - level.

    References: Fan, Grama & Liu (2015), for the bound; Howard, Ramdas, McAuliffe & Sekhon (2021), theorem 4.

    >>> print(window_gap_sequence(np.full(100, 0.3), np.tile([0.2, 0.4], 50), 0.95))
    [-0.0806, 0.0520] at 95%
    """
    log_e = log_gap_mixture(forecasts, frequencies)

    def inside(mean: float) -> bool:
        return log_e(mean) < -math.log(1 - level)

    middle = float(forecasts.mean())
    start = middle - float(frequencies.mean())
    low, high = (_border(inside, start, end) for end in (middle - 1, middle))
    return Interval(low, high, level, KIND, "empirical Bernstein", len(forecasts))


def log_gap_mixture(forecasts: Floats, frequencies: Floats) -> Callable[[float], float]:
    """The logarithm of the sum that `window_gap_sequence` compares, as a function of the mean of expected gaps.

    >>> log_gap_mixture(np.array([0.3, 0.3]), np.array([0.2, 0.4]))(0.0) < 0
    True
    """
    gaps = forecasts - frequencies
    earlier = np.concatenate([[0.0], np.cumsum(gaps)[:-1] / np.arange(1, len(gaps))])
    guess = np.clip(earlier, forecasts - 1, forecasts)
    least = np.stack([1 - forecasts + guess, forecasts - guess])
    losses = _bernstein_loss(WINDOW_RATES, least, (gaps - guess) ** 2)
    slopes = np.array([[1], [-1]]) * WINDOW_RATES

    def log_e(mean: float) -> float:
        terms = slopes * (gaps.sum() - len(gaps) * mean) - losses
        return float(np.logaddexp.reduce(terms, axis=None)) - math.log(terms.size)

    return log_e


def _bernstein_loss(rates: Floats, least: Floats, squares: Floats) -> Floats:
    """The sum over windows of psi_c(lambda) times the square, for each side and rate; infinite from 1 / c on.

    Near c = 0 it is a little larger, so that nothing is lost to cancelling.
    """
    reach = rates[:, None] * least[:, None, :]
    inner = np.where(reach < 1, reach, 0.0)
    psi = np.where(inner > 1e-4, (-np.log1p(-inner) - inner) / np.maximum(inner, 1e-4) ** 2, 0.5 + inner / 2)
    return np.where(reach < 1, rates[:, None] ** 2 * psi * squares, np.inf).sum(axis=-1)


def slope_sequence(counts: CellCounts, level: float) -> Interval:
    r"""An interval for the calibration slope b, where the log-odds of outcomes are a + b times those of forecasts.

    It holds the b at which the likelihood of the best a is not below the mixture of likelihoods by 1 / (1 - level),

    .. math:: \frac{\int L(a', b') \, d\pi(a', b')}{\max_a L(a, b)} < \frac{1}{1 - level}

    where a' and b' - 1 are independent standard normal. The integral is replaced by a lower bound (`log_mixture`), so
    that the chance that the interval ever misses is at most 1 - level, if rows are independent and a and b are the same
    in all windows. It is approximate in one respect: forecasts are taken at the means of their cells. Those of 0 and 1
    are left out. The whole line where forecasts do not vary, or where outcomes are parted by a threshold.

    References: Wasserman, Ramdas & Balakrishnan (2020).

    >>> from calibrant.binning import cells
    >>> p = np.array([.1, .3, .6, .9])
    >>> counts = CellCounts(cells.numbers(p), np.full(4, 1000.), 1000 * p, 1000 * p)
    >>> print(slope_sequence(counts, 0.95))
    [0.8684, 1.1409] at 95%
    """
    inner = (counts.count > 0) & (counts.mean > 0) & (counts.mean < 1)
    n, y, mean = counts.count[inner], counts.hits[inner], counts.mean[inner]
    x = np.log(mean) - np.log1p(-mean)
    size, engine = round(float(n.sum())), "universal inference"
    line = Interval(-math.inf, math.inf, level, KIND, engine, size)
    if len(x) < 2 or np.ptp(x) < NARROWEST or not 0 < y.sum() < n.sum():
        return line
    (b,), *_ = fit_logistic(x[None], y / n, n)
    if not abs(b) <= STEEPEST:
        return line
    log_e = log_slope_mixture(n, y, x)

    def inside(slope: float) -> bool:
        return log_e(slope) < -math.log(1 - level)

    low, high = (_end(inside, float(b), sign) for sign in (-1, 1))
    return Interval(low, high, level, KIND, engine, size)


def log_slope_mixture(n: Floats, y: Floats, x: Floats) -> Callable[[float], float]:
    """The logarithm of the ratio that `slope_sequence` compares, as a function of the slope.

    >>> n, x = np.array([900., 900.]), np.array([-1., 1.])
    >>> log_e = log_slope_mixture(n, n / (1 + np.exp(-x)), x)
    >>> log_e(1.0) < 0 < log_e(1.5)
    True
    """
    mixture = log_mixture(n, y, x)
    return lambda slope: mixture - _profile(n, y, slope * x)


def log_mixture(n: Floats, y: Floats, x: Floats) -> float:
    r"""A lower bound of the logarithm of the likelihood's mean over lines, of y outcomes among n at log-odds x.

    The intercept and the slope less 1 are independent standard normal. The logarithm f of their density times the
    likelihood is concave. So its mean over a parallelogram is at least the mean of its corners and, by Jensen's
    inequality, the integral is at least

    .. math:: \sum_{parallelograms} area \cdot \exp\big(\tfrac14 \sum_{corners} f\big)

    The parallelograms lie around the largest f, within four standard deviations, a quarter of one wide. The bound holds
    wherever they lie.

    >>> round(math.exp(log_mixture(np.array([2.]), np.array([1.]), np.array([0.]))), 4)
    0.2034
    """
    (a, b), scales = _mode(n, y, x)
    steps = np.linspace(-4.0, 4.0, 33)
    intercept = a + scales[0, 0] * steps[:, None] + scales[0, 1] * steps
    slope = b + scales[1, 0] * steps[:, None] + scales[1, 1] * steps
    f = np.stack([_posterior(n, y, x, *lines) for lines in zip(intercept, slope, strict=True)])
    corners = (f[1:, 1:] + f[1:, :-1] + f[:-1, 1:] + f[:-1, :-1]) / 4
    area = abs(np.linalg.det(scales)) * (steps[1] - steps[0]) ** 2
    return float(np.logaddexp.reduce(corners, axis=None)) + math.log(area)


def _posterior(n: Floats, y: Floats, x: Floats, a: Floats, b: Floats) -> Floats:
    """The logarithm of the likelihood of each line, times the density of the line."""
    return _likelihood(n, y, a[..., None] + b[..., None] * x) - (a * a + (b - 1) ** 2) / 2 - math.log(2 * math.pi)


def _mode(n: Floats, y: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Where `_posterior` is largest, and a root of the inverse of its curvature there; by Newton's method."""
    rows, line = np.stack([np.ones_like(x), x]), np.array([0.0, 1.0])
    for _ in range(100):
        chance = sigmoid(line @ rows)
        root = np.linalg.inv(np.linalg.cholesky((rows * n * chance * (1 - chance)) @ rows.T + np.eye(2))).T
        step = root @ root.T @ (rows @ (y - n * chance) - line + [0.0, 1.0])
        size, height = 1.0, _posterior(n, y, x, *line)
        while size > 1e-6 and _posterior(n, y, x, *(line + size * step)) < height:
            size /= 2
        line = line + size * step
        if np.abs(step).max() < 1e-9:
            break
    return line, root


def _end(inside: Callable[[float], bool], start: float, sign: int) -> float:
    """Where an interval that holds the start ends, below it (-1) or above it (1); infinite where it is very far."""
    reach = 1.0
    while inside(start + sign * reach):
        reach *= 2
        if reach > FARTHEST:
            return sign * math.inf
    return _border(inside, start, start + sign * reach)


def _likelihood(n: Floats, y: Floats, log_odds: Floats) -> Floats:
    """The logarithm of the likelihood of y outcomes among n at these log-odds (..., cells)."""
    return np.asarray((y * log_odds - n * np.logaddexp(0.0, log_odds)).sum(axis=-1))


def _profile(n: Floats, y: Floats, offset: Floats) -> float:
    """The largest logarithm of the likelihood over intercepts, by Newton's method between bounds that are halved.

    At the lowest bound, no probability is above the observed frequency; at the highest, none is below it.
    """
    odds = math.log(y.sum()) - math.log((n - y).sum())
    low, high = odds - float(offset.max()), odds - float(offset.min())
    intercept = low / 2 + high / 2
    for turn in range(200):
        chance = sigmoid(intercept + offset)
        score = float((y - n * chance).sum())
        low, high = (intercept, high) if score > 0 else (low, intercept)
        step = score / max(float((n * chance * (1 - chance)).sum()), 1e-300)
        if abs(step) < 1e-10 or high - low < 1e-12:
            break
        newton = intercept + step
        intercept = newton if turn % 3 and low < newton < high else low / 2 + high / 2
    return float(_likelihood(n, y, intercept + offset))


def _border(inside: Callable[[float], bool], start: float, end: float) -> float:
    """Where a condition that holds at the start stops to hold on the way to the end; the end where it holds there.

    The point is outside, so that rounding makes no interval too short.
    """
    if inside(end):
        return end
    for _ in range(50):
        middle = start / 2 + end / 2
        start, end = (middle, end) if inside(middle) else (start, middle)
    return end
