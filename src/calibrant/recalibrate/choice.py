"""Choosing: which recalibration helps these predictions most, and is that more than noise?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant.checks import whole
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bootstrap import Bootstrap
from calibrant.inference.comparison import Comparison, compare
from calibrant.inference.progress import shown
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.recalibrate.folds import cross_fit
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recipes import BRIER, ECE, LOG_LOSS, SCE
from calibrant.table import Table

UNCHANGED = "as it is"
"""The name of doing nothing, which every method is held against."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Methods compared on rows that none of them was fitted on.

    >>> import calibrant as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=1000)
    >>> predictions = cal.Predictions.from_logits(rng.random(1000) < 1 / (1 + np.exp(-z)), 3 * z)
    >>> found = cal.recalibrate.choose(predictions, {"temperature": cal.TemperatureScaling()}, resamples=50, seed=0)
    >>> found.best
    'temperature'
    >>> print(found.verdict)
    temperature has the lowest cross-fitted log loss, 0.6267: 0.2215 below as it is (90% interval 0.1827 to 0.2743),
    more than noise.
    """

    table: Table
    forecasts: Mapping[str, Predictions]
    gain: Comparison | None
    """The best method less doing nothing; None where nothing is best."""
    lead: Comparison | None
    """The best method less the next best one."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Methods that could not be fitted, and why."""

    @property
    def ranking(self) -> list[str]:
        """Methods from the lowest log loss to the highest."""
        return sorted(self.table.results, key=lambda name: self.table[name]["log loss"].value)

    @property
    def best(self) -> str:
        """The method with the lowest log loss."""
        return self.ranking[0]

    @property
    def tied(self) -> list[str]:
        """Methods behind the best one by no more than noise, as far as was compared: the next best."""
        return [self.ranking[1]] if self.lead is not None and not _sure(self.lead) else []

    @property
    def verdict(self) -> str:
        """Which wins, by how much, and whether that is more than noise."""
        value = self.table[self.best]["log loss"].value
        if self.gain is None:
            return f"No method lowers the cross-fitted log loss ({value:.4f}): leave the forecasts as they are."
        between = self.gain.interval
        said = (
            f"{self.best} has the lowest cross-fitted log loss, {value:.4f}: "
            f"{-self.gain.difference:.4f} below {UNCHANGED} "
            f"({100 * between.level:g}% interval {-between.high:.4f} to {-between.low:.4f}), "
            f"{'more than' if _sure(self.gain) else 'which may be'} noise."
        )
        close = f" Its lead over {self.ranking[1]} may be noise." if self.tied and self.ranking[1] != UNCHANGED else ""
        return said + close

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "best": self.best,
            "verdict": self.verdict,
            "ranking": self.ranking,
            "failures": dict(self.failures),
            "methods": self.table.to_dict()["rows"],
        }


def choose(
    predictions: Predictions,
    methods: Mapping[str, Recalibrator] | None = None,
    *,
    folds: int = 5,
    resamples: int = 200,
    seed: int = 0,
    groups: str | None = None,
) -> Choice:
    """Which method lowers the log loss most on rows it was not fitted on?

    Every method is cross-fitted on the same folds and measured by log loss, Brier score, ECE and, for classes, SCE,
    with bootstrap intervals from `resamples`; the best is held against doing nothing and against the next best, pair
    by pair. `groups` names a column whose rows stay together. A method that cannot be fitted is listed with its reason.
    """
    from calibrant.recalibrate.methods import usual  # the methods are known last

    whole(resamples, "resamples", 20)
    if predictions.soft is not None:
        raise CalibrationInputError("predictions", "need one true class per row", got="soft labels")
    whole(folds, "folds", 2, len(predictions))
    input = "logits" if predictions.logits else "probabilities"
    chosen = usual(predictions) if methods is None else dict(methods)
    forecasts, failures = {UNCHANGED: predictions}, {}
    column = None if groups is None else predictions.column(groups)
    for name, method in shown(chosen.items(), len(chosen), "methods"):
        try:
            made = cross_fit(
                method.copy(input=input, classes=None),
                predictions.values,
                predictions.labels,
                folds=folds,
                seed=seed,
                groups=column,
                sample_weight=predictions.weight,
            )
            forecasts[name] = dataclasses.replace(made, classes=predictions.classes, columns=predictions.columns)
        except CalibrationInputError as reason:
            failures[name] = str(reason)
    interval = Bootstrap(resamples, seed=seed, groups=groups)
    measured = {
        name: {label: metric(made, interval=interval) for label, metric in _metrics(predictions).items()}
        for name, made in forecasts.items()
    }
    return _chosen(Table("method", measured), forecasts, failures, resamples, seed)


def _chosen(
    table: Table, forecasts: Mapping[str, Predictions], failures: Mapping[str, str], resamples: int, seed: int
) -> Choice:
    ranking = sorted(forecasts, key=lambda name: table[name]["log loss"].value)

    def against(other: str) -> Comparison:
        return compare(LOG_LOSS, forecasts[ranking[0]], forecasts[other], n=resamples, seed=seed)

    gain = None if ranking[0] == UNCHANGED else against(UNCHANGED)
    return Choice(table, forecasts, gain, against(ranking[1]) if len(ranking) > 1 else None, failures)


def _metrics(predictions: Predictions) -> dict[str, Metric]:
    made: dict[str, Metric] = {"log loss": LOG_LOSS, "Brier": BRIER, "ECE": ECE}
    return {**made, "SCE": SCE} if predictions.kind == "classes" else made


def _sure(one: Comparison) -> bool:
    """Whether the interval of a difference leaves out 0."""
    return bool(one.interval.high < 0 or one.interval.low > 0)
