"""The catalogue: calibrant's public names, told by the package when all of them are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

_names: dict[str, None] = {}
_recipes: dict[str, Any] = {}
_find: list[Callable[[str], Any]] = []


def tell(names: Iterable[str], find: Callable[[str], Any], recipes: Mapping[str, Any]) -> None:
    """What calibrant calls its own: its names, how an object is found by its name, and the recipes."""
    _names.update(dict.fromkeys(names))
    _recipes.update(recipes)
    _find[:] = [find]


def names() -> list[str]:
    """The names of calibrant's pieces and of all else that is public.

    >>> "ECE" in names()
    True
    """
    return list(_names)


def recipes() -> Mapping[str, Any]:
    """Every recipe by its name.

    >>> "ECE" in recipes()
    True
    """
    return _recipes


def find(name: object) -> Any:
    """What calibrant calls so; None where it calls nothing so.

    >>> find("ECE").name, find("mine")
    ('ECE', None)
    """
    return _find[0](str(name)) if name in _names else None


def is_ours(named: Any) -> bool:
    """Whether calibrant has this very function or class under its name.

    >>> is_ours(find("tvd")), is_ours(names)
    (True, False)
    """
    return named.__name__ in _names and find(named.__name__) is named
