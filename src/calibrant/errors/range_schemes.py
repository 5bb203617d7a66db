"""The ensemble of range schemes: one binned error, averaged over several ways to make the bins."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.aggregates import Across, Aggregate, mean, mean_of
from calibrant.binning.bounds import Bracketed
from calibrant.binning.contract import RankBinning, Refinable
from calibrant.binning.ladder import Forecasts
from calibrant.binning.ranked import EqualMass
from calibrant.binning.running import Ladder
from calibrant.distances import Distance, tvd
from calibrant.errors.asking import OfTable
from calibrant.errors.binned import BinnedError
from calibrant.errors.label_binned import require_cuts
from calibrant.exceptions import CalibrationInputError
from calibrant.lenses import Lens, TopLabel
from calibrant.result import Result
from calibrant.selections import Mask, Selection, everything
from calibrant.specification.facts import Facts, facts_of

USUAL = tuple(EqualMass(n_bins) for n_bins in (5, 10, 15, 20, 30))
"""Range schemes where none are named."""


@dataclass(frozen=True, repr=False)
class EnsembleError(OfTable):
    r"""The mean of one binned error over several binnings: no single placing of edges decides the number.

    .. math:: \mathrm{across}_v \; \frac1R \sum_{r=1}^R \mathrm{aggregate}_{b \in r} \;
        \mathrm{distance}(\bar p_{vb}, \bar y_{vb})

    All schemes cut one sorted table with running totals, so a scheme more costs no pass over the data. `binnings` are
    those of events: `EqualMass`, `EqualWidth`, `Edges`, `Quantiles`, `Sweep`. Of one question the details tell the
    smallest and the largest value of a scheme. It is no less biased than its schemes are on average.

    References: Nixon et al. (2019), section 5.4, which suggests such an ensemble.

    >>> import calibrant as cal
    >>> halves = cal.EnsembleError(binnings=[cal.EqualMass(1), cal.EqualMass(2)])
    >>> result = halves([1, 0, 1, 1], [.6, .7, .8, .9])
    >>> print(result)
    EnsembleError 0.0750 (n=4, event, mean of 2 binnings)
    >>> result.details["smallest"].__round__(10), result.details["largest"].__round__(10)
    (0.0, 0.15)
    """

    select: Selection = everything
    lens: Lens = TopLabel()
    binnings: Sequence[RankBinning] = USUAL
    distance: Distance = tvd
    aggregate: Aggregate = mean
    across: Across = mean_of

    def __post_init__(self) -> None:
        object.__setattr__(self, "binnings", tuple(self.binnings) if np.iterable(self.binnings) else (self.binnings,))
        if not self.binnings:
            raise CalibrationInputError("binnings", "must not be empty", got="none")
        for binning in self.binnings:
            require_cuts(binning, "EnsembleError")

    @property
    def members(self) -> list[BinnedError]:
        """The binned error of each scheme."""
        kept = (self.distance, self.aggregate, self.across)
        return [BinnedError(self.select, self.lens, binning, *kept) for binning in self.binnings]

    @property
    def part_facts(self) -> Facts:
        """What is known of each scheme holds of their mean."""
        return facts_of(self.distance).through(self.aggregate)

    @property
    def facts(self) -> Facts:
        """What is known of the parts, and the metric that takes this one's place when rows are resampled."""
        facts = self.facts_across()
        plain = None if facts.tends_to is None else self.replace(distance=facts.tends_to)
        return dataclasses.replace(facts, tends_to=plain)

    @property
    def undecided(self) -> Callable[[Ladder], Mask] | None:
        """What any of the schemes says; None where one says nothing."""
        schemes = [binning for binning in self.binnings if isinstance(binning, Refinable)]
        if len(schemes) < len(self.binnings):
            return None
        return lambda ladder: np.logical_or.reduce([scheme.undecided(ladder) for scheme in schemes])

    def answer(self, summary: Forecasts) -> Result:
        """Cut the table by each scheme, then average."""
        bins = [summary.cut(binning.cuts) for binning in self.binnings]
        values = np.array([member.pooled(each) for member, each in zip(self.members, bins, strict=True)])
        single = {"smallest": float(values.min()), "largest": float(values.max())} if values.shape[1] == 1 else {}
        words = f"mean of {len(bins)} binnings" if len(bins) > 1 else str(self.binnings[0])
        return self.combined(summary.about, values.mean(axis=0), bins[0].held, words, details=single)

    def between(self, ladder: Ladder) -> tuple[float, float] | None:
        """The mean of the schemes' bounds."""
        if not all(isinstance(binning, Bracketed) for binning in self.binnings):
            return None
        ends = [member.between(ladder, member.binning) for member in self.members]  # type: ignore[arg-type]
        low, high = np.mean(ends, axis=0)
        return float(low), float(high)
