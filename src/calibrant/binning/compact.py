"""Compact: a table in cells as it is written, without what cells and counts tell already."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from calibrant.binning import cells
from calibrant.door.arrays import Array
from calibrant.kernels.cell_tallies import MODULUS, marks
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.selections import Mask

if TYPE_CHECKING:
    from calibrant.binning.ladder import Forecasts


def compacted(table: Forecasts) -> Forecasts:
    """A table of cells and edges with fields of as few bits as tell them; it is written, and good for nothing else.

    Instead of values there are numbers of cells, each less the one before. Sums are less what they would be if all
    forecasts of a cell lay in its middle, and of squares also less what the sum tells. Those of an edge, which is one
    forecast, follow from its counts and are left out.
    """
    number = cells.numbers(table.values)
    closed, middle = ~cells.atoms()[number], _middles(number)
    outputs, true = table.summed - _expected(middle, table.counts), table.true_outputs
    squared = table.squared_outputs or Totals.zeros(number.shape)
    return dataclasses.replace(
        table,
        values=np.diff(number, prepend=0),
        outputs=outputs[closed],
        true_outputs=None if true is None else (true - _expected(middle, table.targets))[closed],
        squared_outputs=(squared - _squared(middle, table.counts, outputs))[closed],
        closed=None,
        marks=None if table.marks is None else table.marks[closed],
    )


def restored(table: Forecasts) -> Forecasts:
    """The table that was compacted.

    >>> import calibrant as cal
    >>> table = cal.ADAPTIVE_ECE.refine().summarise([0, 1, 1], [.311, .312, .5])
    >>> restored(compacted(table)).to_bytes() == table.to_bytes()
    True
    """
    number = np.cumsum(table.values)
    if not ((number >= 0) & (number < len(cells.lasts()))).all():
        raise ValueError("cells that there are not")
    closed, middle = ~cells.atoms()[number], _middles(number)
    outputs, true, squared = (
        _spread(each, closed) for each in (table.outputs, table.true_outputs, table.squared_outputs)
    )
    mark = marks(middle) * (table.counts.astype(np.int64) % MODULUS)[:, None] % MODULUS
    mark[closed] = np.zeros((0, 2)) if table.marks is None else table.marks
    return dataclasses.replace(
        table,
        values=cells.lasts()[number],
        outputs=outputs + _expected(middle, table.counts),
        true_outputs=None if table.true_outputs is None else true + _expected(middle, table.targets),
        squared_outputs=squared + _squared(middle, table.counts, outputs),
        closed=closed,
        marks=mark,
    )


def _middles(number: Ints) -> Floats:
    """The middle of each cell; of an edge, itself."""
    return (cells.firsts()[number] + cells.lasts()[number]) / 2


def _squared(middle: Floats, counts: Array, apart: Totals) -> Totals:
    """What squares would sum to if forecasts lay close to the middle, their sum so far apart from it.

    Products and sums of floats are the same on every machine, and rounding them loses nothing: the rest is written.
    """
    return _expected(np.square(middle), counts) + Totals.of(2 * middle * apart.value)


def _expected(middle: Floats, counts: Array | Totals) -> Totals:
    """What so many forecasts in the middle sum to."""
    return Totals.of(middle).times(counts.floor if isinstance(counts, Totals) else counts)


def _spread(totals: Totals | None, closed: Mask) -> Totals:
    """Totals of closed cells at the places of these, and nothing elsewhere."""
    if totals is None:
        return Totals.zeros(closed.shape)
    return totals.reshape(1, -1).spread(np.flatnonzero(closed), len(closed)).reshape(len(closed))
