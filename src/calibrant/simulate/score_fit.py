"""Score fits: the beta law that scores most likely follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.checks import number
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.simulate.outcomes import outcomes_of
from calibrant.simulate.scores import BetaScores, checked_scores

STEPS = 200
"""Newton steps after which a fit is given up."""


@dataclass(frozen=True)
class ScoreFit:
    """The fitted law, its negative log-likelihood, and how many scores the floor held away from 0 or 1."""

    scores: BetaScores
    nll: float
    n: int
    floored: int
    eps: float

    def __str__(self) -> str:
        held = f", {self.floored:,} held at {self.eps:g} from 0 or 1" if self.floored else ""
        return f"Beta({self.scores.a:.4f}, {self.scores.b:.4f}) of {self.n:,} scores{held}"


def fit_scores(scores: Any, *, eps: float = 1e-16) -> ScoreFit:
    r"""Which beta law do these scores follow? By maximum likelihood.

    .. math:: \min_{a, b} \; -(a - 1) \sum_i \ln s_i - (b - 1) \sum_i \ln(1 - s_i) + n \ln B(a, b)

    `scores` is an array, or `Predictions` (the confidence of the top label, or the forecast of the event). Scores are
    held within [eps, 1 - eps], in float64 within 1.1e-16 of 1: with many scores of exactly 1 that floor largely sets b.
    Newton's method on the two means of logarithms; the problem is convex. At least two different scores are needed.

    References: Roelofs et al. (2022), eq. 8.

    >>> from calibrant.simulate import fit_scores
    >>> fit = fit_scores([.35, .6, .72, .8, .88, .91, .95, .97, .99, .999])
    >>> print(fit, round(fit.nll, 6))
    Beta(2.4471, 0.5449) of 10 scores -8.15849
    """
    number(eps, "eps", "must lie in (0, 0.1]", lambda floor: 0 < floor <= 0.1)
    values = outcomes_of(scores)[0] if hasattr(scores, "probabilities") else checked_scores(scores, "scores")
    held = np.clip(values, eps, 1.0 - eps)
    if held.min() == held.max():
        raise CalibrationInputError(
            "scores", "must differ for a law to be fitted", got=f"{len(held):,} times {values[0]:g}"
        )
    means = np.array([np.log(held).mean(), np.log1p(-held).mean()])
    a, b = _most_likely(means, held)
    nll = -len(held) * _likelihood(np.array([a, b]), means)
    return ScoreFit(BetaScores(a, b), nll, len(held), int((values != held).sum()), float(eps))


def _most_likely(means: Floats, held: Floats) -> tuple[float, float]:
    """Newton's method in (ln a, ln b), halving steps that do not help."""
    from scipy.special import polygamma, psi  # type: ignore[import-untyped]

    shape = _by_moments(held)
    for _ in range(STEPS):
        gradient = shape * (means - psi(shape) + psi(shape.sum()))
        curvature = np.outer(shape, shape) * polygamma(1, shape.sum()) - np.diag(shape**2 * polygamma(1, shape))
        step = -np.linalg.solve(curvature + np.diag(np.minimum(gradient, 0.0)), gradient)
        step *= 2.0 / max(2.0, np.abs(step).max())  # a factor of e^2 at most
        before = _likelihood(shape, means)
        while _likelihood(shape * np.exp(step), means) < before - 1e-12 * abs(before) and np.abs(step).max() > 1e-14:
            step /= 2
        shape = shape * np.exp(step)
        if np.abs(step).max() < 1e-13:
            break
    return float(shape[0]), float(shape[1])


def _likelihood(shape: Floats, means: Floats) -> float:
    """The mean log-likelihood."""
    from scipy.special import betaln

    return float(((shape - 1) * means).sum() - betaln(*shape))


def _by_moments(held: Floats) -> Floats:
    """A start: the law of the same mean and variance."""
    mean, variance = held.mean(), max(held.var(), 1e-12)
    total = max(mean * (1 - mean) / variance - 1, 1e-2)
    return np.array([max(mean * total, 1e-3), max((1 - mean) * total, 1e-3)])
