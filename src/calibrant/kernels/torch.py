"""The back end of arrays on a device, in torch: what is promised to the bit is whole numbers, as on the host.

Its functions are those of the seam that device arrays are asked for. Totals come back as NumPy's whole numbers; what
has an entry for each row stays on the device.
"""

from __future__ import annotations

import importlib
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from calibrant.kernels import order_statistics, rowwise
from calibrant.kernels.rowwise import blocks, units
from calibrant.kernels.tensors import DeviceArray, fetched, placed, widened

Ints = NDArray[np.int64]
MOST_EDGES = 64
"""Inner edges that the fused kernel compares one by one."""
_LOW = (1 << 26) - 1
_LARGEST = float(1 << 36)
"""Sums of scores that two limbs hold."""


@cache
def _fused() -> Any:
    """The kernels in Triton, where it is installed."""
    return importlib.import_module("calibrant.kernels.fused") if find_spec("triton") else None


def serving(tensor: Any, *, doubles: bool = False) -> Any:
    """What serves a tensor: Triton's kernels on a GPU (most are not for float64); torch's operations elsewhere.

    >>> serving(torch.zeros(1)).__name__
    'calibrant.kernels.rowwise'
    """
    fused = _fused() if tensor.is_cuda and (doubles or tensor.dtype is not torch.float64) else None
    if fused is None:
        return rowwise
    return fused.operations if torch.compiler.is_compiling() else fused.launches


def row_survey(values: DeviceArray) -> tuple[float, float, float, float, DeviceArray, DeviceArray]:
    """The smallest and the largest entry of a matrix, the smallest and the largest sum of a row (nan if any is), and
    of each row the first column of its largest entry, and that entry."""
    low, high, least, most = _told(values, _tops(values))
    ends = (low, high, least, most) if least == least else (least, least, least, least)  # sums see what is nan
    return *ends, DeviceArray(values.known["place"]), DeviceArray(values.known["top"])


def logits_survey(
    logits: DeviceArray,
) -> tuple[float, float, DeviceArray, DeviceArray, DeviceArray, DeviceArray]:
    """The smallest and the largest logit of a matrix (nan if any is); of each row the first column of the largest,
    this, and the sums of exp(z - largest) and of its square over the other classes."""
    low, high = _told(logits, _raise(logits))
    return low, high, DeviceArray(logits.known["place"]), *map(DeviceArray, _exponentials(logits))  # type: ignore[return-value]


def _told(values: DeviceArray, ends: Any) -> list[float]:
    """The ends of all rows, by turns the smallest and the largest, from those of parts; labels are told of theirs."""
    *numbers, outside = fetched(ends.amax(dim=1)).tolist()
    if values.labels is not None and not outside:
        values.labels.within = values.shape[1]
    return [number if place % 2 else -number for place, number in enumerate(numbers)]


def extremes(values: DeviceArray) -> tuple[float, float]:
    """The smallest and the largest of some numbers; nan if any is."""
    low, high = fetched(widened(torch.stack(torch.aminmax(values.tensor)))).tolist()
    return low, high


def leaders(scores: DeviceArray, k: int) -> DeviceArray:
    """The k largest columns of each row, largest first; ties go to the lowest column."""
    if k == 1:
        if "place" not in scores.known:
            _tops(scores)
        return DeviceArray(scores.known["place"][:, None])
    parts = [
        torch.sort(scores.tensor[rows], dim=1, descending=True, stable=True).indices[:, :k] for rows in blocks(scores)
    ]
    return DeviceArray(torch.cat(parts))


def clipped(values: DeviceArray) -> tuple[DeviceArray, Ints]:
    """Values moved into [0, 1], and which rows had others."""
    outside = ((values.tensor < 0) | (values.tensor > 1)).reshape(len(values), -1).any(dim=1)
    return DeviceArray(values.tensor.clamp(0, 1)), fetched(outside.long())


def normalisers(logits: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The maximum of each row, and the sum of exp(z - maximum) over the other classes."""
    top, rest, _ = _exponentials(logits)
    return DeviceArray(top), DeviceArray(rest)


class Softmaxed(DeviceArray):
    """The softmax of logits in some shape, computed when it is asked for."""

    def __init__(self, logits: DeviceArray, shape: tuple[int, ...]) -> None:
        super().__init__(None)
        del self.tensor
        self.logits, self._shape = logits, shape

    def __getattr__(self, name: str) -> Any:
        if name == "tensor":
            self.tensor = _raised(self.logits, *normalisers(self.logits)).reshape(self._shape)
            return self.tensor
        return super().__getattr__(name)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64, as on the host."""
        return np.dtype(np.float64)

    def __getitem__(self, index: Any) -> Any:
        whole = (slice(None), None, slice(None))  # as a lens of whole rows takes it
        return Softmaxed(self.logits, (len(self), 1, self._shape[1])) if index == whole else super().__getitem__(index)


def log_odds(logits: DeviceArray, classes: Any) -> NDArray[np.float64]:
    """The log-odds (n, 1) that the truth is among some classes (n, k) of each row, in float64."""
    chosen, odds = placed(logits, classes), []
    for rows in blocks(logits):
        block = logits.tensor[rows].double()
        inside = block.gather(1, chosen[rows]).logsumexp(dim=1)
        odds.append(inside - block.scatter(1, chosen[rows], -torch.inf).logsumexp(dim=1))
    return fetched(torch.cat(odds)[:, None])


def softmax(logits: DeviceArray, top: DeviceArray, rest: DeviceArray) -> DeviceArray:
    """exp(z - maximum) / (1 + rest); exponentiated in float32 unless logits are float64."""
    return Softmaxed(logits, logits.shape) if logits.known else DeviceArray(_raised(logits, top, rest))


def sigmoid(logits: DeviceArray) -> DeviceArray:
    """1 / (1 + exp(-z)) in float64."""
    return DeviceArray(torch.sigmoid(logits.tensor.double()))


def row_sums(values: DeviceArray) -> DeviceArray:
    """Sums of rows of probabilities, exact in units and at most 1: no order of classes matters."""
    if values.shape[1] == 1:
        return DeviceArray(values.tensor[:, 0].double())
    return DeviceArray(units(values.tensor).sum(dim=1).clamp(max=1 << 52).double() * 2.0**-52)


def scalar_totals(
    outputs: DeviceArray,
    targets: Any,
    inner: NDArray[Any],
    closed: str,
    grain: float,
    keep: Any,
    group: Any,
    groups: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Counts, and outputs and targets in two limbs each, of every (question, bin) for events of fixed edges."""
    v, bins = outputs.shape[1], len(inner) + 1
    table = torch.zeros((5, groups * v * bins), dtype=torch.int64, device=outputs.tensor.device)
    truth, edges = placed(outputs, targets), _kept(inner.tobytes(), inner.dtype.str, outputs.tensor.device)
    plain = keep is None and group is None and not grain and truth.ndim == 1 and 0 < len(inner) <= MOST_EDGES
    if v == 1 and plain:
        serving(outputs.tensor, doubles=True).add_events(table, outputs.tensor[:, 0], truth, edges, closed == "right")
    elif v >= 16 and plain:
        serving(outputs.tensor).add_columns(table, outputs.tensor, edges, closed == "right")
        hit = (truth >= 0).long()
        place = truth.clamp(min=0).long()
        codes = _codes(outputs.tensor.gather(1, place[:, None]), edges, closed, grain)[:, 0]
        table[3].index_add_(0, place * bins + codes, hit << 26)
    else:
        homes = torch.arange(v, device=truth.device) * bins
        for rows in blocks(outputs):
            cells = _codes(outputs.tensor[rows], edges, closed, grain) + homes
            cells = cells if group is None else cells + (placed(outputs, group)[rows] * (v * bins))[:, None]
            kept = None if keep is None else placed(outputs, keep)[rows]
            rowwise.add_cells(table, cells, outputs.tensor[rows], truth[rows], kept)
    size, *limbs = fetched(table)
    return size, *_carried(*limbs[:2]), *_carried(*limbs[2:])


def at_ranks(values: DeviceArray, targets: Any, ranks: Ints) -> tuple[NDArray[Any], Ints]:
    """Of every column, the forecast at each rank and the largest below it, and counts and sums of what lies below.

    Forecasts are (2, v, r). Whole numbers are (6, v, r): how many lie below the forecast at the rank, how many at or
    below it, how many of both came true (`targets` is the column that did, or -1), and the sum of those below in two
    limbs. Values are in [0, 1] and have at most 32 bits; ranks count from 0, and n is beyond all.
    """
    forecasts, whole = order_statistics.at_ranks(values.tensor, placed(values, targets), ranks, serving(values.tensor))
    return fetched(forecasts), fetched(whole)


def distinct(values: DeviceArray, hits: Any) -> tuple[NDArray[Any], Ints, Ints]:
    """Distinct values of at least 0 in order, their counts and hits: these ride in the lowest bit of one sort."""
    numbers = widened(values.tensor).contiguous()
    whole = torch.int64 if numbers.dtype is torch.float64 else torch.int32
    keys = torch.sort((numbers.view(whole) << 1) | placed(values, hits).to(whole)).values  # -0.0 becomes 0.0
    levels, counts = torch.unique_consecutive(keys >> 1, return_counts=True)
    running = torch.cumsum(keys & 1, 0, dtype=torch.int64)
    positives = torch.diff(running[counts.cumsum(0) - 1], prepend=running[:1] * 0)
    return fetched(levels.view(numbers.dtype)), fetched(counts), fetched(positives)


def brier(outputs: DeviceArray, targets: Any) -> DeviceArray:
    """Squares of outputs (n, v, d) less the truth, summed over the d coordinates: exact in units of 2^-52.

    Of a softmax that nobody else has asked for, from the sums of squares of its rows, to 1e-6.
    """
    truth = placed(outputs, targets)
    if isinstance(outputs, Softmaxed) and "tensor" not in vars(outputs) and truth.ndim == 1:
        return DeviceArray(_brier_of_logits(outputs.logits, truth)[:, None])
    tensor, (n, v, d) = outputs.tensor, outputs.shape
    if v == 1 and d > 1 and truth.ndim == 1:
        return DeviceArray(serving(tensor).squared_errors(tensor[:, 0], truth)[:, None])
    sums = torch.empty((n, v), dtype=torch.int64, device=tensor.device)
    for rows in blocks(outputs):
        block = tensor[rows].double()
        if truth.ndim > 1:
            block = block - truth[rows]
        else:
            hit = -(truth[rows] >= 0).double()[:, None]
            flat = block.clone().reshape(len(block), v * d)
            block = flat.scatter_add_(1, truth[rows].clamp(min=0).long()[:, None], hit).reshape(block.shape)
        sums[rows] = torch.round(block.square_().mul_(2.0**52)).long().sum(dim=2)
    return DeviceArray(sums.double() * 2.0**-52)


def true_logs(outputs: DeviceArray, targets: Any) -> DeviceArray:
    """Logarithms (n, v) of the probability of what happened; 0 where no coordinate of a question (d > 1) did."""
    tensor, truth, (n, v, d) = outputs.tensor, placed(outputs, targets).long(), outputs.shape
    place = truth.clamp(min=0)[:, None]
    happened = tensor.reshape(n, v * d).gather(1, place).double().log()
    if v == 1 and d > 1:
        return DeviceArray(torch.where(truth[:, None] >= 0, happened, 0.0))
    first = tensor[:, :, 0].double()
    logs = torch.log1p(-first) if d == 1 else torch.zeros_like(first)
    question = place // d
    return DeviceArray(logs.scatter(1, question, torch.where(truth[:, None] >= 0, happened, logs.gather(1, question))))


def true_log_softmax(logits: DeviceArray, top: DeviceArray, rest: DeviceArray, targets: Any) -> DeviceArray:
    """The true logit less the log-sum-exp of its row (n, 1); 0 where none is true."""
    truth = placed(logits, targets)[:, None]
    true = logits.tensor.gather(1, truth.clamp(min=0))[:, 0].double()
    logs = (true - top.tensor) - torch.log1p(rest.tensor)
    return DeviceArray(torch.where(truth >= 0, logs[:, None], 0.0))


def score_totals(scores: DeviceArray) -> tuple[Ints, Ints, Ints] | None:
    """Sums in two limbs of the finite scores (n, v) of each question, and how many are infinite.

    None where a score is no number or minus infinity, or where the sums would leave their range.
    """
    numbers, (_, v) = scores.tensor.double(), scores.shape
    table = torch.zeros((4, v), dtype=torch.int64, device=numbers.device)
    (serving(numbers, doubles=True) if v == 1 else rowwise).add_scores(table, numbers, _LARGEST)
    high, low, infinite, unlawful = fetched(table)
    return None if unlawful.any() else (*_carried(high, low), infinite)


def tempered(logits: DeviceArray, labels: Any, inverse: float) -> tuple[DeviceArray, ...]:
    """Log loss of softmax(z * inverse) in each row, and its first and second derivative by the inverse temperature.

    Exponentiated in float32 unless logits are float64.
    """
    top, _, _ = _exponentials(logits)
    total, first, second = serving(logits.tensor).tempered(logits.tensor, top, inverse)
    true = logits.tensor.gather(1, placed(logits, labels).long()[:, None])[:, 0].double() - top
    mean = first / total
    return tuple(map(DeviceArray, (total.log() - inverse * true, mean - true, second / total - mean.square())))


def _tops(values: DeviceArray) -> Any:
    """Keep the largest entry of each row and its place; the ends of parts of the rows."""
    top, place, ends = serving(values.tensor).tops(values.tensor, _beside(values))
    values.known |= {"top": top, "place": place}
    return ends


def _raise(logits: DeviceArray) -> Any:
    """Keep the largest logit of each row, its place, and the sums of exp(z - largest) and of its square over the other
    classes; the ends of parts of the rows."""
    numbers, place, ends = serving(logits.tensor).exponentials(logits.tensor, _beside(logits))
    logits.known |= {"exponentials": numbers.T, "place": place}
    return ends


def _exponentials(logits: DeviceArray) -> Any:
    """The largest logit of each row, and the sums of exp(z - largest) and of its square over the other classes."""
    if "exponentials" not in logits.known:
        _raise(logits)
    return logits.known["exponentials"].T


def _beside(values: DeviceArray) -> Any:
    """The labels of the rows, where they are known to lie on the same device."""
    return None if values.labels is None else values.labels.tensor


def _raised(logits: DeviceArray, top: DeviceArray, rest: DeviceArray) -> Any:
    numbers = widened(logits.tensor)
    return torch.exp(numbers - top.tensor[:, None].to(numbers.dtype)).double() / (1.0 + rest.tensor[:, None])


def _brier_of_logits(logits: DeviceArray, truth: Any) -> Any:
    top, rest, pairs = _exponentials(logits)
    place = truth.clamp(min=0)[:, None]
    true = _raised(DeviceArray(logits.tensor.gather(1, place)), DeviceArray(top), DeviceArray(rest))[:, 0]
    squares = (1.0 + pairs) / (1.0 + rest).square()
    return torch.where(truth >= 0, (squares - true.square()).clamp(min=0.0) + (1.0 - true).square(), squares)


@lru_cache(maxsize=64)
def _kept(numbers: bytes, dtype: str, device: Any) -> Any:
    """A few numbers as a tensor, which stays on its device: most metrics have the same edges."""
    return torch.tensor(np.frombuffer(numbers, dtype), device=device)


def _codes(values: Any, edges: Any, closed: str, grain: float) -> Any:
    """The number of inner edges that lie below each value (at or below it, when bins are left-closed)."""
    values = torch.round(values.double() * grain) if grain else widened(values)
    return torch.bucketize(values.contiguous(), edges.to(values.dtype), right=closed != "right")


def _carried(hi: Ints, lo: Ints) -> tuple[Ints, Ints]:
    return hi + (lo >> 26), lo & _LOW
