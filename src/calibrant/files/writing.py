"""Writing: files made beside their name and renamed, so that a name never holds half a file."""

from __future__ import annotations

import csv
import errno
import io
import os
import secrets
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.files.column_names import LABELS
from calibrant.files.columns import MULTILABEL
from calibrant.files.npz import write_arrays
from calibrant.text import no_formula

STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1")
"""Names, given as text, that stand for standard output."""
_RIGHTS = "system.posix_acl_access"
"""Where Linux keeps rights beyond those of owner, group and others."""


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A file that takes its name only when all of it is on the disk.

    Links are followed. A file that is there keeps its owner and its rights, or is left as it is. The text "-" stands
    for standard output. Pipes and devices get the content once it is complete. The OSError of what cannot be written
    names the path.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with whole_file(Path(folder.name, "a.txt")) as file:
    ...     _ = file.write(b"all")
    >>> os.listdir(folder.name)
    ['a.txt']
    >>> folder.cleanup()
    """
    status = check_output(path)
    if path in STANDARD_OUTPUT or (status is not None and not stat.S_ISREG(status.st_mode)):
        content = io.BytesIO()
        yield content
        _write_through(path, content.getvalue())  # a view, left in a traceback, could not be collected
        return
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name[:60]}.{secrets.token_hex(4)}")
    try:
        handle = os.open(beside, _FLAGS, 0o666 if status is None else 0o600)
        with os.fdopen(handle, "wb") as file:
            if status is not None:
                _keep_rights(handle, target, status)
            yield file
            file.flush()
            os.fsync(handle)
        os.replace(beside, target)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError) and error.filename in (None, beside, str(beside)):
            error.filename, error.filename2 = str(path), None
        raise
    _remember(target.parent)


def check_output(path: str | Path) -> os.stat_result | None:
    """Refuse a path that cannot be written to, as far as that can be known; what is there, or None.

    >>> check_output(os.curdir)
    Traceback (most recent call last):
    IsADirectoryError: [Errno 21] is a directory; name a file in it: '.'
    """
    if path in STANDARD_OUTPUT:
        return None
    try:
        status = os.stat(path)
    except FileNotFoundError:
        folder = os.path.dirname(os.path.realpath(path))
        if not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, "is no folder; make it first", folder) from None
        _refuse_without_right(folder)
        return None
    except ValueError:  # a NUL, or half a character
        raise OSError(errno.EINVAL, "is no name that a file can have", str(path)) from None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory; name a file in it", str(path))
    if stat.S_ISSOCK(status.st_mode):
        raise OSError(errno.ENXIO, "is a socket; name a file", str(path))
    _refuse_without_right(path)
    return status


def write_text(path: str | Path, text: str) -> None:
    """Text to a file, whole or not at all.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> write_text(Path(folder.name, "a.txt"), "all")
    >>> Path(folder.name, "a.txt").read_text()
    'all'
    >>> folder.cleanup()
    """
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError:
        raise CalibrationInputError(str(path), "can hold whole characters only", got="half of one") from None
    with whole_file(path) as file:
        file.write(content)


def write_npz(path: str | Path, probabilities: Array, classes: Sequence[str], columns: Mapping[str, Array]) -> None:
    """Arrays `probs` and `classes` (an event: `p`; a confidence: that), and the columns."""
    named = {"probs": probabilities, "classes": np.array(classes)}
    named = named_forecasts(probabilities, classes, columns) if probabilities.ndim == 1 else named
    with whole_file(path) as file:
        write_arrays(file, {**named, **columns})


def write_csv(path: str | Path, probabilities: Array, classes: Sequence[str], columns: Mapping[str, Array]) -> None:
    """The columns, then `p_<class>` (an event: `p`; a confidence: that), every digit."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    forecasts = named_forecasts(probabilities, classes, columns)
    writer.writerow([no_formula(name) for name in (*columns, *forecasts)])
    for index, row in enumerate(np.stack(list(forecasts.values()), axis=1).tolist()):
        writer.writerow([*(_cell(column[index]) for column in columns.values()), *map(repr, row)])
    if "\0" in text.getvalue():
        raise CalibrationInputError(str(path), "cannot hold a NUL as CSV", got="one", hint="write .npz or .parquet")
    write_text(path, text.getvalue())


def labelled(columns: Mapping[str, Array], classes: Sequence[str], *, together: bool) -> Mapping[str, Array]:
    """The columns with independent labels together in one matrix `multilabel`, or each in a column `y_<label>`.

    >>> list(labelled({"multilabel": np.array([[1, 0]])}, ["cat", "dog"], together=False))
    ['y_cat', 'y_dog']
    """
    truth = [f"y_{name}" for name in classes]
    moved = truth if together else [MULTILABEL]
    if not set(moved) <= set(columns) or set(LABELS) & set(columns):
        return columns
    labels = {MULTILABEL: np.column_stack([columns[name] for name in moved])}
    rest = {name: column for name, column in columns.items() if name not in moved}
    return (labels if together else dict(zip(truth, labels[MULTILABEL].T, strict=True))) | rest


def named_forecasts(
    probabilities: Array, classes: Sequence[str], columns: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """The columns of a table of forecasts: `p_<class>` or `p_<label>`, of an event `p`, `confidence` beside `correct`.

    >>> list(named_forecasts(np.array([[.75, .25]]), ["cat", "dog"]))
    ['p_cat', 'p_dog']
    """
    if probabilities.ndim == 1:
        return {"confidence" if "correct" in (columns or {}) else "p": probabilities}
    return {f"p_{name}": column for name, column in zip(classes, probabilities.T, strict=True)}


def _cell(value: Any) -> str:
    """Text that is no formula; a number as it is, so that -1 stays one."""
    return no_formula(value) if isinstance(value, str) else str(value)


_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def _keep_rights(handle: int, old: Path, status: os.stat_result) -> None:
    """Give a new file the owner, group and rights of the old one; refused where that is not allowed."""
    if not hasattr(os, "fchown"):  # Windows has other rights, which a folder hands down
        return
    created = os.fstat(handle)
    if (created.st_uid, created.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(handle, status.st_uid, status.st_gid)
        except PermissionError:
            words = "belongs to another user or group, which a new file would not; write to another name"
            raise PermissionError(errno.EPERM, words) from None
    if hasattr(os, "getxattr"):
        _keep_list_of_rights(handle, old)
    os.fchmod(handle, stat.S_IMODE(status.st_mode))


def _keep_list_of_rights(handle: int, old: Path) -> None:
    """Give a new file the rights of single users that the old one has, and none that the folder hands down."""
    try:
        rights = os.getxattr(old, _RIGHTS)
    except OSError:  # there are none, or this file system has none
        with suppress(OSError):
            os.removexattr(handle, _RIGHTS)
        return
    try:
        os.setxattr(handle, _RIGHTS, rights)
    except OSError as error:  # which names the handle
        raise OSError(error.errno, "has rights of single users, which a new file cannot be given") from None


def _write_through(path: str | Path, content: bytes) -> None:
    """Content to standard output, a pipe or a device."""
    if path in STANDARD_OUTPUT:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "is closed", "standard output")
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0)), "wb") as file:
            file.write(content)
    except OSError as error:
        error.filename = str(path)
        raise


def _refuse_without_right(path: str | Path) -> None:
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _remember(folder: Path) -> None:
    """Flush the folder's own entry, so that the new name survives a power cut; not all systems can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
