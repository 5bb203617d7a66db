"""A metric by groups of samples: for whom is the model off?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, Unpack, final

import numpy as np

from calibrant.checks import whole
from calibrant.door.options import DoorOptions
from calibrant.exceptions import CalibrationInputError, nearest
from calibrant.inference.bootstrap import Bootstrap
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric, checked
from calibrant.plots import colours
from calibrant.plots.panels import WIDTH, Axes, Display, one_panel
from calibrant.plots.ranking import Ranking
from calibrant.recipes import ECE
from calibrant.result import Result
from calibrant.table import Table, table


@final
@dataclass(eq=False)
class GroupsDisplay(Display):
    """For whom is the model off? A metric for each value of a column, the largest on top, with the number of samples.

    A line is the group's interval, where it has one; a grey bar reaches from 0 to where 95% of the values of a
    calibrated model would lie, where `table` was asked for the null (signed metrics, whose noise has two sides, have
    none). A group inside its grey bar may be off by noise alone. The dashed line is the value of all samples. Of more
    than `most` groups the outermost are named and the rest is drawn as a ribbon. Groups without a value are left out,
    and counted.

    >>> import calibrant as cal
    >>> from calibrant.plots import GroupsDisplay
    >>> p = cal.Predictions.from_probs([1, 0, 1], [.9, .2, .6], region=["north", "south", "north"])
    >>> display = GroupsDisplay.from_predictions(p, by="region")
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['north (2)', 'south (1)']
    """

    results: Mapping[str, Result]
    by: str = "group"
    everything: Result | None = None
    most: int = 40

    def __post_init__(self) -> None:
        whole(self.most, "most", 2)
        if not self.results:
            raise CalibrationInputError("results", "must not be empty", got="none")

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        by: Any,
        metric: Metric = ECE,
        interval: Bootstrap | None = None,
        consistency: int | None = None,
        seed: int = 0,
        most: int = 40,
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure and draw; `by` names a column of the predictions, `consistency` is the number of redraws."""
        predictions = checked(y_true, y_proba, options, cls.from_predictions)
        measured = table(predictions, {"value": metric}, by=by, interval=interval, null=consistency, seed=seed)
        return cls.from_table(measured, "value", most=most, ax=ax, width=width)

    @classmethod
    def from_table(cls, table: Table, metric: str, *, most: int = 40, ax: Any = None, width: float = WIDTH) -> Self:
        """Draw one column of a table that was made `by` something."""
        rows = dict(table.results)
        whole_table = rows.pop("all")
        if table.by is None or metric not in whole_table:
            got, hint = (
                ("a table of all rows", "make it with by=...")
                if table.by is None
                else (repr(metric), nearest(metric, whole_table))
            )
            raise CalibrationInputError("metric", "must be a column of a table by groups", got=got, hint=hint)
        results = {name: row[metric] for name, row in rows.items()}
        return cls(results, table.by, whole_table[metric], most).plot(ax, width=width)

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw the groups in order."""
        values = np.array([result.value for result in self.results.values()])
        ranking = Ranking.of(values, most=self.most)
        panel = one_panel(ax, width, 1.4 + (0.19 if width >= 5 else 0.15) * max(ranking.height, 3.0))
        letters = colours.dress(panel, grid="x")
        longest = 26 if width >= 5 else 18
        names = [f"{colours.name(name, longest)} ({result.n:,})" for name, result in self.results.items()]
        ranking.apply(panel, names, letters.text, "groups")
        handles = self._draw(panel, ranking, values)
        if min(0.0, *panel.dataLim.intervalx) >= 0:
            panel.set_xlim(left=0)
        some = self.everything or next(iter(self.results.values()))
        panel.set_xlabel(colours.measure(some), fontsize=letters.text)
        title = f"{colours.measure(some)} by {colours.name(self.by)}: {len(values)} groups, {colours.samples(self._n)}"
        colours.headline(panel, title, self._small_print(some, values), handles, beside=names)
        return self._on(panel)

    @property
    def _n(self) -> int:
        return self.everything.n if self.everything else sum(result.n for result in self.results.values())

    def _small_print(self, some: Result, values: Floats) -> str:
        absent = int(np.isnan(values).sum())
        without = f"; {absent} groups without a value" if absent else ""
        return f"{colours.chosen(some)}; samples in brackets{without}"

    def _draw(self, panel: Axes, ranking: Ranking, values: Floats) -> list[Any]:
        every = list(self.results.values())
        handles: list[Any] = []
        noise = np.array([result.details.get("noise_95", np.nan) for result in every])
        if not np.isnan(noise).all() and every[0].metric.facts.sides == 1:
            words = "95% if calibrated"
            style: dict[str, Any] = {
                "color": colours.FAINT,
                "edgecolor": colours.PALE,
                "linewidth": 0.5,
                "label": words,
            }
            handles.append(panel.barh(ranking.rows, np.nan_to_num(noise[ranking.named]), 0.8, **style))
        ends = [
            (result.interval.low, result.interval.high) if result.interval else (np.nan, np.nan) for result in every
        ]
        low, high = np.array(ends)[ranking.named].T
        level = next((result.interval.level for result in every if result.interval), None)
        if level is not None:
            words = f"{level:.0%} interval"
            handles.append(panel.hlines(ranking.rows, low, high, color=colours.INK, linewidth=1.1, label=words))
        panel.plot(values[ranking.named], ranking.rows, "o", color=colours.OVER, markersize=4.5, zorder=3)
        middle = (ranking.ribbon_rows[:-1] + ranking.ribbon_rows[1:]) / 2
        panel.plot(values[ranking.rest], middle, "o", color=colours.OVER, markersize=1.8, zorder=3)
        if self.everything is not None and np.isfinite(self.everything.value):
            words = f"all {self.everything.value:.4f}"
            handles.append(
                panel.axvline(self.everything.value, color=colours.GREY, linewidth=1, dashes=(4, 2), label=words)
            )
        return handles
