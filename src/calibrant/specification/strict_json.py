"""Strict JSON: finite numbers, each key once, whole characters, no deep nesting; anything else is a ValueError."""

from __future__ import annotations

import json
import math
from typing import Any

MOST_DEPTH = 200
"""Lists and objects that may lie in each other."""
_TOO_DEEP = f"more than {MOST_DEPTH} lists or objects in each other"
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What code raises that takes a document for what it is not."""


def read(text: str | bytes) -> Any:
    """What JSON says, without anything that later code would stumble over.

    >>> read('{"a": [1, 2.5, "b"]}')
    {'a': [1, 2.5, 'b']}
    >>> read("[NaN]")
    Traceback (most recent call last):
    ValueError: NaN is no number
    """
    try:
        document = json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    _refuse_depth(document)
    if "\\u" in text if isinstance(text, str) else b"\\u" in text:
        _refuse_halves(document)
    return document


def _finite(token: str) -> float:
    number = float(token)
    return number if math.isfinite(number) else _refuse(token)


def _refuse(token: str) -> Any:
    raise ValueError(f"{token} is no number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key stands twice")
    return record


def _refuse_depth(document: Any) -> None:
    layer, depth = [document], 0
    while layer := [part for container in layer for part in _parts(container) if isinstance(part, (list, dict))]:
        depth += 1
        if depth >= MOST_DEPTH:
            raise ValueError(_TOO_DEEP)


def _parts(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container if isinstance(container, list) else ()


def _refuse_halves(document: Any) -> None:
    """Refuse text with half a character, which JSON can spell but no file can hold."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("half a character (a lone surrogate)") from None
