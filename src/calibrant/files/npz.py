"""NPZ and NPY: arrays as NumPy saves them, none read before its size is checked."""

from __future__ import annotations

import hashlib
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import Columns, refuse_twice

MOST_BYTES = 32 << 30
"""An archive that unpacks to more than this is refused."""
SUSPICIOUS_BYTES = 256 << 20
SUSPICIOUS_RATIO = 200
"""So is one that unpacks to more than SUSPICIOUS_BYTES by more than this factor."""
SEAL = b"calibrant "
"""How the comment of our own archives begins; the checksum of their directory follows."""
_BROKEN = (
    ValueError, OSError, EOFError, RuntimeError, SyntaxError, LookupError, ArithmeticError, TypeError, MemoryError,
    struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading damaged bytes may raise: RuntimeError where a bit says that they are encrypted."""


class Archive(Columns):
    """The arrays of a NPZ file, each read when asked for."""

    def __init__(self, path: Path) -> None:
        try:
            with zipfile.ZipFile(path) as archive:
                members, comment = archive.infolist(), archive.comment
        except _BROKEN as reason:
            raise CalibrationInputError(str(path), "must be a whole NPZ file", got=str(reason)) from None
        if comment.startswith(SEAL) and comment != _seal(members):
            raise CalibrationInputError(
                str(path), "must be as it was written", got="contents that do not match the checksum"
            )
        _refuse_bomb(path, sum(member.file_size for member in members))
        names = [member.filename.removesuffix(".npy") for member in members]
        refuse_twice(names, path)
        self.members = dict(zip(names, members, strict=True))
        super().__init__(path, self.members, self._array)
        self.shapes = {name: self._shape(name) for name in self.members}

    def loose(self, name: str, n: int) -> Array | None:
        """A column of n values; None where it has another shape, without reading it."""
        array = self[name] if self.shapes[name] == (n,) else None
        return array if array is not None and array.dtype.kind in "fiubU" else None

    def _array(self, name: str) -> Array:
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.members[name]) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
                file.read()  # the end of the member is where its checksum is compared
                return array
        except _BROKEN as reason:
            raise self._broken(name, reason) from None

    def _shape(self, name: str) -> tuple[int, ...]:
        """The shape that the header tells, which the bytes must bear out."""
        member = self.members[name]
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(file)
                there = member.file_size - file.tell()
        except _BROKEN as reason:
            raise self._broken(name, reason) from None
        if dtype.hasobject:
            raise CalibrationInputError(
                str(self.path),
                "must hold plain arrays",
                got=f"Python objects in {name!r}",
                hint="they would need pickle",
            )
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != there:
            raise CalibrationInputError(
                str(self.path), f"has a header of {name!r} that does not fit its data", got=f"shape {shape}"
            )
        return tuple(shape)

    def _broken(self, name: str, reason: Exception) -> CalibrationInputError:
        return CalibrationInputError(str(self.path), f"has a broken array {name!r}", got=str(reason))


def read_npy(path: Path) -> Columns:
    """The one array of a NPY file, under the name `array`, read from the disk as it is used."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except _BROKEN as reason:
        raise CalibrationInputError(str(path), "must be a whole NPY file of numbers", got=str(reason)) from None
    return Columns(path, {"array": array}, lambda name: array)


def write_arrays(file: IO[bytes], arrays: Mapping[str, Array], *, compressed: bool = True) -> None:
    """Arrays as NumPy writes them, under a checksum of their names, sizes and own checksums.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_arrays(file, {"label": np.array([0, 1])})
    >>> np.load(io.BytesIO(file.getvalue()))["label"].tolist()
    [0, 1]
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        archive.comment = _seal(archive.infolist())


def _seal(members: Sequence[zipfile.ZipInfo]) -> bytes:
    """The comment of an archive of these members: each has a checksum of its bytes, and this is one of all of those."""
    directory = repr([(member.filename, member.file_size, member.CRC) for member in members])
    return SEAL + hashlib.sha256(directory.encode("utf-8", "replace")).hexdigest().encode()


def _refuse_bomb(path: Path, unpacked: int) -> None:
    packed = max(1, path.stat().st_size)
    if unpacked > MOST_BYTES or (unpacked > SUSPICIOUS_BYTES and unpacked > SUSPICIOUS_RATIO * packed):
        raise CalibrationInputError(
            str(path), "must unpack to a reasonable size", got=f"{packed:,} bytes that would become {unpacked:,}"
        )
