"""JSONL, one JSON object a line, and JSON, a list of them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from itertools import compress
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.door.streams import InputFile
from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import Columns
from calibrant.files.inspect_logs import columns_of
from calibrant.specification import strict_json


def read_jsonl(source: InputFile) -> Columns:
    """The keys of a JSONL file as columns; a key may be missing on lines of a column that nobody asks for."""
    try:
        with io.TextIOWrapper(source.open(), "utf-8-sig") as file:
            lines = ((number, text) for number, text in enumerate(file, start=1) if text.strip())
            return tabulated(((number, _record(text, number, source)) for number, text in lines), source)
    except UnicodeDecodeError as reason:
        raise CalibrationInputError(str(source), "must be UTF-8 text", got=str(reason)) from None


def read_json(source: InputFile) -> Columns:
    """The columns of a JSON file: a list of objects, one object a line, or a log of Inspect."""
    try:
        with io.TextIOWrapper(source.open(), "utf-8-sig") as file:
            text = file.read()
    except UnicodeDecodeError as reason:
        raise CalibrationInputError(str(source), "must be UTF-8 text", got=str(reason)) from None
    try:
        document = strict_json.read(text)
    except ValueError:
        return read_jsonl(source)
    samples = document.get("samples") if isinstance(document, dict) and "eval" in document else None
    if isinstance(samples, list) and all(isinstance(sample, dict) for sample in samples):
        return columns_of(samples, source)
    records = document if isinstance(document, list) else [document]
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            expected, got = "must be a list of objects, or an object on every line", type(record).__name__
            raise CalibrationInputError(str(source), expected, got=got, where=f"item {number}")
    return tabulated(enumerate(records), source, of="item")


def tabulated(records: Iterable[tuple[int, dict[str, Any]]], source: InputFile, *, of: str = "line") -> Columns:
    """Records, with the line that each stands on, or the item of a list that it is, as columns."""
    columns: dict[str, list[Any]] = {}
    numbers: list[int] = []
    for line, record in records:
        for name in record:
            columns.setdefault(name, [None] * len(numbers))  # not on the lines before
        for name, column in columns.items():
            column.append(record.get(name))
        numbers.append(line)
    if not numbers:
        raise CalibrationInputError(str(source), "must have rows", got="none")

    def read_present(name: str, _: bool) -> tuple[Array, list[bool]]:
        present = [_is_whole(value) for value in columns[name]]
        kept, lines = (list(compress(values, present)) for values in (columns[name], numbers))
        return stacked(kept, lines, name, source, of=of), present

    return Columns(
        source,
        columns,
        lambda name: stacked(columns[name], numbers, name, source, of=of),
        read_present=read_present,
        lines=numbers if of == "line" else None,
    )


def stacked(values: list[Any], lines: list[int], name: str, source: InputFile, *, of: str = "line") -> Array:
    """Numbers, text, or lists of one length of either, one a line, as one array."""
    try:
        array = np.array(values)
    except ValueError:  # lists of different lengths
        array = np.array(None)
    plain = array.dtype.kind in "fiub" and array.ndim in (1, 2)
    if plain or (array.dtype.kind == "U" and {_kind(value) for value in values} in ({"text"}, {"list of text"})):
        return array
    for line, value in zip(lines, values, strict=True):
        fault = _fault(value, values[0])
        if fault is not None:
            raise CalibrationInputError(str(source), f"{name!r} must {fault[0]}", got=fault[1], where=f"{of} {line}")
    raise CalibrationInputError(str(source), f"{name!r} must be numbers or text", got=repr(values[0]))


def _is_whole(value: Any) -> bool:
    """Whether there is a value, and no part of it is missing."""
    return value is not None and not (isinstance(value, list) and None in value)


def _fault(value: Any, first: Any) -> tuple[str, object] | None:
    """What a value fails to be, beside the first one, and what it is; None where it fails nothing."""
    if value is None:
        return "have a value on every line", "none"
    if _kind(value) is None:
        return "be numbers, text or lists of numbers or of text", repr(value)
    if _kind(value) != _kind(first):
        return "be of one kind", repr(value)
    if isinstance(value, list) and len(value) != len(first):
        return f"be lists of {len(first)} {'numbers' if _kind(first) == 'list of numbers' else 'texts'}", len(value)
    return None


def _kind(value: Any) -> str | None:
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        kinds = {_kind(item) for item in value}
        return "list of numbers" if kinds <= {"number"} else "list of text" if kinds == {"text"} else None
    return "number" if isinstance(value, (int, float)) else None


def _record(text: str, line: int, source: InputFile) -> dict[str, Any]:
    try:
        record = strict_json.read(text.rstrip())
    except ValueError as reason:
        hint = "JSONL has one object a line" if line == 1 else None
        got = str(reason)
        if isinstance(reason, json.JSONDecodeError):  # whose own line is always 1
            got = f"{reason.msg} (character {reason.colno})"
        raise CalibrationInputError(
            str(source), "must be a JSON object on every line", got=got, where=f"line {line}", hint=hint
        ) from None
    if not isinstance(record, dict):
        raise CalibrationInputError(
            str(source), "must be a JSON object on every line", got=type(record).__name__, where=f"line {line}"
        )
    return record
