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
from calibrant.errors.asking import Asking
from calibrant.errors.of_bins import OfBins
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.consistency import Null
from calibrant.kernels.totals import Floats, Ints, Totals
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
    flips: dict[Metric, Floats]
    """Values with the signs of all gaps of a cluster at random; nothing where forecasts are independent."""

    @classmethod
    def of(
        cls, table: Forecasts, metrics: Sequence[Metric], n: int, seed: int, dependent: Dependent | None = None
    ) -> Resampling:
        """n draws of each kind; `dependent` says which forecasts depend on each other."""
        draws = [_rows_resampled(table, n, seed, dependent), _labels_redrawn(table, n, seed)]
        draws += [] if dependent is None else [_signs_flipped(table, n, seed, dependent)]
        values = ([_values(metrics, drawn) for drawn in tables] for tables in draws)
        columns = [dict(zip(metrics, np.array(each).T, strict=True)) for each in values]
        return cls(table, *columns, *([{}] * (3 - len(columns))))

    def null(self, result: Result) -> Null:
        """The distribution of the metric if the forecasts were calibrated; of two, the one under which p is larger."""
        draws = [each[result.metric] for each in (self.labels, self.flips) if result.metric in each]
        nulls = (Null(result, each, np.zeros((len(each), 0))) for each in draws)
        return max(nulls, key=lambda null: (null.p_value, null.sd))


@dataclass(frozen=True, eq=False)
class Dependent:
    """Forecasts that depend on each other: those of one cluster.

    >>> event = Predictions.from_probs([1, 0, 1, 0], [.9, .2, .2, .2])
    >>> several = Dependent.of(event, np.array([0, 0, 1, 1]))
    >>> several.entry.tolist(), several.happened.tolist()
    ([1, 0, 0, 0], [1, 0, 1, 0])
    """

    cluster: Ints
    """The cluster of each forecast."""
    entry: Ints
    """Its entry in the grouped table."""
    happened: Ints
    gap: Floats
    """What came true less the forecast."""

    @classmethod
    def of(cls, event: Predictions, cluster: Ints) -> Dependent:
        """The forecasts of an event whose clusters are known."""
        (ladder,) = EqualMass(1).summarise(TopLabel()(event)).ladders()
        _, entry = np.unique(np.searchsorted(_ends(ladder), event.probabilities), return_inverse=True)
        happened = event.hard_labels("grouping").astype(np.int64)
        return cls(cluster, entry.ravel(), happened, happened.astype(np.float64) - event.probabilities)


def _values(metrics: Sequence[Metric], table: Forecasts) -> list[float]:
    return [concluded(metric, table).value for metric in metrics]


def _rows_resampled(table: Forecasts, n: int, seed: int, dependent: Dependent | None) -> Iterator[Forecasts]:
    counts, happened = table.counts.astype(np.int64), np.asarray(table.targets, np.int64)
    kinds = np.concatenate([counts - happened, happened])
    total = int(kinds.sum())
    for index in range(n):
        rng = _generator(seed, 0, index)
        if dependent is None:
            drawn = rng.multinomial(total, kinds / total).reshape(2, -1)
        else:
            many = int(dependent.cluster.max()) + 1
            times = np.bincount(rng.integers(0, many, many), minlength=many)[dependent.cluster]
            kind = dependent.entry + len(counts) * dependent.happened
            drawn = np.bincount(kind, times, len(kinds)).astype(np.int64).reshape(2, -1)
        yield table.recounted(drawn.sum(axis=0), drawn[1])


def _labels_redrawn(table: Forecasts, n: int, seed: int) -> Iterator[Forecasts]:
    chances = np.clip(table.values.astype(np.float64), 0.0, 1.0)
    counts = table.counts.astype(np.int64)
    for index in range(n):
        yield table.recounted(counts, _generator(seed, 1, index).binomial(counts, chances))


def _signs_flipped(table: Forecasts, n: int, seed: int, dependent: Dependent) -> Iterator[Forecasts]:
    counts = table.counts.astype(np.int64)
    expected = table.recounted(counts, np.zeros_like(counts))
    many = int(dependent.cluster.max()) + 1
    for index in range(n):
        signs = _generator(seed, 2, index).choice([-1.0, 1.0], many)
        gaps = np.bincount(dependent.entry, signs[dependent.cluster] * dependent.gap, len(counts))
        yield dataclasses.replace(expected, targets=expected.summed + Totals.of(gaps))


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
