"""Label scores: a shift or a slope of each of several independent labels, which pooled labels may hide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.inference.calibration_tests import whitening
from calibrant.inference.main_question import MainQuestion
from calibrant.kernels.totals import Floats, Ints
from calibrant.selections import Mask


@dataclass(frozen=True, eq=False)
class LabelScores:
    r"""Cox's scores of each label, uncorrelated and of variance 1 where labels follow their forecasts.

    Of label l they are :math:`V_l^{-1/2} U_l`, with the :math:`U_l` and :math:`V_l` of `cox_test` over its answers
    alone, and `statistic` is the sum of their squares over all labels.

    >>> import calibrant as cal
    >>> predictions = cal.Predictions.from_multilabel([[1, 0], [1, 0]], [[.5, .5], [.5, .5]])
    >>> scores = LabelScores.of(MainQuestion.of(predictions))
    >>> scores.statistic(scores.observed).round(9).tolist()  # 1 / (.25 + .25) of each label; pooled they would cancel
    [4.0]
    """

    answers: MainQuestion
    labels: tuple[Ints, ...]
    """The answers about each label."""
    features: tuple[Floats, ...]
    """What turns the residuals of each label into its scores."""

    @classmethod
    def of(cls, answers: MainQuestion) -> LabelScores | None:
        """Of answers about several labels; None of others."""
        if answers.label is None:
            return None
        labels = tuple(np.flatnonzero(answers.label == label) for label in np.unique(answers.label))
        lines = np.column_stack([np.ones(len(answers)), answers.log_odds])
        heavy = lines * answers.variances[:, None]
        return cls(answers, labels, tuple(lines[own] @ whitening(heavy[own].T @ lines[own]) for own in labels))

    @property
    def observed(self) -> Floats:
        """The scores (1, m) that were seen."""
        return self.of_residuals(self.answers.residuals[None])

    def of_residuals(self, residuals: Floats) -> Floats:
        """The scores (r, m) of residuals (r, n)."""
        every = zip(self.labels, self.features, strict=True)
        return np.concatenate([residuals[:, own] @ features for own, features in every], axis=1)

    def redrawn(self, hits: Mask, rng: np.random.Generator) -> Floats:
        """The scores (r, m) where labels came true as `hits` (r, n) say."""
        return self.of_residuals(self.answers.weight * (hits - self.answers.forecasts))

    def flipped(self, cluster: Ints, signs: Floats) -> Floats:
        """The scores (r, m) with the signs (r, groups) of whole groups changed."""
        return self.of_residuals(self.answers.residuals * signs[:, cluster])

    def statistic(self, scores: Floats) -> Floats:
        """The sum of squares (r,) of scores (r, m): the larger, the more speaks against calibration."""
        return np.square(scores).sum(axis=1)
