"""Parts: the files, or stretches of large files, that a scan reads one by one."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from calibrant.door.streams import STANDARD_INPUT, InputFile, require_name
from calibrant.exceptions import CalibrationInputError
from calibrant.files.long_layout import is_long
from calibrant.files.parquet import open_parquet

ENDINGS = (".parquet", ".arrow", ".feather", ".ipc", ".csv", ".tsv", ".jsonl", ".ndjson", ".npz")
"""The files of a folder that are read; .gz may follow."""
LARGE = 256 << 20
"""A Parquet file of more bytes than this is several parts, each of some of its row groups."""


@dataclass(frozen=True)
class Part:
    """A file, or some row groups of a Parquet file, as it was when it was listed."""

    path: str
    size: int
    changed: int
    """When it was last changed, in nanoseconds."""
    labels: str | None = None
    """The NPY file of the labels, where the file is one of forecasts."""
    groups: tuple[int, int] | None = None
    """The first row group, and that after the last; None: all rows."""
    values: tuple[tuple[str, str], ...] = ()
    """Columns that folders named column=value tell, the same in every row."""

    def require_unchanged(self) -> None:
        """Refuse a file that is another than when it was listed: parts of two files would be counted together."""
        status = os.stat(self.path)
        if (status.st_size, status.st_mtime_ns) != (self.size, self.changed):
            raise CalibrationInputError(self.path, "must not change while it is read", got="a change")


def parts(source: str | Path | Sequence[str | Path]) -> list[Part]:
    """The parts of a file, a folder, a pattern such as "data/*.parquet", or of several of these, in order of names.

    Of folders, files whose names end like those of predictions are read, at any depth; names that begin with a dot or
    an underscore are passed over, as other tools do. Two NPY files are labels and forecasts.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.mkdir(f"{folder}/region=north")
    ...     _ = Path(folder, "region=north", "a.csv").write_text("label,p")
    ...     [(Path(part.path).name, part.values) for part in parts(folder)]
    [('a.csv', (('region', 'north'),))]
    """
    sources = [str(source)] if isinstance(source, (str, Path)) else [str(each) for each in source]
    for name in sources:
        require_name(name)
    if len(sources) == 2 and all(name.lower().endswith(".npy") for name in sources):
        return [replace(_part(sources[1]), labels=sources[0])]
    paths = [path for each in sources for path in _files(each)]
    for path in {path for path in paths if paths.count(path) > 1} if len(set(paths)) < len(paths) else ():
        raise CalibrationInputError(path, "must be named once", got="twice")
    if not paths:
        raise CalibrationInputError("source", "must name files", got="none")
    return [part for path in paths for part in _stretches(_part(path))]


def _files(source: str) -> Iterator[str]:
    if os.path.isdir(source):
        names = [str(path) for path in sorted(Path(source).rglob("*")) if _is_read(path.relative_to(source))]
        yield from (name for name in names if os.path.isfile(name))
        if not names:
            raise CalibrationInputError(source, "must have files of predictions", got="none", hint=", ".join(ENDINGS))
    elif os.path.exists(source) or not glob.has_magic(source):
        yield source
    else:
        names = sorted(name for name in glob.glob(source, recursive=True) if os.path.isfile(name))
        if not names:
            raise CalibrationInputError(source, "must match files", got="none")
        yield from names


def _is_read(path: Path) -> bool:
    """Whether a file of a folder is one of predictions, by its name."""
    hidden = any(name.startswith((".", "_")) for name in path.parts)
    return not hidden and path.name.lower().removesuffix(".gz").endswith(ENDINGS)


def _part(path: str) -> Part:
    if path in STANDARD_INPUT:
        raise CalibrationInputError("standard input", "can be read once", hint="save it to a file first")
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise CalibrationInputError(
            path, "must be a file", got="a pipe or device", hint="save its content to a file first"
        )
    pairs = (folder.split("=", 1) for folder in Path(path).parts[:-1] if "=" in folder)
    values = tuple((name, unquote(value)) for name, value in pairs)
    return Part(path, status.st_size, status.st_mtime_ns, values=values)


def _stretches(part: Part) -> list[Part]:
    """The part, or runs of row groups of about the same size where it is a large Parquet file."""
    if part.size <= LARGE or not part.path.lower().endswith(".parquet"):
        return [part]
    try:
        file = open_parquet(InputFile.of(part.path))
    except CalibrationInputError:  # said when it is read
        return [part]
    if is_long(file.schema_arrow.names):  # a row may go on in the next row group
        return [part]
    count = file.num_row_groups
    step = max(1, count * LARGE // part.size)
    return [replace(part, groups=(first, min(first + step, count))) for first in range(0, count, step)] or [part]
