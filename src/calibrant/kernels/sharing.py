"""Sharing: arrays that others may still write into, and arrays that nobody can."""

from __future__ import annotations

import contextlib
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to; the array itself stays as it is.

    >>> array = np.zeros(2)
    >>> read_only(array).flags.writeable, array.flags.writeable
    (False, True)
    """
    if not isinstance(array, np.ndarray):  # on a device there is no such flag
        return array
    view = array.view()
    view.setflags(write=False)
    return view


def unshared(array: NDArray[Any]) -> NDArray[Any]:
    """An array into which nobody else can write: a copy of what is read-only, because that was given by others.

    What was made on the way in (of another type, in another order) can be written to and is not copied again.
    Memory maps, Arrow buffers and what is on a device are never copied.

    >>> given, made = np.zeros(2), np.ones(2)
    >>> np.shares_memory(unshared(read_only(given)), given), unshared(made) is made
    (False, True)
    """
    shared = isinstance(array, np.ndarray) and not array.flags.writeable and not _is_mapped(array)
    return array.copy() if shared else array


def searchable(array: NDArray[Any]) -> NDArray[Any]:
    """A view for `argmax`, which copies the whole of an array that it may not write to.

    What nobody may write to, such as a memory map that was opened for reading, stays as it is.

    >>> searchable(read_only(np.zeros(2))).flags.writeable
    True
    """
    view = array.view()
    with contextlib.suppress(ValueError):
        view.setflags(write=True)
    return view


def _is_mapped(array: Any) -> bool:
    """Whether an array is a view of a memory map or of an Arrow buffer."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap):  # a copy of a memory map is none
            return True
        array = array.base
    return type(array).__module__.partition(".")[0] == "pyarrow"
