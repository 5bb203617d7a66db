"""Diagnostics: what stands beside a calibration error to explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from calibrant.checks import intervals
from calibrant.errors.mean_score import MeanScore, Score, entropy, hit, output
from calibrant.errors.risk import RiskCoverage as RiskCoverage
from calibrant.kernels.totals import Floats
from calibrant.lenses.distributions import Full, Groups
from calibrant.lenses.events import Answered, InTopK, Ranked, TopLabel
from calibrant.lenses.lens import Lens
from calibrant.predictions import Predictions
from calibrant.selections import within
from calibrant.views import View


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

    References: Geifman & El-Yaniv (2017); Ao, Rueger & Siddharthan (2023), section 4.4, by entropy.

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
