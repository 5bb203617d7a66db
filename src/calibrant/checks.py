"""Checks: what a parameter may be. Numbers of Python and of NumPy count alike; booleans and text are none."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeGuard

import numpy as np

from calibrant.exceptions import CalibrationInputError


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number by its type: 2.0 is not.

    >>> is_whole(2), is_whole(np.int64(2)), is_whole(2.0), is_whole(True)
    (True, True, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number by its type.

    >>> is_number(2), is_number(np.float32(0.5)), is_number("2"), is_number(True)
    (True, True, False, False)
    """
    return is_whole(value) or isinstance(value, (float, np.floating))


def whole(value: Any, parameter: str, low: int | None = None, high: int | None = None) -> None:
    """Refuse what is no whole number between low and high, both included.

    >>> whole(0, "k", 1)
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: k: must be a whole number of at least 1, got 0
    """
    if is_whole(value) and (low is None or value >= low) and (high is None or value <= high):
        return
    between = "" if low is None else f" of at least {low:,}" if high is None else f" in {low:,}..{high:,}"
    raise CalibrationInputError(parameter, f"must be a whole number{between}", got=repr(value))


def number(value: Any, parameter: str, expected: str, holds: Callable[[Any], bool]) -> None:
    """Refuse what is no number, or one for which the condition does not hold; nan should fail it.

    >>> number(0, "gamma", "must lie in (0, 1]", lambda gamma: 0 < gamma <= 1)
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: gamma: must lie in (0, 1], got 0
    """
    if not (is_number(value) and holds(value)):
        raise CalibrationInputError(parameter, expected, got=repr(value))


def flag(value: Any, parameter: str, hint: str | None = None) -> None:
    """Refuse what is neither True nor False.

    >>> flag(1, "copy")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: copy: must be True or False, got 1
    """
    if not isinstance(value, (bool, np.bool_)):
        got = repr(value) if np.isscalar(value) else type(value).__name__
        raise CalibrationInputError(parameter, "must be True or False", got=got, hint=hint)


def order(value: Any, parameter: str) -> None:
    """Refuse what is no order of a norm.

    >>> order(0.5, "lp")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: lp: needs a finite order p of at least 1, got 0.5
    """
    number(value, parameter, "needs a finite order p of at least 1", lambda p: 1 <= p < np.inf)


def numbers(values: Any, parameter: str, expected: str) -> tuple[float, ...]:
    """A sequence of numbers as floats, or the refusal that says what was expected.

    >>> numbers(np.array([0, 1]), "edges", "must be numbers")
    (0.0, 1.0)
    """
    sequence = tuple(values) if np.iterable(values) else (None,)
    if not all(map(is_number, sequence)):
        raise CalibrationInputError(parameter, expected, got=repr(values))
    return tuple(map(float, sequence))


def word(value: Any, parameter: str, *options: str) -> None:
    """Refuse what is none of the words.

    >>> word("up", "closed", "left", "right", "both")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: closed: must be "left", "right" or "both", got 'up'
    """
    if not isinstance(value, str) or value not in options:
        *others, last = (f'"{option}"' for option in options)
        raise CalibrationInputError(parameter, f"must be {', '.join(others)} or {last}", got=repr(value))


def interval(low: Any, high: Any, parameter: str) -> None:
    """Refuse an interval that is none, or leaves [0, 1].

    >>> interval(0.5, 0.2, "Between")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: Between: needs 0 <= low <= high <= 1, got (0.5, 0.2)
    """
    if not (is_number(low) and is_number(high) and 0 <= low <= high <= 1):
        raise CalibrationInputError(parameter, "needs 0 <= low <= high <= 1", got=f"({low!r}, {high!r})")


def intervals(edges: Any, parameter: str) -> list[tuple[float, float]]:
    """The intervals between neighbouring edges, or the (low, high) pairs that were given; refuse what is neither.

    >>> intervals([0, 0.5, 1], "likert"), intervals([(0, 0.8), (0.9, 1)], "likert")
    ([(0, 0.5), (0.5, 1)], [(0, 0.8), (0.9, 1)])
    """
    known = list(edges) if np.iterable(edges) else []
    pairs = list(pairwise(known)) if all(map(is_number, known)) else known
    if not pairs or not all(np.shape(pair) == (2,) for pair in pairs):
        raise CalibrationInputError(parameter, "needs at least two edges, or (low, high) pairs", got=repr(edges))
    for low, high in pairs:
        interval(low, high, parameter)
    return [(low, high) for low, high in pairs]


def class_name(value: Any, parameter: str) -> None:
    """Refuse what names no class.

    >>> class_name(1.5, "OneClass")
    Traceback (most recent call last):
    calibrant.exceptions.CalibrationInputError: OneClass: must be a class index or a name, got 1.5
    """
    if not (is_whole(value) or isinstance(value, str)):
        raise CalibrationInputError(parameter, "must be a class index or a name", got=repr(value))
