"""Curve fits: the calibration curves that outcomes most likely follow, ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.caching import cached_property
from calibrant.kernels.totals import Floats, Ints
from calibrant.simulate.calibration_curves import IDENTITY, CalibrationCurve, parted, transformed
from calibrant.simulate.outcomes import scores_and_hits
from calibrant.text import aligned

FAMILIES = ("log_log", "logflip_logflip", "logit_logit", "logit_logflip")
TERMS = ("b0", "b1", "b0_b1")
BARRIERS = (1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11)
"""Strengths of the wall that keeps probabilities below 1; the last is what is left of it."""
STEPS = 100
"""Newton steps a wall."""
CALIBRATED = "calibrated"
"""The name of the curve on which every score comes true as often as it says."""


@dataclass(frozen=True)
class CurveFit:
    """One fitted curve: `terms` says which coefficients were fitted, the others are 0; none of the calibrated curve."""

    curve: CalibrationCurve
    terms: str
    nll: float
    """The negative log-likelihood."""
    n: int
    """Scores that it was fitted to."""

    @property
    def coefficients(self) -> int:
        """How many were fitted."""
        return self.terms.count("b")

    @property
    def name(self) -> str:
        """The family and its coefficients; "calibrated" of perfect calibration, which has none."""
        return f"{self.curve.name}_{self.terms}" if self.terms else CALIBRATED

    @property
    def aic(self) -> float:
        """Akaike's criterion: twice the coefficients plus twice the negative log-likelihood."""
        return 2 * self.coefficients + 2 * self.nll

    @property
    def bic(self) -> float:
        """Schwarz's criterion: the logarithm of n for each coefficient plus twice the negative log-likelihood."""
        return self.coefficients * math.log(self.n) + 2 * self.nll


@dataclass(frozen=True)
class CurveFits:
    """Curves fitted to the same data, best first; prints as a table."""

    fits: tuple[CurveFit, ...]
    n: int
    removed: int
    """Scores of exactly 0 or 1, which no transform can bear."""

    @property
    def best(self) -> CurveFit:
        """The fit with the smallest criterion."""
        return self.fits[0]

    @property
    def curve(self) -> CalibrationCurve:
        """The best curve."""
        return self.best.curve

    def __getitem__(self, name: str) -> CurveFit:
        for fit in self.fits:
            if fit.name == name:
                return fit
        raise CalibrationInputError("name", "is no fitted curve", got=repr(name), hint=f"best: {self.best.name}")

    def __str__(self) -> str:
        rows = [
            [
                fit.name,
                f"{fit.curve.b0:.4f}",
                f"{fit.curve.b1:.4f}",
                f"{fit.nll:.4f}",
                f"{fit.aic:.4f}",
                f"{fit.bic:.4f}",
            ]
            for fit in self.fits
        ]
        return aligned(["curve", "b0", "b1", "nll", "AIC", "BIC"], rows, right=True)


def fit_curve(scores: Any, hits: Any = None, *, families: Sequence[str] = FAMILIES) -> CurveFits:
    r"""How often do forecasts of this model come true? Every curve of the families, by maximum likelihood, ranked.

    .. math:: \mathrm{nll} = \min_{b_0, b_1} \; -\sum_i y_i \ln T(s_i) + (1 - y_i) \ln(1 - T(s_i)), \qquad
        \mathrm{BIC} = k \ln n + 2\, \mathrm{nll}

    with k coefficients; the smallest BIC is best. (The reference ranks by AIC = 2 k + 2 nll, which each fit has too;
    with so many curves to choose from, it too often prefers one of them to perfect calibration.) From scores and
    outcomes, or from `Predictions`. Each family is fitted with b0 alone, b1 alone, and both, on the same data, so that
    criteria can be compared; constant curves (b0) of all families are one model and tie. Perfect calibration, T(s) = s
    with k = 0, is ranked among them, unless an event of score 0 occurred or one of 1 did not. Scores of exactly 0 or 1
    are left out of the fits. The problems are convex: Newton's method, for the links log and logflip inside a wall
    where T(s) would leave (0, 1), which is then taken down to 1e-11 of a nat. Both outcomes must occur.

    References: Roelofs et al. (2022), eq. 9 and table 2.

    >>> from calibrant.simulate import fit_curve
    >>> s = (np.arange(1, 41) - 0.5) / 40
    >>> fits = fit_curve(s, (0.6180339887498949 * np.arange(1, 41)) % 1 < s**2)
    >>> fits.best.name, round(fits.curve.b1, 6), round(fits.best.aic, 6), round(fits["logit_logit_b0_b1"].nll, 6)
    ('log_log_b1', 1.885592, 35.023293, 16.593715)
    """
    values, happened = scores_and_hits(scores, hits)
    inside = (values > 0) & (values < 1)
    x, y = values[inside], happened[inside]
    if not 0 < y.sum() < len(y):
        raise CalibrationInputError(
            "hits",
            "must hold both outcomes among scores strictly between 0 and 1 for a curve to be fitted",
            got=f"{int(y.sum()):,} of {len(y):,} occurred",
        )
    fits = [_fitted(family, terms, x, y) for family in families for terms in TERMS]
    if (values == happened)[~inside].all():
        fits.append(CurveFit(IDENTITY, "", -math.fsum(np.where(y == 1, np.log(x), np.log1p(-x))), len(x)))
    return CurveFits(tuple(sorted(fits, key=lambda fit: fit.bic)), len(values), int((~inside).sum()))


def _fitted(family: str, terms: str, x: Floats, y: Ints) -> CurveFit:
    link, transform = parted(family)
    bent = transformed(transform, x, 1.0 - x)
    columns = [np.ones_like(x)] if terms == "b0" else [bent] if terms == "b1" else [np.ones_like(x), bent]
    problem = _Problem(link, np.column_stack(columns), y.astype(np.float64), bent)
    coefficients = problem.solved()
    b0, b1 = {"b0": (coefficients[0], 0.0), "b1": (0.0, coefficients[0])}.get(terms, tuple(coefficients))
    return CurveFit(CalibrationCurve(family, float(b0), float(b1)), terms, problem.nll(coefficients), len(x))


@dataclass(frozen=True, eq=False)
class _Problem:
    """The likelihood of a linear predictor under a link; convex for all three."""

    link: str
    design: Floats
    y: Floats
    bent: Floats

    @cached_property
    def ends(self) -> Floats:
        """The rows of the smallest and largest transform: a predictor is below 0 everywhere if it is in both."""
        return self.design[[int(self.bent.argmin()), int(self.bent.argmax())]]

    def solved(self) -> Floats:
        """The coefficients of the largest likelihood."""
        start = self._start()
        if self.link == "logit":
            return self._newton(start, 0.0)
        for wall in BARRIERS:
            start = self._newton(start, wall)
        return start

    def _start(self) -> Floats:
        """A curve within (0, 1): the constant one where there is a constant, else a small slope."""
        share = self.y.mean()
        if (self.design[:, 0] == 1).all():
            first = {"log": math.log(share), "logflip": math.log1p(-share), "logit": math.log(share / (1 - share))}
            return np.array([first[self.link], 0.0][: self.design.shape[1]])
        if self.link == "logit":
            return np.zeros(1)
        sides = np.sign(self.ends[:, 0])
        if sides.min() < 0 < sides.max():
            raise CalibrationInputError(
                "families",
                "must be curves that can stay within (0, 1)",
                got=f"{self.link} of a transform of both signs",
            )
        return np.array([-1.0 if self.ends[:, 0].max() > 0 else 1.0])

    def nll(self, coefficients: Floats) -> float:
        """The negative log-likelihood; infinite where a probability leaves (0, 1)."""
        return math.fsum(self._losses(self.design @ coefficients)) if self._inside(coefficients) else math.inf

    def _inside(self, coefficients: Floats) -> bool:
        return self.link == "logit" or bool((self.ends @ coefficients < 0).all())

    def _losses(self, eta: Floats) -> Array:
        if self.link == "logit":
            return np.logaddexp(0.0, eta) - self.y * eta
        likely = self.y if self.link == "log" else 1.0 - self.y  # what has probability e^eta
        with np.errstate(divide="ignore"):
            return -likely * eta - np.where(likely < 1, (1 - likely) * np.log(-np.expm1(np.minimum(eta, 0.0))), 0.0)

    def _slopes(self, eta: Floats) -> tuple[Floats, Floats]:
        """First and second derivative of each loss."""
        if self.link == "logit":
            small = np.exp(-np.abs(eta))
            p = np.where(eta >= 0, 1.0, small) / (1.0 + small)
            return p - self.y, p * (1 - p)
        likely = self.y if self.link == "log" else 1.0 - self.y
        odds = np.exp(eta) / -np.expm1(eta)
        return -likely + (1 - likely) * odds, (1 - likely) * odds * (1 + odds)

    def _newton(self, start: Floats, wall: float) -> Floats:
        here = start
        for _ in range(STEPS):
            first, second = self._slopes(self.design @ here)
            gradient, curvature = self.design.T @ first, (self.design * second[:, None]).T @ self.design
            if wall:
                ends = self.ends / (self.ends @ here)[:, None]
                gradient, curvature = gradient - wall * ends.sum(axis=0), curvature + wall * ends.T @ ends
            scale = 1e-14 * np.trace(curvature) + 1e-300
            step = -np.linalg.solve(curvature + scale * np.eye(len(here)), gradient)
            decrement = float(-gradient @ step)
            if decrement < 1e-10:  # the last step squares what is left of the error
                return here + step if self._inside(here + step) else here
            here = self._along(here, step, wall, decrement)
        return here

    def _along(self, here: Floats, step: Floats, wall: float, decrement: float) -> Floats:
        """As far along the step as it helps."""
        before, length = self._walled(here, wall), 1.0
        while self._walled(here + length * step, wall) > before - 1e-4 * length * decrement and length > 1e-12:
            length /= 2
        return here + length * step if length > 1e-12 else here

    def _walled(self, coefficients: Floats, wall: float) -> float:
        if not self._inside(coefficients):
            return math.inf
        barrier = wall * float(np.log(-(self.ends @ coefficients)).sum()) if wall else 0.0
        return float(self._losses(self.design @ coefficients).sum()) - barrier
