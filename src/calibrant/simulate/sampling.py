"""Sampling: many draws of one experiment at once, and what follows from sorting them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.binning.running import Ladder
from calibrant.checks import whole
from calibrant.door.class_kinds import Classes, redrawn_labels
from calibrant.door.event_kinds import OneEvent
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import check_seed
from calibrant.kernels.caching import cached_property
from calibrant.kernels.precision import DOUBLE
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions
from calibrant.simulate.calibration_curves import as_curve
from calibrant.simulate.classes import SoftmaxScores, true_rows
from calibrant.simulate.scores import Scores

Law = Scores | SoftmaxScores


@dataclass(frozen=True, eq=False)
class Samples:
    """Replicates of one experiment: forecasts (count, n) of an event, or (count, n, classes), and what came true."""

    values: Floats
    labels: Ints

    @property
    def events(self) -> bool:
        """Whether the forecasts are about one event."""
        return self.values.ndim == 2

    def __iter__(self) -> Iterator[Predictions]:
        """Each replicate as predictions; what was drawn here needs no check."""
        classes = () if self.events else tuple(map(str, range(self.values.shape[2])))
        for values, labels in zip(self.values, self.labels, strict=True):
            yield Predictions(Classes(values) if classes else OneEvent(values), labels, None, classes)

    @cached_property
    def ladder(self) -> Ladder:
        """The replicates in order of forecast."""
        return Ladder.of_replicates(self.values, self.labels, DOUBLE)


def sampled(scores: Law, curve: Any, n: int, rng: np.random.Generator, count: int) -> Samples:
    """So many replicates of n samples: forecasts from their law, outcomes from the curve.

    >>> from calibrant.simulate import UNIFORM, power_curve
    >>> sampled(UNIFORM, power_curve(2), 5, np.random.default_rng(0), 3).values.shape
    (3, 5)
    """
    values = scores.draw(rng, (count, n))
    if isinstance(scores, SoftmaxScores):
        labels = redrawn_labels(true_rows(curve, values).reshape(count * n, -1), rng).reshape(count, n)
    else:
        labels = redrawn_labels(as_curve(curve).at(values, 1.0 - values).ravel(), rng).reshape(count, n)
    return Samples(values, labels)


def draw(scores: Law, curve: Any, n: int, seed: int = 0) -> Predictions:
    """Predictions of a model that is known: n samples.

    >>> from calibrant.simulate import UNIFORM, SoftmaxScores, Tempered, draw, power_curve
    >>> draw(UNIFORM, power_curve(2), n=100), draw(SoftmaxScores(3), Tempered(2), n=100)
    (Predictions(n=100, one event, probabilities), Predictions(n=100, 3 classes, probabilities))
    """
    whole(n, "n", 1)
    check_seed(seed)
    check_law(scores)
    return next(iter(sampled(scores, curve, n, np.random.default_rng(np.random.SeedSequence(seed)), 1)))


def check_law(scores: Any) -> None:
    """Refuse what is no law of forecasts."""
    if not isinstance(scores, Law):
        raise CalibrationInputError(
            "scores",
            "must be BetaScores, EmpiricalScores or SoftmaxScores",
            got=type(scores).__name__,
            hint="EmpiricalScores(values) draws from scores that were seen",
        )
