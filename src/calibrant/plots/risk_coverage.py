"""Risk and coverage: how does the error rate fall as the most uncertain samples are left to somebody else?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, Unpack, final

from calibrant.diagnostics import RiskCoverage, risk_coverage
from calibrant.door.options import DoorOptions
from calibrant.errors.mean_score import Score
from calibrant.exceptions import CalibrationInputError
from calibrant.metric import checked
from calibrant.plots import colours
from calibrant.plots.inputs import OfForecasts, models_of
from calibrant.plots.panels import WIDTH, one_panel


@final
@dataclass(eq=False)
class RiskCoverageDisplay(OfForecasts):
    """How does the error rate fall as the most uncertain samples are referred? Lower curves know better when they err.

    One line a model: the share of errors among the most certain samples, against the share of samples kept. The legend
    states the mean risk over all coverages, `AURC`. Certainty is as in `diagnostics.risk_coverage`. At a coverage of 1
    the risk is the plain error rate.

    References: Geifman & El-Yaniv (2017); Ao, Rueger & Siddharthan (2023), section 5.4.

    >>> from calibrant.plots import RiskCoverageDisplay
    >>> display = RiskCoverageDisplay.from_predictions([0, 1, 0], [[.9, .1], [.2, .8], [.4, .6]])
    >>> display.ax_.lines[0].get_ydata().round(4).tolist()
    [0.0, 0.0, 0.3333]
    """

    curves: Mapping[str, RiskCoverage]

    def __post_init__(self) -> None:
        if not self.curves:
            raise CalibrationInputError("curves", "must not be empty", got="none")

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        uncertainty: Score | None = None,
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure and draw: `Predictions`, or labels and probabilities, or a dictionary from names to `Predictions`."""
        models = models_of(y_true) if isinstance(y_true, Mapping) else {"": y_true}
        forecasts = {name: checked(each, y_proba, options, cls.from_predictions) for name, each in models.items()}
        curves = {name: risk_coverage(predictions, uncertainty) for name, predictions in forecasts.items()}
        return cls(curves).plot(ax, width=width)

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw one line a model."""
        panel = one_panel(ax, width, 0.55 * width + 0.9 + 0.1 * len(self.curves))
        letters = colours.dress(panel, grid="both")
        sizes = {len(curve.risk) for curve in self.curves.values()}
        handles = []
        for index, (name, curve) in enumerate(self.curves.items()):
            colour, dashes, _ = colours.SERIES[index % len(colours.SERIES)]
            words = f"{colours.name(name)}, " * bool(name) + f"AURC {curve.aurc:.4f}"
            words += f", {colours.samples(len(curve.risk))}" * (len(sizes) > 1)
            marker = "o" if len(curve.risk) == 1 else ""
            style: dict[str, Any] = {
                "color": colour,
                "linestyle": dashes,
                "marker": marker,
                "linewidth": 1.4,
                "label": words,
            }
            handles += panel.plot(curve.coverage, curve.risk, **style)
        panel.set_xlim(0, 1.01)
        panel.set_ylim(bottom=0)
        panel.set_xlabel("coverage: share of the samples kept, most certain first", fontsize=letters.text)
        panel.set_ylabel("risk: share of errors among them", fontsize=letters.text)
        total = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
        colours.headline(panel, f"Risk and coverage: n = {total}", handles=handles)
        return self._on(panel)
