"""Closed windows: what is recorded of each, made by one function from its state and the windows before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np

from calibrant import checks
from calibrant.binning.ladder import Forecasts
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.recipes import ACE, ADAPTIVE_ECE, BRIER, LOG_LOSS
from calibrant.scale import State
from calibrant.specification.documents import require_keys
from calibrant.watch.bets import Betting, CellCounts
from calibrant.watch.day_bets import DayBets
from calibrant.watch.e_processes import EProcess
from calibrant.watch.row_bets import RowBets

Question = tuple[str, str]
"""What is asked: "all" forecasts (of the event or of the top label), a "class", or a "group" of rows; and its name."""
OVERALL: Question = ("all", "")
METRICS: Mapping[str, Metric] = {"adaptive_ece": ADAPTIVE_ECE, "brier": BRIER, "log_loss": LOG_LOSS}
"""What the state of a window keeps: counts in cells, from which other metrics follow, and two scores."""
BY_CLASS = "ace"
"""The metric for which counts in cells of each class are kept."""
MOST_QUESTIONS = 200
"""Classes, or groups, of which each window is recorded; each takes some kilobytes of the log."""
BETTING: Mapping[str, Betting] = {"rows": RowBets(), "windows": DayBets()}
"""By what may be taken as independent: rows, given their forecasts, or only windows, one after another."""


@final
@dataclass(frozen=True)
class WatchSettings:
    """What a watch promises, fixed before its first window.

    If outcomes happen with the probabilities of their forecasts, given all windows closed before, the chance of a false
    alarm, ever, is at most `level`. A change is looked for in the first `horizon` windows above all. The same holds
    where odds are shifted by a factor of at most exp(`tolerance`). `independent` says what may be taken as
    independent: "rows", or only "windows" where the rows of a window may move together.

    >>> WatchSettings(level=0.01).independent
    'rows'
    """

    level: float = 0.05
    horizon: int = 365
    tolerance: float = 0.0
    independent: str = "rows"

    def __post_init__(self) -> None:
        checks.number(self.level, "level", "must lie between 0 and 1", lambda level: 0 < level < 1)
        checks.whole(self.horizon, "horizon", 1)
        checks.number(self.tolerance, "tolerance", "must lie in [0, 2]", lambda tolerance: 0 <= tolerance <= 2)
        checks.word(self.independent, "independent", *BETTING)

    def process(self, independent: str) -> EProcess:
        """The e-process before the first window."""
        return EProcess(BETTING[independent], self.horizon, self.tolerance)


@final
@dataclass(frozen=True, eq=False)
class Payment:
    """What a window taught about a question, and what bets paid (logarithms), by what was taken as independent."""

    lesson: Mapping[str, Floats]
    paid: Mapping[str, Floats]

    def to_dict(self) -> dict[str, Any]:
        """Lists, ready for JSON; each number is read back to the bit."""
        return {
            name: {key: array.tolist() for key, array in getattr(self, name).items()} for name in ("lesson", "paid")
        }

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """What `to_dict` wrote."""
        require_keys(document, {"lesson": dict, "paid": dict})
        for part in document.values():
            require_keys(part, dict.fromkeys(BETTING, list))
        return cls(
            *({key: np.array(document[name][key], np.float64) for key in BETTING} for name in ("lesson", "paid"))
        )


@final
@dataclass(frozen=True, eq=False)
class ClosedWindow:
    """A window that is closed: its name, rows, outcomes and forecasts, and the payment of each question.

    >>> import calibrant as cal
    >>> state = watch_state(cal.Predictions.from_probs([1, 0, 1], [.9, .2, .6]))
    >>> monday = ClosedWindow.of("monday", state, Memories(), WatchSettings())
    >>> monday.n, monday.hits, round(monday.total, 6), list(monday.payments)
    (3, 2.0, 1.7, [('all', '')])
    """

    name: str
    n: int
    hits: float
    total: float
    payments: Mapping[Question, Payment]

    @classmethod
    def of(cls, name: str, state: State, memories: Memories, settings: WatchSettings) -> Self:
        """What is recorded of a window; the bets on it are learnt from earlier ones alone."""
        counts = cell_counts(state)
        payments = {question: memories.payment(question, table, settings) for question, table in counts.items()}
        overall = counts[OVERALL]
        return cls(name, int(overall.count.sum()), float(overall.hits.sum()), float(overall.total.sum()), payments)

    def to_dict(self) -> dict[str, Any]:
        """Numbers, text and lists, ready for JSON."""
        payments = [[*question, payment.to_dict()] for question, payment in self.payments.items()]
        return {"window": self.name, "n": self.n, "hits": self.hits, "total": self.total, "payments": payments}

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """What `to_dict` wrote."""
        require_keys(document, {"window": str, "n": int, "hits": float, "total": float, "payments": list})
        payments = {(kind, name): Payment.from_dict(each) for kind, name, each in document["payments"]}
        return cls(document["window"], document["n"], document["hits"], document["total"], payments)


@final
@dataclass(frozen=True, eq=False)
class Memories:
    """What the bets on the next window are learnt from: of each way to bet, what is remembered of each question."""

    each: Mapping[tuple[str, Question], Floats] = field(default_factory=dict)

    def after(self, window: ClosedWindow) -> Memories:
        """What is remembered after another window; of a question that it did not answer, less than before."""
        memories = dict(self.each)
        for key, betting in BETTING.items():
            known = {question for name, question in self.each if name == key}
            nothing = np.zeros_like(window.payments[OVERALL].lesson[key])
            for question in known | window.payments.keys():
                payment = window.payments.get(question)
                lesson = nothing if payment is None else payment.lesson[key]
                memories[key, question] = betting.remembered(memories.get((key, question)), lesson)
        return Memories(memories)

    def payment(self, question: Question, counts: CellCounts, settings: WatchSettings) -> Payment:
        """What a window teaches about a question, and what the bets on it pay."""
        lesson, paid = {}, {}
        for key, betting in BETTING.items():
            bets = betting.bets(self.each.get((key, question)))
            lesson[key] = betting.lesson(counts)
            paid[key] = betting.paid(bets, counts, settings.tolerance)
        return Payment(lesson, paid)


def watch_state(predictions: Predictions, by: str | None = None, *, classes: bool = False) -> State:
    """The state of a window's predictions as a watch keeps it; with `classes`, also the counts of each class.

    >>> import calibrant as cal
    >>> watch_state(cal.Predictions.from_probs([1, 0], [.9, .2])).n
    2
    """
    return State.of(predictions, {**METRICS, BY_CLASS: ACE} if classes else METRICS, by)


def cell_counts(state: State) -> dict[Question, CellCounts]:
    """The cells of each question that a state answers: of all rows, of each class and of each group.

    >>> import calibrant as cal
    >>> predictions = cal.Predictions.from_probs([1, 0, 1], [.9, .2, .6], region=["n", "s", "n"])
    >>> list(cell_counts(watch_state(predictions, by="region")))
    [('all', ''), ('group', 'n'), ('group', 's')]
    """
    counts: dict[Question, CellCounts] = {OVERALL: CellCounts.of(_cells(state, ADAPTIVE_ECE))[0]}
    if BY_CLASS in state.metrics:
        table = _cells(state, state.metrics[BY_CLASS])
        require_few(len(table.about.names), "classes")
        counts |= {("class", name): each for name, each in zip(table.about.names, CellCounts.of(table), strict=True)}
    if state.by is not None:
        require_few(len(state.groups), f"values of {state.by}")
        for name in sorted(state.groups):
            counts["group", name] = CellCounts.of(_cells(state, ADAPTIVE_ECE, name))[0]
    return counts


def require_few(count: int, what: str) -> None:
    """Refuse more classes or groups than are watched.

    >>> require_few(MOST_QUESTIONS, "classes")
    """
    if count > MOST_QUESTIONS:
        hint = "leave them out, or put them in larger groups"
        raise CalibrationInputError(what, f"must be at most {MOST_QUESTIONS} to be watched", got=count, hint=hint)


def _cells(state: State, metric: Metric, group: str | None = None) -> Forecasts:
    table = state.summary(metric, group)
    assert isinstance(table, Forecasts)  # what a state keeps of a metric of the order of forecasts
    return table
