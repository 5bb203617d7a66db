"""Given predictions: what a network that was trained elsewhere answered, read from files as the outcome of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.dataset import held_out
from calibrant.experiments.training.trial_outcomes import Answers, Outcome
from calibrant.experiments.training.trials import Trial
from calibrant.files.reading import read
from calibrant.predictions import Predictions

SMALLEST = float(np.finfo(np.float32).tiny)
"""What a probability of 0 counts as: a logit must be finite."""


def given_outcome(trial: Trial, root: str | Path | None) -> Outcome:
    """The outcome of a trial that names files of predictions; relative paths start from the folder `root`.

    Probabilities are kept as their logarithms. Where no validation file is named, a share of the test rows of each
    class is held out.

    >>> from calibrant.files.reading import SHIPPED
    >>> files = {part: {"file": f"fashion_mnist_{part}.npz"} for part in ("validation", "test")}
    >>> trial = Trial({}, {"name": "mlp", "predictions": files}, {}, {"kind": "none", "strength": 0.0}, seed=0)
    >>> outcome = given_outcome(trial, SHIPPED)
    >>> len(outcome.validation.labels), len(outcome.test.labels), outcome.classes[:2]
    (5000, 10000, ('T-shirt/top', 'Trouser'))
    """
    asked: Mapping[str, Any] = trial.model["predictions"]
    folder = Path() if root is None else Path(root)
    test, classes = _read(asked["test"], folder)
    if "validation" in asked:
        validation, others = _read(asked["validation"], folder)
        if others != classes:
            got = f"{len(others)} classes" if len(others) != len(classes) else "other names"
            path = str(folder / asked["validation"]["file"])
            raise CalibrationInputError(path, f"must have the {len(classes)} classes of the test file", got=got)
    else:
        out, stay = held_out(test.labels, asked["share"], seed=asked["seed"], stage=0)
        validation, test = (Answers(test.logits[rows], test.labels[rows]) for rows in (out, stay))
    return Outcome(trial.to_json(), validation, test, classes, about={"seconds": 0.0})


def require_files(trial: Trial, root: str | Path | None) -> None:
    """Refuse a trial whose files of predictions are not there.

    >>> files = {"test": {"file": "nowhere.npz"}}
    >>> trial = Trial({}, {"name": "mlp", "predictions": files}, {}, {"kind": "none", "strength": 0.0}, seed=0)
    >>> require_files(trial, None)
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: nowhere.npz: must be a file of predictions, got nothing there; \
relative paths start from --data
    """
    asked: Mapping[str, Any] = trial.model["predictions"]
    for part in ("validation", "test"):
        path = (Path() if root is None else Path(root)) / asked[part]["file"] if part in asked else None
        if path is not None and not path.is_file():
            hint = "relative paths start from --data"
            raise CalibrationInputError(str(path), "must be a file of predictions", got="nothing there", hint=hint)


def _read(asked: Mapping[str, Any], folder: Path) -> tuple[Answers, tuple[str, ...]]:
    """The answers in a file, and the names of their classes."""
    path = folder / asked["file"]
    predictions = read(path, **{name: value for name, value in asked.items() if name != "file"})
    if predictions.weight is not None or predictions.soft is not None:
        raise CalibrationInputError(str(path), "must have one class a row, all of which count equally", got="others")
    logits = _logits(predictions)
    names = predictions.classes or tuple(map(str, range(logits.shape[1])))
    return Answers(logits.astype(np.float32), predictions.hard_labels(str(path))), tuple(map(str, names))


def _logits(predictions: Predictions) -> Array:
    """Logits (n, K); an event has two classes."""
    values = predictions.values if predictions.logits else np.log(np.maximum(predictions.probabilities, SMALLEST))
    if values.ndim == 2:
        return np.asarray(values)
    if predictions.logits:
        return np.column_stack([np.zeros(len(values)), values])
    return np.log(np.maximum(np.column_stack([1 - np.exp(values), np.exp(values)]), SMALLEST))
