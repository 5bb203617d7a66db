"""Curves: how often a forecast comes true, for every forecast; the truth of a simulated model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.checks import number
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.kernels.totals import Floats
from calibrant.simulate.classes import Tempered

LINKS = ("log", "logflip", "logit")
"""How a probability is bent into a number without bounds: log p, log(1 - p), log p - log(1 - p)."""
TRANSFORMS = (*LINKS, "identity")
"""How a score is: the same, or not at all."""


@dataclass(frozen=True)
class CalibrationCurve:
    r"""How often does a forecast s come true? A curve of two numbers, by its name `link_transform`.

    .. math:: T(s) = \min(1, \max(0, g^{-1}(b_0 + b_1 t(s))))

    with link g and transform t among log s, "logflip" log(1 - s), "logit" log s - log(1 - s) and, for t only,
    "identity". Thus "log_log" is :math:`e^{b_0} s^{b_1}`, "logflip_logflip" :math:`1 - e^{b_0} (1 - s)^{b_1}`,
    "logit_logit" :math:`\sigma(b_0 + b_1 \mathrm{logit}\, s)` and "logit_identity" a logistic curve of s itself.
    Equal link and transform with 0 and 1 is perfect calibration, to the bit. At s = 0 and 1 the curve has its limit.

    References: Roelofs et al. (2022), eq. 9.

    >>> from calibrant.simulate import CalibrationCurve
    >>> CalibrationCurve("log_log", 0, 2)([0.0, 0.5, 1.0]).tolist()
    [0.0, 0.25, 1.0]
    """

    name: str
    b0: float = 0.0
    b1: float = 1.0

    def __post_init__(self) -> None:
        parted(self.name)
        for coefficient in ("b0", "b1"):
            number(getattr(self, coefficient), coefficient, "must be a finite number", lambda b: abs(b) < np.inf)

    def __call__(self, scores: Any) -> Floats:
        x = np.asarray(scores, np.float64)
        return self.at(x, 1.0 - x)

    def at(self, x: Floats, q: Floats) -> Floats:
        """The curve where the score is x and 1 - x is q, known apart: near 1, x alone has lost it."""
        link, transform = parted(self.name)
        if link == transform and self.b0 == 0 and self.b1 == 1:
            return np.asarray(x, np.float64)
        bent = np.full(np.shape(x), float(self.b0))
        if self.b1:  # 0 times the infinite ends of a transform must stay 0
            bent += self.b1 * transformed(transform, x, q)
        return unlinked(link, bent)

    @property
    def formula(self) -> str:
        """The curve as a formula of the score s.

        >>> from calibrant.simulate import CalibrationCurve
        >>> CalibrationCurve("logit_logflip", 0, -0.35).formula, CalibrationCurve("log_log", 0, 2).formula
        ('sigmoid(-0.35 log(1 - s))', 's^2')
        >>> CalibrationCurve("logflip_logflip", -0.24, 0.3).formula, CalibrationCurve("logit_identity", -5, 10).formula
        ('1 - 0.7866 (1 - s)^0.3', 'sigmoid(-5 + 10 s)')
        """
        link, transform = parted(self.name)
        if link == transform and self.b0 == 0 and self.b1 == 1:
            return "s"
        score = {"log": "s", "logflip": "(1 - s)"}.get(transform)
        if link != "logit" and score is not None:
            factors = [f"{np.exp(self.b0):.4g}"] if self.b0 or not self.b1 else []
            product = " ".join([*factors, *([f"{score}^{self.b1:.4g}"] if self.b1 else [])])
            return product if link == "log" else f"1 - {product}"
        bent = {"log": "log(s)", "logflip": "log(1 - s)", "logit": "logit(s)", "identity": "s"}[transform]
        terms = [f"{self.b0:.4g}"] if self.b0 or not self.b1 else []
        linear = " + ".join([*terms, *([f"{self.b1:.4g} {bent}"] if self.b1 else [])]).replace("+ -", "- ")
        return {"log": f"exp({linear})", "logflip": f"1 - exp({linear})", "logit": f"sigmoid({linear})"}[link]

    @property
    def rises(self) -> bool:
        """Whether larger scores come true more often (a constant curve does not)."""
        link, transform = parted(self.name)
        return bool(self.b1 * (-1 if link == "logflip" else 1) * (-1 if transform == "logflip" else 1) > 0)


@dataclass(frozen=True)
class GivenCurve:
    """A curve that is any function of an array of scores; values outside [0, 1] are clipped.

    >>> from calibrant.simulate.calibration_curves import GivenCurve
    >>> GivenCurve(np.sqrt)([0.25, 1.0]).tolist()
    [0.5, 1.0]
    """

    function: Callable[[Any], Any]

    def __call__(self, scores: Any) -> Floats:
        x = np.asarray(scores, np.float64)
        return self.at(x, 1.0 - x)

    def at(self, x: Floats, q: Floats) -> Floats:
        """The function of x, checked."""
        values = np.asarray(self.function(x), np.float64)
        if values.shape != np.shape(x):
            raise CalibrationInputError(
                "curve", "must give one probability per score", got=f"shape {values.shape} for {np.shape(x)}"
            )
        if not np.isfinite(values).all():
            raise CalibrationInputError("curve", "must be finite", got=f"{values[~np.isfinite(values)][0]} for a score")
        return np.clip(values, 0.0, 1.0)


Curve = CalibrationCurve | GivenCurve


def power_curve(d: float) -> CalibrationCurve:
    """The curve s^d: over-confident for d above 1, calibrated at 1.

    >>> from calibrant.simulate import power_curve
    >>> float(power_curve(2)(0.5))
    0.25
    """
    return CalibrationCurve("log_log", 0.0, d)


def logistic_curve(slope: float, offset: float) -> CalibrationCurve:
    """The curve 1 / (1 + exp(-(slope s + offset))).

    >>> from calibrant.simulate import logistic_curve
    >>> float(logistic_curve(10, -5)(0.5))
    0.5
    """
    return CalibrationCurve("logit_identity", offset, slope)


def as_curve(curve: Any) -> Curve:
    """A curve as it is, or any other function as one.

    >>> from calibrant.simulate.calibration_curves import IDENTITY, as_curve
    >>> as_curve(IDENTITY) is IDENTITY
    True
    """
    if isinstance(curve, Curve):
        return curve
    if isinstance(curve, (type, Tempered)) or not callable(curve):
        raise CalibrationInputError(
            "curve", "must be a CalibrationCurve or a function of an array of scores", got=repr(curve)
        )
    return GivenCurve(curve)


def parted(name: str) -> tuple[str, str]:
    """The link and the transform of a curve's name.

    >>> from calibrant.simulate.calibration_curves import parted
    >>> parted("logit_logflip")
    ('logit', 'logflip')
    """
    link, _, transform = name.partition("_") if isinstance(name, str) else ("", "", "")
    if link not in LINKS or transform not in TRANSFORMS:
        names = [f"{first}_{second}" for first in LINKS for second in TRANSFORMS]
        raise CalibrationInputError("name", "must be link_transform", got=repr(name), hint=nearest(str(name), names))
    return link, transform


def transformed(transform: str, x: Array, q: Array) -> Floats:
    """A score's transform t(s); infinite at the ends."""
    with np.errstate(divide="ignore"):
        match transform:
            case "log":
                return np.log(x)
            case "logflip":
                return np.log(q)
            case "logit":
                return np.log(x) - np.log(q)
    return np.asarray(x, np.float64)


def unlinked(link: str, bent: Floats) -> Floats:
    """The probability whose link is given, clipped to [0, 1]."""
    if link == "logit":
        small = np.exp(-np.abs(bent))
        return np.where(bent >= 0, 1.0, small) / (1.0 + small)
    raised = np.exp(np.minimum(bent, 0.0))  # above 0 a probability would exceed 1: clipped
    return 1.0 - raised if link == "logflip" else raised


def described(curve: Any) -> dict[str, Any]:
    """A curve as plain values that tell it from all others; refused where a function has no name of its own.

    >>> from calibrant.simulate.calibration_curves import described, power_curve
    >>> described(power_curve(2))
    {'curve': 'log_log', 'b0': 0.0, 'b1': 2}
    """
    if isinstance(curve, CalibrationCurve):
        return {"curve": curve.name, "b0": curve.b0, "b1": curve.b1}
    function = getattr(curve, "function", curve)
    if hasattr(function, "described"):
        return dict(function.described())
    if dataclasses.is_dataclass(function) and not isinstance(function, type):
        return {"curve": type(function).__name__, **dataclasses.asdict(function)}
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '<')}"
    if "<" in name:
        raise CalibrationInputError(
            "curve",
            "must have a name of its own to be kept in a folder",
            got=name,
            hint="define it with def in a module",
        )
    return {"curve": name}


IDENTITY = CalibrationCurve("log_log", 0.0, 1.0)
"""Perfect calibration: what is forecast with s comes true with s."""
