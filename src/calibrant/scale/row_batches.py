"""Batches: the rows of a part, as many at a time as little memory holds, and where in the file they stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.files.columns import Columns
from calibrant.files.csv import csv_blocks
from calibrant.files.formats import read_arrays
from calibrant.files.long_layout import is_long, row_starts
from calibrant.files.parquet import BROKEN, arrow_columns, open_parquet, pyarrow_of, refuse_lost_rows
from calibrant.scale.part_files import Part

NUMBERS = 1 << 21
"""About how many numbers are read at once."""
MAPPED_NUMBERS = 1 << 24
"""About how many numbers of a memory map are taken at once: they are not copied."""
FIRST_NUMBERS = 1 << 16
"""About how many come first, so that a look at the first rows of a memory map is short."""
MOST_ROWS = 1 << 18
CSV_ROWS = 1 << 14
_STREAMED = (".csv", ".tsv", ".txt")

Batch = tuple[str, Columns]
"""Where rows stand, in words, and their columns."""


def batches(part: Part, names: Sequence[str] | None = None, forecasts: str = "probs") -> Iterator[Batch]:
    """The rows of a part, batch by batch, with some columns or all; `forecasts` is what a NPY file of them is called.

    Damage is refused with the file, the row group or record batch, and the reason.

    >>> import pathlib, tempfile
    >>> from calibrant.scale.part_files import parts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.csv").write_text("label,p\\n1,0.9\\n0,0.2\\n")
    ...     [(place, columns["p"].tolist()) for place, columns in batches(*parts(folder))]
    [('rows 0 on', [0.9, 0.2])]
    """
    part.require_unchanged()
    return _whole_rows(_lines(part, names, forecasts))


def _lines(part: Part, names: Sequence[str] | None, forecasts: str) -> Iterator[Batch]:
    if part.labels is not None:
        return _of_pair(part, forecasts)
    source = InputFile.of(part.path)
    with source.open() as file:
        start = file.read(8)
    if start.startswith(b"PAR1"):
        return _of_parquet(part, source, names)
    if start.startswith(b"ARROW1") or source.ending in (".arrow", ".ipc", ".feather"):
        return _of_arrow(part, source, names)
    if source.ending in _STREAMED:
        return _of_csv(part, source, names)
    arrays = read_arrays(part.path)
    if arrays.source.ending == ".npy":
        hint = "give two NPY files and no others: labels.npy forecasts.npy"
        raise CalibrationInputError(str(source), "needs its labels", got="one NPY file", hint=hint)
    return iter([("", arrays)])


def _whole_rows(every: Iterator[Batch]) -> Iterator[Batch]:
    """The batches; those of the long layout begin and end with whole rows, whose last lines may come with the next."""
    held: list[Columns] = []
    place = ""
    for place, arrays in every:
        if not is_long(arrays):
            yield place, arrays
            continue
        lines, before = _joined([*held, arrays]), len(held[0]["row"]) if held else 0
        last = int(row_starts(lines["row"])[-1])
        held = [_joined([lines] if last < before else [arrays], slice(last - before * (last >= before), None))]
        if last:
            yield place, _joined([lines], slice(0, last))
    for rest in held:
        yield place, rest


def _joined(parts: Sequence[Columns], lines: slice = slice(None)) -> Columns:
    """Some lines of columns one behind the other, each read when it is asked for."""

    def read(name: str) -> Array:
        return np.concatenate([part[name] for part in parts])[lines]

    return Columns(parts[0].source, dict.fromkeys(parts[0]), read)


def rows_of(part: Part) -> int | None:
    """How many rows a part says that it has; None where that is not known without reading it."""
    try:
        file = open_parquet(InputFile.of(part.path))
    except (CalibrationInputError, OSError):
        return None
    return sum(file.metadata.row_group(group).num_rows for group in _row_groups(part, file))


def _of_parquet(part: Part, source: InputFile, names: Sequence[str] | None) -> Iterator[Batch]:
    file = open_parquet(source)
    refuse_lost_rows(file, source)
    wanted = columns_read(file.schema_arrow.names, part, source, names)
    size = 0
    for group in _row_groups(part, file):
        rows, first = file.metadata.row_group(group).num_rows, 0
        with _named(source, f"row group {group}"):
            size = size or _batch_rows(file, group, wanted)
            read = iter(file.iter_batches(size or 1, row_groups=[group], columns=wanted))
        while True:
            with _named(source, f"row group {group}"):
                batch = next(read, None)
                if batch is None:
                    break
                batch.validate(full=True)  # text that is none
            if not batch.num_rows:
                continue
            place = f"row group {group}, rows {first} to {first + batch.num_rows - 1}"
            yield place, _table_columns(batch, wanted, source)
            first += batch.num_rows
        if first != rows:
            where = f"row group {group}"
            raise CalibrationInputError(str(source), f"must have {rows} rows", got=first, where=where)


def _row_groups(part: Part, file: Any) -> range:
    return range(*part.groups) if part.groups is not None else range(file.num_row_groups)


def _batch_rows(file: Any, group: int, wanted: Sequence[str]) -> int:
    """How many rows have about `NUMBERS` numbers: lists have several a row, as the first row shows; 0 without any row.

    What the footer says of columns is not asked: where it is damaged, pyarrow ends the process.
    """
    numbers = len(wanted)
    if any(hasattr(file.schema_arrow.field(name).type, "value_type") for name in wanted):
        first = next(iter(file.iter_batches(1, row_groups=[group], columns=wanted)), None)
        if first is None or not first.num_rows:
            return 0
        numbers = sum(map(_numbers, first.columns))
    return int(np.clip(NUMBERS // max(1, numbers), 1, MOST_ROWS))


def _numbers(column: Any) -> int:
    """How many numbers a column has, those in lists counted one by one."""
    return len(column.flatten()) if hasattr(column, "value_lengths") else len(column)


def _of_arrow(part: Part, source: InputFile, names: Sequence[str] | None) -> Iterator[Batch]:
    pyarrow = pyarrow_of(source)
    with _named(source, "its start"):
        content = pyarrow.memory_map(part.path) if source.path is not None else pyarrow.BufferReader(source.content)
        is_file = content.read(6) == b"ARROW1"
        content.seek(0)
        reader = pyarrow.ipc.open_file(content) if is_file else pyarrow.ipc.open_stream(content)
        wanted = columns_read(reader.schema.names, part, source, names)
    for number in range(reader.num_record_batches if is_file else 1 << 62):
        with _named(source, f"record batch {number}"):
            try:
                batch = reader.get_batch(number) if is_file else reader.read_next_batch()
            except StopIteration:
                return
            batch = batch.select(wanted)
            batch.validate(full=True)
        for first in range(0, batch.num_rows, rows := _slice_rows(batch)):
            some = batch.slice(first, rows)
            place = f"record batch {number}, rows {first} to {first + some.num_rows - 1}"
            yield place, _table_columns(some, wanted, source)


def _slice_rows(batch: Any) -> int:
    """How many rows of a record batch have about `NUMBERS` numbers, by their bytes."""
    return int(np.clip(8 * NUMBERS * batch.num_rows // max(1, batch.nbytes), 1, MOST_ROWS))


def _of_csv(part: Part, source: InputFile, names: Sequence[str] | None) -> Iterator[Batch]:
    first, shapes = 0, dict[str, str]()
    for block in csv_blocks(source, CSV_ROWS):
        wanted = columns_read(list(block), part, source, names)
        for name in wanted if names is not None else ():
            shape = "text" if block[name].dtype.kind == "U" else "numbers"
            if shapes.setdefault(name, shape) != shape:
                where = f"rows {first} on"
                expected = f"column {name!r} must be of one kind throughout"
                raise CalibrationInputError(str(source), expected, got=f"{shape} after {shapes[name]}", where=where)
        raw = {name: block.raw[name] for name in wanted}
        yield (
            f"rows {first} on",
            Columns(source, raw, block.read, block.read_numbers, block.read_present, lines=block.lines),
        )
        first += CSV_ROWS


def _of_pair(part: Part, name: str) -> Iterator[Batch]:
    forecasts, labels = (read_arrays(str(path)) for path in (part.path, part.labels))
    for arrays in (forecasts, labels):
        if set(arrays) != {"array"}:
            raise CalibrationInputError(str(arrays.source), "of a pair must be a NPY file", got="another kind")
    values, truth = forecasts["array"], labels["array"]
    if truth.shape[:1] != values.shape[:1]:
        raise CalibrationInputError(
            str(labels.source), f"must have {len(values)} rows", got=len(truth), hint=f"as {forecasts.source} has"
        )
    wide = max(1, values.size // max(1, len(values)))
    few, many = (min(max(1, numbers // wide), MOST_ROWS) for numbers in (FIRST_NUMBERS, MAPPED_NUMBERS))
    for first, last in pairwise([0, *range(few, len(values), many), len(values)] if len(values) else []):
        raw = {"label": truth[first:last], name: values[first:last]}
        yield f"rows {first} to {last - 1}", Columns(forecasts.source, raw, raw.__getitem__)


def columns_read(there: Sequence[str], part: Part, source: InputFile, names: Sequence[str] | None) -> list[str]:
    """The columns to read, of those that are there."""
    if names is None:
        return list(there)
    told = {name for name, _ in part.values}
    for name in names:
        if name not in there and name not in told:
            raise CalibrationInputError(str(source), "lacks a column", got=repr(name), hint=nearest(name, there))
    wide = [
        f"{stem}_" for stem in ("p", "y", "class", "prob") if sum(name.startswith(f"{stem}_") for name in names) > 1
    ]
    for name in set(there) - set(names):
        if name.startswith(tuple(wide)):
            raise CalibrationInputError(str(source), "must have the columns of the first file", got=f"{name!r} more")
    return [name for name in names if name in there]


def _table_columns(batch: Any, wanted: list[str], source: InputFile) -> Columns:
    """The columns of a record batch in the order in which they are wanted, whatever the file's own is."""
    import pyarrow

    return arrow_columns(pyarrow.Table.from_batches([batch.select(wanted)]), source)


@contextmanager
def _named(source: InputFile, place: str) -> Iterator[None]:
    """What pyarrow cannot read is said of the file and the place."""
    try:
        yield
    except CalibrationInputError:
        raise
    except BROKEN as reason:
        raise CalibrationInputError(str(source), "is damaged", got=str(reason), where=place) from None
