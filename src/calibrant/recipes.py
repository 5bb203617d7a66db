"""Recipes: the literature's numbers, each a frozen choice of pieces with a name."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.aggregates import (
    contraharmonic,
    maximum,
    mean_of_all,
    root_mean,
    sample_quantile,
    signed_balance,
    weighted_by_size,
)
from calibrant.binning.contract import Binning
from calibrant.binning.fixed import EqualWidth
from calibrant.binning.ranked import EqualMass
from calibrant.binning.sweep import Sweep
from calibrant.binning.vectors import KDTree
from calibrant.checks import intervals
from calibrant.distances import debiased_squared, inter_interval, signed, squared
from calibrant.errors.binned import BinnedError
from calibrant.errors.cumulative import CumulativeError, ks, kuiper
from calibrant.errors.curve import CurveError
from calibrant.errors.kde import KDEError
from calibrant.errors.kernel import KernelError
from calibrant.errors.label_binned import LabelBinnedError
from calibrant.errors.logistic import fitted_slope, offset_intercept
from calibrant.errors.mean_score import MeanScore, brier_score, hit, log_score
from calibrant.errors.risk import excess_risk, mean_generalised_risk, mean_risk
from calibrant.errors.roc import area_under_roc
from calibrant.errors.smooth import SmoothError
from calibrant.errors.statistic import TableStatistic, observed_over_expected, skill
from calibrant.lenses.around import Above, Between, ByLabel
from calibrant.lenses.distributions import Full, TopK
from calibrant.lenses.events import Answered, Classwise, Ranked, TopLabel
from calibrant.lenses.lens import Lens
from calibrant.metric import Metric
from calibrant.specification.facts import Facts, declare

ECE = BinnedError()
MCE = BinnedError(aggregate=maximum)
RMSCE = BinnedError(distance=squared, aggregate=root_mean)
ADAPTIVE_ECE = BinnedError(binning=EqualMass())
ECE_SWEEP = BinnedError(binning=Sweep(EqualMass()))
ECE_DEBIASED = BinnedError(binning=EqualMass(), distance=debiased_squared, aggregate=root_mean)
ECE_LB = LabelBinnedError()
ECE_KDE = KDEError()
SMECE = SmoothError()
ECCE_MAD = CumulativeError(statistic=ks)
ECCE_R = CumulativeError(statistic=kuiper)
SCE = BinnedError(lens=Classwise(), across=mean_of_all)
ACE = BinnedError(lens=Classwise(), binning=EqualMass(), across=mean_of_all)
TACE = BinnedError(lens=Above(Classwise(), 0.01), binning=EqualMass(), across=mean_of_all)
CWECE = BinnedError(lens=ByLabel(TopLabel()))
WSECE = BinnedError(lens=ByLabel(TopLabel()), across=weighted_by_size)
MSECE = CWECE.replace()  # the same choices: its value, not its parts, is the answer
CECE = BinnedError(lens=ByLabel(TopLabel()), across=contraharmonic)
MCS = BinnedError(binning=EqualWidth(1), distance=signed)
CWMCS = BinnedError(lens=ByLabel(TopLabel()), binning=EqualWidth(1), distance=signed)
WSMCS = BinnedError(lens=ByLabel(TopLabel()), binning=EqualWidth(1), distance=signed, across=signed_balance)
FULL_ECE = BinnedError(lens=Full(), binning=KDTree())
TOP5_ECE = BinnedError(lens=TopK(5), binning=KDTree())
SKCE = KernelError()
BRIER = MeanScore(Full(), brier_score)
LOG_LOSS = MeanScore(Full(), log_score)
ACCURACY = MeanScore(Ranked(1), hit)
SLOPE = TableStatistic(statistic=fitted_slope)
INTERCEPT = TableStatistic(statistic=offset_intercept)
OE_RATIO = TableStatistic(statistic=observed_over_expected)
ICI = CurveError()
E50 = CurveError(aggregate=sample_quantile(0.5))
E90 = CurveError(aggregate=sample_quantile(0.9))
EMAX = CurveError(aggregate=maximum)
AUROC = TableStatistic(statistic=area_under_roc)
BRIER_SKILL = TableStatistic(statistic=skill)
AURC = TableStatistic(lens=Answered(), statistic=mean_risk)
AUGRC = TableStatistic(lens=Answered(), statistic=mean_generalised_risk)
E_AURC = TableStatistic(lens=Answered(), statistic=excess_risk)

RECIPES: dict[str, Metric] = {
    "ECE": ECE,
    "MCE": MCE,
    "RMSCE": RMSCE,
    "ADAPTIVE_ECE": ADAPTIVE_ECE,
    "ECE_SWEEP": ECE_SWEEP,
    "ECE_DEBIASED": ECE_DEBIASED,
    "ECE_LB": ECE_LB,
    "ECE_KDE": ECE_KDE,
    "SMECE": SMECE,
    "ECCE_MAD": ECCE_MAD,
    "ECCE_R": ECCE_R,
    "SCE": SCE,
    "ACE": ACE,
    "TACE": TACE,
    "CWECE": CWECE,
    "WSECE": WSECE,
    "MSECE": MSECE,
    "CECE": CECE,
    "MCS": MCS,
    "CWMCS": CWMCS,
    "WSMCS": WSMCS,
    "FULL_ECE": FULL_ECE,
    "TOP5_ECE": TOP5_ECE,
    "SKCE": SKCE,
    "BRIER": BRIER,
    "LOG_LOSS": LOG_LOSS,
    "ACCURACY": ACCURACY,
    "SLOPE": SLOPE,
    "INTERCEPT": INTERCEPT,
    "OE_RATIO": OE_RATIO,
    "ICI": ICI,
    "E50": E50,
    "E90": E90,
    "EMAX": EMAX,
    "AUROC": AUROC,
    "BRIER_SKILL": BRIER_SKILL,
    "AURC": AURC,
    "AUGRC": AUGRC,
    "E_AURC": E_AURC,
}
"""Every recipe by its name.

>>> import calibrant as cal
>>> cal.RECIPES["ECE"] is cal.ECE
True
"""


@declare(Facts("metrics"))
def likert(
    edges: Sequence[float] | Sequence[tuple[float, float]],
    *,
    lens: Lens = ECE.lens,
    binning: Binning = ECE.binning,
    closed: str = "left",
) -> dict[str, BinnedError]:
    """One metric a category of a Likert scale: do samples shown in a category belong to it?

    `edges` of neighbouring categories, such as [0, .33, .66, 1], or (low, high) pairs, which need not adjoin: answers
    between them are in no category. Each metric takes the answers whose forecast lies in [low, high) (the last one
    closed) and counts how far mean labels leave it. `closed` says which ends belong to a category, as for `Between`.

    References: Kirchenbauer, Oaks & Heim (2022), section 5.3 and appendix D.4.3 (pairs that do not adjoin).

    >>> import calibrant as cal
    >>> scale = cal.likert([0, .33, .66, 1])
    >>> list(scale)
    ['[0, 0.33)', '[0.33, 0.66)', '[0.66, 1]']
    >>> round(scale["[0, 0.33)"]([1, 0, 1, 1], [.31, .31, .31, .9]).value, 10)
    0.3366666667
    >>> list(cal.likert([(0, .8), (.9, 1)], closed="both"))
    ['[0, 0.8]', '[0.9, 1]']
    """
    shown = [(Between(lens, *pair, closed), inter_interval(*pair)) for pair in intervals(edges, "likert")]
    return {category.interval: BinnedError(lens=category, binning=binning, distance=far) for category, far in shown}
