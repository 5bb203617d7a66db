"""CSV and TSV: text of columns, by an explicit schema, so that no parser's guess becomes a number."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from itertools import compress, islice
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import Columns, refuse_twice
from calibrant.files.jsonl import stacked
from calibrant.specification import strict_json
from calibrant.text import restored_cell

MOST_COLUMNS = 100_000
_BLANKS = " \t\xa0"
"""What may stand around a cell without being part of it."""
_NOTHING = {"", "na", "n/a", "nan", "null", "none"}
_MISSING = {*_NOTHING, "inf", "-inf", "+inf", "infinity", "-infinity"}
"""What stands for no number even in a column that might be names."""


def read_csv(source: InputFile) -> Columns:
    """The columns of a CSV file, or of a TSV file by its ending: UTF-8, a header, decimal points."""
    (columns,) = csv_blocks(source)
    return columns


def csv_blocks(source: InputFile, rows: int | None = None) -> Iterator[Columns]:
    """The columns of a CSV file, of so many rows at a time.

    >>> source = InputFile("a.csv", ".csv", None, b"label,p\\n1,0.9\\n0,0.2\\n1,0.6\\n")
    >>> [block["p"].tolist() for block in csv_blocks(source, 2)]
    [[0.9, 0.2], [0.6]]
    """
    try:
        with io.TextIOWrapper(source.open(), "utf-8-sig", newline="") as file:
            lines = _numbered_lines(source, file)
            header = next(lines, (0, []))[1]
            names = _names(header, source)
            first = block = list(islice(lines, rows))
            while block:
                yield _block(names, block, source)
                block = list(islice(lines, rows))
    except UnicodeDecodeError as reason:
        raise CalibrationInputError(str(source), "must be UTF-8 text", got=str(reason)) from None
    if not first:
        raise CalibrationInputError(str(source), "must have rows", got="a header only")


def _block(names: list[str], lines: list[tuple[int, list[str]]], source: InputFile) -> Columns:
    """The columns of some rows, each with the line that it stands on."""
    for line, row in lines:
        if len(row) != len(names):
            raise CalibrationInputError(
                str(source), f"must have {len(names)} values in every row", got=len(row), where=f"line {line}"
            )
    numbers, rows = [line for line, _ in lines], [row for _, row in lines]
    columns = {
        name: [text.strip(_BLANKS) for text in column]
        for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    cells = {name: _Cells(column, numbers, name, source) for name, column in columns.items()}
    return Columns(
        source,
        columns,
        lambda name: cells[name].array(),
        lambda name: cells[name].array(numeric=True),
        lambda name, numeric: cells[name].present(numeric),
        lines=numbers,
    )


class _Cells:
    """The cells of a column as text, with the line that each stands on."""

    def __init__(self, texts: list[str], lines: list[int], name: str, source: InputFile) -> None:
        self.texts, self.lines, self.name, self.source = texts, lines, name, source

    def array(self, *, numeric: bool = False) -> Array:
        """Whole numbers, numbers, lists of numbers, or text unless numbers are needed: what all the cells are."""
        for kind, dtype in ((int, np.int64), (float, np.float64)):
            try:
                values = np.array([_number(text, kind) for text in self.texts], dtype)
            except (ValueError, OverflowError):
                continue
            if np.isfinite(values).all():
                return values
        if numeric and all(text.endswith("%") for text in self.texts):
            return self._percentages().array(numeric=True) / 100
        if _is_list(self.texts[0]):
            return stacked([self._parsed(*cell) for cell in self._cells], self.lines, self.name, self.source)
        self._refuse_gaps(numeric)
        return np.array([restored_cell(text) for text in self.texts])

    def present(self, numeric: bool) -> tuple[Array, list[bool]]:
        """The cells that hold something, and which those are: NA and such are nothing among numbers, and else names."""
        present = [text.lower() not in _NOTHING for text in self.texts]
        values = self._part(present).array(numeric=numeric)
        if values.dtype.kind == "U":
            present = [bool(text) for text in self.texts]
            values = self._part(present).array()
        return values, present

    def _percentages(self) -> _Cells:
        return _Cells([text[:-1].rstrip() for text in self.texts], self.lines, self.name, self.source)

    def _part(self, present: list[bool]) -> _Cells:
        texts, lines = list(compress(self.texts, present)), list(compress(self.lines, present))
        return _Cells(texts, lines, self.name, self.source)

    @property
    def _cells(self) -> Iterator[tuple[int, str]]:
        return zip(self.lines, self.texts, strict=True)

    def _parsed(self, line: int, text: str) -> Any:
        try:
            return strict_json.read(text)
        except ValueError as reason:
            raise CalibrationInputError(
                str(self.source),
                f"column {self.name!r} must hold lists of numbers",
                got=str(reason),
                where=f"line {line}",
            ) from None

    def _refuse_gaps(self, numeric: bool) -> None:
        """Name the first cell that is no number where numbers are needed, or where names are not likely."""
        odd = [(line, text) for line, text in self._cells if not _is_number(text)]
        line, text = odd[0]
        count = len(self.texts) - len(odd)
        if numeric or (count and (2 * count > len(self.texts) or text.lower() in _MISSING)):
            raise CalibrationInputError(
                str(self.source),
                f"column {self.name!r} must have a number in every row",
                got=repr(text),
                where=f"line {line}",
                hint="use a decimal point" if "," in text else None,
            )


def _numbered_lines(source: InputFile, file: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of the line they end on; blank lines are passed over."""
    delimiter = "\t" if source.ending == ".tsv" else ","
    reader = csv.reader(_without_nul(source, file), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as reason:
        raise CalibrationInputError(
            str(source), "must be well-formed CSV", got=str(reason), where=f"line {reader.line_num}"
        ) from None


def _without_nul(source: InputFile, file: Iterable[str]) -> Iterator[str]:
    for line, text in enumerate(file, start=1):
        if "\0" in text:
            raise CalibrationInputError(str(source), "must be text", got="a NUL byte", where=f"line {line}")
        yield text


def _names(header: list[str], source: InputFile) -> list[str]:
    names = [restored_cell(name.strip(_BLANKS)) for name in header]
    if len(names) == 1 and ";" in names[0]:
        raise CalibrationInputError(
            str(source), "must be separated by commas", got="semicolons", hint="save it with commas and decimal points"
        )
    if len(names) > MOST_COLUMNS:
        hint = "save many classes as a matrix in a NPZ file"
        raise CalibrationInputError(
            str(source), f"must have at most {MOST_COLUMNS:,} columns", got=f"{len(names):,}", hint=hint
        )
    refuse_twice(names, source)
    return names


def _number(text: str, kind: Callable[[str], Any]) -> Any:
    """Python also reads 1_0 and the digits of other scripts as numbers; a file that holds them means something else."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return kind(text)


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(_number(text, float)))
    except ValueError:
        return False


def _is_list(text: str) -> bool:
    try:
        return text.startswith("[") and isinstance(strict_json.read(text), list)
    except ValueError:
        return False
