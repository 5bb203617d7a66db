"""Claims: sentences of the literature that data can contradict, and what data say about them.

A claim names the differences that its sentence says are above 0, each a mean over seeds with its standard error, and
the data under which the sentence is false. How often its rule says "holds" of such data is what the rule is worth.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

LEVEL = 0.05
"""How often, at most, a rule may say that a claim holds which does not."""
HOLDS, CONTRADICTED, UNDECIDED, UNTESTABLE = "holds", "contradicted", "undecided", "not testable here"
VERDICTS = (HOLDS, CONTRADICTED, UNDECIDED, UNTESTABLE)

Data = TypeVar("Data")


class UntestableError(Exception):
    """These data cannot say anything about a claim, and why."""


@dataclass(frozen=True)
class Difference:
    """By how much one part of a claim is true: above 0 where it is, below 0 where it is not.

    A mean over independent seeds, its standard error and the degrees of freedom of a t test.

    >>> difference = Difference.of("EW less EM", [1.0, 2.0, 3.0])
    >>> print(difference)
    EW less EM +2.00 ± 0.58
    >>> round(difference.p_above, 3), round(difference.p_below, 3)
    (0.037, 0.963)
    """

    name: str
    mean: float
    error: float
    df: float
    sides: int = 1
    """2 for the size of a difference that may have either sign: nothing can be below 0 then."""
    ranks: tuple[float, float] | None = None
    """The p-values of tests by rank, above and below, in place of t tests."""

    @classmethod
    def of(cls, name: str, values: Any) -> Difference:
        """The difference of one value a seed; nan values are left out."""
        array = np.asarray(values, np.float64)
        kept = array[~np.isnan(array)]
        if not len(kept):
            return cls(name, math.nan, math.nan, math.nan)
        error = float(kept.std(ddof=1) / math.sqrt(len(kept))) if len(kept) > 1 else math.nan
        return cls(name, float(kept.mean()), error, len(kept) - 1)

    @classmethod
    def among(cls, name: str, seen: float, redrawn: Any) -> Difference:
        """A number less the mean of those of redraws under which the claim is false, tested by its rank among them.

        >>> difference = Difference.among("range", 3.0, [1.0, 2.0, 3.0, 0.0])
        >>> print(difference, difference.p_above, difference.p_below)
        range +1.50 ± 1.29 0.4 1.0
        """
        others = np.asarray(redrawn, np.float64)
        ranks = [(1 + int(beyond.sum())) / (1 + len(others)) for beyond in (others >= seen, others <= seen)]
        mean, error = seen - float(others.mean()), float(others.std(ddof=1))
        return cls(name, mean, error, len(others) - 1, ranks=(ranks[0], ranks[1]))

    def less(self, other: Difference, name: str) -> Difference:
        """This mean less another of other seeds (Welch's t test).

        >>> print(Difference.of("a", [2.0, 4.0]).less(Difference.of("b", [1.0, 1.0, 1.0]), "a less b"))
        a less b +2.00 ± 1.00
        """
        variances = self.error**2, other.error**2
        parts = sum(each**2 / df for each, df in zip(variances, (self.df, other.df), strict=True) if df > 0)
        df = sum(variances) ** 2 / parts if parts > 0 else self.df + other.df
        return Difference(name, self.mean - other.mean, math.sqrt(sum(variances)), df)

    @property
    def p_above(self) -> float:
        """The p-value of the test that the difference is not above 0."""
        if self.ranks is not None:
            return self.ranks[0]
        return min(1.0, self.sides * _upper_tail(self.mean, self.error, self.df))

    @property
    def p_below(self) -> float:
        """The p-value of the test that the difference is not below 0."""
        if self.ranks is not None:
            return self.ranks[1]
        return _upper_tail(-self.mean, self.error, self.df) if self.sides == 1 else 1.0

    def __str__(self) -> str:
        return f"{self.name} {self.mean:+.2f} ± {self.error:.2f}"


def _upper_tail(mean: float, error: float, df: float) -> float:
    """Of Student's t; 1 where nothing can be said."""
    from scipy.special import stdtr  # type: ignore[import-untyped]

    if not error >= 0 or math.isnan(mean):
        return 1.0
    if error == 0:
        return 0.0 if mean > 0 else 1.0
    return float(stdtr(df, -mean / error))


@dataclass(frozen=True)
class Judgement:
    """What data say about a claim: a word, the differences behind it, and why nothing can be said.

    >>> print(judged([Difference("a", 2.0, 0.1, 9), Difference("b", 0.1, 0.1, 9)]))
    1 of 2 clearly above 0 (2 needed), 0 clearly below; the least: b +0.10 ± 0.10
    """

    word: str
    differences: tuple[Difference, ...] = ()
    needed: int = 0
    """How many differences must be above 0 for the claim to hold."""
    reason: str = ""

    def __str__(self) -> str:
        if self.word == UNTESTABLE:
            return self.reason
        if len(self.differences) == 1:
            return str(self.differences[0])
        above = sum(difference.p_above <= LEVEL for difference in self.differences)
        below = sum(difference.p_below <= LEVEL for difference in self.differences)
        ranked = sorted(self.differences, key=lambda difference: (difference.p_above, -difference.mean))
        counts = f"{above} of {len(self.differences)} clearly above 0 ({self.needed} needed), {below} clearly below"
        return f"{counts}; the least: {ranked[-1]}"


def judged(differences: Sequence[Difference], share: float = 1.0) -> Judgement:
    r"""Whether at least a share of the differences is above 0: it holds, is contradicted, or stays undecided.

    With m differences of which k must be above 0, the p-value of "fewer than k are" is, of the ordered p-values,

    .. math:: \min_{i = k, \dots, m} \frac{m - k + 1}{i - k + 1} \, p_{(i)}

    The claim holds where it is at most `LEVEL`, and is contradicted where the same is shown of "at least m - k + 1
    differences are below 0". That keeps the level where differences are independent or rise together.

    References: Benjamini & Heller (2008), *Screening for partial conjunction hypotheses*, Biometrics 64, section 2.

    >>> clear, open, against = Difference("a", 2.0, 0.1, 9), Difference("b", 0.1, 0.1, 9), Difference("c", -2.0, 0.1, 9)
    >>> judged([clear, clear]).word, judged([clear, open]).word, judged([clear, against]).word
    ('holds', 'undecided', 'contradicted')
    >>> judged([clear, clear, clear, against], share=0.75).word
    'holds'
    """
    if not differences:
        return Judgement(UNTESTABLE, reason="there is nothing to compare")
    needed = max(1, math.ceil(share * len(differences) - 1e-9))
    word = UNDECIDED
    if _partial([difference.p_above for difference in differences], needed) <= LEVEL:
        word = HOLDS
    elif _partial([difference.p_below for difference in differences], len(differences) - needed + 1) <= LEVEL:
        word = CONTRADICTED
    return Judgement(word, tuple(differences), needed)


def _partial(pvalues: Sequence[float], needed: int) -> float:
    """The p-value of the test that fewer than so many of the alternatives are true."""
    first = len(pvalues) - needed + 1
    ordered = sorted(pvalues)[needed - 1 :]
    return min(first / place * pvalue for place, pvalue in enumerate(ordered, start=1))


@dataclass(frozen=True)
class Claim(Generic[Data]):
    """A sentence of a paper in its sense, where it stands, what must be above 0, and data under which it is false.

    `differences` computes them from data and may raise :class:`UntestableError`; at least a `share` of them must be
    above 0. `false` makes, from a seed, data under which the sentence is not true; `false_words` says what they are.

    >>> import numpy as np
    >>> claim = Claim(
    ...     words="the mean is above 0", source="nowhere", rule="a t test", unit="points",
    ...     differences=lambda values: [Difference.of("mean", values)],
    ...     false=lambda seed: np.random.default_rng(seed).normal(size=10), false_words="the mean is 0",
    ... )
    >>> claim.verdict(np.random.default_rng(0).normal(1.0, size=10)).word
    'holds'
    >>> claim.passes(200) <= 0.1
    True
    """

    words: str
    source: str
    rule: str
    differences: Callable[[Data], Iterable[Difference]]
    false: Callable[[int], Data]
    false_words: str
    share: float = 1.0
    unit: str = "points"

    def verdict(self, data: Data) -> Judgement:
        """What data say about the claim."""
        try:
            return judged(list(self.differences(data)), self.share)
        except UntestableError as reason:
            return Judgement(UNTESTABLE, reason=str(reason))

    def passes(self, repetitions: int, seed: int = 0) -> float:
        """The share of so many data sets under which the claim is false of which the rule says that it holds."""
        words = [self.verdict(self.false(seed + number)).word for number in range(repetitions)]
        return words.count(HOLDS) / repetitions


@dataclass(frozen=True)
class OutOfReach:
    """A claim that a study cannot test, and why; it is counted, so that no page leaves out what it did not try.

    >>> OutOfReach("transformers are under-confident", "a paper", "none was trained").verdict(None).word
    'not testable here'
    """

    words: str
    source: str
    reason: str

    def verdict(self, data: object) -> Judgement:
        """That nothing can be said."""
        return Judgement(UNTESTABLE, reason=self.reason)


def counted(verdicts: Iterable[Judgement]) -> str:
    """How many claims have each verdict, in words.

    >>> counted([judged([Difference("a", 2.0, 0.1, 9)]), Judgement(UNTESTABLE)])
    'holds 1, contradicted 0, undecided 0, not testable here 1'
    """
    counts = Counter(verdict.word for verdict in verdicts)
    return ", ".join(f"{word} {counts[word]}" for word in VERDICTS)
