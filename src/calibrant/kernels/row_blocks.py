"""Blocks of rows: how much of an array is worked on at once."""

from __future__ import annotations

from collections.abc import Iterator

BLOCK = 1 << 18
"""Elements that are worked on at once: they stay in cache."""


def blocks(n: int, width: int) -> Iterator[slice]:
    """Slices of rows that make blocks of at most BLOCK elements.

    >>> list(blocks(3, BLOCK))
    [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
    """
    step = max(1, most_rows(n, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def most_rows(n: int, width: int) -> int:
    """The rows of the largest block.

    >>> most_rows(5, BLOCK // 2), most_rows(1, 1)
    (2, 1)
    """
    return min(n, max(1, BLOCK // max(1, width)))
