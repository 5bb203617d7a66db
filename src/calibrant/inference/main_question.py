"""The main question: what a test of calibration looks at. Forecasts in order, outcomes, weights and groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import clusters
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses.events import TopLabel
from calibrant.predictions import Predictions, require_predictions

MOST_DRAWN = 4_000_000
"""Labels that are redrawn at once."""


@dataclass(frozen=True, eq=False)
class MainQuestion:
    """The answers to the main question, in order of forecast: the event, or whether the likeliest class is right.

    Independent labels are pooled: each is an answer of its own.

    >>> answers = MainQuestion.of(Predictions.from_probs([1, 0, 1], [.9, .2, .6]))
    >>> answers.forecasts.tolist(), answers.residuals.round(1).tolist()
    ([0.2, 0.6, 0.9], [-0.2, 0.4, 0.1])
    """

    question: str
    forecasts: Floats
    outcomes: Floats
    weight: Floats
    rows: Ints
    """The row of the predictions that each answer is about."""
    cluster: Ints | None = None
    """The group of each answer; answers of different groups are independent. None: all are."""
    label: Ints | None = None
    """The label that each answer is about, where a row has several. None: it has one."""

    @classmethod
    def of(cls, predictions: Predictions, groups: str | None = None) -> MainQuestion:
        """The question asked of predictions with hard labels; rows of weight 0 are left out."""
        require_predictions(predictions)
        if predictions.soft is not None:
            raise CalibrationInputError("test", "needs hard labels", got="soft labels")
        view = TopLabel()(predictions)
        weight = np.ones(len(predictions)) if view.weight is None else view.weight
        cluster = clusters(predictions, groups)
        order = np.repeat(np.arange(len(predictions))[weight > 0], view.v)
        if not len(order):
            raise CalibrationInputError("test", "needs at least one row", got="none")
        truth, outputs = view.truth_rows[weight > 0].ravel(), view.outputs[weight > 0].ravel().astype(np.float64)
        groups_of = np.zeros(len(order)) if cluster is None else cluster[order]
        label = np.arange(len(order)) % view.v
        place = np.lexsort((truth, label, groups_of, weight[order], outputs))
        rows = order[place]
        return cls(
            view.about.question,
            np.clip(outputs[place], 0.0, 1.0),
            truth[place],
            weight[rows],
            rows,
            None if cluster is None else np.unique(cluster[rows], return_inverse=True)[1],
            label[place] if view.v > 1 else None,
        )

    def __len__(self) -> int:
        return len(self.forecasts)

    @property
    def residuals(self) -> Floats:
        """Outcome less forecast, times weight."""
        return self.weight * (self.outcomes - self.forecasts)

    def redrawn(self, rng: np.random.Generator, count: int) -> Floats:
        """Residuals (count, answers) of labels that happen as often as they are forecast."""
        return self.weight * ((rng.random((count, len(self))) < self.forecasts) - self.forecasts)

    @property
    def variances(self) -> Floats:
        """The variance of each residual under calibration."""
        return self.weight**2 * self.forecasts * (1.0 - self.forecasts)

    @property
    def impossible(self) -> bool:
        """Whether something happened that had been given no chance."""
        return bool((self.residuals[self.variances == 0] != 0).any())

    @property
    def log_odds(self) -> Floats:
        """The logit of each forecast; 0 of forecasts of 0 and 1, which vary no score."""
        unsure = (self.forecasts > 0) & (self.forecasts < 1)
        inside = np.where(unsure, self.forecasts, 0.5)
        return np.log(inside) - np.log1p(-inside)

    @property
    def ends(self) -> Ints:
        """The last answer of each distinct forecast."""
        return np.flatnonzero(np.append(np.diff(self.forecasts) > 0, True))

    def cut(self, masses: Floats, count: int) -> Ints:
        """At most so many runs of answers of about equal mass, tied forecasts together: the last answer of each.

        >>> answers = MainQuestion.of(Predictions.from_probs([1, 0, 1, 0], [.9, .2, .6, .6]))
        >>> answers.cut(answers.weight, 2).tolist()
        [0, 3]
        """
        reached = np.cumsum(masses)[self.ends]
        middles = reached - np.diff(reached, prepend=0.0) / 2
        runs = np.floor(middles * count / (reached[-1] or 1.0))
        return self.ends[np.append(np.diff(runs) > 0, True)]
