"""The decision curve: at which thresholds is acting on the forecasts worth more than acting on all samples, or none?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, Unpack, final

import numpy as np

from calibrant.binning.running import Ladder
from calibrant.door.options import DoorOptions
from calibrant.errors.decision import NetBenefit, net_benefits
from calibrant.exceptions import CalibrationInputError
from calibrant.kernels.totals import Floats
from calibrant.lenses.events import TopLabel
from calibrant.lenses.lens import Lens
from calibrant.metric import checked
from calibrant.plots import colours
from calibrant.plots.inputs import OfForecasts, models_of
from calibrant.plots.panels import WIDTH, one_panel
from calibrant.predictions import Predictions

THRESHOLDS = tuple(percent / 100 for percent in range(1, 100))


@final
@dataclass(eq=False)
class DecisionCurveDisplay(OfForecasts):
    """At which thresholds is acting on the forecasts worth more than acting on all samples, or on none?

    One line a model: `NetBenefit` against the threshold. The grey line acts on all samples, 0 on none. Where a model's
    line is the highest, its forecasts are worth using at that threshold. Models must be about the same samples.

    References: Vickers & Elkin (2006).

    >>> from calibrant.plots import DecisionCurveDisplay
    >>> display = DecisionCurveDisplay.from_predictions([0, 0, 1, 1], [.1, .3, .2, .8], thresholds=[.1, .2])
    >>> display.benefits[""].tolist(), display.everybody.round(4).tolist()
    ([0.4444444444444444, 0.4375], [0.4444, 0.375])
    """

    thresholds: Floats
    benefits: Mapping[str, Floats]
    everybody: Floats
    n: int

    def __post_init__(self) -> None:
        if not self.benefits:
            raise CalibrationInputError("benefits", "must not be empty", got="none")

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        lens: Lens = TopLabel(),
        thresholds: Sequence[float] = THRESHOLDS,
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure and draw: `Predictions`, or labels and probabilities, or a dictionary from names to `Predictions`."""
        several = models_of(y_true) if isinstance(y_true, Mapping) else {"": y_true}
        models = {name: checked(each, y_proba, options, cls.from_predictions) for name, each in several.items()}
        at = np.array([NetBenefit(threshold).threshold for threshold in thresholds])
        ladders = {name: _ladder(predictions, lens) for name, predictions in models.items()}
        outcomes = {(ladder.n, float(ladder.targets[-1:].value[0])) for ladder in ladders.values()}
        if len(outcomes) > 1:
            raise CalibrationInputError("models", "must be about the same samples", got=f"{len(outcomes)} sets of them")
        ((n, happened),) = outcomes
        everybody = (happened - (n - happened) * at / (1.0 - at)) / n
        benefits = {name: net_benefits(ladder, at) for name, ladder in ladders.items()}
        return cls(at, benefits, everybody, n).plot(ax, width=width)

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw one line a model, and those of acting on all samples and on none."""
        panel = one_panel(ax, width, 0.55 * width + 0.9 + 0.1 * len(self.benefits))
        letters = colours.dress(panel, grid="both")
        marker = "o" if len(self.thresholds) == 1 else ""
        style: dict[str, Any] = {"marker": marker, "linewidth": 1.4}
        handles = []
        for index, (name, benefits) in enumerate(self.benefits.items()):
            colour, dashes, _ = colours.SERIES[index % len(colours.SERIES)]
            words = colours.name(name) or "acting on the forecasts"
            handles += panel.plot(self.thresholds, benefits, color=colour, linestyle=dashes, label=words, **style)
        handles += panel.plot(self.thresholds, self.everybody, color=colours.GREY, label="acting on all", **style)
        nothing = np.zeros(len(self.thresholds))
        handles += panel.plot(
            self.thresholds, nothing, color=colours.INK, linestyle=(0, (1, 2)), label="acting on none", **style
        )
        highest = max(float(np.max(line)) for line in (*self.benefits.values(), self.everybody, nothing + 0.01))
        panel.set_ylim(-0.25 * highest, 1.08 * highest)  # what acting on all costs at high thresholds has no bottom
        panel.set_xlim(0, 1)
        panel.set_xlabel("threshold: forecast from which one acts", fontsize=letters.text)
        panel.set_ylabel("net benefit, true positives a sample", fontsize=letters.text)
        colours.headline(panel, f"Decision curve: n = {self.n:,}", handles=handles)
        return self._on(panel)


def _ladder(predictions: Predictions, lens: Lens) -> Ladder:
    """The table of one event's forecasts."""
    ladders = list(NetBenefit(0.5, lens=lens).summarise(predictions).ladders())
    if len(ladders) != 1 or not ladders[0].n:
        got = f"{len(ladders)} questions" if len(ladders) != 1 else "no samples"
        raise CalibrationInputError("lens", "must ask one event of some samples", got=got, hint="use OneClass(c)")
    return ladders[0]
