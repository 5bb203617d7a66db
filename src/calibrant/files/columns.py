"""Columns: the named arrays of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError

LABELS = ("label", "labels", "y")
MULTILABEL = "multilabel"
"""Where a matrix of independent labels is: 0 or 1 of each, beside their probabilities in `probs`."""


class Columns(Mapping[str, Array]):
    """The named arrays of a file, each checked when it is asked for: what nobody needs may be as it is."""

    def __init__(
        self,
        path: Path,
        raw: Mapping[str, Any],
        read: Callable[[str], Array],
        read_numbers: Callable[[str], Array] | None = None,
    ) -> None:
        self.path, self.raw, self.read = path, raw, read
        self.read_numbers = read_numbers or read

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, name: str) -> Array:
        if name not in self.raw:
            raise KeyError(name)
        return self.read(name)

    def loose(self, name: str, n: int) -> Array | None:
        """A column of n values as numbers or else as text; None where it is no such column."""
        try:
            array = self[name]
        except CalibrationInputError:
            values = self.raw[name]
            values = values.to_pylist() if hasattr(values, "to_pylist") else values
            if not isinstance(values, list) or any(isinstance(value, (list, dict)) for value in values):
                return None
            array = np.array([str(value) for value in values])
        return array if array.shape == (n,) and array.dtype.kind in "fiubU" else None


def refuse_twice(names: list[str], path: Path) -> None:
    """Refuse names of which one stands twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise CalibrationInputError(str(path), "must name each column once", got=f"{name!r} twice")
        seen.add(name)
