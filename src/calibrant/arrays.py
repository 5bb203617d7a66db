"""Arrays: anything array-like as a NumPy array, or one clear refusal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.exceptions import CalibrationInputError

Array = NDArray[Any]

_BITS = {2: 11, 4: 24, 8: 53}


def as_array(data: Any, parameter: str) -> tuple[Array, int]:
    """A NumPy array in native byte order, and the significand bits its numbers were given with.

    NumPy, lists, pandas, polars, pyarrow and torch (on any device, with or without gradients)
    are read without importing those packages.

    >>> array, bits = as_array([0.5, 1], "y_proba")
    >>> array, bits
    (array([0.5, 1. ]), 53)
    """
    if data is None:
        raise CalibrationInputError(parameter, "is required", got="None")
    if isinstance(data, np.ma.MaskedArray) and np.ma.getmaskarray(data).any():
        raise CalibrationInputError(
            parameter,
            "must have no masked entries",
            got=f"{int(np.ma.getmaskarray(data).sum())} of them",
            hint="drop those rows first",
        )
    if isinstance(data, Iterator):
        raise CalibrationInputError(
            parameter, "must be an array", got=f"a {type(data).__name__}", hint="collect it with list(...) first"
        )
    if hasattr(data, "toarray") and hasattr(data, "nnz"):
        raise CalibrationInputError(parameter, "must be dense", got="a sparse matrix", hint="pass .toarray()")
    data, bits = _from_elsewhere(data)
    try:
        array = np.asarray(data)
    except (ValueError, TypeError) as reason:
        raise CalibrationInputError(
            parameter, "must be a rectangular array of numbers", got="rows of different lengths", hint=str(reason)[:80]
        ) from None
    if array.ndim == 0:
        raise CalibrationInputError(parameter, "must be an array", got=f"the single value {data!r}"[:80])
    if array.dtype.kind == "O":
        array = _objects(array, parameter)
    if array.dtype.kind in "cmMV":
        raise CalibrationInputError(parameter, "must hold numbers or names", got=f"dtype {array.dtype}")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array, bits or _BITS.get(array.dtype.itemsize if array.dtype.kind == "f" else 8, 53)


def as_numbers(data: Any, parameter: str) -> tuple[Array, int]:
    """As `as_array`, for floats in C order: float16 becomes float32, whole numbers become float64."""
    array, bits = as_array(data, parameter)
    if array.dtype.kind not in "fiub":
        raise CalibrationInputError(
            parameter, "must hold numbers", got=f"dtype {array.dtype}", hint=_swapped(array, parameter)
        )
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    elif array.dtype.itemsize == 2:
        array = array.astype(np.float32)
    return np.ascontiguousarray(array), bits


def place(index: int, shape: tuple[int, ...]) -> str:
    """Where a flat index lies, in words: 'row 3' or 'row 3, column 1'."""
    where = np.unravel_index(index, shape)
    words = [f"row {int(where[0])}"]
    if len(where) == 2:
        words.append(f"column {int(where[1])}")
    elif len(where) > 2:
        words = [f"index {tuple(int(i) for i in where)}"]
    return ", ".join(words)


def _from_elsewhere(data: Any) -> tuple[Any, int | None]:
    """Torch, pandas, polars and pyarrow objects by their own way to NumPy; bits where NumPy has no such dtype."""
    home = type(data).__module__.partition(".")[0]
    if home == "torch":
        data = data.detach().cpu().resolve_conj()
        if str(data.dtype) == "torch.bfloat16":
            return data.float().numpy(), 8
        return data.numpy(), None
    if home == "pyarrow":
        if hasattr(data, "null_count") and data.null_count:
            return np.array([None] * len(data), dtype=object), None
        if hasattr(data, "to_pylist") and str(data.type).startswith(("list", "fixed_size_list", "large_list")):
            return data.to_pylist(), None
        return data.to_numpy(zero_copy_only=False) if hasattr(data, "type") and _is_plain(
            data
        ) else data.to_numpy(), None
    if home in ("pandas", "polars") and hasattr(data, "to_numpy"):
        return data.to_numpy(), None
    return data, None


def _is_plain(data: Any) -> bool:
    return type(data).__name__ != "ChunkedArray"


def _objects(array: Array, parameter: str) -> Array:
    """Object arrays are accepted when they are plain strings; missing values and the rest are named."""
    flat = array.ravel()
    for index, item in enumerate(flat):
        if isinstance(item, str):
            continue
        if item is None or type(item).__name__ in ("NAType", "NaTType") or item != item:
            raise CalibrationInputError(
                parameter, "must have no missing values", got=repr(item), where=place(index, array.shape)
            )
        if isinstance(item, (list, tuple, np.ndarray)):
            raise CalibrationInputError(
                parameter, "must be a rectangular array", got="nested sequences", where=place(index, array.shape)
            )
        raise CalibrationInputError(
            parameter,
            "must hold plain numbers or strings",
            got=f"a {type(item).__name__}",
            where=place(index, array.shape),
            hint="convert it with .astype(float) first",
        )
    return array.astype(str)


def _swapped(array: Array, parameter: str) -> str | None:
    names = array.dtype.kind == "U" and parameter in ("y_proba", "logits")
    return "names are labels, and the truth comes first" if names else None
