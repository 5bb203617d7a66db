"""Partitions of vectors: how samples with several forecast coordinates are pooled."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant import kernels
from calibrant.binning.fixed import EqualWidth, codes_by, pooled
from calibrant.bins import Bins, check_memory
from calibrant.checks import number, word
from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats, Ints, Totals, column_totals
from calibrant.specification.facts import Facts
from calibrant.views import View

_LEVEL = 1e-12
"""Variances this close are equal, and the lowest axis is split: [p, 1 - p] differ by rounding alone."""


@dataclass(frozen=True)
class KDTree:
    """Adaptive bins: split the axis of largest variance at its mean until a node is small.

    A node of m samples is a bin when m < round(gamma N), N all samples of the question (round half to
    even), or when a side of the split would be empty; else left = value < mean. So gamma bounds bins
    from above; they can be much smaller. `threshold="median"` splits at the median instead.

    Sums and sums of squares are exact, so no row order can matter. Costs O(N d log(1 / gamma)).

    References: Vaicenavicius et al. (2019); Kirchenbauer, Oaks & Heim (2022), appendix B.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(binning=cal.KDTree(gamma=0.5))
    >>> result = metric([0, 1, 0, 1, 1, 1], [.1, .2, .3, .4, .9, .95])
    >>> round(result.value, 10), result.bins.counts.tolist()
    (0.1916666667, [[2.0, 2.0, 2.0]])
    """

    gamma: float = 0.1
    threshold: str = "mean"

    def __post_init__(self) -> None:
        number(self.gamma, "gamma", "must lie in (0, 1]", lambda gamma: 0 < gamma <= 1)
        word(self.threshold, "threshold", "mean", "median")

    facts: ClassVar[Facts] = Facts("binning", reads="rows")

    @property
    def block(self) -> None:
        """All samples are kept."""

    def summarise(self, view: View) -> View:
        """The rows themselves: the tree depends on all of them."""
        view.require_whole_weights("KDTree")
        return dataclasses.replace(view, outputs=view.outputs.copy(), logits=None)  # a batch's buffer may be used again

    def conclude(self, summary: View) -> Bins:
        """Grow a tree for each question."""
        trees = [self._leaves(summary, question) for question in range(summary.questions)]
        width = max(1, max(map(len, trees)))
        check_memory(len(trees), width, summary.d)
        sums = [
            _leaf_sums(summary, question, leaf)
            for question, leaves in enumerate(trees)
            for leaf in [*leaves, *[_Node.of(summary.outputs[:, 0], _NO_ROWS, None)] * (width - len(leaves))]
        ]
        size, outputs, targets, squares = (
            Totals.joined(parts).reshape(len(trees), width, -1) for parts in zip(*sums, strict=True)
        )
        return Bins(
            summary.about,
            size[:, :, 0],
            outputs,
            targets,
            np.array([max(1, len(leaves)) for leaves in trees]),
            squares=None if summary.weight is None else squares[:, :, 0],
        )

    def assign(self, view: View) -> Ints:
        """The bin of each answer."""
        codes = np.full(view.outputs.shape[:2], -1)
        for question in range(view.questions):
            for code, leaf in enumerate(self._leaves(view, question)):
                codes[leaf.rows, question % view.v] = code
        return codes

    def _leaves(self, view: View, question: int) -> list[_Node]:
        """The leaves, left to right."""
        rows = view.rows_of(question)
        if view.weight is not None:
            rows = rows[view.weight[rows] > 0]
        if not len(rows):
            return []
        limit = round(self.gamma * int(_count(rows, view.weight)))
        outputs = view.outputs[:, question % view.v]
        leaves: list[_Node] = []
        nodes = [_Node.of(outputs, rows, view.weight)]
        while nodes:
            node = nodes.pop()
            sides = (node.rows,) if node.count < limit else node.sides(outputs, self.threshold, view.weight)
            if min(map(len, sides)) == 0 or len(sides) == 1:
                leaves.append(node)
            else:
                nodes += node.split(outputs, *sides, view.weight)
        return leaves

    def __str__(self) -> str:
        return f"kd-tree bins, gamma {self.gamma:g}{'' if self.threshold == 'mean' else ', at medians'}"


@dataclass(frozen=True)
class Grid:
    """Cells of n_bins equal-width intervals on every axis but the last, which the others determine.

    Only occupied cells exist. With many coordinates nearly every sample is alone in its cell and the
    error means little; the result notes it.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(lens=cal.Groups({"a": [0], "b": [1]}), binning=cal.Grid(4))
    >>> metric([0, 1], [[.9, .1], [.2, .8]]).bins.counts.tolist()
    [[1.0, 1.0]]
    """

    n_bins: int = 15
    closed: str = "right"
    block: ClassVar[int] = EqualWidth().block

    def __post_init__(self) -> None:
        EqualWidth(self.n_bins, self.closed)  # the same rules

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return Facts("binning", reads=f"{self.n_bins} cells an axis, {self.closed}-closed")

    def summarise(self, view: View) -> Bins:
        """The occupied cells of a batch."""
        cells, codes = self._cells(view)
        check_memory(view.questions, len(cells), view.d)
        size, outputs, targets, squares = pooled(dataclasses.replace(view, keep=codes >= 0), codes, len(cells))
        requested = np.full(view.questions, len(cells))
        return Bins(view.about, size, outputs, targets, requested, cells=cells, squares=squares)

    def conclude(self, summary: Bins) -> Bins:
        """Nothing is left to do."""
        return summary

    def assign(self, view: View) -> Ints:
        """The cell of each answer, in the order of the bins."""
        return self._cells(view)[1]

    def _cells(self, view: View) -> tuple[Ints, Ints]:
        """The occupied cells (c, axes), and the cell of each answer (n, v); -1 of one that does not count."""
        axes = max(1, view.d - 1)
        edges = EqualWidth(self.n_bins).edges
        codes = kernels.scalar_codes(view.outputs[:, :, :axes], *codes_by(view, edges, self.closed))
        counts = np.ones(codes.shape[:2], bool) if view.keep is None else view.keep
        counts = counts if view.weight is None else counts & (view.weight > 0)[:, None]
        cells, place = np.unique(codes[counts].astype(np.int64), axis=0, return_inverse=True)
        places = np.full(counts.shape, -1)
        places[counts] = place.ravel()
        return cells, places

    def __str__(self) -> str:
        return f"grid of {self.n_bins} cells an axis{'' if self.closed == 'right' else ', left-closed'}"


@dataclass(frozen=True, eq=False)
class _Node:
    """Rows of a tree with the exact sums of their outputs and squared outputs."""

    rows: Ints
    count: int
    total: Totals
    squares: Totals

    @classmethod
    def of(cls, outputs: Array, rows: Ints, weight: Floats | None) -> _Node:
        return cls(
            rows,
            int(_count(rows, weight)),
            column_totals(outputs, rows, weight),
            column_totals(outputs, rows, weight, square=True),
        )

    def sides(self, outputs: Array, threshold: str, weight: Floats | None) -> tuple[Ints, Ints]:
        """The rows below the threshold on the axis of largest variance, and the others."""
        mean = self.total.value / self.count
        variance = self.squares.value / self.count - mean * mean
        axis = int(np.flatnonzero(variance >= variance.max() - _LEVEL)[0])
        middle = self.total.exact(axis) / (self.count << 52)  # integers divide with one rounding
        if threshold == "median":
            values = outputs[self.rows, axis]
            middle = np.median(values if weight is None else np.repeat(values, weight[self.rows].astype(int)))
        return kernels.partition(outputs, self.rows, axis, float(middle))

    def split(self, outputs: Array, left: Ints, right: Ints, weight: Floats | None) -> tuple[_Node, _Node]:
        """Both sides, the right one first; the smaller one is summed, the other is what remains."""
        small, large = sorted((left, right), key=len)
        summed = _Node.of(outputs, small, weight)
        rest = _Node(large, self.count - summed.count, self.total - summed.total, self.squares - summed.squares)
        return (summed, rest) if small is right else (rest, summed)


def _count(rows: Ints, weight: Floats | None) -> int:
    return len(rows) if weight is None else int(weight[rows].sum())


def _leaf_sums(view: View, question: int, leaf: _Node) -> tuple[Totals, ...]:
    """Size, outputs, targets and squared weights of a leaf."""
    column = question % view.v
    weight = np.ones(len(leaf.rows)) if view.weight is None else view.weight[leaf.rows]
    if view.targets.ndim > 1:
        targets = column_totals(view.targets[:, column], leaf.rows, view.weight)
    else:
        coordinate = view.targets[leaf.rows] - column * view.d
        hit = (coordinate >= 0) & (coordinate < view.d)
        targets = Totals.of(weight[hit]).by_code(coordinate[hit], view.d)
    size, squares = (Totals.of(each).sum(0).reshape(1) for each in (weight, np.square(weight)))
    return size, leaf.total, targets, squares


_NO_ROWS: Ints = np.zeros(0, np.int64)
