"""Fused kernels: Triton's launches, and the same as operations of torch, for graphs that torch compiles."""

from types import SimpleNamespace
from typing import Any

from torch.library import triton_op

from calibrant.kernels import rowwise
from calibrant.kernels.along_rows import add_scores, exponentials, squared_errors, tempered, tops
from calibrant.kernels.down_columns import add_columns, add_events, below, counted_digits

PURE = (tops, exponentials, squared_errors, tempered, counted_digits, below)
ADDING = (add_columns, add_events, add_scores)


def _operation(launch: Any, changes: tuple[str, ...] = ()) -> Any:
    """A launch as an operation of torch, with torch's own operations where there is no GPU."""
    operation = triton_op(f"calibrant::{launch.__name__}", launch, mutates_args=changes)
    operation.register_kernel("cpu")(getattr(rowwise, launch.__name__))
    return operation


launches = SimpleNamespace(**{launch.__name__: launch for launch in (*PURE, *ADDING)})
"""The launches themselves: calling an operation would take longer than most of them."""
operations = SimpleNamespace(
    **{launch.__name__: _operation(launch) for launch in PURE},
    **{launch.__name__: _operation(launch, changes=("table",)) for launch in ADDING},
)
"""The launches as operations of torch."""
