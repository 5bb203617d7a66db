"""Binnings of events at fixed edges: batches are added as they come."""

from __future__ import annotations

import dataclasses
import hashlib
from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from calibrant import kernels
from calibrant.binning.bounds import Cuts, Entries
from calibrant.binning.contract import MOST_BINS, STREAM, counted_bins, enclosed
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.bins import Bins, check_memory
from calibrant.checks import numbers, whole, word
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.caching import cached_property
from calibrant.kernels.row_blocks import BLOCK, blocks
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.specification.facts import Facts
from calibrant.views import View


class FixedEdges(ABC):
    """Binnings of events at known edges: batches are added as they come."""

    edges: tuple[float, ...] | Floats
    closed: str

    @cached_property
    def facts(self) -> Facts:
        """What is known of it."""
        edges = np.asarray(self.edges, np.float64) + 0.0  # -0.0 becomes 0.0
        known = hashlib.sha256(edges.tobytes()).hexdigest()[:12]
        reads = f"{len(edges) - 1} {self.closed}-closed bins, edges {known}"
        return Facts("binning", fixed=True, reads=reads, cuts="values")

    @property
    def block(self) -> int:
        """Forecasts to view at once."""
        return STREAM

    def summarise(self, view: View) -> Bins:
        """The bins of a batch."""
        return _bins_between(view, np.asarray(self.edges), self.closed, type(self).__name__)

    def conclude(self, summary: Bins | Forecasts) -> Bins:
        """Nothing is left to do; a table of forecasts is cut at the edges."""
        if isinstance(summary, Bins):
            return summary
        bins, edges = summary.cut(self.cuts), np.asarray(self.edges)
        ends = np.broadcast_to(edges, (bins.shape[0], len(edges)))
        return dataclasses.replace(bins, low=ends[:, :-1], high=ends[:, 1:])

    def assign(self, view: View) -> Ints:
        """The bin of each answer."""
        view.require_event(type(self).__name__, "Grid or KDTree for vectors")
        codes = kernels.scalar_codes(view.outputs[:, :, 0], *codes_by(view, np.asarray(self.edges), self.closed))
        return codes.astype(np.int64) if view.keep is None else np.where(view.keep, codes.astype(np.int64), -1)

    def cuts(self, ladder: Ladder) -> Ints:
        """The ranks at which the edges cut the sorted samples."""
        return enclosed(ladder.below(np.asarray(self.edges)[1:-1], self.closed), ladder.n)

    def possible_cuts(self, ladder: Ladder) -> Cuts:
        """Between the cells that lie on either side of each edge."""
        cuts = cuts_at(ladder, np.asarray(self.edges, np.float64)[1:-1], self.closed)
        at = np.concatenate([[np.nan], cuts.edges, [np.nan]])
        return Cuts(enclosed(cuts.least, ladder.n), enclosed(cuts.most, ladder.n), at)


@dataclass(frozen=True)
class EqualWidth(FixedEdges):
    """n_bins intervals of width 1/n_bins, right-closed (k/b, (k+1)/b] or left-closed [k/b, (k+1)/b).

    The open border of [0, 1] is closed too: no forecast is lost or gets a bin of its own. Edges are
    k/b to the last bit, compared in the precision of the forecasts.

    >>> import calibrant as cal
    >>> cal.ECE([1, 0], [.95, 1.0]).value  # 1.0 belongs to the last bin
    0.475
    """

    n_bins: int = 15
    closed: str = "right"

    def __post_init__(self) -> None:
        whole(self.n_bins, "n_bins", 1, MOST_BINS)
        word(self.closed, "closed", "left", "right")

    @property
    def edges(self) -> Floats:  # type: ignore[override]  # the base only reads it
        """k/b for k = 0..b."""
        return np.arange(self.n_bins + 1) / self.n_bins  # k/b to the last bit; linspace is an ulp off at 0.3, 0.6, 0.7

    def __str__(self) -> str:
        return f"{counted_bins(self.n_bins, 'equal-width')}{'' if self.closed == 'right' else ', left-closed'}"


@dataclass(frozen=True, init=False)
class Edges(FixedEdges):
    """Bins between the given edges, which start at 0 and end at 1.

    >>> import calibrant as cal
    >>> cal.Edges([0, .5, 1])
    Edges(edges=(0.0, 0.5, 1.0), closed='right')
    """

    edges: tuple[float, ...]
    closed: str

    def __init__(self, edges: Iterable[float], closed: str = "right") -> None:
        borders = numbers(edges, "edges", "must be a sequence of numbers")
        if len(borders) < 2 or borders[0] != 0 or borders[-1] != 1:
            raise CalibrationInputError("edges", "must start at 0 and end at 1", got=str(borders))
        if not all(low < high for low, high in pairwise(borders)):
            raise CalibrationInputError("edges", "must increase", got=str(borders))
        word(closed, "closed", "left", "right")
        object.__setattr__(self, "edges", borders)
        object.__setattr__(self, "closed", closed)

    def __str__(self) -> str:
        return f"bins at {', '.join(f'{edge:g}' for edge in self.edges)}"


def cuts_at(ladder: Ladder, edges: Floats, closed: str) -> Cuts:
    """Where edges may cut sorted samples, compared in each precision that some of them have.

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise([0, 1, 1], [.311, .312, .9]).ladders()
    >>> cuts = cuts_at(ladder, np.array([.3115, .5]), "right")
    >>> cuts.least.tolist(), cuts.most.tolist()
    ([0, 2], [2, 2])
    """
    entries, precisions = Entries.of(ladder), ladder.precisions or (ladder.precision,)
    grains = [1 / precision.grain if precision.summed else 0.0 for precision in precisions]
    rounded = np.stack([precision.edges(edges) for precision in precisions])
    low, high = (rounded + sign * np.array(grains)[:, None] for sign in (-1, 1))
    at = low.min(axis=0), high.max(axis=0)
    side: Literal["left", "right"] = "right" if closed == "right" else "left"
    before = (np.searchsorted(ends, edge, side) for ends, edge in zip((entries.high, entries.low), at, strict=True))
    least, most = (ladder.ranks[places] for places in before)
    return Cuts(least, most, np.where(at[0] == at[1], at[0], np.nan))


def _bins_between(view: View, edges: Floats, closed: str, piece: str) -> Bins:
    view.require_event(piece, "Grid or KDTree for vectors")
    n_bins = len(edges) - 1
    check_memory(view.questions, n_bins, 1)
    shape = (view.questions, n_bins)
    squares = None
    if view.weight is None:
        counts, *limbs = kernels.beside(view.outputs).scalar_totals(
            view.outputs[:, :, 0],
            view.targets if view.targets.ndim == 1 else view.targets[:, :, 0],
            *codes_by(view, edges, closed),
            view.keep,
            view.group,
            view.groups,
        )
        size = Totals.whole(counts.reshape(shape))
        outputs, targets = (Totals(*limbs[place : place + 2]).reshape(*shape, 1) for place in (0, 2))
    else:
        codes = kernels.scalar_codes(view.outputs[:, :, 0], *codes_by(view, edges, closed))
        size, outputs, targets, squares = pooled(view, codes, n_bins)
    requested, ends = np.full(view.questions, n_bins), np.broadcast_to(edges, (view.questions, n_bins + 1))
    return Bins(view.about, size, outputs, targets, requested, ends[:, :-1], ends[:, 1:], squares=squares)


def codes_by(view: View, edges: Floats, closed: str) -> tuple[Array, str, float]:
    """How a view's outputs are compared with inner edges: edges in the outputs' precision, closed side, grain."""
    return view.precision.borders(edges[1:-1], view.outputs.dtype), closed, view.precision.grain


def pooled(view: View, codes: Array, n_bins: int) -> tuple[Totals, Totals, Totals, Totals | None]:
    """Size, outputs, targets and squared weights of every (question, bin), where each answer's bin (n, v) is known."""
    n, v, d = view.outputs.shape
    shape = (view.questions, n_bins)
    sums = [Totals.zeros((*shape, width)) for width in (1, d, d, 1)]
    for rows in blocks(n, 1 if sums[1].hi.size > BLOCK else v * d):  # a large table is added to a few times only
        part = dataclasses.replace(view, outputs=view.outputs[rows], targets=view.targets[rows])
        question = np.arange(v) + (0 if view.group is None else view.group[rows, None] * v)
        place = question * n_bins + codes[rows]
        kept = np.ones(place.shape, bool) if view.keep is None else view.keep[rows]
        weight = None if view.weight is None else np.broadcast_to(view.weight[rows, None], kept.shape)[kept][:, None]
        ones = np.ones((kept.sum(), 1))
        parts = [(ones, weight), (part.outputs[kept], weight), (part.truth_rows[kept], weight)]
        parts += [] if weight is None else [(np.square(weight), None)]
        for index, (values, heavy) in enumerate(parts):
            cells = place[kept][:, None] * values.shape[1] + np.arange(values.shape[1])
            total = Totals.of(values, heavy).reshape(-1).by_code(cells.ravel(), sums[index].hi.size)
            sums[index] += total.reshape(*sums[index].shape)
    size, outputs, targets, squares = sums
    plain = view.weight is None or squares.same(size)
    return size.reshape(*shape), outputs, targets, None if plain else squares.reshape(*shape)
