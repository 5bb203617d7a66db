"""The subject of a page: what is computed once of a set of predictions, and how much of it can be afforded."""

from __future__ import annotations

import dataclasses
import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from calibrant.binning.fixed import EqualWidth
from calibrant.errors.binned import BinnedError
from calibrant.errors.mean_score import MeanScore
from calibrant.errors.of_bins import OfBins
from calibrant.exceptions import CalibrationInputError, CalibrationWarning
from calibrant.inference.confidence import Confidence
from calibrant.inference.consistency import Null, consistency
from calibrant.inference.draws import ROW, clusters
from calibrant.inference.grouped import BLOCK, MOST_ROWS, Dependent, Resampling, by_blocks, concluded
from calibrant.inference.omnibus import CalibrationTest, calibration_test
from calibrant.inference.row_moves import Seen, freedom_of, often_seen, why_no_mean
from calibrant.inference.skewness import skewed
from calibrant.kernels.caching import cached_property
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.recalibrate.choice import LEVEL, UNCHANGED, Choice, choose
from calibrant.recalibrate.methods import usual
from calibrant.recipes import (
    ADAPTIVE_ECE,
    ECCE_MAD,
    ECE,
    ECE_DEBIASED,
    ECE_SWEEP,
    INTERCEPT,
    MCE,
    MCS,
    SLOPE,
    SMECE,
)
from calibrant.report.question import Question
from calibrant.result import Interval, Result
from calibrant.specification.facts import facts_of

T = TypeVar("T")

LEAST, MOST = 40, 200
"""Fewer resamples tell nothing, more are not needed."""
MANY = 100
"""Resamples of grouped forecasts, whatever the number of rows."""
SETTINGS = (5, 10, 15, 20, 30, 50)
"""Numbers of bins at which sensitivity is looked at."""
_EVENT, _CLASSES, _REPAIR = 2e6, 2e6, 1e6
"""Forecasts that may be gone through: rows times resamples of one event; rows times classes that questions about all
classes look at, and that recalibration is tried on."""
TESTED = 999
"""Redraws of the calibration test; fewer of many forecasts."""
_TESTED_ROWS, _REDRAWN, _FEWEST = 200_000, 4e7, 199
"""Forecasts that are tested, and forecasts times redraws, as long as there are so many redraws."""
_PASSES, _TOGETHER = 4e6, 2e8
"""Rows times classes times resamples, of questions about all classes; and of very many labels that are drawn by row."""


@dataclass(frozen=True, eq=False)
class Subject(Question):
    """Predictions that a page is about: the event of the main question, resamples that fit their size, results.

    >>> import calibrant as cal
    >>> subject = Subject(cal.Predictions.from_probs([0, 1, 1], [[.9, .1], [.2, .8], [.6, .4]]), "model")
    >>> len(subject.event), subject.event.forecasts.words, subject.resamples
    (3, 'the top answer', 200)
    """

    @property
    def is_large(self) -> bool:
        """Whether forecasts are grouped to be resampled."""
        return len(self.event) > MOST_ROWS and self.event.weight is None and self.event.soft is None

    @property
    def width(self) -> int:
        """Forecasts a row."""
        return max(1, self.predictions.values.size // max(1, len(self.predictions)))

    @property
    def resamples(self) -> int:
        """Resamples of the main event: fewer for more rows."""
        if self.is_large:
            return MANY if self.column is None else int(np.clip(_TOGETHER / len(self.event), LEAST, MANY))
        return int(np.clip(_EVENT / len(self.event), LEAST, MOST))

    @property
    def smooth_resamples(self) -> int:
        """Resamples of the smooth error."""
        return max(LEAST, int(self.resamples / SMECE.facts.cost))

    @cached_property
    def class_rows(self) -> Predictions:
        """The rows that questions about all classes look at: all, or a random part that can be afforded."""
        return self._some(max(1000, int(_CLASSES / self.width)), stage=10)

    @property
    def class_resamples(self) -> int:
        """Resamples of questions about all classes."""
        return int(np.clip(_PASSES / (len(self.class_rows) * self.width), LEAST, MOST))

    @cached_property
    def resampling(self) -> Resampling:
        """The metrics of a large event under resampled rows and redrawn labels."""
        assert self.table is not None
        binned = [BinnedError(binning=EqualWidth(setting)) for setting in SETTINGS]
        cheap = [ECE, ADAPTIVE_ECE, ECE_SWEEP, ECE_DEBIASED, MCE, MCS, ECCE_MAD, *binned]
        dependent = None if self.cluster is None else Dependent.of(self.event, self.cluster)
        many, few = (
            Resampling.of(self.table, list(map(self.asked, metrics)), n, self.seed, dependent)
            for metrics, n in ((cheap, self.resamples), ([SMECE], self.smooth_resamples))
        )
        return Resampling(
            self.table, {**many.rows, **few.rows}, {**many.labels, **few.labels}, {**many.flips, **few.flips}
        )

    @cached_property
    def _known(self) -> dict[tuple[Metric, bool], Result | None]:
        return {}

    def measured(self, metric: Metric, *, about_event: bool) -> Result | None:
        """A metric with interval and noise floor, as far as these data allow them; None where it is not defined.

        Where labels were redrawn, `redraws` among the details says how often.
        """
        if (metric, about_event) not in self._known:
            self._known[metric, about_event] = self._measured(metric, about_event)
        return self._known[metric, about_event]

    def _measured(self, metric: Metric, about_event: bool) -> Result | None:
        rows, asked = (self.sampled, self.asked(metric)) if about_event else (self.class_rows, metric)
        if about_event and self.is_large:
            return self._of_many(asked)
        resamples = self.resamples if about_event else self.class_resamples
        resamples = max(LEAST, int(resamples / metric.facts.cost))
        result = tried(lambda: asked(rows))
        if result is None:
            return None
        result = self._interval(asked, rows, result)
        if rows.soft is not None:
            return result
        options: dict[str, Any] = {"n": resamples, "seed": self.seed, "groups": self.column, "result": result}
        noise = tried(lambda: consistency(asked, rows, **options))
        if noise is None:
            return result
        if about_event:
            self._nulls[metric] = noise
        return self._sharpened(noise.annotated())

    def _sharpened(self, result: Result) -> Result:
        """The result; the mean gap's p-value is computed, because redraws would decide it by chance."""
        bins, signed = result.bins, result.metric.facts.low < 0
        if not signed or bins is None or bins.shape != (1, 1, 1) or len(result.values):
            return result
        details = {name: value for name, value in result.details.items() if name != "redraws"}
        return dataclasses.replace(result, details={**details, "null_p_value": self.whole.p})

    @cached_property
    def _nulls(self) -> dict[Metric, Null]:
        """The distributions of metrics of the event under calibration that are known."""
        return {}

    def _of_many(self, metric: Metric) -> Result:
        """A metric of a large event: bins at fixed edges from its rows, anything else from its groups."""
        assert self.table is not None
        fixed = isinstance(metric, OfBins) and facts_of(metric.binning).fixed
        result = by_blocks(metric, self.sampled) if fixed else concluded(metric, self.table)
        return self._sharpened(self.resampling.null(self._interval(metric, self.sampled, result)).annotated())

    @property
    def _interval(self) -> Confidence:
        return Confidence(seed=self.seed, groups=self.column)

    @cached_property
    def ece(self) -> Result:
        """ECE of the main event, with interval and noise floor."""
        result = self.measured(ECE, about_event=True)
        assert result is not None
        return result

    @cached_property
    def mcs(self) -> Result:
        """Mean forecast less frequency, with interval and noise floor."""
        result = self.measured(MCS, about_event=True)
        assert result is not None
        return result

    @cached_property
    def test(self) -> CalibrationTest | None:
        """The test of calibration behind the verdict; None under soft labels."""
        if self.predictions.soft is not None:
            return None
        rows = self._some(_TESTED_ROWS // max(1, self.together), stage=13)
        n = min(TESTED, max(_FEWEST, int(_REDRAWN / (len(rows) * max(1, self.together)))))
        return calibration_test(rows, n, self.seed, self.column)

    @cached_property
    def line(self) -> list[Result]:
        """Calibration intercept and slope of the main event, with their intervals; nothing under fractional weights."""
        results = [self.statistic(metric) for metric in (INTERCEPT, SLOPE)]
        known = [result for result in results if result is not None]
        return known if len(known) == len(results) else []

    def statistic(self, metric: Metric) -> Result | None:
        """A statistic of the main event with its interval; None where it is not defined."""
        return self._statistics(metric)

    @cached_property
    def _statistics(self) -> Callable[[Metric], Result | None]:
        pooled = self.event if self.cluster is None else dataclasses.replace(self.event, columns={ROW: self.cluster})
        interval = Confidence(seed=self.seed, groups=None if self.cluster is None else ROW)

        def measured(metric: Metric) -> Result:
            table = self.table if self.is_large else None
            result = metric(pooled) if table is None else concluded(metric, table)
            return interval(metric, pooled, result)

        return cache(lambda metric: tried(lambda: measured(metric)))

    @cached_property
    def null(self) -> Null | None:
        """The distribution of ECE if the forecasts were calibrated; None under soft labels."""
        result = self.ece
        if self.is_large:
            return self.resampling.null(result)
        return self._nulls.get(ECE)

    @cached_property
    def _scored(self) -> Callable[[MeanScore], Result | None]:
        return cache(lambda metric: tried(lambda: self._score(metric)))

    def score(self, metric: MeanScore) -> Result | None:
        """A mean score of the predictions with its interval, block by block; None where it is not defined."""
        return self._scored(metric)

    def _score(self, metric: MeanScore) -> Result:
        """The interval is that of `Confidence`; the interval of a mean holds under soft labels too."""
        result, hard = by_blocks(metric, self.predictions), self.predictions.soft is None
        owner = clusters(*self.linked) if self.groups else None
        owner = np.arange(len(self.predictions)) if owner is None else owner
        moves, sizes = np.zeros((2, int(owner.max()) + 1))
        seen, start = Seen(), 0
        for part in self.predictions.blocks(BLOCK):
            view, mine = metric.lens(part), owner[start : start + len(part)]
            weight = np.ones(len(part)) if view.weight is None else view.weight
            with np.errstate(invalid="ignore"):
                move = weight * (metric.score(view).mean(axis=1) - result.value)
            moves += np.bincount(mine, move, len(moves))
            sizes += np.bincount(mine, weight, len(sizes))
            rows = np.flatnonzero(weight)
            seen = sum((often_seen(view, question, rows) for question in range(view.questions)), seen)
            start += len(part)
        reason = why_no_mean(result.value, seen if hard else None)
        if reason:
            return dataclasses.replace(result, notes=(*result.notes, reason))
        low, high = skewed(result.value, moves / sizes.sum(), 0.9, most=freedom_of(sizes))
        low, high = np.clip([low, high], metric.facts.low, metric.facts.high)
        return dataclasses.replace(result, interval=Interval(float(low), float(high), 0.9, "confidence", "blocks", 0))

    @cached_property
    def repaired_rows(self) -> Predictions:
        """The rows that recalibration is tried on: all, or a random part that can be afforded."""
        return self._some(int(np.clip(_REPAIR / self.width, 2000, 30_000)), stage=8)

    @cached_property
    def choice(self) -> Choice | None:
        """Recalibration methods compared on rows they were not fitted on; None where that cannot be."""
        if self.predictions.soft is not None or len(self.predictions) < 20 or self.lacking:
            return None
        known = usual(self.repaired_rows)
        names = ["temperature", "prior_shift", next(name for name in ("vector", "platt") if name in known), "isotonic"]
        if self.predictions.forecasts.of_events:
            names.sort(key=list(known).index)  # a shift is as plain as a temperature, and comes first in `choose`
        methods = {name: known[name] for name in (names if self.width <= 100 else names[:1])}
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):  # log losses may be infinite
            warnings.simplefilter("ignore", CalibrationWarning)
            options: dict[str, Any] = {"seed": self.seed, "groups": self.groups, "test": self.test}
            return tried(lambda: choose(self.repaired_rows, methods, **options))

    @property
    def is_changed(self) -> bool:
        """Whether a recalibration is recommended: the test rejects, and a method is better than doing nothing."""
        rejected = self.test is not None and self.test.p_value <= LEVEL
        return rejected and self.choice is not None and self.choice.best != UNCHANGED

    @cached_property
    def digest(self) -> str:
        """A hash of forecasts, labels and weights in their order: the same data give the same."""
        predictions = self.predictions
        checksum = hashlib.sha256()
        held = (getattr(predictions.forecasts, each.name) for each in dataclasses.fields(predictions.forecasts))
        truth = predictions.labels if predictions.soft is None else predictions.soft
        for part in (*held, truth, predictions.weight):
            if isinstance(part, np.ndarray):
                checksum.update(f"{part.dtype.str}{part.shape}".encode())
                checksum.update(np.ascontiguousarray(part).data)
        return checksum.hexdigest()

    def _some(self, most: int, stage: int) -> Predictions:
        """All rows, or so many of them drawn at random."""
        predictions = self.linked[0]
        if len(predictions) <= most:
            return predictions
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(stage,)))
        return predictions[np.sort(rng.choice(len(predictions), most, replace=False))]


def tried(make: Callable[[], T]) -> T | None:
    """What can be made; None where the data do not allow it."""
    try:
        return make()
    except CalibrationInputError:
        return None


def redraws(result: Result) -> int | None:
    """How often labels were redrawn for a result's noise floor; None where it has none."""
    count = result.details.get("redraws")
    return None if count is None else int(count)
