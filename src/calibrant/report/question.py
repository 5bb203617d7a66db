"""The main question of a page: what is asked of the rows, and of which event."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from calibrant.binning.fixed import EqualWidth
from calibrant.binning.ladder import Forecasts
from calibrant.door.kinds import COLUMNS
from calibrant.errors.mean_score import hit
from calibrant.inference.draws import clusters, linked
from calibrant.inference.grouped import bin_numbers, grouped
from calibrant.kernels.caching import cached_property
from calibrant.kernels.totals import Floats, Ints
from calibrant.lenses.events import Flat, TopLabel
from calibrant.metric import Metric
from calibrant.predictions import Predictions
from calibrant.report.group_gaps import Gap, gaps
from calibrant.report.quoting import counted
from calibrant.report.rebinning import RebinningCounts


@dataclass(frozen=True, eq=False)
class Question:
    """Predictions, and the event that the page is about: the likeliest class is right, what is forecast, any label.

    >>> import calibrant as cal
    >>> question = Question(cal.Predictions.from_multilabel([[1, 0], [0, 0]], [[.9, .1], [.2, .3]]), "model")
    >>> question.rows, len(question.event), question.asked(cal.MCS)(question.sampled).n
    ('2 rows of 2 labels', 4, 2)
    """

    predictions: Predictions
    name: str
    seed: int = 0
    groups: str | None = None
    """The column whose rows may depend on each other; None where rows are independent."""
    by: tuple[str, ...] | None = None
    """The columns whose values are looked at as groups; None: all that do not look like row numbers."""

    @property
    def together(self) -> int:
        """Labels of each row whose forecasts are pooled in the main question; 0 where it asks one thing a row."""
        return self.predictions.n_classes if self.predictions.forecasts.of_events else 0

    @property
    def rows(self) -> str:
        """How many rows there are, in words."""
        each = f" of {counted(self.together, 'label')}" if self.together else ""
        return f"{counted(len(self.predictions), 'row')}{each}"

    @property
    def size(self) -> str:
        """The number of rows, for titles and captions."""
        return f"n = {self.rows if self.together else f'{len(self.predictions):,}'}"

    @property
    def every(self) -> str:
        """What questions beside the main one are about."""
        return "each label" if self.together else "the likeliest classes" if self.lacking else "all classes"

    @property
    def lacking(self) -> str:
        """What questions about all classes need and do not get; empty where nothing is missing."""
        forecasts = self.predictions.forecasts
        return "" if forecasts.of_events or COLUMNS not in forecasts.lacks else forecasts.lacks[COLUMNS][0]

    @cached_property
    def event(self) -> Predictions:
        """The event of the main question: that the likeliest class is right, what is forecast, or any of the labels."""
        predictions = self.predictions
        if self.together:
            weight = None if predictions.weight is None else np.repeat(predictions.weight, self.together)
            truth, forecasts = np.ravel(predictions.labels), np.ravel(predictions.probabilities)  # type: ignore[arg-type]
            pooled = Predictions.from_probs(truth, forecasts, sample_weight=weight, copy=False)
            return dataclasses.replace(pooled, precision=predictions.precision)
        if predictions.forecasts.of_events:
            return predictions
        confidences = Predictions.from_confidence(
            hit(TopLabel()(predictions))[:, 0], predictions.confidence, sample_weight=predictions.weight, copy=False
        )
        return dataclasses.replace(confidences, columns=predictions.columns, flags=predictions.flags)

    @property
    def of_one_event(self) -> bool:
        """Whether one event is predicted: neither an answer that was chosen nor several labels."""
        return not self.predictions.forecasts.answers and not self.together

    @property
    def happening(self) -> str:
        """What the main event is, in words."""
        if self.together:
            return "a label is true"
        return f"{self.answer} is right" if self.predictions.forecasts.answers else "the event happens"

    @property
    def answer(self) -> str:
        """What is right or wrong, in words: one of the classes, or an answer of which no class is known."""
        return "the likeliest class" if self.predictions.n_classes else "the answer"

    @cached_property
    def linked(self) -> tuple[Predictions, str | None]:
        """The predictions, and the column whose values are independent: `groups`, or rows of several labels."""
        return linked(self.predictions, self.groups)

    @property
    def column(self) -> str | None:
        """The column whose values are independent; None where all forecasts are."""
        return self.linked[1]

    @cached_property
    def cluster(self) -> Ints | None:
        """The cluster of each forecast of the event by that column."""
        codes = clusters(*self.linked)
        return None if codes is None else np.repeat(codes, self.together or 1)

    @property
    def sampled(self) -> Predictions:
        """The rows that are resampled for the main question: those of the event, or with all labels of each."""
        return self.linked[0] if self.together else self.event

    def asked(self, metric: Metric) -> Metric:
        """A metric of the event as it is asked of the rows that are resampled."""
        return metric.replace(lens=Flat()) if self.together else metric

    @cached_property
    def forecast(self) -> float:
        """The mean forecast of the main event."""
        return float(np.average(self.event.probabilities, weights=self.event.weight))

    @cached_property
    def frequency(self) -> float:
        """How often the main event came true."""
        return float(np.average(self.event.truth_rows, weights=self.event.weight))

    @cached_property
    def table(self) -> Forecasts | None:
        """The event's forecasts in order; None under fractional weights."""
        table = grouped(self.event)
        if table is None or not self.together:
            return table
        about = dataclasses.replace(Flat()(self.predictions[:1]).about, n=len(self.predictions))
        return dataclasses.replace(table, about=about)

    @cached_property
    def cells(self) -> RebinningCounts:
        """The counts from which the event's forecasts are put into other bins."""
        return RebinningCounts.of(self.event, self.table, self.squares)

    @cached_property
    def whole(self) -> Gap:
        """The gap of all forecasts of the event."""
        return gaps(self.event, np.zeros(len(self.event), np.int64), ["all"], self.cluster)[0]

    @cached_property
    def squares(self) -> Floats | None:
        """The squared weight of each forecast of the event; more where they are not independent, bin by bin.

        None where every forecast counts alike.
        """
        weight = self.event.weight
        if self.cluster is None:
            return None if weight is None else weight**2
        bins = bin_numbers(EqualWidth(), self.event)
        effects = np.ones(EqualWidth().n_bins)
        for gap in gaps(self.event, bins, [str(index) for index in range(len(effects))], self.cluster):
            effects[int(gap.name)] = gap.effect
        return effects[bins] * (1.0 if weight is None else weight**2)
