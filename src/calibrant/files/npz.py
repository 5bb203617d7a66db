"""NPZ and NPY: arrays as NumPy saves them, none read before its size is checked."""

from __future__ import annotations

import hashlib
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from calibrant.door.arrays import Array
from calibrant.door.streams import InputFile, refuse_bomb
from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import Columns, refuse_twice

LARGEST_LETTER = 0x10FFFF
SEAL = b"calibrant "
"""How the comment of our own archives begins; the checksum of their directory follows."""
_BROKEN = (
    ValueError, OSError, EOFError, RuntimeError, SyntaxError, LookupError, ArithmeticError, TypeError, MemoryError,
    struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading damaged bytes may raise: RuntimeError where a bit says that they are encrypted."""


class Archive(Columns):
    """The arrays of a NPZ file, each read when asked for."""

    def __init__(self, file: InputFile | Path) -> None:
        try:
            source = InputFile.of(file) if isinstance(file, Path) else file
            with source.open() as content, zipfile.ZipFile(content) as archive:
                members, comment = archive.infolist(), archive.comment
        except _BROKEN as reason:
            raise CalibrationInputError(str(file), "must be a whole NPZ file", got=str(reason)) from None
        if comment.startswith(SEAL) and comment != _seal(members):
            got = "contents that do not match the checksum"
            raise CalibrationInputError(str(source), "must be as it was written", got=got)
        if any(member.filename.endswith("data.pkl") for member in members):
            hint = "save arrays instead: numpy.savez(path, labels=labels, logits=logits)"
            raise CalibrationInputError(str(source), "must be a NPZ file", got="a file of torch.save", hint=hint)
        refuse_bomb(str(source), source.size, sum(member.file_size for member in members))
        names = [member.filename.removesuffix(".npy") for member in members]
        refuse_twice(names, source)
        self.members = dict(zip(names, members, strict=True))
        super().__init__(source, self.members, self._array)
        self.shapes = {name: self._shape(name) for name in self.members}

    def loose(self, name: str, n: int) -> Array | None:
        """A column of n values; None where it has another shape, without reading it."""
        array = self[name] if self.shapes[name] == (n,) else None
        return array if array is not None and array.dtype.kind in "fiubU" else None

    def _array(self, name: str) -> Array:
        try:
            with self._opened(name) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
                file.read()  # the end of the member is where its checksum is compared
            _refuse_no_text(array)
            return array
        except _BROKEN as reason:
            raise self._broken(name, reason) from None

    def _shape(self, name: str) -> tuple[int, ...]:
        """The shape that the header tells, which the bytes must bear out."""
        try:
            with self._opened(name) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(file)
                there = self.members[name].file_size - file.tell()
        except _BROKEN as reason:
            raise self._broken(name, reason) from None
        if dtype.hasobject:
            raise CalibrationInputError(
                str(self.source),
                "must hold plain arrays",
                got=f"Python objects in {name!r}",
                hint="they would need pickle",
            )
        whole = all(type(length) is int and length >= 0 for length in shape)
        if not whole or not dtype.itemsize or math.prod(shape) * dtype.itemsize != there:
            raise CalibrationInputError(
                str(self.source), f"has a header of {name!r} that does not fit its data", got=f"shape {shape}"
            )
        return tuple(shape)

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        with (
            self.source.open() as content,
            zipfile.ZipFile(content) as archive,
            archive.open(self.members[name]) as file,
        ):
            yield file

    def _broken(self, name: str, reason: Exception) -> CalibrationInputError:
        return CalibrationInputError(str(self.source), f"has a broken array {name!r}", got=str(reason))


def read_npy(source: InputFile) -> Columns:
    """The one array of a NPY file, under the name `array`, read from the disk as it is used."""
    try:
        if source.path is None:
            array = np.load(source.open(), allow_pickle=False)
        else:
            array = np.load(source.path, mmap_mode="r", allow_pickle=False)
        _refuse_no_text(array)
    except _BROKEN as reason:
        raise CalibrationInputError(str(source), "must be a whole NPY file of numbers", got=str(reason)) from None
    return Columns(source, {"array": array}, lambda name: array)


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


def _refuse_no_text(array: Array) -> None:
    """Refuse an array of text with code points that are no characters: too large ones, and halves of a pair."""
    if array.dtype.kind == "U" and array.size:
        points = np.ascontiguousarray(array).view(f"{array.dtype.str[0]}u4")
        wrong = (points > LARGEST_LETTER) | ((points >= 0xD800) & (points <= 0xDFFF))
        if wrong.any():
            raise ValueError(f"code point {int(points[wrong][0]):#x}, which is no character")
