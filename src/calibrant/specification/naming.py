"""Names: what pieces are called in Python, in words, and apart from all others."""

from __future__ import annotations

import dataclasses
from typing import Any

from calibrant.selections import Selection
from calibrant.specification.facts import facts_of


def fields_of(piece: object) -> dict[str, Any]:
    """The choices that a piece or metric was made with, by name; none where it is no dataclass.

    >>> import calibrant as cal
    >>> fields_of(cal.KDTree(0.5)), fields_of(cal.tvd)
    ({'gamma': 0.5, 'threshold': 'mean'}, {})
    """
    if not dataclasses.is_dataclass(piece) or isinstance(piece, type):
        return {}
    return {field.name: getattr(piece, field.name) for field in dataclasses.fields(piece)}


def spelled(piece: Any, *, short: bool = False) -> str:
    """A piece as Python would make it; functions by their names; if `short`, without choices that are the default.

    >>> import calibrant as cal
    >>> spelled(cal.ByLabel(cal.tvd)), spelled(cal.EqualWidth(10), short=True)
    ('ByLabel(lens=tvd)', 'EqualWidth(n_bins=10)')
    """
    if hasattr(piece, "__name__"):
        return str(piece.__name__)
    if isinstance(piece, Selection) or not (callable(piece) or fields_of(piece)):
        return repr(piece)
    usual = {field.name: field.default for field in dataclasses.fields(piece)} if short and fields_of(piece) else {}
    fields = [
        f"{name}={spelled(value, short=short)}"
        for name, value in fields_of(piece).items()
        if name not in usual or usual[name] is dataclasses.MISSING or usual[name] != value
    ]
    return f"{type(piece).__name__}({', '.join(fields)})"


def identity(piece: Any) -> str:
    """A line that two pieces share only if they do the same: as spelled, and foreign ones by their qualified names.

    >>> import calibrant as cal
    >>> identity(cal.TopK(3)), identity(identity)
    ('TopK(k=3)', 'calibrant.specification.naming.identity')
    """
    if isinstance(piece, Selection) and is_ours(type(piece)):
        return repr(piece)
    if not callable(piece):
        return repr(piece)
    named = piece if hasattr(piece, "__name__") else type(piece)
    name = named.__name__ if is_ours(named) else qualified(named)
    if named is piece:
        return name if "<" not in name else f"{name} at {id(piece):x}"  # names inside a function are not unique
    fields = (f"{field}={identity(value)}" for field, value in fields_of(piece).items())
    return f"{name}({', '.join(fields)})"


def spoken(piece: Any) -> str:
    """A choice in words, as a result says it; "" where it goes without saying.

    >>> import calibrant as cal
    >>> spoken(cal.tvd), spoken(cal.root_mean), spoken(cal.power(3.0)), spoken(cal.EqualWidth())
    ('', 'root mean', 'power 3.0', '15 equal-width bins')
    """
    words = facts_of(piece).words
    if words is not None:
        return words
    if isinstance(piece, Selection):
        return repr(piece)
    if hasattr(piece, "__name__"):
        return str(piece.__name__).replace("_", " ")
    if any("__str__" in vars(kind) for kind in type(piece).__mro__[:-1]) or not fields_of(piece):
        return str(piece)
    fields = (value.__name__ if hasattr(value, "__name__") else str(value) for value in fields_of(piece).values())
    return f"{type(piece).__name__.replace('_', ' ')} {', '.join(fields)}"


def qualified(named: Any) -> str:
    """The name of a function or class with its module's."""
    return f"{named.__module__}.{named.__qualname__}"


def is_ours(named: Any) -> bool:
    """Whether calibrant has this very function or class under its name."""
    import calibrant  # its names are known last

    return named.__name__ in calibrant.__all__ and getattr(calibrant, named.__name__) is named
