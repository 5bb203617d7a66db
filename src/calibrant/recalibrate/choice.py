"""Choosing: are these predictions off at all, and which recalibration then helps most?"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.door.arrays import TIES
from calibrant.errors.mean_score import log_score
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.confidence import Confidence, hidden_error
from calibrant.inference.draws import clusters, linked
from calibrant.inference.omnibus import CalibrationTest, calibration_test
from calibrant.inference.skewness import student
from calibrant.kernels.progress import shown
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses.distributions import Full
from calibrant.metric import Metric
from calibrant.predictions import Predictions, require_predictions
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores
from calibrant.recalibrate.folds import cross_fit, fold_of
from calibrant.recalibrate.methods import usual
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recipes import ACCURACY, BRIER, ECE, LOG_LOSS, SCE
from calibrant.result import Interval
from calibrant.selections import Mask
from calibrant.table import Table
from calibrant.text import p_value

UNCHANGED = "unchanged"
"""The name of the identity, which every method is held against."""
LEVEL = 0.05
"""The forecasts are changed only where the calibration test rejects at this level."""
REDRAWS = 199
"""Of that test."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Methods compared on rows that none of them was fitted on, and whether anything has to change at all.

    >>> import calibrant as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=1000)
    >>> happened = rng.random(1000) < 1 / (1 + np.exp(-z))
    >>> methods = {"temperature": cal.TemperatureScaling()}
    >>> choice = cal.recalibrate.choose(cal.Predictions.from_logits(happened, 3 * z), methods)
    >>> choice.best
    'temperature'
    >>> print(choice.verdict)
    The forecasts are not calibrated (p < 0.006). temperature has the lowest cross-fitted log loss, 0.6267. Choosing so
    lowers it by 0.2215 on rows left out of the choice (90% interval 0.1699 to 0.2731).
    >>> print(cal.recalibrate.choose(cal.Predictions.from_logits(happened, z), methods).verdict)
    The calibration test finds nothing wrong (p = 0.15; with 1,000 rows the ECE may be as large as 0.0569): leave the
    forecasts as they are.
    """

    table: Table
    forecasts: Mapping[str, Predictions]
    test: CalibrationTest
    """Of the forecasts as they are."""
    preferred: str
    """The plainest method that is about as good as the best (`plainest`), whatever the test says."""
    gain: Gain | None
    """What choosing the best method is worth; None where nothing changes, or where the losses so far are infinite."""
    infinite: Mapping[str, int]
    """How many rows have an infinite log loss, by method; 0 is left out."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Methods that could not be fitted, and why."""

    @property
    def ranking(self) -> list[str]:
        """Methods from the lowest log loss to the highest."""
        return sorted(self.table.results, key=lambda name: self.table[name]["log loss"].value)

    @property
    def rejected(self) -> bool:
        """Whether the test found the forecasts to be off."""
        return self.test.p_value <= LEVEL

    @property
    def best(self) -> str:
        """The preferred method where the test rejects, else the identity."""
        return self.preferred if self.rejected else UNCHANGED

    @property
    def answers_changed(self) -> int:
        """In how many rows the choice makes another class the likeliest; 0 where no class is forecast."""
        before, after = (self.forecasts[name] for name in (UNCHANGED, self.best))
        if before.forecasts.of_events or not before.n_classes:
            return 0
        return int(np.count_nonzero(before.predicted != after.predicted))

    @property
    def verdict(self) -> str:
        """Whether to change the forecasts, by which method, and what that gains."""
        if len(self.forecasts) == 1:
            return "No method could be fitted: " + "; ".join(f"{name}: {why}" for name, why in self.failures.items())
        p, value = p_value(self.test.p_value, self.test.redraws), self.table[self.best]["log loss"].value
        if not self.rejected:
            p += hidden_error(self.table[UNCHANGED]["ECE"])
            return f"The calibration test finds nothing wrong ({p}): leave the forecasts as they are."
        if self.best == UNCHANGED:
            return (
                f"The forecasts are not calibrated ({p}), but no method lowers the cross-fitted log loss "
                f"({value:.4f}): leave them as they are.{self._left_out}"
            )
        several = f" of {len(self.forecasts) - 1} methods" if len(self.forecasts) > 2 else ""
        chosen = f"{self.best} has the lowest cross-fitted log loss{several}, {value:.4f}."
        if self.best != self.ranking[0]:
            lowest = self.table[self.ranking[0]]["log loss"].value
            chosen = (
                f"{self.best} is the plainest{several} whose cross-fitted log loss, {value:.4f}, is within one "
                f"standard error of the lowest ({self.ranking[0]}, {lowest:.4f})."
            )
        return f"The forecasts are not calibrated ({p}). {chosen}{self._gained}{self._answers}{self._left_out}"

    @property
    def _answers(self) -> str:
        """What the choice does to answers."""
        if not self.answers_changed:
            return ""
        before, after = (ACCURACY(self.forecasts[name]).value for name in (UNCHANGED, self.best))
        rows = f"{self.answers_changed:,} of {len(self.forecasts[UNCHANGED]):,} rows"
        return f" It changes the likeliest class of {rows} (accuracy {before:.4f} to {after:.4f})."

    @property
    def _gained(self) -> str:
        if self.gain is None:
            return ""
        by = self.gain.by(" on rows left out of the choice")
        return f" Choosing so {'raises' if self.gain.is_loss else 'lowers'} it by {by}. {self.gain.doubt}".rstrip()

    @property
    def _left_out(self) -> str:
        return "".join(
            f" {name}: the log loss of {count:,} row{'s' * (count > 1)} is infinite, so it was not compared."
            for name, count in self.infinite.items()
        )

    def __str__(self) -> str:
        return f"{self.table}\n\n{self.verdict}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "best": self.best,
            "answers_changed": self.answers_changed,
            "verdict": self.verdict,
            "test": self.test.to_dict(),
            "gain": None if self.gain is None else {"value": self.gain.value, "interval": vars(self.gain.interval)},
            "ranking": self.ranking,
            "infinite": dict(self.infinite),
            "failures": dict(self.failures),
            "methods": self.table.to_dict()["rows"],
        }


def choose(
    predictions: Predictions,
    methods: Mapping[str, Recalibrator] | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    groups: str | None = None,
    intervals: bool = True,
    test: CalibrationTest | None = None,
) -> Choice:
    """Do these forecasts have to change, and which method then lowers the log loss most on rows it was not fitted on?

    The identity is a candidate. It is kept where `calibration_test` with 199 redraws does not reject at 5 %; so
    calibrated forecasts are left alone in 95 % of samples. A `test` that was made before takes its place. (Of classes
    the test asks whether the likeliest one is right as often as it says, and whether each class is as frequent.)
    Otherwise the plainest of the methods whose cross-fitted log loss is about the lowest is chosen (`plainest`; methods
    are given in that order), and what that is worth is measured on rows that had no say in the choice
    (`gain_of_choosing`). Some methods change which class is the likeliest: `answers_changed` counts rows. Methods that
    give probability 0 to what happened are not compared: `infinite` counts those rows.

    Every method is cross-fitted on the same folds and measured by log loss, Brier score, ECE and, for classes, SCE,
    with the intervals of `Confidence` where those exist (`intervals=False` saves their time). Of independent labels
    these are means over labels, and rows stay whole. `groups` names a column whose rows stay together and may depend on
    each other. A method that cannot be fitted is listed with its reason.
    """
    require_predictions(predictions)
    if predictions.labels is None:
        raise CalibrationInputError("predictions", "need one true class per row", got="soft labels", hint=TIES)
    if len(np.unique(predictions.labels)) < 2:
        raise CalibrationInputError("predictions", "need at least two classes that occur", got="one")
    input = ModelScores.of(predictions).input
    column = None if groups is None else predictions.column(groups)
    fold = fold_of(Lesson.of(predictions, input=input), folds, seed, column)
    if test is None:
        rows, independent = linked(predictions, groups)
        test = calibration_test(rows, REDRAWS, seed, independent)
    chosen = usual(predictions) if methods is None else dict(methods)
    forecasts, failures = {UNCHANGED: predictions}, {}
    for name, method in shown(chosen.items(), len(chosen), "methods"):
        try:
            forecasts[name] = cross_fit(
                method.copy(input=input, classes=None), predictions, folds=folds, seed=seed, groups=column
            )
        except CalibrationInputError as reason:
            failures[name] = str(reason)
    infinite = {name: count for name, rows in forecasts.items() if (count := _count_infinite(rows))}
    compared = [name for name in forecasts if name == UNCHANGED or name not in infinite]
    preferred = compared[plainest(*_compared({name: forecasts[name] for name in compared})[:2])]
    interval = Confidence(seed=seed, groups=groups) if intervals else None
    measured = {
        name: {label: metric(rows, interval=interval) for label, metric in compared_by(predictions).items()}
        for name, rows in forecasts.items()
    }
    unclear = Choice(Table("method", measured), forecasts, test, preferred, None, infinite, failures)
    if unclear.best == UNCHANGED or UNCHANGED in infinite:
        return unclear
    return dataclasses.replace(unclear, gain=gain_of_choosing(forecasts, fold, cluster=clusters(predictions, groups)))


def plainest(losses: Floats, weight: Floats) -> int:
    r"""Which method is the plainest of those that are about as good as the best? Its place among them.

    Losses are (methods, n), the first of doing nothing, the others from the plainest method on. With
    :math:`d_i` a method's loss of row i less that of the method with the lowest mean, it is the first method of which

    .. math:: \bar d \le \sqrt{\textstyle\sum_i w_i^2 (d_i - \bar d)^2} \Big/ \textstyle\sum_i w_i

    (one standard error) and whose mean loss is below that of doing nothing; 0 where nothing is. The lowest of several
    losses is often that of a method which follows noise; this rule chooses it less often.

    References: Breiman, Friedman, Olshen & Stone (1984), section 3.4.3.

    >>> losses = np.array([[.9, .7, .8, .8], [.4, .6, .5, .3], [.3, .5, .6, .3]])
    >>> plainest(losses, np.ones(4)), plainest(losses[[0, 0]], np.ones(4))
    (1, 0)
    """
    means = losses @ weight / weight.sum()
    best = int(np.argmin(means))
    if best == 0:
        return 0
    with np.errstate(invalid="ignore"):  # doing nothing may have infinite losses
        apart, gaps = losses - losses[best], means - means[best]
        errors = np.sqrt(np.square(weight * (apart - gaps[:, None])).sum(axis=1)) / weight.sum()
        return int(np.argmax((gaps <= errors) & (means < means[0])))


@dataclass(frozen=True)
class Gain:
    """How much lower the log loss gets when the method that looks best is chosen.

    >>> gain = Gain(-0.01, Interval(-0.03, 0.01, 0.9, "corrected t", "folds", 5))
    >>> print(gain.by(), "-", gain.doubt)
    0.0100 (90% interval of the gain -0.0300 to 0.0100) - The interval holds 0: on new data the gain may be none.
    """

    value: float
    interval: Interval

    @property
    def is_loss(self) -> bool:
        """Whether the log loss rises instead."""
        return round(self.value, 4) < 0

    def by(self, where: str = "") -> str:
        """By how much the log loss falls, or rises, and the interval."""
        low, high = (round(end, 4) + 0.0 for end in (self.interval.low, self.interval.high))  # never -0.0000
        of = " of the gain" if self.is_loss else ""
        return f"{abs(self.value):.4f}{where} ({100 * self.interval.level:g}% interval{of} {low:.4f} to {high:.4f})"

    @property
    def doubt(self) -> str:
        """What the interval leaves open; empty where new data gain."""
        if round(self.interval.low, 4) > 0:
            return ""
        if self.interval.high < 0:
            return "The whole interval is below 0: on new data the log loss is likely to rise, so change nothing."
        return "The interval holds 0: on new data the gain may be none."


def gain_of_choosing(
    forecasts: Mapping[str, Predictions], fold: Ints, level: float = 0.9, cluster: Ints | None = None
) -> Gain:
    r"""What is choosing worth, on rows that had no say in the choice?

    The best of several methods looks better than it is on the rows that it was chosen on. So for each fold j the method
    that is chosen on the other folds (`plainest`) is held against the first, which does nothing, on fold j: its mean
    loss is lower by :math:`g_j`. The value is the mean of the J gains. They share most of the rows that methods were
    fitted on, so that their plain standard error is too small; the interval is

    .. math:: \bar g \pm t_{J-1} \, s \sqrt{1/J + 1/(J-1)}

    with s their standard deviation, t Student's, and 1 / (J - 1) the rows of a fold for each row outside of it. Folds
    have equal shares of each class, so that they do not show what chance does to those shares. Where Student's interval
    of the mean gain over rows (over clusters, where they are given) is wider, it is that one. Methods with infinite
    losses are left out.

    References: Nadeau & Bengio (2003), section 3.

    >>> even = Predictions.from_probs([0, 1, 0, 1] * 9, [.5] * 36)
    >>> sure = Predictions.from_probs([0, 1, 0, 1] * 9, [.25, .75, .25, .75] * 9)
    >>> round(gain_of_choosing({"unchanged": even, "sharper": sure}, np.arange(36) % 3).value, 4)  # ln 0.75 - ln 0.5
    0.4055
    """
    losses, weight, counted = _compared(forecasts)
    losses, fold = losses[np.isfinite(losses).all(axis=1)], fold[counted]
    gains, lower = [], np.zeros(len(fold))
    for index in np.unique(fold):
        inside = fold == index
        best = plainest(losses[:, ~inside], weight[~inside])
        lower[inside] = losses[0, inside] - losses[best, inside]
        gains.append(lower[inside] @ weight[inside] / weight[inside].sum())
    count, middle = len(gains), float(np.mean(gains))
    owner = np.arange(len(fold)) if cluster is None else np.unique(cluster[counted], return_inverse=True)[1].ravel()
    moves = np.bincount(owner, weight * (lower - middle)) / weight.sum()
    reach = max(
        student(level, count - 1) * float(np.std(gains, ddof=1)) * math.sqrt(1 / count + 1 / (count - 1)),
        student(level, len(moves) - 1) * math.sqrt(moves @ moves * len(moves) / max(1, len(moves) - 1)),
    )
    return Gain(middle, Interval(middle - reach, middle + reach, level, "corrected t", "folds", count))


def _compared(forecasts: Mapping[str, Predictions]) -> tuple[Floats, Floats, Mask]:
    """The log losses (methods, rows) of rows that count, their weights, and which rows those are."""
    first = next(iter(forecasts.values()))
    weight = np.ones(len(first)) if first.weight is None else first.weight
    counted = weight > 0
    return np.stack([_losses(rows)[counted] for rows in forecasts.values()]), weight[counted], counted


def _losses(predictions: Predictions) -> Floats:
    """The log loss of every row; of labels, its mean over them."""
    return log_score(Full()(predictions)).mean(axis=1)


def _count_infinite(predictions: Predictions) -> int:
    infinite = np.isinf(_losses(predictions))
    return int(np.count_nonzero(infinite if predictions.weight is None else infinite & (predictions.weight > 0)))


def compared_by(predictions: Predictions) -> dict[str, Metric]:
    """The metrics that methods are compared by.

    >>> list(compared_by(Predictions.from_probs([0, 1], [.2, .9])))
    ['log loss', 'Brier', 'ECE']
    """
    metrics: dict[str, Metric] = {"log loss": LOG_LOSS, "Brier": BRIER, "ECE": ECE}
    return metrics if predictions.forecasts.of_events else {**metrics, "SCE": SCE}
