"""Bins: one table of pools, which is the state, the result and what a picture draws."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.text import aligned
from calibrant.views import About, Summary

if TYPE_CHECKING:
    import pandas

MOST_BYTES = 4 << 30
"""A table larger than this is refused before it is allocated."""


@dataclass(frozen=True, eq=False)
class Bins(Summary):
    """Pools of v questions: size (v, b), summed outputs and targets (v, b, d), as exact totals.

    `requested` (v,) is how many bins each question asked for; questions with fewer are padded with
    empty bins. `low` and `high` (v, b) are the ends of the bins of an event. `cells` names the
    occupied cells of a grid.

    >>> import calibrant as cal
    >>> bins = cal.ECE([1, 0, 1], [.9, .2, .85]).bins
    >>> bins.counts[0, 12:].tolist(), bins.forecast[0, 12:, 0].round(10).tolist(), bins.frequency[0, 12:, 0].tolist()
    ([1.0, 1.0, 0.0], [0.85, 0.9, nan], [1.0, 1.0, nan])
    >>> print(bins)
    bin  low     high    count  forecast  frequency  gap
    2    0.1333  0.2     1      0.2       0          0.2
    12   0.8     0.8667  1      0.85      1          -0.15
    13   0.8667  0.9333  1      0.9       1          -0.1
    """

    size: Totals
    outputs: Totals
    targets: Totals
    requested: Ints
    low: Floats | None = None
    high: Floats | None = None
    cells: Ints | None = None
    squares: Totals | None = None
    """Summed squares of the weights (v, b); None where every weight was 1, so that they are the size."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Questions, bins, coordinates."""
        v, b, d = self.outputs.shape
        return v, b, d

    @cached_property
    def counts(self) -> Floats:
        """How many samples (or how much weight) each bin holds: (v, b)."""
        return self.size.value

    @property
    def share(self) -> Floats:
        """The share of its question's samples that each bin holds: (v, b); nan for a question without samples."""
        with np.errstate(invalid="ignore"):
            return self.counts / self.counts.sum(axis=1, keepdims=True)

    @property
    def effective(self) -> Floats:
        r"""How many independent samples each bin is worth: :math:`(\sum w)^2 / \sum w^2`, (v, b)."""
        squares = self.size.value if self.squares is None else self.squares.value
        return np.square(self.counts) / np.where(squares > 0, squares, 1.0)

    @cached_property
    def gap(self) -> Floats:
        """Mean output less mean target of each bin (v, b, d); 0 where it is empty.

        The difference is taken in integers, then one division: nothing cancels.
        """
        size = np.where(self.counts > 0, self.counts, 1.0)
        return (self.outputs - self.targets).value / size[:, :, None]

    @cached_property
    def forecast(self) -> Floats:
        """Mean output of each bin (v, b, d); nan where it is empty."""
        return self._mean(self.outputs)

    @cached_property
    def frequency(self) -> Floats:
        """Mean target of each bin (v, b, d); nan where it is empty."""
        return self._mean(self.targets)

    def question(self, index: int) -> Bins:
        """The bins of one question."""
        about = dataclasses.replace(self.about, names=(), question=f"{self.about.question}: {self.about.names[index]}")
        row = slice(index, index + 1)
        return dataclasses.replace(
            self,
            about=about,
            size=self.size[row],
            outputs=self.outputs[row],
            targets=self.targets[row],
            requested=self.requested[row],
            squares=None if self.squares is None else self.squares[row],
            low=None if self.low is None else self.low[row],
            high=None if self.high is None else self.high[row],
        )

    def _joined(self, other: Bins, about: About) -> Bins:
        if self.cells is not None and other.cells is not None:
            return self._with_cells(other, about)
        if self.shape != other.shape or not np.array_equal(_known(self.high), _known(other.high)):
            raise CalibrationInputError("summaries", "must have the same bins to be added", got="different ones")
        return dataclasses.replace(
            self,
            about=about,
            **{name: mine + theirs for name, mine, theirs in self._both_totals(other)},  # type: ignore[arg-type]
        )

    def _both_totals(self, other: Bins) -> Iterator[tuple[str, Totals, Totals]]:
        """The totals of both by name; squares of weights only where there are any."""
        for name in ("size", "outputs", "targets"):
            yield name, getattr(self, name), getattr(other, name)
        if self.squares is not None or other.squares is not None:
            yield "squares", self.squares or self.size, other.squares or other.size

    def _with_cells(self, other: Bins, about: About) -> Bins:
        """Grids add over the union of their occupied cells."""
        both = np.concatenate([_known(self.cells), _known(other.cells)])
        cells, place = np.unique(both, axis=0, return_inverse=True)
        place = place.ravel()
        places = place[: self.shape[1]], place[self.shape[1] :]
        wide = {
            name: mine.spread(places[0], len(cells)) + theirs.spread(places[1], len(cells))
            for name, mine, theirs in self._both_totals(other)
        }
        return dataclasses.replace(self, about=about, cells=cells, **wide)  # type: ignore[arg-type]

    def _columns(self) -> dict[str, Sequence[str] | Sequence[float]]:
        """One entry a question and bin; a coordinate's name is added where there are several."""
        v, b, d = self.shape
        question, place = np.divmod(np.arange(v * b), b)
        names = self.about.names or ("",)
        columns: dict[str, Sequence[str] | Sequence[float]] = {}
        if len(names) > 1:
            columns["question"] = [names[index] for index in question.tolist()]
        columns["bin"] = place.tolist()
        for name, ends in (("low", self.low), ("high", self.high)):
            if ends is not None:
                columns[name] = ends.ravel().tolist()
        columns["count"] = self.counts.ravel().tolist()
        for name, means in (("forecast", self.forecast), ("frequency", self.frequency), ("gap", self.gap)):
            for coordinate in range(d):
                columns[f"{name} {coordinate}" if d > 1 else name] = means[:, :, coordinate].ravel().tolist()
        return columns

    def to_pandas(self) -> pandas.DataFrame:
        """One row a bin: where it is, how many samples it holds, their mean forecast and mean outcome."""
        import pandas

        return pandas.DataFrame(self._columns())

    def __str__(self) -> str:
        """The bins that hold samples, as a table."""
        columns = self._columns()
        rows = [row for row in zip(*columns.values(), strict=True) if row[list(columns).index("count")]]
        return aligned(
            list(columns), [[cell if isinstance(cell, str) else f"{cell:.4g}" for cell in row] for row in rows]
        )

    def _mean(self, totals: Totals) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.counts[:, :, None] > 0, totals.value / self.counts[:, :, None], np.nan)


def check_memory(questions: int, bins: int, coordinates: int) -> None:
    """Refuse a table that is too large, before it is made."""
    needed = questions * bins * (1 + 2 * coordinates) * 16
    if needed > MOST_BYTES:
        raise CalibrationInputError(
            "bins",
            f"of all questions must fit {MOST_BYTES >> 30} GiB",
            got=f"{questions:,} questions x {bins:,} bins ({needed / (1 << 30):.1f} GiB)",
            hint="use fewer bins, or a lens that asks fewer questions",
        )


def _known(array: Array | None) -> Array:
    return np.zeros(0) if array is None else array
