"""Statistics of a question's table: one number of the distinct forecasts, how often each was made and came true."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.binning.bounds import extreme_orders
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.errors.asking import OfTable
from calibrant.errors.bounding import within_of
from calibrant.errors.isotonic import quadratic, quadratic_within
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.lenses.events import TopLabel
from calibrant.lenses.lens import Lens
from calibrant.result import Result
from calibrant.selections import Mask, Selection, everything
from calibrant.specification.facts import Facts, declare, facts_of
from calibrant.specification.naming import spoken

Statistic = Callable[[Ladder], float]
"""A number of one question's table; a `Noted` one says what a reader should know."""

ONE_OUTCOME = "all outcomes are the same: the number has no value"


class Noted(float):
    """A number with a note for its reader.

    >>> number = Noted(0.5, "half of it")
    >>> number + 1, number.note
    (1.5, 'half of it')
    """

    note: str

    def __new__(cls, value: float, note: str = "") -> Noted:
        """The number, and the note."""
        number = super().__new__(cls, value)
        number.note = note
        return number


class OfEach(OfTable):
    """A metric that makes one number of each question's table."""

    @abstractmethod
    def number_of(self, ladder: Ladder) -> float:
        """The number of a table with samples."""

    @property
    def words(self) -> str:
        """What a result should say of it besides its choices."""
        return ""

    @final
    def answer(self, summary: Forecasts) -> Result:
        """Each question's number, and what is to be noted of them."""
        ladders = list(summary.ladders())
        numbers = [self.number_of(ladder) if ladder.n else math.nan for ladder in ladders]
        times = Counter(getattr(number, "note", "") for number in numbers)
        of = f" of {len(numbers)} questions: " if len(numbers) > 1 else ""
        notes = tuple(f"{count}{of}{note}" if of else note for note, count in times.items() if note)
        sizes = np.array([ladder.n for ladder in ladders], np.float64)
        with np.errstate(invalid="ignore"):  # infinities of both signs have no mean
            return self.combined(summary.about, np.array(numbers, np.float64), sizes, self.words, notes=notes)


def counted(ladder: Ladder) -> tuple[Floats, Floats, Floats]:
    """The distinct forecasts of a question, ascending, how often each was made, and how often it came true.

    >>> import calibrant as cal
    >>> (ladder,) = cal.AUROC.summarise([0, 1, 1], [.5, .25, .5]).ladders()
    >>> [column.tolist() for column in counted(ladder)]
    [[0.25, 0.5], [1.0, 2.0], [1.0, 1.0]]
    """
    return (
        ladder.values.astype(np.float64),
        np.diff(ladder.ranks).astype(np.float64),
        ladder.targets.differences().value,
    )


def _skill_within(ladder: Ladder) -> tuple[float, float]:
    """The summed Brier score is known of sums, so is that of the base rate."""
    n, hits = ladder.n, float(ladder.targets[-1:].value[0])
    if not 0 < hits < n:
        return math.nan, math.nan
    low, high = quadratic_within(ladder)
    flat = hits / n * (1.0 - hits / n)
    return 1.0 - high / flat, 1.0 - low / flat


def _of_ratio(ladder: Ladder) -> tuple[float, Floats]:
    """The ratio, and how much a sample more moves it."""
    values, counts, _ = counted(ladder)
    expected, ratio = float((values * counts).sum()), observed_over_expected(ladder)
    if expected == 0:
        return float(ratio), np.zeros((len(values), 2))
    return float(ratio), (np.array([0.0, 1.0]) - ratio * values[:, None]) * counts.sum() / expected


_LOGARITHM = (lambda x: math.log(x) if x > 0 else -math.inf, lambda x: math.exp(min(x, 700.0)), lambda x: 1 / x)


@declare(
    Facts("statistic", "TableStatistic", low=0.0, calibrated=1.0, influence=_of_ratio, scale=_LOGARITHM, of_sums=True)
)
def observed_over_expected(ladder: Ladder) -> float:
    r"""Events observed over events expected: :math:`\sum_i y_i / \sum_i p_i`, both sums exact.

    Above 1 the forecasts are too low on average. Where nothing was expected it is infinite, or nan if nothing
    happened either.

    References: Steyerberg (2019), chapter 15.

    >>> import calibrant as cal
    >>> cal.OE_RATIO([0, 1, 1], [.25, .5, .75]).value
    1.3333333333333333
    """
    observed, expected = (float(totals[-1:].value[0]) for totals in (ladder.targets, ladder.outputs))
    if expected == 0:
        return Noted(math.inf if observed > 0 else math.nan, "no events were expected: every forecast is 0")
    return observed / expected


def _of_skill(ladder: Ladder) -> tuple[float, Floats]:
    """The skill, and how much a sample more moves it: by its own score and by that of the base rate."""
    values, counts, hits = counted(ladder)
    base, score = hits.sum() / counts.sum(), skill(ladder)
    if math.isnan(score):
        return float(score), np.zeros((len(values), 2))
    outcome = np.array([0.0, 1.0])
    spread = max(base * (1 - base), 1e-300)
    own = np.square(values[:, None] - outcome)
    brier = (1.0 - score) * spread
    flat = (outcome - base) * (1 - 2 * base)
    return float(score), -(own - brier) / spread + brier / spread**2 * flat


_SKILL = Facts("statistic", "TableStatistic", high=1.0, calibrated=None, lower_is_better=False, influence=_of_skill)


@declare(dataclasses.replace(_SKILL, within=_skill_within))
def skill(ladder: Ladder) -> float:
    r"""The Brier skill score: the share of the base rate's Brier score that the forecasts save.

    .. math:: 1 - \frac{\sum_i (p_i - y_i)^2}{\sum_i (\bar y - y_i)^2}

    1 is perfect, 0 as good as always forecasting the base rate of this sample, below 0 worse. nan where all outcomes
    are the same.

    References: Murphy (1973); Wilks (2019), section 9.4.

    >>> import calibrant as cal
    >>> cal.BRIER_SKILL([0, 1], [.25, .75]).value
    0.75
    """
    values, counts, hits = counted(ladder)
    base = hits.sum() / counts.sum()
    if not 0 < base < 1:
        return Noted(math.nan, ONE_OUTCOME)
    return 1.0 - float((counts * quadratic(values, hits / counts)).sum()) / (counts.sum() * base * (1.0 - base))


@dataclass(frozen=True, repr=False)
class TableStatistic(OfEach):
    r"""One number of the forecasts of an event and its outcomes, such as the area under the ROC curve.

    The `statistic` is a function of the table of distinct forecasts (`counted` gives its columns). calibrant has
    `fitted_slope`, `offset_intercept` and `fitted_intercept` in `calibrant.errors.logistic`, `area_under_roc` in
    `calibrant.errors.roc`, `platt_excess` in `calibrant.errors.platt_excess`, `mean_risk`, `mean_generalised_risk` and
    `excess_risk` in `calibrant.errors.risk`, `observed_over_expected` and `skill` here. One of your own is a function
    as well; declare its bounds with `Facts`.

    Whole weights are repetition, fractional ones are refused. Soft labels count as shares of outcomes. Without samples
    the number is nan. Where a question has no number, nor has the mean over questions. Asks events only.

    >>> import calibrant as cal
    >>> def base_rate(ladder):
    ...     values, counts, hits = counted(ladder)
    ...     return hits.sum() / counts.sum()
    >>> print(cal.TableStatistic(statistic=base_rate)([0, 0, 1, 0], [.1, .4, .6, .7]))
    TableStatistic 0.2500 (n=4, event, base rate)
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    statistic: Statistic = observed_over_expected
    across: Across = mean_of

    def __post_init__(self) -> None:
        if not callable(self.statistic):
            raise CalibrationInputError("statistic", "must be a function of a table", got=repr(self.statistic))

    @property
    def part_facts(self) -> Facts:
        """What is known of the statistic."""
        return facts_of(self.statistic)

    @property
    def undecided(self) -> Callable[[Ladder], Mask] | None:
        """No cell, where sums decide."""
        return (lambda ladder: np.zeros_like(ladder.cells)) if facts_of(self.statistic).of_sums else None

    def between(self, ladder: Ladder) -> tuple[float, float] | None:
        """Of both extreme orders where the order decides, else as the statistic says."""
        if facts_of(self.statistic).swaps:
            first, last = (float(self.statistic(table)) for table in extreme_orders(ladder))
            return min(first, last), max(first, last)
        if facts_of(self.statistic).of_sums:
            return (float(self.statistic(ladder)),) * 2
        return within_of(self.statistic, ladder)

    @property
    def words(self) -> str:
        """The statistic, unless a recipe's name says it."""
        return spoken(self.statistic) if self.name == type(self).__name__ else ""

    def number_of(self, ladder: Ladder) -> float:
        """The statistic of one question."""
        return self.statistic(ladder)
