"""The binned error: selection, lens, binning, distance and aggregate, in the words of the rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.aggregates import Across, Aggregate, mean, mean_of
from calibrant.binning import Binning, EqualWidth
from calibrant.bins import Bins
from calibrant.distances import Distance, debiased_squared, tvd
from calibrant.lenses import Lens, TopLabel
from calibrant.metric import Metric, Result
from calibrant.predictions import Predictions
from calibrant.selections import Everything, Selection, everything
from calibrant.specification import encode
from calibrant.sweep import Sweep
from calibrant.totals import Floats
from calibrant.views import View


@dataclass(frozen=True)
class BinnedError(Metric):
    r"""A calibration error as five choices.

    .. math:: \mathrm{across}_v \; \mathrm{aggregate}_b \; \mathrm{distance}(\bar o_{vb}, \bar t_{vb})

    over the pools b that the binning makes of the lens's answers to question v, on the selected samples.
    An empty selection is nan, with a note.

    References: Kirchenbauer, Oaks & Heim (2022), eq. 3, for one question.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(lens=cal.TopK(2), binning=cal.KDTree(gamma=0.5))
    >>> print(metric([0, 1], [[.7, .2, .1], [.1, .8, .1]]))
    BinnedError 0.2500 (n=2, top 2 and the rest, kd-tree bins, gamma 0.5)
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    binning: Binning = EqualWidth()
    distance: Distance = tvd
    aggregate: Aggregate = mean
    across: Across = mean_of

    def summarise(self, predictions: Predictions) -> Any:
        """The binning's summary of the lens's views, block by block where the state stays small."""
        parts = (self.binning.summarise(view) for view in views(self, predictions, self.binning.block))
        return sum(parts)

    def conclude(self, summary: Any) -> Result:
        """Bins, distances, one number a question, one number."""
        bins = self.binning.conclude(summary)
        distances = np.where(bins.counts > 0, self.distance(bins), 0.0)
        details: dict[str, float] = {}
        if isinstance(self.binning, Sweep) and bins.shape[0] == 1:
            details["n_bins"] = int(bins.requested[0])
        if self.distance is debiased_squared and bins.shape[0] == 1:
            details["signed_square"] = float(mean(distances, bins)[0])
        return combine(self, bins, self.aggregate(distances, bins), choices(self), details)


def views(metric: Any, predictions: Predictions, block: int | None) -> Iterator[View]:
    """What the lens sees of the selected samples, in blocks of at most so many forecasts."""
    selected = predictions
    if not isinstance(metric.select, Everything):
        selected = predictions[metric.select(predictions)]
    if block is None:
        yield metric.lens(selected)
    else:
        yield from (metric.lens(part) for part in selected.blocks(block))


def combine(metric: Any, bins: Bins, values: Floats, words: str, details: dict[str, float]) -> Result:
    """The result of several questions' values, with notes on what a reader should know."""
    sizes = bins.counts.sum(axis=1)
    combined = metric.across(values, sizes)
    details = {**details, **{name: number for name, number in combined.items() if name != "value"}}
    several = bool(bins.about.names)
    return Result(
        metric,
        combined["value"],
        bins.about,
        words,
        bins,
        details,
        notes=(*bins.about.notes, *_remarks(bins)),
        values=tuple(values.tolist()) if several else (),
        sizes=tuple(sizes.tolist()) if several else (),
    )


def choices(metric: Any) -> str:
    """A metric's choices in words; those that are the default go without saying."""
    words = []
    if not isinstance(metric.select, Everything):
        words.append(f"where {metric.select!r}")
    words.append(str(metric.binning))
    for field, usual in (("distance", tvd), ("aggregate", mean), ("across", mean_of)):
        piece = getattr(metric, field, usual)
        if piece is not usual and not (field == "across" and not _several(metric)):
            words.append(_name(piece))
    return ", ".join(words)


def _several(metric: Any) -> bool:
    return "every class" in str(metric.lens) or " by " in str(metric.lens)


def _name(piece: Any) -> str:
    spelled = encode(piece)
    if "function" in spelled:
        return spelled["function"].replace("_", " ")
    return f"{spelled.pop('piece').replace('_', ' ')} {', '.join(str(value) for value in spelled.values())}"


def _remarks(bins: Bins) -> list[str]:
    filled = bins.counts[bins.counts > 0]
    if not filled.size:
        return ["no samples: the selection is empty"]
    remarks = []
    if bins.cells is not None and np.median(filled) < 5:
        remarks.append("the median cell has fewer than 5 samples: the error is mostly noise")
    if bins.shape[0] == 1 and bins.requested[0] > bins.counts.sum():
        remarks.append("more bins than samples")
    return remarks
