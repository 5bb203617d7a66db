"""Recalibrated rows by the formula of each method, in sixty digits and a range in which no probability is 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

Row = list[Decimal]


def log_loss(fitted: Any, row: Sequence[float], label: int) -> float:
    """What one row of logits loses after a fitted method; an event's logit z is the row (0, z)."""
    with localcontext() as context:
        context.prec = 60
        made = FORMULAS[type(fitted).__name__](fitted, [Decimal(float(z)) for z in row])
        return -float(made[label].ln())


def temperature(fitted: Any, z: Row) -> Row:
    (heat,) = _learnt(fitted.temperature_)
    return _softmax([each / heat for each in z])


def identity(fitted: Any, z: Row) -> Row:
    return _softmax(list(z))


def prior_shift(fitted: Any, z: Row) -> Row:
    return _softmax([each + b for each, b in zip(z, _learnt(fitted.bias_), strict=True)])


def bias_corrected(fitted: Any, z: Row) -> Row:
    (heat,) = _learnt(fitted.temperature_)
    return _softmax([each / heat + b for each, b in zip(z, _learnt(fitted.bias_), strict=True)])


def vector(fitted: Any, z: Row) -> Row:
    parts = zip(z, _learnt(fitted.weights_), _learnt(fitted.bias_), strict=True)
    return _softmax([w * each + b for each, w, b in parts])


def matrix(fitted: Any, z: Row) -> Row:
    rows = [sum(w * each for w, each in zip(_learnt(row), z, strict=True)) for row in fitted.weights_]
    return _softmax([row + b for row, b in zip(rows, _learnt(fitted.bias_), strict=True)])


def dirichlet(fitted: Any, z: Row) -> Row:
    return matrix(fitted, [p.ln() for p in _softmax(z)])


def classwise(fitted: Any, z: Row) -> Row:
    return _softmax([each / heat for each, heat in zip(z, _learnt(fitted.temperatures_), strict=True)])


def ensemble(fitted: Any, z: Row) -> Row:
    first, second, third = _learnt(fitted.weights_)
    pairs = zip(temperature(fitted, z), _softmax(z), strict=True)
    return [first * one + second * other + third / len(z) for one, other in pairs]


def gaussian_process(fitted: Any, z: Row) -> Row:
    ((length,), (scale,)) = _learnt(fitted.lengthscale_), _learnt(fitted.output_scale_)
    points = list(zip(_learnt(fitted.inducing_), _learnt(fitted.weights_), strict=True))

    def latent(at: Decimal) -> Decimal:
        return at + sum(w * scale**2 * (-(((at - c) / length) ** 2) / 2).exp() for c, w in points)

    return _softmax([z[0], latent(z[1])] if fitted.is_event else [latent(each) for each in z])


def platt(fitted: Any, z: Row) -> Row:
    return _one_by_one(fitted, z, lambda at, a, b: a * at + b, fitted.slope_, fitted.intercept_)


def beta(fitted: Any, z: Row) -> Row:
    def odds(at: Decimal, a: Decimal, b: Decimal, c: Decimal) -> Decimal:
        return a * _sigmoid(at).ln() - b * _sigmoid(-at).ln() + c

    return _one_by_one(fitted, z, odds, fitted.a_, fitted.b_, fitted.c_)


def top_label(fitted: Any, z: Row) -> Row:
    """By Platt scaling."""
    p, top = _softmax(z), z.index(max(z))
    slope, intercept = _learnt(fitted.curves_[top])
    odds = slope * _log_odds(z)[top] + intercept
    rest = sum(share for k, share in enumerate(p) if k != top)
    return [_sigmoid(odds) if k == top else share * _sigmoid(-odds) / rest for k, share in enumerate(p)]


FORMULAS = {
    "TemperatureScaling": temperature,
    "Identity": identity,
    "PriorShift": prior_shift,
    "BiasCorrectedTemperatureScaling": bias_corrected,
    "VectorScaling": vector,
    "MatrixScaling": matrix,
    "DirichletCalibration": dirichlet,
    "ClasswiseMCSTemperatureScaling": classwise,
    "EnsembleTemperatureScaling": ensemble,
    "GPCalibration": gaussian_process,
    "PlattScaling": platt,
    "BetaCalibration": beta,
    "TopLabelCalibration": top_label,
}


def _learnt(values: Any) -> Row:
    return [Decimal(float(value)) for value in np.ravel(values)]


def _softmax(scores: Row) -> Row:
    return [score.exp() / sum(other.exp() for other in scores) for score in scores]


def _sigmoid(z: Decimal) -> Decimal:
    return 1 / (1 + (-z).exp())


def _log_odds(z: Row) -> Row:
    """Of each class against all others."""
    return [each - sum(other.exp() for j, other in enumerate(z) if j != k).ln() for k, each in enumerate(z)]


def _one_by_one(fitted: Any, z: Row, odds: Callable[..., Decimal], *learnt: Any) -> Row:
    """The curve of each class over their sum, or the one curve of an event."""
    parts = list(zip(*map(_learnt, learnt), strict=True))
    if fitted.is_event:
        return _softmax([z[0], odds(z[1], *parts[0])])
    curves = [_sigmoid(odds(each, *part)) for each, part in zip(_log_odds(z), parts, strict=True)]
    return [curve / sum(curves) for curve in curves]
