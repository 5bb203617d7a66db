"""Trials: one network, trained one way, from one seed; what it is says everything about what comes of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError, printable
from calibrant.kernels.caching import cached_property
from calibrant.specification import strict_json

FORMAT = 1
"""The version of what a description means; it is part of every trial's identity."""
BASE = "none"
"""The intervention that every other is held against."""
ENSEMBLE = "ensemble"
"""What the seeds of a base are together."""
SIZES = ("width", "depth")
"""What may be chosen of networks that come in several sizes."""
WEIGHTS, ORDER, BLENDS, PICTURES, MODULES = range(5)
"""Streams of randomness: initial weights, the order of rows, mix-up, augmentation, and what modules draw (drop-out)."""


@dataclass(frozen=True)
class Trial:
    """One training run: data, model, training, intervention with its strength, seed.

    The parts are plain values, as JSON has them. The folder that data lie in and the device are not part of a trial.

    >>> trial = Trial({"name": "digits"}, {"name": "mlp"}, {"epochs": 2}, {"kind": "none", "strength": 0.0}, seed=3)
    >>> trial.id == Trial.from_json(trial.to_json()).id, len(trial.id)
    (True, 16)
    >>> trial.label
    'mlp, none, seed 3'
    """

    data: Mapping[str, Any]
    model: Mapping[str, Any]
    training: Mapping[str, Any]
    intervention: Mapping[str, Any]
    seed: int
    over_training: Mapping[str, Any] | None = None
    """What is measured after epochs: metrics as the command spells them, how often, on how many training rows, and
    whether the logits are kept."""
    logits: str = "float32"
    format: int = FORMAT

    def to_json(self) -> str:
        """The description in its one form: sorted keys, no blanks, numbers as floats where they may be."""
        return json.dumps(_canonical(vars_of(self)), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Trial:
        """A trial from its description."""
        try:
            trial = cls(**strict_json.read(text))
            if trial.format != FORMAT:
                raise ValueError(f"format {trial.format}")
            trial.label  # noqa: B018 - a description without a model or a strength fails here
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as reason:
            raise CalibrationInputError("trial", "must be the description of a trial", got=str(reason)) from None
        return trial

    @cached_property
    def id(self) -> str:
        """A name that only this trial has: the start of the SHA-256 of its description."""
        return self._digest[:16]

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def strength(self) -> float:
        """The strength of the intervention."""
        return float(self.intervention["strength"])

    @property
    def intervention_name(self) -> str:
        """What the study calls the intervention."""
        return str(self.intervention.get("name") or self.intervention["kind"])

    @property
    def model_name(self) -> str:
        """What the study calls the model."""
        return title_of(self.model)

    @property
    def predictions(self) -> Mapping[str, Any] | None:
        """The files of predictions that stand in the place of a training, where there are some."""
        return self.model.get("predictions")

    @property
    def label(self) -> str:
        """The trial in a few words."""
        strong = "" if self.intervention["kind"] == BASE else f" {self.strength:g}"
        return printable(f"{self.model_name}, {self.intervention_name}{strong}, seed {self.seed}")

    def randomness(self, stream: int, epoch: int = 0) -> np.random.SeedSequence:
        """The source of one stream in one epoch: a function of the trial alone, so that nothing has to be carried over.

        >>> trial = Trial({}, {"name": "mlp"}, {}, {"kind": "none", "strength": 0.0}, seed=3)
        >>> int(trial.randomness(ORDER, 1).generate_state(1)[0]) == int(trial.randomness(ORDER, 1).generate_state(1)[0])
        True
        """
        identity = (int(self._digest[start : start + 8], 16) for start in range(0, 32, 8))
        return np.random.SeedSequence(self.seed, spawn_key=(*identity, stream, epoch))

    def seed_of(self, stream: int, epoch: int = 0) -> int:
        """The stream as one number below 2^63, for generators that are seeded so."""
        return int(self.randomness(stream, epoch).generate_state(1, np.uint64)[0] >> np.uint64(1))


def title_of(model: Mapping[str, Any]) -> str:
    """What a study calls a network: its label, or else its name and the sizes that were chosen.

    >>> title_of({"name": "resnet", "depth": 20}), title_of({"name": "cnn", "label": "small", "width": 8})
    ('resnet depth 20', 'small')
    """
    sizes = [f"{size} {model[size]}" for size in SIZES if model.get(size) is not None]
    return str(model.get("label") or " ".join([model["name"], *sizes]))


def vars_of(trial: Trial) -> dict[str, Any]:
    """The parts of a trial, by name.

    >>> sorted(vars_of(Trial({}, {}, {}, {}, 0)))[:3]
    ['data', 'format', 'intervention']
    """
    return {name: getattr(trial, name) for name in Trial.__dataclass_fields__}


def write_trials(trials: Iterable[Trial]) -> str:
    """Trials as lines of JSON.

    >>> write_trials([])
    ''
    """
    return "".join(f"{trial.to_json()}\n" for trial in trials)


def read_trials(path: str | Path) -> list[Trial]:
    """The trials in a file of JSON lines; a line that is none is named."""
    trials: list[Trial] = []
    for number, line in enumerate(InputFile.of(path).text().split("\n"), start=1):
        if not line.strip():
            continue
        try:
            trials.append(Trial.from_json(line))
        except CalibrationInputError as error:
            raise CalibrationInputError(str(path), error.expected, got=error.got, where=f"line {number}") from None
    return trials


def _canonical(value: Any) -> Any:
    """Plain values in which 1 and 1.0 are one number, so that they make one trial."""
    if isinstance(value, Mapping):
        return {str(key): _canonical(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
