"""Columns of a tensor at ranks: what lies below the forecast at each rank, found digit by digit, without sorting."""

from __future__ import annotations

from typing import Any

import torch

from calibrant.kernels.tensors import widened

MANY, FEW = (12, 9, 9), (6, 6, 6, 6, 6)
"""How many of the 30 bits of floats up to 1.0 are found at a time, in columns of many samples or of few."""
LONG = 40_960
"""Samples that are many: ten for each count of the first table."""
TOGETHER = 64
"""Ranks that are found together at most, since each has a table of counts."""
COUNTS = 1 << 30
"""Counts of all tables together, at most."""


def at_ranks(values: Any, targets: Any, ranks: Any, kernels: Any) -> tuple[Any, Any]:
    """Forecasts (2, v, r) and whole numbers (6, v, r) as `calibrant.kernels.torch.at_ranks` gives them.

    `kernels` has the two walks down the columns, `counted_digits` and `below`.

    >>> from calibrant.kernels import rowwise
    >>> forecasts, whole = at_ranks(torch.tensor([[0.25], [0.75]]), torch.tensor([0, -1]), [1, 2], rowwise)
    >>> forecasts.tolist(), whole[:4].tolist()
    ([[[0.75, inf]], [[0.25, 0.75]]], [[[1, 2]], [[2, 2]], [[1, 1]], [[1, 1]]])
    """
    places = torch.as_tensor(ranks, device=values.device).expand(values.shape[1], -1)
    together = max(1, min(TOGETHER, COUNTS // (values.shape[1] << max(MANY[1:]))))
    parts = [_forecasts(values, some, kernels) for some in places.split(together, dim=1)]
    at, below, through = (torch.cat(part, dim=1) for part in zip(*parts, strict=True))
    sums, largest = kernels.below(values, at)
    whole = torch.stack((below, through, *_hits(values, targets.long(), at), *sums))
    return torch.stack((at, largest)).double(), whole


def _forecasts(values: Any, places: Any, kernels: Any) -> tuple[Any, Any, Any]:
    """The forecast at each rank of each column, how many values lie below it, and how many at or below it.

    Floats of at least 0 are in the order of their bits. Of these the highest are found first, from counts of what
    stands there; then the next, among the values that have the bits that were found.
    """
    n, shift = len(values), 30
    sought = places.clamp(max=n - 1).int()
    prefixes, slots = torch.zeros_like(sought[:, :1]), torch.zeros_like(places)
    for bits in MANY if n >= LONG else FEW:
        shift -= bits
        counts = kernels.counted_digits(values, prefixes, shift, bits).flatten(1)
        running = counts.cumsum(1, dtype=torch.int32)
        homes = slots << bits
        sought = sought + running.gather(1, homes) - counts.gather(1, homes)
        cells = torch.searchsorted(running, sought, right=True)
        same = counts.gather(1, cells)
        sought = sought + same - running.gather(1, cells)
        prefixes = ((prefixes.gather(1, slots) << bits) + (cells - homes)).int()
        slots = torch.searchsorted(prefixes, prefixes)
    beyond, below = places >= n, places - sought
    at = torch.where(beyond, torch.inf, prefixes.view(torch.float32))
    return at, torch.where(beyond, n, below), torch.where(beyond, n, below + same)


def _hits(values: Any, truth: Any, at: Any) -> tuple[Any, Any]:
    """How many of those below each forecast of a column came true, and of those at or below it.

    A sample comes true in one column at most, so its column and forecast make one key.
    """
    true = widened(values.gather(1, truth.clamp(min=0)[:, None])[:, 0])
    keys = torch.sort((truth << 31) + (true + 0.0).view(torch.int32)).values  # -0.0 becomes 0.0
    columns = torch.arange(values.shape[1], device=truth.device)[:, None] << 31
    first, wanted = torch.searchsorted(keys, columns), columns + at.view(torch.int32)
    return torch.searchsorted(keys, wanted) - first, torch.searchsorted(keys, wanted, right=True) - first
