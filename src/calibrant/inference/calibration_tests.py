"""Calibration tests: Cox, Spiegelhalter, Hosmer and Lemeshow, held against their reference distributions."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from calibrant.checks import whole
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.draws import check_seed, replicate
from calibrant.inference.main_question import MOST_DRAWN, MainQuestion
from calibrant.kernels.totals import Floats
from calibrant.predictions import Predictions
from calibrant.specification.encoding import number
from calibrant.text import p_value

EXCESS = 0.1
"""How much larger the variance of a statistic may be than that of its reference distribution."""
REDRAWS = 1999


@dataclass(frozen=True)
class HypothesisTest:
    """A test of calibration by a reference distribution: a small p-value speaks against calibration.

    The reference distribution is that of many rows. Where rows are too few for it, or events too rare, the p-value is
    the rank of the statistic among those of redrawn labels instead, and `redraws` says how many there were.

    >>> import calibrant as cal
    >>> print(cal.cox_test(cal.Predictions.from_probs([1, 0, 1, 0], [.7, .3, .6, .6])))
    Cox test: chi-squared = 0.6988, df = 2, p = 0.71 (n=4, event)
    >>> print(cal.cox_test(cal.Predictions.from_probs([1, 0, 0, 0], [.1, .01, .02, .05])))  # rare events
    Cox test: chi-squared = 7.432, df = 2, p = 0.13 (n=4, event, 1999 redraws)
    """

    name: str
    question: str
    n: int
    """MainQuestion that were tested."""
    statistic: float
    df: float
    p_value: float
    reference: str
    """The distribution that the statistic follows under calibration."""
    clusters: int | None = None
    """Groups of rows that count as independent of each other, where rows do not."""
    redraws: int = 0
    """Redraws of the labels from which the p-value is; 0 where it is of the reference distribution."""

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {name: number(value) if isinstance(value, float) else value for name, value in vars(self).items()}

    def __str__(self) -> str:
        words = f"n={self.n}, {self.question}{f', {self.clusters} groups' if self.clusters else ''}"
        words += f", {self.redraws} redraws" if self.redraws else ""
        value = f"{self.reference} = {self.statistic:.4g}, df = {self.df:.3g}"
        return f"{self.name}: {value}, {p_value(self.p_value, self.redraws or None)} ({words})"


def cox_test(predictions: Predictions, *, groups: str | None = None, seed: int = 0) -> HypothesisTest:
    r"""Is the calibration line :math:`\mathrm{logit}\, P(y = 1) = a + b\, \mathrm{logit}\, p` at a = 0 and b = 1?

    The joint score test, which fits nothing. With :math:`x_i = (1, \mathrm{logit}\, p_i)`,

    .. math:: U^\top V^{-1} U, \quad
        U = \sum_i w_i (y_i - p_i)\, x_i, \quad V = \sum_i w_i^2 p_i (1 - p_i)\, x_i x_i^\top

    is held against chi-squared with 2 degrees of freedom (1 where all forecasts are equal: only a can be tested then).
    Forecasts of 0 and 1 add nothing where they are right; where one is wrong, the statistic is infinite.

    The question is the event, or whether the likeliest class is right; independent labels are pooled. A weighted row is
    one independent row.

    With `groups`, the name of a column, rows of one value may depend on each other in any way. Let A be the covariance
    of U between G groups in units of V, and :math:`\nu = (\mathrm{tr} A)^2 / \mathrm{tr} A^2`. The statistic divided
    by tr A is held against F with :math:`\nu` and :math:`\nu (G - 1)` degrees of freedom. The p-value is that one, or
    that of independent rows where it is larger. It needs about 30 groups or more, none of which holds most rows.

    Under calibration the statistic has a known variance. Where that is more than a tenth above that of chi-squared, as
    for rare events, p is (number at least as large among redrawn labels, itself included) / (redraws + 1), repeatable
    by `seed`.

    References: Cox (1958); Rao & Scott (1984) and Thomas & Rao (1987) for groups.

    >>> import calibrant as cal
    >>> p = cal.Predictions.from_probs([1, 0, 1, 0], [.7, .3, .6, .6])
    >>> round(cal.cox_test(p).p_value, 4)
    0.7051
    """
    answers = MainQuestion.of(predictions, groups)
    features = np.column_stack([np.ones(len(answers)), answers.log_odds])
    return _tested("Cox test", answers, features, seed)


def spiegelhalter_test(predictions: Predictions, *, groups: str | None = None, seed: int = 0) -> HypothesisTest:
    r"""Is the Brier score what calibrated forecasts would have? Above 0 it is too high.

    .. math:: z = \frac{\sum_i w_i (y_i - p_i)(1 - 2 p_i)}{\sqrt{\sum_i w_i^2 (1 - 2 p_i)^2 p_i (1 - p_i)}}

    is held against the standard normal distribution, both tails. It does not see errors that leave the Brier score as
    it is expected to be, a shift of all forecasts above all. Where every forecast is one half, p is 1. Questions,
    weights, `groups` and redraws are those of `cox_test`; with groups the statistic is Student's t.

    References: Spiegelhalter (1986).

    >>> import calibrant as cal
    >>> print(cal.spiegelhalter_test(cal.Predictions.from_probs([1, 0, 1, 0], [.7, .3, .6, .6])))
    Spiegelhalter test: z = -0.6804, df = 1, p = 0.5 (n=4, event)
    """
    answers = MainQuestion.of(predictions, groups)
    features = 1.0 - 2.0 * answers.forecasts
    test = _tested("Spiegelhalter test", answers, features[:, None], seed)
    sign = math.copysign(1.0, (answers.residuals * features).sum())
    reference = "z" if test.clusters is None else "t"
    return dataclasses.replace(test, statistic=sign * math.sqrt(test.statistic), reference=reference)


def hosmer_lemeshow_test(
    predictions: Predictions, n_bins: int = 10, *, fitted: bool = False, groups: str | None = None, seed: int = 0
) -> HypothesisTest:
    r"""Do events happen as often as forecast in each of g groups of forecasts?

    .. math:: \sum_b \frac{(\sum_{i \in b} w_i (y_i - p_i))^2}{\sum_{i \in b} w_i^2 p_i (1 - p_i)}

    over at most `n_bins` bins of about equal weight in order of forecast, tied forecasts together, is held against
    chi-squared with g degrees of freedom: the g bins in which something could happen. That is right for forecasts that
    were made without these rows. With `fitted=True` there are g - 2: the forecasts are those of a logistic regression
    that was fitted on these rows. (The variance of a bin is summed over its rows; the original takes that of its mean
    forecast, which is larger.) Questions, weights, `groups` and redraws are those of `cox_test`: the labels are redrawn
    where the rarer outcome is expected fewer than about 5 times in a bin, unless the forecasts are fitted.

    References: Hosmer & Lemeshow (1980); Hosmer, Lemeshow & Sturdivant (2013), section 5.2.2.

    >>> import calibrant as cal
    >>> print(cal.hosmer_lemeshow_test(cal.Predictions.from_probs([1, 0, 1, 0], [.9, .2, .6, .8]), n_bins=2))
    Hosmer-Lemeshow test: chi-squared = 2.06, df = 2, p = 0.36 (n=4, event)
    """
    whole(n_bins, "n_bins", 3 if fitted else 1)
    if fitted and groups is not None:
        raise CalibrationInputError("fitted", "must be left out with groups", got="both")
    answers = MainQuestion.of(predictions, groups)
    ends = answers.cut(answers.weight, n_bins)
    features = np.searchsorted(ends, np.arange(len(answers)))[:, None] == np.arange(len(ends))
    return _tested("Hosmer-Lemeshow test", answers, features.astype(np.float64), seed, used=2 if fitted else 0)


def whitening(covariance: Floats) -> Floats:
    """A matrix (q, rank) that turns scores of that covariance into uncorrelated ones of variance 1.

    >>> whitening(np.array([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5], [0.0]]
    """
    scale = np.sqrt(np.diag(covariance))
    scale = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    lengths, axes = np.linalg.eigh(covariance * np.outer(scale, scale))
    there = lengths > 1e-9
    return scale[:, None] * axes[:, there] / np.sqrt(lengths[there])


def _tested(name: str, answers: MainQuestion, features: Floats, seed: int, used: int = 0) -> HypothesisTest:
    """The quadratic form of the scores, and its place in the reference distribution or among redraws."""
    from scipy.special import chdtrc, fdtrc  # type: ignore[import-untyped]

    check_seed(seed)
    white = features @ whitening((features * answers.variances[:, None]).T @ features)
    statistic = math.inf if answers.impossible else float(np.square(answers.residuals @ white).sum())
    df = max(0, white.shape[1] - used)
    p = float(chdtrc(df, statistic)) if df else float(not answers.impossible)
    test = HypothesisTest(name, answers.question, len(answers), statistic, df, p, "chi-squared")
    if df and not used and not answers.impossible and excess_variance(answers, white) > EXCESS * 2 * df:
        p = _among_redraws(answers, white, seed)
        test = dataclasses.replace(test, p_value=p, redraws=REDRAWS)
    if answers.cluster is None or not df or answers.impossible:
        return test
    count = int(answers.cluster.max()) + 1
    scores = (answers.residuals[:, None] * white).T
    covariance = np.atleast_2d(np.cov([np.bincount(answers.cluster, column, count) for column in scores])) * count
    trace = float(np.trace(covariance))
    df = trace**2 / float(np.square(covariance).sum()) if trace else 1.0
    scaled = statistic / trace if trace else 0.0
    p = max(p, float(fdtrc(df, df * (count - 1), scaled)))
    return dataclasses.replace(test, statistic=scaled, df=df, p_value=p, reference="F", clusters=count)


def excess_variance(answers: MainQuestion, white: Floats) -> float:
    """The variance of a quadratic form under calibration less that of chi-squared, by fourth cumulants of residuals.

    >>> answers = MainQuestion.of(Predictions.from_probs([0, 1], [.5, .5]))
    >>> round(excess_variance(answers, np.full((2, 1), 2**0.5)), 9)  # 0 or 2, as likely: variance 1 instead of 2
    -1.0
    """
    variance = answers.forecasts * (1.0 - answers.forecasts)
    lengths = np.square(white).sum(axis=1)
    return float((answers.weight**4 * variance * (1.0 - 6.0 * variance)) @ np.square(lengths))


def _among_redraws(answers: MainQuestion, white: Floats, seed: int) -> float:
    """The share of statistics at least as large as the one that was seen, itself included."""

    def work(rng: np.random.Generator, count: int) -> Floats:
        return np.square(answers.redrawn(rng, count) @ white).sum(axis=1)

    block = int(np.clip(MOST_DRAWN // len(answers), 1, REDRAWS))
    values = replicate(work, REDRAWS, seed, stage=8, block=block, what="redrawn labels")
    observed = np.square(answers.residuals @ white).sum()
    return float((1 + np.sum(values >= observed - 1e-9)) / (REDRAWS + 1))  # sums in another order differ by 1e-16
