"""Before and after: what did a recalibration do to the reliability?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, final

from calibrant.exceptions import CalibrationInputError
from calibrant.plots import colours
from calibrant.plots.panels import WIDTH, Axes, Display, several_panels
from calibrant.plots.reliability import ReliabilityDisplay
from calibrant.predictions import Predictions, require_predictions


@final
@dataclass(eq=False)
class BeforeAfterDisplay(Display):
    """What did a recalibration do? Two reliability diagrams, side by side, or one above the other where it is narrow.

    `axes_` are the two panels; `ax_` is the empty frame around them, which has the title.

    >>> import calibrant as cal
    >>> from calibrant.plots import BeforeAfterDisplay
    >>> before = cal.Predictions.from_probs([1, 0, 1, 0], [.9, .9, .9, .1])
    >>> after = cal.Predictions.from_probs([1, 0, 1, 0], [.7, .7, .7, .1])
    >>> print(BeforeAfterDisplay.from_predictions(before, after).ax_.get_title(loc="left"))
    ECE 0.2000 before, 0.0500 after, n = 4
    """

    before: ReliabilityDisplay
    after: ReliabilityDisplay
    names: tuple[str, str] = ("before", "after")
    axes_: list[Axes] = field(init=False, repr=False)

    @classmethod
    def from_predictions(
        cls,
        before: Predictions,
        after: Predictions,
        *,
        names: tuple[str, str] = ("before", "after"),
        ax: Any = None,
        width: float = WIDTH,
        **options: Any,
    ) -> Self:
        """Measure and draw the same rows before and after; options as for `ReliabilityDisplay.from_predictions`."""
        require_predictions(before, "before")
        require_predictions(after, "after")
        if len(before) != len(after):
            raise CalibrationInputError(
                "after", f"must have the rows of before ({len(before)})", got=f"{len(after)} rows"
            )
        first, second = (ReliabilityDisplay.measured(predictions, **options) for predictions in (before, after))
        return cls(first, second, names).plot(ax, width=width)

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw both diagrams."""
        side_by_side = width >= 5
        rows, columns = (1, 2) if side_by_side else (2, 1)
        frame, panels = several_panels(
            ax, rows, columns, width, 0.52 * width + 1.2 if side_by_side else 1.75 * width + 0.6
        )
        handles: dict[str, Any] = {}
        for display, panel, name in zip((self.before, self.after), panels, self.names, strict=True):
            handles |= {handle.get_label(): handle for handle in display.draw(panel)}
            text = colours.name(f"{name}: {colours.measure(display.result)} {display.result.value:.4f}", 60)
            panel.set_title(text, loc="left", fontsize=colours.Letters.of(panel).heading, color=colours.INK)
        first, second = self.before.result, self.after.result
        values = f"{first.value:.4f} {self.names[0]}, {second.value:.4f} {self.names[1]}"
        title = f"{colours.measure(first)} {colours.name(values, 60)}, {colours.samples(first.n)}"
        colours.headline(frame, title, colours.chosen(first), list(handles.values()))
        self.axes_ = panels
        return self._on(frame)
