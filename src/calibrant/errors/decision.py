"""Decisions: what acting on forecasts above a threshold is worth."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.aggregates import Across, mean_of
from calibrant.binning.bounds import Boxes
from calibrant.binning.fixed import cuts_at
from calibrant.binning.running import Ladder
from calibrant.checks import number
from calibrant.errors.statistic import OfEach
from calibrant.kernels.totals import Floats
from calibrant.lenses.events import TopLabel
from calibrant.lenses.lens import Lens
from calibrant.selections import Mask, Selection, everything
from calibrant.specification.facts import Facts


@dataclass(frozen=True, repr=False)
class NetBenefit(OfEach):
    r"""What is gained by acting where the forecast reaches a threshold, in true positives per sample?

    .. math:: \frac{\mathrm{TP}}{n} - \frac{\mathrm{FP}}{n} \frac{t}{1 - t}

    counted over forecasts :math:`p \ge t`, compared in the precision of the forecasts. A threshold t says that one true
    positive is worth (1 - t) / t false ones. Acting on nobody has net benefit 0; acting on everybody is t = 0's counts
    at this t. Soft labels count as shares of outcomes; fractional weights are refused. Asks events only.

    References: Vickers & Elkin (2006).

    >>> print(NetBenefit(0.2)([0, 0, 1, 1], [.1, .3, .2, .8]))  # 2/4 - 1/4 * .2/.8
    NetBenefit 0.4375 (n=4, event, threshold 0.2)
    """

    threshold: float
    select: Selection = everything
    lens: Lens = TopLabel()
    across: Across = mean_of

    def __post_init__(self) -> None:
        number(self.threshold, "threshold", "must lie in [0, 1)", lambda at: 0 <= at < 1)

    @property
    def part_facts(self) -> Facts:
        """Every sample a true positive, or every sample a false one."""
        return Facts(low=-self._odds, high=1.0, calibrated=None, lower_is_better=False)

    @property
    def undecided(self) -> Callable[[Ladder], Mask]:
        """The cell that holds the threshold."""
        return self._holding

    def _holding(self, ladder: Ladder) -> Mask:
        cuts = cuts_at(dataclasses.replace(ladder, alike=None), np.array([self.threshold]), "left")
        return (ladder.ranks[:-1] >= cuts.least) & (ladder.ranks[1:] <= cuts.most)

    @property
    def _odds(self) -> float:
        return self.threshold / (1.0 - self.threshold)

    @property
    def words(self) -> str:
        """The threshold."""
        return f"threshold {self.threshold:g}"

    def number_of(self, ladder: Ladder) -> float:
        """The net benefit for one question."""
        return float(net_benefits(ladder, np.array([self.threshold]))[0])

    def between(self, ladder: Ladder) -> tuple[float, float]:
        """The fewest samples below the threshold with the most that came true among them, and the other way round."""
        boxes = Boxes.of(ladder, cuts_at(ladder, np.array([self.threshold]), "left"))
        true = ladder.targets[-1:].value[0] - np.concatenate(boxes.targets)[::-1]
        acted = ladder.n - np.concatenate(boxes.ranks)
        low, high = (true - (acted - true) * self._odds) / ladder.n
        return float(low), float(high)


def net_benefits(ladder: Ladder, thresholds: Floats) -> Floats:
    """The net benefit at each threshold below 1.

    >>> (ladder,) = NetBenefit(0.5).summarise([0, 0, 1, 1], [.1, .3, .2, .8]).ladders()
    >>> net_benefits(ladder, np.array([0., .2, .5])).tolist()
    [0.5, 0.4375, 0.25]
    """
    below = ladder.below(thresholds, "left")
    true = ladder.targets[-1:].value - ladder.running_targets(below).value
    return (true - (ladder.n - below - true) * thresholds / (1.0 - thresholds)) / ladder.n
