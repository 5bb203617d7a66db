"""Mean scores: averages of a score over samples (Brier, log loss, accuracy and their kin)."""

from __future__ import annotations

import ast
import dataclasses
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from calibrant import kernels
from calibrant.aggregates import Across, mean_of
from calibrant.binning.contract import STREAM
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.door.arrays import Array
from calibrant.door.logs import Softmax
from calibrant.errors.asking import CLASSES, Asking
from calibrant.errors.bounding import bounded, tied, unavailable, within_of
from calibrant.errors.isotonic import logarithmic_within, quadratic_within
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Totals
from calibrant.lenses import Lens, TopLabel
from calibrant.predictions import Predictions
from calibrant.result import Result
from calibrant.selections import Selection, everything
from calibrant.specification.catalogue import find
from calibrant.specification.facts import Facts, declare, facts_of
from calibrant.specification.naming import identity, spoken
from calibrant.summaries import About, S, Sums
from calibrant.views import View

Score = Callable[[View], Array]
Within = Callable[[Ladder], tuple[float, float]]
LEEWAY = 1e-5
"""Rows of probabilities may sum to a little more than 1, and weighted scores are rounded."""


@dataclass(frozen=True, eq=False)
class Scores(Sums):
    """Summed scores, weights and squared weights of each question, exact; infinite scores are counted apart."""

    total: Totals
    size: Totals
    infinite: Totals
    squares: Totals | None = None
    """Summed squares of the weights; None where every weight was 1, so that they are the size."""
    parts: ClassVar[tuple[str, ...]] = ("infinite",)
    axes: ClassVar[Mapping[str, str]] = {"total": "v", "size": "v", "infinite": "v", "squares": "v"}

    def faults(self) -> Iterator[str]:
        """What cannot be: totals beyond what is known of the score, times the number of finite scores."""
        yield from super().faults()
        facts = facts_of(find(dict(self.about.reads).get("score")))
        finite, total = (self.size - self.infinite).value, self.total.value
        filled = finite > 0
        if total[~filled].any():
            yield "a total of no finite scores"
        means = total[filled] / finite[filled]
        if (means < facts.low - LEEWAY * abs(facts.low)).any() or (means > facts.high + LEEWAY * abs(facts.high)).any():
            yield f"scores outside of {facts.low:g} to {facts.high:g}"
        if math.isfinite(facts.high) and self.infinite.value.any():
            yield "infinite scores where none can be"


class OfScores(Asking[S]):
    """A metric that averages a score of each answer."""

    block: ClassVar[int | None] = STREAM

    @abstractmethod
    def scores(self, view: View) -> Array:
        """A score of each answer (n, v)."""


@dataclass(frozen=True, repr=False)
class MeanScore(OfScores[Scores]):
    r"""The mean over samples of a score of each answer: :math:`\frac1n \sum_i s(o_i, t_i)`.

    A score maps a `View` to one number per answer, (n, v). One infinite score makes the mean infinite.

    >>> import calibrant as cal
    >>> print(cal.MeanScore(cal.InTopK(2), cal.hit)([2, 1], [[.5, .3, .2], [.6, .3, .1]]))
    ACCURACY(lens=InTopK(k=2)) 0.5000 (n=2, truth in top 2)
    """

    lens: Lens = TopLabel()
    score: Score = dataclasses.field(default_factory=lambda: brier_score)  # type: ignore[has-type]
    select: Selection = everything
    across: Across = mean_of

    @property
    def part_facts(self) -> Facts:
        """What is known of the score."""
        return facts_of(self.score)

    @property
    def lean(self) -> bool:  # type: ignore[override]  # known of each metric
        """As the score is, where each row has one."""
        return facts_of(self.score).lean and facts_of(self.lens).asks_event

    @property
    def reading(self) -> tuple[str, str]:
        """The score."""
        return "score", identity(self.score)

    def summarised_by(self, predictions: Predictions) -> Lens:
        """The lens; of logits without its outputs, where it can leave them out and the score needs none."""
        alone, forecasts = facts_of(self.lens).logs_alone, predictions.forecasts
        of_logs = facts_of(self.score).of_logs and forecasts.logits and isinstance(forecasts.values, np.ndarray)
        wanted = alone is not None and of_logs and predictions.labels is not None and not forecasts.of_events
        return cast(Lens, alone) if wanted else self.lens

    def scores(self, view: View) -> Array:
        """The score of each answer (n, v)."""
        scores = np.asarray(self.score(view), np.float64)
        kept = scores if view.keep is None else scores[view.keep]
        if not (kept > -np.inf).all():  # nan compares false
            got = "nan" if np.isnan(kept).any() else "minus infinity"
            raise CalibrationInputError("score", "must be a number for every answer", got=got)
        return scores

    def summarise_view(self, view: View) -> Scores:
        """Summed scores of what the lens saw."""
        here = isinstance(view.outputs, np.ndarray)
        if not here and view.keep is None and view.group is None and view.weight is None:
            summary = _summed_beside(view, self.score(view))
            if summary is not None:
                return summary
        of_event = facts_of(self.score).of_event
        events = _events(view, facts_of(self.score).of_truth) if here and of_event is not None else None
        if events is not None:
            hi, lo, infinite = of_event(*events)  # type: ignore[misc, arg-type]
            counts = (Totals.whole(np.array([count])) for count in (len(view.outputs), infinite))
            return Scores(view.about, Totals(np.array([hi]), np.array([lo])), *counts)
        scores = self.scores(view)
        finite = np.isfinite(scores)
        if view.keep is None and view.group is None and view.weight is None and finite.all():
            counts = (Totals.whole(np.full(view.v, count)) for count in (len(scores), 0))
            return Scores(view.about, Totals.summed(scores), *counts)
        kept = np.ones(scores.shape, bool) if view.keep is None else view.keep
        question = np.arange(view.v) + (0 if view.group is None else view.group[:, None] * view.v)
        question = np.broadcast_to(question, scores.shape)
        weight = None if view.weight is None else np.broadcast_to(view.weight[:, None], scores.shape)

        def sums(values: Array, mask: Array) -> Totals:
            totals = Totals.of(values[mask], None if weight is None else weight[mask])
            return totals.by_code(question[mask], view.questions)

        def sizes(mask: Array) -> Totals:
            if weight is not None:
                return sums(np.ones_like(scores), mask)
            return Totals.whole(np.bincount(question[mask], minlength=view.questions))

        squares = None if weight is None else Totals.of(np.square(weight[kept])).by_code(question[kept], view.questions)
        total = sums(np.where(finite, scores, 0.0), kept & finite)
        return Scores(view.about, total, sizes(kept), sizes(kept & ~finite), squares)

    def answer(self, summary: Scores) -> Result:
        """Divide, then combine the questions."""
        sizes = summary.size.value
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.where(summary.infinite.value > 0, np.inf, summary.total.value / sizes)
        return self.combined(summary.about, values, sizes, self._known, notes=self._notes(summary.about))

    def _notes(self, about: About) -> tuple[str, ...]:
        """What the score says of two classes, where all of both was asked."""
        note, coordinates = facts_of(self.score).of_two_classes, facts_of(self.lens).coordinates
        classes = dict(about.reads).get(CLASSES)
        if note is None or coordinates is None or classes is None or about.names or about.question != str(self.lens):
            return ()
        if not _TWO_NAMES.fullmatch(classes):  # to read a thousand names takes long
            return ()
        try:
            names = ast.literal_eval(f"({classes},)")
        except (SyntaxError, ValueError, MemoryError, RecursionError):  # a file may say anything
            return ()
        return (note,) if coordinates(names) == names else ()

    def within(self, table: Forecasts) -> Result:
        """Between what the mean score lies, as the score says; and the middle. Of soft labels more would be needed."""
        ladders = list(table.ladders())
        ends = [within_of(self.score, ladder) if ladder.n else (math.nan, math.nan) for ladder in ladders]
        if None in ends or table.about.soft:
            raise unavailable(self)
        low, high = np.array(ends, np.float64).T
        with np.errstate(invalid="ignore"):
            values = np.where(low == high, low, low + (high - low) / 2)
        sizes = np.array([ladder.n for ladder in ladders], np.float64)
        return bounded(self.combined(tied(self, table).about, values, sizes, self._known), self, table, low, high)

    @property
    def _known(self) -> str:
        """The score, unless a recipe's name says it."""
        return "" if self.name != type(self).__name__ else spoken(self.score)


def _events(view: View, of_truth: bool) -> tuple[Array, Array] | None:
    """Outputs and targets of one event a row: the one question, or of hard labels what came true; None for others."""
    alike = view.keep is None and view.group is None and view.weight is None and view.logits is None
    if not (alike and view.v == 1 and view.targets.ndim == 1):
        return None
    if view.d == 1:
        return view.outputs[:, 0, 0], view.targets
    if not of_truth or view.d == 0 or (view.targets < 0).any():
        return None
    return kernels.taken(view.outputs[:, 0], view.targets), np.zeros_like(view.targets)


def _summed_beside(view: View, scores: Array) -> Scores | None:
    """Scores (n, v) that are on a device, summed there; None where the host must say what is wrong, or sum them."""
    sums = None if isinstance(scores, np.ndarray) else kernels.beside(scores).score_totals(scores)
    if sums is None:
        return None
    hi, lo, infinite = sums
    return Scores(view.about, Totals.normal(hi, lo), Totals.whole(len(scores) + 0 * infinite), Totals.whole(infinite))


def _score(high: float, *, lower_is_better: bool | None, within: Within | None = None) -> Facts:
    """What is known of a score of at least 0, of which a calibrated model may have any mean."""
    facts = Facts("score", "MeanScore", low=0.0, high=high, sides=2, calibrated=None, lower_is_better=lower_is_better)
    return dataclasses.replace(facts, within=within)


def _squares(outputs: Array, targets: Array) -> tuple[int, int, int]:
    return kernels.event_scores(outputs, targets, False)


def _logarithms(outputs: Array, targets: Array) -> tuple[int, int, int]:
    return kernels.event_scores(outputs, targets, True)


_NAME = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_TWO_NAMES = re.compile(f"{_NAME}, {_NAME}")
_TWICE = "of two classes, this is twice the Brier score of the positive class, which scikit-learn reports"
_BRIER = dataclasses.replace(_score(2.0, lower_is_better=True, within=quadratic_within), of_two_classes=_TWICE)
_LOGARITHMIC = _score(math.inf, lower_is_better=True, within=logarithmic_within)


@declare(dataclasses.replace(_BRIER, of_event=_squares, lean=True, of_logs=True))
def brier_score(view: View) -> Array:
    r"""Squared distance to the truth, summed over coordinates: :math:`\sum_j (o_j - t_j)^2`.

    For an event, :math:`(p - y)^2`; of two classes twice that, which the result notes. Each square is rounded once, to
    a multiple of 2^-52, and these are added exactly: no order of classes changes a bit. Of the softmax of logits it
    follows from the sums of its row, in floats.

    >>> import calibrant as cal
    >>> round(cal.BRIER([1, 0], [.9, .2]).value, 10), round(cal.BRIER([1], [[.1, .9]]).value, 10)
    (0.025, 0.02)
    """
    if isinstance(view.logits, Softmax) and isinstance(view.outputs, np.ndarray) and view.targets.ndim == 1:
        return view.logits.squared_errors(view.targets)
    return kernels.beside(view.outputs).brier(view.outputs, view.targets)


@declare(dataclasses.replace(_LOGARITHMIC, of_event=_logarithms, lean=True, of_truth=True, of_logs=True))
def log_score(view: View) -> Array:
    r"""Minus the logarithm of the probability given to the truth: :math:`-\sum_j t_j \ln o_j`.

    For an event, :math:`-y \ln p - (1 - y) \ln(1 - p)`. Infinite where the truth was given probability 0. Of logits it
    is :math:`\ln \sum_k e^{z_k} - z_j`, for an event :math:`\ln(1 + e^{\mp z})`: finite where the probability
    would be rounded to 0 or 1.

    >>> import calibrant as cal
    >>> round(cal.LOG_LOSS([0, 1], [[.8, .2], [.4, .6]]).value, 6)
    0.366985
    >>> cal.LOG_LOSS(cal.Predictions.from_logits([0], [[0., 800.]])).value
    800.0
    """
    if view.targets.ndim == 1:
        return 0.0 - view.logs.of_truth(view.targets)
    truth = view.targets if view.d > 1 else np.concatenate([view.targets, 1.0 - view.targets], axis=2)
    return _expected(truth, -view.logs.complete()[1])


@declare(_score(1.0, lower_is_better=False))
def hit(view: View) -> Array:
    """Whether the event came true: 1 or 0 (its share, under soft labels).

    >>> import calibrant as cal
    >>> cal.ACCURACY([0, 1], [[.8, .2], [.7, .3]]).value
    0.5
    """
    view.require_event("hit", "a scalar lens such as TopLabel()")
    return view.truth_rows[:, :, 0]


@declare(_score(1.0, lower_is_better=None))
def output(view: View) -> Array:
    """The forecast of the event itself; its mean is what the model promises.

    >>> import calibrant as cal
    >>> round(cal.MeanScore(cal.Ranked(1), cal.output)([0, 1], [[.8, .2], [.7, .3]]).value, 10)
    0.75
    """
    view.require_event("output", "a scalar lens such as TopLabel()")
    return view.outputs[:, :, 0]


@declare(_score(math.inf, lower_is_better=None))
def entropy(view: View) -> Array:
    r"""Entropy of the forecast in nats: :math:`-\sum_j o_j \ln o_j`, with 0 ln 0 = 0.

    >>> import calibrant as cal
    >>> round(cal.MeanScore(cal.Full(), cal.entropy)([0], [[.5, .5]]).value, 6)
    0.693147
    """
    outputs, logs = view.logs.complete()
    return _expected(outputs, -logs)


def _expected(shares: Array, surprises: Array) -> Array:
    """Means of surprises over shares of one; where there is no share, an infinite surprise counts 0."""
    with np.errstate(invalid="ignore"):
        return np.where(shares > 0, shares * surprises, 0.0).sum(axis=2) + 0.0
