"""Specifications: metrics and their pieces as JSON, so that a number can travel with how it was made."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.selections import Both, Either, Everything, Neither, Selection, label_in, predicted_in, where


def encode(piece: Any) -> Any:
    """A piece as plain JSON values: {"piece": name, field: value}; a function as its name.

    >>> import calibrant as cal
    >>> encode(cal.EqualWidth(10))
    {'piece': 'EqualWidth', 'n_bins': 10, 'closed': 'right'}
    """
    if isinstance(piece, Selection):
        return _encode_selection(piece)
    if dataclasses.is_dataclass(piece) and not isinstance(piece, type):
        fields = {field.name: encode(getattr(piece, field.name)) for field in dataclasses.fields(piece)}
        return {"piece": type(piece).__name__, **fields}
    if callable(piece):
        if not hasattr(piece, "__name__"):
            raise CalibrationInputError(
                "specification", "needs functions that have a name", got=repr(piece), hint="define it with def"
            )
        return {"function": piece.__name__}
    if isinstance(piece, (tuple, list)):
        return [encode(item) for item in piece]
    if isinstance(piece, float):
        return number(piece)
    if piece is None or isinstance(piece, (bool, int, str)):
        return piece
    if hasattr(piece, "item"):
        return encode(piece.item())
    raise CalibrationInputError("specification", "must hold pieces, numbers and names", got=type(piece).__name__)


def decode(made: Any, pieces: Mapping[str, Any]) -> Any:
    """The piece that `encode` wrote; foreign ones are looked up in `pieces`, all others in `calibrant.__all__`."""
    if isinstance(made, list):
        return tuple(decode(item, pieces) for item in made)
    if made in ("nan", "inf", "-inf"):
        return float(made)
    if not isinstance(made, dict):
        return made
    if "function" in made:
        return _look_up(made["function"], pieces)
    if "select" in made and "piece" not in made:
        return _decode_selection(made, pieces)
    fields = {name: decode(value, pieces) for name, value in made.items() if name != "piece"}
    piece = _look_up(made.get("piece"), pieces)
    try:
        return piece(**fields)
    except TypeError as reason:
        raise CalibrationInputError("specification", f"does not fit {made['piece']}", got=str(reason)) from None


def spelled(piece: Any) -> str:
    """A piece as Python would make it; functions by their names.

    >>> import calibrant as cal
    >>> spelled(cal.ByLabel(cal.tvd))
    'ByLabel(lens=tvd)'
    """
    if isinstance(piece, Selection) or not callable(piece):
        return repr(piece)
    if not dataclasses.is_dataclass(piece) or isinstance(piece, type):
        return str(getattr(piece, "__name__", repr(piece)))
    fields = (f"{field.name}={spelled(getattr(piece, field.name))}" for field in dataclasses.fields(piece))
    return f"{type(piece).__name__}({', '.join(fields)})"


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
            return {"select": type(selection).__name__, "classes": list(selection.classes)}
        case where():
            return {"select": "where", "columns": {name: encode(value) for name, value in selection.columns}}
    fields = dataclasses.fields(selection)  # type: ignore[arg-type]
    return {
        "select": type(selection).__name__,
        **{field.name: encode(getattr(selection, field.name)) for field in fields},
    }


def _decode_selection(made: dict[str, Any], pieces: Mapping[str, Any]) -> Any:
    name = made["select"]
    combined = {"&": Both, "|": Either, "~": Neither}
    if name in combined:
        return combined[name](*(decode(part, pieces) for part in made["of"]))
    found = _look_up(name, pieces)
    if isinstance(found, Everything):
        return found
    if "columns" in made:
        return found(**made["columns"])
    if "classes" in made:
        return found(*made["classes"])
    return found(**{key: decode(value, pieces) for key, value in made.items() if key != "select"})


def _look_up(name: Any, pieces: Mapping[str, Any]) -> Any:
    import calibrant  # its names are known last

    if name in pieces:
        return pieces[name]
    if name not in calibrant.__all__:
        raise CalibrationInputError(
            "specification",
            "names an unknown piece",
            got=repr(name),
            hint=f"{nearest(str(name), calibrant.__all__)[:80]} Pass pieces={{name: piece}} for one of your own",
        )
    return getattr(calibrant, name)
