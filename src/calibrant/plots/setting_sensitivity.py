"""Sensitivity: how much does the number depend on the bins that nobody asked for?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, Unpack, final

import numpy as np

from calibrant.door.options import DoorOptions
from calibrant.inference.sensitivity import Sensitivity, sensitivity
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric, checked
from calibrant.plots import colours
from calibrant.plots.inputs import OfForecasts
from calibrant.plots.panels import WIDTH, Axes, one_panel, strip_below
from calibrant.recipes import ECE

WORDS = {"n_bins": "number of bins", "gamma": "gamma: share of the samples in a cell", "share": "share of the rows"}
SIZES = (("smallest", "v"), ("median", "o"), ("largest", "^"))


@final
@dataclass(eq=False)
class SensitivityDisplay(OfForecasts):
    """How much does the number depend on the bins? The metric at each setting, with one standard deviation of its
    resamples on both sides; and below, the smallest, median and largest bin.

    Settings whose value lies within one standard deviation of their neighbours' are stable: filled dots, and a shaded
    ground where settings were given in order. Settings from one to more than ten times it are drawn on a logarithmic
    axis.

    References: Kirchenbauer, Oaks & Heim (2022), figures 7-9.

    >>> import calibrant as cal
    >>> from calibrant.plots import SensitivityDisplay
    >>> display = SensitivityDisplay.from_predictions([1, 0, 1, 1], [.9, .2, .6, .8], values=[2, 4, 8], bootstrap=20)
    >>> display.sensitivity.settings
    (2.0, 4.0, 8.0)
    """

    sensitivity: Sensitivity
    name: str = ""

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        metric: Metric = ECE,
        over: str = "n_bins",
        values: Sequence[float] = (5, 10, 15, 20, 30, 50),
        bootstrap: int = 200,
        seed: int = 0,
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure at each setting, as `sensitivity` does, and draw."""
        predictions = checked(y_true, y_proba, options, cls.from_predictions)
        measured = sensitivity(metric, predictions, over=over, values=values, bootstrap=bootstrap, seed=seed)
        return cls(measured, metric.name).plot(ax, width=width)

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw the values, and the sizes of the bins below."""
        measured = self.sensitivity
        panel = one_panel(ax, width, 0.5 * width + 1.3)
        letters = colours.dress(panel, grid="y")
        handles = self._values(panel)
        lowest = self._sizes(panel, letters.text) if not np.isnan(measured.bin_sizes).all() else panel
        self._settings(lowest)
        lowest.set_xlabel(WORDS.get(measured.over, colours.name(measured.over)), fontsize=letters.text)
        first = measured.results[0]
        name = colours.name(self.name or colours.measure(first))
        panel.set_ylabel(name, fontsize=letters.text)
        title = f"{name} by {WORDS.get(measured.over, measured.over).split(':')[0]}: {colours.samples(first.n)}"
        colours.headline(panel, title, first.question, handles)
        return self._on(panel)

    def _values(self, panel: Axes) -> list[Any]:
        measured = self.sensitivity
        order = np.argsort(measured.settings)
        at, values, sds, stable = (
            np.asarray(each)[order] for each in (measured.settings, measured.values, measured.sds, measured.stable)
        )
        handles: list[Any] = [
            panel.fill_between(
                at, values - sds, values + sds, color=colours.UNDER_TINT, linewidth=0, label="± 1 standard deviation"
            )
        ]
        handles += panel.plot(
            at, values, "o-", color=colours.UNDER, markerfacecolor="white", markersize=5, linewidth=1.3, label="value"
        )
        if stable.any() and len(at) > 1:
            handles += panel.plot(
                at[stable], values[stable], "o", color=colours.UNDER, markersize=5, label="stable value"
            )
        if (np.abs(np.diff(order)) == 1).all():  # else neighbours in the picture were not compared
            for left in np.flatnonzero(stable[:-1] & stable[1:]):
                panel.axvspan(at[left], at[left + 1], color=colours.FAINT, alpha=0.6, linewidth=0, zorder=0)
        return handles

    def _sizes(self, panel: Axes, size: float) -> Axes:
        strip = strip_below(panel, 0.5, 0.08)
        order = np.argsort(self.sensitivity.settings)
        at, sizes = np.asarray(self.sensitivity.settings)[order], self.sensitivity.bin_sizes[order]
        for column, (_, marker) in enumerate(SIZES):
            strip.plot(at, sizes[:, column], marker=marker, color=colours.GREY, markersize=3.5, linewidth=0.9)
        colours.bare(strip, size)
        strip.set(yscale="log", ylabel="samples in\na bin (log)")
        strip.minorticks_off()
        _beside(strip, float(at[-1]), sizes[-1], 0.92 * size)
        return strip

    def _settings(self, lowest: Axes) -> None:
        """The horizontal axis: a tick at each setting, as far as they fit."""
        at = np.sort(np.asarray(self.sensitivity.settings))
        log = len(at) > 1 and at[0] > 0 and at[-1] > 10 * at[0]
        if log:
            lowest.set_xscale("log")
        texts = [f"{setting:.3g}" if setting < 1 else f"{setting:g}" for setting in at]
        place = np.log(at) if log else at
        width = 0.9 * 72 * colours.inches(lowest)[0] / max(float(place[-1] - place[0]), 1e-12)
        apart = 0.62 * colours.Letters.of(lowest).text * max(map(len, texts)) + 3
        kept: list[int] = []
        for index in range(len(at)):
            if not kept or (place[index] - place[kept[-1]]) * width >= apart:
                kept.append(index)
        lowest.set_xticks(at[kept], labels=[texts[index] for index in kept])
        lowest.minorticks_off()


def _beside(strip: Axes, right: float, sizes: Floats, size: float) -> None:
    """The names of the three lines at their right ends, pushed apart where they would meet."""
    low, high = np.log(strip.get_ylim())
    points = 50 * colours.inches(strip)[1] / max(high - low, 1e-12)  # of 72, as labels will take some
    height = -np.inf
    for (words, _), value in zip(SIZES, sizes, strict=True):
        wanted = np.log(value) * points
        height = max(wanted, height + 1.1 * size)
        place = {"xy": (right, value), "xytext": (6, height - wanted), "textcoords": "offset points"}
        strip.annotate(words, **place, va="center", fontsize=size, color=colours.GREY)  # type: ignore[arg-type]
