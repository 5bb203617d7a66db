"""Classes: laws of forecasts of several classes whose true class probabilities are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.checks import number, whole
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats


@dataclass(frozen=True)
class SoftmaxScores:
    """Forecasts that are the softmax of independent normal logits with standard deviation `spread`.

    The larger the spread, the surer the model.

    >>> from calibrant.simulate import SoftmaxScores
    >>> SoftmaxScores(3, 2.0).draw(np.random.default_rng(0), 2).shape
    (2, 3)
    """

    classes: int = 10
    spread: float = 2.0

    def __post_init__(self) -> None:
        whole(self.classes, "classes", 2, 10_000)
        number(self.spread, "spread", "must be a finite number of at least 0", lambda s: 0 <= s < np.inf)

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
        """Independent forecasts `(*shape, classes)`."""
        size = (*shape,) if isinstance(shape, tuple) else (shape,)
        return _softmax(rng.normal(0.0, self.spread, (*size, self.classes)))

    def described(self) -> dict[str, Any]:
        """Plain values that tell this law from all others."""
        return {"scores": "SoftmaxScores", "classes": self.classes, "spread": self.spread}


@dataclass(frozen=True)
class Tempered:
    r"""True class probabilities :math:`t_k \propto p_k^{1 / \tau}`: the forecasts at another temperature.

    With :math:`\tau = 1` the model is calibrated, above it is over-confident, below under-confident. At 0 the likeliest
    class always comes true (of equals, the first); at infinity all classes are equally likely.

    >>> from calibrant.simulate import Tempered
    >>> Tempered(0.5)([[0.8, 0.2]]).round(4).tolist()
    [[0.9412, 0.0588]]
    """

    temperature: float

    def __post_init__(self) -> None:
        number(self.temperature, "temperature", "must be a number of at least 0", lambda t: t >= 0)

    def __call__(self, forecasts: Any) -> Floats:
        p = np.asarray(forecasts, np.float64)
        if self.temperature == 1:
            return p
        if self.temperature == 0:
            return np.asarray(np.arange(p.shape[-1]) == p.argmax(axis=-1)[..., None], np.float64)
        with np.errstate(divide="ignore"):
            logits = np.zeros_like(p) if self.temperature == np.inf else np.log(p) / self.temperature
        return _softmax(logits)


RowCurve = Callable[[Any], Any]
"""From forecasts (..., classes) to true class probabilities of the same shape."""


def true_rows(curve: RowCurve, forecasts: Array) -> Floats:
    """The true class probabilities of forecasts, checked.

    >>> from calibrant.simulate.classes import Tempered, true_rows
    >>> true_rows(Tempered(1), np.array([[0.8, 0.2]])).tolist()
    [[0.8, 0.2]]
    """
    if not callable(curve) or hasattr(curve, "at"):
        raise CalibrationInputError(
            "curve",
            "must be a function of rows of forecasts for a law of classes",
            got=repr(curve),
            hint="see Tempered",
        )
    rows = np.asarray(curve(forecasts), np.float64)
    if rows.shape != forecasts.shape:
        raise CalibrationInputError("curve", "must give one row per forecast", got=f"shape {rows.shape}")
    if not (rows >= 0).all() or not (np.abs(rows.sum(axis=-1) - 1) < 1e-9).all():
        raise CalibrationInputError("curve", "must give probabilities that sum to 1", got="others")
    return rows


def _softmax(logits: Array) -> Floats:
    scores = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)
