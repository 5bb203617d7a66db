"""Named findings: several of one kind, reached by name, and findings as JSON without bare nan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from calibrant.specification.encoding import number

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Named(Mapping[str, T]):
    """Findings by name.

    >>> values = Named({"ece": 0.1})
    >>> values["ece"], len(values), list(values)
    (0.1, 1, ['ece'])
    """

    entries: Mapping[str, T]

    def __getitem__(self, name: str) -> T:
        return self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def to_json(value: Any) -> str:
    """Plain values as JSON; nan and infinities as strings.

    >>> to_json({"mean": float("nan"), "n": 3})
    '{"mean": "nan", "n": 3}'
    """
    return json.dumps(_plain(value), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return number(float(value)) if isinstance(value, float) else value
