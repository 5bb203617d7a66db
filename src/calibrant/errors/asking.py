"""What estimators share: they select rows, ask a lens, combine the questions and say their choices in words."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, Literal, Unpack, final

import numpy as np

from calibrant.aggregates import Across
from calibrant.binning.contract import STREAM, TABLE
from calibrant.binning.ladder import Forecasts
from calibrant.binning.running import Ladder
from calibrant.binning.tallying import suits, tallied
from calibrant.bins import Bins
from calibrant.door.options import DoorOptions
from calibrant.errors.bounding import bounded, tied, unavailable
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.caching import cached_property
from calibrant.kernels.totals import Floats
from calibrant.lenses.lens import Lens
from calibrant.metric import Metric, checked
from calibrant.predictions import Predictions
from calibrant.result import Result
from calibrant.selections import Mask, Selection
from calibrant.specification.facts import UNKNOWN, Facts, facts_of
from calibrant.specification.naming import identity, spoken
from calibrant.summaries import About, S, Summary
from calibrant.views import View

Reads = tuple[tuple[str, str], ...]
IN_CELLS = "binning", f"{TABLE} in cells, opened: none"
"""What is read where forecasts are counted in cells."""


class Asking(Metric[S]):
    """A metric that asks a lens about selected rows, and has a rule across the lens's questions.

    An estimator of one's own gives `summarise_view` and `answer`; the rest is here.
    """

    select: Selection
    lens: Lens
    across: Across

    @abstractmethod
    def summarise_view(self, view: View) -> S:
        """What must be kept of what the lens saw; it adds."""

    @abstractmethod
    def answer(self, summary: S) -> Result:  # type: ignore[misc]  # another metric's summary is refused before
        """The number that follows from a summary of this metric's own."""

    @property
    def block(self) -> int | None:
        """Forecasts to view at once; None where the summary keeps all samples anyway."""
        return None

    @property
    def reading(self) -> tuple[str, str]:
        """What the estimator keeps of a view: the choice's name, and a line that is equal where summaries add."""
        return "estimator", identity(self)

    @cached_property
    def reads(self) -> Reads:
        """The choices that `summarise` reads."""
        return (("selection", identity(self.select)), ("lens", identity(self.lens)), self.reading)

    @property
    def undecided(self) -> Callable[[Ladder], Mask] | None:
        """Which cells of a table must be opened for the value to be exact; None where cells are of no use."""
        return None

    def refine(self, summary: S | Literal[0] | None = None) -> Metric:
        """A first pass in cells, where they are of use; what has been summarised by the metric itself is complete."""
        return self if self.undecided is None or summary is not None else Pass(self)

    def within(self, table: Forecasts) -> Result:
        """What a table in cells tells: a value, and the bounds between which the exact one lies."""
        raise unavailable(self)

    @property
    def asks_event(self) -> bool:
        """Whether its one question, of forecasts of one event, is that event, of all rows."""
        return facts_of(self.select).takes_all and facts_of(self.lens).asks_event

    @property
    def part_facts(self) -> Facts:
        """What is known of the value of one question; nothing, unless the estimator says so."""
        return UNKNOWN

    @property
    def facts(self) -> Facts:
        """What is known of the metric's values."""
        return self.facts_across()

    @final
    def facts_across(self) -> Facts:
        """What is known of the parts, passed through the rule across questions.

        Where labels decide which samples count, calibrated forecasts need not agree with them; and an order is that of
        the event itself.
        """
        facts = self.part_facts.through(self.across)
        free = not (facts_of(self.lens).looks_at_labels or facts_of(self.select).looks_at_labels)
        calibrated = facts.calibrated if free or facts.calibrated is None else math.nan
        order = facts.order if self.asks_event else None
        return dataclasses.replace(facts, slot="metric", estimator=None, words=None, calibrated=calibrated, order=order)

    @final
    def summarise(
        self,
        y_true: object,
        y_proba: object = None,
        **options: Unpack[DoorOptions],
    ) -> S:
        """What must be kept of predictions, or of labels and probabilities; summaries add."""
        predictions = checked(y_true, y_proba, options, self.summarise)
        views = self.views(predictions, self.block, self.summarised_by(predictions))
        summary = self.summarise_view(next(views))
        for view in views:  # one block in memory at a time
            summary = summary + self.summarise_view(view)
        return summary

    @final
    def conclude(self, summary: S | Literal[0]) -> Result:
        """The number that follows from a summary; that of a metric which reads the data in another way is refused."""
        return self.answer(self.own(summary))

    @final
    def own(self, summary: S | Literal[0]) -> S:
        """The summary, if it is one of this metric."""
        if not isinstance(summary, Summary):
            raise CalibrationInputError("summary", "must be what summarise gave", got=repr(summary))
        known = tuple(choice for choice in summary.about.reads if choice[0] != CLASSES)
        if known != self.reads:
            about = dataclasses.replace(summary.about, reads=known)
            about.require(self.reads, "summary", f"must be one of {self.name}")
        return summary

    def summarised_by(self, predictions: Predictions) -> Lens:
        """The lens whose views are summarised: the metric's own, or one that leaves out what no summary needs."""
        return self.lens

    def selected(self, predictions: Predictions) -> Mask:
        """Which rows count: a mask."""
        mask = self.select(predictions)
        if not str(getattr(mask, "dtype", "")).endswith("bool") or tuple(mask.shape) != (len(predictions),):
            got = f"{type(mask).__name__} from {self.select!r}"
            raise CalibrationInputError("select", f"must give {len(predictions)} booleans, one a row", got=got)
        return mask

    def views(self, predictions: Predictions, block: int | None, lens: Lens | None = None) -> Iterator[View]:
        """What the metric's lens, or another one, sees of the selected samples, in blocks of so many forecasts."""
        lens = self.lens if lens is None else lens
        selected = predictions if facts_of(self.select).takes_all else predictions[self.selected(predictions)]
        reads = self.reads
        named = facts_of(self.select).names_classes or facts_of(self.lens).names_classes
        if predictions.classes and (named or not predictions.n_classes):  # an event is one of two names
            reads += ((CLASSES, ", ".join(map(repr, predictions.classes))),)
        for part in [selected] if block is None or self._is_lean(predictions, lens) else selected.blocks(block):
            view = lens(part)
            yield dataclasses.replace(view, about=dataclasses.replace(view.about, reads=reads))

    lean: ClassVar[bool] = False
    """Whether hard labels without weights are summarised without an array as large as the outputs."""

    def _is_lean(self, predictions: Predictions, lens: Lens) -> bool:
        """Whether a view of all samples is small beside the forecasts of all classes."""
        plain = predictions.labels is not None and predictions.weight is None and not predictions.logits
        as_given = plain and self.lean and facts_of(lens).as_given
        return predictions.n_classes > 0 and (as_given or facts_of(lens).narrow)

    def view(self, predictions: Predictions) -> View:
        """What the lens sees of the selected samples, all at once."""
        return next(self.views(predictions, None))

    def combined(
        self,
        about: About,
        values: Floats,
        sizes: Floats,
        *words: str,
        bins: Bins | None = None,
        details: dict[str, float] | None = None,
        notes: tuple[str, ...] = (),
    ) -> Result:
        """The result of the questions' values, with notes on what a reader should know."""
        combined, several = self.across(values, sizes), bool(about.names)
        return Result(
            self,
            combined["value"],
            about,
            ", ".join(word for word in (*self._choices(about), *words) if word),
            bins,
            {**(details or {}), **{name: number for name, number in combined.items() if name != "value"}},
            notes=(*about.notes, *notes, *_remarks(bins, sizes)),
            values=tuple(values.tolist()) if several else (),
            sizes=tuple(sizes.tolist()) if several else (),
        )

    def _choices(self, about: About) -> Iterator[str]:
        """The choices of the rule in words; those that are the default go without saying."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        for name in ("select", "binning", "distance", "aggregate", "across"):
            if name in fields and (name != "across" or about.names):
                words = spoken(fields[name])
                yield f"where {words}".replace("where where(", "where(") if name == "select" and words else words


class OfTable(Asking[Forecasts]):
    """A metric of events that concludes from the table of distinct forecasts."""

    reading: ClassVar[tuple[str, str]] = "binning", TABLE

    def summarise_view(self, view: View) -> Forecasts:
        """The table of what the lens saw."""
        view.require_event(type(self).__name__, "TopLabel(), OneClass(c) or Classwise()")
        return Forecasts.of(view, type(self).__name__)

    def between(self, ladder: Ladder) -> tuple[float, float] | None:
        """The least and the largest value of a question with samples, some in cells; None where nothing is known."""
        return None

    def within(self, table: Forecasts) -> Result:
        """The value of tied cells, and between what that of the rows lies."""
        ends = [self.between(ladder) if ladder.n else (math.nan, math.nan) for ladder in table.ladders()]
        if None in ends:
            raise unavailable(self)
        return bounded(self.answer(tied(self, table)), self, table, *np.array(ends, np.float64).T)


@dataclasses.dataclass(frozen=True, repr=False)
class Pass(Asking[Forecasts]):
    """One of several passes over the data: a metric that follows the order of forecasts, whose table is in cells.

    `opened` are the cells whose forecasts are kept apart: (question, cell). `refine` gives the next pass, or itself. It
    travels as JSON like any metric, so that other machines can make the same pass.
    """

    metric: Asking[Summary]
    opened: tuple[tuple[int, int], ...] = ()
    block: ClassVar[int] = STREAM

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Asking) or self.metric.reading != OfTable.reading:
            got = repr(self.metric)[:80]
            raise CalibrationInputError("Pass", "needs a metric of the table of forecasts", got=got)
        if any(not isinstance(cell, tuple) or [type(place) for place in cell] != [int, int] for cell in self.opened):
            raise CalibrationInputError("Pass", "needs pairs (question, cell) as opened", got=repr(self.opened)[:80])
        for choice in ("select", "lens", "across"):
            object.__setattr__(self, choice, getattr(self.metric, choice))

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.metric.name

    def __repr__(self) -> str:
        return f"Pass({self.metric!r}, {len(self.opened)} cells opened)"

    @property
    def part_facts(self) -> Facts:
        """What is known of the metric."""
        return self.metric.part_facts

    @property
    def reading(self) -> tuple[str, str]:
        """The table, and which of its cells are opened."""
        known = hashlib.sha256(repr(self.opened).encode()).hexdigest()[:12]
        return ("binning", f"{TABLE} in cells, opened: {known}") if self.opened else IN_CELLS

    def summarise_view(self, view: View) -> Forecasts:
        """The table of what the lens saw, in cells."""
        if suits(view):
            return tallied(view, self.opened)
        table = self.metric.summarise_view(view)
        assert isinstance(table, Forecasts)
        return table.in_cells(self.opened)

    def refine(self, summary: Forecasts | Literal[0] | None = None) -> Metric:
        """The pass that opens what is still undecided, or the metric where that is all; this one where nothing is."""
        if summary is None:
            return self
        table, undecided = self.own(summary), self.metric.undecided
        if table.closed is None:
            return self.metric
        asked = table.closed if undecided is None else np.concatenate([*map(undecided, table.ladders())])
        wanted = asked & table.closed
        if not wanted.any():
            return self
        opened = tuple(sorted((*self.opened, *table.cells_at(wanted))))
        return self.metric if wanted.sum() == table.closed.sum() else Pass(self.metric, opened)

    def told(self, summary: Forecasts | Literal[0]) -> Result:
        """The metric's own answer, or what cells tell of it where another pass would be needed."""
        table = self.own(summary)
        return self.answer(table) if self.refine(table) is self else self.metric.within(table)

    within = told  # type: ignore[assignment]  # mypy minds the name of the argument

    def answer(self, summary: Forecasts) -> Result:
        """The metric's own answer."""
        if self.refine(summary) is not self:
            got = f"cells in which the order of forecasts matters to {self.name}"
            hint = "another pass is needed: summarise the data with what refine(summary) gives"
            raise CalibrationInputError("summary", "must be one of the last pass", got=got, hint=hint)
        reads = tuple(self.metric.reading if choice == self.reading else choice for choice in summary.about.reads)
        about = dataclasses.replace(summary.about, reads=reads)
        return self.metric.answer(dataclasses.replace(summary, about=about))


CLASSES = "classes"
"""The name under which summaries remember the classes, where their order and names matter."""


def _remarks(bins: Bins | None, sizes: Floats) -> list[str]:
    if not sizes.any():
        return ["no samples: the selection is empty"]
    remarks = []
    if bins is not None and bins.cells is not None and np.median(bins.counts[bins.counts > 0]) < 5:
        remarks.append("the median cell has fewer than 5 samples: the error is mostly noise")
    if bins is not None and bins.shape[0] == 1 and bins.requested[0] > bins.counts.sum():
        remarks.append("more bins than samples")
    return remarks
