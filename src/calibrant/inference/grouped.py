"""Grouped forecasts: a table small enough to be resampled many times, which no setting of the page cuts apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from calibrant.binning.fixed import FixedEdges
from calibrant.binning.ladder import Forecasts
from calibrant.binning.ranked import EqualMass
from calibrant.binning.running import Ladder
from calibrant.door.arrays import Array
from calibrant.errors.asking import Asking, OfBins
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.consistency import Null
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses.events import TopLabel
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.result import Result

MOST_BINS = 50
"""The most bins that the page can be asked for."""
MOST_ROWS = 20_000
"""Above so many rows forecasts are grouped."""
FINE = 4096
"""Groups are no wider than 1 / FINE and hold no more than 1 / FINE of the rows, tied forecasts apart."""
BLOCK = 1 << 17
"""Forecasts that are looked at together."""


@cache
def edges() -> Floats:
    """The fractions k / m at which the page may cut forecasts into bins of equal width.

    >>> edges()[:3].round(4).tolist(), len(edges())
    ([0.0, 0.02, 0.0204], 775)
    """
    every = sorted({Fraction(k, m) for m in range(1, MOST_BINS + 1) for k in range(m + 1)})
    fractions = np.array([float(fraction) for fraction in every])
    fractions.setflags(write=False)
    return fractions


def ranks(n: int) -> Ints:
    """The ranks ceil(k n / m) at which the page may cut sorted forecasts into bins of equal mass.

    >>> ranks(4).tolist()
    [0, 1, 2, 3, 4]
    """
    return np.unique(np.concatenate([-(-np.arange(m + 1) * n // m) for m in range(1, MOST_BINS + 1)]))


def grouped(event: Predictions) -> Forecasts | None:
    """The table of the distinct forecasts of an event; of very many, in groups. None under fractional weights.

    Groups end at every edge and at every rank at which the page may cut, so that its bins are exact; within a group
    forecasts count as their mean.

    >>> len(grouped(Predictions.from_probs([1, 0, 1], [.9, .2, .2])).values)
    2
    """
    try:
        table = EqualMass(1).summarise(TopLabel()(event))
    except CalibrationInputError:
        return None
    large = len(event) > MOST_ROWS and event.weight is None and event.soft is None
    return _in_groups(table) if large else table


def concluded(metric: Metric, table: Forecasts) -> Result:
    """What a metric of one event makes of its table.

    >>> import calibrant as cal
    >>> event = Predictions.from_probs([1, 0, 1], [.9, .2, .2])
    >>> concluded(cal.ECE, grouped(event)).value == cal.ECE(event).value
    True
    """
    if isinstance(metric, OfBins) and isinstance(metric.binning, FixedEdges):
        return metric.of_bins(table.cut(metric.binning.cuts))
    reads = metric.reads if isinstance(metric, Asking) else ()
    return metric.conclude(dataclasses.replace(table, about=dataclasses.replace(table.about, reads=reads)))


def by_blocks(metric: Metric, predictions: Predictions) -> Result:
    """What a metric says of predictions, a few at a time: the same to the bit, in less memory.

    >>> import calibrant as cal
    >>> by_blocks(cal.ECE, Predictions.from_probs([1, 0, 1], [.9, .2, .2])).n
    3
    """
    return metric.conclude(sum(metric.summarise(part) for part in predictions.blocks(BLOCK)))


def bin_numbers(binning: FixedEdges, event: Predictions) -> Array:
    """The bin of each forecast of one event, a few at a time.

    >>> from calibrant.binning.fixed import EqualWidth
    >>> bin_numbers(EqualWidth(2), Predictions.from_probs([1, 0, 1], [.9, .2, .5])).tolist()
    [1, 0, 0]
    """
    numbers = np.empty(len(event), np.int32)
    start = 0
    for part in event.blocks(BLOCK):
        numbers[start : start + len(part)] = binning.assign(TopLabel()(part))[:, 0]
        start += len(part)
    return numbers


@dataclass(frozen=True, eq=False)
class Resampling:
    """Metrics of a table under resampled rows, and under labels redrawn from the forecasts.

    Rows of one group with the same outcome are alike, so that resampling rows is drawing how many of each kind there
    are. Every metric sees the same draws.
    """

    table: Forecasts
    rows: dict[Metric, Floats]
    """Values under resampled rows."""
    labels: dict[Metric, Floats]
    """Values under redrawn labels."""

    @classmethod
    def of(
        cls, table: Forecasts, metrics: Sequence[Metric], n: int, seed: int, together: Ints | None = None
    ) -> Resampling:
        """n draws of each kind; `together` (`kinds_together`) are the forecasts of each row, where it has several."""
        rows = [_values(metrics, drawn) for drawn in _rows_resampled(table, n, seed, together)]
        labels = [_values(metrics, drawn) for drawn in _labels_redrawn(table, n, seed)]
        return cls(table, *(dict(zip(metrics, np.array(values).T, strict=True)) for values in (rows, labels)))

    def null(self, result: Result) -> Null:
        """The distribution of the metric if the forecasts were calibrated."""
        values = self.labels[result.metric]
        return Null(result, values, np.zeros((len(values), 0)))


def _values(metrics: Sequence[Metric], table: Forecasts) -> list[float]:
    return [concluded(metric, table).value for metric in metrics]


def kinds_together(event: Predictions, several: int) -> Ints:
    """The forecasts (rows, several) of each row by their group in the grouped table, those that came true after all.

    >>> event = Predictions.from_probs([1, 0, 1, 0], [.9, .2, .2, .2])
    >>> kinds_together(event, 2).tolist()
    [[3, 0], [2, 0]]
    """
    (ladder,) = EqualMass(1).summarise(TopLabel()(event)).ladders()
    group = np.searchsorted(_ends(ladder), event.probabilities)
    held, place = np.unique(group, return_inverse=True)
    return (place.ravel() + len(held) * event.hard_labels("grouping")).reshape(-1, several)


def _rows_resampled(table: Forecasts, n: int, seed: int, together: Ints | None) -> Iterator[Forecasts]:
    counts, happened = table.counts.astype(np.int64), np.asarray(table.targets, np.int64)
    kinds = np.concatenate([counts - happened, happened])
    total = int(kinds.sum())
    for index in range(n):
        rng = _generator(seed, 0, index)
        if together is None:
            drawn = rng.multinomial(total, kinds / total).reshape(2, -1)
        else:
            rows = np.bincount(rng.integers(0, len(together), len(together)), minlength=len(together))
            times = np.repeat(rows, together.shape[1])
            drawn = np.bincount(together.ravel(), times, len(kinds)).astype(np.int64).reshape(2, -1)
        yield table.recounted(drawn.sum(axis=0), drawn[1])


def _labels_redrawn(table: Forecasts, n: int, seed: int) -> Iterator[Forecasts]:
    chances = np.clip(table.values.astype(np.float64), 0.0, 1.0)
    counts = table.counts.astype(np.int64)
    for index in range(n):
        yield table.recounted(counts, _generator(seed, 1, index).binomial(counts, chances))


def _generator(seed: int, stage: int, index: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(9, stage, index)))


def _in_groups(table: Forecasts) -> Forecasts:
    """The entries of one question between the ends of groups as one, whose value is their mean."""
    (ladder,) = table.ladders()
    ends = _ends(ladder)
    groups = table.gathered(ends[np.searchsorted(ends, table.values)])
    place = np.searchsorted(ends, groups.values)
    firsts = np.nextafter(np.concatenate([ends[:1] - 1, ends[:-1]]), ends.dtype.type(2))[place]
    means = np.clip(groups.summed.value / groups.counts, firsts, groups.values)  # a tied forecast is itself, to the bit
    return dataclasses.replace(groups, values=means)


def _ends(ladder: Ladder) -> Array:
    """The largest forecast that each group may hold: forecasts on either side of a rank are a group of their own."""
    n, cuts, values = ladder.n, ranks(ladder.n), ladder.values
    tied = np.unique(values[ladder.entry(np.concatenate([cuts[:-1], cuts[1:] - 1]))])
    fine = values[ladder.entry(np.arange(1, FINE) * n // FINE)]
    _, fixed = ladder.precision.comparable(values[:1], np.union1d(edges(), np.arange(FINE) / FINE))
    below = np.nextafter(tied, tied.dtype.type(-1))
    return np.unique(np.concatenate([tied, below, fine, fixed]))
