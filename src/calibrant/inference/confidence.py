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
from calibrant.inference.row_moves import (
    FEWEST,
    RARE,
    THINNEST,
    UNKNOWN,
    Ends,
    answers_of_a_row,
    freedom_over,
    goes_by_size,
    means,
    of_rows,
    owners_of,
    statistics,
    too_small,
    weights_across,
)
from calibrant.inference.shared_outcomes import Sharing, of_groups, of_ties, together
from calibrant.inference.skewness import student
from calibrant.kernels.totals import Ints
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.result import Interval, Result
from calibrant.specification.facts import Facts, facts_of
from calibrant.summaries import Summary
from calibrant.views import View

MOST_PARTS = 50
"""Of more questions than this only the whole has an interval: each would take milliseconds."""
FEWEST_GROUPS = 20
"""Of fewer groups, counted as if they were equally large, how far they spread is not known well enough."""
FEW_TO_CHOOSE = 200
"""Fewer rows than this choose the number of bins too freely for an interval of these bins."""
BLURRED = 0.05
"""If an error may be larger than this, a test that finds nothing has not shown that there is none."""
RULE_OF_THREE = 3.0
"""What never happened in n rows may still happen in 3 / n of them (95 %)."""
NO_FLOOR = "no interval is known to cover for this metric; that of Bootstrap may not"
SOFT = "no interval is known to cover under soft labels"


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


def largest_error(result: Result) -> float:
    """How large an error may be: the upper end of its interval, but no less than what so few rows cannot rule out.

    >>> import calibrant as cal
    >>> largest_error(cal.ECE([1, 0, 1], [1.0, 0.0, 1.0]))
    1.0
    """
    high = 1.0 if result.interval is None or np.isnan(result.interval.high) else result.interval.high
    return min(max(high, RULE_OF_THREE / max(result.n, 1)), 1.0)


def hidden_error(ece: Result) -> str:
    """What to say beside a test that finds nothing of the ECE that so few rows may hide; nothing where that is small.

    >>> import calibrant as cal
    >>> hidden_error(cal.ECE([1, 0, 1], [1.0, 0.0, 1.0]))
    '; with 3 rows the ECE may be as large as 1.0000'
    """
    most = largest_error(ece)
    return "" if most <= BLURRED else f"; with {ece.n:,} rows the ECE may be as large as {most:.4f}"


Way = Callable[[Predictions, Ints | None, float], Iterator[Ends]]
"""The ends for a metric, then for each of its questions."""


def _way(metric: Metric) -> Way | None:
    """How the interval of a metric is found; None where nothing is known to cover."""
    facts = metric.part_facts
    if isinstance(metric, OfScores) or (isinstance(metric, OfBins) and facts.additive):
        return partial(of_rows, metric, means)
    if isinstance(metric, Asking) and facts.influence is not None:
        return partial(of_rows, metric, statistics)
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
    weights = weights_across(metric, pooled, sizes)
    if coordinates != 1 or weights is None or (squared and questions > 1):
        yield UNKNOWN
        return
    labelled = facts_of(metric.lens).looks_at_labels and questions > 1
    if labelled and goes_by_size(metric, pooled, sizes):
        yield UNKNOWN
        return
    reason = _reason(metric, summary, cluster) or (too_small(view) if labelled else "")
    if reason:
        yield reason
        return
    heavy = view.weight if bins.squares is None else None
    effect = 1.0 if heavy is None else float(np.square(heavy).sum() / heavy.sum())
    sums, owner = GapSum.of(bins, weights, effect), owners_of(metric, predictions, view, cluster)
    sharing = _sharing(metric, view, summary, bins, sums, None if cluster is None else owner)
    quantile = student(level, freedom_over(view, np.arange(len(view.outputs)), owner))
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
    pooled = answers_of_a_row(view)
    if view.v > 1 or pooled > 1:
        return together(sums, bins, metric.binning, view, summary, pooled)
    if isinstance(summary, Forecasts) and isinstance(metric.binning, RankBinning):
        return of_ties(sums, bins, metric.binning, summary)
    return None


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
