"""Given weights: a network begins with those of a file, as one that was trained on other data does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.files.npz import Archive


def weights_in(asked: Mapping[str, Any], root: str | Path | None) -> dict[str, Array]:
    """The arrays of a NPZ file of weights, whose SHA-256 must be the one that is asked for.

    Relative paths start from the folder `root`.

    >>> weights_in({"file": "nowhere.npz", "sha256": "0" * 64}, None)
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: nowhere.npz: must be a file of weights, got nothing there; \
relative paths start from --data
    """
    path = Path(asked["file"]) if root is None else Path(root, asked["file"])
    if not path.is_file():
        hint = "relative paths start from --data"
        raise CalibrationInputError(str(path), "must be a file of weights", got="nothing there", hint=hint)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != asked["sha256"]:
        raise CalibrationInputError(str(path), f"must have the SHA-256 {asked['sha256']}", got=digest)
    return dict(Archive(path).items())


def begin_with(network: Any, arrays: Mapping[str, Array], *, without: tuple[str, ...] = ()) -> None:
    """Give a network the arrays of these names; what begins with a name of `without` stays as it is.

    All other weights must be among the arrays, in the network's shapes, and no other array.

    >>> import torch
    >>> network = torch.nn.Linear(2, 1)
    >>> begin_with(network, {"weight": np.ones((1, 2))}, without=("bias",))
    >>> network.weight.tolist()
    [[1.0, 1.0]]
    """
    import torch

    state = {name: value for name, value in network.state_dict().items() if not name.startswith(without)}
    offered = {name: np.asarray(array) for name, array in arrays.items() if not name.startswith(without)}
    for name in sorted({*state, *offered}):
        expected, got = (str(tuple(each[name].shape)) if name in each else "none" for each in (state, offered))
        if expected != got:
            hint = "weights.without names what begins anew"
            raise CalibrationInputError("weights", f"must have {name} of shape {expected}", got=got, hint=hint)
        if offered[name].dtype.kind not in "fiu" or not np.isfinite(offered[name]).all():
            raise CalibrationInputError("weights", f"must have finite numbers in {name}", got="others")
    network.load_state_dict({name: torch.from_numpy(array) for name, array in offered.items()}, strict=False)
