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
from calibrant.recalibrate.fitting.scores import LARGEST, Lesson, Scores, logarithms

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
        hits = weight * self.outcomes[order]
        return scores[first], np.add.reduceat(weight, first), np.add.reduceat(hits, first)


def events(given: Lesson, scores: Array) -> Iterator[Event]:
    """The event of each class with its column of the scores, or the one event there is."""
    kept = np.flatnonzero(given.weight > LEAST_SHARE * given.weight.sum())
    columns = scores[:, None] if scores.ndim == 1 else scores
    for index, column in enumerate(columns.T):
        outcomes = given.labels == (1 if scores.ndim == 1 else index)
        yield Event(column[kept], outcomes[kept].astype(np.float64), given.weight[kept])


def gathered(learnt: Sequence[Any]) -> Any:
    """What was learnt of each class as one: numbers as an array, arrays as a tuple; of one event, as it is.

    >>> gathered([1.0]), gathered([1.0, 2.0]), len(gathered([np.zeros(2), np.zeros(3)]))
    (1.0, array([1., 2.]), 2)
    """
    if len(learnt) == 1:
        return learnt[0]
    return tuple(learnt) if isinstance(learnt[0], np.ndarray) else np.array(learnt, np.float64)


def together(endings: Sequence[Ending], classes: Sequence[Any]) -> Ending:
    """How the searches for all classes ended; the first that ended at a bound speaks for the others.

    >>> bound = Ending(False, 0.1, 3, ("slope",), "no overlap")
    >>> made = together([Ending(iterations=2), bound, bound], "abc")
    >>> made.at_bound, made.message, made.converged
    (('slope of b', 'slope of c'), 'class b: no overlap; likewise 1 more', False)
    """
    if len(endings) == 1:
        return endings[0]
    said = [f"class {name}: {ending.message}" for name, ending in zip(classes, endings, strict=True) if ending.message]
    return Ending(
        all(ending.converged for ending in endings),
        max(ending.gradient_norm for ending in endings),
        max(ending.iterations for ending in endings),
        tuple(f"{bound} of {name}" for name, ending in zip(classes, endings, strict=True) for bound in ending.at_bound),
        said[0] + (f"; likewise {len(said) - 1} more" if len(said) > 1 else "") if said else "",
    )


def mapped(given: Scores, scores: Array, curve: Callable[..., Floats], *learnt: Any) -> Floats:
    """Probabilities by the curve of each class, `curve(column, *its share of what was learnt)`, as the module says.

    >>> given = Scores(np.array([[.5, .5], [.75, .25]]), "probabilities")
    >>> mapped(given, given.values, lambda p, power: p**power, np.array([1., 2.])).round(3).tolist()
    [[0.667, 0.333], [0.923, 0.077]]
    """
    made = _curved(scores, curve, *learnt)
    return made if given.event else divided(made, given)


def logits_of(given: Scores, scores: Array, odds: Callable[..., Floats], *learnt: Any) -> Floats:
    """The same by curves of log-odds: those of an event; for classes the logarithm of what each curve says.

    >>> given = Scores(np.array([[0., 0.], [0., 800.]]), "logits")
    >>> logits_of(given, given.values, lambda z, slope: slope * z, np.array([-1., -1.])).round(3).tolist()
    [[-0.693, -0.693], [-0.693, -800.0]]
    """
    made = _curved(scores, odds, *learnt)
    if not given.event:
        for column in made.T:
            column[:] = logarithms(column)[0]
        lost = np.flatnonzero(np.exp(made.max(axis=1)) == 0)
        made[lost] = np.maximum(given[lost].log_probabilities, -LARGEST)
    return made


def _curved(scores: Array, curve: Callable[..., Floats], *learnt: Any) -> Floats:
    """What the curve of each class says of its column, or the one curve of an event."""
    if scores.ndim == 1:
        return curve(scores, *learnt)
    made = np.empty(scores.shape)
    for index, column in enumerate(np.ascontiguousarray(scores.T)):
        made[:, index] = curve(column, *(part[index] for part in learnt))
    return made


def divided(made: Floats, given: Scores) -> Floats:
    """Rows over their sums; a row of zeros is the uncalibrated row.

    >>> divided(np.array([[.5, .75], [0., 0.]]), Scores(np.array([[.5, .5], [.75, .25]]), "probabilities")).tolist()
    [[0.4, 0.6], [0.75, 0.25]]
    """
    lost = np.flatnonzero(made.sum(axis=1) == 0)
    made[lost] = given[lost].probabilities
    made /= made.sum(axis=1, keepdims=True)
    return made
