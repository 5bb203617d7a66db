"""Cross-fitting: recalibrated forecasts of every row, each from a map that never saw it."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Unpack

import numpy as np

from calibrant.checks import whole
from calibrant.door.arrays import Array, as_array
from calibrant.door.options import LabelOptions, refuse_unknown
from calibrant.exceptions import CalibrationInputError, CalibrationWarning
from calibrant.inference.draws import check_seed
from calibrant.kernels.progress import shown
from calibrant.kernels.totals import Ints
from calibrant.predictions import Predictions
from calibrant.recalibrate.fitting.lessons import Lesson, as_lesson
from calibrant.recalibrate.label_wise import strata
from calibrant.recalibrate.recalibrator import Recalibrator


def cross_fit(
    method: Recalibrator,
    X: Any,  # noqa: N803
    y: Any = None,
    *,
    folds: int = 5,
    seed: int = 0,
    groups: Any = None,
    sample_weight: Any = None,
    **options: Unpack[LabelOptions],
) -> Predictions:
    """What does this method do on rows it was not fitted on? Predictions of every row, for an honest before and after.

    Rows are dealt into folds class by class (of independent labels by the rarest that is true), or, with `groups`,
    whole groups at a time (several rows of one patient); each fold is mapped by the method fitted on all others.
    Options are as in `Predictions.from_probs`. `Predictions` may stand for scores and labels; their weights and columns
    are kept.

    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=1000)
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-z))
    >>> mapped = cal.cross_fit(cal.TemperatureScaling(), 3 * z, y)
    >>> round(cal.LOG_LOSS(cal.Predictions.from_logits(y, 3 * z)).value, 3), round(cal.LOG_LOSS(mapped).value, 3)
    (0.848, 0.627)
    """
    refuse_unknown(options, cross_fit)
    options.setdefault("classes", method.classes)
    lesson = as_lesson(X, y, input=method.input, sample_weight=sample_weight, **options)
    values, input = np.empty(lesson.scores.values.shape), ""
    dealt = fold_of(lesson, folds, seed, groups)
    endings = []
    for fold in shown(range(folds), folds, f"cross-fitting {type(method).__name__}"):
        held_out = dealt == fold
        if held_out.any():
            fitted, rest = method.copy(), lesson[~held_out]
            if not rest.weight.sum() > 0:
                raise CalibrationInputError("sample_weight", "must leave every fold something to learn from", got="0")
            endings.append(fitted.fit_lesson(rest))
            part = fitted.map_scores(lesson.scores[held_out])
            values[held_out], input = part.values, part.input
    doubtful = [ending for ending in endings if not ending.converged or ending.at_bound]
    if doubtful:
        message = f"{type(method).__name__}: in {len(doubtful)} of {len(endings)} folds, {doubtful[0].message}"
        warnings.warn(message, CalibrationWarning, stacklevel=2)
    scores = dataclasses.replace(lesson.scores, values=values, input=input)
    if isinstance(X, Predictions):
        return scores.instead(X)
    weight = None if sample_weight is None else lesson.weight
    mapped = scores.predictions(lesson.labels)
    flags = {} if lesson.truth is None else lesson.truth.told
    return dataclasses.replace(mapped, classes=tuple(map(str, lesson.classes)), weight=weight, flags=flags)


def fold_of(lesson: Lesson, folds: int, seed: int, groups: Any = None) -> Ints:
    """The fold of each row: 0, 1, ..., each class (or kind of row, or all groups) dealt out in a random order.

    >>> fold_of(as_lesson([0., 1., 2., 3.], [0, 1, 0, 1], input="logits"), 2, seed=0).tolist()
    [0, 0, 1, 1]
    """
    check_seed(seed)
    kinds = strata(lesson.labels) if lesson.scores.independent else lesson.labels
    members = np.arange(len(kinds))
    if groups is not None:
        members = _members(groups, None if lesson.truth is None else lesson.truth.kept, len(members))
        kinds = np.zeros(members.max() + 1, np.int64)
    count = len(np.unique(members))
    whole(folds, "folds", 2)
    if folds > count:
        of = "rows" if groups is None else "groups"
        hint = f"use fewer folds, or collect more {of}"
        raise CalibrationInputError("folds", f"must be at most the number of {of}, {count}", got=folds, hint=hint)
    order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7,))).permutation(len(kinds))
    order = order[np.argsort(kinds[order], kind="stable")]
    dealt = np.empty(len(kinds), np.int64)
    dealt[order] = np.arange(len(kinds)) % folds
    return dealt[members]


def _members(groups: Any, kept: Array | None, n: int) -> Array:
    """The number of each row's group; rows that were left out may have one too."""
    column, _ = as_array(groups, "groups")
    column = column[kept] if kept is not None and column.shape == kept.shape else column
    if column.shape != (n,):
        raise CalibrationInputError("groups", f"must have one value per row ({n})", got=f"shape {column.shape}")
    return np.unique(column, return_inverse=True)[1].reshape(-1)
