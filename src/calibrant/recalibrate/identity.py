"""The identity: the map that changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores
from calibrant.recalibrate.recalibrator import Recalibrator


@dataclass(eq=False)
class Identity(Recalibrator):
    """Leave the forecasts as they are: what `choose` takes where nothing has to be recalibrated.

    It learns nothing, and travels like every other map, so that a model can be served the same way with or without
    recalibration.

    >>> Identity("probabilities").fit([.1, .3, .6], [0, 1, 1]).predict_proba([.2, .5]).tolist()
    [0.2, 0.5]
    """

    input: str = "logits"
    classes: Sequence[Any] | None = None
    short: ClassVar[str] = "identity"
    learns: ClassVar[tuple[str, ...]] = ()

    def _learn(self, lesson: Lesson) -> Ending:
        return Ending()

    def _map(self, scores: ModelScores) -> Floats:
        return scores.probabilities.copy()

    def _logits(self, scores: ModelScores) -> Floats | None:
        return scores.values.astype(np.float64) if scores.input == "logits" else None

    @property
    def affine(self) -> tuple[Floats, Floats]:
        """W and b."""
        return np.eye(len(self.classes_)), np.zeros(len(self.classes_))
