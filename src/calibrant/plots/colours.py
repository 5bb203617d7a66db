"""Colours, letters and words that all pictures share: safe for colour-blind eyes, readable in grey and in print.

Colours are those of Okabe and Ito (2008). What a colour says is also said by a hatch, a direction or a marker.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.exceptions import printable
from calibrant.plots.panels import Axes
from calibrant.result import Result

OVER, OVER_TINT, OVER_HATCH = "#D55E00", "#F3C9A9", "////"
"""Over-confident: vermillion, hatched upwards."""
UNDER, UNDER_TINT, UNDER_HATCH = "#0072B2", "#B3D4E8", "\\\\\\\\"
"""Under-confident: blue, hatched downwards."""
RIGHT, WRONG, CURVE = "#009E73", "#E69F00", "#CC79A7"
INK, GREY, PALE, FAINT = "#222222", "#6E6E6E", "#BDBDBD", "#E4E4E4"
SERIES = (
    ("#0072B2", "-", "o"),
    ("#D55E00", "--", "s"),
    ("#009E73", "-.", "^"),
    ("#CC79A7", ":", "D"),
    ("#222222", (0, (6, 1, 1, 1, 1, 1)), "v"),
    ("#E69F00", (0, (8, 2)), "P"),
    ("#56B4E9", (0, (3, 1)), "X"),
)
"""Colour, line and marker of several models."""
SMALL_PANEL = 3.6
"""Inches of width under which letters are one size smaller."""
USUAL_SHARE = 0.775
"""The share of a figure's width that matplotlib gives to axes before a layout makes use of the rest."""


@dataclass(frozen=True)
class Letters:
    """The sizes of letters in one panel, in points: matplotlib's `font.size`, scaled to the panel's width.

    >>> Letters(8.0, 7.0).chars(72)
    18
    """

    heading: float
    text: float

    @classmethod
    def of(cls, ax: Axes) -> Letters:
        """The letters that fit a panel."""
        from matplotlib import rcParams

        usual = float(rcParams["font.size"])
        return cls(0.83 * usual, 0.68 * usual) if inches(ax)[0] < SMALL_PANEL else cls(1.05 * usual, 0.84 * usual)

    def chars(self, points: float) -> int:
        """How many letters of text fit so many points."""
        return int(points / (0.56 * self.text))


def inches(ax: Axes) -> tuple[float, float]:
    """The width and height of a panel before a layout makes room for its labels."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    place = ax.get_position()
    return float(place.width * width), float(place.height * height)


def name(text: object, most: int = 28) -> str:
    r"""Text from anywhere as matplotlib may show it: control marks spelled out, long names cut, never a formula.

    >>> name("a$b$"), name("_x"), name("abcdefgh", 5)
    ('a\\$b\\$', ' _x', 'abcd…')
    """
    shown = printable(str(text))
    shown = shown if len(shown) <= most else f"{shown[: most - 1]}…"
    return (" " if shown.startswith("_") else "") + shown.replace("$", r"\$")


def count(number: float) -> str:
    """How many, or how much weight where that is no whole number.

    >>> count(12345.0), count(2.25)
    ('12,345', '2.2')
    """
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"


def short_count(number: float) -> str:
    """How many in at most four letters.

    >>> [short_count(n) for n in (950, 8803, 12_345, 1_250_000)]
    ['950', '8803', '12k', '1.2M']
    """
    if number < 9999.5:
        return count(number).replace(",", "")
    return f"{number / 1e3:.0f}k" if number < 999_500 else f"{number / 1e6:.1f}M"


def samples(n: int) -> str:
    """How many rows, as every title says it.

    >>> samples(10000)
    'n = 10,000'
    """
    return f"n = {n:,}"


def stated(result: Result) -> str:
    """A result in one line: its name, its value, its interval where it has one, its n.

    >>> import calibrant as cal
    >>> stated(cal.ECE([1, 0, 1, 1], [.9, .2, .6, .6]))
    'ECE 0.2750, n = 4'
    """
    between = f" {result.interval}" if result.interval else ""
    return f"{measure(result)} {result.value:.4f}{between}, {samples(result.n)}"


def measure(result: Result) -> str:
    """What a metric is called: its name among the recipes, or in words.

    >>> import calibrant as cal
    >>> measure(cal.ECE.replace(binning=cal.EqualWidth(7))([1, 0], [.9, .2]))
    'ECE'
    """
    recipe = result.name.partition("(")[0]  # what was changed of it is among the choices
    return "calibration error" if recipe == "BinnedError" else recipe


def chosen(result: Result) -> str:
    """What was asked, and how it was pooled.

    >>> import calibrant as cal
    >>> chosen(cal.ECE([1, 0, 1, 1], [.9, .2, .6, .6]))
    'event, 15 equal-width bins'
    """
    return ", ".join(name(word, 90) for word in (result.question, result.choices) if word)


def axis_words(question: str) -> tuple[str, str]:
    """What the two axes of a reliability diagram are, in words.

    >>> axis_words("top label"), axis_words("event")[1]
    (('confidence', 'share that was right'), 'share that happened')
    """
    if question.startswith(("top label", "top answer")):
        return "confidence", "share that was right"
    return "forecast probability", "share that happened"


def gap_words(question: str) -> tuple[str, str]:
    """What a forecast above, and one below, what came true is called; only of an answer is it confidence.

    >>> gap_words("top label"), gap_words("event")
    (('over-confident', 'under-confident'), ('forecast too high', 'forecast too low'))
    """
    if question.startswith(("top label", "top answer")):
        return "over-confident", "under-confident"
    return "forecast too high", "forecast too low"


def dress(ax: Axes, *, grid: str | None = None) -> Letters:
    """Plain axes: two spines, small letters, a faint grid where asked for."""
    letters = Letters.of(ax)
    bare(ax, letters.text)
    if grid is not None:
        ax.grid(axis=grid, color=FAINT, linewidth=0.6)  # type: ignore[arg-type]
        ax.set_axisbelow(True)
    return letters


def bare(ax: Axes, size: float) -> None:
    """Two spines and letters of a given size."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=size, length=2.5, pad=2)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize(size)
        axis.get_offset_text().set_fontsize(size)


def headline(
    ax: Axes, title: str, beneath: str = "", handles: Sequence[Any] = (), *, beside: Sequence[str] = ()
) -> None:
    """A title, a line of small print and a legend, stacked above the panel so that none covers data.

    `beside` are the names left of the panel, which make it narrower.
    """
    letters = Letters.of(ax)
    names = max((len(line) for name in beside for line in name.split("\n")), default=0)
    width = 72 * (inches(ax)[0] / USUAL_SHARE - 0.75) - max(0.0, 0.56 * letters.text * names - 24)
    lift = 3.0 + _legend(ax, handles, letters, width)
    if beneath:
        lines = textwrap.wrap(beneath, max(20, letters.chars(width)))
        place = {"xy": (0, 1), "xytext": (0, lift), "xycoords": "axes fraction", "textcoords": "offset points"}
        ax.annotate("\n".join(lines), **place, fontsize=letters.text, color=GREY, va="bottom")  # type: ignore[arg-type]
        lift += 1.32 * letters.text * len(lines) + 3
    room = max(16, int(width / (0.54 * letters.heading)))
    whole = title.replace("n = ", "n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    text = "\n".join(textwrap.wrap(whole, room)).replace("\N{NO-BREAK SPACE}", " ")
    ax.set_title(text, loc="left", pad=lift, fontsize=letters.heading, color=INK)


def _legend(ax: Axes, handles: Sequence[Any], letters: Letters, width: float) -> float:
    """Draws the legend in as many columns as fit; how many points high it is."""
    if not handles:
        return 0.0
    columns = _columns([len(handle.get_label()) for handle in handles], letters, width)
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        frameon=False,
        fontsize=letters.text,
        borderaxespad=0.2,
        borderpad=0,
        handlelength=1.6,
        handletextpad=0.5,
        columnspacing=1.2,
        labelspacing=0.3,
    )
    return 1.45 * letters.text * -(-len(handles) // columns) + 2


def _columns(lengths: Sequence[int], letters: Letters, width: float) -> int:
    """How many columns of a legend fit: entries go down the columns, each as wide as its longest."""
    for columns in range(len(lengths), 1, -1):
        longest = [max(column) for column in np.array_split(lengths, columns)]
        if sum(0.56 * letters.text * long + 3.8 * letters.text for long in longest) <= width:
            return columns
    return 1
