"""The study: what is computed once of a set of predictions, and how much of it can be afforded."""

from __future__ import annotations

import dataclasses
import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from calibrant.exceptions import CalibrationInputError, CalibrationWarning
from calibrant.inference.bootstrap import Bootstrap
from calibrant.inference.consistency import Null, consistency
from calibrant.metric import Metric, Result
from calibrant.predictions import Predictions
from calibrant.recalibrate.choice import Choice, choose
from calibrant.recalibrate.methods import spelled
from calibrant.recipes import ECE, MCS

T = TypeVar("T")

_EVENT, _CLASSES, _REPAIR = 2e6, 5e6, 2e6
"""Forecasts that may be gone through: resamples of one event, of all classes; rows times classes of a recalibration."""
LEAST, MOST = 20, 200
"""Fewer resamples tell nothing, more are not needed."""


@dataclass(frozen=True, eq=False)
class Study:
    """Predictions under study: the event that the main question is about, resamples that fit their size, results.

    >>> import calibrant as cal
    >>> study = Study(cal.Predictions.from_probs([0, 1, 1], [[.9, .1], [.2, .8], [.6, .4]]), "model")
    >>> len(study.event), study.event.kind, study.resamples
    (3, 'confidence', 200)
    """

    predictions: Predictions
    name: str
    seed: int = 0

    @cached_property
    def event(self) -> Predictions:
        """The event of the main question: that the likeliest class is right, or the one that is forecast."""
        given = self.predictions
        if given.kind != "classes":
            return given
        predicted = given.predicted
        hits = (
            (predicted == given.labels).astype(np.int64)
            if given.soft is None
            else given.soft[np.arange(len(given)), predicted]
        )
        made = Predictions.from_confidence(hits, given.confidence, sample_weight=given.weight)
        return dataclasses.replace(made, columns=given.columns, notes=given.notes)

    @property
    def width(self) -> int:
        """Forecasts a row."""
        return max(1, self.predictions.n_classes)

    @property
    def resamples(self) -> int:
        """Resamples of the main event: fewer for more rows."""
        return int(np.clip(_EVENT / len(self.predictions), LEAST, MOST))

    @property
    def wide_resamples(self) -> int:
        """Resamples of questions about all classes; 0 where too few could be afforded to tell anything."""
        wanted = int(min(_CLASSES / (len(self.predictions) * self.width), MOST))
        return wanted if wanted >= LEAST else 0

    def measured(self, metric: Metric, *, about_event: bool, share: int = 1, null: bool = True) -> Result | None:
        """A metric with interval and noise floor, as far as they exist and can be afforded; None if it cannot be."""
        rows = self.event if about_event else self.predictions
        resamples = (self.resamples if about_event else self.wide_resamples) // share
        result = tried(lambda: metric(rows))
        if result is None or resamples < 10:
            return result
        with_interval = tried(lambda: metric(rows, interval=Bootstrap(resamples, seed=self.seed)))
        result = with_interval or result
        if not null or rows.soft is not None:
            return result
        noise = tried(lambda: consistency(metric, rows, n=resamples, seed=self.seed, result=result))
        return result if noise is None else noise.annotated()

    @cached_property
    def ece(self) -> Result:
        """ECE of the main event, with interval and noise floor."""
        found = self.measured(ECE, about_event=True)
        assert found is not None
        return found

    @cached_property
    def mcs(self) -> Result:
        """Mean forecast less frequency, with interval and noise floor."""
        found = self.measured(MCS, about_event=True)
        assert found is not None
        return found

    @cached_property
    def null(self) -> Null | None:
        """The distribution of ECE if the forecasts were calibrated; None under soft labels."""
        if self.event.soft is not None:
            return None
        return consistency(ECE, self.event, n=self.resamples, seed=self.seed)

    @cached_property
    def repaired_rows(self) -> Predictions:
        """The rows that recalibration is tried on: all, or a random part that can be afforded."""
        given = self.predictions
        most = max(200, int(_REPAIR / self.width))
        if len(given) <= most:
            return given
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(8,)))
        return given[np.sort(rng.choice(len(given), most, replace=False))]

    @cached_property
    def choice(self) -> Choice | None:
        """Recalibration methods compared on rows they were not fitted on; None where that cannot be."""
        if self.predictions.soft is not None or len(self.predictions) < 20:
            return None
        names = ["temperature", "vector" if self.predictions.kind == "classes" else "platt", "isotonic"]
        names = names if self.width <= 100 else names[:1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            methods = {name: spelled(name) for name in names}
            resamples = int(np.clip(self.wide_resamples, LEAST, 100))
            return tried(lambda: choose(self.repaired_rows, methods, resamples=resamples, seed=self.seed))

    @cached_property
    def digest(self) -> str:
        """A hash of forecasts and labels: the same data give the same."""
        given = self.predictions
        truth = given.labels if given.soft is None else given.soft
        made = hashlib.sha256(np.ascontiguousarray(given.values).data)
        made.update(np.ascontiguousarray(truth).data)
        return made.hexdigest()


def tried(make: Callable[[], T]) -> T | None:
    """What can be made; None where the data do not allow it."""
    try:
        return make()
    except CalibrationInputError:
        return None
