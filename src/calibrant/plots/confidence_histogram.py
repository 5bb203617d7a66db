"""The confidence histogram: how sure were the right answers, and how sure the wrong ones?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, Unpack, final

from calibrant.binning.fixed import EqualWidth
from calibrant.door.options import DoorOptions
from calibrant.errors.binned import BinnedError
from calibrant.kernels.totals import Floats
from calibrant.metric import Metric, checked
from calibrant.plots import colours
from calibrant.plots.inputs import OfForecasts, one_event
from calibrant.plots.panels import WIDTH, Axes, one_panel
from calibrant.result import Result

IN_TWENTY = BinnedError(binning=EqualWidth(20))
"""The top-label error over 20 bins."""


@final
@dataclass(eq=False)
class ConfidenceHistogramDisplay(OfForecasts):
    """How sure were the right answers, and how sure the wrong ones? Right ones upwards, wrong ones downwards.

    Both sides are shares of their own number on one scale, so that a few wrong answers are seen beside many right
    ones; how many each bar stands for is written at it where it fits. Two lines mark mean confidence and accuracy:
    their distance is the over-confidence as a whole. Of an event: it happened, or it did not.

    Soft labels count as right by their mass on the predicted class.

    >>> from calibrant.plots import ConfidenceHistogramDisplay
    >>> display = ConfidenceHistogramDisplay.from_predictions([1, 0, 1, 1], [.9, .2, .6, .6])
    >>> [float(round(bar.get_height(), 4)) for bar in display.ax_.patches]
    [0.6667, 0.3333, -1.0]
    """

    result: Result

    def __post_init__(self) -> None:
        one_event(self.result)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        metric: Metric = IN_TWENTY,
        ax: Any = None,
        width: float = WIDTH,
        **options: Unpack[DoorOptions],
    ) -> Self:
        """Measure and draw; `metric` says which question is asked and how forecasts are pooled."""
        return cls(one_event(metric(checked(y_true, y_proba, options, cls.from_predictions)))).plot(ax, width=width)

    def plot(self, ax: Any = None, *, width: float = WIDTH) -> Self:
        """Draw both sides and the two lines."""
        assert self.result.bins is not None
        panel = one_panel(ax, width, 0.5 * width + 1.35)
        letters = colours.dress(panel, grid="y")
        size, right = self.result.bins.counts[0], self.result.bins.targets.value[0, :, 0]
        answers = self.result.question.startswith("top")
        words = ("right", "wrong") if answers else ("happened", "did not happen")
        handles = [
            self._side(panel, right, 1, words[0], letters.text, color=colours.RIGHT),
            self._side(panel, size - right, -1, words[1], letters.text, color=colours.WRONG, hatch="...."),
            *self._means(panel, answers),
        ]
        panel.axhline(0, color=colours.INK, linewidth=0.8)
        _axes(panel, colours.axis_words(self.result.question)[0], letters.text)
        what = "Confidence of right and wrong answers" if answers else "Forecasts by what happened"
        colours.headline(panel, f"{what}: {colours.samples(self.result.n)}", colours.chosen(self.result), handles)
        return self._on(panel)

    def _side(self, panel: Axes, number: Floats, sign: int, words: str, size: float, **style: Any) -> Any:
        """One side's bars, and how many answers each stands for."""
        assert self.result.bins is not None
        low, high, total = _ends(self.result), _ends(self.result, True), number.sum()
        some = number > 0
        heights = sign * number[some] / (total or 1.0)
        label = f"{words}, n = {colours.count(total)}"
        left, width = low[some], (high - low)[some]
        patches = panel.bar(left, heights, width, align="edge", label=label, edgecolor="white", linewidth=0.5, **style)
        texts = [colours.short_count(many) for many in number[some]]
        room = 72 * colours.inches(panel)[0] * float(width.min(initial=1.0))
        turned = 0.58 * size * max(map(len, texts), default=0) > room + 1
        for at, height, text in zip(left + width / 2, heights, texts, strict=True):
            if not turned or room > size:
                _write(panel, text, (at, height), sign, 0.92 * size, turned=turned)
        return patches

    def _means(self, panel: Axes, answers: bool) -> list[Any]:
        """Mean forecast and mean truth, as two lines."""
        assert self.result.bins is not None
        bins = self.result.bins
        if not bins.counts.sum():
            return []
        forecast, truth = (totals.value.sum() / bins.counts.sum() for totals in (bins.outputs, bins.targets))
        words = ("mean confidence", "accuracy") if answers else ("mean forecast", "share that happened")
        styles = ((forecast, words[0], "-"), (truth, words[1], (0, (4, 2))))
        return [
            panel.axvline(at, color=colours.INK, linewidth=1.1, linestyle=dashes, label=f"{what} {at:.3f}")
            for at, what, dashes in styles
        ]


def _write(panel: Axes, text: str, at: tuple[float, float], sign: int, size: float, *, turned: bool) -> None:
    """A number beyond the end of a bar, legible where a line crosses it."""
    panel.annotate(
        text,
        at,
        (0, 2 * sign),
        textcoords="offset points",
        ha="center",
        va="bottom" if sign > 0 else "top",
        rotation=90 if turned else 0,
        fontsize=size,
        color=colours.INK,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.4},
    )


def _ends(result: Result, upper: bool = False) -> Floats:
    """The lower or upper ends of the bins."""
    assert result.bins is not None
    ends = result.bins.high if upper else result.bins.low
    assert ends is not None
    return ends[0]


def _axes(panel: Axes, words: str, size: float) -> None:
    from matplotlib.ticker import FuncFormatter

    drawn = [bar.get_height() for bar in panel.patches] or [1.0]  # type: ignore[attr-defined]
    low, high = min(0.0, *drawn), max(0.0, *drawn)
    longest = max((len(text.get_text()) for text in panel.texts), default=0)
    letters = 0.6 * size * longest if any(text.get_rotation() for text in panel.texts) else size
    room = (letters + 8) / (42 * colours.inches(panel)[1]) * (high - low)  # for the numbers beyond the bars
    panel.set(ylim=(low - room, high + room), xlim=(0, 1), xlabel=words, ylabel="share of each")
    panel.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{abs(share):.0%}"))
