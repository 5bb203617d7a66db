"""Likert scales: do samples that are shown in a category belong there?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, Unpack, final

import numpy as np

from calibrant.door.options import DoorOptions
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bootstrap import Bootstrap
from calibrant.metric import Metric, checked
from calibrant.plots import colours
from calibrant.plots.inputs import OfForecasts, one_event
from calibrant.plots.panels import WIDTH, Axes, one_panel
from calibrant.result import Result


@final
@dataclass(eq=False)
class LikertDisplay(OfForecasts):
    """Do samples that are shown in a category belong there? One row a category: its range, and how often the bins of
    its samples came true.

    Dots are bins, larger where they hold more of the category's samples; filled ones lie in the range, a triangle
    points back to it from outside, where too few or too many came true. The error and the
    number of samples are at the right.

    References: Kirchenbauer, Oaks & Heim (2022), section 5.3.

    >>> import calibrant as cal
    >>> from calibrant.plots import LikertDisplay
    >>> display = LikertDisplay.from_predictions([1, 0, 1, 1], [.31, .31, .31, .9], scale=cal.likert([0, .33, .66, 1]))
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['[0, 0.33)', '[0.33, 0.66)', '[0.66, 1]']
    """

    results: Mapping[str, Result]

    def __post_init__(self) -> None:
        for result in self.results.values():
            one_event(result)
            if result.metric.facts.interval is None:
                raise CalibrationInputError(
                    "scale", "must measure the distance to an interval", got=str(result), hint="make it with likert"
                )
        if not self.results:
            raise CalibrationInputError("scale", "must not be empty", got="none")

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        scale: Mapping[str, Metric],
        interval: Bootstrap | None = None,
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure and draw; `scale` is what `likert` makes, under names of your own if you like."""
        predictions = checked(y_true, y_proba, options, cls.from_predictions)
        return cls({name: metric(predictions, interval=interval) for name, metric in scale.items()}).plot(
            ax, width=width
        )

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw one row a category."""
        panel = one_panel(ax, width, 1.5 + (0.4 if width >= 5 else 0.3) * len(self.results))
        letters = colours.dress(panel, grid="x")
        for row, result in enumerate(self.results.values()):
            self._row(panel, row, result, letters.text)
        names = [colours.name(name, 20) for name in self.results]
        panel.set_yticks(range(len(names)), labels=names, fontsize=letters.text)
        panel.tick_params(axis="y", length=0)
        some = next(iter(self.results.values()))
        words = colours.axis_words(some.question)[1]
        panel.set(ylim=(-0.6, len(names) - 0.4), xlim=(-0.02, 1.02), xlabel=words)
        title = f"Do categories hold what they say? {colours.samples(some.n)}"
        colours.headline(
            panel, title, "at the right: how far bins leave their range, and samples", _legend(), beside=names
        )
        return self._on(panel)

    def _row(self, panel: Axes, row: int, result: Result, size: float) -> None:
        assert result.bins is not None
        low, high = result.metric.facts.interval or (0.0, 1.0)
        panel.barh(row, high - low, 0.7, left=low, color=colours.FAINT, edgecolor=colours.PALE, linewidth=0.6)
        counts = result.bins.counts[0]
        filled = counts > 0
        frequency = result.bins.frequency[0, filled, 0]
        areas = 12 + 90 * counts[filled] / max(1.0, counts.sum())
        for some, (colour, marker, _) in zip(
            (frequency < low, (frequency >= low) & (frequency <= high), frequency > high), MARKS, strict=True
        ):
            rows = np.full(int(some.sum()), float(row))
            panel.scatter(
                frequency[some], rows, areas[some], color=colour, marker=marker, linewidths=0, zorder=3, alpha=0.85
            )
        between = f" [{result.interval.low:.3f}, {result.interval.high:.3f}]" if result.interval else ""
        text = f"{result.value:.3f}{between}\nn = {colours.count(counts.sum())}" if filled.any() else "no samples"
        panel.text(
            1.02,
            row,
            text,
            transform=panel.get_yaxis_transform(),
            va="center",
            fontsize=0.92 * size,
            color=colours.GREY,
        )


MARKS = (
    (colours.OVER, ">", "below its range"),
    (colours.INK, "o", "in its range"),
    (colours.UNDER, "<", "above its range"),
)


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D

    return [Line2D([], [], color=colour, marker=marker, linestyle="", label=words) for colour, marker, words in MARKS]
