"""Saved recalibrators: JSON that a person can read, with a version and a seal that tells when it was changed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.checks import is_number
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.recalibrate.fitting.certificate import Certificate
from calibrant.recalibrate.fitting.possible import require_probabilities
from calibrant.specification import strict_json
from calibrant.specification.catalogue import find, is_ours, names
from calibrant.specification.documents import require_keys, require_seal, seal
from calibrant.specification.encoding import decode, encode
from calibrant.specification.naming import qualified

VERSION = 1
"""Raised when older readers could misunderstand what is written."""
_KEYS: dict[str, Any] = {
    "method": str, "options": dict, "kind": str, "classes": list,
    "learnt": (dict, list), "certificate": dict, "fitted_on": str,
}  # fmt: skip
_FEWEST = {"event": 2, "classes": 2, "labels": 1}
"""What a map may be of, and how many classes or labels there are at least."""


def write(contents: dict[str, Any]) -> str:
    """What was learnt as JSON under a version and a seal."""
    document = {"calibrant": "recalibrator", "version": VERSION, **contents}
    try:
        lines = (f" {json.dumps(key)}: {_text(value)}" for key, value in {**document, "seal": seal(document)}.items())
        return "{\n" + ",\n".join(lines) + "\n}\n"
    except (TypeError, ValueError) as reason:
        raise CalibrationInputError("options", "must be numbers, words or lists of them", got=str(reason)) from None


def read(text: str) -> dict[str, Any]:
    """What was written, if it is whole, known and unchanged."""
    try:
        document = strict_json.read(text)
    except (TypeError, ValueError) as reason:
        raise CalibrationInputError("text", "must be JSON", got=str(reason)) from None
    if not isinstance(document, dict) or document.get("calibrant") != "recalibrator":
        raise CalibrationInputError("text", "must be the JSON of a recalibrator", got=f"{str(document)[:40]}")
    if document.get("version") != VERSION:
        raise CalibrationInputError(
            "version", f"must be {VERSION}", got=document.get("version"), hint="a newer calibrant may have written it"
        )
    written, hint = document.pop("seal", None), "fit and save it again"
    missing = [key for key in _KEYS if key not in document]
    if missing:
        raise CalibrationInputError("text", "must be as it was written", got=f"no {missing[0]}", hint=hint)
    require_seal(document, written, hint)
    return document


def name_of(kind: type) -> str:
    """What a class is called in JSON: its name if it is calibrant's own, else that of its module and its own.

    >>> from calibrant.recalibrate import TemperatureScaling
    >>> name_of(TemperatureScaling), name_of(dict)
    ('TemperatureScaling', 'builtins.dict')
    """
    if is_ours(kind):
        return kind.__name__
    if _known(kind.__name__) is not None:
        raise CalibrationInputError(
            "method", "must have a name of its own to be saved", got=kind.__name__, hint="rename the class"
        )
    return qualified(kind)


def method(name: str, pieces: Mapping[str, Any]) -> Any:
    """The class of that name: one of calibrant's own, else from `pieces`, under that name or its last word."""
    name = str(name)
    for kind in (_known(name), pieces.get(name), pieces.get(name.rpartition(".")[2])):
        if kind is not None:
            return kind
    foreign = "pass pieces={name: class} for a class of your own"
    hint = foreign if "." in name else nearest(name, filter(_known, names()))
    raise CalibrationInputError("method", "is unknown", got=repr(name), hint=hint)


def rebuilt(kind: Any, document: dict[str, Any]) -> Any:
    """A recalibrator as a document tells it, if a fit can have made it: a seal tells damage, not intent."""
    try:
        require_keys(document, _KEYS, ("calibrant", "version"))
        _require_classes(document["kind"], document["classes"])
        fitted = kind(**{name: _piece(value) for name, value in document["options"].items()})
        fitted.maps_ = _maps(kind, document) if document["kind"] == "labels" else {}
        fitted.certificate_ = Certificate.from_dict(document["certificate"])
        fitted.remember(document["classes"], document["kind"] == "event", document["fitted_on"])
        if not fitted.maps_:
            learnt = document["learnt"]
            require_keys(learnt, {name: object for name in kind.learns if name not in kind.later}, kind.later)
            for name in kind.learns:
                setattr(fitted, name, _array(learnt[name]) if name in learnt else None)
            fitted.require_possible()
            require_probabilities(fitted, 0 if document["kind"] == "event" else len(document["classes"]))
    except strict_json.MALFORMED as reason:
        raise CalibrationInputError("text", f"does not fit {kind.__name__}", got=str(reason)) from None
    return fitted


def _require_classes(kind: str, classes: list[Any]) -> None:
    """Names of the columns: as many as there must be, words or numbers, none twice."""
    if kind not in _FEWEST or len(classes) < _FEWEST[kind] or (kind == "event" and len(classes) > _FEWEST[kind]):
        raise ValueError(f"{len(classes)} classes of {kind!r}")
    if not all(isinstance(name, str) or is_number(name) or isinstance(name, bool) for name in classes):
        raise ValueError("classes that are neither words nor numbers")
    if len(set(classes)) != len(classes):
        raise ValueError("a class that stands twice")


def _maps(kind: Any, document: dict[str, Any]) -> dict[Any, Any]:
    """The map of each label, which is one of an event."""
    names, learnt = document["classes"], document["learnt"]
    if not kind.of_events or not isinstance(learnt, list) or len(names) != len(learnt):
        raise ValueError(f"{len(learnt)} maps of {len(names)} labels")
    options = {**document["options"], "classes": None}
    event = {"method": document["method"], "kind": "event", "classes": [0, 1], "options": options}
    return {name: rebuilt(kind, {**event, **part}) for name, part in zip(names, learnt, strict=True)}


def plain(value: Any) -> Any:
    """A learnt value as JSON holds it: numbers, lists of numbers, and lists of such lists for several arrays.

    >>> plain((np.array([1.0, 0.5]), np.zeros((1, 2))))
    {'arrays': [[1.0, 0.5], [[0.0, 0.0]]]}
    """
    if isinstance(value, tuple):
        return {"arrays": [plain(array) for array in value]}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def options(recalibrator: Any) -> dict[str, Any]:
    """The options as JSON holds them; those that came `later` only where they are not the default.

    >>> from calibrant.recalibrate import IsotonicCalibration
    >>> options(IsotonicCalibration(smooth=False))
    {'input': 'logits', 'classes': None, 'smooth': False}
    """
    known = recalibrator.get_params()
    usual = {name: getattr(type(recalibrator), name) for name in recalibrator.later if name in known}
    return {name: option(value) for name, value in known.items() if value is not usual.get(name, ...)}


def option(value: Any) -> Any:
    """An option as JSON holds it: NumPy's numbers as Python's, sequences as lists, pieces as metrics write them.

    >>> option(np.array(["cat", "dog"])), option(np.int64(5)), option(range(2))
    (['cat', 'dog'], 5, [0, 1])
    """
    if dataclasses.is_dataclass(value):
        return encode(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return [option(item) for item in value] if isinstance(value, (list, tuple, range)) else value


def _piece(value: Any) -> Any:
    """An option as it was: a piece where one was written."""
    return decode(value, {}) if isinstance(value, dict) else value


def _known(name: str) -> Any:
    """The recalibrator that calibrant calls so, if any."""
    kind = find(name)
    return kind if hasattr(kind, "learns") else None


def _array(value: Any) -> Any:
    """A learnt value as a map holds it; only numbers and lists of them are any."""
    if isinstance(value, dict):
        require_keys(value, {"arrays": list})
        return tuple(_array(array) for array in value["arrays"])
    if not _is_numeric(value):
        raise ValueError(f"{str(value)[:40]} is no number")
    return np.array(value, np.float64) if isinstance(value, list) else value


def _is_numeric(value: Any) -> bool:
    return all(map(_is_numeric, value)) if isinstance(value, list) else is_number(value)


def _text(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
