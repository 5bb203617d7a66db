"""Triton's kernels down the columns of a tensor on a GPU, with the whole numbers of `rowwise`.

Units of 2^-52 are the significand bits of 1 + p in float64, summed in registers; sums of tiles and the few entries that
go to other cells are added by atomics on whole numbers, so that no order of tiles can change a bit. Tiles are numbered
along one axis, columns fastest: the others of a grid end at 65,535.
"""

import math

import torch
import triton
import triton.language as tl

from calibrant.kernels.along_rows import ALIGNMENT, ONE, launched

COLUMNS = 128
"""Columns of a tile."""
DOWN = 2
"""Rows of a tile, which is one warp's: seldom does it hold an entry beyond the first edge."""
STEPS = 32
"""How many such tiles are below each other: fewer than 2048 rows of units fit an int64."""
EVENTS = 256
"""Events of a tile."""
DIGITS = 16
"""Rows of a tile whose digits are counted."""
SUMMED = (4, 64)
"""Rows of a tile that is summed below thresholds, and how many such tiles are below each other."""
LOW = tl.constexpr((1 << 26) - 1)


@triton.jit(do_not_specialize=["n", "cells", "bins"])
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
    across = (width + block - 1) // block
    columns = tl.program_id(0) % across * block + tl.arange(0, block)
    start = (tl.program_id(0) // across).to(tl.int64) * (tile_rows * depth)
    units = tl.zeros((tile_rows, block), tl.int64)
    counts = tl.zeros((tile_rows, block), tl.int32)
    nearest = tl.load(edges)
    for step in range(depth):
        rows = start + step * tile_rows + tl.arange(0, tile_rows)
        inside = (rows < n)[:, None] & (columns < width)[None, :]
        spot = values + rows[:, None] * width + columns[None, :]
        value = tl.load(spot, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
        beyond = inside & (value > nearest if right else value >= nearest)
        unit = (value.to(tl.float64) + 1.0).to(tl.int64, bitcast=True) - ONE
        units += tl.where(beyond, 0, unit)
        counts += (inside & (beyond == 0)).to(tl.int32)
        if tl.max(tl.max(beyond.to(tl.int32), axis=1), axis=0) > 0:
            code = tl.zeros((tile_rows, block), tl.int32)
            for place in range(bins - 1):
                edge = tl.load(edges + place)
                code += (value > edge if right else value >= edge).to(tl.int32)
            cell = columns[None, :] * bins + code
            tl.atomic_add(table + cell, tl.full((tile_rows, block), 1, tl.int64), mask=beyond, sem="relaxed")
            tl.atomic_add(table + cells + cell, unit >> 26, mask=beyond, sem="relaxed")
            tl.atomic_add(table + 2 * cells + cell, unit & LOW, mask=beyond, sem="relaxed")
    home = columns * bins
    total = tl.sum(units, axis=0)
    tl.atomic_add(table + home, tl.sum(counts, axis=0).to(tl.int64), mask=columns < width, sem="relaxed")
    tl.atomic_add(table + cells + home, total >> 26, mask=columns < width, sem="relaxed")
    tl.atomic_add(table + 2 * cells + home, total & LOW, mask=columns < width, sem="relaxed")


@triton.jit(do_not_specialize=["n", "bins"])
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
    tl.atomic_add(table + places, tl.sum(there, axis=1), mask=places < bins, sem="relaxed")
    tl.atomic_add(table + bins + places, units >> 26, mask=places < bins, sem="relaxed")
    tl.atomic_add(table + 2 * bins + places, units & LOW, mask=places < bins, sem="relaxed")
    tl.atomic_add(table + 3 * bins + places, hits << 26, mask=places < bins, sem="relaxed")


@triton.jit(do_not_specialize=["n", "slots", "shift"])
def _add_digits(
    table,
    values,
    prefixes,
    n,
    parts,
    slots,
    shift,
    aligned: tl.constexpr,
    bits: tl.constexpr,
    tile_rows: tl.constexpr,
    block: tl.constexpr,
):
    width = parts * aligned
    across = (width + block - 1) // block
    columns = tl.program_id(0) % across * block + tl.arange(0, block)
    rows = (tl.program_id(0) // across).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    inside = (rows < n)[:, None] & (columns < width)[None, :]
    value = tl.load(values + rows[:, None] * width + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    whole = (value + 0.0).to(tl.int32, bitcast=True)  # of floats of at least 0, in their order; -0.0 becomes 0.0
    prefix = whole >> (shift + bits)
    slot = tl.zeros((tile_rows, block), tl.int32)
    there = tl.zeros((tile_rows, block), tl.int1)
    for place in range(slots):
        wanted = tl.load(prefixes + place * width + columns, mask=columns < width, other=0)[None, :]
        slot += (wanted < prefix).to(tl.int32)
        there = there | (wanted == prefix)
    cell = (columns[None, :] * slots + slot) * (1 << bits) + ((whole >> shift) & ((1 << bits) - 1))
    tl.atomic_add(table + cell, tl.full((tile_rows, block), 1, tl.int32), mask=inside & there, sem="relaxed")


@triton.jit(do_not_specialize=["n", "ranks"])
def _add_below(
    table,
    largest,
    values,
    thresholds,
    n,
    parts,
    ranks,
    aligned: tl.constexpr,
    tile_rows: tl.constexpr,
    block: tl.constexpr,
    depth: tl.constexpr,
):
    width = parts * aligned
    place = tl.program_id(0) % ranks * width  # all ranks of a tile at a time: it is read from memory once
    across = (width + block - 1) // block
    columns = tl.program_id(0) // ranks % across * block + tl.arange(0, block)
    start = (tl.program_id(0) // ranks // across).to(tl.int64) * (tile_rows * depth)
    threshold = tl.load(thresholds + place + columns, mask=columns < width, other=0.0)[None, :]
    units = tl.zeros((tile_rows, block), tl.int64)
    tops = tl.full((tile_rows, block), -1, tl.int32)
    for step in range(depth):
        rows = start + step * tile_rows + tl.arange(0, tile_rows)
        inside = (rows < n)[:, None] & (columns < width)[None, :]
        value = tl.load(values + rows[:, None] * width + columns[None, :], mask=inside, other=0.0).to(tl.float32)
        lower = inside & (value < threshold)
        units += tl.where(lower, (value.to(tl.float64) + 1.0).to(tl.int64, bitcast=True) - ONE, 0)
        tops = tl.maximum(tops, tl.where(lower, (value + 0.0).to(tl.int32, bitcast=True), -1))
    total, cells = tl.sum(units, axis=0), ranks * width
    tl.atomic_add(table + place + columns, total >> 26, mask=columns < width, sem="relaxed")
    tl.atomic_add(table + cells + place + columns, total & LOW, mask=columns < width, sem="relaxed")
    tl.atomic_max(largest + place + columns, tl.max(tops, axis=0), mask=columns < width, sem="relaxed")


def add_columns(table: torch.Tensor, values: torch.Tensor, edges: torch.Tensor, right_closed: bool) -> None:
    """As `rowwise.add_columns`."""
    n, width = values.shape
    aligned = math.gcd(width, ALIGNMENT)
    with torch.cuda.device_of(values):
        launched(_add_columns)[(triton.cdiv(width, COLUMNS) * triton.cdiv(n, DOWN * STEPS),)](
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
            num_warps=1,
        )


def add_events(
    table: torch.Tensor, values: torch.Tensor, truth: torch.Tensor, edges: torch.Tensor, right_closed: bool
) -> None:
    """As `rowwise.add_events`."""
    bins = len(edges) + 1
    with torch.cuda.device_of(values):
        launched(_add_events)[(triton.cdiv(len(values), EVENTS),)](
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


def counted_digits(values: torch.Tensor, prefixes: torch.Tensor, shift: int, bits: int) -> torch.Tensor:
    """As `rowwise.counted_digits`."""
    (n, width), slots = values.shape, prefixes.shape[1]
    aligned = math.gcd(width, ALIGNMENT)
    counts = torch.zeros((width, slots, 1 << bits), dtype=torch.int32, device=values.device)
    with torch.cuda.device_of(values):
        launched(_add_digits)[(triton.cdiv(width, COLUMNS) * triton.cdiv(n, DIGITS),)](
            counts,
            values.contiguous(),
            prefixes.T.contiguous(),
            n,
            width // aligned,
            slots,
            shift,
            aligned=aligned,
            bits=bits,
            tile_rows=DIGITS,
            block=COLUMNS,
        )
    return counts


def below(values: torch.Tensor, thresholds: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As `rowwise.below`."""
    (n, width), ranks = values.shape, thresholds.shape[1]
    aligned, (down, steps) = math.gcd(width, ALIGNMENT), SUMMED
    sums = torch.zeros((2, ranks, width), dtype=torch.int64, device=values.device)
    largest = torch.full((ranks, width), -1, dtype=torch.int32, device=values.device)
    with torch.cuda.device_of(values):
        launched(_add_below)[(triton.cdiv(width, COLUMNS) * ranks * triton.cdiv(n, down * steps),)](
            sums,
            largest,
            values.contiguous(),
            thresholds.T.contiguous(),
            n,
            width // aligned,
            ranks,
            aligned=aligned,
            tile_rows=down,
            block=COLUMNS,
            depth=steps,
            num_warps=1,
        )
    floats = torch.where(largest < 0, -torch.inf, largest.view(torch.float32))
    return sums.transpose(1, 2).contiguous(), floats.T.contiguous()
