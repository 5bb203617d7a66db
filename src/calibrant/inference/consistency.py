"""Consistency: what a metric would be if the model were calibrated. Its noise floor, and a test."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from calibrant.binning.ladder import Forecasts
from calibrant.checks import whole
from calibrant.door.arrays import Array
from calibrant.door.class_kinds import redrawn_labels
from calibrant.errors.asking import Asking
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import Work, check_seed, clusters, replicate
from calibrant.kernels.totals import Floats, Ints
from calibrant.metric import Metric
from calibrant.predictions import Predictions, require_predictions
from calibrant.result import Result
from calibrant.specification.facts import Facts, facts_of
from calibrant.summaries import Summary
from calibrant.views import View


@dataclass(frozen=True, eq=False)
class Null:
    """The distribution of a metric under perfect calibration, with these forecasts.

    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(300)
    >>> null = cal.consistency(cal.ECE, cal.Predictions.from_probs(rng.random(300) < p, p), n=99, seed=0)
    >>> bool(0 < null.mean < 0.1), bool(null.p_value > 0.05)
    (True, True)
    """

    result: Result
    """The observed result."""
    values: Floats
    """The metric's values under redrawn labels."""
    parts: Floats
    """The questions' values (n, questions), where there are several."""

    @property
    def mean(self) -> float:
        """The noise floor: the metric's mean under calibration."""
        return float(np.mean(_there(self.values)))

    @property
    def sd(self) -> float:
        """The metric's standard deviation under calibration."""
        return float(np.std(_there(self.values)))

    @property
    def excess(self) -> float:
        """The observed value less the noise floor."""
        return self.result.value - self.mean

    @property
    def p_value(self) -> float:
        """(1 + number of null values at least as extreme) / (n + 1); see `tail_share` for what is extreme.

        Redraws under which the metric has no value are left out of both numbers.
        """
        return tail_share(self.result.value, self.values, self.result.metric.facts)

    @property
    def part_p_values(self) -> dict[str, float]:
        """The p-value of each question."""
        columns = zip(self.result.about.names, self.result.values, self.parts.T, strict=True)
        metric = self.result.metric
        facts = dataclasses.replace(metric.part_facts, calibrated=metric.facts.calibrated)
        return {name: tail_share(value, null, facts) for name, value, null in columns}

    def annotated(self) -> Result:
        """The observed result with `noise_floor`, `noise_95`, `null_p_value` and `redraws` among its details."""
        noise = {"noise_floor": self.mean, "noise_95": self.quantile(0.95), "null_p_value": self.p_value}
        noise["redraws"] = float(len(self.values))
        return dataclasses.replace(self.result, details={**self.result.details, **noise})

    def quantile(self, q: float) -> float:
        """A quantile of the metric under calibration."""
        return float(np.quantile(_there(self.values), q))

    def __str__(self) -> str:
        return (
            f"{self.result.name} {self.result.value:.4f}; under calibration {self.mean:.4f} "
            f"(95% below {self.quantile(0.95):.4f}), p = {self.p_value:.3g}"
        )


def consistency(
    metric: Metric,
    predictions: Predictions,
    n: int = 1000,
    seed: int = 0,
    *,
    groups: str | None = None,
    n_jobs: int = 1,
    result: Result | None = None,
) -> Null:
    """The null distribution of a metric: rows are kept, labels are redrawn from the forecasts, n times.

    That is right for independent rows, a weighted row being one of them. With `groups`, the name of a column, rows of
    one value may depend on each other in any way. A second null distribution then flips the signs of all gaps between
    outcome and forecast of a group at random. The one with the larger p is given, or the wider one where p is the same.
    That needs about 30 groups or more, none of which holds most rows, and a metric of events that looks at no label to
    select.

    `result` is the observed one, where it is known already. Results depend on `seed`, not on `n_jobs`.

    References: Broecker & Smith (2007); Vaicenavicius et al. (2019), section 4; Cameron, Gelbach & Miller (2008) for
    signs of groups.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 1, 0, 1], [.9, .6, .2, .8])
    >>> 0 < cal.consistency(cal.ECE, p, n=50, seed=0).p_value <= 1
    True
    """
    require_predictions(predictions)
    whole(n, "n", 1)
    check_seed(seed)
    if predictions.soft is not None:
        raise CalibrationInputError("consistency", "redraws hard labels", got="soft labels")
    require_null(metric)
    result = result or metric(predictions)
    works = [_work(metric, predictions)] + ([] if groups is None else [_flipped(metric, predictions, groups)])
    what = f"consistency of {metric.name}"
    draws = [replicate(work, n, seed, stage=1, n_jobs=n_jobs, what=what) for work in works]
    nulls = (Null(result, values[:, 0], values[:, 1:]) for values in draws)
    return max(nulls, key=lambda null: (null.p_value, null.sd))


def require_null(metric: Metric) -> None:
    """Refuse the null distribution of a number that calibration settles nothing of."""
    if metric.facts.calibrated is None:
        raise CalibrationInputError(
            "metric",
            "must have a value under calibration to be held against it",
            got=metric.name,
            hint="a calibrated model may have any accuracy or loss: use a calibration error such as ECE",
        )


def _work(metric: Metric, predictions: Predictions) -> Work:
    if not isinstance(metric, Asking) or not facts_of(metric.lens).outcomes or facts_of(metric.select).looks_at_labels:
        return _Relabelled(metric, predictions)
    view = metric.view(predictions)
    if view.questions == 1 and view.weight is None:
        summary = metric.summarise_view(view)
        if isinstance(summary, Forecasts):
            return _RedrawnTable(metric, summary)
    return _RedrawnView(metric, view)


def _flipped(metric: Metric, predictions: Predictions, groups: str) -> Work:
    cluster = clusters(predictions, groups)
    assert cluster is not None
    if not isinstance(metric, Asking) or math.isnan(metric.facts.calibrated or 0.0):
        raise CalibrationInputError("groups", "needs a metric in which labels select nothing", got=metric.name)
    view, rows = metric.view(predictions), np.flatnonzero(metric.selected(predictions))
    view.require_event("groups", "TopLabel(), OneClass(c) or Classwise()")
    weight = np.ones(len(view.outputs)) if view.weight is None else view.weight  # sums of weighted rows have any sign
    repeated = np.repeat(cluster[rows], len(view.outputs) // max(1, len(rows)))
    return _FlippedView(metric, dataclasses.replace(view, weight=weight), repeated)


@dataclass(frozen=True, eq=False)
class _FlippedView:
    """The gaps between outcomes and forecasts with the signs of whole groups at random."""

    metric: Asking[Summary]
    view: View
    cluster: Ints

    def __call__(self, rng: np.random.Generator, count: int) -> Floats:
        outputs = self.view.outputs.astype(np.float64)
        gaps, many = self.view.truth_rows - outputs, int(self.cluster.max(initial=0)) + 1
        signs = rng.choice([-1.0, 1.0], (count, many))[:, self.cluster, None, None]
        views = (dataclasses.replace(self.view, targets=outputs + sign * gaps) for sign in signs)
        results = [self.metric.conclude(self.metric.summarise_view(view)) for view in views]
        return np.array([[result.value, *result.values] for result in results])


@dataclass(frozen=True, eq=False)
class _Relabelled:
    """Labels redrawn at the door: right for every metric."""

    metric: Metric
    predictions: Predictions

    def __call__(self, rng: np.random.Generator, count: int) -> Floats:
        return np.stack([self._one(self.predictions.forecasts.redrawn(rng)) for _ in range(count)])

    def _one(self, labels: Array) -> Floats:
        result = self.metric.conclude(self.metric.summarise(dataclasses.replace(self.predictions, labels=labels)))
        return np.array([result.value, *result.values])


@dataclass(frozen=True, eq=False)
class _RedrawnView:
    """Targets redrawn among a view's coordinates: the lens is asked once."""

    metric: Asking[Summary]
    view: View

    def __call__(self, rng: np.random.Generator, count: int) -> Floats:
        if self.view.targets.ndim > 1:  # independent labels
            return np.stack([self._one(rng.random(self.view.outputs.shape) < self.view.outputs) for _ in range(count)])
        n, v, d = self.view.outputs.shape
        shares = self.view.outputs.reshape(n, v * d).astype(np.float64)
        whole = shares
        if self.view.d * self.view.v == 1 or facts_of(self.metric.lens).outcomes != "all":
            whole = np.column_stack([shares, np.maximum(1.0 - shares.sum(axis=1), 0.0)])
        drawn = (redrawn_labels(whole, rng) for _ in range(count))
        return np.stack([self._one(np.where(targets < v * d, targets, -1)) for targets in drawn])

    def _one(self, targets: Array) -> Floats:
        view = dataclasses.replace(self.view, targets=targets)
        result = self.metric.conclude(self.metric.summarise_view(view))
        return np.array([result.value, *result.values])


@dataclass(frozen=True, eq=False)
class _RedrawnTable:
    """Outcomes of each distinct forecast redrawn at once: no sorting again."""

    metric: Asking[Summary]
    table: Forecasts

    def __call__(self, rng: np.random.Generator, count: int) -> Floats:
        counts = self.table.counts.astype(np.int64)
        chances = np.clip(self.table.values.astype(np.float64), 0.0, 1.0)
        values = []
        for _ in range(count):
            happened = rng.binomial(counts, chances)
            values.append([self.metric.conclude(dataclasses.replace(self.table, targets=happened)).value])
        return np.array(values)


def tail_share(observed: float, null: Floats, facts: Facts) -> float:
    """(1 + number of null values at least as extreme as the observed one) / (their number + 1).

    Extreme are large values; where small ones are too, those as far from the value under calibration; and where that
    is unknown, those beyond the observed one on its own side, counted twice.

    >>> null = np.array([-3.0, 1.0, 2.0])
    >>> [tail_share(2.0, null, Facts(sides=sides, calibrated=at)) for sides, at in ((1, 0.0), (2, 0.0), (2, np.nan))]
    [0.5, 0.75, 1.0]
    """
    there = _there(null)
    if np.isnan(observed) or np.isnan(there).any():
        return float("nan")
    above, below = 1 + np.sum(there >= observed), 1 + np.sum(there <= observed)
    if facts.sides == 1:
        extreme = above
    elif facts.calibrated is not None and np.isfinite(facts.calibrated):
        extreme = 1 + np.sum(np.abs(there - facts.calibrated) >= abs(observed - facts.calibrated))
    else:
        extreme = 2 * min(above, below)
    return min(1.0, float(extreme / (len(there) + 1)))


def _there(null: Floats) -> Floats:
    """The null values that exist; nan where none does."""
    there = null[~np.isnan(null)]
    return there if len(there) else np.array([np.nan])
