"""The ROC curve: how often what happened was given the higher forecast."""

from __future__ import annotations

import math

import numpy as np

from calibrant.binning.running import Ladder
from calibrant.door.logs import sigmoid
from calibrant.errors.statistic import ONE_OUTCOME, Noted, counted
from calibrant.kernels.totals import Floats
from calibrant.specification.facts import Facts, declare


def _influence(ladder: Ladder) -> tuple[float, Floats]:
    """The area, and how much a sample more of each entry moves it: its place among the other outcome, less the area."""
    _, counts, hits = counted(ladder)
    misses, n = counts - hits, counts.sum()
    area = share_above(hits, misses)
    with np.errstate(invalid="ignore", divide="ignore"):
        failed = (hits.sum() - so_far(hits)) / hits.sum() - area
        happened = so_far(misses) / misses.sum() - area
        return float(area), np.column_stack([failed * n / misses.sum(), happened * n / hits.sum()])


def _log_odds(area: float) -> float:
    return math.log(area / (1 - area)) if 0 < area < 1 else math.copysign(math.inf, area - 0.5)


def _slope(area: float) -> float:
    return 1 / (area * (1 - area))


@declare(
    Facts(
        "statistic",
        "TableStatistic",
        low=0.0,
        high=1.0,
        calibrated=None,
        lower_is_better=False,
        swaps=True,
        influence=_influence,
        scale=(_log_odds, lambda odds: float(sigmoid(np.array(odds))), _slope),
    )
)
def area_under_roc(ladder: Ladder) -> float:
    r"""The area under the ROC curve: how often a sample that came true has a higher forecast than one that did not.

    .. math:: \frac{1}{n_1 n_0} \sum_{i: y_i = 1} \sum_{j: y_j = 0} \mathbf 1[p_i > p_j] + \tfrac12 \mathbf 1[p_i = p_j]

    Counts are whole, so the number is exact up to its one division while the pairs are fewer than 2^52. A soft label
    counts as shares of both outcomes. nan where all outcomes are the same.

    References: Hanley & McNeil (1982).

    >>> import calibrant as cal
    >>> cal.AUROC([0, 0, 1, 1], [.1, .4, .4, .8]).value
    0.875
    """
    _, counts, hits = counted(ladder)
    return share_above(hits, counts - hits)


def delong(ladder: Ladder) -> tuple[float, float]:
    r"""The area under the ROC curve and the variance of that estimate.

    .. math:: \frac{1}{n_1 (n_1 - 1)} \sum_{i: y_i = 1} (V_i - A)^2
        + \frac{1}{n_0 (n_0 - 1)} \sum_{j: y_j = 0} (V_j - A)^2

    V_i is the share of samples that did not happen below sample i (ties count half), V_j the share of those that
    happened above sample j. nan where one outcome was seen fewer than twice.

    References: DeLong, DeLong & Clarke-Pearson (1988).

    >>> import calibrant as cal
    >>> (ladder,) = cal.AUROC.summarise([0, 0, 1, 1], [.1, .4, .3, .8]).ladders()
    >>> delong(ladder)
    (0.75, 0.125)
    """
    _, counts, hits = counted(ladder)
    misses = counts - hits
    area = share_above(hits, misses)
    if not min(hits.sum(), misses.sum()) > 1:
        return float(area), math.nan
    variances = []
    for these, others, place in ((hits, misses, so_far(misses)), (misses, hits, hits.sum() - so_far(hits))):
        n = these.sum()
        variances.append((these * np.square(place / others.sum() - area)).sum() / (n * (n - 1)))
    return float(area), float(sum(variances))


def share_above(hits: Floats, misses: Floats) -> float:
    """How often a hit lies above a miss, of so many at each ascending level; nan where one of them is missing.

    >>> share_above(np.array([0., 1.]), np.array([1., 1.]))
    0.75
    """
    pairs = hits.sum() * misses.sum()
    return float((hits * so_far(misses)).sum() / pairs) if pairs > 0 else Noted(math.nan, ONE_OUTCOME)


def so_far(counts: Floats) -> Floats:
    """How many lie below each ascending level, those at it counted half.

    >>> so_far(np.array([2., 1., 4.])).tolist()
    [1.0, 2.5, 5.0]
    """
    return np.cumsum(counts) - counts / 2
