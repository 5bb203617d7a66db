"""Class totals: how often each class came true, less how often it was forecast; observed and with labels redrawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.inference.calibration_tests import whitening
from calibrant.inference.main_question import MainQuestion
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions
from calibrant.selections import Mask


@dataclass(frozen=True, eq=False)
class ClassTotals:
    r"""The weighted numbers of each class less their expectations, in the rows of a main question.

    Where the labels follow the forecasts, the differences have the covariance
    :math:`\sum_i w_i^2 (\mathrm{diag}(p_i) - p_i p_i^\top)`, and `statistic` is their quadratic form in its inverse.

    >>> predictions = Predictions.from_probs([0, 1, 1], [[.8, .2], [.5, .5], [.7, .3]])
    >>> totals = ClassTotals.of(predictions, MainQuestion.of(predictions))
    >>> totals.observed.round(2).tolist(), totals.statistic(totals.observed).round(3).tolist()  # 1 / (.16 + .25 + .21)
    ([[-1.0, 1.0]], [1.613])
    """

    chances: Floats
    """The probability (n, K) of each class."""
    labels: Ints
    weight: Floats
    top: Ints
    running: Floats
    """Row number plus running probability of the classes but the likeliest, given that it is wrong: sorted (n K,)."""
    white: Floats
    """What turns differences into uncorrelated ones of variance 1."""

    @classmethod
    def of(cls, predictions: Predictions, answers: MainQuestion) -> ClassTotals | None:
        """Of forecasts that say the probability of every class; None of others."""
        forecasts = predictions.forecasts
        if forecasts.n_classes < 2 or forecasts.ranks < forecasts.n_classes:
            return None
        chances = np.asarray(forecasts.probabilities, np.float64)[answers.rows]
        chances /= chances.sum(axis=1, keepdims=True)
        top, every = forecasts.leaders(1)[answers.rows, 0], np.arange(len(answers))
        others = chances.copy()
        others[every, top] = 0.0
        running = np.cumsum(others, axis=1)
        running /= np.maximum(running[:, -1:], 1e-300)
        heavy = answers.weight[:, None] ** 2 * chances
        covariance = np.diag(heavy.sum(axis=0)) - heavy.T @ chances
        labels = predictions.hard_labels("test")[answers.rows]
        return cls(chances, labels, answers.weight, top, (running + every[:, None]).ravel(), whitening(covariance))

    @property
    def observed(self) -> Floats:
        """The differences (1, K) that were seen."""
        return self.differences(self.labels[None])

    def differences(self, labels: Ints) -> Floats:
        """Numbers of each class less their expectations (r, K), of labels (r, n)."""
        count, width = len(labels), self.chances.shape[1]
        cells = (labels + width * np.arange(count)[:, None]).ravel()
        weights = np.broadcast_to(self.weight, labels.shape).ravel()
        totals = np.bincount(cells, weights, count * width).reshape(count, width)
        return totals - self.weight @ self.chances

    def redrawn(self, hits: Mask, rng: np.random.Generator) -> Floats:
        """The differences (r, K) where the likeliest class came true as `hits` (r, n) say, and else another."""
        labels = np.repeat(self.top[None], len(hits), axis=0)
        missed = np.nonzero(~hits)
        place = np.searchsorted(self.running, missed[1] + rng.random(len(missed[1])), side="right")
        labels[missed] = np.minimum(place - self.chances.shape[1] * missed[1], self.chances.shape[1] - 1)
        return self.differences(labels)

    def flipped(self, cluster: Ints, signs: Floats) -> Floats:
        """The differences (r, K) with the signs (r, groups) of whole groups changed."""
        off = -self.weight[:, None] * self.chances
        off[np.arange(len(off)), self.labels] += self.weight
        groups = np.zeros((signs.shape[1], off.shape[1]))
        np.add.at(groups, cluster, off)
        return signs @ groups

    def statistic(self, differences: Floats) -> Floats:
        """The quadratic form (r,) of differences (r, K): the larger, the more speaks against calibration."""
        return np.square(differences @ self.white).sum(axis=1)
