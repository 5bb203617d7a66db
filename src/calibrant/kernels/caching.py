"""Caching: attributes that are computed when they are asked for first, without a lock."""

from __future__ import annotations

import functools
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")
_MISSING = object()


class cached_property(functools.cached_property[T]):  # noqa: N801 - it is used as the one of functools is
    """The attribute of functools without its lock, which the child of a fork would find held for ever.

    Threads that ask at the same time may each compute the value; all of them get the first that was kept.

    >>> class Sample:
    ...     @cached_property
    ...     def half(self):
    ...         print("computed")
    ...         return 0.5
    >>> sample = Sample()
    >>> sample.half + sample.half
    computed
    1.0
    """

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        values, name = vars(instance), str(self.attrname)
        value = values.get(name, _MISSING)
        return values.setdefault(name, self.func(instance)) if value is _MISSING else value
