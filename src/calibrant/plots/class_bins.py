"""The reliability of every class in one diagram: what metrics such as SCE, ACE and TACE pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, Unpack, final

import numpy as np

from calibrant.binning.fixed import EqualWidth
from calibrant.binning.ranked import EqualMass
from calibrant.bins import Bins
from calibrant.door.options import DoorOptions
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric, checked
from calibrant.plots import colours
from calibrant.plots.bars import Window
from calibrant.plots.inputs import OfForecasts
from calibrant.plots.panels import WIDTH, Axes, one_panel
from calibrant.recipes import ACE, SCE, TACE
from calibrant.result import Result

USUAL: Mapping[str, Metric] = {
    "SCE": SCE.replace(binning=EqualWidth(10)),
    "ACE": ACE.replace(binning=EqualMass(100)),
    "TACE": TACE.replace(binning=EqualMass(100)),
}
"""The metrics that are drawn where none are named, with as many bins as their authors drew."""


@final
@dataclass(eq=False)
class ClassBinsDisplay(OfForecasts):
    """Does what is forecast for any class happen as often? The bins of several class-wise metrics in one diagram.

    A dot is one bin of one class: its mean forecast, and how often it happened. The line joins the first bins of all
    classes, pooled, the second ones, and so on. With `logit`, both axes are stretched towards 0 and 1, where most
    outputs of a network lie; what is exactly 0 or 1 is drawn at their ends. The legend states the values.

    References: Nixon et al. (2019), figure 2.

    >>> from calibrant.plots import ClassBinsDisplay
    >>> display = ClassBinsDisplay.from_predictions([0, 1], [[.9, .1], [.6, .4]])
    >>> [handle.get_text() for handle in display.ax_.get_legend().get_texts()]
    ['SCE 0.3500', 'ACE 0.3500', 'TACE 0.3500']
    """

    results: Mapping[str, Result]
    logit: bool = False

    def __post_init__(self) -> None:
        if not self.results:
            raise CalibrationInputError("metrics", "must not be empty", got="none")
        for result in self.results.values():
            if result.bins is None or result.bins.shape[2] != 1:
                hint = "use metrics such as SCE, ACE or TACE"
                raise CalibrationInputError("metrics", "must pool forecasts of events", got=str(result), hint=hint)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        metrics: Mapping[str, Metric] = USUAL,
        logit: bool = False,
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure and draw: `Predictions`, or labels and probabilities, the truth first."""
        predictions = checked(y_true, y_proba, options, cls.from_predictions)
        return cls({name: metric(predictions) for name, metric in metrics.items()}, logit).plot(ax, width=width)

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw the dots and lines."""
        panel = one_panel(ax, width, 0.78 * width + 0.9)
        letters = colours.dress(panel, grid="both")
        every = [result.bins for result in self.results.values() if result.bins is not None]
        windows = [Window.of(bins, self.logit) for bins in every]
        window = Window(min(each.low for each in windows), max(each.high for each in windows), self.logit)
        panel.plot(
            [window.low, window.high], [window.low, window.high], color=colours.GREY, linewidth=0.8, dashes=(4, 2)
        )
        handles = [
            _series(panel, place, f"{colours.name(name)} {result.value:.4f}", bins, window)
            for place, ((name, result), bins) in enumerate(zip(self.results.items(), every, strict=True))
        ]
        window.apply(panel)
        across, up = colours.axis_words(next(iter(self.results.values())).question)
        panel.set_xlabel(across, fontsize=letters.text)
        panel.set_ylabel(up, fontsize=letters.text)
        n = max(result.n for result in self.results.values())
        words = "dots: one bin of one class; lines: bins of all classes pooled"
        colours.headline(panel, f"Reliability of every class: {colours.samples(n)}", words, handles)
        return self._on(panel)


def pooled_bins(bins: Bins) -> tuple[Floats, Floats]:
    """Mean forecasts and frequencies of the first bins of all questions, the second ones, ... where there are some.

    >>> import calibrant as cal
    >>> result = cal.SCE.replace(binning=cal.EqualWidth(2))([0, 1], [[.75, .25], [.25, .75]])
    >>> [part.tolist() for part in pooled_bins(result.bins)]
    [[0.25, 0.75], [0.0, 1.0]]
    """
    sizes = bins.counts.sum(axis=0)
    filled = sizes > 0
    forecast, frequency = (
        (np.nan_to_num(part[:, :, 0]) * bins.counts).sum(axis=0)[filled] / sizes[filled]
        for part in (bins.forecast, bins.frequency)
    )
    return forecast, frequency


def _series(panel: Axes, place: int, words: str, bins: Bins, window: Window) -> Any:
    """One metric's dots and line; returns what a legend names."""
    colour, dashes, marker = colours.SERIES[place % len(colours.SERIES)]
    filled = bins.counts > 0
    dots = [window.clip(part[filled][:, 0]) for part in (bins.forecast, bins.frequency)]
    panel.plot(*dots, linestyle="", marker=marker, color=colour, markersize=2.6, alpha=0.3, markeredgewidth=0)
    line = [window.clip(part) for part in pooled_bins(bins)]
    style: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 1.5, "marker": marker, "markersize": 4}
    return panel.plot(*line, label=words, zorder=3, **style)[0]
