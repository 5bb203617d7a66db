"""Frames: what their rows and columns are called, so that values of one row are not taken for those of another."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

from calibrant.checks import is_number
from calibrant.door.foreign import home_of
from calibrant.exceptions import CalibrationInputError


def column_keys(data: Any, parameter: str) -> tuple[Any, ...] | None:
    """What the columns of a frame call the classes: names, or numbers; None where columns go by their places.

    Columns called 0, 1, ... go by their places, and so do those that polars numbers itself. Digits are numbers.
    """
    if home_of(data) not in ("pandas", "polars", "pyarrow") or not hasattr(data, "columns"):
        return None
    names = list(data.column_names if hasattr(data, "column_names") else data.columns)
    twice = [name for name, times in Counter(map(str, names)).items() if times > 1]
    if twice:
        raise CalibrationInputError(parameter, "must have each column once", got=f"{twice[0]!r} twice")
    if names and all(isinstance(name, str) and name.isdecimal() and str(int(name)) == name for name in names):
        names = [int(name) for name in names]
    places = [list(range(len(names))), [f"column_{place}" for place in range(len(names))]]
    alike = all(isinstance(name, str) for name in names) or all(map(is_number, names))
    return None if names in places or not alike else tuple(names)


def row_labels(data: Any) -> Any:
    """The index of a frame or series of pandas; None where there is none, or where rows are merely counted."""
    index = getattr(data, "index", None) if home_of(data) == "pandas" else None
    if index is None or not hasattr(index, "equals"):
        return None
    return None if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1) else index


def refuse_other_rows(name: str, index: Any, other_name: str, other: Any) -> None:
    """Refuse two indexes of one length that differ, by the first row that does."""
    if len(index) != len(other) or index.equals(other):
        return
    labels, others = ([repr(label) for label in each.tolist()] for each in (index, other))
    row = next((row for row, pair in enumerate(zip(labels, others, strict=True)) if pair[0] != pair[1]), 0)
    kind = "the same labels in another order" if Counter(labels) == Counter(others) else "other labels"
    raise CalibrationInputError(
        name,
        f"must have the index of {other_name}",
        got=f"{kind}: {labels[row]} where {other_name} has {others[row]}",
        where=f"row {row}",
        hint="align them by .loc, or pass .to_numpy() to go by position",
    )


@lru_cache(maxsize=4)
def numbered(count: int) -> tuple[str, ...]:
    """The names of classes that have none; those of a vocabulary take longer to make than a read of its logits.

    >>> numbered(3)
    ('0', '1', '2')
    """
    return tuple(map(str, range(count)))
