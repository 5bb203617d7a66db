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
from calibrant.specification.bit_packing import TOGETHER, as_bits, from_bits
from calibrant.specification.strict_json import MALFORMED

MAGIC = b"calibrant summary\x00"
"""How the bytes begin: what they are, and in the last byte the version of their format."""
WHOLE = {"u": np.int64, "i": np.int64, "b": np.bool_}
"""Whole numbers as they are written, in bits: from 0 on, of both signs (0, -1, 1, -2, ... counted up), or 0 and 1."""
REAL = ("f4", "f8")
SMALLEST = 1 << 24
"""Shapes without entries may still span so much; others no more than the bytes there are."""
_LENGTH, _DIGEST = 8, 32
_REST = (1 << 63) - 1


def packed(thing: Any, magic: bytes = MAGIC) -> bytes:
    """Magic, length of the header, header in JSON, arrays, SHA-256 of all before it."""
    arrays: list[bytes] = []
    try:
        header = json.dumps(_written(thing, arrays), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as reason:
        raise CalibrationInputError("summary", "must hold arrays, totals, numbers and text", got=str(reason)) from None
    body = b"".join([magic, len(header).to_bytes(_LENGTH, "little"), header, *arrays])
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


def plain_fields(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass, by name.

    >>> from calibrant.kernels.precision import Precision
    >>> plain_fields(Precision(24))
    {'bits': 24, 'summed': False}
    """
    return {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}


def _written(value: Any, arrays: list[bytes]) -> Any:
    """A value as JSON holds it; arrays are put aside, and only their types and shapes stay."""
    if isinstance(value, np.ndarray):
        letters, data = _plain(value)
        arrays.append(data)
        return {"array": letters, "shape": list(value.shape)}
    if dataclasses.is_dataclass(value):
        fields = value.stored() if hasattr(value, "stored") else plain_fields(value)
        return {type(value).__name__: {name: _written(each, arrays) for name, each in fields.items()}}
    return [_written(each, arrays) for each in value] if isinstance(value, tuple) else value


def _plain(array: NDArray[Any]) -> tuple[str, bytes]:
    """The type and the bytes of an array in the one form of its content: little-endian, without -0.0."""
    if array.dtype.kind == "f":
        array = np.where(array == array, array + array.dtype.type(0), array.dtype.type(np.nan))
        return array.dtype.str[1:], array.astype(array.dtype.newbyteorder("<"), order="C").tobytes()
    whole = array.astype(np.int64).ravel()
    if whole.min(initial=0) < 0:
        return "i", as_bits(((whole << 1) ^ (whole >> 63)).view(np.uint64))
    return "b" if array.dtype.kind == "b" else "u", as_bits(whole.view(np.uint64))


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
        return kind.restored(values) if hasattr(kind, "restored") else kind(**values)

    def _array(self, letters: str, shape: list[int]) -> NDArray[Any]:
        if letters not in (*WHOLE, *REAL) or len(shape) > 3 or any(type(length) is not int for length in shape):
            raise TypeError(f"an array of {letters}")
        size, span = math.prod(shape), math.prod(length or 1 for length in shape)
        if min(shape, default=0) < 0 or size > TOGETHER * len(self.body):
            raise ValueError("an array that is longer than the bytes")
        if span > max(SMALLEST, TOGETHER * len(self.body)):
            raise ValueError("an empty array of a shape that no data have")
        if letters in WHOLE:
            numbers, self.place = from_bits(self.body, self.place, size)
            whole = numbers.view(np.int64)
            whole = (whole >> 1) & _REST ^ -(whole & 1) if letters == "i" else whole
            return whole.astype(WHOLE[letters]).reshape(shape)
        written = np.dtype(letters).newbyteorder("<")
        start, self.place = self.place, self.place + size * written.itemsize
        if self.place > len(self.body):
            raise ValueError("an array that is longer than the bytes")
        return np.frombuffer(self.body, written, size, start).reshape(shape).astype(written.newbyteorder("="))


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that its field declares."""
    hint = _without_alias(hint)
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


def _without_alias(hint: Any) -> Any:
    """What an alias with parameters stands for; `NDArray` is one from NumPy 2.5 on."""
    meaning = getattr(get_origin(hint), "__value__", None)
    return hint if meaning is None else meaning[get_args(hint)]
