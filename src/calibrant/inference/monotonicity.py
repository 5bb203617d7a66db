"""Monotonicity: does what is forecast higher happen more often? The premise of the monotonic sweep, tested."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from calibrant.binning.ranked import EqualMass
from calibrant.checks import flag, whole
from calibrant.errors.binned import BinnedError
from calibrant.exceptions import CalibrationInputError, CalibrationWarning
from calibrant.inference.draws import check_seed
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses.events import TopLabel
from calibrant.lenses.lens import Lens
from calibrant.predictions import Predictions
from calibrant.text import p_value

LEVEL = 0.05
"""P-values below which the curve is said not to rise."""
FEWEST = 20
"""Samples in a bin, so that its frequency is nearly normal."""


@dataclass(frozen=True, eq=False)
class MonotonicityTest:
    """Whether observed frequencies rise with forecasts: bins, the closest rising frequencies, and a p-value."""

    question: str
    n: int
    forecast: Floats
    frequency: Floats
    rising: Floats
    """The likeliest frequencies that never fall."""
    sizes: Floats
    statistic: float
    """The squared distance of the frequencies from rising ones, in their variances."""
    p_value: float
    draws: int

    @property
    def rises(self) -> bool:
        """Whether the data are compatible with a curve that rises."""
        return self.p_value >= LEVEL

    @property
    def roc_gap(self) -> float:
        """The area between the ROC curve of the bins and its convex hull: 0 where frequencies rise.

        A curve that rises and a ROC curve that is convex are one premise.
        """
        hits = self.sizes * np.stack([self.frequency, self.rising])
        blocks = np.concatenate([[0], np.cumsum(np.diff(self.rising) > 0)])
        plain, hull = np.arange(len(blocks)), blocks
        return _area(hits[1], self.sizes, hull) - _area(hits[0], self.sizes, plain)

    def __str__(self) -> str:
        verdict = "compatible with a curve that rises" if self.rises else "the curve does not rise everywhere"
        return (
            f"Monotonicity test: statistic {self.statistic:.4g}, {p_value(self.p_value, self.draws)} "
            f"(n={self.n}, {self.question}, {len(self.sizes)} bins): {verdict}"
        )


def monotonicity_test(
    predictions: Predictions,
    *,
    lens: Lens = TopLabel(),
    n_bins: int = 10,
    draws: int = 1999,
    seed: int = 0,
    warn: bool = True,
) -> MonotonicityTest:
    r"""Does the observed frequency rise with the forecast, as the monotonic sweep presumes?

    .. math:: \sum_b \frac{n_b (\bar y_b - r_b)^2}{q_b (1 - q_b)}, \qquad q_b = \frac{n_b r_b + 1/2}{n_b + 1}

    over at most `n_bins` equal-mass bins of at least 20 samples, r the likeliest frequencies that never fall (pooled
    neighbours). The p-value is the rank of that among `draws` of the same distance for normal frequencies without any
    slope that have the variances of the bins. No rising curve exceeds that more often in large samples, so it is valid,
    and cautious where the curve is steep. Where it is below 0.05 a `CalibrationWarning` tells, unless `warn` is False,
    that the sweep may stop at too few bins. A curve that rises and a ROC curve that is convex are the same premise.

    References: Roelofs et al. (2022), section 4; Robertson, Wright & Dykstra (1988) for the least favourable case.

    >>> import calibrant as cal
    >>> p = np.linspace(0, 1, 500)
    >>> rng = np.random.default_rng(0)
    >>> rises = cal.Predictions.from_probs(rng.random(500) < p**2, p)
    >>> wavy = cal.Predictions.from_probs(rng.random(500) < 0.5 - 0.4 * np.sin(7 * p), p)
    >>> cal.diagnostics.monotonicity_test(rises).rises, cal.diagnostics.monotonicity_test(wavy, warn=False).rises
    (True, False)
    """
    whole(n_bins, "n_bins", 2)
    whole(draws, "draws", 19)
    check_seed(seed)
    flag(warn, "warn")
    result = BinnedError(lens=lens, binning=EqualMass(min(n_bins, max(2, len(predictions) // FEWEST))))(predictions)
    if result.bins is None or result.bins.shape[0] != 1 or not result.bins.counts.any():
        hint = "use a lens of one event, such as TopLabel() or OneClass(c)"
        raise CalibrationInputError("lens", "must ask one question of some samples", got=str(result), hint=hint)
    filled = result.bins.counts[0] > 0
    sizes = result.bins.counts[0, filled]
    forecast, frequency = (part[0, filled, 0] for part in (result.bins.forecast, result.bins.frequency))
    rising = rising_means(frequency[None], sizes)[0]
    share = (sizes * rising + 0.5) / (sizes + 1)  # no variance of 0
    weight = sizes / (share * (1 - share))
    statistic = float((weight * (frequency - rising) ** 2).sum())
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    noise = rng.normal(size=(draws, len(sizes))) / np.sqrt(weight)
    null = (weight * (noise - rising_means(noise, weight)) ** 2).sum(axis=1)
    p = (1 + int((null >= statistic).sum())) / (draws + 1)
    test = MonotonicityTest(result.question, result.n, forecast, frequency, rising, sizes, statistic, p, draws)
    if warn and not test.rises:
        words = f"the observed frequency does not rise with the forecast ({p_value(p, draws)}): a monotonic sweep may "
        warnings.warn(f"{words}choose too few bins; use ADAPTIVE_ECE beside it", CalibrationWarning, stacklevel=2)
    return test


def rising_means(values: Floats, weight: Floats) -> Floats:
    r"""The closest means that never fall, of each row (m, b): :math:`\max_{j \le i} \min_{k \ge i}` of means over j..k.

    >>> rising_means(np.array([[1.0, 4.0, 2.0]]), np.ones(3)).tolist()
    [[1.0, 3.0, 3.0]]
    """
    count = values.shape[1]
    sums = np.pad(np.cumsum(values * weight, axis=1), ((0, 0), (1, 0)))
    sizes = np.pad(np.cumsum(weight), (1, 0))
    rising = np.full(values.shape, -np.inf)
    for start in range(count):
        means = (sums[:, start + 1 :] - sums[:, start : start + 1]) / (sizes[start + 1 :] - sizes[start])
        least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        rising[:, start:] = np.maximum(rising[:, start:], least)
    return rising


def _area(hits: Floats, sizes: Floats, blocks: Ints) -> float:
    """The area under the ROC curve of bins in rising order; bins of one block are tied."""
    happened, others = (np.bincount(blocks, part) for part in (hits, sizes - hits))
    before = np.cumsum(others) - others / 2
    pairs = happened.sum() * others.sum()
    return float((happened * before).sum() / pairs) if pairs else 0.0
