"""Confidence: the interval that covers for a metric, as its pieces declare it, or the reason why there is none."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant.binning.contract import RankBinning, bins_of
from calibrant.binning.ladder import Forecasts
from calibrant.bins import Bins
from calibrant.errors.asking import Asking
from calibrant.errors.mean_score import OfScores
from calibrant.errors.of_bins import OfBins
from calibrant.inference.draws import check_level, check_seed, clusters
from calibrant.inference.gap_sums import GapSum
from calibrant.inference.shared_outcomes import Sharing, of_groups, of_ties
from calibrant.inference.skewness import skewed, student
from calibrant.kernels.totals import Floats, Ints
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.result import Interval, Result
from calibrant.specification.facts import Facts, facts_of
from calibrant.summaries import Summary
from calibrant.views import View

FEWEST = 2
"""Where fewer rows than this had the rarer outcome, means of scores, statistics and squared gaps have no interval. Nor
have means and statistics where fewer outcomes were unlikely by their forecasts: what one more adds was not seen."""
THINNEST = 10
"""Squared gaps of bins with fewer rows on average have no interval."""
MOST_PARTS = 50
"""Of more questions than this only the whole has an interval: each would take milliseconds."""
FEWEST_GROUPS = 20
"""Of fewer groups, counted as if they were equally large, how far they spread is not known well enough."""
FEW_TO_CHOOSE = 200
"""Fewer rows than this choose the number of bins too freely for an interval of these bins."""
UNKNOWN = "no interval is known to cover for this metric: compare it with its noise floor"
"""What is said of all other metrics, and of those for which calibration sets no value:"""
NO_FLOOR = "no interval is known to cover for this metric; that of Bootstrap may not"
RARE = f"no interval: one outcome was seen fewer than {FEWEST} times"
SURE = f"no interval: fewer than {FEWEST} outcomes were unlikely by their forecasts"
SOFT = "no interval is known to cover under soft labels"
INFINITE = "no interval: the value is not finite"
SMALL = f"no interval: a class has fewer than {THINNEST} rows"


@dataclass(frozen=True)
class Confidence:
    """The interval that covers for a metric, or none: called with the metric, its predictions and its result.

    Binned errors of gaps or squared gaps: from the binomial distribution of each bin's outcomes (`gap_sums`). Mean
    scores, signed gaps and statistics with known influences: Student's t with a correction for skewness (Hall 1992);
    of gaps and statistics with fewer degrees of freedom where a few rows move them.
    The target is the metric's own limit, with these bins, as rows grow in number. Chance alone raises a calibration
    error, so that its limit may lie far below its value; the interval always reaches to the value. Where nothing
    covers, the result has no interval, and a note says why. `groups` names a column whose rows may depend on each
    other; the labels of one row always may. Nothing is drawn at random: `seed` is there for methods that do.

    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> result = cal.ECE(rng.random(500) < p**1.5, p, interval=cal.Confidence())
    >>> print(result.interval, "of", result.interval.target)
    [0.0514, 0.1323] at 90% of the metric's own limit with these bins
    """

    level: float = 0.9
    seed: int = 0
    groups: str | None = None

    def __post_init__(self) -> None:
        check_level(self.level)
        check_seed(self.seed)

    def __call__(self, metric: Metric, predictions: Predictions, result: Result) -> Result:
        """The result with its interval, and with those of its parts, or with the reason why there is none."""
        cluster = clusters(predictions, self.groups)
        if cluster is None and predictions.n_classes and predictions.forecasts.of_events:
            cluster = np.arange(len(predictions))
        way = _way(metric)
        if way is None or not result.n or predictions.soft is not None:
            unknown = NO_FLOOR if metric.facts.calibrated is None else UNKNOWN
            reason = unknown if predictions.soft is None else SOFT
            return dataclasses.replace(result, notes=(*result.notes, reason))
        values = (result.value, *result.values)
        every = zip(values, way(predictions, cluster, self.level), strict=False)  # a single question is the metric
        ends = [
            self._reaching(value, pair, metric.part_facts if place else metric.facts)
            for place, (value, pair) in enumerate(every)
        ]
        reasons = [pair for pair in ends[:1] if isinstance(pair, str)]
        if reasons:
            return dataclasses.replace(result, notes=(*result.notes, *reasons))
        intervals = tuple(self._interval(pair, target_of(metric)) for pair in ends)
        parts = intervals[1:] if len(intervals) == 1 + len(result.values) else ()
        return dataclasses.replace(result, interval=intervals[0], intervals=parts)

    def _reaching(self, value: float, pair: Ends, known: Facts) -> Ends:
        if isinstance(pair, str):
            return pair
        return max(min(pair[0], value), known.low), min(max(pair[1], value), known.high)

    def _interval(self, pair: Ends, target: str) -> Interval:
        low, high = (np.nan, np.nan) if isinstance(pair, str) else pair
        return Interval(float(low), float(high), self.level, "confidence", "closed form", 0, target)


def target_of(metric: Metric) -> str:
    """What intervals of a metric are intervals of.

    >>> import calibrant as cal
    >>> target_of(cal.BRIER)
    "the metric's own limit"
    """
    return f"the metric's own limit{' with these bins' if isinstance(metric, OfBins) else ''}"


Ends = tuple[float, float] | str
"""The ends of an interval, or why there is none."""
Way = Callable[[Predictions, Ints | None, float], Iterator[Ends]]
"""The ends for a metric, then for each of its questions."""


def _way(metric: Metric) -> Way | None:
    """How the interval of a metric is found; None where nothing is known to cover."""
    facts = metric.part_facts
    if isinstance(metric, OfScores) or (isinstance(metric, OfBins) and facts.additive):
        return partial(_of_rows, metric, _mean)
    if isinstance(metric, Asking) and facts.influence is not None:
        return partial(_of_rows, metric, _statistic)
    if isinstance(metric, OfBins) and metric.sums_suffice and facts.order in (1.0, 2.0) and facts.interval is None:
        return partial(_of_bins, metric)
    return None


def _of_bins(metric: OfBins, predictions: Predictions, cluster: Ints | None, level: float) -> Iterator[Ends]:
    """Ends from the distribution of the bins' outcomes."""
    view = metric.view(predictions)
    summary = metric.summarise_view(view)
    bins = bins_of(metric.binning, summary)
    questions, _, coordinates = bins.shape
    squared = metric.part_facts.order == 2.0
    pooled, sizes = metric.pooled(bins), bins.counts.sum(axis=1)
    weights = _weights(metric, pooled, sizes)
    if coordinates != 1 or weights is None or (squared and questions > 1):
        yield UNKNOWN
        return
    labelled = facts_of(metric.lens).looks_at_labels and questions > 1
    if labelled and _goes_by_size(metric, pooled, sizes):
        yield UNKNOWN
        return
    reason = _reason(metric, summary, cluster) or (_small(view) if labelled else "")
    if reason:
        yield reason
        return
    heavy = view.weight if bins.squares is None else None
    effect = 1.0 if heavy is None else float(np.square(heavy).sum() / heavy.sum())
    sums, owner = GapSum.of(bins, weights, effect), _owners(metric, predictions, view, cluster)
    sharing = _sharing(metric, view, summary, bins, sums, owner)
    quantile = student(level, _freedom(view, np.arange(len(view.outputs)), owner))
    yield _ends(sums, sharing, 0, squared, quantile)
    firsts = np.cumsum(np.count_nonzero(bins.counts, axis=1)) - np.count_nonzero(bins.counts, axis=1)
    for question, first in enumerate(firsts.tolist() if 1 < questions <= MOST_PARTS else ()):
        part = GapSum.of(bins.question(question), np.ones(1), effect)
        yield _ends(part, sharing, first, squared, quantile)


def _sharing(
    metric: OfBins, view: View, summary: Summary, bins: Bins, sums: GapSum, owner: Ints | None
) -> Sharing | None:
    """How bins depend on each other; None where they do not."""
    if owner is not None:
        return of_groups(sums, bins, metric.binning, view, summary, owner)
    if isinstance(summary, Forecasts) and isinstance(metric.binning, RankBinning):
        return of_ties(sums, bins, metric.binning, summary)
    return None


def _freedom(view: View, rows: Ints, owner: Ints | None) -> float:
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


def _owners(metric: Asking[Summary], predictions: Predictions, view: View, cluster: Ints | None) -> Ints | None:
    """The cluster of each row of a view; None where every row is its own."""
    if cluster is None:
        return None
    return np.repeat(cluster[metric.selected(predictions)], len(view.outputs) // max(1, int(view.about.n)))


def _reason(metric: OfBins, summary: Summary, cluster: Ints | None) -> str:
    """Why the distribution of outcomes in bins is not known; empty where it is."""
    if cluster is not None and _effective(cluster) < FEWEST_GROUPS:
        return f"no interval: fewer than {FEWEST_GROUPS} groups of about equal size"
    if facts_of(metric.binning).chooses and summary.about.n < FEW_TO_CHOOSE:
        return f"no interval: fewer than {FEW_TO_CHOOSE} rows choose the number of bins"
    return ""


def _effective(cluster: Ints) -> float:
    """The number of groups, fewer where some are much larger than others."""
    sizes = np.bincount(cluster).astype(np.float64)
    return float(sizes.sum() ** 2 / np.square(sizes).sum())


def _ends(sums: GapSum, sharing: Sharing | None, first: int, squared: bool, quantile: float) -> Ends:
    """The ends for the bins of a question, or of all, that begin with the first one."""
    if sums.n < FEWEST:
        return f"no interval of fewer than {FEWEST} rows"
    if squared and sums.n < THINNEST * len(sums.size):
        return f"no interval: bins have fewer than {THINNEST} rows each"
    if squared and round(sums.rarer) < FEWEST:
        return RARE
    if sharing is not None:
        sums = sharing.applied(sums, first)
    return sums.squared_interval(quantile) if squared else sums.interval(quantile)


Moves = tuple[float, Floats, Ints]
"""The value of one question, how much each of its rows moves it, and which rows those are."""


def _of_rows(
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
    owner = _owners(metric, predictions, view, cluster)
    owner = np.arange(len(view.outputs)) if owner is None else owner
    seen = [often_seen(view, question, _moving(influence, rows)) for question, (_, influence, rows) in enumerate(moves)]
    every = [_scaled(metric, view, move, owner, often, level) for move, often in zip(moves, seen, strict=True)]
    if len(moves) > 1:
        weights = _weights(metric, values, sizes)
        apart = view.group is not None or view.keep is not None
        if weights is not None and apart and _goes_by_size(metric, values, sizes):
            moves = [_with_share(move, values, weights, weight[move[-1]]) for move in moves]
        elif weights is not None and facts_of(metric.lens).looks_at_labels and _small(view):
            yield _small(view)
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


def _small(view: View) -> str:
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
    freedom = min(_rarely_moved(metric, moved), _freedom(view, np.arange(len(owner)), owner))
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
    freedom = min(_rarely_moved(metric, sums), _freedom(view, rows, owner))
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


def _mean(metric: Asking[Summary], view: View) -> Iterator[Moves]:
    """Of means of scores, or of signed gaps."""
    scores = metric.scores(view) if isinstance(metric, OfScores) else None
    for question in range(view.questions):
        rows, column = view.rows_of(question), question % view.v
        if scores is None:
            each = view.outputs[rows, column, 0].astype(np.float64) - view.truth_of(question, rows)[:, 0]
        else:
            each = np.asarray(scores[rows, column], np.float64)
        weight = np.ones(len(rows)) if view.weight is None else view.weight[rows]
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float(weight @ each / weight.sum())
            yield value, weight * (each - value) / weight.sum(), rows


def _statistic(metric: Asking[Summary], view: View) -> Iterator[Moves]:
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


def _weights(metric: Asking[Summary], values: Floats, sizes: Floats) -> Floats | None:
    """The weights (v,) with which a rule across questions adds up their values; None where it does not add."""
    held = np.where(sizes > 0, 0.0, np.nan)
    units = held + np.eye(len(values))
    weights = np.nan_to_num([metric.across(unit, sizes)["value"] for unit in units])
    for signs in (1.0, 1.0 - 2.0 * (np.arange(len(values)) % 2)):  # a rule may add where all have one sign
        value = metric.across(np.where(sizes > 0, signs * values, np.nan), sizes)["value"]
        if not np.isclose(value, weights @ np.nan_to_num(signs * values), rtol=1e-9, atol=1e-12):
            return None
    return weights if weights.sum() > 0 else None


def _goes_by_size(metric: Asking[Summary], values: Floats, sizes: Floats) -> bool:
    """Whether a rule that adds weighs questions by their sizes."""
    before, after = (_weights(metric, values, each) for each in (sizes, sizes * (1.0 + np.arange(len(sizes)))))
    return before is None or after is None or not np.allclose(before, after)
