"""Charts: the page's pictures, drawn as SVG from tables of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from markupsafe import Markup

from calibrant.inference.proportions import wilson
from calibrant.kernels.totals import Floats
from calibrant.report.quoting import amount
from calibrant.report.svg import LETTER, Plane, element, picture
from calibrant.text import inert

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
    squares: float | None = None
    """The sum of squared weights, where samples are weighted."""

    @property
    def effective(self) -> float:
        """How many equal samples would scatter as much: the squared weight over the summed squares (Kish, 1965).

        >>> Bar(0, 1, 4, .5, .5).effective, Bar(0, 1, 4, .5, .5, squares=10).effective
        (4, 1.6)
        """
        return self.count if self.squares is None else self.count**2 / self.squares

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 90 % interval of the frequency.

        >>> low, high = Bar(0, 1, 10, .5, .5).interval
        >>> round(low, 4), round(high, 4)
        (0.2693, 0.7307)
        """
        low, high = wilson(np.array(self.frequency), np.array(self.effective), Z)
        return float(low), float(high)

    @property
    def band(self) -> tuple[float, float]:
        """Where the frequency of so many calibrated forecasts lies in 90 of 100 samples, by the normal approximation.

        >>> low, high = Bar(0, 1, 100, .5, .4).band
        >>> round(low, 4), round(high, 4)
        (0.4178, 0.5822)
        """
        reach = Z * math.sqrt(max(self.forecast * (1 - self.forecast), 0.0) / self.effective)
        return max(self.forecast - reach, 0.0), min(self.forecast + reach, 1.0)

    @property
    def kind(self) -> str:
        """On which side the forecast is: over what came true, or under."""
        return "over" if self.forecast > self.frequency else "under"


Span = tuple[float, float]


def reliability_planes(span: Span = (0, 1)) -> tuple[Plane, Plane]:
    """The planes of the reliability diagram and of its counts; both axes of the diagram go over the same span."""
    return Plane(span, span, height=330, top=48, bottom=22), Plane(span, (0, 1), height=104, top=20)


def planes(span: Span = (0, 1)) -> dict[str, dict[str, object]]:
    """Where the script draws."""
    return {name: asdict(plane) for name, plane in zip(("bars", "counts"), reliability_planes(span), strict=True)}


def reliability(
    identity: str,
    bars: Sequence[Bar],
    axis: tuple[str, str],
    title: str,
    description: str,
    *,
    sides: tuple[str, str] = ("over-confident", "under-confident"),
    span: Span = (0, 1),
) -> Markup:
    """How often forecasts came true against the forecasts: bars to their bins' width, the gap coloured by its side."""
    plane, below = reliability_planes(span)
    counts = element(
        "g",
        below.frame(axis[0], "samples", y_ticks=[]),
        below.clipped(f"{identity}-counted", *count_bars(bars, below), above=below.top, class_="counts"),
        transform=f"translate(0 {plane.height - 4:g})",
    )
    return picture(
        identity,
        title,
        description,
        plane.width,
        plane.height + below.height - 4,
        _key(plane, sides),
        plane.frame("", axis[1]),
        plane.clipped(f"{identity}-inside", *drawn_bars(bars, plane), class_="bars"),
        plane.line([(end, end) for end in span], class_="diagonal"),
        counts,
    )


def drawn_bars(bars: Sequence[Bar], plane: Plane) -> list[Markup]:
    """Band, frequency, gap, forecast and interval of each bin."""
    drawings = []
    for bar in bars:
        tooltip = (
            f"{bar.low:.3f} to {bar.high:.3f}: forecast {bar.forecast:.3f}, "
            f"observed {bar.frequency:.3f}, {amount(bar.count)} samples"
        )
        middle = (bar.low + bar.high) / 2
        drawings.append(
            element(
                "g",
                element("title", tooltip),
                plane.box(bar.low, bar.high, 0, bar.frequency, class_="frequency"),
                plane.box(bar.low, bar.high, bar.frequency, bar.forecast, class_=f"gap {bar.kind}"),
                plane.box(bar.low, bar.high, *bar.band, class_="band"),
                plane.line([(bar.low, bar.frequency), (bar.high, bar.frequency)], class_="level"),
                plane.line([(middle, end) for end in bar.interval], class_="whisker"),
            )
        )
    return drawings


def count_bars(bars: Sequence[Bar], plane: Plane) -> list[Markup]:
    """How many samples each bin holds, against the fullest."""
    fullest = max((bar.count for bar in bars), default=1.0)
    boxes = [plane.box(bar.low, bar.high, 0, max(bar.count / fullest, 0.012), class_="count") for bar in bars]
    most = element("text", f"fullest bin: {amount(fullest)}", x=plane.left, y=plane.top - 6, class_="tick start most")
    return [*boxes, most]


def hatches() -> Markup:
    """Patterns that tell over from under without colour; once a page, for all its pictures."""
    lines = {"hatch-over": "M-1 1l2-2M0 6l6-6M5 7l2-2", "hatch-under": "M-1 5l2 2M0 0l6 6M5-1l2 2"}
    patterns = (
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
    )
    return element("svg", element("defs", *patterns), class_="patterns", aria_hidden="true", width=0, height=0)


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
    span: tuple[float, float] | None = None,
    diagonal: bool = False,
) -> Markup:
    """Lines over a common axis, told apart by colour and dash; a dashed diagonal where calibrated ones would lie."""
    xs = np.concatenate([np.asarray(line.x, float) for line in series])
    every = [np.asarray(part, float) for line in series for part in (line.y, line.low, line.high) if part is not None]
    names = [line.name for line in series] if len(series) > 1 else []
    room = 17 * len(names)
    plane = Plane(
        span or _wide(xs),
        span or _span(np.concatenate(every), zero),
        height=(320 if span else 250) + room,
        top=10 + room,
    )
    parts = [plane.frame(*axis, x_ticks=x_ticks)]
    if diagonal:
        parts.append(plane.line([(end, end) for end in plane.x], class_="diagonal"))
    kinds = [f"s{index % STYLES}" for index in range(len(series))]
    bands = [part for line, kind in zip(series, kinds, strict=True) for part in _band(plane, line, kind)]
    curves = bands + [part for line, kind in zip(series, kinds, strict=True) for part in _drawn(plane, line, kind)]
    parts += [plane.clipped(f"{identity}-inside", *curves)] if span else curves
    if names:
        parts.append(_legend(plane, names))
    return picture(identity, title, description, plane.width, plane.height, *parts)


def signed_bars(
    identity: str,
    names: Sequence[str],
    values: Sequence[float],
    title: str,
    description: str,
    *,
    label: str,
    low: Sequence[float],
    high: Sequence[float],
    flagged: Sequence[bool],
) -> Markup:
    """Signed gaps as bars from 0 with their intervals, too high to the right; one row a name, flagged ones bold.

    Long names stand above their bars, short ones beside them.
    """
    beside = max((len(name) for name in names), default=0) <= SHORT
    row, bar = (20.0, 0.8) if beside else (34.0, 0.42)
    top, bottom = 6.0, 42.0
    span = _span(np.array([100.0 * end for part in (values, low, high) for end in part] or [0.0]), zero=True)
    span = min(span[0], -0.12 * span[1], -0.5), max(span[1], -0.12 * span[0], 0.5)
    height = top + bottom + row * max(len(values), 1)
    left = LETTER * max(map(len, names), default=0) + 9 if beside else 12.0
    plane = Plane(span, (0, max(len(values), 1)), height=height, left=left, bottom=bottom, top=top)
    parts = [plane.frame(label, "", y_ticks=[])]
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        at = len(values) - index
        middle = at - (0.5 if beside else 1 - bar / 2 - 0.06)
        strong = " strong" if flagged[index] else ""
        place = (
            {"x": plane.left - 7, "y": plane.up(middle) + 4} if beside else {"x": plane.left, "y": plane.up(at) + 13}
        )
        heading = element(
            "text", inert(name, SHORT if beside else 48), class_=f"tick{strong}{' end' if beside else ''}", **place
        )
        parts.append(heading)
        if not math.isfinite(value):
            continue
        kind = f"gap {'over' if value > 0 else 'under'}"
        parts.append(plane.box(0, 100 * value, middle - bar / 2, middle + bar / 2, class_=kind))
        parts.append(plane.line([(100 * end, middle) for end in (low[index], high[index])], class_="whisker"))
    parts.append(plane.line([(0, 0), (0, len(values))], class_="diagonal"))
    return picture(identity, title, description, plane.width, plane.height, *parts)


def histogram(
    identity: str, values: Floats, observed: float, axis: tuple[str, str], title: str, description: str
) -> Markup:
    """How often each value came up, with the observed one marked."""
    low, high = _span(np.append(values, observed), zero=True)
    counts, edges = np.histogram(values, bins=30, range=(low, high))
    plane = Plane((low, high), (0, max(int(counts.max()), 1) * 1.2), height=210)
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
    note = f"observed {observed:.4f}"
    parts.append(element("text", note, x=at + shift, y=plane.top + 13, class_=f"tick {side} strong"))
    return picture(identity, title, description, plane.width, plane.height, *parts)


STYLES = 6
"""Colours and dashes that tell lines apart."""
SHORT = 24
"""Letters of a name that fit beside its bar."""


def _band(plane: Plane, line: Line, kind: str) -> list[Markup]:
    """The band of a line, if it has one; all bands lie under all lines."""
    if line.low is None or line.high is None or not len(line.x):
        return []
    return [plane.area(line.x, line.low, line.high, class_=f"area {kind}")]


def _drawn(plane: Plane, line: Line, kind: str) -> list[Markup]:
    """One line with its marks."""
    parts = [plane.line(zip(line.x, line.y, strict=True), class_=f"series {kind}")]
    if line.marks:
        parts += [
            element("circle", cx=plane.across(x), cy=plane.up(y), r=3.2, class_=f"mark {kind}")
            for x, y in zip(line.x, line.y, strict=True)
            if math.isfinite(y)
        ]
    return parts


def _key(plane: Plane, sides: tuple[str, str]) -> Markup:
    """What the parts of a reliability diagram mean."""
    middle = plane.left + (plane.width - plane.left - plane.right) / 2
    left, marks = plane.left, []
    entries: Mapping[str, tuple[float, float, Markup]] = {
        sides[0]: (left, 12, element("rect", x=left, y=4, width=22, height=11, class_="gap over")),
        sides[1]: (left, 34, element("rect", x=left, y=26, width=22, height=11, class_="gap under")),
        "90% interval": (middle, 12, element("path", d=f"M{middle + 11:g} 1v17", class_="whisker", fill="none")),
        "90% if calibrated": (middle, 34, element("rect", x=middle, y=25, width=22, height=13, class_="band")),
    }
    for words, (x, y, mark) in entries.items():
        marks += [mark, element("text", words, x=x + 29, y=y + 2, class_="tick start")]
    return element("g", *marks, class_="legend")


def _legend(plane: Plane, names: Sequence[str]) -> Markup:
    marks = []
    for index, name in enumerate(names):
        y = 13 + 17 * index
        marks.append(element("path", d=f"M{plane.left:g} {y - 4}h26", class_=f"series s{index % STYLES}", fill="none"))
        marks.append(element("text", inert(name, 46), x=plane.left + 34, y=y, class_="tick start"))
    return element("g", *marks, class_="legend")


def _span(values: Floats, zero: bool) -> tuple[float, float]:
    """From the least to the most with some room, and 0 if wanted."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
    room = 0.06 * (high - low) or 0.05
    return (low if low == 0 else low - room), (high if high == 0 and low < 0 else high + room)


def _wide(xs: Floats) -> tuple[float, float]:
    low, high = float(xs.min()), float(xs.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)
