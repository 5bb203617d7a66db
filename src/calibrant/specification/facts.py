"""Facts: what is known of a piece, declared by the piece itself; what nobody declared is unknown.

Intervals, null distributions, gates, tables, pictures and simulations ask these facts, never which piece it is, so
that a piece of your own is treated like those of calibrant. Unknown means: no bounds, both tails are extreme,
resamples lie around the value itself, and labels are redrawn and rows reweighted in the plain way. That is slower,
and right.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Never, TypeVar

from calibrant.kernels.totals import Floats

T = TypeVar("T")

SLOTS = (
    *("select", "lens", "binning", "distance", "aggregate", "across"),
    *("score", "kernel", "estimator", "statistic", "neighbours", "smoother"),
)
"""The fields of metrics, and of pieces that hold pieces, that pieces fill."""


@dataclass(frozen=True)
class Facts:
    """What is known of a piece, or of a metric that is made of pieces.

    >>> import calibrant as cal
    >>> facts = cal.MCS.facts
    >>> facts.low, facts.high, facts.sides, facts.calibrated
    (-1.0, 1.0, 2, 0.0)
    """

    slot: str | None = None
    """The field of a metric that the piece fills."""
    estimator: str | None = None
    """The estimator that the piece belongs to, where it fits no other."""
    words: str | None = None
    """How the piece is called where a result says its choices; "" goes without saying; None: by its name."""

    low: float = -math.inf
    """The least value there can be."""
    high: float = math.inf
    """The largest value there can be."""
    sides: int = 2
    """1 where only large values speak against calibration, 2 where small ones do too."""
    calibrated: float | None = math.nan
    """What it estimates under perfect calibration; None where calibration settles no value, nan where it is unknown."""
    order: float | None = None
    """The p of the L^p calibration error that it estimates (of a distance: the power of the gap that it is)."""
    interval: tuple[float, float] | None = None
    """Of a distance: the interval of frequencies from which it is the distance."""
    root: float = 1.0
    """The root that was taken of a mean."""
    tends_to: object | None = None
    """What takes its place where rows are resampled from the data: an error without bias tends to the plain one."""
    unrooted: object | None = None
    """The same metric before its root was taken."""
    lower_is_better: bool | None = None
    """Whether lower values are better; None where neither is, or it is unknown."""
    cost: float = 1.0
    """How many times more it costs than counting samples into bins; infinite where pairs of samples are compared."""
    passes: Callable[[Facts], Facts] | None = None
    """Of an aggregate or a rule across questions: what is known of the outcome, given what is known of the parts."""
    tail: tuple[Callable[[float], float], int] | None = None
    """Of a statistic of a path: the tail of its distribution under calibration, and how many extremes it looks at: of a
    path it is given 0, the lowest and the highest point."""
    multiples: tuple[int, int, int] | None = None
    """Of a score: how often it holds y, p y and p^2, if it is such a sum of forecast p and outcome y."""
    of_event: Callable[[Never, Never], tuple[int, int, int]] | None = None
    """Of a score: its exact sum over outputs and targets of one event, in two limbs, and how many were infinite."""
    lean: bool = False
    """Of a score: whether, of hard labels, it is computed without an array as large as the outputs."""
    of_truth: bool = False
    """Of a score: whether, of hard labels, it is that of the event that came true, at the probability it was given."""
    of_logs: bool = False
    """Of a score: whether, of hard labels and the softmax of logits, it follows from the view's logarithms alone."""
    of_two_classes: str | None = None
    """Of a score: what a reader should know of its value where the whole distribution is that of two classes."""
    additive: bool = False
    """Whether the value is a mean over samples of what each of them shows by itself."""
    influence: Callable[[Never], tuple[float, Floats]] | None = None
    """Of a statistic of a table: its value, and how much n times one sample more of each entry, that did not happen or
    did, would move it (m, 2)."""
    scale: tuple[Callable[[float], float], Callable[[float], float], Callable[[float], float]] | None = None
    """The scale on which the statistic is nearly normal: the way there, the way back, the slope of the way there."""
    within: Callable[[Never], tuple[Floats, Floats] | tuple[float, float]] | None = None
    """The least and the largest value where forecasts are counted in cells. Of a distance, given `Gaps` between which
    bins lie, one of each bin; of a statistic or score of a table, given that table."""
    swaps: bool = False
    """Of a statistic of a table: whether it follows from the order of outcomes alone, and two neighbours that change
    places so that the one that happened gets the higher forecast move it always up, or always down."""
    of_sums: bool = False
    """Of a statistic of a table: whether sums over all samples decide it, so that cells tell it exactly."""
    rises: str | None = None
    """Of an aggregate or a rule across questions, where it never falls as parts rise: "sum" where it follows from the
    sum of distances times sizes, "each" where sizes play no role but that empty bins are left out or count 0,
    "counted" where they do."""
    keeps_one: bool = False
    """Of a rule across questions: whether one question's value stays as it is."""

    looks_at_labels: bool = True
    """Of a lens or selection: whether labels decide which samples it takes or what it asks of them."""
    takes_all: bool = False
    """Of a selection: whether it takes every row."""
    names_classes: bool = True
    """Of a lens or selection: whether the order and names of the classes matter to it."""
    outcomes: str | None = None
    """Of a lens: "disjoint" where its coordinates are disjoint outcomes that have the outputs as their probabilities,
    whatever the label; "all" where, for classes, nothing else can happen; None where that is not so."""
    asks_event: bool = False
    """Of a lens: whether of forecasts of one event it asks that event, of every row."""
    narrow: bool = False
    """Of a lens: whether it takes one output of each row, so that its view is small however many classes there are."""
    as_given: bool = False
    """Of a lens: whether its outputs are the probabilities that were given, as they lie: its view costs nothing."""
    logs_alone: Callable[[Never], object] | None = None
    """Of a lens: the lens that leaves out its outputs, where forecasts are logits of classes and labels are hard."""
    alone: Callable[[int], object] | None = None
    """Of a lens with several questions: the lens that asks one of them."""
    coordinates: Callable[[tuple[str, ...]], tuple[str, ...]] | None = None
    """Of a lens of vectors: given the names of the classes, how its coordinates are called."""

    fixed: bool = False
    """Of a binning: whether an answer's bin is the same whatever the other answers are."""
    chooses: bool = False
    """Of a binning: whether the data choose how many bins there are."""
    cuts: str | None = None
    """Of a binning that cuts sorted samples, of many replicates at once: "ranks" where their number alone says where,
    "values" where forecasts or outcomes do; None where it takes one table at a time."""
    reads: str | None = None
    """Of a binning or score: what it keeps of the data, in a line; summaries whose lines are equal can be added."""

    def through(self, piece: object) -> Facts:
        """What is known after an aggregate or a rule across questions; nothing where that is not known of it."""
        passes = facts_of(piece).passes
        return UNKNOWN if passes is None else passes(self)


UNKNOWN = Facts()
"""Nothing is known."""


def facts_of(piece: object) -> Facts:
    """What a piece declares of itself.

    >>> import calibrant as cal
    >>> from calibrant.specification.facts import facts_of
    >>> facts_of(cal.tvd).high, facts_of(lambda bins: bins.gap).high
    (1.0, inf)
    """
    facts = getattr(piece, "facts", None)
    return facts if isinstance(facts, Facts) else UNKNOWN


def declare(facts: Facts) -> Callable[[T], T]:
    """A decorator: these facts are known of the function.

    >>> import numpy as np
    >>> @declare(Facts(low=0.0, sides=1))
    ... def overconfidence(bins):
    ...     return np.maximum(bins.gap[:, :, 0], 0.0)
    >>> facts_of(overconfidence).low
    0.0
    """

    def declared(piece: T) -> T:
        piece.facts = facts  # type: ignore[attr-defined]
        return piece

    return declared


def error(*, high: float = 1.0, order: float | None = None, cost: float = 1.0) -> Facts:
    """What is known of an estimate of an error that is 0 under calibration and never negative.

    >>> error(order=2.0).sides
    1
    """
    return Facts(low=0.0, high=high, sides=1, calibrated=0.0, order=order, lower_is_better=True, cost=cost)


def as_they_are(facts: Facts) -> Facts:
    """What is known of parts holds of their weighted mean, too.

    >>> as_they_are(Facts(high=1.0)).high
    1.0
    """
    return facts


def or_nothing(facts: Facts) -> Facts:
    """What is known of a weighted mean of parts of which some count 0.

    >>> or_nothing(Facts(low=0.5, high=1.0)).low
    0.0
    """
    return dataclasses.replace(facts, low=min(facts.low, 0.0), high=max(facts.high, 0.0))
