"""The time tree: states of 2, 4, 8, ... neighbouring windows, so that any stretch of them is a few additions."""

from __future__ import annotations

from collections.abc import Iterator

Node = tuple[int, int]
"""Level and place: the windows from place * 2^level on, 2^level of them."""


def completed(window: int) -> Iterator[Node]:
    """The nodes above a window that are complete once it is there, the lowest first.

    >>> list(completed(2)), list(completed(3))
    ([], [(1, 1), (2, 0)])
    """
    level = 1
    while (window + 1) % (1 << level) == 0:
        yield level, window >> level
        level += 1


def above(window: int, windows: int) -> Iterator[Node]:
    """The complete nodes of so many windows that hold a window, the lowest first.

    >>> list(above(1, 5))
    [(1, 0), (2, 0)]
    """
    level = 1
    while ((window >> level) + 1) << level <= windows:
        yield level, window >> level
        level += 1


def covering(start: int, stop: int) -> list[Node]:
    """The fewest nodes that hold the windows from start to before stop: at most two a level.

    >>> covering(1, 7)
    [(0, 1), (1, 1), (1, 2), (0, 6)]
    """
    nodes = []
    while start < stop:
        level = 0
        while start % (2 << level) == 0 and start + (2 << level) <= stop:
            level += 1
        nodes.append((level, start >> level))
        start += 1 << level
    return nodes
