"""Streams: what is read, be it a file, a pipe or standard input; pipes are read once, and gzip is unpacked."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import sys
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from calibrant.exceptions import CalibrationInputError

STANDARD_INPUT = ("-", "/dev/stdin", "/dev/fd/0")
"""Names, given as text, that stand for standard input."""
MOST_BYTES = 32 << 30
"""What unpacks to more than this is refused, and so is a longer pipe."""
SUSPICIOUS_BYTES = 256 << 20
SUSPICIOUS_RATIO = 200
"""So is what unpacks to more than SUSPICIOUS_BYTES by more than this factor."""
_CHUNK = 1 << 20
_REFUSED = {stat.S_ISSOCK: "a socket", stat.S_ISCHR: "a device", stat.S_ISBLK: "a device"}


@dataclass(frozen=True)
class InputFile:
    """A file that can be read again and again, or the whole content of what can be read once.

    It prints as the name by which errors call it.
    """

    name: str
    ending: str
    """How the name ends, in lower case and without .gz, such as ".csv"; readers may know better."""
    path: Path | None
    """The file, where it is a plain one that is not compressed."""
    content: bytes = b""
    """All of it, where it is not."""
    is_stream: bool = False
    """Whether it came by a pipe or by standard input, whose name says nothing of the format."""

    @classmethod
    def of(cls, path: str | Path | InputFile) -> InputFile:
        """The source at a path; the text "-" is standard input. Directories, sockets and devices are refused.

        What was read already is taken as it is.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a.csv.gz").write_bytes(gzip.compress(b"label,p"))
        ...     source = InputFile.of(Path(folder, "a.csv.gz"))
        >>> source.ending, source.text()
        ('.csv', 'label,p')
        """
        if isinstance(path, InputFile):
            return path
        if path in STANDARD_INPUT:
            return cls._standard_input()
        require_name(path)
        status = os.stat(path)
        _refuse_others(str(path), status)
        with open(path, "rb") as file:
            if stat.S_ISREG(status.st_mode) and file.peek(2)[:2] != _GZIP:
                return cls(str(path), Path(path).suffix.lower(), Path(path))
            return cls._read_once(str(path), Path(path).name.lower(), file, is_stream=stat.S_ISFIFO(status.st_mode))

    @classmethod
    def _standard_input(cls) -> InputFile:
        name = "standard input"
        if sys.stdin is None:
            raise OSError(errno.EBADF, "is closed", name)
        with suppress(io.UnsupportedOperation):  # a notebook or a test has put something else in its place
            _refuse_others(name, os.fstat(sys.stdin.fileno()))
        return cls._read_once(name, "", sys.stdin.buffer, is_stream=True)

    @classmethod
    def _read_once(cls, name: str, called: str, file: IO[bytes], *, is_stream: bool) -> InputFile:
        content = _all_of(name, file, packed=0)
        if content[:2] == _GZIP:
            called = called.removesuffix(".gz")
            content = _unpacked(name, content)
        return cls(name, Path(called).suffix, None, content, is_stream)

    def open(self) -> IO[bytes]:
        """The bytes from their start, as a file."""
        return io.BytesIO(self.content) if self.path is None else self.path.open("rb")

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self.content) if self.path is None else self.path.stat().st_size

    def text(self) -> str:
        """All of it as text, which must be UTF-8."""
        with self.open() as file:
            try:
                return file.read().decode("utf-8-sig")
            except UnicodeDecodeError as reason:
                raise CalibrationInputError(self.name, "must be UTF-8 text", got=str(reason)) from None

    def __str__(self) -> str:
        return self.name


def require_name(path: str | Path) -> None:
    """Refuse what no file can be called: text with a NUL, or with half a character.

    >>> require_name("a\\0b")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: a\\x00b: must be a name that a file can have, got another
    """
    try:
        is_name = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise CalibrationInputError(str(path), "must be a name that a file can have", got="another")


def refuse_bomb(name: str, packed: int, unpacked: int) -> None:
    """Refuse what unpacks to far more than it seems.

    >>> refuse_bomb("a.npz", 1000, 1 << 30)
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: a.npz: must unpack to a reasonable size, got 1,000 bytes that would
    become 1,073,741,824
    """
    if unpacked > MOST_BYTES or (unpacked > SUSPICIOUS_BYTES and unpacked > SUSPICIOUS_RATIO * max(1, packed)):
        got = f"{packed:,} bytes that would become {unpacked:,}"
        raise CalibrationInputError(name, "must unpack to a reasonable size", got=got)


_GZIP = b"\x1f\x8b"


def _refuse_others(name: str, status: os.stat_result) -> None:
    """Refuse what is neither a plain file nor a pipe."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory; name a file in it", name)
    for is_such, words in _REFUSED.items():
        if is_such(status.st_mode):
            raise CalibrationInputError(name, "must be a file or a pipe", got=words)


def _all_of(name: str, file: IO[bytes], packed: int) -> bytes:
    """All bytes of a stream; refused where they are too many, of packed ones also where they are suspiciously many."""
    parts, size = [], 0
    while part := file.read(_CHUNK):
        parts.append(part)
        size += len(part)
        if packed:
            refuse_bomb(name, packed, size)
        elif size > MOST_BYTES:
            raise CalibrationInputError(name, f"must have at most {MOST_BYTES:,} bytes", got="more")
    return b"".join(parts)


def _unpacked(name: str, content: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(content)) as file:
            return _all_of(name, file, packed=len(content))  # type: ignore[arg-type]
    except (OSError, EOFError, zlib.error) as reason:
        raise CalibrationInputError(name, "must be a whole gzip file", got=str(reason)) from None
