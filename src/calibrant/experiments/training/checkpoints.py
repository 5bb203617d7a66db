"""Checkpoints: where a training stands, as plain arrays in a NPZ file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.trial_outcomes import Snapshots, snapshot_arrays, snapshots_in, write_arrays
from calibrant.files.npz import Archive
from calibrant.kernels.totals import Floats


@dataclass(frozen=True, eq=False)
class Progress:
    """What has been measured so far: after which epochs, the numbers (epochs, 2, metrics), and the logits then."""

    epochs: Array
    curves: Floats
    seconds: float = 0.0
    kept: Snapshots | None = None


def save(path: Path, trial: str, epoch: int, network: Any, optimiser: Any, progress: Progress) -> None:
    """Keep the network, the optimiser and what was measured after so many epochs.

    Randomness needs no place here: every epoch draws from a source of its own that follows from the trial.
    """
    state = optimiser.state_dict()["state"]
    arrays = {f"network/{name}": _array(value) for name, value in network.state_dict().items()}
    empty: list[str] = []
    for index, entries in state.items():
        for name, value in entries.items():
            key = f"optimiser/{index}/{name}"
            if value is None:
                empty.append(key)
            else:
                arrays[key] = _array(value)
    meta = {"trial": trial, "epoch": epoch, "seconds": progress.seconds, "empty": empty}
    measured = {"epochs": progress.epochs, "curves": progress.curves, **snapshot_arrays(progress.kept)}
    write_arrays(path, {**arrays, **measured, "meta": np.array(json.dumps(meta))}, small=False)


def restore(path: Path, trial: str, network: Any, optimiser: Any) -> tuple[int, Progress] | None:
    """Put the network and the optimiser back; the epochs done and what was measured, or None where nothing is kept.

    What is damaged or another trial's is as good as nothing: the training then starts anew.
    """
    if not path.exists():
        return None
    try:
        arrays = dict(Archive(path).items())
        meta = json.loads(str(arrays.pop("meta")))
        kept = snapshots_in(arrays)
        progress = Progress(arrays.pop("epochs"), arrays.pop("curves"), float(meta["seconds"]), kept)
        for name in snapshot_arrays(kept):
            del arrays[name]
        if meta["trial"] != trial:
            return None
        _load(arrays, meta["empty"], network, optimiser)
        return int(meta["epoch"]), progress
    except (CalibrationInputError, KeyError, TypeError, ValueError, RuntimeError):
        return None


def _load(arrays: dict[str, Array], empty: list[str], network: Any, optimiser: Any) -> None:
    import torch

    state: dict[int, dict[str, Any]] = {}
    weights: dict[str, Any] = {}
    for key in [*arrays, *empty]:
        kind, _, rest = key.partition("/")
        value = torch.from_numpy(np.array(arrays[key])) if key in arrays else None
        if kind == "network":
            weights[rest] = value
        else:
            index, name = rest.split("/", 1)
            state.setdefault(int(index), {})[name] = value
    network.load_state_dict(weights)
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def _array(value: Any) -> Array:
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
