"""Intervals from what each row moves: of mean scores, signed gaps and statistics with known influences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from calibrant.binning.ladder import Forecasts
from calibrant.errors.asking import Asking
from calibrant.errors.mean_score import OfScores
from calibrant.inference.skewness import skewed
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions
from calibrant.specification.facts import facts_of
from calibrant.summaries import Summary
from calibrant.views import View

FEWEST = 2
"""Where fewer rows than this had the rarer outcome, means of scores, statistics and squared gaps have no interval. Nor
have means and statistics where fewer outcomes were unlikely by their forecasts: what one more adds was not seen."""
THINNEST = 10
"""Squared gaps of bins with fewer rows on average, and classes with fewer rows, have no interval."""
UNKNOWN = "no interval is known to cover for this metric: compare it with its noise floor"
"""What is said of metrics of which no interval is known."""
RARE = f"no interval: one outcome was seen fewer than {FEWEST} times"
SURE = f"no interval: fewer than {FEWEST} outcomes were unlikely by their forecasts"
INFINITE = "no interval: the value is not finite"
SMALL = f"no interval: a class has fewer than {THINNEST} rows"

Ends = tuple[float, float] | str
"""The ends of an interval, or why there is none."""
Moves = tuple[float, Floats, Ints]
"""The value of one question, how much each of its rows moves it, and which rows those are."""


def of_rows(
    metric: Asking[Summary],
    moved: Callable[[Asking[Summary], View], Iterator[Moves]],
    predictions: Predictions,
    cluster: Ints | None,
    level: float,
) -> Iterator[Ends]:
    """Ends from what each row, or cluster of rows, contributes."""
    view = metric.view(predictions)
    moves = list(moved(metric, view))
    weight = np.ones(len(view.outputs)) if view.weight is None else view.weight
    values, sizes = np.array([value for value, *_ in moves]), np.array([weight[rows].sum() for *_, rows in moves])
    owner = owners_of(metric, predictions, view, cluster)
    owner = np.arange(len(view.outputs)) if owner is None else owner
    seen = [often_seen(view, question, _moving(influence, rows)) for question, (_, influence, rows) in enumerate(moves)]
    every = [_scaled(metric, view, move, owner, often, level) for move, often in zip(moves, seen, strict=True)]
    if len(moves) > 1:
        weights = weights_across(metric, values, sizes)
        apart = view.group is not None or view.keep is not None
        if weights is not None and apart and goes_by_size(metric, values, sizes):
            moves = [_with_share(move, values, weights, weight[move[-1]]) for move in moves]
        elif weights is not None and facts_of(metric.lens).looks_at_labels and too_small(view):
            yield too_small(view)
            yield from every
            return
        yield _combined(metric, view, moves, sum(seen, Seen()), weights, owner, level)
    yield from every


def _moving(influence: Floats, rows: Ints) -> Ints:
    """The rows that move a value; all, where none does."""
    return rows[influence != 0] if influence.any() else rows


def _with_share(move: Moves, values: Floats, weights: Floats, weight: Floats) -> Moves:
    """What rows of a question move where they raise its weight, too: its part less the whole, by their weight."""
    part, influence, rows = move
    if not len(rows):
        return move
    whole = float(weights @ np.nan_to_num(values))
    return part, influence + (part - whole) * weight / weight.sum(), rows


def too_small(view: View) -> str:
    """Why questions that labels ask of rows of their own have no interval together; empty where they have one."""
    fewest = min(len(view.rows_of(question)) for question in range(view.questions))
    return SMALL if fewest < THINNEST else ""


def _combined(
    metric: Asking[Summary],
    view: View,
    moves: list[Moves],
    seen: Seen,
    weights: Floats | None,
    owner: Ints,
    level: float,
) -> Ends:
    """The ends for what a rule across questions makes of them."""
    if not all(np.isfinite(part) for part, _, rows in moves if len(rows)):
        return INFINITE
    reason = why_no_mean(0.0, seen)
    if reason:
        return reason
    if weights is None:
        return UNKNOWN
    total, value = np.zeros(int(owner.max(initial=0)) + 1), 0.0
    for weight, (part, influence, rows) in zip(weights, moves, strict=True):
        value += weight * part if len(rows) else 0.0
        total += weight * np.bincount(owner[rows], influence, len(total))
    moved = total[np.unique(owner)]
    freedom = min(_rarely_moved(metric, moved), freedom_over(view, np.arange(len(owner)), owner))
    return skewed(value, moved, level, most=freedom)


def _scaled(metric: Asking[Summary], view: View, move: Moves, owner: Ints, seen: Seen, level: float) -> Ends:
    """The ends for one question, on the scale that its statistic declares."""
    value, influence, rows = move
    to, back, slope = metric.part_facts.scale or (float, float, lambda value: 1.0)
    if np.isfinite(value) and not np.isfinite(to(value)):
        return "no interval: the value lies at the end of its range"
    reason = why_no_mean(value, seen)
    if reason:
        return reason
    sums = np.bincount(np.unique(owner[rows], return_inverse=True)[1].ravel(), influence).astype(np.float64)
    freedom = min(_rarely_moved(metric, sums), freedom_over(view, rows, owner))
    if metric.part_facts.influence is not None:
        freedom = min(freedom, seen.rarer - 1)
    low, high = skewed(to(value), slope(value) * sums, level, most=freedom)
    return back(low), back(high)


def _rarely_moved(metric: Asking[Summary], moves: Floats) -> float:
    """The degrees of freedom that some moves leave, where a few of them are much larger than others.

    Scores have skewness instead: what is rare moves them to one side, but gaps and statistics to both.
    """
    return np.inf if isinstance(metric, OfScores) else freedom_of(np.abs(moves))


@dataclass(frozen=True)
class Seen:
    """How many answers there are, how often the event happened, and how often what its forecast called less likely.

    Of a distribution, the event is its likeliest coordinate, and any other one is less likely.

    >>> sum([Seen(5, 3, 1), Seen(5, 4, 0)], Seen()), Seen(5, 4, 0).rarer
    (Seen(n=10, happened=7, unlikely=1), 1)
    """

    n: int = 0
    happened: int = 0
    unlikely: int = 0

    def __add__(self, other: Seen) -> Seen:
        return Seen(self.n + other.n, self.happened + other.happened, self.unlikely + other.unlikely)

    @property
    def rarer(self) -> int:
        """How often the rarer outcome was seen."""
        return min(self.happened, self.n - self.happened)


def why_no_mean(value: float, seen: Seen | None) -> str:
    """Why a mean has no interval, as often as outcomes were seen (None: they are soft); empty where it has one.

    >>> why_no_mean(0.2, Seen(30, 1, 5))
    'no interval: one outcome was seen fewer than 2 times'
    >>> why_no_mean(0.2, Seen(30, 10, 1))
    'no interval: fewer than 2 outcomes were unlikely by their forecasts'
    """
    if seen is not None and (seen.n <= FEWEST or seen.rarer < FEWEST):
        return RARE
    if seen is not None and seen.unlikely < FEWEST:
        return SURE
    return "" if np.isfinite(value) else INFINITE


def often_seen(view: View, question: int, rows: Ints) -> Seen:
    """How often outcomes of a question were seen among rows."""
    truth, outputs = view.truth_of(question, rows), view.outputs[rows, question % view.v]
    likeliest = outputs.argmax(axis=1)[:, None]
    happened = np.take_along_axis(truth, likeliest, axis=1)[:, 0] > 0
    expected = outputs[:, 0] > 0.5 if view.d == 1 else np.ones(len(rows), bool)
    return Seen(len(rows), int(np.count_nonzero(happened)), int(np.count_nonzero(happened != expected)))


def means(metric: Asking[Summary], view: View) -> Iterator[Moves]:
    """Of means of scores, or of signed gaps."""
    scores = metric.scores(view) if isinstance(metric, OfScores) else None
    for question in range(view.questions):
        rows, column = view.rows_of(question), question % view.v
        if scores is None:
            outputs, truth = view.outputs[rows, column, 0].astype(np.float64), view.truth_of(question, rows)[:, 0]
            each = np.asarray(outputs - truth)
        else:
            each = np.asarray(scores[rows, column], np.float64)
        weight = np.ones(len(rows)) if view.weight is None else view.weight[rows]
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float(weight @ each / weight.sum())
            yield value, weight * (each - value) / weight.sum(), rows


def statistics(metric: Asking[Summary], view: View) -> Iterator[Moves]:
    """Of statistics of the tables, by the influence that they declare."""
    influence, table = metric.part_facts.influence, metric.summarise_view(view)
    assert influence is not None
    assert isinstance(table, Forecasts)
    for question, ladder in enumerate(table.ladders()):
        rows = view.rows_of(question)
        if not ladder.n:
            yield np.nan, np.zeros(len(rows)), rows
            continue
        weight = np.ones(len(rows)) if view.weight is None else view.weight[rows]
        value, moves = influence(ladder)  # type: ignore[arg-type]  # it gets what the statistic takes
        entry = np.searchsorted(ladder.values, view.outputs[rows, question % view.v, 0] + 0)
        happened = view.truth_of(question, rows)[:, 0].astype(np.int64)
        yield value, weight * moves[np.minimum(entry, len(moves) - 1), happened] / weight.sum(), rows


def weights_across(metric: Asking[Summary], values: Floats, sizes: Floats) -> Floats | None:
    """The weights (v,) with which a rule across questions adds up their values; None where it does not add."""
    held = np.where(sizes > 0, 0.0, np.nan)
    units = held + np.eye(len(values))
    weights = np.nan_to_num([metric.across(unit, sizes)["value"] for unit in units])
    for signs in (1.0, 1.0 - 2.0 * (np.arange(len(values)) % 2)):  # a rule may add where all have one sign
        value = metric.across(np.where(sizes > 0, signs * values, np.nan), sizes)["value"]
        if not np.isclose(value, weights @ np.nan_to_num(signs * values), rtol=1e-9, atol=1e-12):
            return None
    return weights if weights.sum() > 0 else None


def goes_by_size(metric: Asking[Summary], values: Floats, sizes: Floats) -> bool:
    """Whether a rule that adds weighs questions by their sizes."""
    before, after = (weights_across(metric, values, each) for each in (sizes, sizes * (1.0 + np.arange(len(sizes)))))
    return before is None or after is None or not np.allclose(before, after)


def freedom_over(view: View, rows: Ints, owner: Ints | None) -> float:
    """The degrees of freedom of a variance over rows or owners of unequal weight (Satterthwaite)."""
    weight = np.ones(len(rows)) if view.weight is None else view.weight[rows]
    return freedom_of(weight if owner is None else np.bincount(owner[rows], weight).astype(np.float64))


def freedom_of(weight: Floats) -> float:
    """The degrees of freedom of a variance over what has these weights.

    >>> freedom_of(np.ones(10)), freedom_of(np.array([1., 1., 0.]))
    (9.0, 1.0)
    """
    squares = np.square(weight)
    return float(squares.sum() ** 2 / max(float(np.square(squares).sum()), 1e-300)) - 1


def owners_of(metric: Asking[Summary], predictions: Predictions, view: View, cluster: Ints | None) -> Ints | None:
    """The cluster of each row of a view, answers of one row being one; None where every row is its own."""
    pooled = answers_of_a_row(view)
    if cluster is None:
        return np.repeat(np.arange(len(view.outputs) // pooled), pooled) if pooled > 1 else None
    return np.repeat(cluster[metric.selected(predictions)], pooled)


def answers_of_a_row(view: View) -> int:
    """How many rows of a view are answers of one row of the predictions, which a lens has pooled."""
    return max(1, len(view.outputs) // max(1, int(view.about.n)))
