"""Gaussian-process classification of one event by Laplace's approximation, with all rows and no inducing points."""

import math
from collections.abc import Callable, Sequence

import numpy as np

Covariance = Callable[[float, float], float]
Prior = Callable[[float], float]


def smooth(lengthscale: float, output_scale: float) -> Covariance:
    """The squared exponential covariance of two places, Rasmussen & Williams (2006), eq. 4.9."""
    return lambda a, b: output_scale**2 * math.exp(-((a - b) ** 2) / (2 * lengthscale**2))


def mode(
    places: Sequence[float],
    labels: Sequence[int],
    covariance: Covariance,
    noise: float,
    prior: Prior,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The likeliest latent values, the gradient and the curvature there, Rasmussen & Williams (2006), algorithm 3.1.

    The prior mean is a function of the place, 0 in the book; the latent of each row has noise of its own.
    """
    gram = np.array([[covariance(a, b) for b in places] for a in places]) + noise**2 * np.eye(len(places))
    means = np.array([prior(place) for place in places])
    happened = np.array(labels, float)
    latent = means.copy()
    for _ in range(200):
        p = 1 / (1 + np.exp(-latent))
        curvature = p * (1 - p)
        root = np.sqrt(curvature)
        within = np.eye(len(places)) + root[:, None] * gram * root
        wanted = curvature * (latent - means) + happened - p
        pull = wanted - root * np.linalg.solve(within, root * (gram @ wanted))
        moved = means + gram @ pull
        if np.abs(moved - latent).max() < 1e-12:
            break
        latent = moved
    p = 1 / (1 + np.exp(-moved))
    return moved, happened - p, p * (1 - p)


def latent_at(
    place: float,
    places: Sequence[float],
    gradient: np.ndarray,
    curvature: np.ndarray,
    covariance: Covariance,
    noise: float,
    prior: Prior,
) -> tuple[float, float]:
    """Mean and variance of the latent at a new place, Rasmussen & Williams (2006), eqs. 3.21 and 3.24."""
    across = np.array([covariance(place, other) for other in places])
    gram = np.array([[covariance(a, b) for b in places] for a in places]) + noise**2 * np.eye(len(places))
    taken = across @ np.linalg.solve(gram + np.diag(1 / curvature), across)
    return prior(place) + float(across @ gradient), covariance(place, place) - float(taken)


def averaged(mean: float, variance: float) -> float:
    """The mean of the sigmoid of a normal latent, by a fine sum over it, Rasmussen & Williams (2006), eq. 3.25."""
    steps = np.linspace(-8, 8, 4001)
    weight = np.exp(-(steps**2) / 2)
    return float((weight / (1 + np.exp(-mean - math.sqrt(variance) * steps))).sum() / weight.sum())
