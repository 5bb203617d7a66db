"""Library bins: bins as other libraries make them, choice by choice."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.aggregates import mean
from calibrant.binning.contract import MOST_BINS, counted_bins
from calibrant.binning.fixed import pooled
from calibrant.bins import Bins, check_memory
from calibrant.checks import flag, whole, word
from calibrant.door.arrays import Array
from calibrant.explanation.edge_rules import EdgeRule, quotients
from calibrant.kernels.precision import Precision
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.specification.facts import Facts, declare
from calibrant.views import View


@dataclass(frozen=True)
class LibraryBins:
    """Bins whose edges, closed side and rounding are those of another library; as they are, `EqualWidth`'s.

    The end that the closed side leaves out (0 of right-closed bins, 1 of left-closed ones) is put into the next bin,
    or has an `own_bin`. Probabilities are `compared` with edges that are rounded to the type they are "given" in; or
    with edges in "float64"; or both are cast to "float32". Totals are `summed` "exact", or one row after another in
    the type that is "given", or in "float32". Rows are `counted` in the bins they are summed in ("alike"), or by
    edges in "float64".

    >>> import calibrant as cal
    >>> from calibrant.explanation.library_bins import LibraryBins
    >>> for own_bin in (False, True):
    ...     metric = cal.ECE.replace(binning=LibraryBins(10, closed="left", own_bin=own_bin))
    ...     print(own_bin, round(metric([1, 0], [.95, 1.0]).value, 4))
    False 0.475
    True 0.525
    """

    n_bins: int = 15
    edges: EdgeRule = quotients
    closed: str = "right"
    own_bin: bool = False
    compared: str = "given"
    summed: str = "exact"
    counted: str = "alike"

    facts: ClassVar[Facts] = Facts("binning", reads="rows in their order")

    def __post_init__(self) -> None:
        whole(self.n_bins, "n_bins", 1, MOST_BINS)
        word(self.closed, "closed", "left", "right")
        flag(self.own_bin, "own_bin")
        word(self.compared, "compared", "given", "float32", "float64")
        word(self.summed, "summed", "exact", "given", "float32")
        word(self.counted, "counted", "alike", "float64")

    @property
    def block(self) -> None:
        """All samples are kept."""

    def summarise(self, view: View) -> View:
        """The rows themselves, in their order."""
        view.require_event("LibraryBins", "KDTree for vectors")
        view.require_whole_weights("LibraryBins")
        outputs = np.array(view.outputs)  # a batch's buffer may be used again
        return dataclasses.replace(view, outputs=outputs, targets=np.asarray(view.targets), logits=None)

    def conclude(self, summary: View) -> Bins:
        """The totals of each bin, rounded as they are summed."""
        codes = self.assign(summary)
        width = max(self.n_bins, int(codes.max(initial=0)) + 1)
        check_memory(summary.questions, width, 1)
        size, outputs, targets, squares = pooled(summary, codes, width)
        if self.summed != "exact":
            size, outputs, targets = self._rounded(summary, codes, width)
        if self.counted != "alike":
            counts = pooled(summary, dataclasses.replace(self, compared=self.counted).assign(summary), width)[0]
            share = (counts.value / np.where(size.value > 0, size.value, 1.0))[:, :, None]
            size, outputs, targets = counts, Totals.of(outputs.value * share), Totals.of(targets.value * share)
        return Bins(summary.about, size, outputs, targets, np.full(summary.questions, self.n_bins), squares=squares)

    def assign(self, view: View) -> Ints:
        """The bin of each answer; -1 where the view drops it."""
        codes = np.full(view.outputs.shape[:2], -1)
        for question in range(view.questions):
            rows, column = view.rows_of(question), question % view.v
            if len(rows):
                codes[rows, column] = self._codes(view.outputs[rows, column, 0], view.precision)
        return codes

    def _codes(self, probabilities: Array, precision: Precision) -> Ints:
        values = probabilities.astype(np.float32) if self.compared == "float32" else probabilities
        edges = self.edges(values, self.n_bins)
        if self.compared != "float64":
            edges = edges.astype(values.dtype) if self.compared == "float32" else precision.edges(edges.astype(float))
        right = self.closed == "right"
        cuts = edges[0 if self.own_bin and right else 1 : None if self.own_bin and not right else -1]
        return np.searchsorted(cuts, values, side="left" if right else "right")

    def _rounded(self, view: View, codes: Ints, width: int) -> tuple[Totals, Totals, Totals]:
        """Counts, probabilities and outcomes, each added to a running total of the type."""
        dtype = view.outputs.dtype if self.summed == "given" else np.dtype(np.float32)
        sums = np.zeros((3, view.questions * width), dtype)
        question = np.arange(view.v) + (0 if view.group is None else view.group[:, None] * view.v)
        kept = codes >= 0
        places = (question * width + codes)[kept]
        for total, values in zip(sums, (kept, view.outputs[:, :, 0], view.truth_rows[:, :, 0]), strict=True):
            np.add.at(total, places, values[kept].astype(dtype))
        size, outputs, targets = (Totals.of(total).reshape(view.questions, width, 1) for total in sums)
        return size[:, :, 0], outputs, targets

    def __str__(self) -> str:
        return f"{counted_bins(self.n_bins, 'library')}, {self.closed}-closed"


@declare(Facts("aggregate", rises="each"))
def mean_of_filled(distances: Floats, bins: Bins) -> Floats:
    r"""Every bin that holds samples counts the same: :math:`\frac{1}{r} \sum_{b: n_b > 0} d_b`, r the number of them.

    >>> import calibrant as cal
    >>> metric = cal.ECE.replace(aggregate=mean_of_filled)
    >>> round(metric([1, 0], [.9, .2]).value, 10)
    0.15
    """
    filled = bins.counts > 0
    with np.errstate(invalid="ignore"):
        return np.where(filled, distances, 0.0).sum(axis=1) / filled.sum(axis=1)


@declare(Facts("aggregate", rises="sum"))
def mean_or_zero(distances: Floats, bins: Bins) -> Floats:
    r"""The mean, 0 where it is negative: :math:`\max(0, \sum_b \frac{n_b}{n} d_b)`.

    >>> import calibrant as cal
    >>> metric = cal.ECE_DEBIASED.replace(aggregate=mean_or_zero)
    >>> metric([1, 0], [.5, .5]).value
    0.0
    """
    return np.maximum(mean(distances, bins), 0.0)
