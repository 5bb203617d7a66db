"""Walks over the rows of a tensor in torch's operations: what Triton's kernels do in one pass, on any device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from calibrant.kernels.tensors import widened

BLOCK = 1 << 24
"""Entries that are worked on at once."""
ONE = 0x3FF0_0000_0000_0000
"""The bits of 1.0 in float64."""
LOW = (1 << 26) - 1
"""The bits of a low limb."""
LANES = 1 << 10
"""Copies of a small table that are added to side by side, so that few additions wait for each other."""
SMALL = 1 << 20
"""Cells of all copies of a table together, at most."""


def blocks(values: Any) -> Iterator[slice]:
    """Slices of rows that make blocks of at most BLOCK entries.

    >>> list(blocks(torch.zeros(3, 1 << 24)))[-1]
    slice(2, 3, None)
    """
    n, *others = values.shape
    step = max(1, BLOCK // max(1, torch.Size(others).numel()))
    yield from (slice(start, min(start + step, n)) for start in range(0, n, step))


def units(values: Any) -> Any:
    """round(p * 2^52) for p in [0, 1]: the significand bits of 1 + p.

    >>> units(torch.tensor([0.5, 1.0])).tolist() == [1 << 51, 1 << 52]
    True
    """
    return (values.double() + 1.0).view(torch.int64) - ONE


def tops(values: Any, labels: Any) -> tuple[Any, Any, Any]:
    """The largest entry of each row and its first place; and ends (5, m) of m parts of the rows, each the largest of
    its kind: of entries and of sums, less the smallest and the largest (nan if any is), and 1 where a label is no
    column, else 0.

    >>> [part.tolist() for part in tops(torch.tensor([[0.25, 0.5, 0.25]]), torch.tensor([3]))]
    [[0.5], [1], [[-0.25], [0.5], [-1.0], [1.0], [1.0]]]
    """
    parts = []
    for rows in blocks(values):
        block = widened(values[rows])
        (top, place), total = block.max(dim=1), block.sum(dim=1)
        ends = -block.amin(), top.amax(), -total.amin(), total.amax(), _outside(labels, rows, block)
        parts.append((top, place, torch.stack(ends)))
    tops, places, ends = zip(*parts, strict=True)
    return torch.cat(tops), torch.cat(places), torch.stack(ends, dim=1)


def exponentials(logits: Any, labels: Any) -> tuple[Any, Any, Any]:
    """The largest logit of each row, and sums over the others than it, of exp(z - largest) and of its square, all in
    float64 (3, n); the first place of the largest; and ends (3, m) of m parts of the rows: less the smallest and the
    largest logit (nan if any is), and 1 where a label is no column, else 0.

    >>> [part.tolist() for part in exponentials(torch.tensor([[0.0, 0.0, -800.0]]), None)]
    [[[0.0], [1.0], [1.0]], [0], [[800.0], [0.0], [0.0]]]
    """
    parts = []
    for rows in blocks(logits):
        block = widened(logits[rows])
        top, place = block.max(dim=1)
        raised = torch.exp(block - top[:, None]).scatter_(1, place[:, None], 0.0)
        sums = raised.sum(dim=1, dtype=torch.float64), raised.square().sum(dim=1, dtype=torch.float64)
        ends = torch.stack((-block.amin(), top.amax(), _outside(labels, rows, block)))
        parts.append((torch.stack((top.double(), *sums)), place, ends))
    numbers, places, ends = zip(*parts, strict=True)
    return torch.cat(numbers, dim=1), torch.cat(places), torch.stack(ends, dim=1)


def _outside(labels: Any, rows: slice, block: Any) -> Any:
    """Whether the label of one of some rows is no column, as a number like the others."""
    if labels is None:
        return block.new_zeros(())
    return ((labels[rows] < 0) | (labels[rows] >= block.shape[1])).any().to(block.dtype)


def squared_errors(values: Any, truth: Any) -> Any:
    """Squares of each row less its truth (the column that came true; -1: none), each rounded once to units, summed.

    >>> squared_errors(torch.tensor([[0.5, 0.5], [0.5, 0.5]]), torch.tensor([1, -1])).tolist()
    [0.5, 0.5]
    """
    sums = torch.cat([units(values[rows].double().square()).sum(dim=1) for rows in blocks(values)])
    true = values.gather(1, truth.clamp(min=0)[:, None])[:, 0].double()
    change = units((true - 1.0).square()) - units(true.square())
    return (sums + torch.where(truth >= 0, change, 0)).double() * 2.0**-52


def add_scores(table: Any, scores: Any, largest: float) -> None:
    """Add sums in two limbs of the finite scores (n, v) of each question to a table (4, v), and how many are infinite,
    and how many are no numbers, minus infinity, or so large that n of them would have a sum beyond the largest.

    >>> table = torch.zeros((4, 1), dtype=torch.int64)
    >>> add_scores(table, torch.tensor([[1.5], [torch.inf]], dtype=torch.float64), 4.0)
    >>> table[:, 0].tolist() == [3 << 25, 0, 1, 0]
    True
    """
    finite = torch.isfinite(scores)
    scaled = torch.where(finite, scores, 0.0) * float(1 << 26)
    high = torch.floor(scaled)
    low = torch.round((scaled - high) * float(1 << 26))
    lawful = (scores > -torch.inf) & (scaled.abs() * len(scores) < largest * (1 << 26))
    table += torch.stack((high.long().sum(0), low.long().sum(0), (~finite).sum(0), (~lawful).sum(0)))


def add_cells(table: Any, cells: Any, outputs: Any, truth: Any, keep: Any) -> None:
    """Add every entry of a block (n, v) to its cell of a table: counts, and outputs and targets in two limbs each.

    `truth` is the column that came true (-1: none), or soft labels (n, v). Entries that are not kept are added as 0.

    >>> table = torch.zeros((5, 2), dtype=torch.int64)
    >>> add_cells(table, torch.tensor([[0], [1]]), torch.tensor([[0.0], [1.0]]), torch.tensor([-1, 0]), None)
    >>> (table[[0, 1, 3]] >> torch.tensor([[0], [26], [26]])).tolist()
    [[1, 1], [0, 1], [0, 1]]
    """
    width = table.shape[1]
    lanes = max(1, min(LANES, SMALL // width))
    there = torch.ones_like(cells) if keep is None else keep.long()
    target = (truth[:, None] == torch.arange(cells.shape[1], device=cells.device)).long() << 52
    target = units(truth) if truth.ndim > 1 else target
    output = units(outputs)
    parts = torch.stack((there, output >> 26, output & LOW, target >> 26, target & LOW)).reshape(5, -1)
    parts = parts if keep is None else parts * there.reshape(-1)
    lane = torch.arange(cells.numel(), device=cells.device) % lanes * width
    wide = torch.zeros((5, lanes * width), dtype=torch.int64, device=cells.device)
    wide.scatter_add_(1, (cells.reshape(-1) + lane).expand(5, -1), parts)
    table += wide.reshape(5, lanes, width).sum(dim=1)


def add_events(table: Any, values: Any, truth: Any, edges: Any, right_closed: bool) -> None:
    """Add events (n,) to the bins of a table, as `add_cells` does; `truth` is 0 where one came true, else -1.

    >>> table = torch.zeros((5, 2), dtype=torch.int64)
    >>> add_events(table, torch.tensor([0.5, 1.0]), torch.tensor([-1, 0]), torch.tensor([0.5]), True)
    >>> table[0].tolist(), (table[3] >> 26).tolist()
    ([1, 1], [0, 1])
    """
    for rows in blocks(values):
        block = widened(values[rows, None])
        cells = torch.bucketize(block.contiguous(), edges.to(block.dtype), right=not right_closed)
        add_cells(table, cells, block, truth[rows], None)


def add_columns(table: Any, values: Any, edges: Any, right_closed: bool) -> None:
    """Add counts and sums in two limbs of every (column, bin) to the first three rows of a table.

    All entries of a column go to its first bin at once, then the few beyond the first edge to theirs.

    >>> table = torch.zeros((3, 4), dtype=torch.int64)
    >>> add_columns(table, torch.tensor([[0.25, 0.75], [0.5, 1.0]]), torch.tensor([0.5]), True)
    >>> table[0].tolist(), (table[1] >> 26).tolist()
    ([2, 0, 0, 2], [0, 0, 0, 1])
    """
    bins = len(edges) + 1
    for rows in blocks(values):
        block = widened(values[rows])
        beyond = block > edges[0] if right_closed else block >= edges[0]
        whole = units(torch.where(beyond, 0.0, block))
        table[0, ::bins] += len(block) - beyond.sum(dim=0)
        table[1, ::bins] += (whole >> 26).sum(dim=0)
        table[2, ::bins] += (whole & LOW).sum(dim=0)
        row, column = beyond.nonzero(as_tuple=True)
        moved = block[row, column]
        cells = column * bins + torch.bucketize(moved, edges, right=not right_closed)
        unit = units(moved)
        parts = torch.stack((torch.ones_like(unit), unit >> 26, unit & LOW))
        table[:3].index_add_(1, cells, parts)


def counted_digits(values: Any, prefixes: Any, shift: int, bits: int) -> Any:
    """How often each number of so many bits, beyond so many lower ones, occurs in each column (width, s, 2^bits):
    among the values (in [0, 1]) whose higher bits are one of the column's s prefixes, which ascend.

    Values of a prefix that stands several times are counted at the first.

    >>> counted_digits(torch.tensor([[0.0], [1.0], [1.0]]), torch.tensor([[0]], dtype=torch.int32), 29, 1).tolist()
    [[[1, 2]]]
    """
    width, slots = prefixes.shape
    counts = torch.zeros(width * slots << bits, dtype=torch.int32, device=values.device)
    homes = torch.arange(width, device=values.device)[:, None] * slots
    for rows in blocks(values):
        whole = (widened(values[rows]).T + 0.0).contiguous().view(torch.int32)  # -0.0 becomes 0.0
        prefix = whole >> (shift + bits)
        slot = torch.searchsorted(prefixes, prefix)
        there = prefixes.gather(1, slot.clamp(max=slots - 1)) == prefix
        cells = ((homes + slot) << bits) + ((whole >> shift) & ((1 << bits) - 1))
        cells = cells[there]
        counts.index_add_(0, cells, torch.ones_like(cells, dtype=torch.int32))
    return counts.reshape(width, slots, 1 << bits)


def below(values: Any, thresholds: Any) -> tuple[Any, Any]:
    """Of the values of each column that lie below each of its thresholds (width, r), the sum in units in two limbs
    (2, width, r), and the largest; minus infinity where there is none.

    >>> [part.tolist() for part in below(torch.tensor([[0.25], [0.5]]), torch.tensor([[0.5]]))]
    [[[[16777216]], [[0]]], [[0.25]]]
    """
    sums = torch.zeros((2, *thresholds.shape), dtype=torch.int64, device=values.device)
    largest = torch.full_like(thresholds, -torch.inf)
    for rows in blocks(values):
        block = widened(values[rows])
        unit = units(block)
        for place, threshold in enumerate(thresholds.unbind(dim=1)):
            there = block < threshold
            sums[0, :, place] += ((unit >> 26) * there).sum(dim=0)
            sums[1, :, place] += ((unit & LOW) * there).sum(dim=0)
            top = torch.where(there, block, -torch.inf).amax(dim=0)
            largest[:, place] = torch.maximum(largest[:, place], top)
    return sums, largest


def tempered(logits: Any, top: Any, inverse: float) -> Any:
    """Sums over each row, in float64: of exp(u * inverse) with u = z - top, of this times u, and times u squared.

    >>> tempered(torch.tensor([[0.0, 0.0]]), torch.tensor([0.0]), 1.0).tolist()
    [[2.0], [0.0], [0.0]]
    """
    parts = []
    for rows in blocks(logits):
        block = widened(logits[rows])
        shifted = block - top[rows, None].to(block.dtype)
        raised = torch.exp(shifted * inverse)
        weighed = raised * shifted
        sums = [part.sum(dim=1, dtype=torch.float64) for part in (raised, weighed, weighed * shifted)]
        parts.append(torch.stack(sums))
    return torch.cat(parts, dim=1)
