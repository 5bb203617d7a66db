"""Columns of a tensor at ranks: what lies below the forecast at each rank, found by halving, without sorting."""

from __future__ import annotations

from typing import Any

import torch

from calibrant.kernels.tensors import widened

ONE = 0x3F80_0000
"""The bits of 1.0 in float32."""
ZEROS = {torch.float16: 13, torch.bfloat16: 16}
"""Significand bits that are 0 where halves are widened."""


def at_ranks(values: Any, targets: Any, ranks: Any, kernels: Any) -> tuple[Any, Any]:
    """Forecasts (2, v, r) and whole numbers (6, v, r) as `calibrant.kernels.torch.at_ranks` gives them.

    `kernels` has the two walks down the columns, `up_to` and `below`.

    >>> from calibrant.kernels import rowwise
    >>> forecasts, whole = at_ranks(torch.tensor([[0.25], [0.75]]), torch.tensor([0, -1]), [1, 2], rowwise)
    >>> forecasts.tolist(), whole[:4].tolist()
    ([[[0.75, inf]], [[0.25, 0.75]]], [[[1, 2]], [[2, 2]], [[1, 1]], [[1, 1]]])
    """
    places = torch.as_tensor(ranks, device=values.device).expand(values.shape[1], -1)
    at = _forecasts(values, places, kernels)
    below, sums, largest = kernels.below(values, at)
    whole = torch.stack((below, kernels.up_to(values, at), *_hits(values, targets.long(), at), *sums))
    return torch.stack((at, largest)).double(), whole


def _forecasts(values: Any, places: Any, kernels: Any) -> Any:
    """The forecast at each rank of each column: the smallest of which more than so many lie at or below it.

    Floats of at least 0 are in the order of their bits, among which the one is found by halving.
    """
    zeros = ZEROS.get(values.dtype, 0)
    low = torch.zeros(places.shape, dtype=torch.int32, device=values.device)
    high = torch.full_like(low, ONE >> zeros)
    for _ in range((ONE >> zeros).bit_length()):
        middle = (low + high) >> 1
        enough = kernels.up_to(values, (middle << zeros).view(torch.float32)) > places
        low, high = torch.where(enough, low, torch.minimum(middle + 1, high)), torch.where(enough, middle, high)
    return torch.where(places < len(values), (high << zeros).view(torch.float32), torch.inf)


def _hits(values: Any, truth: Any, at: Any) -> tuple[Any, Any]:
    """How many of those below each forecast of a column came true, and of those at or below it.

    A sample comes true in one column at most, so its column and forecast make one key.
    """
    true = widened(values.gather(1, truth.clamp(min=0)[:, None])[:, 0])
    keys = torch.sort((truth << 31) + (true + 0.0).view(torch.int32)).values  # -0.0 becomes 0.0
    columns = torch.arange(values.shape[1], device=truth.device)[:, None] << 31
    first, wanted = torch.searchsorted(keys, columns), columns + at.view(torch.int32)
    return torch.searchsorted(keys, wanted) - first, torch.searchsorted(keys, wanted, right=True) - first
