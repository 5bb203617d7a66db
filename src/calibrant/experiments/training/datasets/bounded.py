"""Bounded reading: files that are missing, cut short or too large are refused before memory is spent on them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from calibrant.exceptions import CalibrationInputError

MOST_BYTES = 8 << 30
"""No file of a data set may unpack to more than this."""
DEFLATE_RATIO = 1032
"""No gzip file can honestly unpack by more than this factor: a code of 2 bits stands for at most 258 bytes."""
Readable = IO[bytes] | gzip.GzipFile
BROKEN = (EOFError, OSError, zlib.error)
"""What reading damaged gzip bytes raises."""
_CHUNK = 1 << 20


def first_file(folder: Path, names: Iterable[str], *, dataset: str, hint: str) -> Path:
    """The first of the files that a folder holds, or the refusal that says how to get one.

    >>> first_file(Path("nowhere"), ["train.bin"], dataset="cifar100", hint="unpack it there")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: cifar100: needs the file train.bin, got none in nowhere; unpack it there
    """
    names = list(names)
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CalibrationInputError(dataset, f"needs the file {' or '.join(names)}", got=f"none in {folder}", hint=hint)


def required(root: Path | None, *, dataset: str, hint: str) -> Path:
    """The folder that was given, or the refusal that says what belongs into it.

    >>> required(None, dataset="mnist", hint="pass root=FOLDER")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: mnist: needs the folder of its files, got none; pass root=FOLDER
    """
    if root is None:
        raise CalibrationInputError(dataset, "needs the folder of its files", got="none", hint=hint)
    return root


def opened(path: Path) -> Readable:
    """A file open for reading, unpacked where its first bytes say gzip."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")


def refuse_size(path: Path, wanted: int) -> None:
    """Refuse a file that says it holds more than is allowed, or more than its own size can unpack to.

    >>> refuse_size(Path("train.bin"), 1 << 40)
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: train.bin: must hold a reasonable size, got 1,099,511,627,776 bytes
    """
    if wanted > MOST_BYTES:
        raise CalibrationInputError(str(path), "must hold a reasonable size", got=f"{wanted:,} bytes")
    there = path.stat().st_size
    if wanted > DEFLATE_RATIO * there:
        raise CalibrationInputError(str(path), f"must hold the {wanted:,} bytes it announces", got=f"{there:,}")


def exactly(file: Readable, count: int, path: Path) -> bytes:
    """So many bytes in pieces, so that a size that is a lie takes no memory; fewer are refused."""
    pieces, left = [], count
    try:
        while left and (piece := file.read(min(left, _CHUNK))):
            pieces.append(piece)
            left -= len(piece)
    except BROKEN as reason:
        raise CalibrationInputError(str(path), "must be a whole file", got=str(reason)) from None
    if left:
        raise CalibrationInputError(
            str(path), f"must go on for {count:,} more bytes", got=f"{count - left:,}", hint="it is cut short"
        )
    return b"".join(pieces)


def refuse_more(file: Readable, path: Path) -> None:
    """Refuse bytes after the end; reading on also verifies the checksum of gzip."""
    try:
        more = file.read(1)
    except BROKEN as reason:
        raise CalibrationInputError(str(path), "must be a whole file", got=str(reason)) from None
    if more:
        raise CalibrationInputError(str(path), "must end where its header says", got="more bytes")
