"""Encoding: metrics and their pieces as JSON, so that a number can travel with how it was made."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.specification import catalogue, strict_json
from calibrant.specification.facts import SLOTS, facts_of
from calibrant.specification.naming import is_selection, qualified, written_fields


def encode(piece: Any) -> Any:
    """A piece as plain JSON values: {"piece": name, field: value}; a function as its name.

    A piece that is not calibrant's own goes by its qualified name; one that is called like a piece of calibrant is
    refused, since it would come back as that.

    >>> import calibrant as cal
    >>> encode(cal.EqualWidth(10))
    {'piece': 'EqualWidth', 'n_bins': 10, 'closed': 'right'}
    """
    if is_selection(piece):
        return _encode_selection(piece.written())
    if dataclasses.is_dataclass(piece) and not isinstance(piece, type):
        fields = {name: encode(value) for name, value in written_fields(piece).items()}
        return {"piece": _written_name(type(piece)), **_apart_from_tags(fields)}
    if callable(piece):
        if not hasattr(piece, "__name__"):
            hint = "define it with def, or as a frozen dataclass"
            raise CalibrationInputError(
                "specification", "needs pieces that have a name", got=type(piece).__name__, hint=hint
            )
        return {"function": _written_name(piece)}
    if isinstance(piece, (tuple, list)):
        return [encode(item) for item in piece]
    if isinstance(piece, float):
        return number(piece)
    if isinstance(piece, str) and piece in _NUMBERS:
        return {"text": piece}
    if piece is None or isinstance(piece, (bool, int, str)):
        return piece
    if hasattr(piece, "item"):
        return encode(piece.item())
    raise CalibrationInputError("specification", "must hold pieces, numbers and names", got=type(piece).__name__)


def decode(text: Any, pieces: Mapping[str, Any]) -> Any:
    """The piece that `encode` wrote; foreign ones are looked up in `pieces`, all others among calibrant's names."""
    if isinstance(text, list):
        return tuple(decode(item, pieces) for item in text)
    if not isinstance(text, dict):
        return float(text) if text in _NUMBERS else text
    if text.keys() == {"text"}:
        return text["text"]
    if "function" in text:
        return _look_up(text["function"], pieces)
    if "select" in text and "piece" not in text:
        return _decode_selection(text, pieces)
    fields = {name: decode(value, pieces) for name, value in text.items() if name != "piece"}
    piece = _look_up(text.get("piece"), pieces)
    for name in fields.keys() & set(SLOTS):
        slot = facts_of(fields[name]).slot
        if slot != name and (slot is not None or _is_plain(fields[name])):
            raise CalibrationInputError("specification", f"needs a {name} there", got=repr(fields[name])[:80])
    try:
        return piece(**fields)
    except CalibrationInputError:
        raise
    except strict_json.MALFORMED as reason:
        raise CalibrationInputError("specification", f"does not fit {text['piece']}", got=str(reason)) from None


def _is_plain(value: Any) -> bool:
    """Whether a value is no piece at all, or a class of which none was made."""
    return value is None or isinstance(value, (bool, int, float, str, tuple, type))


def number(value: float) -> float | int | str:
    """A number as JSON holds it: nan and infinities as strings."""
    return value if isinstance(value, int) else float(value) if math.isfinite(value) else str(float(value))


_NUMBERS = ("nan", "inf", "-inf")
"""Numbers that JSON holds as text; a text of the same letters is marked as one."""
_TAGS = {"piece", "function", "select", "text"}


def _apart_from_tags(fields: dict[str, Any]) -> dict[str, Any]:
    for name in fields.keys() & _TAGS - {"select"}:
        raise CalibrationInputError("specification", "must not have a field of this name", got=repr(name))
    return fields


def _encode_selection(written: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _written_name(value) if isinstance(value, type) else _encode_values(value)
        for key, value in written.items()
    }


def _encode_values(value: Any) -> Any:
    return {name: encode(each) for name, each in value.items()} if isinstance(value, dict) else encode(value)


def _decode_selection(text: dict[str, Any], pieces: Mapping[str, Any]) -> Any:
    name = text["select"]
    if name in _COMBINED:
        return _COMBINED[name](*(decode(part, pieces) for part in text["of"]))
    piece = _look_up(name, pieces)
    if not isinstance(piece, type):
        return piece
    ours = name in catalogue.names()
    if ours and "columns" in text:
        return piece(**text["columns"])
    fields = {key: decode(value, pieces) for key, value in text.items() if key != "select"}
    return piece(*fields["classes"]) if ours and "classes" in fields else piece(**fields)


_COMBINED: dict[str, Callable[..., Any]] = {"&": operator.and_, "|": operator.or_, "~": operator.invert}


def _written_name(named: Any) -> str:
    """The name by which a piece travels."""
    if catalogue.is_ours(named):
        return str(named.__name__)
    if named.__name__ in catalogue.names():
        expected = "must not call a piece of yours like one of calibrant's"
        raise CalibrationInputError("specification", expected, got=qualified(named), hint="give it another name")
    return qualified(named)


def _look_up(name: Any, pieces: Mapping[str, Any]) -> Any:
    if name in catalogue.names():
        return catalogue.find(name)
    short = str(name).rpartition(".")[2]
    for known in (name, short):
        if known in pieces:
            return pieces[known]
    meant = nearest(short, catalogue.names()) if short == name else ""
    hint = f"{meant} " * meant.startswith("did") + f"pass pieces={{{short!r}: ...}} for a piece of your own"
    raise CalibrationInputError("specification", "names an unknown piece", got=repr(name), hint=hint)
