"""Outcomes: predictions as scores of one event and whether it came true."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses.events import TopLabel
from calibrant.predictions import Predictions
from calibrant.simulate.scores import checked_scores


def outcomes_of(predictions: Predictions) -> tuple[Floats, Ints]:
    """The confidence of the top label and whether it was right; or the event's forecast and whether it happened.

    >>> import calibrant as cal
    >>> scores, hits = outcomes_of(cal.Predictions.from_probs([0, 1], [[.9, .1], [.8, .2]]))
    >>> scores.tolist(), hits.tolist()
    ([0.9, 0.8], [1, 0])
    """
    if predictions.weight is not None:
        raise CalibrationInputError("predictions", "must count every row once to be simulated", got="weights")
    if not len(predictions):
        raise CalibrationInputError("predictions", "must not be empty", got="no rows")
    predictions.hard_labels("simulation")
    view = TopLabel()(predictions)
    return view.outputs[:, 0, 0].astype(np.float64), (view.targets == 0).astype(np.int64)


def scores_and_hits(scores: Any, hits: Any) -> tuple[Floats, Ints]:
    """Scores and outcomes, from arrays or, without the second, from `Predictions`."""
    if isinstance(scores, Predictions):
        if hits is not None:
            raise CalibrationInputError("hits", "must be left out", got="outcomes beside Predictions")
        return outcomes_of(scores)
    if hits is None:
        raise CalibrationInputError("hits", "are required", got="None", hint="pass scores and hits, or Predictions")
    return outcomes_of(Predictions.from_confidence(hits, checked_scores(scores, "scores"), copy=False))
