"""Comparisons: which model is better calibrated, and is the difference more than noise?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np

from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.inference.bootstrap import Bootstrap
from calibrant.inference.comparison import Comparison, compare, compare_all, corrected_for_number
from calibrant.metric import Metric
from calibrant.plots import colours
from calibrant.plots.inputs import models_of
from calibrant.plots.panels import WIDTH, Axes, Display, several_panels
from calibrant.predictions import Predictions
from calibrant.recipes import ECE
from calibrant.result import Interval, Result


@final
@dataclass(eq=False)
class ComparisonDisplay(Display):
    """Which model is better calibrated, and is the difference more than noise? Values above, paired differences below.

    The intervals of values say little about differences: models err on the same samples. The differences are therefore
    resampled in pairs; one whose interval leaves 0 out is filled. Behind each stands its p-value after Holm's
    correction for the number of comparisons.

    `axes_` are the two panels; `ax_` is the empty frame around them, which has the title.

    >>> import calibrant as cal
    >>> from calibrant.plots import ComparisonDisplay
    >>> y = [1, 0, 1, 1, 0, 1]
    >>> models = {name: cal.Predictions.from_probs(y, p) for name, p in (("a", [.9] * 6), ("b", [.6] * 6))}
    >>> display = ComparisonDisplay.from_predictions(models, n=50)
    >>> [label.get_text() for label in display.axes_[1].get_yticklabels()]
    ['a less b']
    """

    results: Mapping[str, Result]
    comparisons: Mapping[tuple[str, str], Comparison]
    axes_: list[Axes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.results) < 2 or not self.comparisons:
            got = f"{len(self.results)} and {len(self.comparisons)}"
            raise CalibrationInputError("results", "must be two or more, and compared", got=got)

    @classmethod
    def from_predictions(
        cls,
        models: Mapping[str, Predictions],
        *,
        metric: Metric = ECE,
        reference: str | None = None,
        n: int = 1000,
        level: float = 0.9,
        seed: int = 0,
        ax: Any = None,
        width: float = WIDTH,
    ) -> Self:
        """Measure and draw models of the same rows; every pair, or with `reference` every other model less that one."""
        named = models_of(models)
        if len(named) < 2:
            raise CalibrationInputError("models", "must be at least two", got=len(named))
        results = {
            name: metric(predictions, interval=Bootstrap(n, seed=seed, level=level))
            for name, predictions in named.items()
        }
        if reference is None:
            comparisons = compare_all(metric, named, n, seed, level=level)
        else:
            comparisons = _against(metric, named, reference, n=n, seed=seed, level=level)
        return cls(results, comparisons).plot(ax, width=width)

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw the values, and the differences below."""
        rows = [len(self.results) + 0.5, len(self.comparisons) + 0.5]
        frame, panels = several_panels(ax, 2, 1, width, 2.0 + (0.21 if width >= 5 else 0.17) * sum(rows), rows)
        some = next(iter(self.results.values()))
        self._values(panels[0], some)
        self._differences(panels[1], some)
        between = next(iter(self.comparisons.values())).interval
        beneath = f"{colours.chosen(some)}; lines are {between.level:.0%} intervals of {between.n:,} resamples"
        colours.headline(
            frame, f"{colours.measure(some)} of {len(self.results)} models: {colours.samples(some.n)}", beneath
        )
        self.axes_ = panels
        return self._on(frame)

    def _values(self, panel: Axes, some: Result) -> None:
        _dots(
            panel,
            [colours.name(name) for name in self.results],
            [result.value for result in self.results.values()],
            [result.interval for result in self.results.values()],
        )
        panel.set_xlabel(colours.measure(some))

    def _differences(self, panel: Axes, some: Result) -> None:
        comparisons = list(self.comparisons.values())
        names = [f"{colours.name(a, 18)} less {colours.name(b, 18)}" for a, b in self.comparisons]
        letters = _dots(
            panel,
            names,
            [comparison.difference for comparison in comparisons],
            [comparison.interval for comparison in comparisons],
            zero=True,
        )
        panel.axvline(0, color=colours.INK, linewidth=0.8)
        panel.set_xlabel(f"difference of {colours.measure(some)}, paired", fontsize=letters.text)
        place: dict[str, Any] = {
            "transform": panel.get_yaxis_transform(),
            "va": "center",
            "fontsize": 0.92 * letters.text,
        }
        for row, comparison in enumerate(comparisons):
            p = comparison.p_value if comparison.adjusted_p_value is None else comparison.adjusted_p_value
            panel.text(1.02, row, f"p = {p:.2g}", color=colours.GREY, **place)


def _dots(
    panel: Axes, names: list[str], values: list[float], intervals: list[Interval | None], *, zero: bool = False
) -> colours.Letters:
    """One row a name: a dot at the value, a line along the interval; filled unless the interval holds 0."""
    letters = colours.dress(panel, grid="x")
    for row, (value, between) in enumerate(zip(values, intervals, strict=True)):
        low, high = (between.low, between.high) if between else (np.nan, np.nan)
        sure = not zero or low > 0 or high < 0
        colour = (colours.OVER if value > 0 else colours.UNDER) if zero else colours.INK
        panel.hlines(row, low, high, color=colour, linewidth=1.4)
        panel.plot(value, row, "o", color=colour, markerfacecolor=colour if sure else "white", markersize=5, zorder=3)
    panel.set_yticks(range(len(names)), labels=names, fontsize=letters.text)
    panel.tick_params(axis="y", length=0)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.margins(x=0.06)
    return letters


def _against(
    metric: Metric, models: dict[str, Predictions], reference: str, **options: Any
) -> dict[tuple[str, str], Comparison]:
    """Every other model less the reference, with p-values after Holm's correction."""
    if reference not in models:
        raise CalibrationInputError("reference", "is unknown", got=repr(reference), hint=nearest(reference, models))
    others = [name for name in models if name != reference]
    return corrected_for_number(
        {(name, reference): compare(metric, models[name], models[reference], **options) for name in others}
    )
