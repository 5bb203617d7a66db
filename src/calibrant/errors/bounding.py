"""What follows for a metric from forecasts that are counted in cells: bounds, an approximation, or nothing."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from calibrant.binning.bounds import outward
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.result import Result
from calibrant.specification.facts import facts_of
from calibrant.summaries import Summary

if TYPE_CHECKING:
    from calibrant.errors.asking import Asking

BOUNDS = "the order of forecasts inside cells was not kept: bounds are of these rows, not of what others would show"
UNDETERMINED = "undetermined: the order of forecasts inside cells, which was not kept, decides; measure the rows"
ALIKE = "cells that hold one forecast alone were told by marks: a chance of one in a billion that a cell holds others"
APPROXIMATE = "approximate: the forecasts of a cell count as their mean; no bound is known of"


def unavailable(metric: Asking[Summary]) -> CalibrationInputError:
    """The refusal of a metric of which cells tell nothing.

    >>> import calibrant as cal
    >>> print(unavailable(cal.FULL_ECE))
    metric: must follow from forecasts in cells, got FULL_ECE; measure the rows themselves
    """
    hint = "measure the rows themselves"
    return CalibrationInputError("metric", "must follow from forecasts in cells", got=metric.name, hint=hint)


def within_of(piece: object, ladder: Ladder) -> tuple[float, float] | None:
    """Between what a statistic or score says that it lies for one table; None where it does not say.

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.refine().summarise([0, 1], [.25, .75]).ladders()
    >>> within_of(cal.brier_score, ladder), within_of(cal.hit, ladder)
    ((0.0625, 0.0625), None)
    """
    within = facts_of(piece).within
    if within is None:
        return None
    low, high = within(ladder)  # type: ignore[arg-type]  # a piece gets what it was declared for
    return float(low), float(high)


def tied(metric: Asking[Summary], table: Forecasts) -> Forecasts:
    """A table in cells as one of the metric's own, the forecasts of each cell tied at their mean.

    >>> import calibrant as cal
    >>> table = cal.ADAPTIVE_ECE.refine().summarise([0, 1], [.311, .312])
    >>> tied(cal.ADAPTIVE_ECE, table).values.round(4).tolist()
    [0.3115]
    """
    reads = (*table.about.reads[:2], metric.reading, *table.about.reads[3:])
    return dataclasses.replace(table.at_means(), about=dataclasses.replace(table.about, reads=reads))


def bounded(result: Result, metric: Asking[Summary], table: Forecasts, low: Floats, high: Floats) -> Result:
    """The result of tied cells with bounds, given those of each question; infinite ones tell nothing.

    >>> import calibrant as cal
    >>> table = cal.ADAPTIVE_ECE.refine().summarise([0, 1], [.311, .312])
    >>> result = cal.ADAPTIVE_ECE.answer(tied(cal.ADAPTIVE_ECE, table))
    >>> print(bounded(result, cal.ADAPTIVE_ECE, table, np.array([.4]), np.array([.6])))
    ADAPTIVE_ECE 0.4000, surely between 0.4000 and 0.6000 (n=2, event, 15 equal-mass bins)
    """
    ladders = list(table.ladders())
    alike = any((ladder.cells & ~ladder.hidden & (np.diff(ladder.ranks) > 1)).any() for ladder in ladders)
    notes = (*result.notes, *([ALIKE] if alike else []))
    unknown, values = np.isneginf(low) & np.isposinf(high), np.array(result.values or [result.value])
    if unknown.any():
        told = tuple(np.where(unknown, np.nan, values).tolist()) if result.values else ()
        return dataclasses.replace(result, value=math.nan, values=told, notes=(*notes, UNDETERMINED))
    across, facts, part = facts_of(metric.across), metric.facts, metric.part_facts
    if not (across.rises or (across.keeps_one and len(low) == 1)):
        raise unavailable(metric)
    low, high = (np.clip(each, part.low, part.high) for each in outward(low, high))
    sizes = np.array([ladder.n for ladder in ladders], np.float64)
    ends = outward(*(np.array(metric.across(each, sizes)["value"]) for each in (low, high)))
    least, most = np.clip(ends, facts.low, facts.high).tolist()
    return dataclasses.replace(
        result,
        value=float(np.clip(result.value, least, most)),
        values=tuple(np.clip(values, low, high).tolist()) if result.values else (),
        notes=(*notes, BOUNDS),
        bounds=(least, most),
        part_bounds=tuple(zip(low.tolist(), high.tolist(), strict=True)) if result.values else (),
    )


def approximate(result: Result, what: str) -> Result:
    """The result of tied cells, with a note that no bound is known, and of what.

    >>> import calibrant as cal
    >>> approximate(cal.ICI([0, 1], [.2, .7]), "a curve").notes
    ('approximate: the forecasts of a cell count as their mean; no bound is known of a curve',)
    """
    return dataclasses.replace(result, notes=(*result.notes, f"{APPROXIMATE} {what}"))
