"""Fused kernels in Triton: one walk over the rows of a tensor on a GPU, with the whole numbers of `rowwise`.

Units of 2^-52 are the significand bits of 1 + p in float64, summed in registers; the few entries that go to other cells
are added by atomics on whole numbers, so that no order of blocks can change a bit.
"""

import math
from types import SimpleNamespace
from typing import Any

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton

from calibrant.kernels import rowwise

TILE = 2048
"""Entries of a tile of several short rows."""
WIDEST = 4096
"""Columns of a tile; longer rows are walked along."""
COLUMNS = 128
"""Columns of a tile that is summed downwards."""
DOWN = 16
"""Its rows."""
STEPS = 16
"""How many such tiles are below each other: fewer than 2048 rows of units fit an int64."""
ALIGNMENT = 16
"""Entries at whose multiples rows begin, at best: then several are loaded at once."""
ONE = tl.constexpr(rowwise.ONE)
LOW = tl.constexpr((1 << 26) - 1)


@triton.jit
def _tops(
    values, low, top, place, total, n, parts, aligned: tl.constexpr, tile_rows: tl.constexpr, block: tl.constexpr
):
    width = parts * aligned  # as a product, so that the compiler knows how rows are aligned
    rows = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    lanes = tl.arange(0, block)
    least = tl.full((tile_rows, block), float("inf"), tl.float32)
    most = tl.full((tile_rows, block), float("-inf"), tl.float32)
    sums = tl.zeros((tile_rows, block), tl.float32)
    first = tl.zeros((tile_rows, block), tl.int32)
    for start in range(0, width, block):
        columns = start + lanes
        inside = (rows < n)[:, None] & (columns < width)[None, :]
        value = tl.load(values + rows[:, None] * width + columns[None, :], mask=inside, other=0.0).to(tl.float32)
        sums += value
        least = tl.minimum(least, tl.where(inside, value, float("inf")))
        greater = inside & (value > most)
        first = tl.where(greater, columns[None, :], first)
        most = tl.where(greater, value, most)
    largest = tl.max(most, axis=1)
    candidates = tl.where(most == largest[:, None], first, width - 1)
    tl.store(low + rows, tl.min(least, axis=1), mask=rows < n)
    tl.store(top + rows, largest, mask=rows < n)
    tl.store(place + rows, tl.min(candidates, axis=1).to(tl.int64), mask=rows < n)
    tl.store(total + rows, tl.sum(sums, axis=1), mask=rows < n)


@triton.jit
def _exponentials(
    logits,
    low,
    top,
    place,
    rest,
    squares,
    n,
    parts,
    aligned: tl.constexpr,
    tile_rows: tl.constexpr,
    block: tl.constexpr,
):
    width = parts * aligned  # as a product, so that the compiler knows how rows are aligned
    rows = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    lanes = tl.arange(0, block)
    least = tl.full((tile_rows, block), float("inf"), tl.float32)
    most = tl.full((tile_rows, block), float("-inf"), tl.float32)
    sums = tl.zeros((tile_rows, block), tl.float32)  # over the others than the largest of a lane, relative to it
    pairs = tl.zeros((tile_rows, block), tl.float32)
    first = tl.zeros((tile_rows, block), tl.int32)
    for start in range(0, width, block):
        columns = start + lanes
        inside = (rows < n)[:, None] & (columns < width)[None, :]
        place_in = logits + rows[:, None] * width + columns[None, :]
        value = tl.load(place_in, mask=inside, other=float("-inf")).to(tl.float32)
        raised = tl.where(inside, tl.exp(-tl.abs(value - most)), 0.0)
        greater = value > most
        sums = tl.where(greater, (sums + 1.0) * raised, sums + raised)
        pairs = tl.where(greater, (pairs + 1.0) * raised * raised, pairs + raised * raised)
        first = tl.where(greater, columns[None, :], first)
        most = tl.maximum(most, value)
        least = tl.minimum(least, tl.where(inside, value, float("inf")))
    largest = tl.max(most, axis=1)
    where = tl.min(tl.where(most == largest[:, None], first, width - 1), axis=1)
    scale = tl.exp(most - largest[:, None])
    leading = (most == largest[:, None]) & (first == where[:, None])
    sums = tl.where(leading, sums, (sums + 1.0) * scale)
    pairs = tl.where(leading, pairs, (pairs + 1.0) * scale * scale)
    tl.store(low + rows, tl.min(least, axis=1), mask=rows < n)
    tl.store(top + rows, largest, mask=rows < n)
    tl.store(place + rows, where.to(tl.int64), mask=rows < n)
    tl.store(rest + rows, tl.sum(sums, axis=1).to(tl.float64), mask=rows < n)
    tl.store(squares + rows, tl.sum(pairs, axis=1).to(tl.float64), mask=rows < n)


@triton.jit
def _squares(values, sums, n, parts, aligned: tl.constexpr, tile_rows: tl.constexpr, block: tl.constexpr):
    width = parts * aligned  # as a product, so that the compiler knows how rows are aligned
    rows = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    total = tl.zeros((tile_rows, block), tl.int64)
    for start in range(0, width, block):
        columns = start + tl.arange(0, block)
        inside = (rows < n)[:, None] & (columns < width)[None, :]
        value = tl.load(values + rows[:, None] * width + columns[None, :], mask=inside, other=0.0).to(tl.float64)
        total += (value * value + 1.0).to(tl.int64, bitcast=True) - ONE
    tl.store(sums + rows, tl.sum(total, axis=1), mask=rows < n)


@triton.jit
def _tempered(
    logits, top, inverse, totals, n, parts, aligned: tl.constexpr, tile_rows: tl.constexpr, block: tl.constexpr
):
    width = parts * aligned  # as a product, so that the compiler knows how rows are aligned
    rows = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    largest = tl.load(top + rows, mask=rows < n, other=0.0)
    total = tl.zeros((tile_rows, block), tl.float32)
    mean = tl.zeros((tile_rows, block), tl.float32)
    square = tl.zeros((tile_rows, block), tl.float32)
    for start in range(0, width, block):
        columns = start + tl.arange(0, block)
        inside = (rows < n)[:, None] & (columns < width)[None, :]
        value = tl.load(logits + rows[:, None] * width + columns[None, :], mask=inside, other=0.0).to(tl.float32)
        shifted = value - largest[:, None]
        raised = tl.where(inside, tl.exp(shifted * inverse), 0.0)
        total += raised
        mean += raised * shifted
        square += raised * shifted * shifted
    tl.store(totals + rows, tl.sum(total, axis=1).to(tl.float64), mask=rows < n)
    tl.store(totals + n + rows, tl.sum(mean, axis=1).to(tl.float64), mask=rows < n)
    tl.store(totals + 2 * n + rows, tl.sum(square, axis=1).to(tl.float64), mask=rows < n)


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


def tops(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `rowwise.tops`."""
    low, top, total = values.new_empty((3, len(values)), dtype=torch.float32).unbind()
    place = values.new_empty(len(values), dtype=torch.int64)
    _walk(_tops, values, low, top, place, total)
    return low, top, place, total


def exponentials(
    logits: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `rowwise.exponentials`, raised in float32."""
    low, top = logits.new_empty((2, len(logits)), dtype=torch.float32).unbind()
    place = logits.new_empty(len(logits), dtype=torch.int64)
    rest, pairs = logits.new_empty((2, len(logits)), dtype=torch.float64).unbind()
    _walk(_exponentials, logits, low, top, place, rest, pairs)
    return low, top, place, rest, pairs


def squares(values: torch.Tensor) -> torch.Tensor:
    """As `rowwise.squares`."""
    sums = values.new_empty(len(values), dtype=torch.int64)
    _walk(_squares, values, sums)
    return sums


def tempered(logits: torch.Tensor, top: torch.Tensor, inverse: float) -> torch.Tensor:
    """As `rowwise.tempered`, raised in float32."""
    totals = logits.new_empty((3, len(logits)), dtype=torch.float64)
    _walk(_tempered, logits, top, inverse, totals)
    return totals


def add_columns(table: torch.Tensor, values: torch.Tensor, edges: torch.Tensor, right_closed: bool) -> None:
    """As `rowwise.add_columns`."""
    n, width = values.shape
    grid = (triton.cdiv(width, COLUMNS), triton.cdiv(n, DOWN * STEPS))
    aligned = math.gcd(width, ALIGNMENT)
    with torch.cuda.device_of(values):
        wrap_triton(_add_columns)[grid](
            table,
            values,
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


def _walk(kernel: Any, values: torch.Tensor, *others: Any) -> None:
    """Launch a kernel that walks along rows: several short ones in a tile, or a long one tile by tile."""
    n, width = values.shape
    block = min(triton.next_power_of_2(width), WIDEST)
    rows, aligned = max(1, TILE // block), math.gcd(width, ALIGNMENT)
    with torch.cuda.device_of(values):
        wrap_triton(kernel)[(triton.cdiv(n, rows),)](
            values,
            *others,
            n,
            width // aligned,
            aligned=aligned,
            tile_rows=rows,
            block=block,
            num_warps=8 if block == WIDEST else 4,
        )


def _operation(launch: Any, **options: Any) -> Any:
    """A launch as an operation of torch, with torch's own operations where there is no GPU."""
    operation = triton_op(f"calibrant::{launch.__name__}", launch, mutates_args=options.get("changes", ()))
    operation.register_kernel("cpu")(getattr(rowwise, launch.__name__))
    return operation


operations = SimpleNamespace(
    **{launch.__name__: _operation(launch) for launch in (tops, exponentials, squares, tempered)},
    add_columns=_operation(add_columns, changes=("table",)),
)
"""The launches as operations of torch."""
