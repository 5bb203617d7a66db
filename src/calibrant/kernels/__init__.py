"""Kernels: the only heavy loops, behind one seam.

What goes through the seam is arrays, numbers, words, tuples of these, and None for an array that is not there. A back
end is a module with these functions. Each gives the same whole numbers, and floats that agree to 1e-12.
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from calibrant.exceptions import CalibrationInputError
from calibrant.kernels import compiled, native, numpy

if TYPE_CHECKING:
    from calibrant.kernels.numpy import (
        apart,
        brier,
        cell_numbers,
        cell_totals,
        column_cuts,
        column_sums,
        distances,
        distinct,
        entries,
        event_logs,
        event_scores,
        every_log_odds,
        extremes,
        leaders,
        log_odds,
        logits_survey,
        normalisers,
        ordered,
        pair_sums,
        partition,
        path_ends,
        pooled,
        rising,
        row_sums,
        row_survey,
        running,
        scalar_codes,
        scalar_totals,
        similarities,
        softmax,
        softplus,
        square_sums,
        sums_by_code,
        table_sums,
        taken,
        tempered,
    )

__all__ = [
    "apart",
    "backends",
    "brier",
    "cell_numbers",
    "cell_totals",
    "column_cuts",
    "column_sums",
    "distances",
    "distinct",
    "entries",
    "event_logs",
    "event_scores",
    "every_log_odds",
    "extremes",
    "leaders",
    "log_odds",
    "logits_survey",
    "normalisers",
    "ordered",
    "pair_sums",
    "partition",
    "path_ends",
    "pooled",
    "rising",
    "row_sums",
    "row_survey",
    "running",
    "scalar_codes",
    "scalar_totals",
    "serving",
    "similarities",
    "softmax",
    "softplus",
    "square_sums",
    "sums_by_code",
    "table_sums",
    "taken",
    "tempered",
    "using",
]
_FORCED: ContextVar[str] = ContextVar("kernels")


def backends() -> dict[str, ModuleType]:
    """The back ends by name; the last one serves.

    >>> "numpy" in backends()
    True
    """
    return {"numpy": numpy} | ({} if compiled.library() is None else {"native": native})


def beside(array: Any) -> ModuleType:
    """The functions that serve an array where it is: on a device those of `calibrant.kernels.torch`, else these.

    >>> from numpy import zeros
    >>> beside(zeros(1)).__name__
    'calibrant.kernels'
    """
    if isinstance(array, ndarray):
        return sys.modules[__name__]
    return _of_torch()


@cache
def _of_torch() -> ModuleType:
    return importlib.import_module("calibrant.kernels.torch")


@contextlib.contextmanager
def using(name: str) -> Iterator[None]:
    """Let one back end serve, in this thread or task, until the block ends.

    >>> import calibrant as cal
    >>> with cal.kernels.using("numpy"):
    ...     cal.ECE([1, 0], [.9, .4]).value
    0.25
    """
    _known(name, "using")
    token = _FORCED.set(name)
    try:
        yield
    finally:
        _FORCED.reset(token)


def serving() -> tuple[str, str]:
    """Which back end serves, and why.

    >>> with using("numpy"):
    ...     serving()
    ('numpy', 'asked for by the program')
    """
    if forced := _FORCED.get(""):
        return forced, "asked for by the program"
    if told := os.environ.get("CALIBRANT_KERNELS"):
        return _known(told, "CALIBRANT_KERNELS"), "asked for by CALIBRANT_KERNELS"
    loaded = compiled.library()
    if loaded is None:
        return "numpy", "the compiled kernels were not built when calibrant was installed"
    return "native", f"compiled kernels, {compiled.level_of(loaded)} instructions"


def _known(name: str, parameter: str) -> str:
    if name not in backends():
        built = ", ".join(backends())
        raise CalibrationInputError(parameter, f"must be one of the kernels that are there: {built}", got=repr(name))
    return name


def __getattr__(name: str) -> Any:
    """A kernel of the back end that serves now."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(backends()[serving()[0]], name)
