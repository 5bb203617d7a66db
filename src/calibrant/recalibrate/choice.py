"""Choosing: which recalibration helps these predictions most, and is that more than noise?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.checks import whole
from calibrant.errors.mean_score import log_score
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bootstrap import Bootstrap
from calibrant.inference.draws import RowDraws, clusters
from calibrant.inference.progress import shown
from calibrant.kernels.totals import Floats
from calibrant.lenses.distributions import Full
from calibrant.metric import Metric
from calibrant.predictions import Predictions, require_predictions
from calibrant.recalibrate.fitting.lessons import ModelScores
from calibrant.recalibrate.folds import cross_fit
from calibrant.recalibrate.methods import usual
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recipes import BRIER, ECE, LOG_LOSS, SCE
from calibrant.result import Interval
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
    >>> choice = cal.recalibrate.choose(predictions, {"temperature": cal.TemperatureScaling()}, resamples=50, seed=0)
    >>> choice.best
    'temperature'
    >>> print(choice.verdict)
    temperature has the lowest cross-fitted log loss, 0.6267. Choosing so lowers it by 0.2147 on rows left out of the
    choice (90% interval 0.1518 to 0.2702), more than noise.
    """

    table: Table
    forecasts: Mapping[str, Predictions]
    gain: Gain | None
    """What choosing the best method is worth; None where doing nothing is best."""
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
    def verdict(self) -> str:
        """Which wins, by how much, and whether that is more than noise."""
        value = self.table[self.best]["log loss"].value
        if len(self.forecasts) == 1:
            return "No method could be fitted: " + "; ".join(f"{name}: {why}" for name, why in self.failures.items())
        if self.gain is None:
            return f"No method lowers the cross-fitted log loss ({value:.4f}): leave the forecasts as they are."
        several = f" of {len(self.forecasts) - 1} methods" if len(self.forecasts) > 2 else ""
        winner = f"{self.best} has the lowest cross-fitted log loss{several}, {value:.4f}"
        if not np.isfinite(self.gain.value):
            return f"{winner}; {UNCHANGED}, it is infinite."
        low, high = self.gain.interval.low, self.gain.interval.high
        return (
            f"{winner}. Choosing so lowers it by {self.gain.value:.4f} on rows left out of the choice "
            f"({100 * self.gain.interval.level:g}% interval {low:.4f} to {high:.4f}), "
            f"{'more than' if low > 0 else 'which may be'} noise."
        )

    def __str__(self) -> str:
        return f"{self.table}\n\n{self.verdict}"

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
    with bootstrap intervals from `resamples`; what choosing the best is worth is measured on rows that had no say in
    the choice (`gain_of_choosing`). Of independent labels these are means over labels, and rows stay whole. `groups`
    names a column whose rows stay together. A method that cannot be fitted is listed with its reason.
    """
    require_predictions(predictions)
    whole(resamples, "resamples", 20)
    if predictions.labels is None:
        raise CalibrationInputError("predictions", "need one true class per row", got="soft labels")
    if len(np.unique(predictions.labels)) < 2:
        raise CalibrationInputError("predictions", "need at least two classes that occur", got="one")
    input = ModelScores.of(predictions).input
    whole(folds, "folds", 2, len(predictions) if groups is None else len(np.unique(predictions.column(groups))))
    chosen = usual(predictions) if methods is None else dict(methods)
    forecasts, failures = {UNCHANGED: predictions}, {}
    column = None if groups is None else predictions.column(groups)
    for name, method in shown(chosen.items(), len(chosen), "methods"):
        try:
            forecasts[name] = cross_fit(
                method.copy(input=input, classes=None), predictions, folds=folds, seed=seed, groups=column
            )
        except CalibrationInputError as reason:
            failures[name] = str(reason)
    interval = Bootstrap(resamples, seed=seed, groups=groups)
    measured = {
        name: {label: metric(rows, interval=interval) for label, metric in _metrics(predictions).items()}
        for name, rows in forecasts.items()
    }
    table = Table("method", measured)
    best = min(forecasts, key=lambda name: table[name]["log loss"].value)
    gain = None if best == UNCHANGED else gain_of_choosing(forecasts, resamples, seed, groups)
    return Choice(table, forecasts, gain, failures)


@dataclass(frozen=True)
class Gain:
    """How much lower the log loss gets when the method that looks best is chosen."""

    value: float
    interval: Interval


def gain_of_choosing(
    forecasts: Mapping[str, Predictions], n: int, seed: int, groups: str | None = None, level: float = 0.9
) -> Gain:
    """What is choosing worth, on rows that had no say in the choice?

    The best of several methods looks better than it is on the rows that it was chosen on. In each of n resamples (of
    rows, or of whole groups) the method with the lowest log loss among the rows drawn is held against doing nothing on
    the rows left out. The value is the median; a share of (1 - level) / 2 lies beyond either end of the interval.

    References: Tsamardinos, Greasidou & Borboudakis (2018), on bootstrap bias corrected cross-validation.

    >>> even = Predictions.from_probs([0, 1, 0, 1] * 9, [.5] * 36)
    >>> sure = Predictions.from_probs([0, 1, 0, 1] * 9, [.25, .75, .25, .75] * 9)
    >>> round(gain_of_choosing({"as it is": even, "sharper": sure}, 20, 0).value, 4)  # ln 0.75 - ln 0.5
    0.4055
    """
    first = next(iter(forecasts.values()))
    losses = np.stack([_losses(predictions) for predictions in forecasts.values()])
    weight = np.ones(len(first)) if first.weight is None else first.weight
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(9,)))
    gains = []
    for counts in RowDraws(len(first), clusters(first, groups))(rng, n):
        left_out = np.where(counts == 0, weight, 0.0)
        if not left_out.any() or not (counts * weight).any():
            continue
        best = int(np.argmin(_means(losses, counts * weight)))
        means = _means(losses, left_out)
        with np.errstate(invalid="ignore"):
            gains.append(means[0] - means[best])
    low, middle, high = np.quantile(gains, [(1 - level) / 2, 0.5, (1 + level) / 2])
    return Gain(float(middle), Interval(float(low), float(high), level, "percentile", "left out", len(gains)))


def _losses(predictions: Predictions) -> Floats:
    """The log loss of every row; of labels, its mean over them."""
    return log_score(Full()(predictions)).mean(axis=1)


def _means(losses: Floats, weight: Floats) -> Floats:
    """Weighted means over the rows that count; an infinite loss counts where its row does."""
    counted = weight > 0
    return losses[:, counted] @ weight[counted] / weight.sum()


def _metrics(predictions: Predictions) -> dict[str, Metric]:
    metrics: dict[str, Metric] = {"log loss": LOG_LOSS, "Brier": BRIER, "ECE": ECE}
    return metrics if predictions.forecasts.of_events else {**metrics, "SCE": SCE}
