"""Binnings of events: how samples with one forecast coordinate are pooled."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Never, Protocol, runtime_checkable

import numpy as np

from calibrant import kernels
from calibrant.bins import Bins, check_memory
from calibrant.checks import numbers, whole, word
from calibrant.exceptions import CalibrationInputError
from calibrant.facts import Facts
from calibrant.forecasts import Forecasts, Ladder, Ladders
from calibrant.totals import Floats, Ints
from calibrant.views import Summary, View

MOST_BINS = 1_000_000
STREAM = 1 << 22
"""Forecasts that are viewed at once where the state stays small."""


TABLE = "table of forecasts"
"""What everything that follows from the sorted forecasts of an event reads."""


class Binning(Protocol):
    """How samples are pooled: a summary of each batch that adds, and the bins that follow from the sum."""

    @property
    def block(self) -> int | None:
        """Forecasts to view at once; None where the summary keeps all samples anyway."""

    def summarise(self, view: View) -> Summary:
        """What must be kept of a batch."""

    def conclude(self, summary: Never) -> Bins:
        """The bins of all batches together; it gets what it made, whatever that is."""

    def assign(self, view: View) -> Ints:
        """The bin of each answer (n, v); -1 where the view drops it."""


def bins_of(binning: Binning, summary: Summary) -> Bins:
    """The bins that a binning makes of a summary of its own."""
    return binning.conclude(summary)  # type: ignore[arg-type]


@runtime_checkable
class CutsEach(Protocol):
    """A binning of an event that cuts many replicates at once."""

    def cuts_of_each(self, ladders: Ladders) -> tuple[Ints, Ints]:
        """The ranks at which each replicate is cut, and how many bins each gets."""


class FixedEdges(ABC):
    """Binnings of events at known edges: batches are added as they come."""

    edges: tuple[float, ...] | Floats
    closed: str

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        edges = np.asarray(self.edges, np.float64)
        known = hashlib.sha256(edges.tobytes()).hexdigest()[:12]
        reads = f"{len(edges) - 1} {self.closed}-closed bins, edges {known}"
        return Facts("binning", fixed=True, reads=reads)

    @property
    def block(self) -> int:
        """Forecasts to view at once."""
        return STREAM

    def summarise(self, view: View) -> Bins:
        """The bins of a batch."""
        return _fixed(view, np.asarray(self.edges), self.closed, type(self).__name__)

    def conclude(self, summary: Bins) -> Bins:
        """Nothing is left to do."""
        return summary

    def assign(self, view: View) -> Ints:
        """The bin of each answer."""
        view.require_event(type(self).__name__, "Grid or KDTree for vectors")
        codes = kernels.scalar_codes(view.outputs[:, :, 0], np.asarray(self.edges), self.closed, view.precision)
        return codes.astype(np.int64) if view.keep is None else np.where(view.keep, codes.astype(np.int64), -1)

    def cuts(self, ladder: Ladder | Ladders) -> Ints:
        """The ranks at which the edges cut the sorted samples."""
        return cuts_at(ladder, np.asarray(self.edges), self.closed)

    def cuts_of_each(self, ladders: Ladders) -> tuple[Ints, Ints]:
        """The ranks at which each of many replicates is cut, and how many bins each gets."""
        return _of_each(self.cuts(ladders), ladders.count)


class ByRank(ABC):
    """Binnings of events that cut the sorted samples: all of them are kept, as the table of distinct forecasts."""

    facts: ClassVar[Facts] = Facts("binning", reads=TABLE)

    @property
    def block(self) -> None:
        """All samples are kept anyway."""
        return None

    def summarise(self, view: View) -> Forecasts:
        """The table of distinct forecasts."""
        return Forecasts.of(view, type(self).__name__)

    def conclude(self, summary: Forecasts) -> Bins:
        """Cut each question's samples."""
        return summary.cut(self.cuts)

    @abstractmethod
    def cuts(self, ladder: Ladder | Ladders) -> Ints:
        """The ranks at which one question's sorted samples are cut."""

    def cuts_of_each(self, ladders: Ladders) -> tuple[Ints, Ints]:
        """The ranks at which each of many replicates is cut, and how many bins each gets."""
        return _of_each(self.cuts(ladders), ladders.count)

    def assign(self, view: View) -> Ints:
        """The bin of each answer, by its rank; among tied forecasts, earlier rows go to lower bins."""
        codes = np.full(view.outputs.shape[:2], -1)
        for question, ladder in enumerate(self.summarise(view).ladders()):
            rows = view.rows_of(question)
            order = rows[np.argsort(view.outputs[rows, question % view.v, 0], kind="stable")]
            weight = np.ones(len(order)) if view.weight is None else view.weight[order]
            rank = np.cumsum(weight) - weight  # whole weights take several ranks
            codes[order, question % view.v] = np.searchsorted(self.cuts(ladder)[1:-1], rank, side="right")
        return codes


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
        return f"{_bins(self.n_bins, 'equal-width')}{'' if self.closed == 'right' else ', left-closed'}"


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
        made = numbers(edges, "edges", "must be a sequence of numbers")
        if len(made) < 2 or made[0] != 0 or made[-1] != 1:
            raise CalibrationInputError("edges", "must start at 0 and end at 1", got=str(made))
        if not all(low < high for low, high in pairwise(made)):
            raise CalibrationInputError("edges", "must increase", got=str(made))
        word(closed, "closed", "left", "right")
        object.__setattr__(self, "edges", made)
        object.__setattr__(self, "closed", closed)

    def __str__(self) -> str:
        return f"bins at {', '.join(f'{edge:g}' for edge in self.edges)}"


@dataclass(frozen=True)
class EqualMass(ByRank):
    """n_bins bins of equally many samples, by rank: bin k starts at rank ceil(k n / b).

    Sizes differ by at most one. Tied forecasts share their mean label where a cut falls among them,
    so that row order cannot matter. More bins than samples leaves bins empty.

    >>> import calibrant as cal
    >>> cal.ADAPTIVE_ECE([1, 0, 1], [.9, .2, .85]).bins.counts.sum()
    np.float64(3.0)
    """

    n_bins: int = 15

    def __post_init__(self) -> None:
        whole(self.n_bins, "n_bins", 1, MOST_BINS)

    def cuts(self, ladder: Ladder | Ladders) -> Ints:
        """The ranks ceil(k n / b)."""
        return cuts_by_rank(ladder, self.n_bins)

    def __str__(self) -> str:
        return _bins(self.n_bins, "equal-mass")


@dataclass(frozen=True)
class Quantiles(ByRank):
    """n_bins bins cut at values: edge i is the sorted value at index round(i n / b); ties stay together.

    A forecast goes to the bin numbered by how many edges are at or below it; bins may be empty.
    References: Nixon et al. (2019), as their code bins.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(binning=cal.Quantiles(2))
    >>> metric([1, 0, 1, 1], [.9, .2, .9, .9]).bins.counts.tolist()
    [[1.0, 3.0]]
    """

    n_bins: int = 15

    def __post_init__(self) -> None:
        whole(self.n_bins, "n_bins", 1, MOST_BINS)

    def cuts(self, ladder: Ladder | Ladders) -> Ints:
        """The ranks at which the values at equally spaced ranks cut the sorted samples."""
        n = ladder.n
        if n == 0:
            return np.zeros(self.n_bins + 1, np.int64)
        wanted = np.rint(np.arange(1, self.n_bins) * n / self.n_bins).astype(np.int64)  # halves to even
        return _enclosed(ladder.before(np.minimum(wanted, n - 1)), n)

    def __str__(self) -> str:
        return _bins(self.n_bins, "quantile")


def _fixed(view: View, edges: Floats, closed: str, piece: str) -> Bins:
    view.require_event(piece, "Grid or KDTree for vectors")
    n_bins = len(edges) - 1
    check_memory(view.questions, n_bins, 1)
    size, outputs, targets, squares = kernels.scalar_totals(
        view.outputs[:, :, 0],
        view.targets if view.targets.ndim == 1 else view.targets[:, :, 0],
        edges,
        closed,
        view.precision,
        keep=view.keep,
        group=view.group,
        groups=view.groups,
        weight=view.weight,
    )
    shape = (view.questions, n_bins)
    return Bins(
        view.about,
        size.reshape(*shape),
        outputs.reshape(*shape, 1),
        targets.reshape(*shape, 1),
        np.full(view.questions, n_bins),
        np.broadcast_to(edges[:-1], shape),
        np.broadcast_to(edges[1:], shape),
        squares=None if squares is None or squares.same(size) else squares.reshape(*shape),
    )


def cuts_at(ladder: Ladder | Ladders, edges: Floats, closed: str) -> Ints:
    """The ranks at which edges cut the sorted samples."""
    return _enclosed(ladder.below(edges[1:-1], closed), ladder.n)


def cuts_by_rank(ladder: Ladder | Ladders, n_bins: int) -> Ints:
    """The ranks at which bins of equal mass cut the sorted samples."""
    steps = np.arange(n_bins + 1)
    if ladder.n * n_bins >= 1 << 62:
        steps = steps.astype(object)
    return (-(-steps * ladder.n // n_bins)).astype(np.int64)  # ceil(k n / b) in integers


def _enclosed(inner: Ints, n: int) -> Ints:
    """Cuts with the first and the last rank around them."""
    ends = (np.full((*inner.shape[:-1], 1), rank) for rank in (0, n))
    return np.concatenate([next(ends), inner, next(ends)], axis=-1)


def _of_each(cuts: Ints, count: int) -> tuple[Ints, Ints]:
    """The cuts of each of so many replicates, and how many bins they make."""
    return np.broadcast_to(cuts, (count, cuts.shape[-1])), np.full(count, cuts.shape[-1] - 1)


def _bins(count: int, kind: str) -> str:
    return f"{count} {kind} bin{'' if count == 1 else 's'}"
