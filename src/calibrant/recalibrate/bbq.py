"""Bayesian binning into quantiles: many equal-frequency histograms, averaged by how well they explain the outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.kernels.totals import Floats, Ints
from calibrant.recalibrate.fitting import possible
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import FLOOR, Lesson, ModelScores
from calibrant.recalibrate.fitting.one_vs_all import Event, counted, events, gathered, mapped
from calibrant.recalibrate.recalibrator import Recalibrator

SIZES = 10
"""C: there are between n^(1/3) / C and C n^(1/3) bins."""
STRENGTH = 2.0
"""N': how many outcomes the prior is worth, all bins together."""


@dataclass(eq=False)
class BBQ(Recalibrator):
    r"""Map the probability of an event by an average of equal-frequency histograms; classes one against all.

    There is a histogram for each whole number of bins B from n^(1/3)/10 to 10 n^(1/3), n being the total weight, but at
    least 1 and at most as many as there are distinct probabilities. Bin j of B ends with the distinct probability up
    to which the number of rows is nearest to n j / B (the lower of two): ties stay together. Where they leave fewer
    than B bins, B below is what is left; histograms that ties make equal count once. Bins meet halfway between their
    probabilities; the first starts at 0, the last ends at 1. With N_b rows in a bin, m_b of which came true, and its
    midpoint p_b,

    .. math::
        \alpha_b = \frac{2 p_b}{B}, \quad \beta_b = \frac{2 (1 - p_b)}{B}, \quad
        \mathrm{score} = \prod_b \frac{\Gamma(2/B)}{\Gamma(N_b + 2/B)}
        \frac{\Gamma(m_b + \alpha_b)}{\Gamma(\alpha_b)} \frac{\Gamma(N_b - m_b + \beta_b)}{\Gamma(\beta_b)},
        \quad \mathrm{value}_b = \frac{m_b + \alpha_b}{N_b + 2/B}

    is the marginal likelihood under a Beta prior, and the posterior mean. The map is the mean of the histograms' values
    weighted by their scores. Those of less than 1e-12 of the highest score are left out, and midpoints kept 1e-12 away
    from 0 and 1. A class without rows is told in a warning. The map may fall where scores rise. Classes as in
    `one_vs_all`. Cost: a sort and some 50 n^(2/3) bins.

    Attributes: `thresholds_` and `values_`: value i holds up to and with threshold i, the last one beyond all; arrays
    for an event, tuples of arrays for classes.

    References: Naeini, Cooper & Hauskrecht (2015).

    >>> fitted = BBQ("probabilities").fit([.2, .4, .6, .8], [0, 0, 1, 1])
    >>> fitted.thresholds_.round(6).tolist(), fitted.predict_proba([.2, .8]).round(4).tolist()
    ([0.3, 0.5, 0.7], [0.0878, 0.9122])
    """

    input: str = "logits"
    classes: Sequence[Any] | None = None
    short: ClassVar[str] = "bbq"
    learns: ClassVar[tuple[str, ...]] = ("thresholds_", "values_")

    def _learn(self, lesson: Lesson) -> Ending:
        curves = [fit_bbq(event) for event in events(lesson, lesson.scores.probabilities)]
        thresholds, values = zip(*curves, strict=True)
        self.thresholds_, self.values_ = gathered(thresholds), gathered(values)
        return counted(lesson)

    def require_possible(self) -> None:
        width = 0 if self.is_event else len(self.classes_)
        parts = (possible.of_each(getattr(self, name), name, width) for name in self.learns)
        for thresholds, values in zip(*parts, strict=True):
            possible.rising(
                possible.numbers(thresholds, "thresholds_", len(thresholds), low=0.0, high=1.0), "thresholds_"
            )
            possible.numbers(values, "values_", len(thresholds) + 1, low=0.0, high=1.0)

    def _map(self, scores: ModelScores) -> Floats:
        return mapped(scores, scores.probabilities, steps, self.thresholds_, self.values_)


def steps(scores: Floats, thresholds: Floats, values: Floats) -> Floats:
    """The value of the step that each score is on.

    >>> steps(np.array([.1, .5, .6]), np.array([.5]), np.array([.2, .7])).tolist()
    [0.2, 0.2, 0.7]
    """
    return values[np.searchsorted(thresholds, scores)]


def fit_bbq(event: Event) -> tuple[Floats, Floats]:
    """Thresholds and values of the averaged histogram.

    >>> fit_bbq(Event(np.array([.5, .5, .5]), np.array([0., 0., 1.]), np.ones(3)))  # one bin: (1 + 1) / (3 + 2)
    (array([], dtype=float64), array([0.4]))
    """
    scores, *totals = event.distinct()
    borders = _borders(scores)
    running, hits = (np.append(0.0, np.cumsum(total)) for total in totals)
    histograms = [Histogram.of(ends, borders, running, hits) for ends in binnings(running)]
    scored = np.array([histogram.score for histogram in histograms])
    shares = np.exp(scored - scored.max())
    kept = [(share, histogram) for share, histogram in zip(shares, histograms, strict=True) if share >= FLOOR]
    thresholds = np.unique(np.concatenate([histogram.thresholds for _, histogram in kept]))
    at = np.append(thresholds, np.inf)
    values = sum(share * steps(at, histogram.thresholds, histogram.values) for share, histogram in kept)
    return thresholds, values / sum(share for share, _ in kept)


def binnings(running: Floats) -> Iterator[Ints]:
    """Where the bins of each equal-frequency binning end: how many distinct scores lie below each inner border.

    `running` is the weight below each distinct score, and of all.

    >>> [ends.tolist() for ends in binnings(np.array([0., 1., 2., 4.]))]  # 1, 2 and 3 bins of 4 rows
    [[], [2], [1, 2]]
    """
    entries = len(running) - 1
    root = float(np.cbrt(running[-1]))
    most = min(max(1, math.floor(SIZES * root)), entries)
    seen = set()
    for n_bins in range(min(max(1, math.ceil(root / SIZES)), most), most + 1):
        wanted = running[-1] * np.arange(1, n_bins) / n_bins
        above = np.searchsorted(running, wanted)
        further = (running[above] - wanted) - (wanted - running[above - 1])
        ends = np.unique(above - (further >= -1e-12 * running[-1]))  # fractional weights round
        ends = ends[(ends > 0) & (ends < entries)]
        if ends.tobytes() not in seen:
            seen.add(ends.tobytes())
            yield ends


@dataclass(frozen=True, eq=False)
class Histogram:
    """Bins between thresholds, what each says, and the logarithm of the likelihood that all of them have."""

    thresholds: Floats
    values: Floats
    score: float

    @classmethod
    def of(cls, ends: Ints, borders: Floats, running: Floats, hits: Floats) -> Histogram:
        """The histogram whose inner borders lie after so many distinct scores, from running weights and hits.

        >>> histogram = Histogram.of(np.array([1]), np.array([.5]), np.array([0., 1., 2.]), np.array([0., 0., 1.]))
        >>> histogram.values.tolist(), round(math.exp(histogram.score), 6)  # each outcome had a chance of 3/4
        ([0.125, 0.875], 0.5625)
        """
        from scipy.special import gammaln  # type: ignore[import-untyped]

        thresholds, corners = borders[ends - 1], np.concatenate([[0], ends, [-1]])
        size = np.diff(running[corners])
        happened = np.clip(np.diff(hits[corners]), 0.0, size)  # fractional weights round
        middle = (np.append(0.0, thresholds) + np.append(thresholds, 1.0)) / 2
        prior = STRENGTH / len(size)
        alpha = prior * np.clip(middle, FLOOR, 1.0 - FLOOR)
        beta = prior - alpha
        score = (
            gammaln(prior) - gammaln(size + prior)
            + gammaln(happened + alpha) - gammaln(alpha)
            + gammaln(size - happened + beta) - gammaln(beta)
        ).sum()  # fmt: skip
        return cls(thresholds, (happened + alpha) / (size + prior), float(score))


def _borders(scores: Floats) -> Floats:
    """Halfway between neighbouring scores, below the higher one even where there is no number between them."""
    low, high = scores[:-1], scores[1:]
    middle = (low + high) / 2
    return np.where(middle < high, middle, low)
