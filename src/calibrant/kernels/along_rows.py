"""Triton's kernels along the rows of a tensor on a GPU: one walk, with the whole numbers of `rowwise`."""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch.library import wrap_triton

from calibrant.kernels import rowwise

TILE = 2048
"""Entries of a tile of several short rows."""
WIDEST = 4096
"""Columns of a tile; longer rows are walked along."""
ALIGNMENT = 16
"""Entries at whose multiples rows begin, at best: then several are loaded at once."""
ONE = tl.constexpr(rowwise.ONE)


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


def tops(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `rowwise.tops`."""
    low, top, total = (values.new_empty(len(values), dtype=torch.float32) for _ in range(3))
    place = values.new_empty(len(values), dtype=torch.int64)
    _walk(_tops, values, low, top, place, total)
    return low, top, place, total


def exponentials(
    logits: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `rowwise.exponentials`, raised in float32."""
    low, top = (logits.new_empty(len(logits), dtype=torch.float32) for _ in range(2))
    place = logits.new_empty(len(logits), dtype=torch.int64)
    rest, pairs = (logits.new_empty(len(logits), dtype=torch.float64) for _ in range(2))
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
    _walk(_tempered, logits, top.contiguous(), inverse, totals)
    return totals


def _walk(kernel: Any, values: torch.Tensor, *others: Any) -> None:
    """Launch a kernel that walks along rows: several short ones in a tile, or a long one tile by tile."""
    values = values.contiguous()
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
