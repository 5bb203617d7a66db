"""Bins that share outcomes: of forecasts that tie across a cut, and of rows that belong together."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from calibrant.binning.contract import Binning, RankBinning
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.bins import Bins
from calibrant.door.arrays import Array
from calibrant.inference.gap_sums import GapSum
from calibrant.kernels.totals import Floats, Ints
from calibrant.summaries import Summary
from calibrant.views import View

STEADY = 10
"""The design effect of a bin counts as that of its groups and of so many more that show the mean over all bins."""

MOST_ANSWERS = 1 << 21
"""Answers from which it is told how bins of several questions depend on each other."""
CLEAR = 1.0
"""A gap of fewer standard errors may as well have the other sign."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """What independent units add to the bins, an entry for each unit and bin in which it has a part.

    >>> parts = Contributions(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([1.0, 1.0, 2.0]))
    >>> parts.squares(2).tolist(), parts.summed(np.ones(2))
    ([1.0, 5.0], 8.0)
    """

    unit: Ints
    bin: Ints
    amount: Floats

    def squares(self, bins: int) -> Floats:
        """Of each bin, the sum over units of squared amounts."""
        return np.bincount(self.bin, np.square(self.amount), bins).astype(np.float64)

    def summed(self, weights: Floats) -> float:
        """The sum over units of the square of what they add to all bins together, each bin with its weight."""
        return float(np.square(np.bincount(self.unit, weights[self.bin] * self.amount)).sum())


@dataclass(frozen=True, eq=False)
class Sharing:
    """How many independent samples are behind each bin that holds some, and how bins depend on each other."""

    parts: Contributions
    size: Floats
    each: Floats
    """How far one sample of a bin moves the sum of gaps, per share of the bin: (patterns, bins). Bins that move
    together in any of the patterns of signs depend on each other."""
    alone: Floats | None = None
    """Under groups: the variance of each bin's summed gaps if rows were independent."""
    mixed: float = 1.0
    """Under groups: how much more the mix of bins varies than that of independent rows would."""
    pooled: int = 1
    """How many answers of a row are pooled: the mix of bins counts as that of so many times fewer answers."""

    def applied(self, sums: GapSum, first: int = 0) -> GapSum:
        """The sum over some of the bins, from the first of them on, with what is known of their dependence."""
        bins = np.arange(first, first + len(sums.size))
        weights = np.zeros_like(self.each)
        weights[:, bins] = sums.share * self.each[:, bins]
        whole, n = max(map(self.parts.summed, weights)), sums.n / self.pooled
        if self.alone is not None:
            n /= max(1.0, self.mixed, whole / max(float(np.square(weights[0]) @ self.alone), 1e-300))
        apart = max(float(np.square(weights[0]) @ self.parts.squares(weights.shape[1])), 1e-300)
        size = self.size[bins]
        rarer = sums.rarer * min(1.0, float(size.sum() / sums.size.sum()))
        return dataclasses.replace(sums, size=size, n=n, dependence=max(1.0, whole / apart), rarer=rarer)


def of_ties(sums: GapSum, bins: Bins, binning: RankBinning, table: Forecasts) -> Sharing:
    r"""How bins share outcomes where cuts fall among tied forecasts.

    An entry e of the table with N_e samples, summed squared weights S_e and m_eb samples in bin b gives that bin
    m_eb / N_e of its outcomes. So :math:`m_b^2 / \sum_e (m_{eb} / N_e)^2 S_e` samples are behind the frequency of bin
    b, and two bins of one entry move together.

    >>> import calibrant as cal
    >>> bins = cal.ADAPTIVE_ECE.replace(binning=cal.EqualMass(2))([1, 0, 1, 1], [.5] * 4).bins
    >>> table = cal.ADAPTIVE_ECE.summarise([1, 0, 1, 1], [.5] * 4)
    >>> sums = GapSum.of(bins, np.ones(1))
    >>> shared = of_ties(sums, bins, cal.EqualMass(2), table).applied(sums)
    >>> shared.size.tolist(), shared.dependence  # both bins show the frequency of all four rows
    ([4.0, 4.0], 2.0)
    """
    place, first = _places(bins), 0
    units, cells, amounts = [], [], []
    for question, ladder in enumerate(table.ladders()):
        counts = np.diff(ladder.ranks)
        squares = counts if ladder.squares is None else ladder.squares
        length, entry, cell = pieces(ladder, binning.cuts(ladder))
        units.append(first + entry)
        cells.append(place[question, cell])
        amounts.append(length / counts[entry] * np.sqrt(squares[entry]))
        first += len(ladder.values)
    parts = Contributions(np.concatenate(units), np.concatenate(cells), np.concatenate(amounts))
    counts = bins.counts[bins.counts > 0]
    return Sharing(parts, np.square(counts) / parts.squares(len(counts)), np.sqrt(sums.spread)[None] / counts)


def of_groups(sums: GapSum, bins: Bins, binning: Binning, view: View, summary: Summary, owner: Ints) -> Sharing:
    r"""How bins depend on each other where rows of one owner may: by the spread of what owners add to each bin.

    With :math:`d_{gb}` the summed differences of outcome and forecast of group g in bin b, less its share of the bin's
    gap, the gap of bin b has the variance :math:`\sum_g d_{gb}^2 / m_b^2`. Over that of independent rows this is the
    bin's design effect. It is drawn towards that of all bins, and is at least 1. The sum of gaps varies most where bins
    move together. The signs with which they do are those of the gaps that were seen; those of gaps below one standard
    error may also be all alike (groups that are shifted), or opposite for low and high forecasts (groups that are
    sharper or duller). The largest variance counts.

    >>> import calibrant as cal
    >>> y, p, owner = np.repeat([1, 0, 1, 0], 5), np.full(20, .5), np.repeat(np.arange(4), 5)
    >>> view, bins = cal.ECE.view(cal.Predictions.from_probs(y, p)), cal.ECE(y, p).bins
    >>> sums = GapSum.of(bins, np.ones(1))
    >>> of_groups(sums, bins, cal.ECE.binning, view, bins, owner).size.round(6).tolist()  # 4 groups of 5, n / (n - 1)
    [3.0]
    """
    answers = _BinnedAnswers.of(bins, binning, view, summary)
    counts, groups = bins.counts[bins.counts > 0], int(owner.max(initial=0)) + 1
    pair, entry = np.unique(owner[answers.row] * len(counts) + answers.bin, return_inverse=True)
    off = np.bincount(entry.ravel(), answers.weight * (answers.gap - sums.gap[answers.bin]))
    parts = Contributions(pair // len(counts), pair % len(counts), off * np.sqrt(groups / max(1, groups - 1)))
    squares = np.bincount(answers.bin, np.square(answers.weight), len(counts))
    alone, summed = np.maximum(sums.spread * squares, 1e-300), parts.squares(len(counts))
    among = np.bincount(parts.bin, minlength=len(counts))
    effect = (among * summed / alone + STEADY * summed.sum() / alone.sum()) / (among + STEADY)
    mix = answers.weight * (np.abs(sums.gap[answers.bin]) - sums.value)
    mixed = np.square(np.bincount(owner[answers.row], mix)).sum() / max(float(np.square(mix).sum()), 1e-300)
    size = np.square(counts) / squares / np.maximum(effect, 1.0)
    return Sharing(parts, size, _signs(sums, counts, summed) / counts, alone, float(mixed))


def together(sums: GapSum, bins: Bins, binning: Binning, view: View, summary: Summary, pooled: int = 1) -> Sharing:
    r"""How bins depend on each other where one label decides several answers: to several questions, or pooled ones.

    As `of_groups` does it for groups, but rows are independent, so that the samples behind a bin are known. Of very
    many answers some rows tell. `pooled` is how many answers of a row follow each other.

    >>> import calibrant as cal
    >>> y, p = np.array([0, 0, 0, 0, 1] * 20), np.tile([.9, .1], (100, 1))
    >>> view, bins = cal.SCE.view(cal.Predictions.from_probs(y, p)), cal.SCE(y, p).bins
    >>> sums = GapSum.of(bins, np.full(2, .5))
    >>> round(together(sums, bins, cal.SCE.binning, view, bins).applied(sums).dependence, 6)  # each class tells all
    2.0
    """
    size = sums.size
    if isinstance(summary, Forecasts) and isinstance(binning, RankBinning):
        size = of_ties(sums, bins, binning, summary).size
    step = max(1, -(-len(view.outputs) * view.v // MOST_ANSWERS))
    answers = _BinnedAnswers.of(bins, binning, _every(view, step, pooled), summary)
    off = answers.weight * (answers.gap - sums.gap[answers.bin])
    parts, counts = Contributions(answers.row // pooled, answers.bin, off), bins.counts[bins.counts > 0]
    return Sharing(parts, size, _signs(sums, counts, step * parts.squares(len(counts))) / counts, pooled=pooled)


def _every(view: View, step: int, pooled: int) -> View:
    """Every so manieth row of a view, with all of its pooled answers."""
    if step == 1:
        return view
    rows = (np.arange(0, len(view.outputs) // pooled, step)[:, None] * pooled + np.arange(pooled)).ravel()
    return dataclasses.replace(
        view,
        outputs=view.outputs[rows],
        targets=view.targets[rows],
        keep=None if view.keep is None else view.keep[rows],
        group=None if view.group is None else view.group[rows],
        weight=None if view.weight is None else view.weight[rows],
        logits=None,
    )


def _signs(sums: GapSum, counts: Floats, variance: Floats) -> Floats:
    """Patterns (p, bins) of the signs of true gaps: those that were seen, and for those in doubt some others."""
    sides = np.where(sums.gap >= 0, 1.0, -1.0)
    clear = np.abs(sums.gap) * counts > CLEAR * np.sqrt(variance)
    sloped = np.where(sums.forecast > float(sums.share @ sums.forecast), 1.0, -1.0)
    return np.array([sides, *(np.where(clear, sides, pattern) for pattern in (1.0, -1.0, sloped, -sloped))])


def pieces(ladder: Ladder, cuts: Ints) -> tuple[Ints, Ints, Ints]:
    """Samples in order of forecast, cut at every cut and between entries: how many, of which entry, in which bin.

    >>> import calibrant as cal
    >>> (ladder,) = cal.ADAPTIVE_ECE.summarise([1, 0, 1, 1], [.5, .5, .5, .7]).ladders()
    >>> [part.tolist() for part in pieces(ladder, np.array([0, 2, 4]))]
    [[2, 1, 1], [0, 0, 1], [0, 1, 1]]
    """
    ends = np.union1d(ladder.ranks, cuts)
    starts = ends[:-1]
    return np.diff(ends), ladder.entry(starts), np.searchsorted(cuts, starts, side="right") - 1


@dataclass(frozen=True, eq=False)
class _BinnedAnswers:
    """Answers in bins, by row: a row whose forecast ties across a cut has a share in several."""

    row: Ints
    bin: Ints
    weight: Floats
    gap: Floats
    """Outcome less forecast."""

    @classmethod
    def of(cls, bins: Bins, binning: Binning, view: View, summary: Summary) -> _BinnedAnswers:
        place, every = _places(bins), []
        ladders = list(summary.ladders()) if isinstance(summary, Forecasts) else []
        codes = np.zeros(0, np.int64) if ladders else binning.assign(view)
        for question in range(view.questions):
            rows, column = view.rows_of(question), question % view.v
            if ladders:
                assert isinstance(binning, RankBinning)
                rows, cell, weight = _spread_over(ladders[question], binning, rows, view.outputs[rows, column, 0])
            else:
                cell, weight = codes[rows, column], np.ones(len(rows))
            gap = view.truth_of(question, rows)[:, 0] - view.outputs[rows, column, 0].astype(np.float64)
            weight = weight if view.weight is None else weight * view.weight[rows]
            every.append((rows, place[question, cell], weight, gap))
        return cls(*(np.concatenate(part) for part in zip(*every, strict=True)))


def _spread_over(ladder: Ladder, binning: RankBinning, rows: Ints, outputs: Array) -> tuple[Ints, Ints, Floats]:
    """Rows, the bins in which they have a share, and that share."""
    length, entry, cell = pieces(ladder, binning.cuts(ladder))
    held = np.searchsorted(ladder.values, outputs + 0)
    first, behind = np.searchsorted(entry, held), np.searchsorted(entry, held, side="right")
    times = behind - first
    piece = np.repeat(first - np.cumsum(times) + times, times) + np.arange(times.sum())
    return np.repeat(rows, times), cell[piece], (length / np.diff(ladder.ranks)[entry])[piece]


def _places(bins: Bins) -> Ints:
    """The place of each bin (v, b) among those that hold samples."""
    return (np.cumsum(bins.counts > 0) - 1).reshape(bins.counts.shape)
