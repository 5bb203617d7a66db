"""Top-label calibration: the confidence of the predicted class, calibrated apart for each class that is predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.checks import flag, whole, word
from calibrant.door.arrays import Array
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending, likeliest
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores, log_softmax, logarithms
from calibrant.recalibrate.fitting.one_vs_all import LEAST_SHARE, Event, counted, together
from calibrant.recalibrate.histogram import even_edges, fit_histogram, histogram_curve
from calibrant.recalibrate.isotonic_calibration import broken_line, fit_isotonic
from calibrant.recalibrate.platt import fit_platt, platt_curve, platt_odds
from calibrant.recalibrate.recalibrator import Recalibrator

MOST_BINS = 1000
"""Cells that are allowed: there are as many numbers for each class."""


@dataclass(eq=False)
class TopLabelCalibration(Recalibrator):
    r"""When class k is predicted, how often is that right at this confidence? One map a predicted class.

    Rows are parted by their likeliest class k (ties go to the first). Among those that predict k the event "k is true"
    is calibrated on the confidence :math:`p_{ik}`, and the other classes share what is left as they did before:

    .. math:: q_{ik} = g_k(p_{ik}), \qquad q_{ij} = p_{ij} \frac{1 - q_{ik}}{1 - p_{ik}} \quad (j \ne k)

    (equally, where :math:`p_{ik} = 1`). `method` says what g is: "histogram" (as in `HistogramBinning` with `n_bins`
    cells of equal width), "isotonic" (`IsotonicCalibration`) or "platt" (`PlattScaling`, on the log-odds). `smooth`
    keeps the first two from 0 and 1, as it does there. A class that no fitting row predicts keeps its confidences.

    The number answers for the class that was predicted before: where it falls below another class's, `predict` gives
    that other class, as the certificate's accuracies tell. Raising it to keep the class would undo the calibration.
    Needs classes: one event has no predicted class; pass two columns.

    Attributes: `curves_`, a tuple with an array for each class: (cells,) values, (2, corners), or (slope, intercept);
    (0,) for a class that is never predicted.

    References: Gupta & Ramdas (2022).

    >>> p = [[.9, .1], [.8, .2], [.7, .3], [.3, .7], [.4, .6]]
    >>> fitted = TopLabelCalibration("probabilities", n_bins=1).fit(p, [0, 0, 1, 1, 1])
    >>> fitted.predict_proba([[.6, .4], [.1, .9]]).round(4).tolist()
    [[0.6667, 0.3333], [0.1667, 0.8333]]
    """

    input: str = "logits"
    method: str = "histogram"
    n_bins: int = 15
    classes: Sequence[Any] | None = None
    smooth: bool = True
    short: ClassVar[str] = "top_label"
    of_events: ClassVar[bool] = False
    learns: ClassVar[tuple[str, ...]] = ("curves_",)
    later: ClassVar[tuple[str, ...]] = ("smooth",)

    def _check(self) -> None:
        super()._check()
        flag(self.smooth, "smooth")
        word(self.method, "method", *_CURVES)
        whole(self.n_bins, "n_bins", 1, MOST_BINS)

    def _learn(self, lesson: Lesson) -> Ending:
        if lesson.scores.event:
            raise CalibrationInputError(
                "X",
                "must have a column a class: one event has no predicted class",
                got="1-D scores",
                hint="pass np.column_stack([1 - p, p]), or calibrate the event itself",
            )
        parts = [self._fitted(event) for event in predicted_events(lesson, self._confidence(lesson.scores))]
        curves, endings = zip(*parts, strict=True)
        self.curves_ = tuple(curves)
        absent = counted(lesson, self.smooth)
        return absent if self.method != "platt" and absent.message else together(endings, lesson.classes)

    def require_possible(self) -> None:
        if self.is_event:
            raise ValueError("an event has no predicted class")
        for curve in possible.of_each(self.curves_, "curves_", len(self.classes_)):
            if len(curve):
                self._require_curve(curve)

    def _require_curve(self, curve: Floats) -> None:
        if self.method == "isotonic":
            possible.numbers(curve, "curves_", 2, max(1, curve.shape[-1]))
            possible.require_corners(*curve)
        elif self.method == "platt":
            possible.numbers(curve, "curves_", 2)
        else:
            possible.numbers(curve, "curves_", self.n_bins, low=0.0, high=1.0)

    def _map(self, scores: ModelScores) -> Floats:
        probabilities, confidence = scores.probabilities, self._confidence(scores)
        top = likeliest(probabilities)
        calibrated = probabilities[np.arange(len(top)), top]
        for index, numbers in enumerate(self.curves_):
            chosen = top == index
            if len(numbers):
                calibrated[chosen] = _CURVES[self.method](confidence[chosen], numbers)
        return replaced(probabilities, top, calibrated)

    def _logits(self, scores: ModelScores) -> Floats | None:
        if self.method != "platt" or scores.input != "logits":
            return None
        top, odds = likeliest(scores.probabilities), self._confidence(scores)
        for index, numbers in enumerate(self.curves_):
            if len(numbers):
                odds[top == index] = platt_odds(odds[top == index], *numbers)
        return log_replaced(scores.values, top, odds)

    def _confidence(self, scores: ModelScores) -> Array:
        """What the map of a predicted class takes: its probability, or its log-odds."""
        exact = self.method == "histogram" and scores.input == "probabilities"  # edges are compared in their precision
        values = scores.values if exact else scores.log_odds if self.method == "platt" else scores.probabilities
        return values[np.arange(len(values)), likeliest(scores.probabilities)]

    def _fitted(self, event: Event) -> tuple[Floats, Ending]:
        if not len(event.weight):
            return np.zeros(0), Ending(gradient_norm=0.0)
        if self.method == "platt":
            slope, intercept, ending = fit_platt(event)
            return np.array([slope, intercept]), ending
        if self.method == "isotonic":
            return np.stack(fit_isotonic(event, smooth=self.smooth)), Ending()
        return fit_histogram(event, even_edges(self.n_bins), self.smooth), Ending()


def predicted_events(lesson: Lesson, confidence: Array) -> list[Event]:
    """For each class the rows that predict it: their confidence, whether it is true, and their weight.

    >>> from calibrant.recalibrate.fitting.lessons import as_lesson
    >>> lesson = as_lesson([[.9, .1], [.2, .8]], [0, 0], input="probabilities")
    >>> [event.outcomes.tolist() for event in predicted_events(lesson, np.array([.9, .8]))]
    [[1.0], [0.0]]
    """
    top = likeliest(lesson.scores.probabilities)
    right = (top == lesson.labels).astype(np.float64)
    kept = lesson.weight > LEAST_SHARE * lesson.weight.sum()
    chosen = [np.flatnonzero(kept & (top == index)) for index in range(lesson.width)]
    return [Event(confidence[rows], right[rows], lesson.weight[rows]) for rows in chosen]


def replaced(probabilities: Floats, top: Ints, calibrated: Floats) -> Floats:
    """Rows whose entry at `top` is another; the other entries share what is left as before, or equally.

    >>> replaced(np.array([[.5, .3, .2], [1., 0., 0.]]), np.array([0, 0]), np.array([.75, .5])).tolist()
    [[0.75, 0.15, 0.1], [0.5, 0.25, 0.25]]
    """
    rows = np.arange(len(top))
    others = probabilities.copy()
    others[rows, top] = 0.0
    others[others.sum(axis=1) == 0] = 1.0
    others[rows, top] = 0.0
    others /= others.sum(axis=1, keepdims=True)
    others *= (1.0 - calibrated)[:, None]
    others[rows, top] = calibrated
    return others


def log_replaced(logits: Array, top: Ints, odds: Floats) -> Floats:
    """The logarithms of such rows, from logits and the log-odds of the other entry.

    >>> logits = np.array([[0., -1., 8.], [0., 0., 900.]])
    >>> log_replaced(logits, np.array([2, 2]), np.array([900., 0.])).round(3).tolist()
    [[-900.313, -901.313, 0.0], [-1.386, -1.386, -0.693]]
    """
    rows = np.arange(len(top))
    others = logits.astype(np.float64)
    others -= others[rows, top][:, None]
    others[rows, top] = -np.inf
    others[np.exp(others.max(axis=1)) == 0] = 0.0  # equally, where their probabilities are 0
    others[rows, top] = -np.inf
    happened, failed = logarithms(odds)
    logs = log_softmax(others) - failed[:, None]
    logs[rows, top] = happened
    return logs


_CURVES: dict[str, Callable[[Array, Floats], Floats]] = {
    "histogram": lambda scores, values: histogram_curve(scores, values, even_edges(len(values))),
    "isotonic": lambda scores, corners: broken_line(scores, *corners),
    "platt": lambda log_odds, line: platt_curve(log_odds, *line),
}
"""What a method makes of a confidence and the numbers it has learnt."""
