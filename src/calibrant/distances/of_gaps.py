"""Distances of gaps: how far the mean forecast of a pool lies from the mean outcome."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.binning.bounds import Gaps
from calibrant.bins import Bins
from calibrant.checks import flag, numbers, order
from calibrant.distances.distance import error_of, require_event
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.specification.facts import Facts, declare
from calibrant.specification.naming import later


@declare(dataclasses.replace(error_of(1.0, 1.0), words=""))
def tvd(bins: Bins) -> Floats:
    r"""Total variation distance: half the summed absolute gaps; for an event, the absolute gap.

    .. math:: \tfrac12 \sum_j |\bar p_{bj} - \bar y_{bj}|, \qquad |\bar p_b - \bar y_b| \text{ for one coordinate}

    >>> import calibrant as cal
    >>> cal.tvd(cal.ECE([1, 0], [.95, 1.0]).bins).max().round(3)
    np.float64(0.475)
    """
    gaps = np.abs(bins.gap).sum(axis=2)
    return gaps if bins.shape[2] == 1 else gaps / 2


@declare(error_of(2.0, 2.0))
def squared(bins: Bins) -> Floats:
    r"""Squared Euclidean gap :math:`\sum_j (\bar p_{bj} - \bar y_{bj})^2`.

    >>> import calibrant as cal
    >>> cal.squared(cal.ECE([1, 0], [.9, .9]).bins).max().round(3)
    np.float64(0.16)
    """
    return np.square(bins.gap).sum(axis=2)


_SIGNED = Facts("distance", low=-1.0, high=1.0, sides=2, calibrated=0.0, additive=True)


@declare(dataclasses.replace(_SIGNED, within=lambda gaps: (gaps.low, gaps.high)))
def signed(bins: Bins) -> Floats:
    r"""Signed gap :math:`\bar p_b - \bar y_b` of an event: positive where the forecasts are over-confident.

    >>> import calibrant as cal
    >>> round(cal.MCS([1, 0], [.9, .9]).value, 10)
    0.4
    """
    require_event(bins, "signed")
    return bins.gap[:, :, 0]


def _debiased_within(gaps: Gaps) -> tuple[Floats, Floats]:
    """A variance is largest where the frequency is nearest to one half, and smallest at an end."""
    even = np.clip(0.5, gaps.rarely, gaps.often)
    largest = even * (1 - even) / np.maximum(gaps.few - 1, 1.0)
    smallest = np.minimum(gaps.rarely * (1 - gaps.rarely), gaps.often * (1 - gaps.often))
    low = np.square(gaps.least) - largest
    high = np.square(gaps.most) - smallest / np.maximum(gaps.many - 1, 1.0)
    single, several = gaps.few <= 1, gaps.many > 1
    low = np.where(several, np.where(single, np.minimum(low, 0.0), low), 0.0)
    return low, np.where(several, np.where(single, np.maximum(high, 0.0), high), 0.0)


@declare(dataclasses.replace(error_of(2.0, 2.0), low=-math.inf, tends_to=squared, within=_debiased_within))
def debiased_squared(bins: Bins) -> Floats:
    r"""Squared gap of each bin less its sampling bias; may be negative.

    .. math:: \sum_j \Big[(\bar p_{bj} - \bar y_{bj})^2 - \frac{\bar y_{bj} (1 - \bar y_{bj})}{n_b - 1}\Big]

    A bin with one sample has no variance estimate and contributes 0. Needs hard labels and whole weights.

    References: Kumar, Liang & Ma (2019), section 5.

    >>> import calibrant as cal
    >>> round(cal.ECE_DEBIASED([1, 0] * 5, [.9] * 10).value, 10)  # one tie group, shared by 15 bins of at most one
    0.0
    """
    if bins.about.soft:
        raise CalibrationInputError("debiased_squared", "needs one true class per row", got="soft labels")
    if bins.about.fractional:
        raise CalibrationInputError("debiased_squared", "counts samples, so weights must be whole", got="fractions")
    size = bins.counts[:, :, None]
    rate = np.nan_to_num(bins.frequency)
    variance = rate * (1 - rate) / np.where(size > 1, size - 1, 1.0)
    return np.where(bins.counts > 1, (np.square(bins.gap) - variance).sum(axis=2), 0.0)


@dataclass(frozen=True)
class power:  # noqa: N801 - a distance reads as a function
    r"""The p-th powers of the gaps: :math:`\sum_j |\bar p_{bj} - \bar y_{bj}|^p`.

    >>> import calibrant as cal
    >>> cal.power(3)(cal.ECE([1, 0], [.9, .9]).bins).max().round(3)
    np.float64(0.064)
    """

    p: float

    def __post_init__(self) -> None:
        order(self.p, "power")

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return error_of(2.0, self.p)

    def __call__(self, bins: Bins) -> Floats:
        return np.power(np.abs(bins.gap), self.p).sum(axis=2)


@dataclass(frozen=True)
class lp:  # noqa: N801
    r"""The vector norm of the gap: :math:`(\sum_j |\bar p_{bj} - \bar y_{bj}|^p)^{1/p}`; l1 is twice the TVD.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(lens=cal.Full(), binning=cal.KDTree(1), distance=cal.lp(1))
    >>> round(metric([0, 0], [[.9, .1], [.7, .3]]).value, 10)
    0.4
    """

    p: float

    def __post_init__(self) -> None:
        order(self.p, "lp")

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return error_of(2.0, 1.0)

    def __call__(self, bins: Bins) -> Floats:
        return np.power(np.power(np.abs(bins.gap), self.p).sum(axis=2), 1 / self.p)


@dataclass(frozen=True, init=False)
class weighted:  # noqa: N801
    r"""Weighted Euclidean gap :math:`\sqrt{\sum_j w_j (\bar p_{bj} - \bar y_{bj})^2}`, one weight per coordinate.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(lens=cal.Full(), binning=cal.KDTree(1), distance=cal.weighted([1, 3]))
    >>> round(metric([0, 0], [[.9, .1], [.7, .3]]).value, 10)
    0.4
    """

    w: tuple[float, ...]

    def __init__(self, w: Sequence[float]) -> None:
        expected = "needs finite weights of at least 0, some above"
        weights = numbers(w, "weighted", expected)
        if not all(0 <= weight < np.inf for weight in weights) or not any(weights):
            raise CalibrationInputError("weighted", expected, got=str(weights))
        object.__setattr__(self, "w", weights)

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return error_of(math.sqrt(2.0 * max(self.w)), None)

    def __call__(self, bins: Bins) -> Floats:
        _require_coordinates(bins, len(self.w), "weighted")
        return np.sqrt((np.square(bins.gap) * np.array(self.w)).sum(axis=2))


@dataclass(frozen=True, init=False)
class mahalanobis:  # noqa: N801
    r"""Generalised Mahalanobis distance :math:`\sqrt{g M g^\top}` of the gap g; M symmetric, positive semi-definite.

    With `semidefinite=False` any square matrix is taken, such as costs of confusions by hand. That is no metric any
    more: a bin whose form is negative counts 0, though its gap is not 0. Of a matrix that is not symmetric the mean
    with its transpose decides.

    References: Kirchenbauer, Oaks & Heim (2022), eq. 11 and appendix A.2.

    >>> import calibrant as cal
    >>> metric = cal.BinnedError(lens=cal.Full(), binning=cal.KDTree(1), distance=cal.mahalanobis([[1, 0], [0, 3]]))
    >>> round(metric([0, 0], [[.9, .1], [.7, .3]]).value, 10)
    0.4
    """

    M: tuple[tuple[float, ...], ...]
    semidefinite: bool = later(True)

    def __init__(self, M: ArrayLike, semidefinite: bool = True) -> None:  # noqa: N803 - the paper's letter
        flag(semidefinite, "semidefinite")
        matrix = _square(M)
        if semidefinite:
            _require_metric(matrix)
        object.__setattr__(self, "M", tuple(tuple(float(entry) for entry in row) for row in matrix))
        object.__setattr__(self, "semidefinite", bool(semidefinite))

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return error_of(math.inf, None)

    def __call__(self, bins: Bins) -> Floats:
        _require_coordinates(bins, len(self.M), "mahalanobis")
        form = np.einsum("vbi,ij,vbj->vb", bins.gap, np.array(self.M), bins.gap)
        return np.sqrt(np.maximum(form, 0.0))  # rounding can leave a tiny negative, too


def _square(values: ArrayLike) -> Floats:
    try:
        matrix = np.asarray(values)
    except ValueError:
        raise CalibrationInputError(
            "mahalanobis", "needs a square finite matrix", got="rows of different lengths"
        ) from None
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] > 0
    if not square or matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all():
        raise CalibrationInputError(
            "mahalanobis", "needs a square finite matrix", got=f"shape {matrix.shape} of {matrix.dtype}"
        )
    return matrix.astype(np.float64)


def _require_metric(matrix: Floats) -> None:
    """Refuse a matrix that makes no metric."""
    hint = "pass semidefinite=False to use it unchanged"
    slack = 1e-12 * max(1.0, np.abs(matrix).max())
    if not np.allclose(matrix, matrix.T, rtol=0, atol=slack):
        raise CalibrationInputError("mahalanobis", "needs a symmetric matrix", got="one that is not", hint=hint)
    smallest = np.linalg.eigvalsh(matrix).min()
    if smallest < -slack:
        got = f"the eigenvalue {smallest:.3g}"
        raise CalibrationInputError("mahalanobis", "needs a positive semi-definite matrix", got=got, hint=hint)


def _require_coordinates(bins: Bins, count: int, distance: str) -> None:
    if bins.shape[2] != count:
        raise CalibrationInputError(
            distance,
            f"is made for {count} coordinates",
            got=f"{bins.about.question} with {bins.shape[2]}",
            hint="one entry per coordinate of the lens",
        )
