"""Isotonic calibration: the best map that keeps the order of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.checks import flag
from calibrant.kernels.tallies import rising_corners
from calibrant.kernels.totals import Floats, Ints
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores
from calibrant.recalibrate.fitting.one_vs_all import Event, counted, events, gathered, mapped
from calibrant.recalibrate.recalibrator import Recalibrator


@dataclass(eq=False)
class IsotonicCalibration(Recalibrator):
    r"""Map the probability of an event by the best non-decreasing function; classes one against all (`one_vs_all`).

    At the k-th distinct probability the map is the isotonic regression of the outcomes,

    .. math:: g_k = \max_{i \le k} \min_{j \ge k} \frac{h_i + \dots + h_j}{w_i + \dots + w_j}

    with w_k the weight of the rows of that probability and h_k of those that came true: neighbours that fall are pooled
    (pool adjacent violators). Between the last probability of a pool and the first of the next the map is a straight
    line; below the first and above the last probability it is constant. With `interpolate=False` it is the step
    function of the references: pools meet halfway between their probabilities.

    The regression is the best of its kind under every proper score on the rows of the fit. But it is often 0 and 1 at
    the ends, which rules out what may happen in other rows. So 0 among n rows becomes 1 / (n + 2), 1 becomes
    (n + 1) / (n + 2), n their weight, yet no more, or less, than the value that follows. `smooth=False` keeps 0 and 1.

    Logits are turned into probabilities first: those that float64 cannot tell apart are one. One outcome, one row and
    equal scores give constants. A class without rows is told in a warning. Cost: one sort for each class.

    Attributes: `thresholds_` and `values_`, the map's corners: arrays for an event, tuples of arrays for classes.

    References: Zadrozny & Elkan (2002); Barlow, Bartholomew, Bremner & Brunk (1972).

    >>> fitted = IsotonicCalibration("probabilities", smooth=False).fit([.1, .3, .6, .8], [0, 1, 0, 1])
    >>> fitted.thresholds_.tolist(), fitted.values_.tolist(), fitted.predict_proba([.2, .5, .7]).round(6).tolist()
    ([0.1, 0.3, 0.6, 0.8], [0.0, 0.5, 0.5, 1.0], [0.25, 0.5, 0.75])
    >>> IsotonicCalibration("probabilities").fit([.1, .3, .6, .8], [0, 1, 0, 1]).values_.round(3).tolist()
    [0.333, 0.5, 0.5, 0.667]
    """

    input: str = "logits"
    classes: Sequence[Any] | None = None
    interpolate: bool = True
    smooth: bool = True
    short: ClassVar[str] = "isotonic"
    learns: ClassVar[tuple[str, ...]] = ("thresholds_", "values_")
    later: ClassVar[tuple[str, ...]] = ("interpolate", "smooth")

    def _check(self) -> None:
        super()._check()
        flag(self.interpolate, "interpolate")
        flag(self.smooth, "smooth")

    def _learn(self, lesson: Lesson) -> Ending:
        curves = [
            fit_isotonic(event, interpolate=self.interpolate, smooth=self.smooth)
            for event in events(lesson, lesson.scores.probabilities)
        ]
        thresholds, values = zip(*curves, strict=True)
        self.thresholds_, self.values_ = gathered(thresholds), gathered(values)
        return counted(lesson, self.smooth)

    def require_possible(self) -> None:
        width = 0 if self.is_event else len(self.classes_)
        thresholds, values = (possible.of_each(getattr(self, name), name, width) for name in self.learns)
        for corners in zip(thresholds, values, strict=True):
            possible.require_corners(*corners)

    def _map(self, scores: ModelScores) -> Floats:
        return mapped(scores, scores.probabilities, broken_line, self.thresholds_, self.values_)


def fit_isotonic(event: Event, *, interpolate: bool = True, smooth: bool = True) -> tuple[Floats, Floats]:
    """The corners of the map: first and last score of each pool, or twice the middle between pools; and its rate.

    >>> event = Event(np.array([.1, .3, .6]), np.array([1., 0., 1.]), np.array([1., 3., 1.]))
    >>> [part.tolist() for part in fit_isotonic(event, smooth=False)]
    [[0.1, 0.3, 0.6], [0.25, 0.25, 1.0]]
    >>> [part.round(2).tolist() for part in fit_isotonic(event, interpolate=False)]
    [[0.1, 0.45, 0.45, 0.6], [0.25, 0.25, 0.67, 0.67]]
    """
    scores, weight, hits = event.distinct()

    def between(corners: Ints) -> tuple[Floats, Floats]:
        return np.add.reduceat(weight, corners[:-1]), np.add.reduceat(hits, corners[:-1])

    corners = rising_corners(len(scores), between)
    sizes, totals = between(corners)
    rates = np.maximum.accumulate(np.minimum(totals / sizes, 1.0))  # fractional weights round
    if smooth:
        _keep_possible(rates, sizes)
    ends = np.stack([corners[:-1], corners[1:] - 1], axis=1)
    if not interpolate:
        low, high = scores[ends[:-1, 1]], scores[ends[1:, 0]]
        middle = low + (high - low) / 2
        meeting = np.where(middle < high, middle, low)
        return np.concatenate([scores[:1], np.repeat(meeting, 2), scores[-1:]]), np.repeat(rates, 2)
    single = ends[:, 0] == ends[:, 1]
    kept = np.stack([np.ones_like(single), ~single], axis=1)
    return scores[ends[kept]], np.repeat(rates, kept.sum(axis=1))


def _keep_possible(rates: Floats, sizes: Floats) -> None:
    """Raise rates of 0 and lower those of 1, in their place, as far as the order of all rates allows."""
    never, always = rates == 0, rates == 1
    rates[never] = min(1 / (sizes[never].sum() + 2), rates[~never].min(initial=1.0))
    rates[always] = max(1 - 1 / (sizes[always].sum() + 2), rates[~always].max(initial=0.0))


def broken_line(scores: Floats, thresholds: Floats, values: Floats) -> Floats:
    """Straight lines between corners, constant outside of them.

    >>> broken_line(np.array([0., .25, .5, 1.]), np.array([.2, .3]), np.array([.5, 1.])).round(6).tolist()
    [0.5, 0.75, 1.0, 1.0]
    """
    if len(thresholds) == 1:
        return np.full(len(scores), values[0])
    inside = np.clip(scores, thresholds[0], thresholds[-1])
    right = np.maximum(np.searchsorted(thresholds, inside), 1)
    low, high = thresholds[right - 1], thresholds[right]
    share = np.divide(inside - low, high - low, out=np.zeros_like(inside), where=high > low)
    left, level = values[right - 1], values[right]
    return np.where(left == level, level, (1.0 - share) * left + share * level)  # level lines are so to the bit
