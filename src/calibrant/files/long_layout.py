"""The long layout: a line for each class of each row, in the columns `row`, `class` and `p`."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.files.columns import Columns
from calibrant.kernels.totals import Ints

LONG = ("row", "class", "p")
"""Which row a line is of, which class it is about, and the probability of that class."""


def is_long(names: Collection[str]) -> bool:
    """Whether columns are those of the long layout.

    >>> is_long(["label", "row", "class", "p"]), is_long(["label", "class", "p"])
    (True, False)
    """
    return set(LONG) <= set(names)


def row_starts(row: Array) -> Ints:
    """The first line of each row, whose lines stand together.

    >>> row_starts(np.array([7, 7, 8, 8])).tolist()
    [0, 2]
    """
    return np.flatnonzero(np.append(True, row[1:] != row[:-1])[: len(row)])


def widened(arrays: Columns) -> Columns:
    """The same predictions with a line for each row: `p_<class>` of every class, in order of the classes.

    The label, and any other column that is asked for, must have the same value on all lines of a row.

    >>> from calibrant.door.streams import InputFile
    >>> lines = {"row": [0, 0, 1, 1], "class": ["b", "a", "a", "b"], "p": [.3, .7, .2, .8], "label": list("aabb")}
    >>> raw = {name: np.array(column) for name, column in lines.items()}
    >>> table = widened(Columns(InputFile("a.csv", ".csv", None), raw, raw.__getitem__))
    >>> {name: column.tolist() for name, column in table.items()}
    {'label': ['a', 'b'], 'p_a': [0.7, 0.2], 'p_b': [0.3, 0.8]}
    """
    row, classes, p = (arrays[name] for name in LONG)
    starts = row_starts(row)
    _check_lines(arrays, row, starts)
    shape = len(starts), len(row) // max(1, len(starts))
    order = np.argsort(classes.reshape(shape), axis=1, kind="stable")
    names = np.take_along_axis(classes.reshape(shape), order, axis=1)
    unlike = np.flatnonzero((names != names[:1]).any(axis=1) | (names[:, 1:] == names[:, :-1]).any(axis=1))
    if unlike.size:
        expected = f"must have each of the classes {', '.join(map(str, names[0]))} once a row"
        raise _wrong(arrays, expected, ", ".join(map(str, names[unlike[0]])), row[starts[unlike[0]]])
    forecasts = np.take_along_axis(p.reshape(shape), order, axis=1)
    wide = {f"p_{name}": column for name, column in zip(names[0].tolist(), forecasts.T, strict=True)}

    def read(name: str) -> Array:
        return wide[name] if name in wide else _of_rows(arrays, name, starts, shape)

    return Columns(arrays.source, {**{name: None for name in arrays if name not in LONG}, **wide}, read)


def _of_rows(arrays: Columns, name: str, starts: Ints, shape: tuple[int, int]) -> Array:
    """A column of which all lines of a row have one value; refused where they have others."""
    lines = arrays[name].reshape(*shape, *arrays[name].shape[1:])
    uneven = np.flatnonzero((lines != lines[:, :1]).reshape(len(lines), -1).any(axis=1))
    if uneven.size:
        row = arrays[LONG[0]][starts[uneven[0]]]
        raise _wrong(arrays, f"must have one value of {name!r} for all lines of a row", "several", row)
    return arrays[name][starts]


def _check_lines(arrays: Columns, row: Array, starts: Ints) -> None:
    """Refuse rows that come again, and rows with more or fewer lines than the first."""
    counts = np.diff(np.append(starts, len(row)))
    _, first = np.unique(row[starts], return_index=True)
    again = np.setdiff1d(np.arange(len(starts)), first)
    if again.size:
        raise _wrong(arrays, "must have the lines of a row together", "them apart", row[starts[again[0]]])
    uneven = np.flatnonzero(counts != counts[0])
    if uneven.size:
        raise _wrong(arrays, f"must have {counts[0]} lines a row", counts[uneven[0]], row[starts[uneven[0]]])


def _wrong(arrays: Columns, expected: str, got: object, row: object) -> CalibrationInputError:
    return CalibrationInputError(str(arrays.source), expected, got=str(got), where=f"the lines of row {row}")
