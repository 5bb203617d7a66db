"""Bins: one table of pools, which is the state, the result and what a picture draws."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.caching import cached_property
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.specification.documents import require_keys
from calibrant.summaries import About, Sums
from calibrant.text import aligned

if TYPE_CHECKING:
    import pandas

Limbs = Mapping[str, object]
MOST_BYTES = 4 << 30
"""A table larger than this is refused before it is allocated."""


@dataclass(frozen=True, eq=False)
class Bins(Sums):
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
    parts: ClassVar[tuple[str, ...]] = ("outputs", "targets")
    axes: ClassVar[Mapping[str, str]] = {
        "size": "vb",
        "outputs": "vbd",
        "targets": "vbd",
        "requested": "v",
        "low": "vb",
        "high": "vb",
        "cells": "bc",
        "squares": "vb",
    }

    @property
    def shape(self) -> tuple[int, int, int]:
        """Questions, bins, coordinates."""
        v, b, d = self.outputs.shape
        return v, b, d

    @cached_property
    def counts(self) -> Floats:
        """How many samples (or how much weight) each bin holds: (v, b)."""
        return self.size.value

    @cached_property
    def held(self) -> Floats:
        """How many samples (or how much weight) each question holds, summed exactly: (v,)."""
        return self.size.sum(1).value

    @property
    def share(self) -> Floats:
        """The share of its question's samples that each bin holds: (v, b); nan for a question without samples."""
        with np.errstate(invalid="ignore"):
            return self.counts / self.held[:, None]

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
        return (self.outputs - self.targets).value / np.where(self.counts > 0, self.counts, 1.0)[:, :, None]

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
        rows = {name: each[row] for name, each in self.totals.items()}
        rows |= {name: ends[row] for name in ("low", "high") if (ends := getattr(self, name)) is not None}
        return dataclasses.replace(self, about=about, requested=self.requested[row], **rows)  # type: ignore[arg-type]

    def _each(self, other: Bins, about: About, join: Callable[[Totals, Totals], Totals]) -> Bins:
        """Grids meet over the union of their occupied cells, other bins where their edges are the same."""
        if self.cells is not None and other.cells is not None:
            cells, place = np.unique(np.concatenate([self.cells, other.cells]), axis=0, return_inverse=True)
            places = np.split(place.ravel(), [len(self.cells)])
            mine, theirs = (bins._spread(cells, at) for bins, at in zip((self, other), places, strict=True))
            return super(Bins, mine)._each(theirs, about, join).canonical()
        if self.shape != other.shape or not np.array_equal(_known(self.high), _known(other.high)):
            raise CalibrationInputError("summaries", "must have the same bins to be added", got="different ones")
        return super()._each(other, about, join)

    def _spread(self, cells: Ints, places: Ints) -> Bins:
        """The bins at their places among these cells."""
        totals = {name: each.spread(places, len(cells)) for name, each in self.totals.items()}
        return dataclasses.replace(self, cells=cells, **totals)  # type: ignore[arg-type]

    def canonical(self) -> Bins:
        """The same sums; of a grid, the cells that hold samples."""
        bins = super().canonical()
        if bins.cells is None:
            return bins
        held = np.flatnonzero(bins.counts.any(axis=0))
        totals = {name: each[:, held] for name, each in bins.totals.items()}
        requested = np.full(len(bins.requested), len(held))
        return dataclasses.replace(bins, cells=bins.cells[held], requested=requested, **totals)  # type: ignore[arg-type]

    def faults(self) -> Iterator[str]:
        """What cannot be, ends, cells and numbers of bins included."""
        yield from super().faults()
        low, high = _known(self.low), _known(self.high)
        if (
            low.shape != high.shape
            or not (
                (low >= 0) & (low <= high) & (high <= 1)
                | np.isnan(low) & np.isnan(high)  # nan pads questions of fewer bins
            ).all()
        ):
            yield "bins whose ends are no interval of probabilities"
        if not ((self.requested >= 0) & (self.requested <= self.shape[1])).all():
            yield "more bins asked for than there are"
        if self.cells is not None and not np.array_equal(np.unique(self.cells, axis=0), self.cells):
            yield "cells out of order"

    def to_dict(self) -> dict[str, object]:
        """Plain numbers, ready for JSON.

        >>> import calibrant as cal
        >>> bins = cal.ECE([1, 0], [.9, .2]).bins
        >>> Bins.from_dict(bins.to_dict(), bins.about).outputs.same(bins.outputs)
        True
        """
        document: dict[str, object] = {"requested": self.requested.tolist()}
        for name, totals in self.totals.items():
            limbs = {"hi": totals.hi, "lo": totals.lo, "top": totals.top}
            document[name] = {limb: array.tolist() for limb, array in limbs.items() if array is not None}
        for name, ends in (("low", self.low), ("high", self.high)):
            if ends is not None:
                document[name] = [[None if np.isnan(end) else float(end) for end in row] for row in ends]
        if self.cells is not None:
            document["cells"] = self.cells.tolist()
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, object], about: About) -> Bins:
        """Bins from what `to_dict` gave, about what a result says."""
        require_keys(document, {"requested": list, "size": dict, "outputs": dict, "targets": dict}, _OTHERS)
        totals = {
            name: Totals(
                **{limb: _whole_numbers(each, cls.axes[name]) for limb, each in cast(Limbs, document[name]).items()}
            )
            for name in ("size", "outputs", "targets", "squares")
            if name in document
        }
        low, high = (np.array(document[name], np.float64) if name in document else None for name in ("low", "high"))
        cells = _whole_numbers(document["cells"], cls.axes["cells"]) if "cells" in document else None
        return cls(
            about, requested=_whole_numbers(document["requested"], "v"), low=low, high=high, cells=cells, **totals
        )

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


_OTHERS = ("squares", "low", "high", "cells")


def _whole_numbers(values: object, axes: str) -> Ints:
    """Whole numbers of these axes: JSON cannot tell those that follow an empty one."""
    array = np.array(values)
    if array.dtype.kind != "i" and array.size:
        raise ValueError(f"{array.dtype} in the place of whole numbers")
    missing = 0 if array.size else max(0, len(axes) - array.ndim)
    return array.astype(np.int64).reshape(*array.shape, *(1,) * missing)


def _known(array: Array | None) -> Array:
    return np.zeros(0) if array is None else array
