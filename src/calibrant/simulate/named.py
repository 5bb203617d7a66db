"""Named findings: several of one kind, reached by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Named(Mapping[str, T]):
    """Findings by name.

    >>> found = Named({"ece": 0.1})
    >>> found["ece"], len(found), list(found)
    (0.1, 1, ['ece'])
    """

    found: Mapping[str, T]

    def __getitem__(self, name: str) -> T:
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)
