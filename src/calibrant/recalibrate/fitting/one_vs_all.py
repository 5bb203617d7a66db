r"""One against all: how a method that calibrates an event calibrates K classes.

Class k asks the event "the class is k". Each event is calibrated on its own, and what the K curves
:math:`g_k` say is divided by its sum:

.. math:: q_k = \frac{g_k(s_k)}{\sum_j g_j(s_j)}

Where all of them say 0, the row stays uncalibrated (over its own sum, which float32 may have left off 1). Two columns
are two classes: two curves are learnt, though they ask about one event. Scores of one event (1-D) have one curve, and
nothing is divided. The likeliest class may change. Rows of weight 0 are as if they were not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import LARGEST, Lesson, ModelScores, logarithms

LEAST_SHARE = 1e-100
"""Rows of no more than this share of the whole weight count as rows of weight 0."""


@dataclass(frozen=True, eq=False)
class Event:
    """One event: a score per row, whether it came true (0 or 1), and the row's weight, above 0.

    >>> event = Event(np.array([.5, .2, .5]), np.array([1., 0., 0.]), np.ones(3))
    >>> event.total, event.happened
    (3.0, 1.0)
    """

    scores: Array
    outcomes: Floats
    weight: Floats

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weight.sum())

    @property
    def happened(self) -> float:
        """The weight of the rows in which it came true."""
        return float(self.weight @ self.outcomes)

    @property
    def one_sided(self) -> bool:
        """Whether it always came true, or never."""
        return bool(self.outcomes.min() == self.outcomes.max())

    def distinct(self) -> tuple[Floats, Floats, Floats]:
        """The distinct scores in rising order, the weight of each, and how much of it came true.

        >>> [part.tolist() for part in Event(np.array([.5, .2, .5]), np.array([1., 0., 0.]), np.ones(3)).distinct()]
        [[0.2, 0.5], [1.0, 2.0], [0.0, 1.0]]
        """
        order = np.argsort(self.scores)
        scores, weight = self.scores[order], self.weight[order]
        first = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
        return scores[first], np.add.reduceat(weight, first), np.add.reduceat(weight * self.outcomes[order], first)


def events(lesson: Lesson, scores: Array) -> Iterator[Event]:
    """The event of each class with its column of the scores, or the one event there is."""
    kept = np.flatnonzero(lesson.weight > LEAST_SHARE * lesson.weight.sum())
    for index, column in enumerate((scores[:, None] if scores.ndim == 1 else scores).T):
        outcomes = lesson.labels == (1 if scores.ndim == 1 else index)
        yield Event(column[kept], outcomes[kept].astype(np.float64), lesson.weight[kept])


def absent(lesson: Lesson) -> str:
    """The names of classes without rows, five of them at most; empty where there is none.

    >>> from calibrant.recalibrate.fitting.lessons import as_lesson
    >>> absent(as_lesson([[.2, .3, .5]], [1], input="probabilities", classes=["cat", "dog", "owl"]))
    'cat, owl'
    """
    without = np.flatnonzero(np.bincount(lesson.labels, lesson.weight, lesson.width) == 0)
    names = ", ".join(str(lesson.classes[index]) for index in without[:5])
    return f"{names} and {len(without) - 5} more" if len(without) > 5 else names


def counted(lesson: Lesson, smooth: bool = True, iterations: int = 0) -> Ending:
    """How counting ended: not well where a class has no rows, whose probability is then no more than a guess.

    >>> from calibrant.recalibrate.fitting.lessons import as_lesson
    >>> counted(as_lesson([.2, .4], [0, 0], input="probabilities")).message
    'there are no rows of class 1: its probability comes from smoothing alone'
    """
    missing = absent(lesson)
    source = "comes from smoothing alone" if smooth else "is 0; smooth=True keeps it above"
    message = f"there are no rows of class {missing}: its probability {source}" if missing else ""
    return Ending(not missing, iterations=iterations, message=message)


def gathered(learnt: Sequence[Any]) -> Any:
    """What was learnt of each class as one: numbers as an array, arrays as a tuple; of one event, as it is.

    >>> gathered([1.0]), gathered([1.0, 2.0]), len(gathered([np.zeros(2), np.zeros(3)]))
    (1.0, array([1., 2.]), 2)
    """
    if len(learnt) == 1:
        return learnt[0]
    return tuple(learnt) if isinstance(learnt[0], np.ndarray) else np.array(learnt, np.float64)


def together(endings: Sequence[Ending], classes: Sequence[Any], noun: str = "class") -> Ending:
    """How the searches for all classes or labels ended; the first that ended at a bound speaks for the others.

    >>> bound = Ending(False, 0.1, 3, ("slope",), "no overlap")
    >>> ending = together([Ending(iterations=2), bound, bound], "abc")
    >>> ending.at_bound, ending.message, ending.converged
    (('slope of b', 'slope of c'), 'class b: no overlap; likewise 1 more', False)
    """
    if len(endings) < len(classes):  # one event has two classes
        return endings[0]
    pairs = list(zip(classes, endings, strict=True))
    messages = [f"{noun} {name}: {ending.message}" for name, ending in pairs if ending.message]
    return Ending(
        all(ending.converged for ending in endings),
        max(ending.gradient_norm for ending in endings),
        max(ending.iterations for ending in endings),
        tuple(f"{bound} of {name}" for name, ending in pairs for bound in ending.at_bound),
        messages[0] + (f"; likewise {len(messages) - 1} more" if len(messages) > 1 else "") if messages else "",
    )


def mapped(scores: ModelScores, values: Array, curve: Callable[..., Floats], *learnt: Any) -> Floats:
    """Probabilities by the curve of each class, `curve(column, *its share of what was learnt)`, as the module says.

    >>> scores = ModelScores(np.array([[.5, .5], [.75, .25]]), "probabilities")
    >>> mapped(scores, scores.values, lambda p, power: p**power, np.array([1., 2.])).round(3).tolist()
    [[0.667, 0.333], [0.923, 0.077]]
    """
    rates = _curved(values, curve, *learnt)
    return rates if scores.event else divided(rates, scores)


def logits_of(scores: ModelScores, values: Array, odds: Callable[..., Floats], *learnt: Any) -> Floats:
    """The same by curves of log-odds: those of an event; for classes the logarithm of what each curve says.

    >>> scores = ModelScores(np.array([[0., 0.], [0., 800.]]), "logits")
    >>> logits_of(scores, scores.values, lambda z, slope: slope * z, np.array([-1., -1.])).round(3).tolist()
    [[-0.693, -0.693], [-0.693, -800.0]]
    """
    logits = _curved(values, odds, *learnt)
    if not scores.event:
        for column in logits.T:
            column[:] = logarithms(column)[0]
        lost = np.flatnonzero(np.exp(logits.max(axis=1)) == 0)
        logits[lost] = np.maximum(scores[lost].log_probabilities, -LARGEST)
    return logits


def _curved(values: Array, curve: Callable[..., Floats], *learnt: Any) -> Floats:
    """What the curve of each class says of its column, or the one curve of an event."""
    if values.ndim == 1:
        return curve(values, *learnt)
    curved = np.empty(values.shape)
    for index, column in enumerate(np.ascontiguousarray(values.T)):
        curved[:, index] = curve(column, *(part[index] for part in learnt))
    return curved


def divided(rates: Floats, scores: ModelScores) -> Floats:
    """Rows over their sums; a row of zeros is the uncalibrated row.

    >>> scores = ModelScores(np.array([[.5, .5], [.75, .25]]), "probabilities")
    >>> divided(np.array([[.5, .75], [0., 0.]]), scores).tolist()
    [[0.4, 0.6], [0.75, 0.25]]
    """
    lost = np.flatnonzero(rates.sum(axis=1) == 0)
    rates[lost] = scores[lost].probabilities
    rates /= rates.sum(axis=1, keepdims=True)
    return rates
