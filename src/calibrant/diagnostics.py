"""Diagnostics: what stands beside a calibration error to explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.checks import intervals
from calibrant.errors.mean_score import MeanScore, Score, entropy, hit, output
from calibrant.errors.risk import RiskCoverage as RiskCoverage
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses.distributions import Full, Groups
from calibrant.lenses.events import Answered, InTopK, Ranked, TopLabel
from calibrant.lenses.lens import Lens
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.selections import within
from calibrant.text import aligned
from calibrant.views import View

if TYPE_CHECKING:
    from calibrant.inference.monotonicity import MonotonicityTest as MonotonicityTest
    from calibrant.inference.monotonicity import monotonicity_test as monotonicity_test


def __getattr__(name: str) -> object:
    """What is loaded when it is first asked for, since it brings the tools of inference."""
    if name not in ("MonotonicityTest", "monotonicity_test"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from calibrant.inference import monotonicity

    return getattr(monotonicity, name)


def mean_ranked_outputs(predictions: Predictions, k: int, baseline: Predictions | None = None) -> Floats:
    """The mean of the largest, second largest, .. k-th largest output; with a baseline, less the baseline's.

    References: Kirchenbauer, Oaks & Heim (2022), figure 2.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.8, .2], [.6, .4]])
    >>> cal.diagnostics.mean_ranked_outputs(p, 2).round(10).tolist()
    [0.7, 0.3]
    """
    means = np.array([MeanScore(Ranked(rank), output)(predictions).value for rank in range(1, k + 1)])
    return means if baseline is None else means - mean_ranked_outputs(baseline, k)


def top_k_accuracies(predictions: Predictions, k: int) -> Floats:
    """How often the truth is among the likeliest 1, 2, .. k classes.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1], [[.8, .2], [.6, .4]])
    >>> cal.diagnostics.top_k_accuracies(p, 2).tolist()
    [0.5, 1.0]
    """
    return np.array([MeanScore(InTopK(rank), hit)(predictions).value for rank in range(1, k + 1)])


def mean_entropy(predictions: Predictions) -> float:
    """The mean entropy of the forecasts, in nats.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0], [[.5, .5]])
    >>> round(cal.diagnostics.mean_entropy(p), 6)
    0.693147
    """
    return MeanScore(Full(), entropy)(predictions).value


def group_outputs(predictions: Predictions, groups: Mapping[str, Sequence[int | str]]) -> dict[str, dict[str, float]]:
    """For the samples whose label is in each group, the mean output given to every group.

    References: Kirchenbauer, Oaks & Heim (2022), figure 4.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 2], [[.5, .3, .2], [.1, .1, .8]])
    >>> outputs = cal.diagnostics.group_outputs(p, {"low": [0, 1], "high": [2]})
    >>> round(outputs["low"]["high"], 10), round(outputs["high"]["high"], 10)
    (0.2, 0.8)
    """
    lens = Groups(groups)
    view = lens(predictions)
    home = lens.home(predictions)[predictions.hard_labels("group_outputs")]
    weight = np.ones(len(home)) if view.weight is None else view.weight
    names = [name for name, _ in lens.groups]
    table = {}
    for index, name in enumerate(names):
        rows = (home == index) & (weight > 0)
        means = np.average(view.outputs[rows, 0], axis=0, weights=weight[rows]) if rows.any() else [np.nan] * len(names)
        table[name] = dict(zip(names, (float(value) for value in means), strict=True))
    return table


def interval_counts(
    predictions: Predictions,
    edges: Sequence[float] | Sequence[tuple[float, float]],
    *,
    lens: Lens = TopLabel(),
    closed: str = "left",
) -> list[int]:
    """How many answers lie in each interval between neighbouring edges (the outer ends are closed at 0 and 1).

    Instead of edges, (low, high) pairs may be given, which need not adjoin.

    References: Kirchenbauer, Oaks & Heim (2022), figure 6 and appendix D.4.3.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1], [.2, .5, 1.])
    >>> cal.diagnostics.interval_counts(p, [0, .33, .66, 1])
    [1, 1, 1]
    >>> cal.diagnostics.interval_counts(p, [(0, .4), (.9, 1)])
    [1, 1]
    """
    pairs = intervals(edges, "interval_counts")
    view = lens(predictions)
    view.require_event("interval_counts", "a scalar lens such as TopLabel()")
    values = view.outputs[:, :, 0]
    kept = np.ones(values.shape, bool) if view.keep is None else view.keep
    return [int((within(values, *pair, closed, view.precision) & kept).sum()) for pair in pairs]


def risk_coverage(predictions: Predictions, uncertainty: Score | None = None) -> RiskCoverage:
    """How the error rate falls as the most uncertain samples are left to somebody else.

    Certainty is the probability of the answer, as in `AURC`; an event is answered with yes above one half. Or pass an
    `uncertainty`, a score of the full forecast such as `entropy`. Equally uncertain samples share their mean error, so
    that row order cannot matter. A weighted sample counts as so many; under soft labels an error is the label mass on
    all other classes.

    References: Geifman & El-Yaniv (2017); Ao, Rueger & Siddharthan (2023), section 5.4, by entropy.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0, 1, 0], [[.9, .1], [.2, .8], [.4, .6]])
    >>> curve = cal.diagnostics.risk_coverage(p)
    >>> curve.risk.round(4).tolist(), curve.accuracy_after_referring(.34), curve.aurc == cal.AURC(p).value
    ([0.0, 0.0, 0.3333], 1.0, True)
    """
    view = Answered()(predictions)
    if uncertainty is None:
        return RiskCoverage.of_view(view)
    whole = predictions if predictions.forecasts.answers else _two_classes(predictions)
    return RiskCoverage.of_view(view, -np.asarray(uncertainty(Full()(whole)), np.float64)[:, 0])


@dataclass(frozen=True, eq=False)
class FailureDetection:
    """Models beside each other: the accuracy that remains when the most uncertain samples are referred, by share."""

    shares: tuple[float, ...]
    curves: Mapping[str, RiskCoverage]

    @property
    def accuracies(self) -> dict[str, Floats]:
        """The accuracy on what is kept, at each share, by model."""
        return {
            name: np.array([curve.accuracy_after_referring(share) for share in self.shares])
            for name, curve in self.curves.items()
        }

    def gains(self, reference: str) -> dict[str, Floats]:
        """By how much each model's accuracy exceeds that of the reference, at each share."""
        accuracies = self.accuracies
        if reference not in accuracies:
            raise CalibrationInputError("reference", "must be one of the models", got=repr(reference))
        return {name: values - accuracies[reference] for name, values in accuracies.items()}

    def __str__(self) -> str:
        header = ["accuracy after referring", *(f"{share:.0%}" for share in self.shares), "AURC", "AUGRC"]
        rows = [
            [
                name,
                *(f"{value:.4f}" for value in values),
                f"{self.curves[name].aurc:.4f}",
                f"{self.curves[name].augrc:.4f}",
            ]
            for name, values in self.accuracies.items()
        ]
        return aligned(header, rows, right=True)


def failure_detection(
    models: Mapping[str, Predictions],
    shares: Sequence[float] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    uncertainty: Score | None = entropy,
) -> FailureDetection:
    """Which model knows best when it errs? Accuracy after referral at every share, with the areas AURC and AUGRC.

    Uncertainty is the entropy of the forecast, or as in `risk_coverage`. Give a model recalibrated by temperature
    scaling as one of the models, and `gains` of its name tells what another method adds to it.

    References: Ao, Rueger & Siddharthan (2023), section 5.4 and figure 2; Traub et al. (2024) for AUGRC.

    >>> import calibrant as cal
    >>> sure = cal.Predictions.from_probs([0, 1, 0, 1], [[.9, .1], [.2, .8], [.4, .6], [.3, .7]])
    >>> flat = cal.Predictions.from_probs([0, 1, 0, 1], [[.9, .1], [.4, .6], [.2, .8], [.3, .7]])
    >>> table = cal.diagnostics.failure_detection({"sure": sure, "flat": flat}, shares=[0, .25, .5])
    >>> print(table)
    accuracy after referring      0%     25%     50%    AURC   AUGRC
    sure                      0.7500  1.0000  1.0000  0.0625  0.0312
    flat                      0.7500  0.6667  0.5000  0.2708  0.1562
    >>> table.gains("flat")["sure"].round(4).tolist()
    [0.0, 0.3333, 0.5]
    """
    if not models or not len(shares):
        raise CalibrationInputError("models", "must have predictions, and shares at which to refer", got="none")
    curves = {name: risk_coverage(predictions, uncertainty) for name, predictions in models.items()}
    return FailureDetection(tuple(map(float, shares)), curves)


@dataclass(frozen=True, eq=False)
class RankChanges:
    """Models by two metrics: their values, their ranks, and the difference, absolute and relative to the first."""

    metrics: tuple[str, str]
    models: tuple[str, ...]
    values: Floats
    """One row a model, one column a metric."""
    ranks: Ints
    """The same shape: 1 for the best; equals share the better rank."""

    @property
    def differences(self) -> Floats:
        """First less second."""
        return self.values[:, 0] - self.values[:, 1]

    @property
    def relative(self) -> Floats:
        """The difference as a share of the first; nan where that is 0."""
        first = self.values[:, 0]
        return np.divide(self.differences, first, out=np.full(len(first), np.nan), where=first != 0)

    @property
    def changed(self) -> tuple[str, ...]:
        """The models whose ranks differ."""
        return tuple(name for name, (a, b) in zip(self.models, self.ranks.tolist(), strict=True) if a != b)

    def __str__(self) -> str:
        header = ["model", *(f"{metric} (rank)" for metric in self.metrics), "difference", "relative", "rank"]
        rows = []
        for place in np.argsort(self.ranks[:, 0], kind="stable").tolist():
            pairs = zip(self.values[place], self.ranks[place], strict=True)
            numbers = [f"{value:.4f} ({rank})" for value, rank in pairs]
            name, gap, share = self.models[place], self.differences[place], self.relative[place]
            rows.append([name, *numbers, f"{gap:+.4f}", f"{share:+.2%}", "changes" if name in self.changed else "same"])
        return aligned(header, rows, right=True)


def rank_changes(models: Mapping[str, Predictions], metrics: Mapping[str, Metric]) -> RankChanges:
    """Does another metric rank these models differently? Two metrics, side by side, model by model.

    Ranks follow what is known of a metric: lower is better, or higher; a signed one by its size.

    References: Roelofs et al. (2022), tables 4 to 7.

    >>> import calibrant as cal
    >>> a = cal.Predictions.from_probs([1, 0, 1, 1], [.9, .2, .6, .8])
    >>> b = cal.Predictions.from_probs([1, 0, 1, 1], [.7, .5, .7, .6])
    >>> print(cal.diagnostics.rank_changes({"a": a, "b": b}, {"ECE": cal.ECE, "MCS": cal.MCS}))
    model  ECE (rank)   MCS (rank)  difference  relative    rank
    a      0.2250 (1)  -0.1250 (1)     +0.3500  +155.56%    same
    b      0.3750 (2)  -0.1250 (1)     +0.5000  +133.33%  changes
    """
    if len(metrics) != 2 or not models:
        raise CalibrationInputError("metrics", "must be two, of at least one model", got=f"{len(metrics)} metrics")
    values = np.array([[metric(each).value for metric in metrics.values()] for each in models.values()])
    sizes = np.column_stack(
        [_badness(metric, column) for metric, column in zip(metrics.values(), values.T, strict=True)]
    )
    ranks = 1 + (sizes[None] < sizes[:, None] - _SAME).sum(axis=1)
    first, second = metrics
    return RankChanges((first, second), tuple(models), values, ranks)


_SAME = 1e-12
"""Values that differ by less share a rank."""


def _badness(metric: Metric, values: Floats) -> Floats:
    """Larger is worse."""
    facts = metric.facts
    if facts.lower_is_better is None and facts.calibrated is not None:
        return np.abs(values - np.nan_to_num(facts.calibrated))
    return -values if facts.lower_is_better is False else values


def doubt(view: View) -> Floats:
    """1 less the largest output of the forecast.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([0], [[.75, .25]])
    >>> cal.diagnostics.doubt(cal.Full()(p)).tolist()
    [[0.25]]
    """
    return 1.0 - view.outputs.max(axis=2).astype(np.float64)


def _two_classes(event: Predictions) -> Predictions:
    labels, values = event.hard_labels("risk_coverage"), event.values.astype(np.float64)
    if event.logits:
        return Predictions.from_logits(labels, np.column_stack([np.zeros_like(values), values]), copy=False)
    return Predictions.from_probs(labels, np.column_stack([1.0 - values, values]), copy=False)
