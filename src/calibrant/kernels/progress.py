"""Progress: a line on the terminal while something long runs; nothing where there is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
SILENT: ContextVar[bool] = ContextVar("silent", default=False)
"""Whether nothing is shown on a terminal either."""


def shown(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The items, with a line on standard error that says how many are done, once it takes over a second.

    >>> list(shown(range(3), 3, "counting"))
    [0, 1, 2]
    """
    started = spoken = time.monotonic()
    wanted = sys.stderr is not None and sys.stderr.isatty() and not SILENT.get()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if wanted and now - started > 1 and (now - spoken > 0.2 or done == total):
            left = (now - started) / done * (total - done)
            sys.stderr.write(f"\r{what}: {done}/{total}, {left:.0f} s left \x1b[K")
            spoken = now
    if wanted and spoken > started:
        sys.stderr.write("\r\x1b[K")
