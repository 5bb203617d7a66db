"""Class-wise temperatures: one temperature a class, spread by how over-confident rows of that class are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant import kernels
from calibrant.aggregates import ZERO
from calibrant.binning.fixed import EqualWidth
from calibrant.checks import flag, number, whole, word
from calibrant.door.arrays import Array
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import Lesson, ModelScores
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.temperature import COLDEST, HOTTEST, fit_on_grid, fit_temperature
from calibrant.recipes import CWMCS

GAMMAS = np.arange(-999, 1000) / 1000
"""Spreads among which the calibration error is minimised, unless others are asked for."""
FARTHEST = 10.0
"""The largest spread that may be asked for."""
MOST_BINS = 1000
"""Bins that are allowed: there is a table of them for each spread."""
_SAME = 1e-12
"""Errors and accuracies that differ by less are equal: sums of floats depend on the order of rows by as much."""
_BLOCK = 1 << 16
"""Logits that are worked on at once: they stay in cache through all spreads."""


@dataclass(eq=False)
class ClasswiseMCSTemperatureScaling(Recalibrator):
    r"""Divide the logits of class k by a temperature of its own, higher where rows of that class are over-confident.

    .. math:: \hat p_{ik} \propto e^{z_{ik} / T_k}, \qquad T_k = T (1 + \gamma u_k), \qquad
        u_k = \mathrm{MCS}_k \,/\, \max_j |\mathrm{MCS}_j|

    T minimises the mean log loss, as in `TemperatureScaling`. :math:`\mathrm{MCS}_k`, mean confidence less accuracy of
    the rows whose true class is k, is taken after dividing by T; a class without rows has u = 0, and all are 0 where no
    score exceeds 1e-7. Gamma is the first of -0.999, -0.998, ..., 0.999 with the smallest top-label ECE (`n_bins`
    right-closed bins of equal width), and 0 where none is smaller than at 0; errors within 1e-12 are equal. As
    :math:`|\gamma u_k| < 1`, no temperature is 0 or negative. A warning tells when T or gamma ends at a bound.

    With `objective="ece"`, T is the first of 0.5, 0.51, ..., 1.99 with the smallest top-label ECE in 15 bins, as in the
    paper's own temperature scaling. The authors' program divides by the largest score, :math:`\max_j \mathrm{MCS}_j`
    (`signed_maximum`; where every class is under-confident that turns all signs, and each u is at least 1), clips
    scores (`clip_iqr`) and looks for gamma in [-2, 2) (`reach=2`). A gamma that would make a temperature 0 or negative
    is left out.

    `clip_iqr` first brings scores beyond the quartiles by more than 1.5 times their distance back to there (quartiles
    of the classes that have rows, by midpoints). Other divisors in other columns can change the likeliest class:
    `keep_accuracy` leaves out each gamma that lowers the accuracy on these rows; the certificate has both accuracies.
    Nor is the map the same when a constant is added to a row: raw logits and logarithms of their softmax are different
    scores. An event is the two columns of its scores: (0, z) for logits, where the first temperature has nothing to
    divide and the map is sigmoid(z / T_1); (ln(1 - p), ln p) for probabilities, where both act.

    Costs 1,999 softmaxes of the rows, twice as many with a reach of 2; nothing larger than the rows is held.

    References: Ao, Rueger & Siddharthan (2023), eqs. 9-10.

    >>> logits = [[2., 0., 0.], [1., 0., 0.], [0., 3., 0.], [0., 2., 0.], [0., 1., 1.5], [0., 0., 2.]]
    >>> fitted = ClasswiseMCSTemperatureScaling(n_bins=5).fit(logits, [0, 1, 1, 1, 1, 2])
    >>> fitted.gamma_, fitted.scores_.round(4).tolist(), fitted.temperatures_.round(4).tolist()
    (-0.413, [-0.4624, 1.0, -0.4624], [0.9059, 0.4465, 0.9059])
    """

    input: str = "logits"
    n_bins: int = 15
    clip_iqr: bool = False
    keep_accuracy: bool = False
    objective: str = "nll"
    signed_maximum: bool = False
    reach: float = 1.0
    classes: Sequence[Any] | None = None
    short: ClassVar[str] = "cwmcs"
    of_events: ClassVar[bool] = False
    costly: ClassVar[bool] = True
    learns: ClassVar[tuple[str, ...]] = ("temperature_", "gamma_", "scores_", "temperatures_")
    later: ClassVar[tuple[str, ...]] = ("objective", "signed_maximum", "reach")

    def _check(self) -> None:
        super()._check()
        whole(self.n_bins, "n_bins", 1, MOST_BINS)
        word(self.objective, "objective", "nll", "ece")
        number(self.reach, "reach", f"must lie in (0, {FARTHEST:g}]", lambda reach: 0 < reach <= FARTHEST)
        for name in ("clip_iqr", "keep_accuracy", "signed_maximum"):
            flag(getattr(self, name), name)

    def _learn(self, lesson: Lesson) -> Ending:
        logits = lesson.scores.logits.astype(np.float64)
        data, tried = (logits, lesson.labels, lesson.weight), gammas(self.reach)
        fit = fit_temperature if self.objective == "nll" else fit_on_grid
        self.temperature_, ending = fit(*data)
        scores = class_scores(logits / self.temperature_, lesson.labels, lesson.weight)
        self.scores_ = normalised(scores, clip_iqr=self.clip_iqr, signed_maximum=self.signed_maximum)
        errors, accuracies = errors_by_gamma(*data, self.temperature_, self.scores_, self.n_bins, tried)
        self.gamma_ = best_gamma(errors, accuracies, tried, keep_accuracy=self.keep_accuracy)
        self.temperatures_ = temperatures(self.temperature_, self.gamma_, self.scores_)
        at_bound, message = ending.at_bound, ending.message
        if abs(self.gamma_) == tried[-1]:
            at_bound += ("gamma",)
            message = "; ".join(filter(None, [message, f"gamma ended at {self.gamma_:g}, the end of what is tried"]))
        return Ending(ending.converged, ending.gradient_norm, ending.iterations + len(tried), at_bound, message)

    def require_possible(self) -> None:
        possible.numbers(self.temperature_, "temperature_", low=COLDEST, high=HOTTEST)
        ends = gammas(self.reach)[[0, -1]].tolist()
        possible.numbers(self.gamma_, "gamma_", low=ends[0], high=ends[1])
        bounds = {} if self.signed_maximum else {"low": -1.0, "high": 1.0}
        possible.numbers(self.scores_, "scores_", len(self.classes_), **bounds)
        possible.numbers(self.temperatures_, "temperatures_", len(self.classes_), low=np.finfo(float).tiny)
        if not np.allclose(self.temperatures_, temperatures(self.temperature_, self.gamma_, self.scores_), atol=0.0):
            raise ValueError("temperatures_ are not T (1 + gamma u)")

    def _logits(self, scores: ModelScores) -> Array:
        return scores.restored(scores.logits.astype(np.float64) / self.temperatures_)

    @property
    def affine(self) -> tuple[Floats, Floats]:
        """W and b."""
        return np.diag(1.0 / self.temperatures_), np.zeros(len(self.classes_))


def class_scores(logits: Floats, labels: Ints, weight: Floats) -> Floats:
    """Mean confidence less accuracy of the rows of each true class; nan for a class without rows.

    >>> class_scores(np.zeros((3, 2)), np.array([0, 0, 1]), np.ones(3)).tolist()
    [-0.5, 0.5]
    """
    return np.array(CWMCS(Predictions.from_logits(labels, logits, sample_weight=weight, copy=False)).values)


def normalised(scores: Floats, *, clip_iqr: bool = False, signed_maximum: bool = False) -> Floats:
    """Scores over the largest size, or over the largest score; 0 for those that are nan, and for all where that is 0.

    >>> scores = np.array([0.1, -0.2, np.nan])
    >>> normalised(scores).tolist(), normalised(scores, signed_maximum=True).tolist()
    ([0.5, -1.0, 0.0], [1.0, -2.0, 0.0])
    """
    if clip_iqr:
        low, high = np.nanpercentile(scores, [25, 75], method="midpoint")
        scores = np.clip(scores, low - 1.5 * (high - low), high + 1.5 * (high - low))
    most = np.nanmax(scores) if signed_maximum else np.nanmax(np.abs(scores))
    return np.nan_to_num(scores / most, nan=0.0) if abs(most) > ZERO else np.zeros(len(scores))


def gammas(reach: float) -> Floats:
    """The multiples of 0.001 between -reach and reach, both ends left out.

    >>> gammas(2.0)[[0, -1]].tolist(), len(gammas(1.0))
    ([-1.999, 1.999], 1999)
    """
    steps = math.ceil(1000 * reach) - 1
    return np.arange(-steps, steps + 1) / 1000


def temperatures(temperature: float, gamma: float, scores: Floats) -> Floats:
    """One temperature a class.

    >>> temperatures(2.0, -0.5, np.array([1.0, 0.0, -0.5])).tolist()
    [1.0, 2.0, 2.5]
    """
    return temperature * (1 + gamma * scores)


def best_gamma(errors: Floats, accuracies: Floats, tried: Floats = GAMMAS, *, keep_accuracy: bool = False) -> float:
    """The first gamma with the smallest error among those allowed; 0 where none is smaller than at 0.

    >>> best_gamma(np.abs(GAMMAS - 0.25), np.ones(len(GAMMAS)))
    0.25
    """
    still = len(tried) // 2
    allowed = accuracies >= accuracies[still] - _SAME if keep_accuracy else np.ones(len(tried), bool)
    smallest = errors[allowed].min()
    if errors[still] <= smallest + _SAME:
        return 0.0
    return float(tried[np.argmax(allowed & (errors <= smallest + _SAME))])


def errors_by_gamma(
    logits: Floats,
    labels: Ints,
    weight: Floats,
    temperature: float,
    scores: Floats,
    n_bins: int,
    tried: Floats = GAMMAS,
) -> tuple[Floats, Floats]:
    """Top-label ECE and accuracy at each gamma, block of rows by block of rows.

    A gamma that makes a temperature 0 or negative has an infinite error and no accuracy.

    >>> errors, accuracies = errors_by_gamma(np.array([[1., 0.]]), np.array([0]), np.ones(1), 1., np.array([0., 1.]), 5)
    >>> errors[999].round(6), accuracies[999]  # 1 - sigmoid(1)
    (np.float64(0.268941), np.float64(1.0))
    """
    edges = EqualWidth(n_bins).edges
    gaps, right = np.zeros((len(tried), n_bins)), np.zeros(len(tried))
    positive = np.array([(temperatures(temperature, gamma, scores) > 0).all() for gamma in tried])
    gaps[~positive], right[~positive] = np.inf, -np.inf
    step = max(1, _BLOCK // logits.shape[1])
    for start in range(0, len(labels), step):
        rows = slice(start, start + step)
        columns = np.ascontiguousarray(logits[rows].T)  # classes first: sums over them run along rows
        work = np.empty_like(columns)
        for index in np.flatnonzero(positive):
            np.divide(columns, temperatures(temperature, tried[index], scores)[:, None], out=work)
            confidence, hits = _answers(work, labels[rows])
            cells = kernels.scalar_codes(confidence, edges[1:-1], "right", 0.0)
            gaps[index] += np.bincount(cells, (confidence - hits) * weight[rows], n_bins)
            right[index] += hits @ weight[rows]
    return np.abs(gaps).sum(axis=1) / weight.sum(), right / weight.sum()


def _answers(columns: Floats, labels: Ints) -> tuple[Floats, Floats]:
    """Confidence of the likeliest class and whether it is true, from logits (K, n), which are overwritten."""
    columns -= columns.max(axis=0)
    leads = columns == 0
    if np.count_nonzero(leads) == len(labels):
        hits = leads[labels, np.arange(len(labels))]
    else:  # ties go to the first
        hits = leads.argmax(axis=0) == labels
    return 1.0 / np.exp(columns, out=columns).sum(axis=0), hits.astype(np.float64)
