"""Forecasts: the sorted table of distinct forecasts of an event, from which any binning of it follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from calibrant import kernels
from calibrant.binning import cells
from calibrant.binning.compact import compacted, restored
from calibrant.binning.long_ladder import ladder_of
from calibrant.binning.running import Ladder
from calibrant.binning.sorting import columns, distinct, known, reduced, small
from calibrant.bins import Bins, check_memory
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.cell_tallies import MODULUS, marks
from calibrant.kernels.precision import DOUBLE, Precision, counted
from calibrant.kernels.totals import Ints, Totals
from calibrant.selections import Mask
from calibrant.specification.packing import plain_fields
from calibrant.summaries import About, Summary
from calibrant.views import View

MOST_SAMPLES = float(1 << 62)
"""Ranks beyond this would leave their range."""
MOST_COUNTED = float(1 << 36)
"""Samples whose running totals fit two limbs."""
SUMS = ("squares", "outputs", "true_outputs", "squared_outputs")
"""The fields that are exact totals of entries, or None."""


@dataclass(frozen=True, eq=False)
class Forecasts(Summary):
    """Per question, forecasts in order, each distinct one or cell of neighbours an entry with totals of its own.

    The questions' tables follow each other; question q is entries starts[q] .. starts[q + 1]. Tied
    forecasts are one entry by construction, so no order of rows can matter. Whole weights count as
    repetition. `targets` are whole counts, or exact totals under soft labels. The value of a cell is some forecast
    in it, for those who need a number.
    """

    values: Array
    counts: Array
    targets: Array | Totals
    starts: Ints
    precisions: tuple[tuple[Precision, int], ...]
    """How finely forecasts are known, and of how many rows, the coarsest first."""
    squares: Totals | None = None
    """Summed squares of the weights of each entry; None where every weight was 1, so that they are the counts."""
    outputs: Totals | None = None
    """Summed forecasts of each entry; None where every entry is one distinct forecast, made so often."""
    true_outputs: Totals | None = None
    """As `outputs`, of those that came true; None under soft labels, too."""
    squared_outputs: Totals | None = None
    """As `outputs`, squared."""
    closed: Mask | None = None
    """Which entries are cells; None where every entry is one distinct forecast."""
    marks: Ints | None = None
    """Where entries may be cells, the sums of the marks of their forecasts (m, 2): they show which hold one alone."""
    axes: ClassVar[Mapping[str, str]] = {
        "starts": "q",
        "marks": "mt",
        **dict.fromkeys(("values", "counts", "targets", "closed", *SUMS), "m"),
    }

    @classmethod
    def of(cls, view: View, piece: str) -> Forecasts:
        """The table of a view; `piece` is the one that needs it, named where it cannot be."""
        view.require_event(piece, "KDTree or Grid for vectors")
        view.require_whole_weights(piece)
        if view.weight is not None or view.targets.ndim > 1:
            return cls._of_any(view)
        tables = [distinct(values, hits) for values, hits in columns(view)]
        several = (np.concatenate(parts) for parts in zip(*tables, strict=True))
        values, counts, targets = tables[0] if len(tables) == 1 else several
        starts = np.cumsum([0, *(len(table[0]) for table in tables)])
        return cls(view.about, values, counts, targets, starts, known(view))

    @classmethod
    def _of_any(cls, view: View) -> Forecasts:
        """Of weighted rows and soft labels: first every answer as an entry of its own."""
        parts = []
        for question in range(view.questions):
            rows = view.rows_of(question)
            weight = np.ones(len(rows)) if view.weight is None else view.weight[rows]
            rows, weight = rows[weight > 0], weight[weight > 0]
            truth = Totals.of(view.truth_of(question, rows)[:, 0]).times(weight)
            parts.append((view.outputs[rows, question % view.v, 0], weight.astype(np.int64), truth, weight))
        values, counts, targets, weights = zip(*parts, strict=True)
        weight = np.concatenate(weights)
        return cls(
            view.about,
            np.concatenate(values) + 0,  # -0.0 becomes 0.0
            np.concatenate(counts),
            Totals.joined(targets),
            np.cumsum([0, *map(len, values)]),
            known(view),
            None if (weight == 1).all() else Totals.of(np.square(weight)),
        )._collapsed()

    def _joined(self, other: Forecasts, about: About) -> Forecasts:
        both = (self, other)
        total = sum(float(table.counts.sum(dtype=np.float64)) for table in both)
        if total >= MOST_SAMPLES:
            raise CalibrationInputError("samples", "of sorted forecasts must be fewer than 2^62", got=f"{total:.3g}")
        order = np.argsort(np.concatenate([table._question for table in both]), kind="stable")
        whole = isinstance(self.targets, np.ndarray) and isinstance(other.targets, np.ndarray)
        return Forecasts(
            about,
            np.concatenate([table.values for table in both])[order],
            np.concatenate([table.counts.astype(np.int64) for table in both])[order],
            np.concatenate([table.targets.astype(np.int64) for table in both])[order]  # type: ignore[union-attr]
            if whole
            else Totals.joined([_totals(table.targets) for table in both])[order],
            self.starts + other.starts,
            counted(self.precisions + other.precisions),
            closed=None if self.closed is None else np.concatenate([table.closed for table in both])[order],
            marks=None if self.marks is None else np.concatenate([table.marks for table in both])[order],
            **_joined_totals(both, order),
        )._collapsed()

    def _without(self, other: Forecasts, about: About) -> Forecasts:
        """Cell by cell; those of which nothing is left go."""
        if self.keeps_rows or other.keeps_rows:
            return super()._without(other, about)
        less: dict[str, object] = {name: Totals.zeros(totals.shape) - totals for name, totals in other._totals.items()}
        counts, targets = -other.counts.astype(np.int64), Totals.zeros(other.counts.shape) - _totals(other.targets)
        less["precisions"] = tuple((precision, -rows) for precision, rows in other.precisions)
        less["marks"] = None if other.marks is None else -other.marks % MODULUS
        negative = dataclasses.replace(other, counts=counts, targets=targets, **less)  # type: ignore[arg-type]
        rest = self._joined(negative, about)
        sums = (_totals(rest.counts), _totals(rest.targets), *rest._totals.values())
        left = [*(totals.value != 0 for totals in sums), *([] if rest.marks is None else rest.marks.T != 0)]
        return rest._some(np.any(left, axis=0))

    def _some(self, entries: Mask) -> Forecasts:
        """Some of the entries."""
        fields = {
            name: getattr(self, name) for name in ("values", "counts", "targets", "closed", "marks")
        } | self._totals
        starts = np.concatenate([[0], np.cumsum(entries)])[self.starts]
        kept = {name: each[entries] for name, each in fields.items() if each is not None}
        return dataclasses.replace(self, starts=starts, **kept)

    def canonical(self) -> Forecasts:
        """One entry a distinct forecast or cell, in order; squares of weights only where they are not the counts."""
        table = self._collapsed()
        plain = table.squares is None or table.squares.same(_totals(table.counts))
        return dataclasses.replace(table, squares=None) if plain else table

    def faults(self) -> Iterator[str]:
        """What cannot be: forecasts that are no probabilities, counts below 1, more targets than samples."""
        yield from super().faults()
        counts, targets = _totals(self.counts), _totals(self.targets)
        if not ((self.values >= 0) & (self.values <= 1)).all():
            yield "values that are no probabilities"
        rows = [each for _, each in self.precisions]
        if min(rows, default=1) < 1 or sum(rows) != self.about.n or self.precisions != counted(self.precisions):
            yield "precisions of other rows"
        if any(not 0 < precision.bits <= 53 for precision, _ in self.precisions):
            yield "precisions of no floating-point type"
        if not (self.counts > 0).all() or targets.negative.any() or (counts - targets).negative.any():
            yield "counts below 1 or targets outside of 0 to their counts"
        if len(self.counts) and not self.about.n:
            yield "samples without rows"
        if self.squares is not None and (self.squares - counts).negative.any():
            yield "squares of whole weights below their sums"
        if self.marks is not None and not ((self.marks >= 0) & (self.marks < MODULUS)).all():
            yield "marks that were not counted"
        yield from self._impossible(targets)

    def _impossible(self, targets: Totals) -> Iterator[str]:
        """Sums that the forecasts of an entry cannot have: a cell's lie between its ends, others are its value."""
        values = self.values.astype(np.float64)
        number = cells.numbers(values)
        closed = np.zeros(len(values), bool) if self.closed is None else self.closed
        if (values != cells.lasts()[number])[closed].any():
            yield "cells that end elsewhere"
        ends = np.stack([np.where(closed, cells.firsts()[number], values), values])
        bounds = {"outputs": (ends, self.counts), "squared_outputs": (np.square(ends), self.counts)}
        if self.true_outputs is not None:
            bounds["true_outputs"] = ends, targets.floor
        for name, (borders, times) in bounds.items():
            if (totals := getattr(self, name)) is not None:
                least, most = (Totals.of(border).times(times) for border in borders)
                if (totals - least).negative.any() or (most - totals).negative.any():
                    yield f"{name} that forecasts of these entries cannot have"
        if (
            self.outputs is not None
            and self.true_outputs is not None
            and (self.outputs - self.true_outputs).negative.any()
        ):
            yield "true_outputs above the outputs"

    def stored(self) -> dict[str, object]:
        """The fields as they are written: those of cells in fewer bits."""
        return plain_fields(self if self.keeps_rows else compacted(self))

    @classmethod
    def restored(cls, fields: dict[str, object]) -> Self:
        """The table whose fields were written; where values are whole, they are numbers of cells."""
        table = super().restored(fields)
        return restored(table) if table.values.dtype.kind == "i" else table  # type: ignore[return-value]

    @property
    def precision(self) -> Precision:
        """How finely the coarsest forecasts are known: edges are compared no finer."""
        return self.precisions[0][0] if self.precisions else DOUBLE

    @property
    def _question(self) -> Ints:
        """The question of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def _collapsed(self) -> Forecasts:
        """Entries of equal question and value as one."""
        order, first = kernels.entries(self._question, self.values)
        question, values = self._question[order], self.values[order]
        if isinstance(self.targets, np.ndarray):
            targets: Array | Totals = small(reduced(self.targets[order], first))
        else:
            targets = self.targets[order].reduced(first)
            targets = small(targets.floor) if targets.is_whole else targets
        return dataclasses.replace(
            self,
            values=values[first],
            counts=small(reduced(self.counts[order], first)),
            targets=targets,
            starts=np.searchsorted(question[first], np.arange(len(self.starts))),
            closed=None if self.closed is None else self.closed[order][first],
            marks=None if self.marks is None else reduced(self.marks[order], first) % MODULUS,
            **{name: totals[order].reduced(first) for name, totals in self._totals.items()},  # type: ignore[arg-type]
        )

    @property
    def _totals(self) -> dict[str, Totals]:
        """The totals of entries that are there."""
        return {name: totals for name in SUMS if (totals := getattr(self, name)) is not None}

    @property
    def summed(self) -> Totals:
        """Summed forecasts of each entry."""
        return Totals.of(self.values).times(self.counts) if self.outputs is None else self.outputs

    def gathered(self, values: Array, closed: Mask | None = None) -> Forecasts:
        """Distinct forecasts moved to other values, in order; those that meet are one entry."""
        squared = Totals.of(np.square(self.values.astype(np.float64))).times(self.counts)
        true = Totals.of(self.values).times(self.targets) if isinstance(self.targets, np.ndarray) else None
        marked = marks(self.values) * (self.counts.astype(np.int64) % MODULUS)[:, None] % MODULUS
        sums = dataclasses.replace(self, outputs=self.summed, true_outputs=true, squared_outputs=squared, marks=marked)
        return dataclasses.replace(sums, values=values, closed=closed)._collapsed()

    def in_cells(self, opened: Sequence[tuple[int, int]]) -> Forecasts:
        """Distinct forecasts in cells, but those of opened ones (question, cell); a cell's value is its largest."""
        values = self.values.astype(np.float64)
        number = cells.numbers(values)
        question, cell = np.array(opened, np.int64).reshape(-1, 2).T
        apart = np.isin(self._question * cells.COUNT + number, question * cells.COUNT + cell)
        closed = ~(apart | cells.atoms()[number])
        return self.gathered(np.where(closed, cells.lasts()[number], values), closed)

    def at_means(self) -> Forecasts:
        """The table in which the forecasts of a cell are tied at their mean, inside the cell."""
        if self.closed is None:
            return self
        number = cells.numbers(self.values)
        means = np.clip(self.summed.value / self.counts, cells.firsts()[number], cells.lasts()[number])
        return dataclasses.replace(self, values=np.where(self.closed, means, self.values), closed=None)

    def cells_at(self, entries: Mask) -> list[tuple[int, int]]:
        """Question and cell of some entries."""
        return list(zip(self._question[entries].tolist(), cells.numbers(self.values)[entries].tolist(), strict=True))

    @property
    def keeps_rows(self) -> bool:
        """Whether forecasts are kept that are no edge of cells."""
        return self.closed is None or not (self.closed | cells.atoms()[cells.numbers(self.values)]).all()

    def recounted(self, counts: Ints, targets: Ints) -> Forecasts:
        """The same forecasts, made and come true so often; those that are never made are left out."""
        there = np.flatnonzero(counts)
        starts = np.searchsorted(there, self.starts)
        return Forecasts(self.about, self.values[there], counts[there], targets[there], starts, self.precisions)

    def ladders(self) -> Iterator[Ladder]:
        """Each question's table with running totals."""
        for start, stop in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            values, counts = self.values[start:stop], self.counts[start:stop]
            targets = self.targets[start:stop]
            sums: dict[str, Totals] = {name: totals[start:stop] for name, totals in self._totals.items()}
            precisions = tuple(precision for precision, _ in self.precisions)
            most = float(len(counts) << 8 * counts.itemsize)  # narrow ones need not be added up
            few = most < MOST_COUNTED or float(counts.sum(dtype=np.float64)) < MOST_COUNTED
            if few and isinstance(targets, np.ndarray) and not sums and self.closed is None:
                yield ladder_of(values, counts, targets, precisions)
                continue
            outputs = sums.get("outputs") or Totals.of(values).times(counts)
            yield Ladder(
                values,
                np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
                outputs.cumulative(),
                _totals(targets).cumulative(),
                self.precision,
                squares=sums["squares"].value if "squares" in sums else None,
                closed=None if self.closed is None else self.closed[start:stop],
                true_outputs=sums.get("true_outputs"),
                squared_outputs=sums.get("squared_outputs"),
                alike=None if self.marks is None else cells.alike(counts, self.marks[start:stop]),
                precisions=precisions,
            )

    def cut(self, cuts: Callable[[Ladder], Ints]) -> Bins:
        """The bins when each question's samples, in order of forecast, are cut at the ranks that `cuts` names."""
        sums, ends = [], []
        for ladder in self.ladders():  # one in memory at a time
            ranks = cuts(ladder)
            check_memory(len(self.starts) - 1, len(ranks) - 1, 1)
            sums.append(ladder.cut(ranks))
            ends.append(ladder.ends(ranks))
        width = max(len(low) for low, _ in ends)
        size, outputs, targets = (Totals.stack(parts, width) for parts in zip(*sums, strict=True))
        low, high = np.full((2, len(ends), width), np.nan)
        for index, borders in enumerate(ends):
            low[index, : len(borders[0])], high[index, : len(borders[1])] = borders
        return Bins(
            self.about,
            size,
            outputs.reshape(*outputs.shape, 1),
            targets.reshape(*targets.shape, 1),
            np.array([len(low) for low, _ in ends]),
            low,
            high,
        )


def _totals(targets: Array | Totals) -> Totals:
    return targets if isinstance(targets, Totals) else Totals.whole(targets)


def _joined_totals(both: tuple[Forecasts, Forecasts], order: Ints) -> dict[str, Totals]:
    """The totals that both tables have, one behind the other, in order; squares are counts where weights were 1."""
    weighted = both[0].squares or both[1].squares
    parts = {name: [getattr(table, name) for table in both] for name in SUMS}
    parts["squares"] = [weighted and (table.squares or _totals(table.counts)) for table in both]
    return {name: Totals.joined(part)[order] for name, part in parts.items() if None not in part}
