"""Arrays: anything array-like as a NumPy array, or one clear refusal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.door.foreign import from_elsewhere, is_sparse, on_device
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.sharing import read_only

Array = NDArray[Any]

_BITS = {2: 11, 4: 24, 8: 53}
_PLAIN = (bool, int, float, np.bool_, np.integer, np.floating)
_SCALARS = frozenset({bool, int, float, complex, str, bytes, type(None), *np.sctypeDict.values()})
"""Types of entries that hide no mask."""
DROP = 'pass missing="drop" to leave such rows out'
"""What to do about missing values."""
TIES = "of one event, ties can be left out: ignore_index=0.5"
"""What to do about soft labels where hard ones are needed."""
MISSING = "\0missing"
"""What stands for a missing value among text; among numbers nan does."""


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
            return array.reshape(-1)
        moved = array if self.class_axis == array.ndim - 1 else np.moveaxis(array, self.class_axis, -1)
        rows = moved.reshape(-1, moved.shape[-1])
        return np.ascontiguousarray(rows) if isinstance(rows, np.ndarray) else rows

    def restored(self, rows: Array) -> Array:
        """Rows in the shape of the array that was given.

        >>> Layout((2, 3, 4), class_axis=1).restored(np.zeros((8, 3))).shape
        (2, 3, 4)
        """
        axis = -1 if self.class_axis is None else self.class_axis
        return np.moveaxis(rows.reshape(*self.samples, *rows.shape[1:]), -1, axis)

    def place(self, row: Any, column: Any = None) -> str:
        """Where a row, or an entry of it, lies in the array that was given."""
        where = [int(index) for index in np.unravel_index(row, self.samples)]
        if len(where) == 1 and self.class_axis != 0:
            return f"row {where[0]}" if column is None else f"row {where[0]}, column {column}"
        if column is not None and self.class_axis is not None:
            where.insert(self.class_axis, int(column))
        return f"index {tuple(where)}" if len(where) > 1 else f"row {where[0]}"


def as_array(data: Any, parameter: str, *, drop: bool | None = None) -> tuple[Array, int]:
    """A NumPy array in native byte order, and the significand bits its numbers were given with.

    NumPy, lists, pandas, polars, pyarrow and torch (on any device, with or without gradients)
    are read without importing those packages; text is read as `str`. What may share memory with
    the data is read-only; what was converted can be written to, and is the reader's own. Missing values are refused,
    except nan, or with `drop` stand as nan or MISSING: `absent` finds them. Refusals name the option if drop is False.

    >>> array, bits = as_array([0.5, 1], "y_proba")
    >>> array, bits
    (array([0.5, 1. ]), 53)
    """
    _refuse_what_is_no_array(data, parameter)
    array, bits = _read(data, parameter, drop)
    if array.ndim == 0:
        raise CalibrationInputError(parameter, "must be an array", got=f"the single value {data!r}")
    if array.dtype.kind == "O":
        array = _plain(array, parameter, drop)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "backslashreplace")
    if array.dtype.kind == "T":
        array = array.astype(str)
    if array.dtype.kind not in "fiubU":
        raise CalibrationInputError(parameter, "must hold numbers or names", got=f"dtype {array.dtype}")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array, bits or _BITS.get(array.dtype.itemsize if array.dtype.kind == "f" else 8, 53)


def as_numbers(data: Any, parameter: str, *, hint: str | None = None, drop: bool | None = None) -> tuple[Array, int]:
    """As `as_array`, for floats in C order: float16 becomes float32, whole numbers become float64.

    The hint is for those who gave names.
    """
    array, bits = as_array(data, parameter, drop=drop)
    if array.dtype.kind == "U":
        raise CalibrationInputError(parameter, "must hold numbers", got=f"dtype {array.dtype}", hint=hint)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    elif array.dtype.itemsize == 2:
        array = array.astype(np.float32)
    return np.ascontiguousarray(array), bits


def as_forecasts(data: Any, parameter: str, *, hint: str, drop: bool | None = None) -> tuple[Array, int]:
    """As `as_numbers`, but floats on a device stay there, unless missing values are to be found.

    >>> as_forecasts([0.5, 1], "y_proba", hint="")[0].tolist()
    [0.5, 1.0]
    """
    tensor = None if drop else on_device(data)
    if tensor is not None and tensor.dtype.kind == "f" and tensor.ndim:
        return tensor, tensor.bits
    return as_numbers(data, parameter, hint=hint, drop=drop)


def as_labels(data: Any, parameter: str, *, drop: bool | None = None) -> Array:
    """As `as_array`, for labels; whole numbers on a device stay there.

    >>> as_labels([0, 2], "y_true").tolist()
    [0, 2]
    """
    tensor = None if drop else on_device(data)
    if tensor is not None and tensor.dtype.kind in "iub" and tensor.ndim:
        return tensor.astype(np.int64)
    return as_array(data, parameter, drop=drop)[0]


def absent(array: Array) -> Array:
    """Which values are missing.

    >>> absent(np.array([1, np.nan])).tolist(), absent(np.array(["a", MISSING])).tolist()
    ([False, True], [False, True])
    """
    return array == MISSING if array.dtype.kind == "U" else array != array


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


def _read(data: Any, parameter: str, drop: bool | None) -> tuple[Array, int | None]:
    try:
        data, bits = from_elsewhere(data)
        data = _unmasked(data, parameter, drop)
        try:
            array = np.asarray(data)
        except ValueError:
            array = np.asarray(_whole_rows(data))
        if array is not data and not array.flags.owndata:
            array = read_only(array)  # a buffer, such as an array.array
        if array.dtype.kind == "O" and array.ndim == 1:
            array = np.asarray(_whole_rows(array))
        if array.dtype.kind == "U" and not hasattr(data, "__array__") and any(map(_is_missing, data)):
            array = np.array(data, object)  # NumPy would call a missing name 'nan'
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


def _whole_rows(data: Any) -> Any:
    """Rows that stand in a column, as pandas and polars hold them; a row that is missing is one of missing values."""
    rows = [row for row in data if not _is_missing(row)]
    if not rows or not all(isinstance(row, (list, tuple, np.ndarray)) for row in rows):
        return data
    return [[None] * len(rows[0]) if _is_missing(row) else row for row in data]


def _is_missing(item: Any) -> bool:
    """Whether an entry says that there is none: None, nan, NA or NaT."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(item, (float, np.floating)) and bool(item != item)


def _unmasked(data: Any, parameter: str, drop: bool | None) -> Any:
    """The data as they are, where nothing is masked; masked entries are refused, or become missing values."""
    if type(data) is np.ndarray and data.dtype.kind != "O":  # the usual case; numpy.ma takes long to import
        return data
    masked = _masked_entries(data)
    if masked and not drop:
        raise CalibrationInputError(
            parameter,
            "must have no masked entries",
            got=f"{masked} of them",
            hint="drop those rows first" if drop is None else DROP,
        )
    return _without_masks(data) if masked else data


def _without_masks(data: Any) -> Any:
    if data is np.ma.masked:
        return None
    if isinstance(data, np.ma.MaskedArray):
        if data.dtype.kind not in "fiub":
            return data.tolist()  # None for what is masked
        return np.ma.filled(data.astype(np.result_type(data.dtype, np.float16)), np.nan)
    if isinstance(data, (str, bytes)) or not (isinstance(data, Sequence) or hasattr(data, "__array__")):
        return data
    inside = data if isinstance(data, Sequence) else from_elsewhere(data)[0]
    if isinstance(inside, np.ma.MaskedArray):
        return _without_masks(inside)
    return [_without_masks(entry) for entry in (inside.tolist() if isinstance(inside, np.ndarray) else inside)]


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


def _plain(array: Array, parameter: str, drop: bool | None) -> Array:
    """Objects as what they are, all numbers or all text; a missing value and anything else is named."""
    entries: list[Any] = list(array.flat)
    gaps = {index for index, item in enumerate(entries) if _is_missing(item)}
    if gaps and not drop:
        got, where = repr(entries[min(gaps)]), place(min(gaps), array.shape)
        hint = None if drop is None else DROP
        raise CalibrationInputError(parameter, "must have no missing values", got=got, where=where, hint=hint)
    text = isinstance(next((item for index, item in enumerate(entries) if index not in gaps), None), str)
    for index, item in enumerate(entries):
        if index in gaps:
            entries[index] = MISSING if text else np.nan
        elif not isinstance(item, str if text else _PLAIN):
            raise CalibrationInputError(
                parameter,
                "must hold plain numbers or strings",
                got=f"a {type(item).__name__}",
                where=place(index, array.shape),
                hint="convert them to one kind first",
            )
    return np.array(entries).reshape(array.shape)
