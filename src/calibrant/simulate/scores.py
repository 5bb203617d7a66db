"""Scores: laws that forecasts of one event follow, to be drawn from and integrated over."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from calibrant.checks import number
from calibrant.door.arrays import as_array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats

Integrand = Callable[[Any, Any], Any]
"""A function of the score x and of q = 1 - x, which is known apart since near 1 x alone has lost it."""

ACCURACY = 1e-10
"""The error, relative to the integral, that every stretch of an integral may have."""
GRAIN = 64
"""Points of a stretch at which a change of sign is looked for."""


@dataclass(frozen=True)
class BetaScores:
    r"""Scores of density :math:`s^{a-1} (1 - s)^{b-1} / B(a, b)`.

    With b far below 1, as fitted to networks, most scores lie next to 1, and in float64 many are 1.

    References: Roelofs et al. (2022), section 5.1.

    >>> from calibrant.simulate import BetaScores
    >>> scores = BetaScores(2.7752, 0.0478)
    >>> round(scores.mean, 4), bool((scores.draw(np.random.default_rng(0), 1000) == 1).mean() > 0.1)
    (0.9831, True)
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            number(getattr(self, name), name, "must be a finite number above 0", lambda value: 0 < value < np.inf)

    @property
    def mean(self) -> float:
        """The mean score."""
        return self.a / (self.a + self.b)

    @property
    def sd(self) -> float:
        """The standard deviation of the scores."""
        total = self.a + self.b
        return math.sqrt(self.a * self.b / (total + 1)) / total

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
        """Independent scores."""
        return rng.random(shape) if self.a == self.b == 1 else rng.beta(self.a, self.b, shape)

    def quantiles(self, count: int) -> tuple[Floats, Floats]:
        """Scores at the middles of `count` equal shares of the law, ascending, and 1 less each of them."""
        from scipy.special import betaincinv  # type: ignore[import-untyped]

        middles = (np.arange(count) + 0.5) / count
        return betaincinv(self.a, self.b, middles), betaincinv(self.b, self.a, middles)[::-1]

    def mean_of(self, function: Integrand, kink: Integrand | None = None) -> float:
        r"""The mean of a function of the score, by quadrature; `kink` changes sign where the function has a corner.

        Where b is below 1 the density is infinite at 1; in :math:`v = (1 - s)^b` the integrand is bounded. Likewise
        at 0. The stretches between corners, and those about the bulk of the law, are integrated one by one.

        >>> from calibrant.simulate import BetaScores
        >>> round(BetaScores(2, 3).mean_of(lambda x, q: x), 12)
        0.4
        """
        return sum(_integral(side, function, kink) for side in self._sides())

    def _sides(self) -> list[_Side]:
        from scipy.special import betaln

        scale = -float(betaln(self.a, self.b))
        bulk = [self.mean + steps * self.sd for steps in (-30, -8, -2, 0, 2, 8, 30)]
        left = sorted({0.0, 0.5, *(x for x in bulk if 0 < x < 0.5)})
        right = sorted({0.0, 0.5, *(1 - x for x in bulk if 0.5 < x < 1)})
        return [_Side(self.a, self.b, scale, left, False), _Side(self.b, self.a, scale, right, True)]

    def described(self) -> dict[str, Any]:
        """Plain values that tell this law from all others."""
        return {"scores": "BetaScores", "a": self.a, "b": self.b}


UNIFORM = BetaScores(1.0, 1.0)
"""Scores spread evenly over [0, 1]."""


@dataclass(frozen=True, eq=False, repr=False)
class EmpiricalScores:
    """Scores drawn, with replacement, from those that were seen.

    >>> from calibrant.simulate import EmpiricalScores
    >>> scores = EmpiricalScores([0.9, 0.6, 0.9])
    >>> scores, round(scores.mean_of(lambda x, q: x), 10)
    (EmpiricalScores(3 scores), 0.8)
    """

    values: Floats = field(repr=False)

    def __init__(self, values: Any) -> None:
        object.__setattr__(self, "values", np.sort(checked_scores(values, "values")))

    def __repr__(self) -> str:
        return f"EmpiricalScores({len(self.values):,} scores)"

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
        """Independent scores."""
        return self.values[rng.integers(0, len(self.values), shape)]

    def quantiles(self, count: int) -> tuple[Floats, Floats]:
        """The scores themselves, however many are asked for, and 1 less each of them."""
        return self.values, 1.0 - self.values

    def mean_of(self, function: Integrand, kink: Integrand | None = None) -> float:
        """The mean of a function of the score."""
        return math.fsum(np.broadcast_to(function(self.values, 1.0 - self.values), self.values.shape)) / len(
            self.values
        )

    def described(self) -> dict[str, Any]:
        """Plain values that tell this law from all others."""
        digest = hashlib.sha256(self.values.tobytes()).hexdigest()
        return {"scores": "EmpiricalScores", "n": len(self.values), "sha256": digest}


Scores = BetaScores | EmpiricalScores


def checked_scores(values: Any, parameter: str) -> Floats:
    """Scores as a flat array of float64, or the refusal that says what is wrong.

    >>> from calibrant.simulate.scores import checked_scores
    >>> checked_scores([0.2, 1.5], "scores")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: scores: must lie in [0, 1], got 1.5 at row 1
    """
    array, _ = as_array(values, parameter)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "fiu":
        raise CalibrationInputError(
            parameter, "must be a list of numbers, at least one", got=f"shape {array.shape} of {array.dtype}"
        )
    scores = array.astype(np.float64)
    outside = np.flatnonzero(~((scores >= 0) & (scores <= 1)))
    if len(outside):
        raise CalibrationInputError(
            parameter, "must lie in [0, 1]", got=f"{scores[outside[0]]:g}", where=f"row {outside[0]}"
        )
    return scores


@dataclass(frozen=True)
class _Side:
    """One half of the unit interval as seen from its end, where the density may be infinite."""

    near: float
    """The exponent of the density at this end; it is infinite there when below 1."""
    far: float
    scale: float
    stops: list[float]
    """Distances from the end between which the integral is taken."""
    flipped: bool

    @property
    def power(self) -> float:
        """The distance is stretched by this power, which makes the integrand bounded."""
        return min(self.near, 1.0)

    def at(self, stretched: Any) -> tuple[Any, Any]:
        """The score and 1 less it."""
        distance = stretched ** (1 / self.power)
        return (1.0 - distance, distance) if self.flipped else (distance, 1.0 - distance)

    def density(self, stretched: Any) -> Any:
        """The law's density per stretched distance."""
        distance = stretched ** (1 / self.power)
        rest = 0.0 if self.near <= 1 else (self.near - 1) * np.log(np.maximum(distance, 1e-300))
        return np.exp(self.scale + rest + (self.far - 1) * np.log1p(-distance)) / self.power


def _integral(side: _Side, function: Integrand, kink: Integrand | None) -> float:
    """The integral over one half, stretch by stretch."""
    from scipy.integrate import quad  # type: ignore[import-untyped]

    def integrand(stretched: float) -> float:
        x, q = side.at(stretched)
        return float(function(np.float64(x), np.float64(q)) * side.density(stretched))

    parts, errors = [], []
    for low, high in pairwise(_stops(side, kink)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters of these warnings is the estimated error
            part, error, *_ = quad(integrand, low, high, epsabs=1e-17, epsrel=ACCURACY, limit=400, full_output=1)
        parts.append(part)
        errors.append(error)
    total = math.fsum(parts)
    if math.fsum(errors) > 1e-8 * max(abs(total), 1e-6):
        warnings.warn(f"an integral over scores is known to {math.fsum(errors):.1g} only", stacklevel=5)
    return total


def _stops(side: _Side, kink: Integrand | None) -> list[float]:
    """Where one half is cut, in stretched distances."""
    stops = [stop**side.power for stop in side.stops]
    return stops if kink is None else sorted({*stops, *_roots(side, kink, stops)})


def _roots(side: _Side, kink: Integrand, stops: list[float]) -> Iterator[float]:
    """Where the kink changes its sign."""
    from scipy.optimize import brentq  # type: ignore[import-untyped]

    for low, high in pairwise(stops):
        points = np.linspace(low, high, GRAIN + 1)
        signs = np.sign(kink(*side.at(points)))
        for left in np.flatnonzero(signs[:-1] * signs[1:] < 0):
            yield float(brentq(lambda point: float(kink(*side.at(np.float64(point)))), points[left], points[left + 1]))
