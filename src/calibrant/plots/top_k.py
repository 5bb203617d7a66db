"""Errors of the k likeliest classes: how far down the list can probabilities be trusted?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, Unpack, final

import numpy as np

from calibrant.binning.contract import Binning
from calibrant.checks import whole
from calibrant.diagnostics import mean_ranked_outputs
from calibrant.door.options import DoorOptions
from calibrant.errors.binned import BinnedError
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bootstrap import Bootstrap
from calibrant.inference.consistency import consistency as redrawn
from calibrant.kernels.totals import Floats
from calibrant.lenses import Lens, TopK
from calibrant.metric import checked
from calibrant.plots import colours
from calibrant.plots.inputs import OfForecasts
from calibrant.plots.panels import WIDTH, Axes, one_panel, strip_below
from calibrant.recipes import FULL_ECE
from calibrant.result import Result


@final
@dataclass(eq=False)
class TopKDisplay(OfForecasts):
    """How does the error grow with the number of classes that are looked at? The error for k = 1, 2, ..; and below,
    the mean of the k-th largest output.

    `results` are the errors for k = 1, 2, ..; `outputs` the mean k-th largest outputs; `floors`, where there are any,
    the mean errors of a calibrated model with these forecasts, which grow with k too.

    References: Kirchenbauer, Oaks & Heim (2022), figures 1 and 2.

    >>> from calibrant.plots import TopKDisplay
    >>> display = TopKDisplay.from_predictions([0, 1], [[.7, .2, .1], [.3, .4, .3]], most=2)
    >>> display.outputs.round(10).tolist(), [result.n for result in display.results]
    ([0.55, 0.25], [2, 2])
    """

    results: tuple[Result, ...]
    outputs: Floats
    floors: Floats | None = None

    def __post_init__(self) -> None:
        if not self.results or len(self.results) != len(self.outputs):
            got = f"{len(self.results)} and {len(self.outputs)}"
            raise CalibrationInputError("results", "must be as many as outputs, and at least one", got=got)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        most: int = 10,
        lens: Callable[[int], Lens] = TopK,
        binning: Binning = FULL_ECE.binning,
        interval: Bootstrap | None = None,
        consistency: int | None = None,
        seed: int = 0,
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure and draw for k = 1 .. `most`, or as many as there are classes whose probabilities are known.

        `lens` is `TopK` (do the k largest outputs, each, say how often they are right?) or `InTopK` (does their sum?).
        With `consistency`, so many redraws of the labels make the floors.
        """
        whole(most, "most", 1)
        predictions = checked(y_true, y_proba, options, cls.from_predictions)
        predictions.require_classes("TopKDisplay")
        ks = range(1, min(most, predictions.forecasts.ranks) + 1)
        metrics = [BinnedError(lens=lens(k), binning=binning) for k in ks]
        results = tuple(metric(predictions, interval=interval) for metric in metrics)
        floors = None
        if consistency is not None:
            nulls = [redrawn(metric, predictions, n=consistency, seed=seed) for metric in metrics]
            floors = np.array([null.mean for null in nulls])
        return cls(results, mean_ranked_outputs(predictions, len(ks)), floors).plot(ax, width=width)

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw the errors, and the mean outputs below."""
        panel = one_panel(ax, width, 0.5 * width + 1.2)
        letters = colours.dress(panel, grid="y")
        handles = self._errors(panel)
        strip = self._outputs(panel, letters.text)
        panel.set(ylabel="calibration error", ylim=(0, None))
        strip.set_xlabel("number k of likeliest classes")
        first = self.results[0]
        asked = str(getattr(first.metric, "lens", first.question)).replace("1", "k", 1)
        beneath = ", ".join(filter(None, (asked, first.choices)))
        title = f"Error of the k likeliest classes: {colours.samples(first.n)}"
        colours.headline(panel, title, colours.name(beneath, 90), handles)
        return self._on(panel)

    @property
    def ks(self) -> Floats:
        """1, 2, .."""
        return np.arange(1.0, len(self.results) + 1)

    def _errors(self, panel: Axes) -> list[Any]:
        values = [result.value for result in self.results]
        handles = panel.plot(self.ks, values, "o-", color=colours.OVER, markersize=4, linewidth=1.4, label="error")
        ends = [result.interval for result in self.results if result.interval is not None]
        if len(ends) == len(self.results):
            low, high = np.array([[end.low, end.high] for end in ends]).T
            words = f"{ends[0].level:.0%} interval"
            handles.append(panel.vlines(self.ks, low, high, color=colours.INK, linewidth=1.1, label=words))  # type: ignore[arg-type]
        if self.floors is not None:
            style: dict[str, Any] = {
                "color": colours.GREY,
                "linewidth": 1.1,
                "markersize": 3,
                "label": "if calibrated, by noise alone",
            }
            handles += panel.plot(self.ks, self.floors, "s--", **style)
        return handles

    def _outputs(self, panel: Axes, size: float) -> Axes:
        strip = strip_below(panel, 0.45, 0.08)
        strip.bar(self.ks, self.outputs, 0.7, color=colours.PALE, edgecolor=colours.GREY, linewidth=0.5)
        colours.bare(strip, size)
        strip.set(ylabel="mean k-th\noutput", ylim=(0, 1.25 * max(float(self.outputs.max()), 1e-9)))
        strip.set_xticks(self.ks if len(self.ks) <= 12 else self.ks[:: -(-len(self.ks) // 10)])
        strip.set_xlim(0.4, len(self.ks) + 0.6)
        for k, output in zip(self.ks, self.outputs, strict=True):
            if len(self.ks) <= 12:
                text = f"{output:.3f}".lstrip("0") if output >= 5e-4 else "<.001"
                style: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 0.85 * size, "color": colours.GREY}
                strip.annotate(text, (k, output), (0, 1.5), textcoords="offset points", **style)
        return strip
