"""What estimators share: asking the lens, combining the questions, saying the choices in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from calibrant.aggregates import mean, mean_of
from calibrant.bins import Bins
from calibrant.distances import tvd
from calibrant.forecasts import Forecasts
from calibrant.metric import Metric, Result
from calibrant.predictions import Predictions
from calibrant.selections import Everything
from calibrant.specification import encode
from calibrant.totals import Floats
from calibrant.views import About, View


class OfTable(Metric):
    """A metric of events that concludes from the table of distinct forecasts; it has fields `select` and `lens`."""

    def summarise(self, predictions: Predictions) -> Forecasts:
        """The table of distinct forecasts."""
        (view,) = views(self, predictions, None)
        return self.summarise_view(view)

    def summarise_view(self, view: View) -> Forecasts:
        """The table of what the lens saw."""
        view.require_event(type(self).__name__, "TopLabel(), OneClass(c) or Classwise()")
        return Forecasts.of(view, type(self).__name__)


def views(metric: Any, predictions: Predictions, block: int | None) -> Iterator[View]:
    """What the lens sees of the selected samples, in blocks of at most so many forecasts."""
    selected = predictions
    if not isinstance(metric.select, Everything):
        selected = predictions[metric.select(predictions)]
    if block is None:
        yield metric.lens(selected)
    else:
        yield from (metric.lens(part) for part in selected.blocks(block))


def combine(
    metric: Any,
    about: About,
    values: Floats,
    sizes: Floats,
    words: str,
    *,
    bins: Bins | None = None,
    details: dict[str, float] | None = None,
) -> Result:
    """The result of the questions' values, with notes on what a reader should know."""
    combined = metric.across(values, sizes)
    details = {**(details or {}), **{name: number for name, number in combined.items() if name != "value"}}
    several = bool(about.names)
    return Result(
        metric,
        combined["value"],
        about,
        words,
        bins,
        details,
        notes=(*about.notes, *_remarks(bins, sizes)),
        values=tuple(values.tolist()) if several else (),
        sizes=tuple(sizes.tolist()) if several else (),
    )


def choices(metric: Any, about: About) -> str:
    """A metric's choices in words; those that are the default go without saying."""
    words = []
    if not isinstance(metric.select, Everything):
        words.append(f"where {metric.select!r}".replace("where where(", "where("))
    if hasattr(metric, "binning"):
        words.append(str(metric.binning))
    for field, usual in (("distance", tvd), ("aggregate", mean), ("across", mean_of)):
        piece = getattr(metric, field, usual)
        if piece is not usual and (field != "across" or about.names):
            words.append(_name(piece))
    return ", ".join(words)


def _name(piece: Any) -> str:
    if not dataclasses.is_dataclass(piece) and not hasattr(piece, "__name__"):
        return str(piece)
    spelled = encode(piece)
    if "function" in spelled:
        return spelled["function"].replace("_", " ")
    return f"{spelled.pop('piece').replace('_', ' ')} {', '.join(str(value) for value in spelled.values())}"


def _remarks(bins: Bins | None, sizes: Floats) -> list[str]:
    if not sizes.any():
        return ["no samples: the selection is empty"]
    remarks = []
    if bins is not None and bins.cells is not None and np.median(bins.counts[bins.counts > 0]) < 5:
        remarks.append("the median cell has fewer than 5 samples: the error is mostly noise")
    if bins is not None and bins.shape[0] == 1 and bins.requested[0] > bins.counts.sum():
        remarks.append("more bins than samples")
    return remarks
