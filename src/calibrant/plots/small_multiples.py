"""Small multiples: the reliability of every class, or of the worst ones, at a glance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self, Unpack, final

import numpy as np

from calibrant.checks import whole
from calibrant.door.options import DoorOptions
from calibrant.errors.of_bins import OfBins
from calibrant.exceptions import CalibrationInputError
from calibrant.inference.bin_intervals import calibrated_frequencies
from calibrant.kernels.totals import Floats, Ints
from calibrant.metric import Metric, checked
from calibrant.plots import bars, colours
from calibrant.plots.inputs import OfForecasts
from calibrant.plots.panels import WIDTH, Axes, several_panels
from calibrant.plots.reliability import ReliabilityDisplay
from calibrant.recipes import SCE
from calibrant.result import Result
from calibrant.specification.facts import facts_of
from calibrant.specification.naming import fields_of


@final
@dataclass(eq=False)
class SmallMultiplesDisplay(OfForecasts):
    """Which classes happen less often than their column says? A reliability diagram a class, the worst first.

    Of more than `most` classes only the worst are drawn, and the title says of how many. `bands` are, by class, where
    the bins of a calibrated model would lie at `level`: bins of few samples may be far off by noise alone. Above each
    panel stand the class and its error; below it, how many samples each bin holds, in all panels on a logarithmic axis
    where they differ much in one.

    >>> from calibrant.plots import SmallMultiplesDisplay
    >>> display = SmallMultiplesDisplay.from_predictions([0, 1], [[.9, .1], [.6, .4]])
    >>> [panel.get_title(loc="left") for panel in display.axes_]
    ['0: .3500', '1: .3500']
    """

    result: Result
    most: int = 12
    bands: dict[int, Floats] = field(default_factory=dict)
    level: float = 0.9
    axes_: list[Axes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        whole(self.most, "most", 1)
        bins = self.result.bins
        if not self.result.values or bins is None or bins.low is None or bins.shape[2] != 1:
            raise CalibrationInputError(
                "metric", "must pool the forecasts of several events into bins", got=str(self.result), hint="use SCE"
            )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        metric: Metric = SCE,
        most: int = 12,
        consistency: int | None = None,
        level: float = 0.9,
        seed: int = 0,
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure and draw; `metric` asks of every class, as `SCE` and `ACE` do.

        With `consistency`, so many redraws of the labels make the band of a calibrated model in each panel.
        """
        predictions = checked(y_true, y_proba, options, cls.from_predictions)
        display = cls(metric(predictions), most, level=level)
        if consistency is not None:
            for index in display.worst.tolist():
                display.bands[index] = calibrated_frequencies(
                    _of_class(metric, index), predictions, n=consistency, seed=seed, level=level
                )
        return display.plot(ax, width=width)

    @property
    def worst(self) -> Ints:
        """The questions that are drawn, the largest error first; those without samples have none."""
        errors = np.abs(np.array(self.result.values))
        return np.argsort(-errors, kind="stable")[: min(self.most, int((~np.isnan(errors)).sum()))]

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw the worst classes."""
        assert self.result.bins is not None
        worst, parts = self.worst, list(self.result.parts.values())
        columns = max(1, min(4 if width >= 5 else 3, len(worst)))
        rows = max(1, math.ceil(len(worst) / columns))
        frame, panels = several_panels(ax, rows, columns, width, 1.2 + rows * (0.8 * width / columns + 0.35))
        handles: dict[str, Any] = {}
        log = any(bars.uneven(self.result.bins.question(int(index))) for index in worst)  # one kind of axis for all
        for place, panel in enumerate(panels):
            if place >= len(worst):
                panel.set_axis_off()
                continue
            index = int(worst[place])
            display = ReliabilityDisplay(parts[index], band=self.bands.get(index), level=self.level)
            handles |= {
                handle.get_label(): handle for handle in display.draw(panel, log=log, numbers=False, words=False)
            }
            letters = colours.Letters.of(panel)
            name = colours.name(self.result.about.names[worst[place]], letters.chars(72 * width / columns) - 8)
            error = f"{display.result.value:.4f}".lstrip("0")
            panel.set_title(f"{name}: {error}", loc="left", fontsize=letters.text, pad=3)
        self.axes_ = panels[: len(worst)]
        some = "all" if len(worst) == len(self.result.values) else f"the worst {len(worst)} of"
        title = f"Reliability by class, {some} {len(self.result.values):,}: {colours.stated(self.result)}"
        words = f"up: share that happened, across: forecast probability, below: samples{' (log)' * log}"
        colours.headline(frame, title, f"{colours.chosen(self.result)}; {words}", list(handles.values()))
        return self._on(frame)


def _of_class(metric: Metric, index: int) -> Metric:
    """The same question of one class only."""
    alone = facts_of(metric.lens).alone if isinstance(metric, OfBins) else None
    if alone is None:
        got, hint = str(fields_of(metric).get("lens", metric)), "use one like SCE or ACE"
        raise CalibrationInputError("consistency", "needs a binned error of every class", got=got, hint=hint)
    return metric.replace(lens=alone(index))
