"""Files: prediction files as named arrays, read without trust and without pickle."""

from __future__ import annotations

import csv
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.arrays import Array
from calibrant.exceptions import CalibrationInputError

MOST_BYTES = 32 << 30
"""An archive that unpacks to more than this is refused."""
SUSPICIOUS_BYTES = 256 << 20
SUSPICIOUS_RATIO = 200
"""So is one that unpacks to more than SUSPICIOUS_BYTES by more than this factor."""
_MISSING = {"", "na", "n/a", "nan", "null", "none", "inf", "-inf", "+inf", "infinity", "-infinity"}


class Columns(Mapping[str, Array]):
    """The named arrays of a file, each checked when it is asked for: what nobody needs may be as it is."""

    def __init__(self, path: Path, raw: Mapping[str, Any], check: Callable[[str], Array]) -> None:
        self.path, self.raw, self.check = path, raw, check

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, name: str) -> Array:
        if name not in self.raw:
            raise KeyError(name)
        return self.check(name)

    def loose(self, name: str, n: int) -> Array | None:
        """A column of n values as numbers or else as text; None where it is no such column."""
        try:
            array = self[name]
        except CalibrationInputError:
            values = self.raw[name]
            values = values.to_pylist() if hasattr(values, "to_pylist") else values
            if not isinstance(values, list) or any(isinstance(value, (list, dict)) for value in values):
                return None
            array = np.array([str(value) for value in values])
        return array if array.shape == (n,) and array.dtype.kind in "fiubU" else None


def read_arrays(path: Path) -> Columns:
    """The named arrays of a NPZ, NPY, CSV, Parquet or JSONL file; the content decides, then the ending.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "forecasts.csv")
    >>> _ = path.write_text("label,p\\n1,0.9\\n0,0.2\\n")
    >>> {name: array.tolist() for name, array in read_arrays(path).items()}
    {'label': [1, 0], 'p': [0.9, 0.2]}
    >>> folder.cleanup()
    """
    with path.open("rb") as file:  # a missing file, a folder and a lack of permission speak for themselves
        start = file.read(8)
    if not start:
        raise CalibrationInputError(str(path), "must not be empty", got="0 bytes")
    return _reader(start, path)(path)


def _reader(start: bytes, path: Path) -> Callable[[Path], Columns]:
    if start.startswith(b"PK"):
        return Archive
    if start.startswith(b"\x93NUMPY"):
        return _read_npy
    if start.startswith(b"PAR1"):
        return _read_parquet
    if start.startswith(b"\x1f\x8b"):
        raise CalibrationInputError(str(path), "must not be compressed", got="a gzip file", hint="gunzip it first")
    if path.suffix.lower() in (".npz", ".npy", ".parquet"):
        raise CalibrationInputError(str(path), f"must be a {path.suffix[1:]} file", got="other content")
    if path.suffix.lower() in (".jsonl", ".ndjson", ".json"):
        return _read_jsonl
    if path.suffix.lower() in (".csv", ".tsv", ".txt"):
        return _read_csv
    raise CalibrationInputError(
        str(path), "must be NPZ, NPY, CSV, Parquet or JSONL", got=f"the ending {path.suffix or '(none)'!r}"
    )


class Archive(Columns):
    """The arrays of a NPZ file, each read when asked for, none before its size is checked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
        except zipfile.BadZipFile as reason:
            raise CalibrationInputError(str(path), "must be a whole NPZ file", got=str(reason)) from None
        unpacked = sum(member.file_size for member in members)
        packed = max(1, path.stat().st_size)
        if unpacked > MOST_BYTES or (unpacked > SUSPICIOUS_BYTES and unpacked > SUSPICIOUS_RATIO * packed):
            raise CalibrationInputError(
                str(path),
                "must unpack to a reasonable size",
                got=f"{packed:,} bytes that would become {unpacked:,}",
            )
        self.members = {member.filename.removesuffix(".npy"): member for member in members}
        super().__init__(path, self.members, self._read)
        self.shapes = {name: self._shape(name) for name in self.members}

    def loose(self, name: str, n: int) -> Array | None:
        """A column of n values; None where it has another shape, without reading it."""
        return super().loose(name, n) if self.shapes[name] == (n,) else None

    def _read(self, name: str) -> Array:
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.members[name]) as file:
                return np.lib.format.read_array(file, allow_pickle=False)
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as reason:
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
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as reason:
            raise self._broken(name, reason) from None
        if dtype.hasobject:
            raise CalibrationInputError(
                str(self.path),
                "must hold plain arrays",
                got=f"Python objects in {name!r}",
                hint="they would need pickle",
            )
        if math.prod(shape) * dtype.itemsize != there:
            raise CalibrationInputError(
                str(self.path), f"has a header of {name!r} that does not fit its data", got=f"shape {shape}"
            )
        return tuple(shape)

    def _broken(self, name: str, reason: Exception) -> CalibrationInputError:
        return CalibrationInputError(str(self.path), f"has a broken array {name!r}", got=str(reason)[:120])


def _read_npy(path: Path) -> Columns:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as reason:
        raise CalibrationInputError(str(path), "must be a whole NPY file of numbers", got=str(reason)[:120]) from None
    return Columns(path, {"array": array}, lambda name: array)


def _read_csv(path: Path) -> Columns:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = _numbered_lines(path, file)
            header = next(lines, (0, []))[1]
            columns = _columns_of(header, path)
            numbers = []
            for line, row in lines:
                if len(row) != len(header):
                    raise CalibrationInputError(
                        str(path), f"must have {len(header)} values in every row", got=len(row), where=f"line {line}"
                    )
                numbers.append(line)
                for column, text in zip(columns.values(), row, strict=True):
                    column.append(text.strip())
    except UnicodeDecodeError as reason:
        raise CalibrationInputError(str(path), "must be UTF-8 text", got=str(reason)) from None
    if not numbers:
        raise CalibrationInputError(str(path), "must have rows", got="a header only")
    return Columns(path, columns, lambda name: _typed(columns[name], numbers, name, path))


def _numbered_lines(path: Path, file: Any) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of the line they end on; blank lines are passed over."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as reason:
        raise CalibrationInputError(
            str(path), "must be well-formed CSV", got=str(reason), where=f"line {reader.line_num}"
        ) from None


def _columns_of(header: list[str], path: Path) -> dict[str, list[str]]:
    names = [name.strip() for name in header]
    if len(names) == 1 and ";" in names[0]:
        raise CalibrationInputError(
            str(path), "must be separated by commas", got="semicolons", hint="save it with commas and decimal points"
        )
    for name in names:
        if names.count(name) > 1:
            raise CalibrationInputError(str(path), "must name each column once", got=f"{name!r} twice")
    return {name: [] for name in names}


def _typed(column: list[str], lines: list[int], name: str, path: Path) -> Array:
    """Whole numbers, numbers, lists of numbers, or text: what all the values of a column are."""
    for kind in (_whole, float):
        try:
            values = np.array([_number(text, kind) for text in column])
            if np.isfinite(values).all():
                return values
        except (ValueError, OverflowError):
            continue
    if column[0].startswith("["):
        rows = [_json_list(text, line, name, path) for line, text in zip(lines, column, strict=True)]
        return _stacked(rows, lines, name, path)
    _refuse_gaps(column, lines, name, path)
    return np.array(column)


def _number(text: str, kind: Callable[[str], Any]) -> Any:
    if "_" in text or text.lower() in _MISSING:
        raise ValueError(text)
    return kind(text)


def _whole(text: str) -> int:
    value = int(text)
    if abs(value) >= 1 << 63:
        raise ValueError(text)
    return value


def _refuse_gaps(column: list[str], lines: list[int], name: str, path: Path) -> None:
    """A column that is numbers but for some is named with the line of the first that is none."""
    if all("," in text and text.replace(",", "", 1).isdigit() for text in column):
        raise CalibrationInputError(
            str(path), f"column {name!r} must use a decimal point", got=repr(column[0][:40]), where=f"line {lines[0]}"
        )
    numbers = 0
    odd = None
    for line, text in zip(lines, column, strict=True):
        try:
            number = float(_number(text, float))
            if not math.isfinite(number):
                raise ValueError(text)
            numbers += 1
        except ValueError:
            odd = odd or (line, text)
    if odd is not None and numbers and (numbers * 2 > len(column) or odd[1].lower() in _MISSING):
        raise CalibrationInputError(
            str(path),
            f"column {name!r} must have a number in every row",
            got=repr(odd[1][:40]),
            where=f"line {odd[0]}",
            hint="use decimal points" if "," in odd[1] else None,
        )


def _json_list(text: str, line: int, name: str, path: Path) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError as reason:
        raise CalibrationInputError(
            str(path), f"column {name!r} must hold lists of numbers", got=str(reason)[:80], where=f"line {line}"
        ) from None


def _no_constant(token: str) -> Any:
    raise ValueError(f"{token} is no number")


def _read_jsonl(path: Path) -> Columns:
    columns: dict[str, list[Any]] = {}
    numbers: list[int] = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line, text in enumerate(file, start=1):
                if not text.strip():
                    continue
                record = _record(text, line, path)
                for name in record.keys() - columns.keys():
                    columns[name] = [None] * len(numbers)  # not on the lines before
                for name, column in columns.items():
                    column.append(record.get(name))
                numbers.append(line)
    except UnicodeDecodeError as reason:
        raise CalibrationInputError(str(path), "must be UTF-8 text", got=str(reason)) from None
    if not numbers:
        raise CalibrationInputError(str(path), "must have rows", got="none")
    return Columns(path, columns, lambda name: _stacked(columns[name], numbers, name, path))


def _record(text: str, line: int, path: Path) -> dict[str, Any]:
    try:
        record = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique_keys)
    except ValueError as reason:
        hint = "JSONL has one object a line" if line == 1 else None
        raise CalibrationInputError(
            str(path), "must be a JSON object on every line", got=str(reason)[:80], where=f"line {line}", hint=hint
        ) from None
    if not isinstance(record, dict):
        raise CalibrationInputError(
            str(path), "must be a JSON object on every line", got=type(record).__name__, where=f"line {line}"
        )
    return record


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def _read_parquet(path: Path) -> Columns:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise CalibrationInputError(
            str(path), "needs pyarrow to be read", hint="pip install 'calibrant[cli]'"
        ) from None
    try:
        file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
    except (pyarrow.ArrowException, OSError) as reason:
        raise CalibrationInputError(str(path), "must be a whole Parquet file", got=str(reason)[:120]) from None
    groups = []
    for group in range(file.num_row_groups):
        try:
            groups.append(file.read_row_group(group))
        except (pyarrow.ArrowException, OSError) as reason:
            raise CalibrationInputError(
                str(path), "is damaged", got=str(reason)[:120], where=f"row group {group}"
            ) from None
    if not groups or not sum(group.num_rows for group in groups):
        raise CalibrationInputError(str(path), "must have rows", got="none")
    table = pyarrow.concat_tables(groups)
    names = table.column_names
    for name in names:
        if names.count(name) > 1:
            raise CalibrationInputError(str(path), "must name each column once", got=f"{name!r} twice")
    columns = {name: table.column(name) for name in names}
    return Columns(path, columns, lambda name: _from_arrow(columns[name], name, path))


def _from_arrow(column: Any, name: str, path: Path) -> Array:
    import pyarrow

    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise CalibrationInputError(str(path), f"column {name!r} must have no nulls", got="one", where=f"row {row}")
    if not (
        pyarrow.types.is_list(column.type)
        or pyarrow.types.is_fixed_size_list(column.type)
        or pyarrow.types.is_large_list(column.type)
    ):
        array = column.to_numpy()
        if array.dtype.kind == "O" and all(isinstance(value, str) for value in array):
            return array.astype(str)
        if array.dtype.kind not in "fiub":
            raise CalibrationInputError(str(path), f"column {name!r} must be numbers or text", got=str(column.type))
        return array
    lists = column.combine_chunks()
    flat = lists.flatten()
    if flat.null_count:
        raise CalibrationInputError(str(path), f"column {name!r} must have no nulls in its lists", got=flat.null_count)
    width = len(flat) // len(lists)
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    if (lengths != width).any():
        row = int(np.flatnonzero(lengths != lengths[0])[0])
        raise CalibrationInputError(
            str(path),
            f"column {name!r} must have lists of one length",
            got=f"{lengths[row]} after {lengths[0]}",
            where=f"row {row}",
        )
    return flat.to_numpy(zero_copy_only=False).reshape(len(lists), width)


def _stacked(values: list[Any], lines: list[int], name: str, path: Path) -> Array:
    """Rows of JSON values as one array; lists must have one length."""
    first = values[0]
    for line, value in zip(lines, values, strict=True):
        if value is None:
            raise CalibrationInputError(
                str(path), f"{name!r} must have a value on every line", got="none", where=f"line {line}"
            )
        if isinstance(value, list) != isinstance(first, list) or isinstance(value, str) != isinstance(first, str):
            raise CalibrationInputError(
                str(path), f"{name!r} must be of one kind", got=repr(value)[:40], where=f"line {line}"
            )
        if isinstance(first, list) and len(value) != len(first):
            raise CalibrationInputError(
                str(path), f"{name!r} must be lists of {len(first)} numbers", got=len(value), where=f"line {line}"
            )
    try:
        array = np.array(values)
    except ValueError:
        array = np.array([None])
    if array.dtype.kind not in "fiubU":
        raise CalibrationInputError(str(path), f"{name!r} must be numbers or text", got=repr(first)[:40])
    return array
