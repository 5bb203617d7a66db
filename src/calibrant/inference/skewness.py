"""Intervals of means: Student's t, corrected for skewness."""

from __future__ import annotations

import numpy as np

from calibrant.kernels.totals import Floats


def skewed(value: float, moves: Floats, level: float, most: float = np.inf) -> tuple[float, float]:
    r"""The interval of a value from what each independent row moves it, corrected for skewness.

    With s^2 the summed squares times n / (n - 1), and a the summed cubes over s^3, :math:`g(t) = t + a t^2 / 3 +
    a^2 t^3 / 27 + a / 6` of the studentised value is nearly Student's t, and rises; its inverse turns the quantiles
    back. The degrees of freedom are n - 1, and at most `most`.

    References: Hall (1992), On the removal of skewness by transformation.

    >>> low, high = skewed(0.5, np.array([-.1, .1, -.1, .1]), 0.9)
    >>> round(low, 3), round(high, 3)  # no skewness: Student's t
    (-0.043, 1.043)
    """
    return skewed_by(value, float(moves @ moves), float((moves**3).sum()), len(moves), level, most)


def skewed_by(
    value: float, squares: float, cubes: float, n: int, level: float, most: float = np.inf
) -> tuple[float, float]:
    """The interval of `skewed` from the summed squares and cubes of n moves.

    >>> skewed_by(0.5, 0.04, 0.0, 4, 0.9) == skewed(0.5, np.array([-.1, .1, -.1, .1]), 0.9)
    True
    """
    deviation = float(np.sqrt(squares * n / max(1, n - 1)))
    if deviation == 0:
        return value, value
    skewness = cubes / deviation**3
    quantile = student(level, max(1.0, min(n - 1.0, most)))

    def turned(t: float) -> float:
        if abs(skewness) < 1e-9:
            return t
        return float(3 / skewness * (np.cbrt(1 + skewness * (t - skewness / 6)) - 1))

    return value - deviation * turned(quantile), value - deviation * turned(-quantile)


def student(level: float, freedom: float) -> float:
    """The quantile of Student's t that leaves (1 - level) / 2 above it.

    >>> round(student(0.9, 10), 4)
    1.8125
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    return float(stdtrit(max(freedom, 1.0), (1 + level) / 2))
