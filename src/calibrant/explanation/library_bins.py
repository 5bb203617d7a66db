"""Library bins: bins as other libraries make them, choice by choice."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant import kernels
from calibrant.aggregates import mean
from calibrant.binning.contract import MOST_BINS, counted_bins
from calibrant.bins import Bins, check_memory
from calibrant.checks import flag, whole, word
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.explanation.edge_rules import EdgeRule, quotients
from calibrant.kernels.precision import Precision
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.specification.facts import Facts, declare
from calibrant.views import View


@dataclass(frozen=True)
class LibraryBins:
    """Bins whose edges, closed side and rounding are those of another library; by default, those of `EqualWidth`.

    The end that the closed side leaves out (0 of right-closed bins, 1 of left-closed ones) is put into the next bin,
    or has an `own_bin`. Probabilities are `compared` with edges that are rounded to the type they are "given" in; or
    with edges in "float64"; or both are cast to "float32". Totals are `summed` one row after another, in "float64" or
    in "float32". Rows are `counted` in the bins they are summed in ("alike"), or by edges in "float64". Weights are
    refused, since the libraries take none.

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
    summed: str = "float64"
    counted: str = "alike"

    facts: ClassVar[Facts] = Facts("binning", reads="rows in their order")

    def __post_init__(self) -> None:
        whole(self.n_bins, "n_bins", 1, MOST_BINS)
        word(self.closed, "closed", "left", "right")
        flag(self.own_bin, "own_bin")
        word(self.compared, "compared", "given", "float32", "float64")
        word(self.summed, "summed", "float64", "float32")
        word(self.counted, "counted", "alike", "float64")

    @property
    def block(self) -> None:
        """All samples are kept."""

    def summarise(self, view: View) -> View:
        """The rows themselves, in their order."""
        view.require_event("LibraryBins", "KDTree for vectors")
        if view.weight is not None:
            raise CalibrationInputError("LibraryBins", "takes rows that count alike", got="sample weights")
        outputs = np.array(view.outputs)  # a batch's buffer may be used again
        return dataclasses.replace(view, outputs=outputs, targets=np.asarray(view.targets), logits=None)

    def conclude(self, summary: View) -> Bins:
        """The totals of each bin, rounded as they are summed."""
        codes = self.assign(summary)
        width = max(self.n_bins, int(codes.max(initial=0)) + 1)
        check_memory(summary.questions, width, 1)
        shape, kept = (summary.questions, width), codes >= 0
        values = (kept, summary.outputs[:, :, 0], summary.truth_rows[:, :, 0])
        places = _places(summary, codes, width)
        sums = np.zeros((3, summary.questions * width), self.summed)
        for total, each in zip(sums, values, strict=True):
            np.add.at(total, places, each[kept].astype(self.summed))  # one row after another
        size, outputs, targets = sums.astype(np.float64)
        if self.counted != "alike":
            others = _places(summary, dataclasses.replace(self, compared=self.counted).assign(summary), width)
            counts = np.bincount(others, minlength=len(size)).astype(np.float64)
            share = counts / np.where(size > 0, size, 1.0)
            size, outputs, targets = counts, outputs * share, targets * share
        sizes, *pair = (Totals.of(total).reshape(*shape, 1) for total in (size, outputs, targets))
        return Bins(summary.about, sizes[:, :, 0], pair[0], pair[1], np.full(summary.questions, self.n_bins))

    def assign(self, view: View) -> Ints:
        """The bin of each answer; -1 where the view drops it."""
        codes = np.full(view.outputs.shape[:2], -1)
        for question in range(view.questions):
            rows, column = view.rows_of(question), question % view.v
            if len(rows):
                codes[rows, column] = self._codes(view.outputs[rows, column, 0], view.precision)
        return codes

    def _codes(self, probabilities: Array, precision: Precision) -> Array:
        narrow = probabilities.astype(np.float32) if self.compared == "float32" else probabilities
        values = narrow.astype(np.float64) if self.compared == "float64" else narrow
        edges = self.edges(narrow, self.n_bins).astype(np.float64)
        edges = precision.edges(edges) if self.compared == "given" else edges
        right = self.closed == "right"
        cuts = edges[0 if self.own_bin and right else 1 : None if self.own_bin and not right else -1]
        return kernels.scalar_codes(values[:, None], cuts.astype(values.dtype), self.closed, 0.0)[:, 0]

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


def _places(view: View, codes: Ints, width: int) -> Ints:
    """The bin of each answer that counts, among those of all questions."""
    question = np.arange(view.v) + (0 if view.group is None else view.group[:, None] * view.v)
    return (question * width + codes)[codes >= 0]
