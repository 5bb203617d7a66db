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
        tables = [self._sums(summary, question) for question in range(summary.questions)]
        width = max(table.shape[1] for table in tables)
        check_memory(len(tables), width, 1)
        sums = np.zeros((3, len(tables), width, 1))
        for question, table in enumerate(tables):
            sums[:, question, : table.shape[1], 0] = table
        size, outputs, targets = map(Totals.of, sums)
        return Bins(summary.about, size[:, :, 0], outputs, targets, np.full(len(tables), self.n_bins))

    def assign(self, view: View) -> Ints:
        """The bin of each answer; -1 where the view drops it."""
        codes = np.full(view.outputs.shape[:2], -1)
        for question in range(view.questions):
            rows, column = view.rows_of(question), question % view.v
            codes[rows, column] = self._codes(view.outputs[rows, column, 0], view.precision, self.compared)
        return codes

    def _sums(self, view: View, question: int) -> Floats:
        """Counts, probabilities and outcomes (3, b) of a question's bins."""
        rows = view.rows_of(question)
        probabilities, outcomes = view.outputs[rows, question % view.v, 0], view.truth_of(question, rows)[:, 0]
        codes = self._codes(probabilities, view.precision, self.compared)
        counted = codes if self.counted == "alike" else self._codes(probabilities, view.precision, self.counted)
        width = max(self.n_bins, *(int(each.max(initial=0)) + 1 for each in (codes, counted)))
        sums = np.zeros((3, width), self.summed)
        for total, values in zip(sums, (np.ones(len(rows)), probabilities, outcomes), strict=True):
            np.add.at(total, codes, values.astype(self.summed))  # one row after another
        if self.counted == "alike":
            return sums.astype(np.float64)
        means = sums[1:] / np.where(sums[0] > 0, sums[0], 1.0)
        return np.vstack([np.ones(width), means]) * np.bincount(counted, minlength=width)

    def _codes(self, probabilities: Array, precision: Precision, compared: str) -> Array:
        """The bins of probabilities that are compared with the edges so."""
        if not len(probabilities):
            return np.zeros(0, np.int64)
        narrow = probabilities.astype(np.float32) if compared == "float32" else probabilities
        values = narrow.astype(np.float64) if compared == "float64" else narrow
        edges = self.edges(narrow, self.n_bins).astype(np.float64)
        edges = precision.edges(edges) if compared == "given" else edges
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
