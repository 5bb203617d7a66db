"""Arrays: anything array-like as a NumPy array, or one clear refusal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.door.foreign import from_elsewhere, is_sparse
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.sharing import read_only

Array = NDArray[Any]

_BITS = {2: 11, 4: 24, 8: 53}
_PLAIN = (bool, int, float, np.bool_, np.integer, np.floating)
_SCALARS = frozenset({bool, int, float, complex, str, bytes, type(None), *np.sctypeDict.values()})
"""Types of entries that hide no mask."""


@dataclass(frozen=True)
class Layout:
    """How samples lie in the array that was given: along the first axis, or in maps along all but the class axis.

    >>> layout = Layout((2, 3, 4), class_axis=1)
    >>> layout.samples, layout.rows(np.zeros((2, 3, 4))).shape, layout.place(5, 2)
    ((2, 4), (8, 3), 'index (1, 2, 1)')
    """

    shape: tuple[int, ...]
    class_axis: int | None = None

    @property
    def samples(self) -> tuple[int, ...]:
        """The shape without the class axis."""
        return tuple(size for axis, size in enumerate(self.shape) if axis != self.class_axis)

    def rows(self, array: Array) -> Array:
        """One row per sample, in C order."""
        if self.class_axis is None:
            return array
        moved = np.moveaxis(array, self.class_axis, -1)
        return np.ascontiguousarray(moved.reshape(-1, moved.shape[-1]))

    def place(self, row: Any, column: Any = None) -> str:
        """Where a row, or an entry of it, lies in the array that was given."""
        where = [int(index) for index in np.unravel_index(row, self.samples)]
        if len(where) == 1 and self.class_axis != 0:
            return f"row {where[0]}" if column is None else f"row {where[0]}, column {column}"
        if column is not None and self.class_axis is not None:
            where.insert(self.class_axis, int(column))
        return f"index {tuple(where)}" if len(where) > 1 else f"row {where[0]}"


def as_array(data: Any, parameter: str) -> tuple[Array, int]:
    """A NumPy array in native byte order, and the significand bits its numbers were given with.

    NumPy, lists, pandas, polars, pyarrow and torch (on any device, with or without gradients)
    are read without importing those packages; text is read as `str`. What may share memory with
    the data is read-only; what was converted can be written to, and is the reader's own.

    >>> array, bits = as_array([0.5, 1], "y_proba")
    >>> array, bits
    (array([0.5, 1. ]), 53)
    """
    _refuse_what_is_no_array(data, parameter)
    array, bits = _read(data, parameter)
    if array.ndim == 0:
        raise CalibrationInputError(parameter, "must be an array", got=f"the single value {data!r}")
    if array.dtype.kind == "O":
        array = _plain(array, parameter)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "backslashreplace")
    if array.dtype.kind == "T":
        array = array.astype(str)
    if array.dtype.kind not in "fiubU":
        raise CalibrationInputError(parameter, "must hold numbers or names", got=f"dtype {array.dtype}")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array, bits or _BITS.get(array.dtype.itemsize if array.dtype.kind == "f" else 8, 53)


def as_numbers(data: Any, parameter: str, *, hint: str | None = None) -> tuple[Array, int]:
    """As `as_array`, for floats in C order: float16 becomes float32, whole numbers become float64.

    The hint is for those who gave names.
    """
    array, bits = as_array(data, parameter)
    if array.dtype.kind == "U":
        raise CalibrationInputError(parameter, "must hold numbers", got=f"dtype {array.dtype}", hint=hint)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    elif array.dtype.itemsize == 2:
        array = array.astype(np.float32)
    return np.ascontiguousarray(array), bits


def place(index: int, shape: tuple[int, ...]) -> str:
    """Where a flat index lies, in words: 'row 3' or 'row 3, column 1', and in maps 'index (0, 2, 3)'."""
    where = tuple(int(i) for i in np.unravel_index(index, shape))
    if len(where) > 2:
        return f"index {where}"
    return ", ".join(f"{word} {i}" for word, i in zip(("row", "column"), where, strict=False))


def shown(number: Any) -> str:
    """A number as one would write it: with the digits that tell it from its neighbours, and whole ones without a point.

    >>> shown(np.float32(0.1)), shown(np.float64(95))
    ('0.1', '95')
    """
    return str(number).removesuffix(".0")


def _refuse_what_is_no_array(data: Any, parameter: str) -> None:
    if data is None:
        raise CalibrationInputError(parameter, "is required", got="None")
    if isinstance(data, Iterator):
        raise CalibrationInputError(
            parameter, "must be an array", got=f"a {type(data).__name__}", hint="collect it with list(...) first"
        )
    if is_sparse(data):
        raise CalibrationInputError(parameter, "must be dense", got="a sparse array", hint="pass .toarray()")
    if not isinstance(data, (Sequence, *_PLAIN)) and not hasattr(data, "__array__"):
        raise CalibrationInputError(parameter, "must be an array", got=f"a {type(data).__name__}")


def _read(data: Any, parameter: str) -> tuple[Array, int | None]:
    try:
        data, bits = from_elsewhere(data)
        _refuse_masked(data, parameter)
        array = np.asarray(data)
        if array is not data and not array.flags.owndata:
            array = read_only(array)  # a buffer, such as an array.array
        if array.dtype.kind == "O" and array.ndim == 1 and all(isinstance(row, (list, np.ndarray)) for row in array):
            array = np.asarray(list(array))  # rows in a column, as pandas and polars hold them
    except CalibrationInputError:
        raise
    except (ValueError, TypeError, RuntimeError) as reason:
        where = _uneven_row(data)
        raise CalibrationInputError(
            parameter,
            "must be a rectangular array of numbers",
            got=str(reason) if where is None else "rows of different lengths",
            where=where,
        ) from None
    return array, bits


def _refuse_masked(data: Any, parameter: str) -> None:
    masked = _masked_entries(data)
    if masked:
        raise CalibrationInputError(
            parameter, "must have no masked entries", got=f"{masked} of them", hint="drop those rows first"
        )


def _masked_entries(data: Any) -> int:
    """How many entries are masked: of an array, and of all arrays inside lists and inside arrays of objects."""
    masked = 0
    inside: Sequence[Any] = ()
    if isinstance(data, np.ma.MaskedArray):
        masked = int(np.ascontiguousarray(np.ma.getmaskarray(data)).view(np.bool_).sum())  # a record has a mask a field
    if isinstance(data, np.ndarray):
        inside = np.asarray(data).ravel().tolist() if data.dtype.kind == "O" else []
    elif isinstance(data, Sequence) and not isinstance(data, memoryview):
        inside = data
    elif hasattr(data, "__array__"):
        return _masked_entries(from_elsewhere(data)[0])
    return masked if _SCALARS.issuperset(map(type, inside)) else masked + sum(map(_masked_entries, inside))


def _uneven_row(data: Any) -> str | None:
    """The first row that is not as long as the one before it."""
    if not isinstance(data, (Sequence, np.ndarray)):
        return None
    lengths = [len(row) if hasattr(row, "__len__") else None for row in data]
    return next((f"row {row}" for row, length in enumerate(lengths) if length != lengths[0]), None)


def _plain(array: Array, parameter: str) -> Array:
    """Objects as what they are, all numbers or all text; a missing value and anything else is named."""
    for index, item in enumerate(array.flat):
        if item is None or type(item).__name__ in ("NAType", "NaTType") or (isinstance(item, float) and item != item):
            raise CalibrationInputError(
                parameter, "must have no missing values", got=repr(item), where=place(index, array.shape)
            )
    kinds: Any = str if array.size and isinstance(array.flat[0], str) else _PLAIN
    for index, item in enumerate(array.flat):
        if not isinstance(item, kinds):
            raise CalibrationInputError(
                parameter,
                "must hold plain numbers or strings",
                got=f"a {type(item).__name__}",
                where=place(index, array.shape),
                hint="convert them to one kind first",
            )
    return np.array(array.tolist())
