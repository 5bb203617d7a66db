"""The reliability diagram: does what is forecast happen as often as forecast?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, Unpack, final

import numpy as np

from calibrant.binning.contract import Binning
from calibrant.binning.ladder import Forecasts
from calibrant.checks import whole
from calibrant.door.kinds import COLUMNS
from calibrant.door.options import DoorOptions
from calibrant.errors.asking import Asking
from calibrant.errors.isotonic import IsotonicError
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.inference.bands import BandMethod, banded
from calibrant.inference.bin_intervals import HasBinning, calibrated_frequencies, resampled_frequencies
from calibrant.inference.bootstrap import Bootstrap
from calibrant.inference.draws import check_level, check_seed
from calibrant.inference.reliability_curves import Curve, CurveOf, binned
from calibrant.kernels.totals import Floats
from calibrant.lenses.events import OneClass
from calibrant.metric import Metric, checked
from calibrant.plots import bars, colours
from calibrant.plots.inputs import OfForecasts, one_event
from calibrant.plots.panels import WIDTH, Axes, one_panel
from calibrant.predictions import Predictions
from calibrant.recipes import ECE
from calibrant.result import Result


@final
@dataclass(eq=False)
class ReliabilityDisplay(OfForecasts):
    """Do outcomes occur as often as predicted? One bar a bin, as wide as the bin, as high as the observed frequency.

    The coloured, hatched part of a bar is the gap between mean prediction and observed frequency; the dot is at both.
    Below, how many samples each bin holds. Empty bins are left out.

    Of one event, and of two classes, the probability of the event (the second class) is drawn, as scikit-learn's
    `CalibrationDisplay` does; of more classes, the confidence in the top label.

    `intervals` (bins, 2) are the ends of each bin's bootstrap interval, `band` (bins, 2) where a calibrated bin would
    lie at `level`; both bin by bin, not for all bins at once. `curve` is drawn over the bars; where it has a band, that
    is drawn, too. `words` say which band it is. With `logit`, both axes are stretched towards 0 and 1, and what is
    exactly 0 or 1 is drawn at their ends.

    References: Broecker & Smith (2007); Dimitriadis, Gneiting & Jordan (2021).

    >>> import calibrant as cal
    >>> from calibrant.plots import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions([1, 0, 1, 1], [.9, .2, .6, .6])
    >>> print(display.ax_.get_title(loc="left"))
    ECE 0.2750, n = 4
    >>> display.figure_.savefig("reliability.svg")  # doctest: +SKIP
    """

    result: Result
    intervals: Floats | None = None
    band: Floats | None = None
    curve: Curve | None = None
    level: float = 0.9
    logit: bool = False
    name: str = ""
    ribbon: Curve | None = None
    words: str = ""

    def __post_init__(self) -> None:
        one_event(self.result)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        metric: Metric | None = None,
        pos_label: object = None,
        interval: Bootstrap | None = None,
        consistency: int | None = None,
        level: float = 0.9,
        seed: int = 0,
        curve: CurveOf | None = None,
        band: BandMethod | None = None,
        logit: bool = False,
        name: str = "",
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure and draw: `Predictions`, or labels and probabilities, the truth first.

        The metric is ECE unless another is passed, which is asked as it is. `pos_label` names the class whose
        probability is drawn; of two classes, it is the second one. Of an event, it is the label in `y_true` that means
        that the event occurred.

        With `interval`, the metric and every bin have a bootstrap interval; with `consistency`, so many redraws of the
        labels make the band of a calibrated model, bin by bin. `curve` is `isotonic` or `smooth`. `band`, a
        `ConfidenceBand` or `ConsistencyBand`, is drawn of the curve, or of the bins where no curve is asked for.
        """
        display = cls.measured(
            checked(_outcomes(y_true, y_proba, pos_label), y_proba, options, cls.from_predictions),
            metric=metric,
            pos_label=None if np.ndim(y_proba) == 1 else pos_label,
            interval=interval,
            consistency=consistency,
            level=level,
            seed=seed,
            curve=curve,
            band=band,
            logit=logit,
            name=name,
        )
        return display.plot(ax, width=width)

    @classmethod
    def measured(
        cls,
        predictions: Predictions,
        *,
        metric: Metric | None = None,
        pos_label: object = None,
        interval: Bootstrap | None = None,
        consistency: int | None = None,
        level: float = 0.9,
        seed: int = 0,
        curve: CurveOf | None = None,
        band: BandMethod | None = None,
        logit: bool = False,
        name: str = "",
    ) -> Self:
        """Measure what is to be drawn, and draw nothing yet."""
        metric = _asked(metric, predictions, pos_label)
        result = one_event(metric(predictions, interval=interval))
        intervals = None if interval is None else resampled_frequencies(metric, predictions, interval)
        boxes = drawn = ribbon = None
        if consistency is not None:
            whole(consistency, "consistency", 1)
            check_level(level)
            check_seed(seed)
            boxes = calibrated_frequencies(metric, predictions, n=consistency, seed=seed, level=level)
        if curve is not None or band is not None:
            table = _table(metric, predictions)
            drawn = None if curve is None else curve(*table.ladders())
        if band is not None:
            ribbon = banded(band, binned(_binning(metric)) if curve is None else curve, table)
        return cls(result, intervals, boxes, drawn, level, logit, name, ribbon, "" if band is None else band.words)

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw the bars, what was asked for besides, and the counts below."""
        panel = one_panel(ax, width, 0.78 * width + 0.9)
        handles = self.draw(panel)
        title = ": ".join(filter(None, (colours.name(self.name), colours.stated(self.result))))
        colours.headline(panel, title, colours.chosen(self.result), handles)
        return self._on(panel)

    def draw(self, panel: Axes, *, log: bool | None = None, numbers: bool = True, words: bool = True) -> list[Any]:
        """Draw without a title, and where asked without counts in numbers and words at the axes.

        `log` says whether the axis of the counts is logarithmic, where the counts shall not. Returns what a legend
        should name.
        """
        assert self.result.bins is not None
        bins = self.result.bins
        window = bars.Window.of(bins, self.logit)
        letters = colours.dress(panel)
        handles = bars.draw_bins(panel, bins, window)
        if self.band is not None:
            handles.append(bars.draw_band(panel, bins, window, self.band, f"{self.level:.0%} if calibrated"))
        if self.ribbon is not None:
            handles.append(self._draw_ribbon(panel, window))
        if self.intervals is not None:
            level = self.result.interval.level if self.result.interval else self.level
            handles.append(bars.draw_intervals(panel, bins, window, self.intervals, f"{level:.0%} interval"))
        if self.curve is not None:
            x, y = window.clip(self.curve.forecast), window.clip(self.curve.frequency)
            style: dict[str, Any] = {
                "color": colours.CURVE,
                "linewidth": 1.6,
                "zorder": 3.2,
                "label": f"{self.curve.name} curve",
            }
            handles += panel.plot(x, y, **style)
        log = bars.uneven(bins) if log is None else log
        strip = bars.draw_counts(panel, bins, window, log=log, numbers=numbers)
        if not words:
            strip.set_ylabel("")
            return handles
        across, up = colours.axis_words(self.result.question)
        strip.set_xlabel(across, fontsize=letters.text)
        panel.set_ylabel(up, fontsize=letters.text)
        return handles

    def _draw_ribbon(self, panel: Axes, window: bars.Window) -> Any:
        """The band of the curve; of bins, as a box across each."""
        assert self.result.bins is not None
        assert self.ribbon is not None
        assert self.ribbon.low is not None
        assert self.ribbon.high is not None
        if self.curve is None:
            ends = np.column_stack([self.ribbon.low, self.ribbon.high])
            return bars.draw_band(panel, self.result.bins, window, ends, self.words)
        low, high = window.clip(self.ribbon.low), window.clip(self.ribbon.high)
        style: dict[str, Any] = {"color": colours.CURVE, "alpha": 0.22, "linewidth": 0, "zorder": 3.1}
        return panel.fill_between(window.clip(self.ribbon.forecast), low, high, label=self.words, **style)


def _outcomes(y_true: Any, y_proba: Any, pos_label: object) -> Any:
    """Labels of one event as truth values, where it is known which means that the event occurred; else as they are."""
    if pos_label is None or np.ndim(y_proba) != 1:
        return y_true
    labels = np.asarray(y_true)
    values = np.unique(labels)
    if len(values) > 2 or pos_label not in values.tolist():
        got = ", ".join(map(repr, values.tolist()[:5]))
        raise CalibrationInputError("pos_label", f"must be one of two labels, {pos_label!r} and another", got=got)
    return labels == pos_label


def _asked(metric: Metric | None, predictions: Predictions, pos_label: object) -> Metric:
    """The metric, about the positive class where there is one."""
    forecasts, classes = predictions.forecasts, predictions.classes
    two = len(classes) == 2 and not forecasts.of_events and COLUMNS not in forecasts.lacks
    if pos_label is None and (metric is not None or not two):
        return metric or ECE
    if forecasts.of_events:
        raise CalibrationInputError("pos_label", "needs probabilities of classes", got=forecasts.words)
    name = classes[-1] if pos_label is None else str(pos_label)
    if name not in classes:
        raise CalibrationInputError("pos_label", "must be a class", got=repr(name), hint=nearest(name, classes))
    return _asking(metric or ECE, "pos_label").replace(lens=OneClass(name))


def _asking(metric: Metric, parameter: str) -> Asking[Any]:
    """The metric, refused where it asks no lens."""
    if not isinstance(metric, Asking):
        raise CalibrationInputError(parameter, "needs a metric that asks a lens", got=metric.name)
    return metric


def _table(metric: Metric, predictions: Predictions) -> Forecasts:
    """The table of distinct forecasts that the metric's lens sees."""
    asking = _asking(metric, "curve")
    return IsotonicError(select=asking.select, lens=asking.lens).summarise(predictions)


def _binning(metric: Metric) -> Binning:
    """The bins of a metric that has some of its own."""
    if not isinstance(metric, HasBinning):
        raise CalibrationInputError("metric", "must have a binning", got=metric.name, hint="or pass curve=isotonic")
    return metric.binning
