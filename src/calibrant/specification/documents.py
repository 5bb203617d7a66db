"""Documents: what JSON must hold, and seals that tell when it was changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from calibrant.exceptions import CalibrationInputError


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
