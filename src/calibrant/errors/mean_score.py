"""Mean scores: averages of a score over samples (Brier, log loss, accuracy and their kin)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import kernels
from calibrant.aggregates import Across, mean_of
from calibrant.arrays import Array
from calibrant.binning import STREAM
from calibrant.errors.asking import choices, combine, views
from calibrant.exceptions import CalibrationInputError
from calibrant.lenses import Lens, TopLabel
from calibrant.metric import Metric, Result
from calibrant.predictions import Predictions
from calibrant.selections import Selection, everything
from calibrant.totals import Totals
from calibrant.views import Summary, View

Score = Callable[[View], Array]
MOST = float(2**36)
"""Scores of a larger sum would leave the range of exact totals."""


@dataclass(frozen=True, eq=False)
class Scores(Summary):
    """Summed scores and weights of each question, exact; infinite scores are counted apart."""

    total: Totals
    size: Totals
    infinite: Totals

    def __add__(self, other: Scores) -> Scores:
        if not isinstance(other, Scores):
            return NotImplemented
        return dataclasses.replace(
            self,
            about=self.about + other.about,
            total=self.total + other.total,
            size=self.size + other.size,
            infinite=self.infinite + other.infinite,
        )


@dataclass(frozen=True, repr=False)
class MeanScore(Metric):
    r"""The mean over samples of a score of each answer: :math:`\frac1n \sum_i s(o_i, t_i)`.

    A score maps a `View` to one number per answer, (n, v). One infinite score makes the mean infinite.

    >>> import calibrant as cal
    >>> print(cal.MeanScore(cal.InTopK(2), cal.hit)([2, 1], [[.5, .3, .2], [.6, .3, .1]]))
    MeanScore 0.5000 (n=2, truth in top 2, hit)
    """

    lens: Lens = TopLabel()
    score: Score = dataclasses.field(default_factory=lambda: brier_score)
    select: Selection = everything
    across: Across = mean_of

    def summarise(self, predictions: Predictions) -> Scores:
        """Summed scores of each question."""
        return sum(self.summarise_view(view) for view in views(self, predictions, STREAM))  # type: ignore[return-value]

    def conclude(self, summary: Any) -> Result:
        """Divide, then combine the questions."""
        sizes = summary.size.value
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.where(summary.infinite.hi > 0, np.inf, summary.total.value / sizes)
        named = [] if self.name != "MeanScore" else [getattr(self.score, "__name__", str(self.score)).replace("_", " ")]
        words = ", ".join(word for word in (choices(self, summary.about), *named) if word)
        return combine(self, summary.about, values, sizes, words)

    def summarise_view(self, view: View) -> Scores:
        """Summed scores of what the lens saw."""
        scores = np.asarray(self.score(view), np.float64)
        kept = np.ones(scores.shape, bool) if view.keep is None else view.keep
        finite = np.isfinite(scores)
        if np.isnan(scores[kept]).any():
            raise CalibrationInputError("score", "must be a number for every answer", got="nan")
        weight = np.ones(len(scores)) if view.weight is None else view.weight
        _refuse_too_large(weight, np.where(kept & finite, scores, 0.0))
        counted = {
            "total": (np.where(finite, scores, 0.0), kept & finite),
            "size": (np.ones_like(scores), kept),
            "infinite": (np.ones_like(scores), kept & ~finite),
        }
        sums = {name: _by_question(view, values, mask, weight) for name, (values, mask) in counted.items()}
        return Scores(view.about, **sums)


def brier_score(view: View) -> Array:
    r"""Squared distance to the truth, summed over coordinates: :math:`\sum_j (o_j - t_j)^2`.

    For an event, :math:`(p - y)^2`. Each square is rounded once, to a multiple of 2^-52, and these are added exactly:
    no order of classes changes a bit.

    >>> import calibrant as cal
    >>> round(cal.BRIER([1, 0], [.9, .2]).value, 10), round(cal.BRIER([1], [[.1, .9]]).value, 10)
    (0.025, 0.02)
    """
    return kernels.brier(view.outputs, view.targets)


def log_score(view: View) -> Array:
    r"""Minus the logarithm of the probability given to the truth: :math:`-\sum_j t_j \ln o_j`.

    For an event, :math:`-y \ln p - (1 - y) \ln(1 - p)`. Infinite where the truth was given probability 0. Of logits it
    is :math:`\ln \sum_k e^{z_k} - z_j`, for an event :math:`\ln(1 + e^{\mp z})`: finite where the probability
    would be rounded to 0 or 1.

    >>> import calibrant as cal
    >>> round(cal.LOG_LOSS([0, 1], [[.8, .2], [.4, .6]]).value, 6)
    0.366985
    >>> cal.LOG_LOSS(cal.Predictions.from_logits([0], [[0., 800.]])).value
    800.0
    """
    if view.targets.ndim == 1:
        return 0.0 - view.logs.of_truth(view.targets)
    truth = view.targets if view.d > 1 else np.concatenate([view.targets, 1.0 - view.targets], axis=2)
    return _expected(truth, -view.logs.complete()[1])


def hit(view: View) -> Array:
    """Whether the event came true: 1 or 0 (its share, under soft labels).

    >>> import calibrant as cal
    >>> cal.ACCURACY([0, 1], [[.8, .2], [.7, .3]]).value
    0.5
    """
    view.require_event("hit", "a scalar lens such as TopLabel()")
    return view.truth_rows[:, :, 0]


def output(view: View) -> Array:
    """The forecast of the event itself; its mean is what the model promises.

    >>> import calibrant as cal
    >>> round(cal.MeanScore(cal.Ranked(1), cal.output)([0, 1], [[.8, .2], [.7, .3]]).value, 10)
    0.75
    """
    view.require_event("output", "a scalar lens such as TopLabel()")
    return view.outputs[:, :, 0]


def entropy(view: View) -> Array:
    r"""Entropy of the forecast in nats: :math:`-\sum_j o_j \ln o_j`, with 0 ln 0 = 0.

    >>> import calibrant as cal
    >>> round(cal.MeanScore(cal.Full(), cal.entropy)([0], [[.5, .5]]).value, 6)
    0.693147
    """
    outputs, logs = view.logs.complete()
    return _expected(outputs, -logs)


def _expected(shares: Array, surprises: Array) -> Array:
    """Means of surprises over shares of one; where there is no share, an infinite surprise counts 0."""
    with np.errstate(invalid="ignore"):
        return np.where(shares > 0, shares * surprises, 0.0).sum(axis=2) + 0.0


def _refuse_too_large(weight: Array, scores: Array) -> None:
    with np.errstate(over="ignore"):
        largest = (weight @ np.abs(scores)).max(initial=0.0)
    if not largest < MOST:
        hint = "look for logits that have diverged"
        raise CalibrationInputError("score", "must sum to less than 2^36", got=f"{largest:g}", hint=hint)


def _by_question(view: View, values: Array, mask: Array, weight: Array) -> Totals:
    """Exact sums of (n, v) values by question."""
    question = np.arange(view.v) + (0 if view.group is None else view.group[:, None] * view.v)
    question = np.broadcast_to(question, values.shape)[mask]
    each = Totals.of(values[mask], np.broadcast_to(weight[:, None], values.shape)[mask])
    sums = Totals.zeros(view.questions)
    np.add.at(sums.hi, question, each.hi)
    np.add.at(sums.lo, question, each.lo)
    return Totals.normal(sums.hi, sums.lo)
