"""Placement: lessons whose scores are on a device, for methods that learn on the host."""

from __future__ import annotations

import dataclasses

import numpy as np

from calibrant.recalibrate.fitting.lessons import Lesson


def on_host(lesson: Lesson) -> Lesson:
    """The same lesson in arrays of NumPy.

    >>> from calibrant.recalibrate.fitting.lessons import ModelScores
    >>> lesson = Lesson(ModelScores(np.zeros((1, 2)), "logits"), np.zeros(1, np.int64), np.ones(1), (0, 1))
    >>> on_host(lesson) is lesson
    True
    """
    if isinstance(lesson.scores.values, np.ndarray):
        return lesson
    scores = dataclasses.replace(lesson.scores, values=np.asarray(lesson.scores.values))
    return dataclasses.replace(lesson, scores=scores, labels=np.asarray(lesson.labels))
