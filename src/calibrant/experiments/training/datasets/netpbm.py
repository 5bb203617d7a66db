"""Netpbm: grey (PGM) and colour (PPM) pictures, in bytes or in digits."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError

_CHANNELS = {b"P2": 1, b"P3": 3, b"P5": 1, b"P6": 3}
_GAP = rb"(?:\s|#[^\n\r]*[\n\r])+"
_HEADER = re.compile(rb"(P[2356])" + (_GAP + rb"(\d{1,9})") * 3 + rb"\s")
_HEADER_BYTES = 4096


def read_shape(path: Path) -> tuple[int, int, int]:
    """Channels, height and width, from the header alone."""
    with path.open("rb") as file:
        return _header(file.read(_HEADER_BYTES), path)[0]


def read_netpbm(path: Path) -> Array:
    """The pixels (channels, height, width) in uint8; a largest value below 255 is stretched to 255.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "two.pgm")
    >>> _ = path.write_bytes(b"P2 # two pixels\\n2 1 5\\n0 5\\n")
    >>> read_netpbm(path).tolist()
    [[[0, 255]]]
    >>> folder.cleanup()
    """
    content = path.read_bytes()
    (channels, height, width), kind, most, start = _header(content[:_HEADER_BYTES], path)
    size = channels * height * width
    values = _bytes(content[start:]) if kind in (b"P5", b"P6") else _digits(content[start:], size, path)
    if len(values) != size:
        raise CalibrationInputError(str(path), f"must have {size:,} values", got=f"{len(values):,}")
    if size and values.max() > most:
        raise CalibrationInputError(str(path), f"must have values up to {most}", got=int(values.max()))
    stretched = values if most == 255 else np.rint(values * (255 / most)).astype(np.uint8)
    return np.ascontiguousarray(stretched.reshape(height, width, channels).transpose(2, 0, 1))


def _header(start: bytes, path: Path) -> tuple[tuple[int, int, int], bytes, int, int]:
    """The shape, the kind, the largest value, and where the pixels begin."""
    match = _HEADER.match(start)
    if match is None:
        raise CalibrationInputError(str(path), "must be a PGM or PPM picture", got=repr(start[:12]))
    width, height, most = (int(match[index]) for index in (2, 3, 4))
    if not (width and height and 1 <= most <= 255):
        raise CalibrationInputError(
            str(path), "must have a size and values up to 255", got=f"{width} x {height}, values up to {most}"
        )
    return (_CHANNELS[match[1]], height, width), match[1], most, match.end()


def _bytes(content: bytes) -> Array:
    return np.frombuffer(content, np.uint8)


def _digits(content: bytes, size: int, path: Path) -> Array:
    words = content.split(maxsplit=size)
    if not all(word.isdigit() and len(word) <= 3 and int(word) <= 255 for word in words):
        raise CalibrationInputError(str(path), "must have numbers up to 255 after its header", got="other text")
    return np.array([int(word) for word in words], np.uint8)
