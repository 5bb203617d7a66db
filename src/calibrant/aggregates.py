"""Aggregates: how the pools of a question are combined, and how questions are.

An aggregate maps distances (v, b) and their `Bins` to one number per question, (v,); an across rule maps
those numbers and the questions' sizes to one number with named details.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.bins import Bins
from calibrant.checks import number, order
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.specification.facts import UNKNOWN, Facts, as_they_are, declare, or_nothing

Aggregate = Callable[[Floats, Bins], Floats]
ZERO = 1e-7
"""A signed value this small is zero: .66 and .34 add up to 1 in decimals, not in float32."""
Across = Callable[[Floats, Floats], dict[str, float]]


@declare(Facts("aggregate", passes=lambda facts: _of_order(facts, 1.0), words="", rises="sum"))
def mean(distances: Floats, bins: Bins) -> Floats:
    r"""Every sample counts the same: :math:`\sum_b \frac{n_b}{n} d_b`.

    >>> import calibrant as cal
    >>> cal.BinnedError(aggregate=cal.mean) == cal.ECE
    True
    """
    with np.errstate(invalid="ignore"):
        return _summed(bins.counts * distances, bins) / bins.held


@declare(Facts("aggregate", passes=lambda facts: _rooted(facts, 2.0), rises="sum"))
def root_mean(distances: Floats, bins: Bins) -> Floats:
    r"""The square root of the mean, 0 where the mean is negative: :math:`\sqrt{\max(0, \sum_b \frac{n_b}{n} d_b)}`.

    >>> import calibrant as cal
    >>> round(cal.RMSCE([1, 0], [.9, .9]).value, 10)
    0.4
    """
    return np.sqrt(np.maximum(mean(distances, bins), 0.0))


@dataclass(frozen=True)
class root:  # noqa: N801 - an aggregate reads as a function
    r"""The p-th root of the mean: :math:`(\max(0, \sum_b \frac{n_b}{n} d_b))^{1/p}`; with `power(p)`, the L^p error.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(distance=cal.power(3), aggregate=cal.root(3))
    >>> round(metric([1, 0], [.9, .9]).value, 10)
    0.4
    """

    p: float

    def __post_init__(self) -> None:
        order(self.p, "root")

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return Facts("aggregate", passes=lambda facts: _rooted(facts, self.p), rises="sum")

    def __call__(self, distances: Floats, bins: Bins) -> Floats:
        return np.power(np.maximum(mean(distances, bins), 0.0), 1 / self.p)


@declare(Facts("aggregate", passes=lambda facts: _of_order(facts, 0.0), rises="each"))
def maximum(distances: Floats, bins: Bins) -> Floats:
    r"""The worst bin that holds samples: :math:`\max_{b: n_b > 0} d_b`.

    >>> import calibrant as cal
    >>> round(cal.MCE([1, 0], [.95, .2]).value, 10)
    0.2
    """
    filled = bins.counts > 0
    return np.where(filled.any(axis=1), np.where(filled, distances, -np.inf).max(axis=1), np.nan)


@dataclass(frozen=True)
class sample_quantile:  # noqa: N801 - an aggregate reads as a function
    r"""The q-quantile of the distances, each bin counted as often as it has samples.

    Of the n sorted distances it is the one at place (n - 1) q, counted from 0, in between a straight line: what
    `numpy.quantile` and R's default give for the distances repeated.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(aggregate=sample_quantile(0.5))
    >>> round(metric([1, 0, 0], [.95, .2, .4]).value, 10)  # of .05, .2 and .4
    0.2
    """

    q: float

    def __post_init__(self) -> None:
        number(self.q, "q", "must lie in [0, 1]", lambda share: 0 <= share <= 1)

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        words = f"{self.q:g} quantile"
        return Facts("aggregate", passes=lambda facts: _of_order(facts, 0.0), words=words, rises="counted")

    def __call__(self, distances: Floats, bins: Bins) -> Floats:
        return np.array([self._of(*question) for question in zip(distances, bins.counts, strict=True)])

    def _of(self, distances: Floats, counts: Floats) -> float:
        ascending = np.argsort(distances, kind="stable")
        ends = np.cumsum(counts[ascending])
        if not ends[-1] > 0:
            return float("nan")
        place = max(ends[-1] - 1.0, 0.0) * self.q
        low, high = distances[ascending][np.searchsorted(ends, [np.floor(place), np.ceil(place)], side="right")]
        return float(low + (place - np.floor(place)) * (high - low))


@declare(Facts("aggregate", passes=lambda facts: _of_order(or_nothing(facts), 0.0), rises="each"))
def uniform(distances: Floats, bins: Bins) -> Floats:
    r"""Every requested bin counts the same: :math:`\sum_{b: n_b > 0} \frac1r d_b`, r the number of bins asked for.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(binning=cal.EqualMass(2), aggregate=cal.uniform)
    >>> round(metric([1, 0], [.9, .2]).value, 10)
    0.15
    """
    if bins.cells is not None:
        raise CalibrationInputError(
            "uniform", "needs a known number of bins", got="a Grid", hint="use mean, or EqualWidth on a scalar lens"
        )
    filled = bins.counts > 0
    return np.where(filled.any(axis=1), _summed(np.where(filled, distances, 0.0), bins) / bins.requested, np.nan)


@declare(Facts("across", passes=as_they_are, keeps_one=True, words="mean of parts", rises="each"))
def mean_of(values: Floats, sizes: Floats) -> dict[str, float]:
    r"""The plain mean over questions; those without samples are left out.

    >>> import calibrant as cal
    >>> cal.mean_of(np.array([.1, .3, np.nan]), np.array([5., 5., 0.]))
    {'value': 0.2}
    """
    filled = sizes > 0
    return {"value": _ratio(values[filled].sum(), filled.sum())}


@declare(Facts("across", passes=or_nothing, keeps_one=True, rises="each"))
def mean_of_all(values: Floats, sizes: Floats) -> dict[str, float]:
    r"""The plain mean over all questions; one without samples counts 0 (all without: nan).

    >>> import calibrant as cal
    >>> round(cal.mean_of_all(np.array([.1, .2, np.nan]), np.array([5., 5., 0.]))["value"], 10)
    0.1
    """
    filled = sizes > 0
    return {"value": _ratio(values[filled].sum(), len(values) if filled.any() else 0)}


@declare(Facts("across", passes=lambda facts: _rooted(facts, 2.0), words="root of the mean of parts", rises="each"))
def root_mean_of(values: Floats, sizes: Floats) -> dict[str, float]:
    r"""The root of the mean over questions, 0 where that is negative: :math:`\sqrt{\max(0, \frac1K \sum_k e_k)}`.

    For squares, of which no root was taken in a question: with `debiased_squared` and `mean`, what each class lacks may
    be negative and makes up for others before the root. Questions without samples are left out. The mean itself is the
    detail `signed_square`.

    References: Kumar, Liang & Ma (2019), section 2, the marginal calibration error with equal weights.

    >>> import calibrant as cal
    >>> round(cal.root_mean_of(np.array([.05, -.01]), np.array([5., 5.]))["value"], 10)
    0.1414213562
    """
    square = mean_of(values, sizes)["value"]
    return {"value": float(np.sqrt(np.maximum(square, 0.0))), "signed_square": square}


@declare(Facts("across", passes=as_they_are, keeps_one=True, rises="counted"))
def weighted_by_size(values: Floats, sizes: Floats) -> dict[str, float]:
    r"""Questions weighted by their samples: :math:`\sum_k \frac{n_k}{N} e_k`.

    References: Ao, Rueger & Siddharthan (2023), wsECE.

    >>> import calibrant as cal
    >>> round(cal.weighted_by_size(np.array([.1, .4]), np.array([2., 1.]))["value"], 10)
    0.2
    """
    filled = sizes > 0
    return {"value": _ratio((values[filled] * sizes[filled]).sum(), sizes.sum())}


@declare(Facts("across", passes=lambda facts: facts if facts.low >= 0 else _unbounded(facts)))
def contraharmonic(values: Floats, sizes: Floats) -> dict[str, float]:
    r"""Questions weighted by their own error: :math:`\sum_k e_k^2 / \sum_k e_k`, 0 if all are 0.

    >>> import calibrant as cal
    >>> round(cal.contraharmonic(np.array([.1, .3]), np.array([1., 1.]))["value"], 10)
    0.25
    """
    errors = values[sizes > 0]
    if len(errors) and not errors.any():
        return {"value": 0.0}
    return {"value": _ratio(np.square(errors).sum(), errors.sum())}


@declare(Facts("across", passes=or_nothing, rises="counted"))
def signed_balance(values: Floats, sizes: Floats) -> dict[str, float]:
    r"""Over- and under-confident questions weighed against each other, with their parts as details.

    .. math:: \frac{k_+}{K} \sum_{e_k > 0} \frac{n_k}{N} e_k + \frac{k_-}{K} \sum_{e_k < 0} \frac{n_k}{N} e_k

    K counts questions that have samples; k+ and k- those with positive and negative value (zero, to 1e-7,
    counts in neither). `mean_over` and `mean_under` are plain means over those questions, 0 where there is none.

    References: Ao, Rueger & Siddharthan (2023), eqs. 6-8.

    >>> import calibrant as cal
    >>> parts = cal.signed_balance(np.array([.2, -.1]), np.array([1., 1.]))
    >>> round(parts["value"], 10), parts["share_over"], parts["mean_under"]
    (0.025, 0.5, -0.1)
    """
    filled = sizes > 0
    values, sizes = values[filled], sizes[filled]
    questions, total = len(values), sizes.sum()
    parts: dict[str, float] = {}
    for name, side in (("over", values > ZERO), ("under", values < -ZERO)):
        parts[f"weighted_{name}"] = _ratio((values[side] * sizes[side]).sum(), total)
        parts[f"share_{name}"] = _ratio(side.sum(), questions)
        parts[f"mean_{name}"] = float(values[side].mean()) if side.any() else 0.0
        parts[f"count_{name}"] = int(side.sum())
    value = sum(parts[f"share_{name}"] * parts[f"weighted_{name}"] for name in ("over", "under"))
    return {"value": value, **parts}


def _summed(table: Floats, bins: Bins) -> Floats:
    """Sums over the bins of each question, as if it stood alone: NumPy's sum of a wider row may differ by a bit."""
    filled = bins.counts > 0
    if bins.cells is None:
        widths = np.maximum(bins.requested, table.shape[1] - filled[:, ::-1].argmax(axis=1))
    else:  # of a grid only cells with samples exist
        order = np.argsort(~filled, axis=1, kind="stable")
        table, widths = np.take_along_axis(table, order, axis=1), filled.sum(axis=1)
    sums = np.zeros(len(table))
    for width in set(widths.tolist()):  # np.unique would import numpy.ma, which takes longer than most metrics
        rows = widths == width
        sums[rows] = table[rows, :width].sum(axis=1)
    return sums


def _of_order(facts: Facts, p: float) -> Facts:
    """What is known of a mean whose p-th root makes the L^p error, of gaps that went in to the power of p."""
    return dataclasses.replace(facts, order=p if facts.order == p else None, additive=facts.additive and p == 1)


def _rooted(facts: Facts, p: float) -> Facts:
    """What is known of the p-th root of the mean, cut off at 0."""
    low, high = (max(0.0, end) ** (1 / p) for end in (facts.low, facts.high))
    calibrated = facts.calibrated
    if calibrated is not None:
        calibrated = float(np.maximum(calibrated, 0.0)) ** (1 / p)  # nan stays nan
    known = dataclasses.replace(_of_order(facts, p), low=low, high=high, calibrated=calibrated)
    return dataclasses.replace(known, additive=False, root=p * facts.root)


def _unbounded(facts: Facts) -> Facts:
    return dataclasses.replace(facts, low=UNKNOWN.low, high=UNKNOWN.high)


def _ratio(above: float, below: float) -> float:
    return float(above / below) if below > 0 else float("nan")
