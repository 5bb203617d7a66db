"""Picture folders: a sub-folder for each class, pictures of one size, each looked at before it is unpacked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.bounded import MOST_BYTES
from calibrant.experiments.training.datasets.source import LabelledRows, RowsByPart, Source

PARTS = {"train": ("train",), "validation": ("validation", "val"), "test": ("test",)}
"""The names that the folder of a part may have."""
ENDINGS = (".jpeg", ".jpg", ".pgm", ".png", ".ppm")
_MODES = {"L": 1, "RGB": 3}


def read_folder(path: Path, label: str | None = None) -> Source:
    """The pictures of `path/class/`, or of `path/train/class/`, `path/test/class/` and `path/validation/class/`.

    Files that are no pictures by their ending, and hidden ones, are passed over; a class without a picture is refused.
    Pictures come in the order of their classes and names.
    """
    if label is not None:
        raise CalibrationInputError(str(path), "takes its labels from sub-folders", got=f"the column {label!r}")
    if not path.is_dir():
        raise CalibrationInputError(str(path), "must be a folder with a sub-folder of pictures for each class")
    folders = {part: folder for part, names in PARTS.items() if (folder := _first(path, names))}
    if not {"train", "test"} <= folders.keys():
        folders = {"train": path}
    classes = tuple(folder.name for folder in _folders(folders["train"]))
    if len(classes) < 2:
        raise CalibrationInputError(
            str(path), "must have a sub-folder of pictures for each of two or more classes", got=len(classes)
        )
    return Source(classes, RowsByPart(**_rows(folders, classes)))


def read_pictures(paths: Sequence[Path]) -> Array:
    """Pictures (n, channels, height, width) in uint8: one channel if they are grey, three if they are coloured.

    All must be of one size and kind; the first that is not is named. The size of a picture is read, and the memory for
    all of them is weighed, before any picture is unpacked.
    """
    shapes = [_shape(path) for path in paths]
    for path, shape in zip(paths, shapes, strict=True):
        if shape != shapes[0]:
            raise CalibrationInputError(
                str(path),
                f"must have the size of the others, {_words(shapes[0])}",
                got=_words(shape),
                hint="bring all pictures to one size and kind first",
            )
    size = len(paths) * math.prod(shapes[0])
    if size > MOST_BYTES:
        raise CalibrationInputError(
            str(paths[0].parent.parent), "must fit into memory", got=f"pictures of {size:,} bytes"
        )
    pictures = np.empty((len(paths), *shapes[0]), np.uint8)
    for index, path in enumerate(paths):
        pictures[index] = _pixels(path)
    return pictures


def _rows(folders: dict[str, Path], classes: tuple[str, ...]) -> dict[str, LabelledRows]:
    """The rows of each part; pictures of all parts are read together, since all must have one size."""
    files = {part: _files(folder, classes) for part, folder in folders.items()}
    pictures = read_pictures([path for paths in files.values() for path in paths])
    labels = {
        part: np.array([classes.index(path.parent.name) for path in paths], np.int64) for part, paths in files.items()
    }
    chunks = zip(files, np.split(pictures, np.cumsum([len(paths) for paths in files.values()])[:-1]), strict=True)
    return {part: LabelledRows(chunk, labels[part]) for part, chunk in chunks}


def _files(folder: Path, classes: tuple[str, ...]) -> list[Path]:
    """The pictures of every class, in order; a class that the training rows do not have is refused."""
    files: list[Path] = []
    for each in _folders(folder):
        own = sorted(file for file in each.iterdir() if _is_picture(file))
        if each.name not in classes:
            raise CalibrationInputError(str(each), "must be a class that is trained on", got=f"{each.name!r}")
        if not own:
            raise CalibrationInputError(str(each), f"must hold pictures ({', '.join(ENDINGS)})", got="none")
        files += own
    return files


def _folders(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))


def _first(path: Path, names: tuple[str, ...]) -> Path | None:
    return next((path / name for name in names if (path / name).is_dir()), None)


def _is_picture(file: Path) -> bool:
    return file.is_file() and file.suffix.lower() in ENDINGS and not file.name.startswith(".")


def _words(shape: tuple[int, int, int]) -> str:
    channels, height, width = shape
    return f"{width} x {height} {'grey' if channels == 1 else 'coloured'}"


def _shape(path: Path) -> tuple[int, int, int]:
    with _opened(path) as picture:
        return _channels(picture, path), picture.height, picture.width


def _pixels(path: Path) -> Array:
    with _opened(path) as picture:
        try:
            pixels = np.asarray(picture.convert("L" if _channels(picture, path) == 1 else "RGB"), np.uint8)
        except (OSError, SyntaxError, ValueError) as reason:
            raise CalibrationInputError(str(path), "must be a whole picture", got=str(reason)) from None
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _opened(path: Path) -> Any:
    """The picture by Pillow, its header read and no more."""
    try:
        from PIL import Image
    except ImportError:
        raise CalibrationInputError(str(path), "needs Pillow to be read", hint="pip install pillow") from None
    try:
        return Image.open(path, formats=("PNG", "JPEG", "PPM"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as reason:
        raise CalibrationInputError(str(path), "must be a PNG, JPEG, PPM or PGM picture", got=str(reason)) from None


def _channels(picture: Any, path: Path) -> int:
    """One for grey, three for colours; transparency and more than eight bits would be lost, and are refused."""
    mode = {"1": "L", "P": "RGB"}.get(picture.mode, picture.mode)
    if mode not in _MODES or "transparency" in picture.info:
        raise CalibrationInputError(
            str(path),
            "must be grey or coloured in 8 bits, without transparency",
            got=f"the mode {picture.mode}",
            hint="flatten it onto a background first",
        )
    return _MODES[mode]
