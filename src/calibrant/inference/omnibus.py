"""The omnibus test: is anything wrong with the calibration? Several tests in one, exact by redrawn labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant.checks import whole
from calibrant.inference.calibration_tests import whitening
from calibrant.inference.class_totals import ClassTotals
from calibrant.inference.draws import check_seed, replicate
from calibrant.inference.label_scores import LabelScores
from calibrant.inference.main_question import MOST_DRAWN, MainQuestion
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions
from calibrant.specification.encoding import number
from calibrant.text import p_value

MEMBERS = ("Cox", "Spiegelhalter", "Kolmogorov-Smirnov", "kernel", "Hosmer-Lemeshow")
OF_CLASSES, OF_LABELS = "class totals", "each label"
"""The member that forecasts of classes have besides, and that of forecasts of several labels."""
MOST_CELLS = 512
"""Distinct forecasts of which all pairs are compared; more are put into so many cells of about equal variance."""
BINS = 10


@dataclass(frozen=True)
class CalibrationTest:
    """The omnibus test of calibration: its p-value, and what each of its members says.

    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> fine, off = (cal.Predictions.from_probs(rng.random(400) < rate, p) for rate in (p, p**2))
    >>> print(cal.calibration_test(off, n=199))
    calibration test: p < 0.006, loudest Cox (n=400, event, 199 redraws)
    >>> cal.calibration_test(fine, n=199).p_value > 0.05
    True
    """

    question: str
    n: int
    """How many forecasts were tested."""
    p_value: float
    statistics: dict[str, float]
    """Each member's statistic: the larger, the more speaks against calibration."""
    p_values: dict[str, float]
    """Each member's own p-value, not corrected for their number: `p_value` is."""
    redraws: int
    clusters: int | None = None

    @property
    def loudest(self) -> str:
        """The member with the smallest p-value; of several, the first."""
        return min(self.p_values, key=lambda name: self.p_values[name])

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        statistics = {name: number(value) for name, value in self.statistics.items()}
        return {**vars(self), "statistics": statistics, "loudest": self.loudest}

    def __str__(self) -> str:
        words = f"n={self.n}, {self.question}{f', {self.clusters} groups' if self.clusters else ''}"
        p = p_value(self.p_value, self.redraws)
        return f"calibration test: {p}, loudest {self.loudest} ({words}, {self.redraws} redraws)"


def calibration_test(
    predictions: Predictions, n: int = 999, seed: int = 0, groups: str | None = None
) -> CalibrationTest:
    r"""Is there anything wrong with the calibration: a shift, a slope, a wave, a range that is off?

    Five statistics of the residuals are looked at: Cox's score statistic (`cox_test`), the absolute value of
    Spiegelhalter's (`spiegelhalter_test`), the largest cumulative difference (`CumulativeError`), the sum over all
    pairs of rows of :math:`k(p_i, p_j)\, w_i (y_i - p_i)\, w_j (y_j - p_j)` with an exponential kernel of median scale,
    and that of Hosmer and Lemeshow on 10 bins of equal variance. Where the probability of every class is known, a sixth
    is the quadratic form of the class totals, observed less expected (`ClassTotals`): it sees classes that are forecast
    too often while others are not often enough. Of several labels the sixth is the sum of Cox's statistics of each
    (`LabelScores`): it sees labels that are forecast too high while others are too low.

    Each is ranked among its values under n redraws of the labels from the forecasts, and the ranks are combined by the
    mean of :math:`\tan((1/2 - p) \pi)` (Cauchy). That mean is ranked among those of the redraws in turn:
    p = (number at least as large, itself included) / (n + 1).

    So it holds its level exactly, at every n, for any forecasts, ties and weights, where rows are independent. The
    question is the event, or whether the likeliest class is right, and how often each class came true; independent
    labels are pooled by the first five. A weighted row is one independent row.

    With `groups`, the name of a column, rows of one value may depend on each other in any way: calibration then means
    calibrated on average over groups. The p-values are the larger ones of two: of redrawn labels, and of the residuals
    with the signs of whole groups flipped at random. The second is no longer exact: it needs many groups, about 30 or
    more, none of which holds most of the rows.

    Costs O(n) a redraw and the square of the number of distinct forecasts, of which more than 512 are put into that
    many cells for the kernel. Repeatable by `seed`.

    References: Liu & Xie (2020) for the Cauchy mean; Widmann, Lindsten & Zachariah (2019) for the kernel.

    >>> import calibrant as cal
    >>> test = cal.calibration_test(cal.Predictions.from_probs([1, 0, 1, 0], [.9, .2, .6, .7]), n=99)
    >>> test.p_value > 0.05, list(test.p_values)[:2]
    (True, ['Cox', 'Spiegelhalter'])
    """
    whole(n, "n", 1)
    check_seed(seed)
    answers = MainQuestion.of(predictions, groups)
    statistics = _Members.of(answers, LabelScores.of(answers) or ClassTotals.of(predictions, answers))
    redraws = {6: _redrawn} if answers.cluster is None else {6: _redrawn, 7: _flipped}
    block = int(np.clip(MOST_DRAWN // len(answers), 1, n))
    observed = statistics.observed(answers)
    tables = []
    for stage, drawn in redraws.items():
        work = partial(_work, answers, statistics, drawn)
        values = replicate(work, n, seed, stage=stage, block=block, what="calibration test")
        tables.append(_ranked(np.concatenate([observed, values])))
    overall, members = np.max([table[0] for table in tables]), np.max([table[1] for table in tables], axis=0)
    if answers.impossible:
        overall, members, observed = 1 / (n + 1), np.full_like(members, 1 / (n + 1)), np.full_like(observed, math.inf)
    return CalibrationTest(
        answers.question,
        len(answers),
        float(overall),
        dict(zip(statistics.names, observed[0].tolist(), strict=True)),
        dict(zip(statistics.names, members.tolist(), strict=True)),
        n,
        None if answers.cluster is None else int(answers.cluster.max()) + 1,
    )


Besides = ClassTotals | LabelScores
"""What the sixth member looks at."""


@dataclass(frozen=True, eq=False)
class _Members:
    """The statistics of residuals (r, n), and of classes or labels, as (r, members); large is bad."""

    scores: Floats
    """Features (n, 3) of which the first two make Cox's statistic, the third Spiegelhalter's."""
    ends: Ints
    """The last answer of each distinct forecast."""
    cells: Ints
    similarity: Floats
    bins: Ints
    bin_scale: Floats
    scale: float
    classes: Besides | None

    @classmethod
    def of(cls, answers: MainQuestion, classes: Besides | None) -> _Members:
        variances = answers.variances
        lines = np.column_stack([np.ones(len(answers)), answers.log_odds])
        brier = 1.0 - 2.0 * answers.forecasts[:, None]
        whitened = [features @ _filled(features, variances) for features in (lines, brier)]
        cells = answers.ends if len(answers.ends) <= MOST_CELLS else answers.cut(variances, MOST_CELLS)
        bins = answers.cut(variances, BINS)
        return cls(
            np.column_stack(whitened),
            answers.ends,
            cells,
            _similarity(_between(np.cumsum(answers.forecasts), cells) / np.diff(cells, prepend=-1)),
            bins,
            _inverse(_between(np.cumsum(variances), bins)),
            float(_inverse(variances.sum())),
            classes,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The members."""
        if self.classes is None:
            return MEMBERS
        return (*MEMBERS, OF_LABELS if isinstance(self.classes, LabelScores) else OF_CLASSES)

    def observed(self, answers: MainQuestion) -> Floats:
        """The statistics (1, members) of what was seen."""
        return self(answers.residuals[None], None if self.classes is None else self.classes.observed)

    def __call__(self, residuals: Floats, differences: Floats | None) -> Floats:
        running = np.cumsum(residuals, axis=1)
        cox = residuals @ self.scores
        pooled = _between(running, self.cells)
        pairs = np.einsum("rc,rc->r", pooled @ self.similarity, pooled) - np.square(residuals).sum(axis=1)
        statistics = [
            np.square(cox[:, :2]).sum(axis=1),
            np.abs(cox[:, 2]),
            np.abs(running[:, self.ends]).max(axis=1) * math.sqrt(self.scale),
            pairs * self.scale,
            (np.square(_between(running, self.bins)) * self.bin_scale).sum(axis=1),
        ]
        if self.classes is not None and differences is not None:
            statistics.append(self.classes.statistic(differences))
        return np.column_stack(statistics).round(9)  # sums in another order may differ by some 1e-16: those are ties


Drawn = tuple[Floats, Floats | None]
"""Residuals (r, n), and differences of class totals (r, K) where there are classes."""


def _work(
    answers: MainQuestion,
    statistics: _Members,
    drawn: Callable[[MainQuestion, Besides | None, np.random.Generator, int], Drawn],
    rng: np.random.Generator,
    count: int,
) -> Floats:
    return statistics(*drawn(answers, statistics.classes, rng, count))


def _redrawn(answers: MainQuestion, classes: Besides | None, rng: np.random.Generator, count: int) -> Drawn:
    """Of labels that happen as often as they are forecast."""
    hits = rng.random((count, len(answers))) < answers.forecasts
    return answers.weight * (hits - answers.forecasts), None if classes is None else classes.redrawn(hits, rng)


def _flipped(answers: MainQuestion, classes: Besides | None, rng: np.random.Generator, count: int) -> Drawn:
    """Of the residuals with the signs of whole groups at random."""
    assert answers.cluster is not None
    signs = rng.choice([-1.0, 1.0], (count, int(answers.cluster.max()) + 1))
    differences = None if classes is None else classes.flipped(answers.cluster, signs)
    return answers.residuals * signs[:, answers.cluster], differences


def _ranked(statistics: Floats) -> tuple[float, Floats]:
    """The p-value of the first row among all by the Cauchy mean, and that of each of its columns alone.

    Ties share their mean rank in the Cauchy mean, so that a statistic that is always the same says nothing.
    """
    total = len(statistics)
    ordered = np.sort(statistics, axis=0)
    below, within = (
        np.column_stack([np.searchsorted(ordered[:, k], statistics[:, k], side) for k in range(ordered.shape[1])])
        for side in ("left", "right")
    )
    shares = 1.0 - (below + within) / 2 / total
    combined = np.tan((0.5 - shares) * math.pi).mean(axis=1).round(9)
    return float(np.mean(combined >= combined[0])), (total - below[0]) / total


def _filled(features: Floats, variances: Floats) -> Floats:
    """What whitens the scores of some features; columns of 0 where they are fewer than features."""
    white = whitening((features * variances[:, None]).T @ features)
    return np.pad(white, ((0, 0), (0, features.shape[1] - white.shape[1])))


def _between(running: Floats, ends: Ints) -> Floats:
    """Sums up to each end from the one before, of running sums along the last axis."""
    return np.diff(running[..., ends], axis=-1, prepend=0.0)


def _similarity(places: Floats) -> Floats:
    """The exponential kernel of places at the median of their distances."""
    distances = np.abs(places[:, None] - places)
    positive = distances[distances > 0]
    return np.exp(-distances / (np.median(positive) if len(positive) else 1.0))


def _inverse(values: Floats) -> Floats:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
