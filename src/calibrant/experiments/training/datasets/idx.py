"""IDX: the files of MNIST and of the sets made like it, packed by gzip or not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.bounded import exactly, found, opened, refuse_more, refuse_size
from calibrant.experiments.training.datasets.source import Rows, checked_labels

_UNSIGNED_BYTES = b"\0\0\x08"
"""How a file of unsigned bytes begins, the one type that these sets have."""


def read_idx(path: Path) -> Array:
    """The array of an IDX file of unsigned bytes, whose header must fit its bytes.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "labels-idx1-ubyte")
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> read_idx(path).tolist()
    [7, 2, 1]
    >>> folder.cleanup()
    """
    with opened(path) as file:
        start = exactly(file, 4, path)
        if start[:3] != _UNSIGNED_BYTES or not 1 <= start[3] <= 4:
            raise CalibrationInputError(str(path), "must be an IDX file of unsigned bytes", got=start.hex(" "))
        shape = tuple(np.frombuffer(exactly(file, 4 * start[3], path), ">u4").tolist())
        refuse_size(path, math.prod(shape))
        content = exactly(file, math.prod(shape), path)
        refuse_more(file, path)
    return np.frombuffer(content, np.uint8).reshape(shape)


def read_part(folder: Path, part: str, *, dataset: str, classes: int, hint: str) -> Rows:
    """The pictures (n, 1, 28, 28) and labels of one part, "train" or "t10k"."""
    paths = [
        found(folder, [f"{part}-{what}-ubyte.gz", f"{part}-{what}-ubyte"], dataset=dataset, hint=hint)
        for what in ("images-idx3", "labels-idx1")
    ]
    pictures, labels = map(read_idx, paths)
    if pictures.ndim != 3 or pictures.shape[1:] != (28, 28) or not len(pictures):
        raise CalibrationInputError(str(paths[0]), "must hold pictures of 28 x 28", got=f"shape {pictures.shape}")
    if labels.shape != pictures.shape[:1]:
        raise CalibrationInputError(
            str(paths[1]), f"must hold {len(pictures):,} labels, one a picture", got=f"shape {labels.shape}"
        )
    return Rows(pictures[:, None], checked_labels(labels, classes, str(paths[1])))
