"""Panels: the axes that pictures are drawn on, and what every display has; no global state is touched."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias, final

import numpy as np

from calibrant.checks import number
from calibrant.exceptions import CalibrationInputError

if TYPE_CHECKING:
    import matplotlib.axes
    from matplotlib.figure import Figure

Axes: TypeAlias = "matplotlib.axes.Axes"
"""What pictures are drawn on, by a name that can be imported without matplotlib."""
WIDTH = 7.0
"""Inches across where no axes are given; 3.3 is a column of a paper."""


class Display(ABC):
    """A picture and the data that it draws: `plot` draws it (again), `ax_` and `figure_` are where it was drawn.

    Without `ax`, a figure of `width` inches is made that no global registry knows of: `figure_.savefig(path)` saves it,
    a notebook shows it, and nothing has to be closed.
    """

    ax_: Axes
    figure_: Figure

    @abstractmethod
    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw on the given axes, or on a figure of its own."""

    @final
    def _on(self, ax: Axes) -> Self:
        figure = ax.get_figure(root=True)
        assert figure is not None
        self.ax_, self.figure_ = ax, figure
        return self

    @final
    def _repr_png_(self) -> bytes:
        """The picture as a notebook shows it."""
        if not hasattr(self, "figure_"):
            self.plot()
        picture = io.BytesIO()
        self.figure_.savefig(picture, format="png")
        return picture.getvalue()


def one_panel(ax: Any, width: float, height: float) -> Axes:
    """The given axes, or those of a new figure of so many inches."""
    return new_figure(width, height).subplots() if ax is None else _checked(ax)


def several_panels(
    ax: Any, rows: int, columns: int, width: float, height: float, ratios: Sequence[float] | None = None
) -> tuple[Axes, list[Axes]]:
    """Panels in the place of the given axes, or of a new figure's: empty axes above them that have the title, and
    the panels."""
    frame = one_panel(ax, width, height)
    spec = frame.get_subplotspec()
    if spec is None:
        hint = "make them with subplots, or leave ax out"
        raise CalibrationInputError("ax", "must be part of a grid to be divided", got="free axes", hint=hint)
    frame.set_axis_off()
    parts = spec.subgridspec(2, 1, height_ratios=(1, 1000), hspace=0.0)
    frame.set_subplotspec(parts[0])
    grid = parts[1].subgridspec(rows, columns, height_ratios=ratios)
    return frame, [frame.figure.add_subplot(grid[place]) for place in range(rows * columns)]


def strip_below(ax: Axes, share: float, gap: float) -> Axes:
    """A panel below another that shares its horizontal axis, in the place that the upper one had.

    It has so large a share of the upper one's height, and a gap (another share) where no layout makes room for labels.
    Axes that are in no grid keep their place, and the strip hangs below.
    """
    ax.tick_params(labelbottom=False)
    spec, figure = ax.get_subplotspec(), ax.get_figure(root=True)
    if spec is None:
        return ax.inset_axes((0, -gap - share, 1, share), sharex=ax)
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    assert figure is not None
    makes_room = isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)
    halves = spec.subgridspec(2, 1, height_ratios=(1, share), hspace=0.0 if makes_room else 2 * gap / (1 + share))
    ax.set_subplotspec(halves[0])
    return ax.figure.add_subplot(halves[1], sharex=ax)


def new_figure(width: float, height: float) -> Figure:
    """A figure that makes room for its labels and is known to nobody else."""
    number(width, "width", "must be a positive number of inches", lambda inches: 0 < inches < np.inf)
    try:
        from matplotlib import figure, layout_engine
    except ImportError as reason:
        raise ImportError("pictures need matplotlib: pip install calibrant[plot]") from reason
    return figure.Figure(figsize=(width, height), layout=layout_engine.ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.045))


def _checked(ax: Any) -> Axes:
    from matplotlib import axes

    if not isinstance(ax, axes.Axes):
        raise CalibrationInputError("ax", "must be matplotlib axes", got=repr(ax))
    return ax
