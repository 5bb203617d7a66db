"""SVG: elements with every text and attribute escaped, and a plane that turns data into pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

HAIR = 0.5
"""The least width of a rectangle, in pixels."""
LETTER = 9.0
"""Pixels that a letter needs on a small screen."""
MARGIN = 4
"""How many pixels outside its plane a drawing ends: marks on an edge are whole."""


def element(name: str, *children: str, **attributes: object) -> Markup:
    """One element; text is escaped, markup is kept; class_ is class, stroke_width is stroke-width.

    >>> print(element("text", "a < b", x=1.50, class_="label"))
    <text x="1.5" class="label">a &lt; b</text>
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _number(value))
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, Markup("").join(children))


@dataclass(frozen=True)
class Plane:
    """A plane to draw on: data from x[0] to x[1] and y[0] to y[1] on width x height pixels, with room for labels.

    >>> plane = Plane((0, 1), (0, 1), width=200, height=100, left=0, right=0, top=0, bottom=0)
    >>> plane.across(.5), plane.up(.25)
    (100.0, 75.0)
    """

    x: tuple[float, float]
    y: tuple[float, float]
    width: float = 560
    height: float = 280
    left: float = 56
    right: float = 12
    top: float = 10
    bottom: float = 44

    def across(self, x: float) -> float:
        """The pixel of an x."""
        low, high = self.x
        return self.left + (x - low) / (high - low) * (self.width - self.left - self.right)

    def up(self, y: float) -> float:
        """The pixel of a y."""
        low, high = self.y
        return self.height - self.bottom - (y - low) / (high - low) * (self.height - self.top - self.bottom)

    def box(self, x0: float, x1: float, y0: float, y1: float, **attributes: object) -> Markup:
        """A rectangle between two x and two y, in any order; never too narrow to be seen."""
        left, right = sorted((self.across(x0), self.across(x1)))
        top, bottom = sorted((self.up(y0), self.up(y1)))
        return element("rect", x=left, y=top, width=max(right - left, HAIR), height=bottom - top, **attributes)

    def line(self, points: Iterable[tuple[float, float]], **attributes: object) -> Markup:
        """A line through points; it breaks where one is no number."""
        path, pen = [], "M"
        for x, y in points:
            if not (math.isfinite(x) and math.isfinite(y)):
                pen = "M"
                continue
            path.append(f"{pen}{_number(self.across(x))} {_number(self.up(y))}")
            pen = "L"
        return element("path", d="".join(path), fill="none", **attributes)

    def clipped(self, identity: str, *parts: str, above: float = MARGIN, **attributes: object) -> Markup:
        """Parts in a group that ends a little outside the plane; `above` is how far over its top."""
        width, height = self.width - self.left - self.right, self.height - self.top - self.bottom
        place = {"x": self.left - MARGIN, "y": self.top - above}
        size = {"width": width + 2 * MARGIN, "height": height + above + MARGIN}
        window = element("clipPath", element("rect", **place, **size), id=identity)
        return window + element("g", *parts, clip_path=f"url(#{identity})", **attributes)

    def area(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], **attributes: object) -> Markup:
        """The area between two lines over the same x."""
        forth = list(zip(xs, high, strict=True))
        back = list(zip(xs, low, strict=True))[::-1]
        points = " ".join(f"{_number(self.across(x))},{_number(self.up(y))}" for x, y in forth + back)
        return element("polygon", points=points, **attributes)

    def frame(
        self,
        x_label: str,
        y_label: str,
        *,
        x_ticks: Sequence[tuple[float, str]] | None = None,
        y_ticks: Sequence[tuple[float, str]] | None = None,
    ) -> Markup:
        """Grid lines with their labels, and what the axes mean."""
        parts = []
        for x, text in ticks(*self.x) if x_ticks is None else x_ticks:
            at = self.across(x)
            parts.append(element("line", x1=at, x2=at, y1=self.top, y2=self.height - self.bottom, class_="grid"))
            fits = at + LETTER * len(text) / 2 <= self.width
            place, side = (at, "middle") if fits else (self.width, "end")
            parts.append(element("text", text, x=place, y=self.height - self.bottom + 15, class_=f"tick {side}"))
        for y, text in ticks(*self.y) if y_ticks is None else y_ticks:
            at = self.up(y)
            parts.append(element("line", x1=self.left, x2=self.width - self.right, y1=at, y2=at, class_="grid"))
            parts.append(element("text", text, x=self.left - 6, y=at + 4, class_="tick end"))
        middle = self.left + (self.width - self.left - self.right) / 2
        parts.append(element("text", x_label, x=middle, y=self.height - 7, class_="axis middle"))
        centre = self.top + (self.height - self.top - self.bottom) / 2
        turned = f"translate(13 {_number(centre)}) rotate(-90)"
        parts.append(element("text", y_label, transform=turned, class_="axis middle"))
        return Markup("").join(parts)


def picture(identity: str, title: str, description: str, width: float, height: float, *parts: str) -> Markup:
    """A whole picture with the words that stand for it where it is not seen."""
    return element(
        "svg",
        element("title", title, id=f"{identity}-title"),
        element("desc", description, id=f"{identity}-desc"),
        *parts,
        id=identity,
        role="img",
        aria_labelledby=f"{identity}-title {identity}-desc",
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        xmlns="http://www.w3.org/2000/svg",
    )


def ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Round numbers between two ends, with their text.

    >>> ticks(0, 1)
    [(0.0, '0'), (0.2, '0.2'), (0.4, '0.4'), (0.6, '0.6'), (0.8, '0.8'), (1.0, '1')]
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(round(k * step, 12) + 0.0, f"{round(k * step, 12) + 0.0:,.10g}") for k in range(first, last + 1)]


def _number(value: object) -> object:
    """A pixel to a hundredth, without trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
