"""Metrics of bins: they pool answers, and give each question a value from its bins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import final

from calibrant.binning.contract import Binning, Refinable, bins_of
from calibrant.binning.running import Ladder
from calibrant.bins import Bins
from calibrant.errors.asking import Asking
from calibrant.kernels.totals import Floats
from calibrant.predictions import Predictions
from calibrant.result import Result
from calibrant.selections import Mask
from calibrant.specification.facts import UNKNOWN, facts_of
from calibrant.specification.naming import identity
from calibrant.summaries import Summary
from calibrant.views import View


class OfBins(Asking[Summary]):
    """A metric that pools answers into bins and gives each question a value from its bins."""

    binning: Binning

    @property
    def block(self) -> int | None:
        """As many forecasts as the binning wants to see."""
        return self.binning.block

    @property
    def reading(self) -> tuple[str, str]:
        """What the binning keeps."""
        return "binning", facts_of(self.binning).reads or identity(self.binning)

    @property
    def undecided(self) -> Callable[[Ladder], Mask] | None:
        """What the binning says."""
        return self.binning.undecided if isinstance(self.binning, Refinable) else None

    def summarise_view(self, view: View) -> Summary:
        """The binning's summary of what the lens saw."""
        return self.binning.summarise(view)

    @property
    def lean(self) -> bool:  # type: ignore[override]  # known of each metric
        """Fixed edges add up answers as they come."""
        return facts_of(self.binning).fixed

    def at_once(self, predictions: Predictions) -> Result:
        """Bins without a summary, where the binning makes them so: to the bit those of the summary, in less time."""
        at_once = getattr(self.binning, "at_once", None)
        bins = None if at_once is None else at_once(self.view(predictions))
        return super().at_once(predictions) if bins is None else self.of_bins(bins)

    @final
    def answer(self, summary: Summary) -> Result:
        """Bins, then the number that follows from them."""
        return self.of_bins(bins_of(self.binning, summary))

    @abstractmethod
    def of_bins(self, bins: Bins) -> Result:
        """The number that follows from bins."""

    @abstractmethod
    def pooled(self, bins: Bins) -> Floats:
        """One value a question (v,)."""

    @property
    def sums_suffice(self) -> bool:
        """Whether bins need no more than sizes, sums and ends to be pooled: known of pieces that declare facts."""
        return self.part_facts != UNKNOWN
