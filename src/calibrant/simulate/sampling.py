"""Sampling: many draws of one experiment at once, and what follows from sorting them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.checks import whole
from calibrant.door.arrays import Array
from calibrant.door.class_kinds import Classes, redrawn_labels
from calibrant.door.event_kinds import OneEvent
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import check_seed
from calibrant.kernels.totals import Floats, Ints, Totals
from calibrant.predictions import Predictions
from calibrant.simulate.calibration_curves import as_curve
from calibrant.simulate.classes import SoftmaxScores, true_rows
from calibrant.simulate.scores import Scores

Law = Scores | SoftmaxScores


@dataclass(frozen=True, eq=False)
class Samples:
    """Replicates of one experiment: forecasts (count, n) of an event, or (count, n, classes), and what came true."""

    values: Floats
    labels: Ints

    @property
    def events(self) -> bool:
        """Whether the forecasts are about one event."""
        return self.values.ndim == 2

    def __iter__(self) -> Iterator[Predictions]:
        """Each replicate as predictions; what was drawn here needs no check."""
        classes = () if self.events else _names(self.values.shape[2])
        for values, labels in zip(self.values, self.labels, strict=True):
            yield Predictions(Classes(values) if classes else OneEvent(values), labels, None, classes)

    @cached_property
    def ranked(self) -> SortedReplicates:
        """The replicates in order of forecast."""
        return SortedReplicates.of(self.values, self.labels)


@dataclass(frozen=True, eq=False)
class SortedReplicates:
    """Replicates of an event, each sorted by its forecasts, with running totals: what any binning of them needs."""

    values: Floats
    outputs: Totals
    """Summed forecasts of the first samples of each replicate: (count, n + 1)."""
    hits: Ints
    """How many of the first samples came true: (count, n + 1)."""

    @classmethod
    def of(cls, values: Floats, labels: Ints) -> SortedReplicates:
        """Sort each replicate; the outcome rides in the lowest bit, so one sort does."""
        keys = (values + 0.0).view(np.uint64) << np.uint64(1)  # -0.0 becomes 0.0
        keys |= labels.astype(np.uint64)
        keys.sort(axis=1)
        ordered = (keys >> np.uint64(1)).view(np.float64)
        units = Totals.of(ordered)
        return cls(ordered, units.cumulative(), _running((keys & np.uint64(1)).astype(np.int64)))

    @property
    def shape(self) -> tuple[int, int]:
        """Replicates, samples in each."""
        return self.count, self.n

    @property
    def count(self) -> int:
        """How many replicates there are."""
        return self.values.shape[0]

    @property
    def n(self) -> int:
        """How many samples each of them has."""
        return self.values.shape[1]

    def some(self, rows: Ints) -> SortedReplicates:
        """Some of the replicates."""
        if len(rows) == self.count:
            return self
        return SortedReplicates(self.values[rows], self.outputs[rows], self.hits[rows])

    def below(self, edges: Floats, closed: str) -> Ints:
        """How many samples of each replicate lie below each edge (at or below it, when bins are right-closed)."""
        side: Any = "right" if closed == "right" else "left"  # one search of few edges in a sorted row is fast
        places = [ordered.searchsorted(edges, side) for ordered in self.values]
        return np.array(places, np.int64).reshape(self.count, len(edges))

    def before(self, ranks: Ints) -> Ints:
        """How many samples of each replicate have a smaller forecast than the one at each rank."""
        ranks = np.broadcast_to(ranks, (self.count, ranks.shape[-1]))
        return ranks if self.ties is None else np.take_along_axis(self.ties[0], ranks, axis=1)

    @cached_property
    def ties(self) -> tuple[Ints, Ints] | None:
        """Where each sample's group of equal forecasts begins, and the next one begins; None where all differ."""
        count, n = self.shape
        new = np.ones((count, n), bool)
        new[:, 1:] = self.values[:, 1:] != self.values[:, :-1]
        if new.all():
            return None
        place = np.broadcast_to(np.arange(n), new.shape)
        begins = np.maximum.accumulate(np.where(new, place, 0), axis=1)
        ends = np.full(new.shape, n)
        ends[:, :-1] = np.where(new[:, 1:], place[:, 1:], n)
        return begins, np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]

    @cached_property
    def rates(self) -> Floats:
        """How often each sample's group of equal forecasts came true: (count, n)."""
        if self.ties is None:
            return np.diff(self.hits, axis=1).astype(np.float64)
        begins, ends = self.ties
        return (_take(self.hits, ends) - _take(self.hits, begins)) / (ends - begins)

    def targets_at(self, ranks: Ints, rows: Ints | None = None) -> Totals:
        """How many of the first samples came true, up to ranks (rows, b + 1); equal forecasts share theirs evenly.

        `rows` are the replicates that are asked; all where it is None.
        """
        if self.ties is None:
            return Totals.whole(_take(self.hits, ranks, rows))
        place = np.minimum(ranks, self.shape[1] - 1)
        begin, end = (_take(side, place, rows) for side in self.ties)
        before = _take(self.hits, begin, rows)
        group = Totals.whole(_take(self.hits, end, rows) - before)
        return Totals.whole(before) + group.share(ranks - begin, end - begin)

    def outputs_at(self, ranks: Ints) -> Totals:
        """The summed forecasts of the first samples, up to ranks (count, b + 1)."""
        return self.outputs[np.arange(self.count)[:, None], ranks]


def sampled(scores: Law, curve: Any, n: int, rng: np.random.Generator, count: int) -> Samples:
    """So many replicates of n samples: forecasts from their law, outcomes from the curve.

    >>> from calibrant.simulate import UNIFORM, power_curve
    >>> sampled(UNIFORM, power_curve(2), 5, np.random.default_rng(0), 3).values.shape
    (3, 5)
    """
    values = scores.draw(rng, (count, n))
    if isinstance(scores, SoftmaxScores):
        chances = true_rows(curve, values)
        labels = redrawn_labels(chances.reshape(count * n, -1), rng).reshape(count, n)
    else:
        labels = redrawn_labels(as_curve(curve).at(values, 1.0 - values).ravel(), rng).reshape(count, n)
    return Samples(values, labels)


def draw(scores: Law, curve: Any, n: int, seed: int = 0) -> Predictions:
    """Predictions of a model that is known: n samples.

    >>> from calibrant.simulate import UNIFORM, SoftmaxScores, Tempered, draw, power_curve
    >>> draw(UNIFORM, power_curve(2), n=100), draw(SoftmaxScores(3), Tempered(2), n=100)
    (Predictions(n=100, one event, probabilities), Predictions(n=100, 3 classes, probabilities))
    """
    whole(n, "n", 1)
    check_seed(seed)
    check_law(scores)
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    return next(iter(sampled(scores, curve, n, rng, 1)))


def check_law(scores: Any) -> None:
    """Refuse what is no law of forecasts."""
    if not isinstance(scores, Law):
        raise CalibrationInputError(
            "scores",
            "must be BetaScores, EmpiricalScores or SoftmaxScores",
            got=type(scores).__name__,
            hint="EmpiricalScores(values) draws from scores that were seen",
        )


def _running(array: Ints) -> Ints:
    """Running sums of each row, starting with 0."""
    sums = np.zeros((array.shape[0], array.shape[1] + 1), np.int64)
    np.cumsum(array, axis=1, out=sums[:, 1:])
    return sums


def _take(array: Array, places: Ints, rows: Ints | None = None) -> Array:
    """The entries of each row at its places."""
    return array[np.arange(len(array))[:, None] if rows is None else rows[:, None], places]


def _names(classes: int) -> tuple[str, ...]:
    return tuple(map(str, range(classes)))
