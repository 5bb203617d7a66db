"""Text: rows of cells as aligned lines, and JSON without bare nan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from calibrant.specification import number
from calibrant.table import inert


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines whose cells stand under each other: the first to the left, the others to the right.

    >>> print(aligned(["name", "n"], [["ece", "100"], ["mce", "20"]]))
    name    n
    ece   100
    mce    20
    """
    cells = [[inert(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in cells
    )


def to_json(made: Any) -> str:
    """Plain values as JSON; nan and infinities as strings.

    >>> to_json({"mean": float("nan"), "n": 3})
    '{"mean": "nan", "n": 3}'
    """
    return json.dumps(_plain(made), allow_nan=False)


def _plain(made: Any) -> Any:
    if isinstance(made, dict):
        return {str(name): _plain(value) for name, value in made.items()}
    if isinstance(made, (list, tuple)):
        return [_plain(value) for value in made]
    return number(float(made)) if isinstance(made, float) else made
