"""Documents: JSON that is read strictly, and seals that tell when it was changed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from calibrant.exceptions import CalibrationInputError

DAMAGED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""What making something of a document may raise where that is not what it should be."""


def parse(text: Any) -> Any:
    """JSON of finite numbers and of objects without a key twice, or a ValueError.

    >>> parse('{"p": 0.5}')
    {'p': 0.5}
    """
    try:
        return json.loads(text, parse_constant=_refuse_number, parse_float=_finite, object_pairs_hook=_unique_keys)
    except RecursionError:
        raise ValueError("brackets within brackets without end") from None


def seal(document: Mapping[str, Any]) -> str:
    """The SHA-256 of a document's content, whatever the order of its keys.

    >>> seal({"a": 1, "b": 2}) == seal({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(document, allow_nan=False, sort_keys=True).encode()).hexdigest()


def require_seal(document: Mapping[str, Any], written: object, hint: str) -> None:
    """Refuse a document that has another seal than the one that was written with it."""
    if written != seal(document):
        expected, got = "must be as it was written", "contents that do not match the seal"
        raise CalibrationInputError("text", expected, got=got, hint=hint)


def require_keys(document: Any, types: Mapping[str, type | tuple[type, ...]], others: tuple[str, ...] = ()) -> None:
    """Raise a ValueError where a document lacks a key, has an unknown one, or another type under one.

    >>> require_keys({"n": "3"}, {"n": int})
    Traceback (most recent call last):
    ValueError: n is '3'
    """
    if not isinstance(document, dict):
        raise ValueError(f"{document!r} is no object")
    for name in [*(types.keys() - document.keys()), *(document.keys() - types.keys() - set(others))]:
        raise ValueError(f"{name!r} is {'unknown' if name in document else 'missing'}")
    for name, kind in types.items():
        value = document[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"{name} is {value!r}")


def _finite(token: str) -> float:
    number = float(token)
    return number if math.isfinite(number) else _refuse_number(token)


def _refuse_number(token: str) -> Any:
    raise ValueError(f"{token} is no number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key stands twice")
    return record
