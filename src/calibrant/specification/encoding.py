"""Encoding: metrics and their pieces as JSON, so that a number can travel with how it was made."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.selections import Both, Either, Everything, Neither, Selection, label_in, predicted_in, where
from calibrant.specification.naming import fields_of, is_ours, qualified


def encode(piece: Any) -> Any:
    """A piece as plain JSON values: {"piece": name, field: value}; a function as its name.

    A piece that is not calibrant's own goes by its qualified name; one that is called like a piece of calibrant is
    refused, since it would come back as that.

    >>> import calibrant as cal
    >>> encode(cal.EqualWidth(10))
    {'piece': 'EqualWidth', 'n_bins': 10, 'closed': 'right'}
    """
    if isinstance(piece, Selection):
        return _encode_selection(piece)
    if dataclasses.is_dataclass(piece) and not isinstance(piece, type):
        fields = {name: encode(value) for name, value in fields_of(piece).items()}
        return {"piece": _written_name(type(piece)), **fields}
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
    if piece is None or isinstance(piece, (bool, int, str)):
        return piece
    if hasattr(piece, "item"):
        return encode(piece.item())
    raise CalibrationInputError("specification", "must hold pieces, numbers and names", got=type(piece).__name__)


def decode(text: Any, pieces: Mapping[str, Any]) -> Any:
    """The piece that `encode` wrote; foreign ones are looked up in `pieces`, all others in `calibrant.__all__`."""
    if isinstance(text, list):
        return tuple(decode(item, pieces) for item in text)
    if text in ("nan", "inf", "-inf"):
        return float(text)
    if not isinstance(text, dict):
        return text
    if "function" in text:
        return _look_up(text["function"], pieces)
    if "select" in text and "piece" not in text:
        return _decode_selection(text, pieces)
    fields = {name: decode(value, pieces) for name, value in text.items() if name != "piece"}
    piece = _look_up(text.get("piece"), pieces)
    try:
        return piece(**fields)
    except TypeError as reason:
        raise CalibrationInputError("specification", f"does not fit {text['piece']}", got=str(reason)) from None


def number(value: float) -> float | int | str:
    """A number as JSON holds it: nan and infinities as strings."""
    if isinstance(value, int):
        return value
    return float(value) if math.isfinite(value) else str(float(value))


def _encode_selection(selection: Selection) -> dict[str, Any]:
    match selection:
        case Everything():
            return {"select": "everything"}
        case Both():
            return {"select": "&", "of": [encode(selection.left), encode(selection.right)]}
        case Either():
            return {"select": "|", "of": [encode(selection.left), encode(selection.right)]}
        case Neither():
            return {"select": "~", "of": [encode(selection.selection)]}
        case label_in() | predicted_in():
            return {"select": _written_name(type(selection)), "classes": list(selection.classes)}
        case where():
            return {"select": "where", "columns": {name: encode(value) for name, value in selection.columns}}
    fields = {name: encode(value) for name, value in fields_of(selection).items()}
    return {"select": _written_name(type(selection)), **fields}


def _decode_selection(text: dict[str, Any], pieces: Mapping[str, Any]) -> Any:
    name = text["select"]
    combined = {"&": Both, "|": Either, "~": Neither}
    if name in combined:
        return combined[name](*(decode(part, pieces) for part in text["of"]))
    piece = _look_up(name, pieces)
    if isinstance(piece, Everything):
        return piece
    if "columns" in text:
        return piece(**text["columns"])
    if "classes" in text:
        return piece(*text["classes"])
    return piece(**{key: decode(value, pieces) for key, value in text.items() if key != "select"})


def _written_name(named: Any) -> str:
    """The name by which a piece travels."""
    import calibrant  # its names are known last

    if is_ours(named):
        return str(named.__name__)
    if named.__name__ in calibrant.__all__:
        expected = "must not call a piece of yours like one of calibrant's"
        raise CalibrationInputError("specification", expected, got=qualified(named), hint="give it another name")
    return qualified(named)


def _look_up(name: Any, pieces: Mapping[str, Any]) -> Any:
    import calibrant  # its names are known last

    if name in calibrant.__all__:
        return getattr(calibrant, name)
    short = str(name).rpartition(".")[2]
    for known in (name, short):
        if known in pieces:
            return pieces[known]
    meant = nearest(short, calibrant.__all__) if short == name else ""
    hint = f"{meant} " * meant.startswith("did") + f"pass pieces={{{short!r}: ...}} for a piece of your own"
    raise CalibrationInputError("specification", "names an unknown piece", got=repr(name), hint=hint)
