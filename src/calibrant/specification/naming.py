"""Names: what pieces are called in Python, in words, and apart from all others."""

from __future__ import annotations

import dataclasses
import itertools
import weakref
from typing import Any

from calibrant.checks import is_number
from calibrant.specification.catalogue import is_ours
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


def later(default: Any) -> Any:
    """A field that a piece did not have once: where it is the default it is not written, as it was not then.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class halves:
    ...     at: float
    ...     closed: str = later("left")
    >>> written_fields(halves(0.5)), written_fields(halves(0.5, "right"))
    ({'at': 0.5}, {'at': 0.5, 'closed': 'right'})
    """
    return dataclasses.field(default=default, metadata={"later": True})


def written_fields(piece: Any) -> dict[str, Any]:
    """The choices of a piece that are written: all but those that came later and are the default."""
    fields = {field.name: field for field in dataclasses.fields(piece)} if fields_of(piece) else {}
    return {
        name: value
        for name, value in fields_of(piece).items()
        if not (fields[name].metadata.get("later") and value == fields[name].default)
    }


def spelled(piece: Any, *, short: bool = False) -> str:
    """A piece as Python would make it; functions by their names; if `short`, without choices that are the default.

    >>> import calibrant as cal
    >>> spelled(cal.ByLabel(cal.tvd)), spelled(cal.EqualWidth(10), short=True)
    ('ByLabel(lens=tvd)', 'EqualWidth(n_bins=10)')
    """
    if hasattr(piece, "__name__"):
        return str(piece.__name__)
    if is_selection(piece) or not (callable(piece) or fields_of(piece)):
        return repr(piece)
    usual = {field.name: field.default for field in dataclasses.fields(piece)} if short and fields_of(piece) else {}
    fields = [
        f"{name}={spelled(value, short=short)}"
        for name, value in fields_of(piece).items()
        if name not in usual or usual[name] is dataclasses.MISSING or usual[name] != value
    ]
    return f"{type(piece).__name__}({', '.join(fields)})"


def identity(piece: Any) -> str:
    """A line that two pieces share if and only if they are equal; foreign ones by their qualified names.

    >>> import calibrant as cal
    >>> identity(cal.TopK(3)), identity(identity), identity(cal.label_in(1) & ~cal.where(a=0.0))
    ('TopK(k=3)', 'calibrant.specification.naming.identity', "(label_in(classes=(1,)) & ~where(columns=(('a', 0),)))")
    """
    if isinstance(piece, (tuple, list)):
        return f"({', '.join(map(identity, piece))}{',' * (len(piece) == 1)})"
    if is_number(piece):
        return repr(int(piece)) if float(piece).is_integer() else repr(float(piece))
    if hasattr(piece, "tolist") and not callable(piece):
        return identity(piece.tolist())
    if not callable(piece):
        return repr(piece)
    if hasattr(piece, "__name__"):
        return _name_of(piece) if not hasattr(piece, "__self__") else f"{piece.__name__} of {identity(piece.__self__)}"
    if hasattr(piece, "sign"):  # a selection that is made of selections
        lines = [identity(part) for part in piece.parts]
        return f"({f' {piece.sign} '.join(lines)})" if len(lines) > 1 else f"{piece.sign}{lines[0]}"
    if is_selection(piece) and isinstance(piece.written()["select"], str):
        return str(piece.written()["select"])  # one of a name of its own
    if not dataclasses.is_dataclass(piece):
        return f"{_name_of(type(piece))} {_token(piece)}"  # what it holds is its own affair
    fields = (f"{field}={identity(value)}" for field, value in written_fields(piece).items())
    return f"{_name_of(type(piece))}({', '.join(fields)})"


def _name_of(named: Any) -> str:
    """The name of a function or class; of one that was made inside a function, where names repeat, with a number."""
    if is_ours(named):
        return str(named.__name__)
    name = qualified(named)
    return f"{name} {_token(named)}" if "<" in name else name


_tokens: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_numbers = itertools.count(1)


def _token(piece: Any) -> str:
    """A number that no other object of this process has or will have."""
    try:
        return f"#{_tokens.setdefault(piece, next(_numbers))}"
    except TypeError:  # what cannot be referred to weakly is like nothing else
        return f"#{next(_numbers)}"


def spoken(piece: Any) -> str:
    """A choice in words, as a result says it; "" where it goes without saying.

    >>> import calibrant as cal
    >>> spoken(cal.tvd), spoken(cal.root_mean), spoken(cal.power(3.0)), spoken(cal.EqualWidth())
    ('', 'root mean', 'power 3.0', '15 equal-width bins')
    """
    words = facts_of(piece).words
    if words is not None:
        return words
    if is_selection(piece):
        return repr(piece)
    if hasattr(piece, "__name__"):
        return str(piece.__name__).replace("_", " ")
    if any("__str__" in vars(kind) for kind in type(piece).__mro__[:-1]) or not fields_of(piece):
        return str(piece)
    fields = (value.__name__ if hasattr(value, "__name__") else str(value) for value in fields_of(piece).values())
    return f"{type(piece).__name__.replace('_', ' ')} {', '.join(fields)}"


def is_selection(piece: Any) -> bool:
    """Whether a piece is a selection, which says itself how it is written.

    >>> import calibrant as cal
    >>> is_selection(cal.everything), is_selection(cal.tvd)
    (True, False)
    """
    return hasattr(piece, "written") and not isinstance(piece, type)


def qualified(named: Any) -> str:
    """The name of a function or class with its module's."""
    return f"{named.__module__}.{named.__qualname__}"
