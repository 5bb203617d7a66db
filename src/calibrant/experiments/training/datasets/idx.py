"""IDX: the files of MNIST (LeCun et al. 1998) and Fashion-MNIST (Xiao et al. 2017), packed by gzip or not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.bounded import (
    exactly,
    first_file,
    opened,
    refuse_more,
    refuse_size,
    required,
)
from calibrant.experiments.training.datasets.source import LabelledRows, RowsByPart, Source, checked_labels

DIGITS = tuple("0123456789")
FASHION_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
FASHION_HIERARCHY = {
    "kind": {
        "tops": ("T-shirt/top", "Pullover", "Coat", "Shirt"),
        "bottoms": ("Trouser",),
        "dresses": ("Dress",),
        "footwear": ("Sandal", "Sneaker", "Ankle boot"),
        "bags": ("Bag",),
    },
    "department": {
        "clothing": ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Shirt"),
        "footwear": ("Sandal", "Sneaker", "Ankle boot"),
        "accessories": ("Bag",),
    },
}
PACKAGED = Path("/usr/share/datasets/fashion-mnist")
"""Where Debian's package dataset-fashion-mnist puts the files."""
_UNSIGNED_BYTES = b"\0\0\x08"
"""How a file of unsigned bytes begins, the one type that these sets have."""


def read_mnist(root: Path | None) -> Source:
    """70,000 handwritten digits as grey pictures of 28 x 28: the published 60,000 to train and 10,000 to test."""
    hint = "pass root=FOLDER with train-images-idx3-ubyte.gz and its three siblings"
    folder = required(root, dataset="mnist", hint=hint)
    return Source(DIGITS, _both_parts(folder, dataset="mnist", classes=len(DIGITS), hint=hint))


def read_fashion_mnist(root: Path | None) -> Source:
    """70,000 clothes, shoes and bags as grey pictures of 28 x 28: the published 60,000 to train and 10,000 to test."""
    hint = "apt-get install dataset-fashion-mnist, or pass root=FOLDER with the four IDX files"
    rows = _both_parts(root or PACKAGED, dataset="fashion_mnist", classes=len(FASHION_CLASSES), hint=hint)
    return Source(FASHION_CLASSES, rows, hierarchy=FASHION_HIERARCHY)


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


def _both_parts(folder: Path, *, dataset: str, classes: int, hint: str) -> RowsByPart:
    train, test = (_part(folder, part, dataset=dataset, classes=classes, hint=hint) for part in ("train", "t10k"))
    return RowsByPart(train, test=test)


def _part(folder: Path, part: str, *, dataset: str, classes: int, hint: str) -> LabelledRows:
    """The pictures (n, 1, 28, 28) and labels of one part, "train" or "t10k"."""
    paths = [
        first_file(folder, [f"{part}-{what}-ubyte.gz", f"{part}-{what}-ubyte"], dataset=dataset, hint=hint)
        for what in ("images-idx3", "labels-idx1")
    ]
    pictures, labels = map(read_idx, paths)
    if pictures.ndim != 3 or pictures.shape[1:] != (28, 28) or not len(pictures):
        raise CalibrationInputError(str(paths[0]), "must hold pictures of 28 x 28", got=f"shape {pictures.shape}")
    if labels.shape != pictures.shape[:1]:
        raise CalibrationInputError(
            str(paths[1]), f"must hold {len(pictures):,} labels, one a picture", got=f"shape {labels.shape}"
        )
    return LabelledRows(pictures[:, None], checked_labels(labels, classes, str(paths[1])))
