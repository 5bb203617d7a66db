"""Triton's kernels down the columns of a tensor on a GPU, with the whole numbers of `rowwise`.

Units of 2^-52 are the significand bits of 1 + p in float64, summed in registers; sums of tiles and the few entries that
go to other cells are added by atomics on whole numbers, so that no order of tiles can change a bit.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch.library import wrap_triton

from calibrant.kernels.along_rows import ALIGNMENT, ONE

COLUMNS = 128
"""Columns of a tile that is summed downwards."""
DOWN = 16
"""Its rows."""
STEPS = 16
"""How many such tiles are below each other: fewer than 2048 rows of units fit an int64."""
EVENTS = 256
"""Events of a tile."""
COUNTED, SUMMED = (128, 64), (64, 64)
"""Rows and columns of a tile that is compared with thresholds, and whose units are summed, too."""
LOW = tl.constexpr((1 << 26) - 1)


@triton.jit
def _add_columns(
    table,
    values,
    edges,
    n,
    parts,
    cells,
    bins,
    aligned: tl.constexpr,
    right: tl.constexpr,
    tile_rows: tl.constexpr,
    block: tl.constexpr,
    depth: tl.constexpr,
):
    width = parts * aligned
    columns = tl.program_id(0) * block + tl.arange(0, block)
    start = tl.program_id(1).to(tl.int64) * (tile_rows * depth)
    units = tl.zeros((block,), tl.int64)
    counts = tl.zeros((block,), tl.int32)
    nearest = tl.load(edges)
    for step in range(depth):
        rows = start + step * tile_rows + tl.arange(0, tile_rows)
        inside = (rows < n)[:, None] & (columns < width)[None, :]
        value = tl.load(values + rows[:, None] * width + columns[None, :], mask=inside, other=0.0).to(tl.float32)
        beyond = inside & (value > nearest if right else value >= nearest)
        unit = (value.to(tl.float64) + 1.0).to(tl.int64, bitcast=True) - ONE
        units += tl.sum(tl.where(beyond, 0, unit), axis=0)
        counts += tl.sum((inside & (beyond == 0)).to(tl.int32), axis=0)
        code = tl.zeros((tile_rows, block), tl.int32)
        for place in range(bins - 1):
            edge = tl.load(edges + place)
            code += (value > edge if right else value >= edge).to(tl.int32)
        cell = columns[None, :] * bins + code
        tl.atomic_add(table + cell, tl.full((tile_rows, block), 1, tl.int64), mask=beyond)
        tl.atomic_add(table + cells + cell, unit >> 26, mask=beyond)
        tl.atomic_add(table + 2 * cells + cell, unit & LOW, mask=beyond)
    home = columns * bins
    tl.atomic_add(table + home, counts.to(tl.int64), mask=columns < width)
    tl.atomic_add(table + cells + home, units >> 26, mask=columns < width)
    tl.atomic_add(table + 2 * cells + home, units & LOW, mask=columns < width)


@triton.jit
def _add_events(table, values, truth, edges, n, bins, right: tl.constexpr, block: tl.constexpr, most: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    value = tl.load(values + rows, mask=rows < n, other=0.0)
    value = value if value.dtype == tl.float64 else value.to(tl.float32)
    hit = tl.load(truth + rows, mask=rows < n, other=-1) >= 0
    code = tl.where(rows < n, 0, most)  # beyond all bins
    for place in range(bins - 1):
        edge = tl.load(edges + place)
        code += (value > edge if right else value >= edge).to(tl.int32)
    places = tl.arange(0, most)
    there = (places[:, None] == code[None, :]).to(tl.int64)
    units = tl.sum(there * ((value.to(tl.float64) + 1.0).to(tl.int64, bitcast=True) - ONE)[None, :], axis=1)
    hits = tl.sum(there * hit.to(tl.int64)[None, :], axis=1)
    tl.atomic_add(table + places, tl.sum(there, axis=1), mask=places < bins)
    tl.atomic_add(table + bins + places, units >> 26, mask=places < bins)
    tl.atomic_add(table + 2 * bins + places, units & LOW, mask=places < bins)
    tl.atomic_add(table + 3 * bins + places, hits << 26, mask=places < bins)


@triton.jit
def _up_to(
    values, thresholds, counts, n, parts, ranks, aligned: tl.constexpr, depth: tl.constexpr, block: tl.constexpr
):
    width = parts * aligned
    columns = tl.program_id(0) * block + tl.arange(0, block)
    rows = tl.program_id(1).to(tl.int64) * depth + tl.arange(0, depth)
    inside = (rows < n)[:, None] & (columns < width)[None, :]
    place = values + rows[:, None] * width + columns[None, :]
    value = tl.load(place, mask=inside, other=float("inf")).to(tl.float32)
    for rank in range(ranks):
        threshold = tl.load(thresholds + rank * width + columns, mask=columns < width, other=0.0)
        lower = inside & (value <= threshold[None, :])
        cells = counts + rank * width + columns
        tl.atomic_add(cells, tl.sum(lower.to(tl.int32), axis=0), mask=columns < width)


@triton.jit
def _below(
    values,
    thresholds,
    counts,
    high,
    low,
    largest,
    n,
    parts,
    ranks,
    aligned: tl.constexpr,
    depth: tl.constexpr,
    block: tl.constexpr,
):
    width = parts * aligned
    columns = tl.program_id(0) * block + tl.arange(0, block)
    rows = tl.program_id(1).to(tl.int64) * depth + tl.arange(0, depth)
    inside = (rows < n)[:, None] & (columns < width)[None, :]
    value = tl.load(values + rows[:, None] * width + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    bits = (value + 0.0).to(tl.int32, bitcast=True)  # of floats of at least 0, in their order
    for rank in range(ranks):
        place = rank * width + columns
        threshold = tl.load(thresholds + place, mask=columns < width, other=0.0)
        lower = inside & (value < threshold[None, :])
        unit = (value.to(tl.float64) + 1.0).to(tl.int64, bitcast=True) - ONE
        units = tl.sum(tl.where(lower, unit, 0), axis=0)
        tl.atomic_add(counts + place, tl.sum(lower.to(tl.int32), axis=0).to(tl.int64), mask=columns < width)
        tl.atomic_add(high + place, units >> 26, mask=columns < width)
        tl.atomic_add(low + place, units & LOW, mask=columns < width)
        tl.atomic_max(largest + place, tl.max(tl.where(lower, bits, -1), axis=0), mask=columns < width)


def add_columns(table: torch.Tensor, values: torch.Tensor, edges: torch.Tensor, right_closed: bool) -> None:
    """As `rowwise.add_columns`."""
    n, width = values.shape
    grid = (triton.cdiv(width, COLUMNS), triton.cdiv(n, DOWN * STEPS))
    aligned = math.gcd(width, ALIGNMENT)
    with torch.cuda.device_of(values):
        wrap_triton(_add_columns)[grid](
            table,
            values.contiguous(),
            edges,
            n,
            width // aligned,
            table.shape[1],
            len(edges) + 1,
            aligned=aligned,
            right=right_closed,
            tile_rows=DOWN,
            block=COLUMNS,
            depth=STEPS,
        )


def add_events(
    table: torch.Tensor, values: torch.Tensor, truth: torch.Tensor, edges: torch.Tensor, right_closed: bool
) -> None:
    """As `rowwise.add_events`."""
    bins = len(edges) + 1
    with torch.cuda.device_of(values):
        wrap_triton(_add_events)[(triton.cdiv(len(values), EVENTS),)](
            table,
            values.contiguous(),
            truth.contiguous(),
            edges.contiguous(),
            len(values),
            bins,
            right=right_closed,
            block=EVENTS,
            most=triton.next_power_of_2(bins),
        )


def up_to(values: torch.Tensor, thresholds: torch.Tensor) -> torch.Tensor:
    """As `rowwise.up_to`."""
    counts = torch.zeros((thresholds.shape[1], values.shape[1]), dtype=torch.int32, device=values.device)
    _descend(_up_to, COUNTED, values, thresholds, counts)
    return counts.T.long()


def below(values: torch.Tensor, thresholds: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `rowwise.below`."""
    sums = torch.zeros((3, thresholds.shape[1], values.shape[1]), dtype=torch.int64, device=values.device)
    largest = torch.full(sums.shape[1:], -1, dtype=torch.int32, device=values.device)
    _descend(_below, SUMMED, values, thresholds, *sums.unbind(), largest)
    floats = torch.where(largest < 0, -torch.inf, largest.view(torch.float32))
    return sums[0].T.clone(), sums[1:].transpose(1, 2).clone(), floats.T.clone()


def _descend(
    kernel: Any, tile: tuple[int, int], values: torch.Tensor, thresholds: torch.Tensor, *others: torch.Tensor
) -> None:
    """Launch a kernel that compares the columns of tiles with their thresholds, rank by rank."""
    (n, width), (depth, block) = values.shape, tile
    aligned = math.gcd(width, ALIGNMENT)
    with torch.cuda.device_of(values):
        wrap_triton(kernel)[(triton.cdiv(width, block), triton.cdiv(n, depth))](
            values.contiguous(),
            thresholds.T.contiguous(),
            *others,
            n,
            width // aligned,
            thresholds.shape[1],
            aligned=aligned,
            depth=depth,
            block=block,
        )
