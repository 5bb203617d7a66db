"""Differences of models in use: an interval for the mean difference of their scores that may be looked at often."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric
from calibrant.result import Interval
from calibrant.scale import State
from calibrant.watch.confidence_sequences import KIND

FEWEST = 30
"""Windows before an interval is given: it is asymptotic."""
TIGHTEST = 100
"""The number of windows at which the interval is narrowest for its level."""


def score_difference(
    first: Mapping[str, State], second: Mapping[str, State], metric: Metric, level: float = 0.95
) -> Interval:
    """An interval for the mean difference of a score of two models, over the windows that both have.

    `first` and `second` are states by the names of windows. Below 0, the first model is better by a loss such as BRIER
    or LOG_LOSS. Outcomes of a window may depend on each other; windows may not depend on later ones. The interval is
    asymptotic: its level holds approximately, and better the more windows there are (`mean_sequence`).

    >>> import numpy as np, calibrant as cal
    >>> rng, sharp, dull = np.random.default_rng(0), {}, {}
    >>> for day in range(40):
    ...     p = rng.random(500)
    ...     happened = rng.random(500) < p
    ...     for states, forecasts in ((sharp, p), (dull, .3 + .4 * p)):
    ...         states[f"day {day}"] = cal.scale.State.of(
    ...             cal.Predictions.from_probs(happened, forecasts), {"brier": cal.BRIER}
    ...         )
    >>> print(score_difference(sharp, dull, cal.BRIER))
    [-0.0319, -0.0279] at 95%
    """
    names = [name for name in first if name in second]
    rows = [(first[name].n, second[name].n) for name in names]
    for name, (ours, theirs) in zip(names, rows, strict=True):
        if ours != theirs:
            expected = "must have the same rows of both models"
            raise CalibrationInputError("windows", expected, got=f"{ours} and {theirs}", where=name)
    here, there = (np.array([states[name].result(metric).value for name in names]) for states in (first, second))
    return mean_sequence(here - there, level)


def mean_sequence(values: Floats, level: float = 0.95) -> Interval:
    r"""An interval for the mean of a sequence's expectations that covers at all looks from the 30th value on.

    .. math:: \hat\mu_t \pm \hat\sigma_t
              \sqrt{\frac{2 (t \rho^2 + 1)}{t^2 \rho^2} \ln \frac{\sqrt{t \rho^2 + 1}}{1 - level}}

    with the mean and the standard deviation of the t values, and rho^2 = (-2 ln a + ln(1 - 2 ln a)) / 100 where
    a = 1 - level. It is asymptotic: the chance that it ever misses tends to at most 1 - level as looks begin later.

    References: Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas (2024).

    >>> print(mean_sequence(np.tile([-1.0, 1.0], 50)))
    [-0.3035, 0.3035] at 95%
    """
    t = len(values)
    if t < FEWEST:
        raise CalibrationInputError("windows", f"must be at least {FEWEST} to compare models", got=t)
    miss = 1 - level
    rho = (-2 * math.log(miss) + math.log(1 - 2 * math.log(miss))) / TIGHTEST
    width = math.sqrt(2 * (t * rho + 1) / (t * t * rho) * math.log(math.sqrt(t * rho + 1) / miss))
    mean, reach = float(np.mean(values)), float(np.std(values)) * width
    return Interval(mean - reach, mean + reach, level, KIND, "asymptotic", t)
