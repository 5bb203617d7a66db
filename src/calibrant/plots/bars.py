"""Bars: the bins of one event as a picture, drawn to their width, with the gap to the forecast and the counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.bins import Bins
from calibrant.kernels.totals import Floats
from calibrant.plots import colours
from calibrant.plots.colours import Letters, inches
from calibrant.plots.panels import Axes, strip_below

LOG_RATIO = 30.0
"""Counts whose largest is more than so many times the smallest are drawn on a logarithmic axis."""
TINY_PANEL = 1.7
"""Inches of width under which a panel has fewer ticks and smaller dots."""


@dataclass(frozen=True, eq=False)
class Window:
    """What the two axes show: all of [0, 1], or on a logit axis as much as the bins need."""

    low: float = 0.0
    high: float = 1.0
    logit: bool = False

    @classmethod
    def of(cls, bins: Bins, logit: bool) -> Window:
        """The window of some bins.

        A logit axis ends beyond all that is neither 0 nor 1, and at most ten times nearer to them than one sample in
        all: no frequency can be told from 0 or 1 there.
        """
        if not logit:
            return cls()
        seen = np.concatenate([bins.forecast.ravel(), bins.frequency.ravel(), [0.1, 0.9]])
        inside = seen[(seen > 0) & (seen < 1)]
        nearest = 0.1 / max(1.0, float(bins.counts.sum()))
        return cls(max(inside.min() / 2, nearest), 1 - max((1 - inside).min() / 2, nearest), True)

    def clip(self, values: Floats) -> Floats:
        """Values as far as the window reaches; nan stays nan."""
        return np.clip(values, self.low, self.high)

    def apply(self, ax: Axes) -> None:
        """Both axes to this window, with few ticks."""
        if self.logit:
            ax.set(xscale="logit", yscale="logit")
            ax.minorticks_off()
        wide = inches(ax)[0]
        ticks = self._ticks(7 if wide > colours.SMALL_PANEL else 5 if wide > TINY_PANEL else 3)
        labels = [f"{tick:.5f}".rstrip("0").rstrip(".").replace("0.", ".") for tick in ticks]
        ax.set_xticks(ticks, labels=labels)
        ax.set_yticks(ticks, labels=labels)
        ax.set(xlim=(self.low, self.high), ylim=(self.low, self.high))

    def _ticks(self, most: int) -> list[float]:
        """A few round numbers: quarters, or on a logit axis tenths, hundredths and so on of both sides."""
        if not self.logit:
            return [0.0, 0.25, 0.5, 0.75, 1.0] if most > 3 else [0.0, 0.5, 1.0]
        for step in (1, 2, 3, 4, 5):
            powers = [10.0**-power for power in range(1, 6) if (power - 1) % step == 0]
            every = sorted([0.5, *powers, *(1 - power for power in powers)])
            ticks = [tick for tick in every if self.low <= tick <= self.high]
            if len(ticks) <= most:
                break
        return ticks


def draw_bins(ax: Axes, bins: Bins, window: Window) -> list[Any]:
    """Observed frequencies as bars, the gap to the mean forecast coloured and hatched; returns what a legend names."""
    left, width, observed, forecast = _columns(bins, window)
    ax.bar(
        left,
        observed - window.low,
        width,
        bottom=window.low,
        align="edge",
        color=colours.FAINT,
        edgecolor=colours.PALE,
        linewidth=0.6,
        label="observed",
    )
    handles = []
    high, low = colours.gap_words(bins.about.question)
    bottom, height = np.minimum(observed, forecast), np.abs(forecast - observed)
    for some, words, colour, tint, hatch in (
        (forecast > observed, high, colours.OVER, colours.OVER_TINT, colours.OVER_HATCH),
        (forecast < observed, low, colours.UNDER, colours.UNDER_TINT, colours.UNDER_HATCH),
    ):
        style: dict[str, Any] = {"facecolor": tint, "edgecolor": colour, "hatch": hatch, "linewidth": 0.6}
        gap_bars = ax.bar(
            left[some], height[some], width[some], bottom=bottom[some], align="edge", label=words, **style
        )
        handles += [gap_bars] if some.any() else []
    ax.plot([window.low, window.high], [window.low, window.high], color=colours.GREY, linewidth=0.8, dashes=(4, 2))
    dots = 2.6 if inches(ax)[0] > TINY_PANEL else 1.6
    ax.plot(forecast, observed, "o", color=colours.INK, markersize=dots, clip_on=False, zorder=4)
    window.apply(ax)
    return handles


def draw_band(ax: Axes, bins: Bins, window: Window, band: Floats, words: str) -> Any:
    """Where calibrated bins would lie, as a grey box across each bin."""
    left, width, *_ = _columns(bins, window)
    low, high = window.clip(band[bins.counts[0] > 0].T)
    style: dict[str, Any] = {"facecolor": colours.GREY, "alpha": 0.3, "linewidth": 0.8, "edgecolor": colours.INK}
    return ax.bar(left, high - low, width, bottom=low, align="edge", label=words, zorder=2.5, **style)


def draw_intervals(ax: Axes, bins: Bins, window: Window, intervals: Floats, words: str) -> Any:
    """The interval of each bin's frequency, as a line through its point."""
    filled = bins.counts[0] > 0
    at, (low, high) = window.clip(bins.forecast[0, filled, 0]), window.clip(intervals[filled].T)
    there = ~np.isnan(low)
    return ax.vlines(at[there], low[there], high[there], color=colours.INK, linewidth=1.1, zorder=3.5, label=words)


def uneven(bins: Bins) -> bool:
    """Whether the bins of some question differ so much in size that a logarithmic axis is due."""
    largest = bins.counts.max(axis=1, initial=0.0)
    smallest = np.where(bins.counts > 0, bins.counts, np.inf).min(axis=1, initial=np.inf)
    return bool((largest > LOG_RATIO * smallest).any())


def draw_counts(ax: Axes, bins: Bins, window: Window, *, log: bool, numbers: bool = True) -> Axes:
    """How many samples each bin holds, in a strip below; the numbers themselves where they fit."""
    letters = Letters.of(ax)
    counts = bins.counts[0]
    filled = counts > 0
    left, width, *_ = _columns(bins, window)
    texts = _Numbers.of(ax, window, left + width / 2, counts[filled], letters.text) if numbers else None
    strip = strip_below(ax, 0.26, (5 + (texts.height if texts else 0)) / (inches(ax)[1] * 72))
    strip.bar(left, counts[filled], width, align="edge", color=colours.PALE, edgecolor=colours.GREY, linewidth=0.5)
    _count_axis(strip, counts, log, letters.text, ticks=3 if inches(ax)[0] > TINY_PANEL else 2)
    if texts:
        texts.draw(strip)
    return strip


def _columns(bins: Bins, window: Window) -> tuple[Floats, Floats, Floats, Floats]:
    """Left ends, widths, frequencies and mean forecasts of the bins that hold samples, as far as the window reaches."""
    assert bins.low is not None
    assert bins.high is not None
    filled = bins.counts[0] > 0
    left, right = window.clip(bins.low[0, filled]), window.clip(bins.high[0, filled])
    return left, right - left, window.clip(bins.frequency[0, filled, 0]), window.clip(bins.forecast[0, filled, 0])


def _count_axis(strip: Axes, counts: Floats, log: bool, size: float, *, ticks: int) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

    most = max(1.0, float(counts.max(initial=0)))
    if log:
        strip.set(yscale="log", ylim=(0.5 * min(1.0, float(counts[counts > 0].min(initial=1.0))), 2 * most))
        strip.yaxis.set_major_locator(LogLocator(numticks=ticks))
        strip.minorticks_off()
    else:
        strip.set_ylim(0, 1.15 * most)
        strip.yaxis.set_major_locator(MaxNLocator(ticks - 1))
    strip.yaxis.set_major_formatter(FuncFormatter(lambda value, _: colours.short_count(value)))
    colours.bare(strip, size)
    strip.set_ylabel("samples\n(log)" if log else "samples", fontsize=size)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Counts written over a strip: upright where bins are wide, turned where narrow, left out where crowded."""

    at: Floats
    texts: list[str]
    turned: bool
    size: float

    @classmethod
    def of(cls, ax: Axes, window: Window, at: Floats, counts: Floats, size: float) -> _Numbers:
        texts = [colours.short_count(number) for number in counts]
        scale = _logit if window.logit else np.asarray
        span = float(scale(np.array(window.high)) - scale(np.array(window.low)))
        points = scale(at) / span * inches(ax)[0] * 72
        apart = float(np.diff(points).min(initial=np.inf))
        turned = apart < 0.62 * size * max(map(len, texts), default=1) + 2
        kept: list[int] = []
        for index, point in enumerate(points):
            if not turned or not kept or point - points[kept[-1]] >= 1.2 * size:
                kept.append(index)
        return cls(at[kept], [texts[index] for index in kept], turned, 0.92 * size)

    @property
    def height(self) -> float:
        """Points that the numbers take up."""
        return 4 + self.size * (0.66 * max(map(len, self.texts), default=1) if self.turned else 1.0)

    def draw(self, strip: Axes) -> None:
        across = strip.get_xaxis_transform()
        style = {"rotation": 90 if self.turned else 0, "ha": "center", "va": "bottom", "fontsize": self.size}
        for at, text in zip(self.at, self.texts, strict=True):
            strip.text(at, 1.06, text, transform=across, color=colours.GREY, **style)  # type: ignore[arg-type]


def _logit(values: Floats) -> Floats:
    return np.log(values) - np.log1p(-values)
