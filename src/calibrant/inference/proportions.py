"""Proportions: intervals of how often something happens, from how often it did."""

from __future__ import annotations

import numpy as np

from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats


def wilson(frequency: Array, n: Array, z: Array | float) -> tuple[Floats, Floats]:
    r"""The chances that lie at most z of their standard errors from a frequency among n.

    .. math:: \frac{f + z^2 / 2n \mp z \sqrt{f (1 - f) / n + z^2 / 4n^2}}{1 + z^2 / n}

    n need not be whole: it may be an effective number of samples.

    References: Wilson (1927).

    >>> [end.round(4).tolist() for end in wilson(np.array([0., .5]), np.array([10, 10]), 1.6449)]
    [[0.0, 0.2693], [0.213, 0.7307]]
    """
    share = z * z / n
    middle = (frequency + share / 2) / (1 + share)
    reach = np.sqrt(np.maximum(frequency * (1 - frequency), 0.0) * share + share * share / 4) / (1 + share)
    return np.clip(middle - reach, 0.0, 1.0), np.clip(middle + reach, 0.0, 1.0)


def least_chance(hits: Array, n: Array, tail: Array | float) -> Floats:
    """The smallest chance at which so many hits of n, or more, are no rarer than `tail`; 0 without hits.

    The lower end of the interval of Clopper & Pearson (1934).

    >>> least_chance(np.array([0, 5, 10]), np.array([10, 10, 10]), 0.05).round(4).tolist()
    [0.0, 0.2224, 0.7411]
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    hits, n = np.asarray(hits, np.float64), np.asarray(n, np.float64)
    return np.where(hits > 0, betaincinv(np.where(hits > 0, hits, 1.0), n - hits + 1.0, tail), 0.0)


def largest_chance(hits: Array, n: Array, tail: Array | float) -> Floats:
    """The largest chance at which so many hits of n, or fewer, are no rarer than `tail`; 1 where all are hits.

    >>> largest_chance(np.array([0, 5, 10]), np.array([10, 10, 10]), 0.05).round(4).tolist()
    [0.2589, 0.7776, 1.0]
    """
    return 1.0 - least_chance(n - hits, n, tail)
