"""Fused kernels: Triton's launches as operations of torch, with torch's own operations where there is no GPU."""

from types import SimpleNamespace
from typing import Any

from torch.library import triton_op

from calibrant.kernels import rowwise
from calibrant.kernels.along_rows import exponentials, squares, tempered, tops
from calibrant.kernels.down_columns import add_columns, add_events, below, up_to


def _operation(launch: Any, **options: Any) -> Any:
    """A launch as an operation of torch, with torch's own operations where there is no GPU."""
    operation = triton_op(f"calibrant::{launch.__name__}", launch, mutates_args=options.get("changes", ()))
    operation.register_kernel("cpu")(getattr(rowwise, launch.__name__))
    return operation


operations = SimpleNamespace(
    **{launch.__name__: _operation(launch) for launch in (tops, exponentials, squares, tempered, up_to, below)},
    **{launch.__name__: _operation(launch, changes=("table",)) for launch in (add_columns, add_events)},
)
"""The launches as operations of torch."""
