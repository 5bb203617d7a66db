"""Packing: frozen dataclasses of arrays as bytes, one form for each content, and checked before they are believed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import types
from collections.abc import Iterator, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from calibrant.exceptions import CalibrationInputError
from calibrant.specification.strict_json import MALFORMED

MAGIC = b"calibrant summary\x00"
"""How the bytes begin: what they are, and in the last byte the version of their format."""
WHOLE = ("u1", "i1", "u2", "i2", "u4", "i4", "i8")
"""Types of whole numbers as they are written: the first that holds them all. In memory they are int64."""
REAL = ("f4", "f8")
SMALLEST = 1 << 24
"""Shapes without entries may still span so much; others no more than the bytes there are."""
_LENGTH, _DIGEST = 8, 32


def packed(thing: Any, magic: bytes = MAGIC) -> bytes:
    """Magic, length of the header, header in JSON, arrays, SHA-256 of all before it."""
    arrays: list[NDArray[Any]] = []
    try:
        header = json.dumps(_written(thing, arrays), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as reason:
        raise CalibrationInputError("summary", "must hold arrays, totals, numbers and text", got=str(reason)) from None
    body = b"".join([magic, len(header).to_bytes(_LENGTH, "little"), header, *(array.tobytes() for array in arrays)])
    return body + hashlib.sha256(body).digest()


def unpacked(data: Any, kinds: Mapping[str, type], magic: bytes = MAGIC) -> Any:
    """What was packed, as one of these dataclasses by name; anything else is refused before memory is taken for it.

    >>> import calibrant as cal
    >>> unpacked(packed(cal.ECE.summarise([1], [.9]))[:-1], {})
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: data: must be the bytes of a summary, got damaged ones
    """
    what = magic[:-1].decode().removeprefix("calibrant ")
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise refusal(type(data).__name__, what)
    body, digest = bytes(data[:-_DIGEST]), bytes(data[-_DIGEST:])
    if body[: len(magic) - 1] != magic[:-1]:
        raise refusal("something else", what)
    if hashlib.sha256(body).digest() != digest:
        raise refusal("damaged ones", what)
    if body[: len(magic)] != magic:
        raise refusal(f"format version {body[len(magic) - 1]}", what, "read them with a newer calibrant")
    start = len(magic) + _LENGTH
    stop = start + int.from_bytes(body[len(magic) : start], "little")
    try:
        thing = _Unpacking(body, stop, kinds).read(json.loads(body[start:stop])).canonical()
        same = packed(thing, magic) == body + digest
        fault = next(thing.faults(), None) if same else "another form of their content"
    except MALFORMED as reason:
        fault = str(reason) or type(reason).__name__
    if fault is not None:
        raise refusal(fault, what)
    return thing


def refusal(got: str, what: str = "summary", hint: str | None = None) -> CalibrationInputError:
    """The error of bytes that are no summary, or none of what else was asked for.

    >>> print(refusal("something else"))
    data: must be the bytes of a summary, got something else
    """
    return CalibrationInputError("data", f"must be the bytes of a {what}", got=got, hint=hint)


def misshapen(thing: Any, axes: Mapping[str, str]) -> Iterator[str]:
    """The fields whose shapes do not agree with the letters of their axes: equal letters, equal lengths.

    >>> from calibrant.kernels.totals import Totals
    >>> list(misshapen(Totals.zeros((2, 3)), {"hi": "ab", "lo": "ba"}))
    ['lo']
    """
    lengths: dict[str, int] = {}
    for name, letters in axes.items():
        shape = getattr(getattr(thing, name), "shape", None)
        if shape is not None and (
            len(shape) != len(letters)
            or any(lengths.setdefault(letter, length) != length for letter, length in zip(letters, shape, strict=True))
        ):
            yield name


def _written(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """A value as JSON holds it; arrays are put aside, and only their types and shapes stay."""
    if isinstance(value, np.ndarray):
        arrays.append(_plain(value))
        return {"array": arrays[-1].dtype.str[1:], "shape": list(value.shape)}
    if dataclasses.is_dataclass(value):
        fields = {field.name: _written(getattr(value, field.name), arrays) for field in dataclasses.fields(value)}
        return {type(value).__name__: fields}
    return [_written(each, arrays) for each in value] if isinstance(value, tuple) else value


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """An array in the one form of its content: little-endian, without -0.0, whole numbers in the narrowest type."""
    if array.dtype.kind in "iu":
        low, high = int(array.min(initial=0)), int(array.max(initial=0))
        fitting = (each for each in WHOLE if np.iinfo(each).min <= low and high <= np.iinfo(each).max)
        return array.astype(f"<{next(fitting)}", order="C")
    if array.dtype.kind == "f":
        array = np.where(array == array, array + array.dtype.type(0), array.dtype.type(np.nan))
    return array.astype(array.dtype.newbyteorder("<"), order="C")


class _Unpacking:
    """Arrays are taken from the bytes in the order in which the header names them."""

    def __init__(self, body: bytes, place: int, kinds: Mapping[str, type]) -> None:
        self.body, self.place, self.kinds = body, place, kinds

    def read(self, document: Any) -> Any:
        thing = self._value(document)
        if self.place != len(self.body):
            raise ValueError("bytes are left over")
        return thing

    def _value(self, document: Any) -> Any:
        if isinstance(document, list):
            return tuple(map(self._value, document))
        if not isinstance(document, dict):
            return document
        if "array" in document:
            return self._array(document["array"], document["shape"])
        ((name, fields),) = document.items()
        kind = self.kinds[name]
        hints = get_type_hints(kind, localns=dict(self.kinds))
        values = {field: self._value(fields[field]) for field in (each.name for each in dataclasses.fields(kind))}
        for field, value in values.items():
            if not _fits(value, hints[field]):
                raise TypeError(f"{field} of {name}")
        return kind(**values)

    def _array(self, letters: str, shape: list[int]) -> NDArray[Any]:
        if letters not in (*WHOLE, *REAL, "b1") or len(shape) > 3 or any(type(length) is not int for length in shape):
            raise TypeError(f"an array of {letters}")
        written = np.dtype(letters).newbyteorder("<")
        size = math.prod(shape)
        start, self.place = self.place, self.place + size * written.itemsize
        span = math.prod(length or 1 for length in shape)
        if min(shape, default=0) < 0 or self.place > len(self.body):
            raise ValueError("an array that is longer than the bytes")
        if span > max(SMALLEST, len(self.body)):
            raise ValueError("an empty array of a shape that no data have")
        array = np.frombuffer(self.body, "u1" if letters == "b1" else written, size, start).reshape(shape)
        memory = np.int64 if letters in WHOLE else bool if letters == "b1" else written.newbyteorder("=")
        return array.astype(memory)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that its field declares."""
    parts = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if get_origin(hint) is tuple and isinstance(value, tuple):
        if parts[-1] is Ellipsis:
            return all(_fits(each, parts[0]) for each in value)
        return len(value) == len(parts) and all(map(_fits, value, parts))
    if get_origin(hint) is np.ndarray and isinstance(value, np.ndarray):
        (scalar,) = get_args(parts[1])
        return scalar is Any or value.dtype == scalar
    return type(value) is hint or (dataclasses.is_dataclass(hint) and isinstance(value, hint))  # type: ignore[arg-type]
