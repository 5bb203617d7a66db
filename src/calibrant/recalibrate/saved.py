"""Saved recalibrators: JSON that a person can read, with a version and a seal that tells when it was changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.recalibrate.fitting.certificate import Certificate

VERSION = 1
"""Raised when older readers could misunderstand what is written."""
_KEYS = ("method", "options", "kind", "classes", "learnt", "certificate", "fitted_on")


def write(made: dict[str, Any]) -> str:
    """What was learnt as JSON under a version and a seal."""
    made = {"calibrant": "recalibrator", "version": VERSION, **made}
    try:
        lines = (f" {json.dumps(key)}: {_text(value)}" for key, value in {**made, "seal": _seal(made)}.items())
        return "{\n" + ",\n".join(lines) + "\n}\n"
    except (TypeError, ValueError) as reason:
        raise CalibrationInputError("options", "must be numbers, words or lists of them", got=str(reason)) from None


def read(text: str) -> dict[str, Any]:
    """What was written, if it is whole, known and unchanged."""
    try:
        made = json.loads(text)
    except (TypeError, ValueError) as reason:
        raise CalibrationInputError("text", "must be JSON", got=str(reason)) from None
    if not isinstance(made, dict) or made.get("calibrant") != "recalibrator":
        raise CalibrationInputError("text", "must be the JSON of a recalibrator", got=f"{str(made)[:40]}")
    if made.get("version") != VERSION:
        raise CalibrationInputError(
            "version", f"must be {VERSION}", got=made.get("version"), hint="a newer calibrant may have written it"
        )
    seal = made.pop("seal", None)
    missing = [key for key in _KEYS if key not in made]
    if missing or seal != _seal(made):
        found = f"no {missing[0]}" if missing else "contents that do not match the seal"
        raise CalibrationInputError("text", "must be as it was written", got=found, hint="fit and save it again")
    return made


def name_of(kind: type) -> str:
    """What a class is called in JSON: its name if it is calibrant's own, else that of its module and its own.

    >>> from calibrant.recalibrate import TemperatureScaling
    >>> name_of(TemperatureScaling), name_of(dict)
    ('TemperatureScaling', 'builtins.dict')
    """
    known = _known().get(kind.__name__)
    if known not in (None, kind):
        raise CalibrationInputError(
            "method", "must have a name of its own to be saved", got=kind.__name__, hint="rename the class"
        )
    return kind.__name__ if known else f"{kind.__module__}.{kind.__qualname__}"


def method(name: str, pieces: Mapping[str, Any]) -> Any:
    """The class of that name: one of calibrant's own, else from `pieces`, under that name or its last word."""
    known, name = _known(), str(name)
    for found in (known.get(name), pieces.get(name), pieces.get(name.rpartition(".")[2])):
        if found is not None:
            return found
    hint = nearest(name, known) if "." not in name else "pass pieces={name: class} for a class of your own"
    raise CalibrationInputError("method", "is unknown", got=repr(name), hint=hint)


def rebuilt(kind: Any, made: dict[str, Any]) -> Any:
    """The fitted recalibrator that `made` describes."""
    try:
        fitted = kind(**made["options"])
        for name in kind.learns:
            setattr(fitted, name, _array(made["learnt"][name]))
    except (TypeError, KeyError) as reason:
        raise CalibrationInputError("text", f"does not fit {kind.__name__}", got=str(reason)) from None
    fitted.classes_ = np.array(made["classes"])
    fitted._width = len(made["classes"]) if made["kind"] == "classes" else 0
    fitted.n_features_in_ = fitted._width or 1
    fitted._fitted_on = made["fitted_on"]
    fitted.certificate_ = Certificate.from_dict(made["certificate"])
    return fitted


def plain(value: Any) -> Any:
    """A learnt value as JSON holds it: numbers, lists of numbers, and lists of such lists for several arrays.

    >>> plain((np.array([1.0, 0.5]), np.zeros((1, 2))))
    {'arrays': [[1.0, 0.5], [[0.0, 0.0]]]}
    """
    if isinstance(value, tuple):
        return {"arrays": [plain(array) for array in value]}
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value


def option(value: Any) -> Any:
    """An option as JSON holds it: NumPy's numbers as Python's, sequences as lists.

    >>> option(np.array(["cat", "dog"])), option(np.int64(5)), option(range(2))
    (['cat', 'dog'], 5, [0, 1])
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return [option(item) for item in value] if isinstance(value, (list, tuple, range)) else value


def _known() -> dict[str, Any]:
    from calibrant import recalibrate  # its names are known last

    return recalibrate.METHODS


def _array(made: Any) -> Any:
    if isinstance(made, dict):
        return tuple(_array(array) for array in made["arrays"])
    return np.array(made, np.float64) if isinstance(made, list) else made


def _seal(made: dict[str, Any]) -> str:
    return hashlib.sha256(_text(made, sort_keys=True).encode()).hexdigest()


def _text(value: Any, **how: Any) -> str:
    return json.dumps(value, allow_nan=False, **how)
