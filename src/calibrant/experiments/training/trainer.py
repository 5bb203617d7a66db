"""Training: one trial from its description to its outcome, with NumPy and torch alone.

Every epoch draws from sources that follow from the trial and the epoch. A training that was stopped after any epoch and
went on from its checkpoint is therefore the same, to the bit on a CPU, as one that never stopped.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training import checkpoints, datasets, networks
from calibrant.experiments.training.augmentation import augmented, changes
from calibrant.experiments.training.given_predictions import given_outcome
from calibrant.experiments.training.given_weights import begin_with, weights_in
from calibrant.experiments.training.interventions import batch_loss
from calibrant.experiments.training.optimisers import learning_rate, optimiser, set_rate
from calibrant.experiments.training.trial_outcomes import Answers, Outcome, Snapshots
from calibrant.experiments.training.trials import BLENDS, MODULES, ORDER, PICTURES, SIZES, WEIGHTS, Trial
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.specification import spelling

if TYPE_CHECKING:
    from torch import Tensor

EVALUATED_AT_ONCE = 4096
"""Rows of a forward pass that needs no gradients."""


class StoppedError(Exception):
    """The training was asked to stop, and did after an epoch; its checkpoint knows where."""


@dataclass(frozen=True)
class Surroundings:
    """What a training needs beside its trial, and what cannot change its outcome (on a CPU, to the bit)."""

    device: str = "cpu"
    root: str | Path | None = None
    """The folder that data lie in."""
    checkpoint: Path | None = None
    seconds_between_checkpoints: float = 60.0
    told: Callable[[int, int], None] = lambda epoch, epochs: None
    """Hears how many epochs are done."""
    stop: Callable[[], bool] = lambda: False
    """Asked after every epoch."""


def train(trial: Trial, around: Surroundings) -> Outcome:
    """Train one network and keep its answers on validation and test rows; given predictions are read instead.

    Raises :class:`StoppedError` where it was asked to stop, and `CalibrationInputError` where the training diverged.
    """
    if trial.predictions is not None:
        return given_outcome(trial, around.root)
    with _settings(trial.training, around.device):
        return _Run(trial, around).outcome()


class _Run:
    """A training on its way."""

    def __init__(self, trial: Trial, around: Surroundings) -> None:
        self.trial, self.around = trial, around
        self.started = time.monotonic()
        self.data = dataset(trial.data, around.root)
        self.inputs, self.labels = (
            _on(part, around.device) for part in (self.data.train.inputs, self.data.train.labels)
        )
        self.validation = _on(self.data.validation.inputs, around.device)
        self.metrics = _metrics(trial)
        self.epochs = int(trial.training["epochs"])

    def outcome(self) -> Outcome:
        done, progress = self._begin()
        kept = time.monotonic()
        for epoch in range(done, self.epochs):
            self._epoch(epoch)
            progress = self._measured(epoch + 1, progress)
            self.around.told(epoch + 1, self.epochs)
            stopping = epoch + 1 < self.epochs and self.around.stop()
            if stopping or time.monotonic() - kept >= self.around.seconds_between_checkpoints:
                if (path := self.around.checkpoint) is not None:
                    checkpoints.save(path, self.trial.id, epoch + 1, self.network, self.optimiser, progress)
                kept = time.monotonic()
            if stopping:
                raise StoppedError(f"after epoch {epoch + 1} of {self.epochs}")
        return self._concluded(progress)

    def _begin(self) -> tuple[int, checkpoints.Progress]:
        """A new network and optimiser, or those of a checkpoint."""
        self._build()
        if self.around.checkpoint is not None:
            restored = checkpoints.restore(self.around.checkpoint, self.trial.id, self.network, self.optimiser)
            if restored is not None:
                return restored
            self._build()  # a damaged checkpoint may have been restored in part
        return 0, checkpoints.Progress(np.zeros(0, np.int64), np.zeros((0, 2, len(self.metrics))))

    def _build(self) -> None:
        import torch

        self.network = networks.build(
            self.trial.model["name"],
            shape=tuple(self.data.train.inputs.shape[1:]),
            classes=len(self.data.classes),
            seed=self.trial.seed_of(WEIGHTS) % 2**31,
            initialisation=self.trial.model.get("initialisation", "default"),
            **{size: self.trial.model[size] for size in SIZES if size in self.trial.model},
        )
        if (weights := self.trial.model.get("weights")) is not None:
            begin_with(self.network, weights_in(weights, self.around.root), without=tuple(weights["without"]))
        self.network.to(self.around.device, memory_format=torch.channels_last)  # the layout of the fastest kernels
        self.optimiser = optimiser(self.trial.training["optimiser"], self.network)

    def _epoch(self, epoch: int) -> None:
        """Train on every row once."""
        import torch

        torch.manual_seed(self.trial.seed_of(MODULES, epoch))
        loss = batch_loss(self.trial.intervention, epoch, _generator(self.trial.seed_of(BLENDS, epoch)))
        batches = self._batches(epoch)
        how = self.trial.training.get("augmentation") or {}
        drawn = _generator(self.trial.seed_of(PICTURES, epoch))
        changed = changes(how, [len(rows) for rows in batches], drawn, self.around.device)
        self.network.train()
        for index, (rows, change) in enumerate(zip(batches, changed, strict=True)):
            set_rate(self.optimiser, learning_rate(self.trial.training, epoch + index / len(batches)))
            inputs = augmented(self.inputs[rows], how, change)
            self.optimiser.zero_grad(set_to_none=True)
            loss(self._forward, inputs, self.labels[rows]).backward()
            self.optimiser.step()

    def _batches(self, epoch: int) -> list[Tensor]:
        """The rows in a new order, in batches that differ by at most one row: none is left with a single one."""
        import torch

        order = np.random.default_rng(self.trial.randomness(ORDER, epoch)).permutation(len(self.labels))
        count = math.ceil(len(order) / int(self.trial.training["batch_size"]))
        return list(torch.tensor_split(torch.from_numpy(order).to(self.around.device), count))

    def _forward(self, inputs: Tensor) -> Tensor:
        with _precision(self.trial.training, self.around.device):
            logits: Tensor = self.network(inputs)
        return logits.float()

    def answers(self, inputs: Tensor) -> Array:
        """The network's logits, as it is."""
        import torch

        self.network.eval()
        with torch.no_grad():
            parts = [self._forward(part) for part in inputs.split(EVALUATED_AT_ONCE)]
        return torch.cat(parts).cpu().numpy()

    def _measured(self, epoch: int, progress: checkpoints.Progress) -> checkpoints.Progress:
        """The curves with one more point, where one is due: after every so many epochs, and the last."""
        asked = self.trial.over_training or {}
        keep = bool(asked.get("keep", False))
        if not (self.metrics or keep) or (epoch % int(asked.get("every", 1)) and epoch != self.epochs):
            return replace(progress, seconds=self._seconds(progress))
        rows = _evenly(len(self.labels), int(asked.get("train_rows", 10_000)))
        labels = self.data.train.labels[rows]
        train, validation = self.answers(self.inputs[rows]), self.answers(self.validation)
        parts = [(train, labels), (validation, self.data.validation.labels)]
        point = np.array([[_value(metric, *part) for metric in self.metrics.values()] for part in parts])
        epochs, curves = np.append(progress.epochs, epoch), np.concatenate([progress.curves, point[None]])
        kept = progress.kept
        if keep:
            now = Snapshots.of(train, validation, labels=labels)
            kept = now if kept is None else kept.followed_by(now)
        return checkpoints.Progress(epochs, curves, self._seconds(progress), kept)

    def _seconds(self, progress: checkpoints.Progress) -> float:
        now = time.monotonic()
        passed, self.started = now - self.started, now
        return progress.seconds + passed

    def _concluded(self, progress: checkpoints.Progress) -> Outcome:
        return Outcome(
            self.trial.to_json(),
            self._answered("validation", self.data.validation),
            self._answered("test", self.data.test),
            self.data.classes,
            self.data.hierarchy,
            tuple(self.metrics),
            progress.epochs,
            progress.curves,
            _about(self.network, self.around.device, self._seconds(progress)),
            progress.kept,
        )

    def _answered(self, name: str, split: Any) -> Answers:
        logits = self.answers(_on(split.inputs, self.around.device))
        if not np.isfinite(logits).all():
            raise CalibrationInputError("training", f"must end with finite {name} logits", got="others: it diverged")
        return Answers(logits, split.labels)


_LOADED: dict[str, Any] = {}
"""The data set that was used last: the next trial most likely needs it, too."""


def dataset(data: Mapping[str, Any], root: str | Path | None) -> Any:
    """The data set of a trial."""
    key = f"{sorted(data.items())} {root}"
    if key not in _LOADED:
        _LOADED.clear()
        _LOADED[key] = datasets.load(root=root, **data)
    return _LOADED[key]


def _metrics(trial: Trial) -> dict[str, Metric]:
    metrics: dict[str, Metric] = {}
    for text in (trial.over_training or {}).get("metrics", ()):
        metrics.update(spelling.metrics(text))
    return metrics


def _value(metric: Metric, logits: Array, labels: Array) -> float:
    return metric(Predictions.from_logits(labels, logits, copy=False)).value


def _generator(seed: int) -> Any:
    import torch

    return torch.Generator().manual_seed(seed)


def _on(array: Array, device: str) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def _evenly(n: int, most: int) -> Array:
    """At most so many of n rows, evenly spaced."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(np.int64)


def _precision(training: Mapping[str, Any], device: str) -> Any:
    import torch

    if training.get("precision", "float32") != "bfloat16":
        return nullcontext()
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)


@contextmanager
def _settings(training: Mapping[str, Any], device: str) -> Iterator[None]:
    """Threads and algorithms as the trial needs them, and then as they were."""
    import torch

    flags = torch.backends.cudnn
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    flags_before = flags.deterministic, flags.benchmark, flags.allow_tf32
    torch.set_num_threads(int(training.get("threads", 1)))
    flags.deterministic = bool(training.get("deterministic", True))
    flags.benchmark = False  # what it chooses depends on what else the device does at the time
    flags.allow_tf32 = training.get("precision") == "tf32"
    torch.set_float32_matmul_precision("high" if flags.allow_tf32 else "highest")
    try:
        yield
    finally:
        flags.deterministic, flags.benchmark, flags.allow_tf32 = flags_before
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])


def _about(network: Any, device: str, seconds: float) -> dict[str, Any]:
    import torch

    import calibrant

    kind = torch.cuda.get_device_name(device) if torch.device(device).type == "cuda" else device
    weights = sum(parameter.numel() for parameter in network.parameters())
    versions = {"calibrant": calibrant.__version__, "numpy": np.__version__, "torch": torch.__version__}
    return {"device": kind, "seconds": round(seconds, 3), "weights": weights, "process": os.getpid(), **versions}
