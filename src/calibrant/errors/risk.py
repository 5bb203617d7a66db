"""Risk and coverage: how many errors remain when the least certain answers are left to somebody else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant.binning.running import Ladder
from calibrant.errors.roc import share_above, so_far
from calibrant.errors.statistic import counted
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.specification.facts import Facts, declare
from calibrant.views import View

OF_RISK = Facts("statistic", "TableStatistic", low=0.0, high=1.0, calibrated=None, lower_is_better=True, swaps=True)


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Answers from the most certain to the least: how many, and how many of them wrong, up to each distinct certainty.

    The risk of the k most certain answers is the share of errors among them. Equally certain answers share their
    errors evenly, so that no order of rows matters.

    >>> curve = RiskCoverage.of(np.array([.9, .8, .8]), np.ones(3), np.array([0., 1., 0.]))
    >>> curve.coverage.round(4).tolist(), curve.risk.round(4).tolist()
    ([0.3333, 0.6667, 1.0], [0.0, 0.25, 0.3333])
    """

    kept: Floats
    wrong: Floats

    @classmethod
    def of(cls, certainty: Floats, sizes: Floats, errors: Floats) -> Self:
        """Of answers of some certainty, how many each stands for, and how many of those are wrong."""
        levels, place = np.unique(-certainty[sizes > 0], return_inverse=True)
        parts = (np.bincount(place.ravel(), part[sizes > 0], len(levels)) for part in (sizes, errors))
        kept, wrong = (np.cumsum(part, dtype=np.float64) for part in parts)
        return cls(kept, wrong)

    @classmethod
    def of_view(cls, view: View, certainty: Floats | None = None) -> Self:
        """Of answers that a lens saw, as certain as their outputs or as somebody says."""
        if view.questions != 1:
            expected, hint = "needs one answer a row", "use AURC, which asks each question"
            raise CalibrationInputError("risk_coverage", expected, got=f"{view.questions} questions", hint=hint)
        sizes = np.ones(len(view.outputs)) if view.weight is None else view.weight
        values = view.outputs[:, 0, 0].astype(np.float64) if certainty is None else certainty
        return cls.of(values, sizes, sizes * (1.0 - view.truth_rows[:, 0, 0]))

    @classmethod
    def of_table(cls, ladder: Ladder) -> Self:
        """Of a table of certainties."""
        values, counts, hits = counted(ladder)
        return cls.of(values, counts, counts - hits)

    @property
    def total(self) -> float:
        """How many answers there are, or their weight."""
        return float(self.kept[-1])

    @property
    def coverage(self) -> Floats:
        """1/n, 2/n .. 1."""
        return np.arange(1, self.total + 1) / self.total

    @property
    def risk(self) -> Floats:
        """The risk at each coverage."""
        return self.risk_of(np.arange(1, self.total + 1))

    def risk_of(self, kept: Floats | float) -> Floats:
        """The share of errors among so many answers, the most certain ones."""
        return np.interp(kept, np.append(0.0, self.kept), np.append(0.0, self.wrong)) / kept

    @property
    def aurc(self) -> float:
        r"""The mean of the risk over k = 1 .. n answers: the area under the curve of risk and coverage.

        Between a and b answers of equal certainty with error rate e, after W errors, it sums to
        :math:`e (b - a) + (W - e a) (H_b - H_a)` with harmonic numbers H.
        """
        a, before = (np.append(0.0, part[:-1]) for part in (self.kept, self.wrong))
        rate = (self.wrong - before) / (self.kept - a)
        summed = rate * (self.kept - a) + (before - rate * a) * harmonic_between(a, self.kept)
        return float(summed.sum() / self.total)

    @property
    def augrc(self) -> float:
        """The share of all answers that are kept and wrong, averaged over the share that is kept, as in `AUGRC`."""
        wrong = np.append(0.0, self.wrong)
        return float((np.diff(self.kept, prepend=0.0) * (wrong[1:] + wrong[:-1]) / 2).sum() / self.total**2)

    @property
    def detection(self) -> float:
        """How often a right answer is more certain than a wrong one, ties counting half; nan where all are alike."""
        wrong = np.diff(self.wrong, prepend=0.0)
        return share_above(wrong, np.diff(self.kept, prepend=0.0) - wrong)

    def accuracy_after_referring(self, share: float) -> float:
        """The accuracy on the rest when the floor(share * n) most uncertain samples are referred; nan when all are."""
        if not 0 <= share <= 1:
            raise CalibrationInputError("share", "must lie in [0, 1]", got=share)
        referred = share * self.total
        if (self.kept == np.floor(self.kept)).all():
            referred = math.floor(referred + 1e-9)  # .29 * 100 is 28.999999999999996
        return float(1 - self.risk_of(self.total - referred)) if referred < self.total else math.nan


@declare(OF_RISK)
def mean_risk(ladder: Ladder) -> float:
    r"""AURC: the share of errors among the k most certain answers, averaged over k.

    .. math:: \frac1n \sum_{k=1}^n \frac{\text{errors among the } k \text{ most certain}}{k}

    References: Geifman & El-Yaniv (2017).

    >>> import calibrant as cal
    >>> round(cal.AURC([0, 1, 0], [[.9, .1], [.2, .8], [.4, .6]]).value, 6)  # (0 + 0 + 1/3) / 3
    0.111111
    """
    return RiskCoverage.of_table(ladder).aurc


@declare(OF_RISK)
def mean_generalised_risk(ladder: Ladder) -> float:
    r"""AUGRC: the share of all answers that are kept and wrong, averaged over the share that is kept.

    With the error rate e and the share D of pairs in which the right answer is more certain than the wrong one (ties
    count half), the area under that curve, drawn in straight lines, is

    .. math:: (1 - D)\, e (1 - e) + \tfrac12 e^2

    At most one half. Unlike AURC it does not count the errors of the most certain answers over and over.

    References: Traub et al. (2024).

    >>> import calibrant as cal
    >>> round(cal.AUGRC([0, 1, 0], [[.9, .1], [.2, .8], [.4, .6]]).value, 6)  # e = 1/3, D = 1
    0.055556
    """
    _, counts, hits = counted(ladder)
    misses = counts - hits
    return float(((misses * so_far(hits)).sum() + misses.sum() ** 2 / 2) / counts.sum() ** 2)


@declare(OF_RISK)
def excess_risk(ladder: Ladder) -> float:
    r"""E-AURC: AURC less that of the best order, in which every right answer is more certain than any wrong one.

    With m errors among n answers the best order has

    .. math:: \frac1n \sum_{k = n - m + 1}^n \frac{k - (n - m)}{k}

    which Geifman et al. approximate by :math:`e + (1 - e) \ln(1 - e)`, e = m / n.

    References: Geifman, Uziel & El-Yaniv (2019).

    >>> import calibrant as cal
    >>> cal.E_AURC([0, 1, 0], [[.9, .1], [.2, .8], [.4, .6]]).value
    0.0
    """
    curve = RiskCoverage.of_table(ladder)
    errors = curve.wrong[-1]
    best = RiskCoverage.of(np.array([1.0, 0.0]), np.array([curve.total - errors, errors]), np.array([0.0, errors]))
    return max(curve.aurc - best.aurc, 0.0)


def harmonic_between(a: Floats, b: Floats) -> Floats:
    r"""1/(a+1) + .. + 1/b, the difference of two harmonic numbers, of a and b at least 0 that need not be whole.

    With y = x + 16, :math:`H_x = \ln y + \frac1{2y} - \frac1{12 y^2} + \frac1{120 y^4} - \frac1{252 y^6} +
    \frac1{240 y^8} - \sum_{k=1}^{16} \frac1{x + k}`, to 1e-14, taken term by term so that neighbours lose nothing.

    >>> harmonic_between(np.array([0.0]), np.array([3.0])).round(12).tolist()
    [1.833333333333]
    """
    low, high = a + 16, b + 16
    terms = ((2, 1), (-12, 2), (120, 4), (-252, 6), (240, 8))
    series = np.log1p((b - a) / low) + sum((high**-power - low**-power) / by for by, power in terms)
    return series + sum((b - a) / ((a + k) * (b + k)) for k in range(1, 17))
