"""Drawing: what pictures of simulations share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

MARKERS = "osD^vPX*"
"""One for each series, so that none is told by its colour alone."""


def panels_of(count: int, columns: int | None = None, *, share: bool = False) -> tuple[Any, list[Any]]:
    """A figure with so many panels, in rows of some columns or side by side; two spines and a faint grid each.

    With `share`, both axes are those of the first panel, so that panels can be compared.

    >>> figure, panels = panels_of(5, 2)
    >>> len(panels), len(figure.axes)
    (5, 5)
    """
    from matplotlib.figure import Figure

    across = min(count, columns or count)
    down = math.ceil(count / across)
    size = (5 * across + 1.5, 4) if down == 1 else (4 * across + 1, 2.7 * down + 1)
    figure = Figure(figsize=size, layout="constrained")
    every = list(figure.subplots(down, across, squeeze=False, sharex=share, sharey=share).ravel())
    for panel in every[:count]:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(color="0.92", linewidth=0.7)
        panel.set_axisbelow(True)
    for panel in every[count:]:
        panel.remove()
    return figure, every[:count]


def legend_below(panel: Any) -> None:
    """What is what, below the panel, so that it covers no data."""
    longest = max(map(len, panel.get_legend_handles_labels()[1]))
    columns = max(1, min(3, 75 // (longest + 8)))  # of the letters that fit below a panel
    panel.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=columns, columnspacing=1.2)


def legend_of_all(figure: Any, panels: Sequence[Any]) -> None:
    """What is what in any of the panels, once, below them all."""
    handles = {
        label: handle for panel in panels for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    longest = max(map(len, handles))
    columns = max(1, min(len(handles), int(10 * figure.get_figwidth()) // (longest + 6)))
    figure.legend(handles.values(), handles, loc="outside lower center", frameon=False, ncols=columns)


def draw_series(panel: Any, place: int, label: str, x: Any, y: Any, errors: Any, *, joined: bool = True) -> None:
    """One series with bars."""
    style = {"color": f"C{place % 10}", "marker": MARKERS[place % len(MARKERS)], "markersize": 5, "capsize": 2}
    panel.errorbar(x, y, yerr=errors, label=label, linestyle="-" if joined else "none", **style)


def size_axis(panel: Any, values: Sequence[float], over: str) -> None:
    """An axis of numbers of samples: each has its tick, at equal distances for equal factors."""
    from matplotlib.ticker import NullFormatter

    if min(values) > 0 and np.isfinite(values).all():
        panel.set_xscale("log")
    ticks = sorted(set(values))
    if len(ticks) == 1:
        panel.set_xlim(ticks[0] / 2, 2 * ticks[0])
    panel.set_xticks(ticks, [f"{value:,g}" for value in ticks])
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel(over)
