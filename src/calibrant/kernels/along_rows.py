"""Triton's kernels along the rows of a tensor on a GPU: one walk, with the whole numbers of `rowwise`.

A warp takes a row, or several short ones: what is reduced along a row then stays within the warp, and many rows are on
their way from memory at once. Where rows are few, more warps share one.
"""

import math
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch.library import wrap_triton

from calibrant.kernels import rowwise

WIDEST = 1024
"""Columns of a tile for each warp; longer rows are walked along."""
RESIDENT = 4096
"""Warps that keep a GPU busy."""
WARPS = 20
"""Programs of one warp that a multiprocessor runs at once: as many as its registers hold."""
SCORES = 1024
"""Scores of a tile."""
ALIGNMENT = 16
"""Entries at whose multiples rows begin, at best: then several are loaded at once."""
ONE = tl.constexpr(rowwise.ONE)
LIMB = tl.constexpr(float(1 << 26))
WHOLE = tl.constexpr(float(1 << 52))
"""A number to which whole numbers alone can be added: the sum is rounded to one."""


@triton.jit
def _tile(values, rows, start, width, block: tl.constexpr, whole: tl.constexpr):
    columns = start + tl.arange(0, block)
    spot = values + rows[:, None] * width + columns[None, :]
    if whole:
        inside = tl.full((1, block), 1, tl.int1)
        value = tl.load(spot, eviction_policy="evict_first")
    else:
        inside = (columns < width)[None, :]
        value = tl.load(spot, mask=inside, other=float("-inf"), eviction_policy="evict_first")
    return value.to(tl.float32), columns, inside


@triton.jit
def _is_outside(labels, rows, width):
    label = tl.load(labels + rows)
    return (label < 0) | (label >= width)


@triton.jit(do_not_specialize=["n", "depth"])
def _tops(
    values,
    labels,
    top,
    place,
    ends,
    n,
    parts,
    depth,
    aligned: tl.constexpr,
    tile_rows: tl.constexpr,
    block: tl.constexpr,
    whole: tl.constexpr,
    labelled: tl.constexpr,
):
    width = parts * aligned  # as a product, so that the compiler knows how rows are aligned
    low = tl.full((tile_rows,), float("inf"), tl.float32)
    high = tl.full((tile_rows,), float("-inf"), tl.float32)
    lightest, heaviest = low, high
    broken = tl.zeros((tile_rows,), tl.int1)
    outside = tl.zeros((tile_rows,), tl.int1)
    for step in range(depth):
        places = (step * tl.num_programs(0) + tl.program_id(0)).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
        rows = tl.minimum(places, n - 1)
        most = tl.full((tile_rows,), float("-inf"), tl.float32)
        total = tl.zeros((tile_rows,), tl.float32)
        first = tl.zeros((tile_rows,), tl.int32) + (width - 1)
        for start in range(0, width, block):
            value, columns, inside = _tile(values, rows, start, width, block, whole)
            total += tl.sum(tl.where(inside, value, 0.0), axis=1)
            low = tl.minimum(low, tl.min(tl.where(inside, value, float("inf")), axis=1))
            highest = tl.max(value, axis=1)
            if tl.max((highest > most).to(tl.int32), axis=0) > 0:  # of the row; several rows have one tile only
                first = tl.min(tl.where(value == highest[:, None], columns[None, :], width - 1), axis=1)
                most = tl.maximum(most, highest)
        high = tl.maximum(high, most)
        lightest = tl.minimum(lightest, total)
        heaviest = tl.maximum(heaviest, total)
        broken = broken | (total != total)
        if labelled:
            outside = outside | _is_outside(labels, rows, width)
        tl.store(top + places, most, mask=places < n)
        tl.store(place + places, first.to(tl.int64), mask=places < n)
    spot, programs = ends + tl.program_id(0), tl.num_programs(0)
    tl.store(spot, -tl.min(low, axis=0))
    tl.store(spot + programs, tl.max(high, axis=0))
    tl.store(spot + 2 * programs, _or_nan(-tl.min(lightest, axis=0), broken))
    tl.store(spot + 3 * programs, _or_nan(tl.max(heaviest, axis=0), broken))
    tl.store(spot + 4 * programs, tl.max(outside.to(tl.float32), axis=0))


@triton.jit
def _or_nan(number, broken):
    return tl.where(tl.max(broken.to(tl.int32), axis=0) > 0, float("nan"), number)


@triton.jit(do_not_specialize=["n", "depth"])
def _exponentials(
    logits,
    labels,
    numbers,
    place,
    ends,
    n,
    parts,
    depth,
    aligned: tl.constexpr,
    tile_rows: tl.constexpr,
    block: tl.constexpr,
    whole: tl.constexpr,
    labelled: tl.constexpr,
):
    width = parts * aligned  # as a product, so that the compiler knows how rows are aligned
    low = tl.full((tile_rows,), float("inf"), tl.float32)
    high = tl.full((tile_rows,), float("-inf"), tl.float32)
    broken = tl.zeros((tile_rows,), tl.int1)
    outside = tl.zeros((tile_rows,), tl.int1)
    for step in range(depth):
        places = (step * tl.num_programs(0) + tl.program_id(0)).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
        rows = tl.minimum(places, n - 1)
        most = tl.full((tile_rows,), float("-inf"), tl.float32)
        sums = tl.zeros((tile_rows,), tl.float64)  # over the others than the largest so far, relative to it
        pairs = tl.zeros((tile_rows,), tl.float64)
        first = tl.zeros((tile_rows,), tl.int32) + (width - 1)
        for start in range(0, width, block):
            value, columns, inside = _tile(logits, rows, start, width, block, whole)
            low = tl.minimum(low, tl.min(tl.where(inside, value, float("inf")), axis=1))
            highest = tl.max(value, axis=1)
            if tl.max((highest > most).to(tl.int32), axis=0) > 0:  # of the row; several rows have one tile only
                first = tl.min(tl.where(value == highest[:, None], columns[None, :], width - 1), axis=1)
                scale = tl.exp(most - highest).to(tl.float64)  # 0 of the first tile
                sums = (sums + 1.0) * scale
                pairs = (pairs + 1.0) * scale * scale
                most = tl.maximum(most, highest)
                value = tl.where(columns[None, :] == first[:, None], float("-inf"), value)
            raised = tl.exp(value - most[:, None])
            sums += tl.sum(raised, axis=1).to(tl.float64)
            pairs += tl.sum(raised * raised, axis=1).to(tl.float64)
        high = tl.maximum(high, most)
        broken = broken | (sums != sums)
        if labelled:
            outside = outside | _is_outside(labels, rows, width)
        tl.store(numbers + places, most.to(tl.float64), mask=places < n)
        tl.store(numbers + n + places, sums, mask=places < n)
        tl.store(numbers + n + n + places, pairs, mask=places < n)
        tl.store(place + places, first.to(tl.int64), mask=places < n)
    spot, programs = ends + tl.program_id(0), tl.num_programs(0)
    tl.store(spot, _or_nan(-tl.min(low, axis=0), broken))
    tl.store(spot + programs, _or_nan(tl.max(high, axis=0), broken))
    tl.store(spot + 2 * programs, tl.max(outside.to(tl.float32), axis=0))


@triton.jit(do_not_specialize=["n"])
def _squared_errors(
    values, truth, scores, n, parts, aligned: tl.constexpr, tile_rows: tl.constexpr, block: tl.constexpr
):
    width = parts * aligned  # as a product, so that the compiler knows how rows are aligned
    places = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    rows = tl.minimum(places, n - 1)
    total = tl.zeros((tile_rows,), tl.int64)
    for start in range(0, width, block):
        value, _, inside = _tile(values, rows, start, width, block, False)
        double = tl.where(inside, value, 0.0).to(tl.float64)
        total += tl.sum((double * double + 1.0).to(tl.int64, bitcast=True) - ONE, axis=1)
    label = tl.load(truth + rows)
    true = tl.load(values + rows * width + label, mask=label >= 0, other=0.0).to(tl.float32).to(tl.float64)
    missed = (true - 1.0) * (true - 1.0)
    change = (missed + 1.0).to(tl.int64, bitcast=True) - (true * true + 1.0).to(tl.int64, bitcast=True)
    total += tl.where(label >= 0, change, 0)
    tl.store(scores + places, total.to(tl.float64) / WHOLE, mask=places < n)


@triton.jit(do_not_specialize=["n"])
def _tempered(
    logits, top, inverse, totals, n, parts, aligned: tl.constexpr, tile_rows: tl.constexpr, block: tl.constexpr
):
    width = parts * aligned  # as a product, so that the compiler knows how rows are aligned
    places = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    rows = tl.minimum(places, n - 1)
    largest = tl.load(top + rows).to(tl.float32)
    total = tl.zeros((tile_rows,), tl.float64)
    mean = tl.zeros((tile_rows,), tl.float64)
    square = tl.zeros((tile_rows,), tl.float64)
    for start in range(0, width, block):
        value, _, inside = _tile(logits, rows, start, width, block, False)
        shifted = tl.where(inside, value - largest[:, None], 0.0)
        raised = tl.where(inside, tl.exp(shifted * inverse), 0.0)
        total += tl.sum(raised, axis=1).to(tl.float64)
        mean += tl.sum(raised * shifted, axis=1).to(tl.float64)
        square += tl.sum(raised * shifted * shifted, axis=1).to(tl.float64)
    tl.store(totals + places, total, mask=places < n)
    tl.store(totals + n + places, mean, mask=places < n)
    tl.store(totals + n + n + places, square, mask=places < n)


@triton.jit(do_not_specialize=["n"])
def _add_scores(table, scores, largest, n, block: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    score = tl.load(scores + rows, mask=rows < n, other=0.0)
    finite = tl.abs(score) < float("inf")
    scaled = tl.where(finite, score, 0.0) * LIMB
    high = tl.floor(scaled)
    low = ((scaled - high) * LIMB + WHOLE) - WHOLE
    lawful = (score > float("-inf")) & (tl.abs(scaled) * n < largest * LIMB)
    tl.atomic_add(table, tl.sum(high.to(tl.int64), axis=0), sem="relaxed")
    tl.atomic_add(table + 1, tl.sum(low.to(tl.int64), axis=0), sem="relaxed")
    tl.atomic_add(table + 2, tl.sum((finite == 0).to(tl.int64), axis=0), sem="relaxed")
    tl.atomic_add(table + 3, tl.sum((lawful == 0).to(tl.int64), axis=0), sem="relaxed")


def tops(values: torch.Tensor, labels: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `rowwise.tops`."""
    top = values.new_empty(len(values), dtype=torch.float32)
    place, ends = _survey(_tops, values, labels, 5, top)
    return top, place, ends


def exponentials(logits: torch.Tensor, labels: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `rowwise.exponentials`, raised in float32."""
    numbers = logits.new_empty((3, len(logits)), dtype=torch.float64)
    place, ends = _survey(_exponentials, logits, labels, 3, numbers)
    return numbers, place, ends


def squared_errors(values: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """As `rowwise.squared_errors`."""
    scores = values.new_empty(len(values), dtype=torch.float64)
    _walk(_squared_errors, values, truth.contiguous(), scores, fusion=False)  # a square is rounded before it is added
    return scores


def tempered(logits: torch.Tensor, top: torch.Tensor, inverse: float) -> torch.Tensor:
    """As `rowwise.tempered`, raised in float32."""
    totals = logits.new_empty((3, len(logits)), dtype=torch.float64)
    _walk(_tempered, logits, top.contiguous(), inverse, totals)
    return totals


def add_scores(table: torch.Tensor, scores: torch.Tensor, largest: float) -> None:
    """As `rowwise.add_scores`, of one question."""
    with torch.cuda.device_of(scores):
        launched(_add_scores)[(triton.cdiv(len(scores), SCORES),)](
            table, scores.contiguous(), largest, len(scores), block=SCORES
        )


def launched(kernel: Any) -> Any:
    """A kernel as it is launched: as a part of a graph while torch compiles one, else directly."""
    return wrap_triton(kernel) if torch.compiler.is_compiling() else kernel


def _survey(
    kernel: Any, values: torch.Tensor, labels: torch.Tensor | None, count: int, numbers: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Launch a kernel that walks along rows with as many programs as run at once, each of which tells its ends."""
    values = values.contiguous()
    n, (_, width), (rows, block, warps) = len(values), values.shape, _tiles(*values.shape)
    depth = -(-n // (rows * _at_once(values.device) // warps))
    programs = -(-n // (rows * depth))
    place = values.new_empty(n, dtype=torch.int64)
    ends = values.new_empty((count, programs), dtype=torch.float32)
    aligned, labelled = math.gcd(width, ALIGNMENT), labels is not None
    with torch.cuda.device_of(values):
        launched(kernel)[(programs,)](
            values,
            labels if labelled else place,
            numbers,
            place,
            ends,
            n,
            width // aligned,
            depth,
            aligned=aligned,
            tile_rows=rows,
            block=block,
            whole=width % block == 0 and values.element_size() == 2,  # Triton 3.6 compiles no sum of a plain load
            labelled=labelled,
            num_warps=warps,
        )
    return place, ends


@cache
def _at_once(device: torch.device) -> int:
    """How many warps a GPU runs at once, if each is a program; a few elsewhere."""
    return WARPS * torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else WARPS


def _tiles(n: int, width: int) -> tuple[int, int, int]:
    """Rows, columns and warps of a tile: several short rows, or a part of a long one."""
    warps = min(8, max(1, triton.next_power_of_2(min(RESIDENT // max(1, n), width // WIDEST) + 1) // 2))
    block = min(triton.next_power_of_2(width), WIDEST * warps)
    return max(1, WIDEST // block), block, warps


def _walk(kernel: Any, values: torch.Tensor, *others: Any, fusion: bool = True) -> None:
    """Launch a kernel that walks along rows, a program for each tile of them."""
    values = values.contiguous()
    n, (_, width), (rows, block, warps) = len(values), values.shape, _tiles(*values.shape)
    aligned = math.gcd(width, ALIGNMENT)
    with torch.cuda.device_of(values):
        launched(kernel)[(triton.cdiv(n, rows),)](
            values,
            *others,
            n,
            width // aligned,
            aligned=aligned,
            tile_rows=rows,
            block=block,
            num_warps=warps,
            enable_fp_fusion=fusion,
        )
