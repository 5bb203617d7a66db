"""The reliability diagram: does what is forecast happen as often as forecast?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, Unpack, final

from calibrant.binning.ladder import Forecasts
from calibrant.checks import whole
from calibrant.door.options import DoorOptions
from calibrant.errors.asking import Asking
from calibrant.errors.isotonic import IsotonicError
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bin_intervals import calibrated_frequencies, resampled_frequencies
from calibrant.inference.bootstrap import Bootstrap
from calibrant.inference.draws import check_level, check_seed
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric, checked
from calibrant.plots import bars, colours
from calibrant.plots.curves import Curve, CurveOf
from calibrant.plots.inputs import OfForecasts, one_event
from calibrant.plots.panels import WIDTH, Axes, one_panel
from calibrant.predictions import Predictions
from calibrant.recipes import ECE
from calibrant.result import Result


@final
@dataclass(eq=False)
class ReliabilityDisplay(OfForecasts):
    """Does what is forecast happen as often as forecast? One bar a bin, as wide as the bin, as high as it came true.

    The coloured, hatched part of a bar is the gap between its mean forecast and how often it came true; the dot is at
    both. Below, how many samples each bin holds. Empty bins are left out.

    `intervals` (bins, 2) are the ends of each bin's bootstrap interval, `band` (bins, 2) where a calibrated bin would
    lie at `level`; both bin by bin, not for all bins at once. `curve` is drawn over the bars. With `logit`, both axes
    are stretched towards 0 and 1, and what is exactly 0 or 1 is drawn at their ends.

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

    def __post_init__(self) -> None:
        one_event(self.result)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        metric: Metric = ECE,
        interval: Bootstrap | None = None,
        consistency: int | None = None,
        level: float = 0.9,
        seed: int = 0,
        curve: CurveOf | None = None,
        logit: bool = False,
        name: str = "",
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure and draw: `Predictions`, or labels and probabilities, the truth first.

        With `interval`, the metric and every bin have a bootstrap interval; with `consistency`, so many redraws of the
        labels make the band of a calibrated model. `curve` is `isotonic` or `smooth`.
        """
        display = cls.measured(
            checked(y_true, y_proba, options, cls.from_predictions),
            metric=metric,
            interval=interval,
            consistency=consistency,
            level=level,
            seed=seed,
            curve=curve,
            logit=logit,
            name=name,
        )
        return display.plot(ax, width=width)

    @classmethod
    def measured(
        cls,
        predictions: Predictions,
        *,
        metric: Metric = ECE,
        interval: Bootstrap | None = None,
        consistency: int | None = None,
        level: float = 0.9,
        seed: int = 0,
        curve: CurveOf | None = None,
        logit: bool = False,
        name: str = "",
    ) -> Self:
        """Measure what is to be drawn, and draw nothing yet."""
        result = one_event(metric(predictions, interval=interval))
        intervals = None if interval is None else resampled_frequencies(metric, predictions, interval)
        band = None
        if consistency is not None:
            whole(consistency, "consistency", 1)
            check_level(level)
            check_seed(seed)
            band = calibrated_frequencies(metric, predictions, n=consistency, seed=seed, level=level)
        drawn = None if curve is None else curve(*_table(metric, predictions).ladders())
        return cls(result, intervals, band, drawn, level, logit, name)

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


def _table(metric: Metric, predictions: Predictions) -> Forecasts:
    """The table of distinct forecasts that the metric's lens sees."""
    if not isinstance(metric, Asking):
        raise CalibrationInputError("curve", "needs a metric that asks a lens", got=metric.name)
    return IsotonicError(select=metric.select, lens=metric.lens).summarise(predictions)
