"""Tallying: the table of forecasts in cells, counted in one walk over the rows, without sorting them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from calibrant import kernels
from calibrant.binning import cells
from calibrant.binning.ladder import Forecasts
from calibrant.binning.sorting import columns, distinct, known, small
from calibrant.door.arrays import Array
from calibrant.kernels.totals import Totals
from calibrant.views import View

FEWEST = 1 << 12
"""Rows of a question from which on counting in all cells takes less than sorting."""


def suits(view: View) -> bool:
    """Whether forecasts of a view can be counted in cells as they are: many rows in memory, hard labels, no weights.

    >>> import calibrant as cal
    >>> suits(cal.TopLabel()(cal.Predictions.from_probs([1, 0], [.9, .2])))
    False
    """
    hard = view.targets.ndim == 1 or view.targets.dtype.kind in "iub"
    plain = hard and view.weight is None and view.d == 1
    return plain and isinstance(view.outputs, np.ndarray) and len(view.outputs) >= FEWEST * view.groups


def tallied(view: View, opened: Sequence[tuple[int, int]] = ()) -> Forecasts:
    """The table of a view that suits, in cells, but for the forecasts of opened ones (question, cell).

    >>> import calibrant as cal
    >>> view = cal.TopLabel()(cal.Predictions.from_probs([1, 0, 1], [.311, .312, .9]))
    >>> tallied(view).counts.tolist(), tallied(view, [(0, cells.numbers(.311))]).counts.tolist()
    ([2, 1], [1, 1, 1])
    """
    inside: dict[int, list[int]] = {}
    for question, cell in opened:
        inside.setdefault(question, []).append(cell)
    totals, apart = [], []
    for question, (values, hits) in enumerate(columns(view)):
        if question in inside:
            is_open = np.zeros(len(cells.lasts()), bool)
            is_open[inside[question]] = True
            held = is_open[kernels.cell_numbers(values, cells.lasts())]
            apart.append(distinct(values[held], hits[held]))
            values, hits = values[~held], hits[~held]
        else:
            apart.append((values[:0], np.zeros(0, np.int64), np.zeros(0, np.int64)))
        totals.append(kernels.cell_totals(values, hits, cells.lasts()))
    table = _table(view, totals)
    if not opened:
        return table
    nothing = dataclasses.replace(view.about, n=0, soft=0, fractional=0, remarks=())
    values, counts, targets = (np.concatenate(parts) for parts in zip(*apart, strict=True))
    starts = np.cumsum([0, *(len(levels) for levels, _, _ in apart)])
    return table + Forecasts(nothing, values, counts, targets, starts, ()).in_cells(opened)


def _table(view: View, totals: Sequence[Array]) -> Forecasts:
    """The cells of each question that hold forecasts."""
    numbers = [np.flatnonzero(each[0]) for each in totals]
    held = np.concatenate([each[:, number] for each, number in zip(totals, numbers, strict=True)], axis=1)
    number = np.concatenate(numbers)
    return Forecasts(
        view.about,
        cells.lasts()[number],
        small(held[0]),
        small(held[1]),
        np.cumsum([0, *map(len, numbers)]),
        known(view),
        outputs=Totals(held[2], held[3]),
        true_outputs=Totals(held[4], held[5]),
        squared_outputs=Totals(held[6], held[7]),
        closed=~cells.atoms()[number],
        marks=np.ascontiguousarray(held[8:].T),
    )
