"""Charts: the page's pictures, drawn as SVG from tables of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from calibrant.report.svg import Plane, element, picture
from calibrant.table import inert
from calibrant.totals import Floats

Z = 1.6448536269514722
"""The normal quantile of a two-sided 90 %."""


@dataclass(frozen=True)
class Bar:
    """One bin of a reliability diagram."""

    low: float
    high: float
    count: float
    forecast: float
    frequency: float

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 90 % interval of the frequency.

        >>> low, high = Bar(0, 1, 10, .5, .5).interval
        >>> round(low, 4), round(high, 4)
        (0.2693, 0.7307)
        """
        n, p = self.count, self.frequency
        middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
        reach = Z * math.sqrt(max(p * (1 - p), 0.0) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
        return max(middle - reach, 0.0), min(middle + reach, 1.0)

    @property
    def band(self) -> tuple[float, float]:
        """Where the frequency of so many calibrated forecasts lies in 90 of 100 samples, by the normal approximation.

        >>> low, high = Bar(0, 1, 100, .5, .4).band
        >>> round(low, 4), round(high, 4)
        (0.4178, 0.5822)
        """
        reach = Z * math.sqrt(max(self.forecast * (1 - self.forecast), 0.0) / self.count)
        return max(self.forecast - reach, 0.0), min(self.forecast + reach, 1.0)

    @property
    def kind(self) -> str:
        """Over-confident, or under-confident."""
        return "over" if self.forecast > self.frequency else "under"


RELIABILITY = Plane((0, 1), (0, 1), height=420, bottom=40)
COUNTS = Plane((0, 1), (0, 1), height=130, top=8, bottom=46)


def reliability(identity: str, bars: Sequence[Bar], axis: tuple[str, str], title: str, description: str) -> Markup:
    """How often forecasts came true against the forecasts: bars to their bins' width, the gap coloured."""
    plane, below = RELIABILITY, COUNTS
    counts = element(
        "g",
        below.frame(axis[0], "count", y_ticks=[]),
        element("g", *count_bars(bars), class_="counts"),
        transform=f"translate(0 {plane.height - 6})",
    )
    return picture(
        identity,
        title,
        description,
        plane.width,
        plane.height + below.height - 6,
        hatches(),
        plane.frame("", axis[1]),
        element("g", *drawn_bars(bars), class_="bars"),
        plane.line([(0, 0), (1, 1)], class_="diagonal"),
        counts,
    )


def drawn_bars(bars: Sequence[Bar]) -> list[Markup]:
    """Band, frequency, gap, forecast and interval of each bin."""
    made = []
    for bar in bars:
        said = (
            f"{bar.low:.3f} to {bar.high:.3f}: forecast {bar.forecast:.3f}, "
            f"came true {bar.frequency:.3f}, {bar.count:,.10g} samples"
        )
        made.append(
            element(
                "g",
                element("title", said),
                RELIABILITY.box(bar.low, bar.high, 0, bar.frequency, class_="frequency"),
                RELIABILITY.box(bar.low, bar.high, bar.frequency, bar.forecast, class_=f"gap {bar.kind}"),
                RELIABILITY.box(bar.low, bar.high, *bar.band, class_="band"),
                RELIABILITY.line([(bar.low, bar.frequency), (bar.high, bar.frequency)], class_="level"),
                RELIABILITY.line([((bar.low + bar.high) / 2, end) for end in bar.interval], class_="whisker"),
            )
        )
    return made


def count_bars(bars: Sequence[Bar]) -> list[Markup]:
    """How many samples each bin holds, against the fullest."""
    fullest = max((bar.count for bar in bars), default=1.0)
    made = [COUNTS.box(bar.low, bar.high, 0, bar.count / fullest, class_="count") for bar in bars]
    most = element("text", f"{fullest:,.10g}", x=COUNTS.left - 6, y=COUNTS.up(1) + 8, class_="tick end most")
    return [*made, most]


def hatches() -> Markup:
    """Patterns that tell over from under without colour."""
    lines = {"hatch-over": "M-1 1l2-2M0 6l6-6M5 7l2-2", "hatch-under": "M-1 5l2 2M0 0l6 6M5-1l2 2"}
    return element(
        "defs",
        *(
            element(
                "pattern",
                element("rect", width=6, height=6, class_=f"{name} ground"),
                element("path", d=path, class_=f"{name} stroke"),
                id=name,
                width=6,
                height=6,
                patternUnits="userSpaceOnUse",
            )
            for name, path in lines.items()
        ),
    )


@dataclass(frozen=True)
class Line:
    """A line of a chart, with the band around it if it has one."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    marks: bool = False


def lines(
    identity: str,
    series: Sequence[Line],
    axis: tuple[str, str],
    title: str,
    description: str,
    *,
    x_ticks: Sequence[tuple[float, str]] | None = None,
    zero: bool = True,
    floor: float | None = None,
) -> Markup:
    """Lines over a common axis, told apart by colour and dash; a dotted one for a noise floor."""
    xs = np.concatenate([np.asarray(line.x, float) for line in series])
    every = [np.asarray(part, float) for line in series for part in (line.y, line.low, line.high) if part is not None]
    room = 18 * len(series) if len(series) > 1 else 0
    span = _span(np.concatenate([*every, [floor] if floor is not None else []]), zero)
    plane = Plane(_wide(xs), span, height=300 + room, top=12 + room)
    parts = [plane.frame(*axis, x_ticks=x_ticks)]
    for index, line in enumerate(series):
        kind = f"s{index % 4}"
        if line.low is not None and line.high is not None:
            parts.append(plane.area(line.x, line.low, line.high, class_=f"area {kind}"))
        parts.append(plane.line(zip(line.x, line.y, strict=True), class_=f"series {kind}"))
        if line.marks:
            parts += [
                element("circle", cx=plane.across(x), cy=plane.up(y), r=3.5, class_=f"mark {kind}")
                for x, y in zip(line.x, line.y, strict=True)
                if math.isfinite(y)
            ]
    if floor is not None:
        parts.append(plane.line([(plane.x[0], floor), (plane.x[1], floor)], class_="floor"))
    if len(series) > 1:
        parts.append(_legend(plane, [line.name for line in series]))
    return picture(identity, title, description, plane.width, plane.height, *parts)


def signed_bars(
    identity: str,
    names: Sequence[str],
    values: Sequence[float],
    title: str,
    description: str,
    *,
    label: str = "confidence less accuracy, points",
    low: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
) -> Markup:
    """Signed gaps as bars from 0, over-confident to the right; one row a name."""
    row, top, bottom = 22.0, 8.0, 44.0
    ends = [100 * np.asarray(part, float) for part in (values, low, high) if part is not None]
    reach = max(0.5, 1.1 * float(np.nanmax(np.abs(np.concatenate(ends))))) if len(values) else 1.0
    height = top + bottom + row * len(values)
    plane = Plane((-reach, reach), (0, max(len(values), 1)), height=height, left=170, bottom=bottom, top=top)
    parts = [hatches(), plane.frame(label, "", y_ticks=[])]
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        at = len(values) - index
        parts.append(element("text", _short(name), x=plane.left - 8, y=plane.up(at - 0.5) + 4, class_="tick end"))
        if not math.isfinite(value):
            continue
        parts.append(plane.box(0, 100 * value, at - 0.15, at - 0.85, class_=f"gap {'over' if value > 0 else 'under'}"))
        if low is not None and high is not None:
            ends_here = [(100 * end, at - 0.5) for end in (low[index], high[index])]
            parts.append(plane.line(ends_here, class_="whisker"))
    parts.append(plane.line([(0, 0), (0, len(values))], class_="diagonal"))
    return picture(identity, title, description, plane.width, plane.height, *parts)


def histogram(
    identity: str, values: Floats, observed: float, axis: tuple[str, str], title: str, description: str
) -> Markup:
    """How often each value came up, with the observed one marked."""
    low, high = _span(np.append(values, observed), zero=True)
    counts, edges = np.histogram(values, bins=30, range=(low, high))
    plane = Plane((low, high), (0, max(int(counts.max()), 1) * 1.15), height=220)
    parts = [plane.frame(*axis)]
    parts += [
        plane.box(left, right, 0, int(count), class_="count")
        for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True)
        if count
    ]
    at = plane.across(observed)
    side = "end" if observed > (low + high) / 2 else "start"
    parts.append(plane.line([(observed, 0), (observed, plane.y[1])], class_="observed"))
    shift = -6 if side == "end" else 6
    said = f"observed {observed:.4f}"
    parts.append(element("text", said, x=at + shift, y=plane.top + 14, class_=f"tick {side} strong"))
    return picture(identity, title, description, plane.width, plane.height, *parts)


def _legend(plane: Plane, names: Sequence[str]) -> Markup:
    made = []
    for index, name in enumerate(names):
        y = 14 + 18 * index
        made.append(element("path", d=f"M{plane.left + 12} {y - 4}h26", class_=f"series s{index % 4}", fill="none"))
        made.append(element("text", _short(name, 48), x=plane.left + 46, y=y, class_="tick start"))
    return element("g", *made, class_="legend")


def _span(values: Floats, zero: bool) -> tuple[float, float]:
    """From the least to the most with some room, and 0 if wanted."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
    room = 0.06 * (high - low) or 0.05
    return (low if low == 0 else low - room), (high if high == 0 else high + room)


def _wide(xs: Floats) -> tuple[float, float]:
    low, high = float(xs.min()), float(xs.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _short(name: str, most: int = 24) -> str:
    return inert(name, most)
