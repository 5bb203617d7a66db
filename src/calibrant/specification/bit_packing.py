"""Bit packing: whole numbers as bytes, each in no more bits than the largest of its neighbours needs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

TOGETHER = 64
"""Numbers that are written in equally many bits, so that these fill whole bytes."""

Naturals = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


def as_bits(numbers: Naturals) -> bytes:
    """For each 64 numbers a byte that says in how many bits they are written; then these bits, the lowest first.

    >>> as_bits(np.array([1, 0, 3, 2], np.uint64)).hex()
    '02b1'
    """
    rows = np.zeros((_rows(len(numbers)), TOGETHER), np.uint64)
    rows.ravel()[: len(numbers)] = numbers
    widths = _widths(np.bitwise_or.reduce(rows, axis=1))
    words = np.zeros(int(widths.sum(dtype=np.int64)), "<u8")
    for width, some, places in _alike(widths):
        each, together = rows[some].T, np.zeros((width + 1, len(some)), np.uint64)
        for place, number in enumerate(each[: len(numbers)]):
            word, bit = divmod(place * width, 64)
            together[word] |= number << np.uint64(bit)
            if bit + width > 64:
                together[word + 1] |= number >> np.uint64(64 - bit)
        words[places] = together[:width].T
    return widths.tobytes() + words.tobytes()[: _length(widths, len(numbers))]


def from_bits(data: bytes, start: int, count: int) -> tuple[Naturals, int]:
    """So many numbers from where they begin, and where they end; refused where the bytes end before.

    >>> from_bits(bytes.fromhex("02b1"), 0, 4)[0].tolist()
    [1, 0, 3, 2]
    """
    first = start + _rows(count)
    widths = np.frombuffer(data[start:first], np.uint8)
    end = first + _length(widths, count)
    if len(widths) < _rows(count) or widths.max(initial=0) > 64 or end > len(data):
        raise ValueError("an array that is longer than the bytes")
    words = np.frombuffer(data[first:end].ljust(8 * int(widths.sum(dtype=np.int64)), b"\0"), "<u8").astype(np.uint64)
    rows = np.zeros((len(widths), TOGETHER), np.uint64)
    for width, some, places in _alike(widths):
        together, each = words[places].T, np.zeros((TOGETHER, len(some)), np.uint64)
        for place in range(min(TOGETHER, count)):
            word, bit = divmod(place * width, 64)
            each[place] = together[word] >> np.uint64(bit)
            if bit + width > 64:
                each[place] |= together[word + 1] << np.uint64(64 - bit)
        rows[some] = (each & np.uint64((1 << width) - 1)).T
    return rows.ravel()[:count], end


def _rows(count: int) -> int:
    return -(-count // TOGETHER)


def _length(widths: Bytes, count: int) -> int:
    """How many bytes the bits take; after the last number they end."""
    beyond = TOGETHER * len(widths) - count
    unused = int(widths[-1]) * beyond // 8 if len(widths) else 0
    return 8 * int(widths.sum(dtype=np.int64)) - unused


def _widths(largest: Naturals) -> Bytes:
    """How many bits each number has."""
    bits = np.unpackbits(largest.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    return (bits * np.arange(1, 65, dtype=np.uint8)).max(axis=1, initial=0)


def _alike(widths: Bytes) -> Iterator[tuple[int, Ints, Ints]]:
    """Each width above 0, the rows that have it, and the places of their words (rows, width)."""
    starts = np.cumsum(np.append(0, widths.astype(np.int64)))
    for width in np.unique(widths[widths > 0]).tolist():
        rows = np.flatnonzero(widths == width)
        yield width, rows, starts[rows, None] + np.arange(width)
