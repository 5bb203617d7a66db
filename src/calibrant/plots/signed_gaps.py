"""Signed gaps by class: which classes are over-confident, which under-confident, and by how much?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, Unpack, final

import numpy as np

from calibrant.checks import whole
from calibrant.door.options import DoorOptions
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bin_intervals import middle
from calibrant.inference.bootstrap import Bootstrap
from calibrant.inference.consistency import consistency as redrawn
from calibrant.inference.draws import check_level
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric, checked
from calibrant.plots import colours
from calibrant.plots.inputs import OfForecasts
from calibrant.plots.panels import WIDTH, Axes, one_panel
from calibrant.plots.ranking import Ranking
from calibrant.recipes import CWMCS
from calibrant.result import Result


@final
@dataclass(eq=False)
class SignedGapsDisplay(OfForecasts):
    """Which classes are over-confident, and which under-confident? Mean confidence less accuracy of each, in order.

    Bars to the right are over-confident, to the left under-confident; the number of samples is behind each name. Of
    more than `most` classes the outermost are named and the rest is drawn as a ribbon, every class as a thin line of
    it. Classes without samples are left out, and counted.

    Samples of one *true* class (`CWMCS`, the default) are not expected to have a gap of 0, not even under calibration:
    a class that is easily mistaken is right less often than its samples' confidence. `band` (classes, 2) is where the
    gaps of a calibrated model with these forecasts would lie at `level`.

    References: Ao, Rueger & Siddharthan (2023).

    >>> from calibrant.plots import SignedGapsDisplay
    >>> display = SignedGapsDisplay.from_predictions([0, 1, 1], [[.9, .1], [.6, .4], [.3, .7]])
    >>> [float(round(bar.get_width(), 10)) for bar in display.ax_.patches]
    [0.15, -0.1]
    """

    result: Result
    band: Floats | None = None
    level: float = 0.9
    most: int = 24

    def __post_init__(self) -> None:
        whole(self.most, "most", 2)
        facts = self.result.metric.facts
        if not self.result.values or facts.sides == 1 or facts.low >= 0:
            raise CalibrationInputError(
                "metric", "must have a signed gap for each class", got=str(self.result), hint="use one like CWMCS"
            )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        metric: Metric = CWMCS,
        interval: Bootstrap | None = None,
        consistency: int | None = None,
        level: float = 0.9,
        seed: int = 0,
        most: int = 24,
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure and draw; with `interval`, each class has one, and with `consistency`, its band under calibration."""
        predictions = checked(y_true, y_proba, options, cls.from_predictions)
        result = metric(predictions, interval=interval)
        band = None
        if consistency is not None:
            check_level(level)
            band = middle(redrawn(metric, predictions, n=consistency, seed=seed, result=result).parts, level)
        return cls(result, band, level, most).plot(ax, width=width)

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw the bars in order."""
        ranking = Ranking.of(np.array(self.result.values), most=self.most)
        panel = one_panel(ax, width, 1.3 + (0.2 if width >= 5 else 0.155) * max(ranking.height, 3.0))
        panel.use_sticky_edges = False  # a margin even where a band ends
        letters = colours.dress(panel, grid="x")
        names = [
            f"{colours.name(name, 22)} ({colours.count(size)})"
            for name, size in zip(self.result.about.names, self.result.sizes, strict=True)
        ]
        ranking.apply(panel, names, letters.text, "classes")
        handles = self._bars(panel, ranking) + self._around(panel, ranking)
        panel.axvline(0, color=colours.INK, linewidth=0.8)
        panel.set_xlabel("mean confidence less accuracy", fontsize=letters.text)
        absent = int(np.isnan(self.result.values).sum())
        beneath = f"{self.result.question}; samples in brackets" + (f"; {absent} classes without any" if absent else "")
        colours.headline(panel, f"Gaps by class: {colours.stated(self.result)}", beneath, handles, beside=names)
        return self._on(panel)

    def _bars(self, panel: Axes, ranking: Ranking) -> list[Any]:
        values, handles = np.array(self.result.values), []
        named, rest = values[ranking.named], values[ranking.rest]
        edges = ranking.ribbon_rows
        for sign, words, colour, tint, hatch in (
            (1, "over-confident", colours.OVER, colours.OVER_TINT, colours.OVER_HATCH),
            (-1, "under-confident", colours.UNDER, colours.UNDER_TINT, colours.UNDER_HATCH),
        ):
            some, thin = sign * named > 0, sign * rest > 0
            style: dict[str, Any] = {"facecolor": tint, "edgecolor": colour, "hatch": hatch, "linewidth": 0.6}
            bars = panel.barh(ranking.rows[some], named[some], 0.72, label=words, **style)
            panel.barh(edges[:-1][thin], rest[thin], np.diff(edges)[thin], align="edge", color=colour, linewidth=0)
            handles += [bars] if some.any() or thin.any() else []
        return handles

    def _around(self, panel: Axes, ranking: Ranking) -> list[Any]:
        """Intervals as lines, the band as grey boxes."""
        handles: list[Any] = []
        if self.band is not None:
            low, high = self.band[ranking.named].T
            style: dict[str, Any] = {"color": colours.GREY, "alpha": 0.35, "linewidth": 0}
            words = f"{self.level:.0%} if calibrated"
            handles.append(panel.barh(ranking.rows, high - low, 0.72, left=low, label=words, zorder=2.5, **style))
        if self.result.intervals:
            ends = [self.result.intervals[index] for index in ranking.named]
            low, high = np.array([[end.low, end.high] for end in ends]).T
            words = f"{ends[0].level:.0%} interval"
            handles.append(
                panel.hlines(ranking.rows, low, high, color=colours.INK, linewidth=1.1, label=words, zorder=3)
            )
        return handles
