"""Truth: the calibration error that a model of known scores and known curve has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calibrant.checks import number, order
from calibrant.exceptions import CalibrationInputError
from calibrant.simulate.calibration_curves import CalibrationCurve, as_curve, power_curve
from calibrant.simulate.scores import BetaScores, Scores

STEEPEST = 1e6
"""The largest exponent d for which s^d is tried."""
CANCELLED = 1e-4
"""Below this, a difference of closed forms has lost digits and the integral is taken instead."""


def true_calibration_error(scores: Scores, curve: Any, p: float = 2) -> float:
    r"""How far are forecasts from how often they come true, for a model that is known?

    .. math:: \mathrm{TCE}_p = \big(E |s - T(s)|^p\big)^{1/p}

    over the law of the scores s, T the curve. Accurate to 1e-8: by its closed form where there is one (beta scores,
    :math:`T = e^{b_0} s^{b_1}` below 1, p = 2), else by quadrature in coordinates in which the law's infinite ends are
    flat, stretch by stretch between the zeros of s - T(s). Of observed scores it is their mean.

    References: Roelofs et al. (2022), eq. 1.

    >>> from calibrant.simulate import UNIFORM, BetaScores, CalibrationCurve, power_curve, true_calibration_error
    >>> round(true_calibration_error(UNIFORM, power_curve(2)), 10)
    0.1825741858
    >>> network = BetaScores(2.7752, 0.0478), CalibrationCurve("logflip_logflip", -0.24, 0.30)
    >>> round(true_calibration_error(*network), 6), round(true_calibration_error(*network, p=1), 6)
    (0.107087, 0.058371)
    """
    order(p, "p")
    if not isinstance(scores, Scores):
        raise CalibrationInputError(
            "scores",
            "must be a law of forecasts of one event",
            got=type(scores).__name__,
            hint="of classes every metric has a true value of its own: see true_value",
        )
    curve = as_curve(curve)
    closed = _closed(scores, curve) if p == 2 else None
    if closed is not None and closed > CANCELLED:
        return math.sqrt(closed)

    def gap(x: Any, q: Any) -> Any:
        return x - curve.at(x, q)

    return float(scores.mean_of(lambda x, q: np.abs(gap(x, q)) ** p, kink=gap) ** (1 / p))


def curve_with_error(scores: Scores, error: float, p: float = 2) -> CalibrationCurve:
    """The over-confident curve s^d that has a wanted true calibration error.

    References: Roelofs et al. (2022), section 5.3.

    >>> from calibrant.simulate import UNIFORM, curve_with_error, true_calibration_error
    >>> curve = curve_with_error(UNIFORM, 0.05)
    >>> round(curve.b1, 6), round(true_calibration_error(UNIFORM, curve), 10)
    (1.202189, 0.05)
    """
    from scipy.optimize import brentq  # type: ignore[import-untyped]

    most = true_calibration_error(scores, power_curve(STEEPEST), p)
    number(error, "error", f"must lie between 0 and {most:.6g}, the most that s^d reaches", lambda e: 0 <= e < most)
    if error == 0:
        return power_curve(1.0)

    def excess(bent: float) -> float:
        return true_calibration_error(scores, power_curve(math.exp(bent)), p) - error

    return power_curve(math.exp(brentq(excess, 0.0, math.log(STEEPEST), xtol=1e-13, rtol=1e-12)))


def _closed(scores: Scores, curve: Any) -> float | None:
    """The mean square of s - e^b0 s^b1 under beta scores, in beta functions; None where it is not that."""
    from scipy.special import betaln  # type: ignore[import-untyped]

    named = isinstance(scores, BetaScores) and isinstance(curve, CalibrationCurve) and curve.name == "log_log"
    if not named or curve.b0 > 0 or curve.b1 < 0:  # it would be clipped at 1
        return None
    assert isinstance(scores, BetaScores)

    def moment(exponent: float) -> float:
        return math.exp(betaln(scores.a + exponent, scores.b) - betaln(scores.a, scores.b))

    scale = math.exp(curve.b0)
    return moment(2.0) - 2 * scale * moment(1 + curve.b1) + scale * scale * moment(2 * curve.b1)
