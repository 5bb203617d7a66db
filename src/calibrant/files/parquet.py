"""Parquet, by pyarrow: checksums are verified, and damage is named by its row group."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.door.foreign import from_arrow
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import Columns, refuse_twice
from calibrant.files.writing import named_forecasts, whole_file

SEAL = b"calibrant"
"""The key of a file's metadata under which we write a checksum of its columns."""
BROKEN = (OSError, ValueError, LookupError, ArithmeticError, TypeError, MemoryError, RuntimeError)
"""What reading damaged Arrow data may raise; pyarrow's own errors are among these."""


def read_parquet(source: InputFile) -> Columns:
    """The columns of a Parquet file; lists of numbers are rows of a matrix."""
    table = _table(source)
    columns = arrow_columns(table, source)
    written = (table.schema.metadata or {}).get(SEAL)
    if written is not None and written != _checksum(table, source):
        got = "contents that do not match the checksum"
        hint = f"a program that changes the file must drop its metadata {SEAL.decode()!r}"
        raise CalibrationInputError(str(source), "must be as it was written", got=got, hint=hint)
    return columns


def arrow_columns(table: Any, source: InputFile) -> Columns:
    """The columns of an Arrow table; lists of numbers are rows of a matrix.

    >>> import pyarrow
    >>> table = pyarrow.table({"probs": [[.75, .25], [.5, .5]]})
    >>> arrow_columns(table, InputFile("a.parquet", ".parquet", None))["probs"].shape
    (2, 2)
    """
    refuse_twice(table.column_names, source)
    columns = {name: table.column(name) for name in table.column_names}

    def read_present(name: str, _: bool) -> tuple[Array, list[bool]]:
        column = columns[name].combine_chunks()
        nested = hasattr(column, "value_lengths")
        values = column.to_pylist() if column.null_count or (nested and column.flatten().null_count) else []
        present = [value is not None and not (nested and None in value) for value in values] or [True] * len(column)
        return _array(column.filter(pyarrow_of(source).array(present)), name, source), present

    return Columns(
        source, columns, lambda name: _array(columns[name].combine_chunks(), name, source), read_present=read_present
    )


def write_parquet(path: str | Path, probabilities: Array, classes: Sequence[str], columns: Mapping[str, Array]) -> None:
    """The columns, then `p_<class>` (an event: `p`; a confidence: that); checksums are written."""
    pyarrow = pyarrow_of(path)
    forecasts = named_forecasts(probabilities, classes, columns)
    table = pyarrow.table(
        {
            name: pyarrow.array(column if column.ndim == 1 else column.tolist())
            for name, column in {**columns, **forecasts}.items()
        }
    )
    sealed = table.replace_schema_metadata({SEAL: _checksum(table, path)})
    with whole_file(path) as file:
        pyarrow.parquet.write_table(sealed, file, write_page_checksum=True)


def _checksum(table: Any, file: str | Path | InputFile) -> bytes:
    """A checksum of all columns: their names, types, shapes and values."""
    digest = hashlib.sha256()
    for name in table.column_names:
        array = _array(table.column(name).combine_chunks(), name, file)
        digest.update(repr((name, array.dtype.str[1:], array.shape)).encode("utf-8", "replace"))
        plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
        digest.update(plain.reshape(-1).view(np.uint8).data)
    return digest.hexdigest().encode()


def pyarrow_of(file: str | Path | InputFile) -> Any:
    """The package pyarrow, with its Parquet; where it is not installed, the error names the file that needs it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise CalibrationInputError(str(file), "needs pyarrow", hint="pip install 'calibrant[cli]'") from None
    return pyarrow


def open_parquet(source: InputFile) -> Any:
    """A Parquet file whose footer is whole; its pages are compared with their checksums, where they have any."""
    pyarrow = pyarrow_of(source)
    try:
        content = source.path or pyarrow.BufferReader(source.content)
        file = pyarrow.parquet.ParquetFile(content, page_checksum_verification=True)
        file.schema_arrow.names  # noqa: B018 - bytes that are no text fail here
    except BROKEN as reason:
        raise CalibrationInputError(str(source), "must be a whole Parquet file", got=str(reason)) from None
    return file


def refuse_lost_rows(file: Any, source: InputFile) -> None:
    """Refuse a Parquet file whose row groups do not have the rows that the whole file says it has."""
    rows = sum(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))
    if rows != file.metadata.num_rows:
        expected = f"must have {file.metadata.num_rows} rows"
        raise CalibrationInputError(str(source), expected, got=f"{rows} in its row groups")


def _table(source: InputFile) -> Any:
    pyarrow = pyarrow_of(source)
    file = open_parquet(source)
    groups = []
    for group in range(file.num_row_groups):
        try:
            groups.append(file.read_row_group(group))
            groups[-1].validate(full=True)  # text that is none
        except BROKEN as reason:
            got, where = str(reason), f"row group {group}"
            raise CalibrationInputError(str(source), "is damaged", got=got, where=where) from None
    rows = sum(group.num_rows for group in groups)
    if rows != file.metadata.num_rows:
        raise CalibrationInputError(str(source), f"must have {file.metadata.num_rows} rows", got=f"{rows}")
    if not rows:
        raise CalibrationInputError(str(source), "must have rows", got="none")
    return pyarrow.concat_tables(groups)


def _array(column: Any, name: str, source: str | Path | InputFile) -> Array:
    _refuse_nulls(column, 1, name, source)
    if hasattr(column, "value_lengths"):
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        uneven = np.flatnonzero(lengths != lengths[0])
        if uneven.size:
            raise CalibrationInputError(
                str(source),
                f"column {name!r} must have lists of one length",
                got=f"{lengths[uneven[0]]} after {lengths[0]}",
                where=f"row {uneven[0]}",
            )
        _refuse_nulls(column.flatten(), lengths[0], name, source)
    array = np.asarray(from_arrow(column))
    if array.dtype.kind == "O" and all(isinstance(value, str) for value in array.flat):
        return array.astype(str)
    if array.dtype.kind not in "fiubU":
        raise CalibrationInputError(str(source), f"column {name!r} must be numbers or text", got=str(column.type))
    return array


def _refuse_nulls(values: Any, width: int, name: str, source: str | Path | InputFile) -> None:
    """Name the row of the first null, where each row has so many of the values."""
    if values.null_count:
        first = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
        raise CalibrationInputError(
            str(source), f"column {name!r} must have no nulls", got="one", where=f"row {first // width}"
        )
