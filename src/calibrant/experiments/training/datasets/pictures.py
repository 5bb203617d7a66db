"""Pictures: files of one size as one array, each looked at before it is unpacked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.training.datasets.bounded import MOST_BYTES
from calibrant.experiments.training.datasets.netpbm import read_netpbm, read_shape

ENDINGS = (".jpeg", ".jpg", ".pgm", ".png", ".ppm")
_NETPBM = (".pgm", ".ppm")
_MODES = {"L": 1, "RGB": 3}


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


def _words(shape: tuple[int, int, int]) -> str:
    channels, height, width = shape
    return f"{width} x {height} {'grey' if channels == 1 else 'coloured'}"


def _shape(path: Path) -> tuple[int, int, int]:
    if path.suffix.lower() in _NETPBM:
        return read_shape(path)
    with _opened(path) as picture:
        return _channels(picture, path), picture.height, picture.width


def _pixels(path: Path) -> Array:
    if path.suffix.lower() in _NETPBM:
        return read_netpbm(path)
    with _opened(path) as picture:
        try:
            plain = picture.convert("L" if _channels(picture, path) == 1 else "RGB")
            pixels = np.asarray(plain, np.uint8)
        except (OSError, SyntaxError, ValueError) as reason:
            raise CalibrationInputError(str(path), "must be a whole picture", got=str(reason)) from None
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _opened(path: Path) -> Any:
    """The picture by Pillow, its header read and no more."""
    try:
        from PIL import Image
    except ImportError:
        raise CalibrationInputError(
            str(path), "needs Pillow to be read", hint="pip install pillow, or save pictures as PPM or PGM"
        ) from None
    try:
        return Image.open(path, formats=("PNG", "JPEG"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as reason:
        raise CalibrationInputError(str(path), "must be a PNG or JPEG picture", got=str(reason)) from None


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
