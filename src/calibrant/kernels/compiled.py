"""The compiled kernels: libraries of C++ for several levels of instructions, of which the best that runs is loaded."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = ("plain", "avx2", "avx512")
"""Levels of instructions, each a superset of the one before."""
MOST_THREADS = 8
SHARED = 1 << 20
"""Entries from which on work is shared out among threads."""


@cache
def library(level: str | None = None) -> ctypes.CDLL | None:
    """The library of a level, or of the best one that this machine runs; None where it was not built or does not load.

    >>> library("no such level") is None
    True
    """
    if level is None:
        plain = library("plain")
        able = [name for place, name in enumerate(LEVELS) if plain is not None and plain.calibrant_runs(place)]
        libraries = (library(name) for name in reversed(able))
        return next((each for each in libraries if each is not None), None)
    try:
        return ctypes.CDLL(str(Path(__file__).parent / "cpp" / f"{level}.kernels"))
    except OSError:
        return None


@cache
def level_of(loaded: ctypes.CDLL) -> str:
    """The level of instructions of a library."""
    return Path(loaded._name).stem


def serving_level() -> str:
    """The level of instructions of the library that serves.

    >>> library("plain") is None or serving_level() in LEVELS
    True
    """
    loaded = library()
    assert loaded is not None
    return level_of(loaded)


def fuses() -> bool:
    """Whether the library multiplies and adds in one instruction; without it, exponentials would take long.

    >>> library("plain") is None or fuses() in (True, False)
    True
    """
    loaded = library()
    return loaded is not None and bool(loaded.calibrant_fuses())


def call(name: str, *arguments: Any) -> None:
    """Call a kernel of the library with arrays and numbers; it runs without Python's lock.

    Arrays are given by where they begin, None as nowhere; floats as float64 and all other numbers as int64.
    """
    kernel = getattr(library(), f"calibrant_{name}")
    if kernel(*map(_converted, arguments)):
        raise MemoryError(f"the kernel {name} needs more memory")


def matrix(values: NDArray[Any]) -> tuple[NDArray[Any], int, int, int, bool]:
    """A matrix as kernels take it: rows of float32 or float64 side by side, their number, width, stride, which type.

    >>> values, n, width, stride, wide = matrix(np.zeros((4, 6), np.float32)[:, :2])
    >>> n, width, stride, wide
    (4, 2, 6, False)
    """
    values = np.asarray(values)  # what lies on a device is fetched
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float32 if values.dtype == np.float16 else np.float64)
    size = values.itemsize
    rows, columns = values.strides
    if (columns != size and values.shape[1] > 1) or rows % size or rows < 0 or not values.flags.aligned:
        values = np.ascontiguousarray(values)
    return values, *values.shape, values.strides[0] // size, values.dtype == np.float64


def threads_for(size: int) -> int:
    """Among how many threads so many entries are shared out: OMP_NUM_THREADS, or the processors that may be used.

    >>> threads_for(10)
    1
    """
    if size < SHARED:
        return 1
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdecimal() and int(told):
        return min(int(told), MOST_THREADS)
    free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(free, MOST_THREADS)


def _converted(argument: Any) -> Any:
    if argument is None:
        return ctypes.c_void_p(None)
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.__array_interface__["data"][0])
    return ctypes.c_double(argument) if isinstance(argument, float) else ctypes.c_int64(int(argument))
