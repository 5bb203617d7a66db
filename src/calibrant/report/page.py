"""The page: sections of words, pictures and tables, put into one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from markupsafe import Markup

import calibrant
from calibrant.report.charts import Span, hatches
from calibrant.report.limit_checks import LimitCheck
from calibrant.report.quoting import KeyNumber, Quoted
from calibrant.specification.encoding import number
from calibrant.text import inert

Cell = str | float | int | Quoted
SHORT, LETTERS = 12, 100
"""Rows of a table, and letters of a cell, up to which it is not broken between two sheets of paper."""


@dataclass(frozen=True)
class PageTable:
    """A table of the page: numbers keep all digits for "copy as CSV" and show a few."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str
    identity: str = ""
    digits: int = 4
    folded: bool = False
    """Whether the reader has to ask for it."""
    most: int | None = None
    """How many rows are on the page, the first ones; JSON has all. None: all."""

    @property
    def listed(self) -> Sequence[Sequence[Cell]]:
        """The rows that are on the page."""
        return self.rows[: self.most]

    @property
    def is_short(self) -> bool:
        """Whether it is kept together on paper: few rows of few lines."""
        longest = max((len(self.shown(cell)) for row in self.listed for cell in row), default=0)
        return len(self.listed) <= SHORT and longest <= LETTERS

    def shown(self, cell: Cell) -> str:
        """A cell as it is read: text cut to a length that fits, numbers to a few digits."""
        if isinstance(cell, Quoted):
            return cell.text
        if isinstance(cell, str):
            return inert(cell, 400)
        if isinstance(cell, int) or (math.isfinite(cell) and cell == int(cell) and abs(cell) >= 2):
            return f"{int(cell):,}"
        if not math.isfinite(cell):
            return "–" if math.isnan(cell) else "∞"
        return f"{round(cell, self.digits) + 0.0:.{self.digits}f}"

    def is_number(self, column: int) -> bool:
        """Whether a column holds numbers only."""
        return bool(self.rows) and all(not isinstance(row[column], str) for row in self.rows)

    def to_dict(self) -> list[dict[str, object]]:
        """Rows by the names of their columns, ready for JSON.

        A name that stands more than once follows that of the column that it belongs to.

        >>> PageTable(("method", "ECE", "from", "Brier", "from"), [("a", 0.2, 0.1, 0.4, 0.3)], "").to_dict()
        [{'method': 'a', 'ECE': 0.2, 'ECE, from': 0.1, 'Brier': 0.4, 'Brier, from': 0.3}]
        """
        names, owner = [], ""
        for name in self.header:
            owner = name if self.header.count(name) == 1 else owner
            names.append(name if name == owner else f"{owner}, {name}")
        cells = [[cell if isinstance(cell, str) else number(_bare(cell)) for cell in row] for row in self.rows]
        return [dict(zip(names, row, strict=True)) for row in cells]

    @staticmethod
    def exact(cell: Cell) -> str:
        """A cell with all its digits."""
        return inert(cell, 1000) if isinstance(cell, str) else str(number(_bare(cell)))


def all_in_json(grid: PageTable) -> list[str]:
    """Where the rows of a table are that are not on the page; nothing where all are.

    >>> all_in_json(PageTable(("class",), [("a",), ("b",)], "Classes", most=1))
    ['The table lists 1 of 2. For all, write the tables as JSON: --json FILE, or Report.to_json().']
    """
    there, every = len(grid.listed), len(grid.rows)
    if there == every:
        return []
    listed = f"The table lists {there:,} of {every:,}." if there else f"None of {every:,} is listed."
    return [f"{listed} For all, write the tables as JSON: --json FILE, or Report.to_json()."]


@dataclass(frozen=True)
class PageFigure:
    """A picture with what it shows in words and, below it, the table that it draws."""

    identity: str
    picture: Markup
    caption: str
    grid: PageTable
    controls: str = ""
    """How bins are cut at first ("width" or "mass"), where the reader can re-bin this picture."""
    span: Span = (0.0, 1.0)
    """From where to where its axes go, where the reader can re-bin it."""
    reading: str = ""
    """How to read it, for readers who ask."""

    def to_dict(self) -> dict[str, object]:
        """Its words and its table, ready for JSON."""
        return {"id": self.identity, "caption": f"{self.caption} {self.reading}".strip(), "table": self.grid.to_dict()}


@dataclass(frozen=True)
class Section:
    """A part of the page: an id, a heading, paragraphs, then figures and tables."""

    identity: str
    title: str
    paragraphs: Sequence[str] = ()
    figures: Sequence[PageFigure] = ()
    grids: Sequence[PageTable] = ()
    references: Sequence[str] = ()

    def to_dict(self) -> dict[str, object]:
        """All its words and tables, ready for JSON."""
        return {
            "id": self.identity,
            "title": self.title,
            "paragraphs": list(self.paragraphs),
            "figures": [figure.to_dict() for figure in self.figures],
            "tables": [{"caption": grid.caption, "rows": grid.to_dict()} for grid in self.grids],
            "references": list(self.references),
        }


@dataclass(frozen=True)
class Verdict:
    """A sentence, what supports it, its tone ("good", "poor" or "unsure"), and what to do."""

    sentence: str
    supporting: Sequence[str]
    tone: str
    action: str = ""
    """What to do next."""


@dataclass(frozen=True)
class Page:
    """Everything that the template needs: the first screen, then sections."""

    title: str
    verdict: Verdict
    sections: Sequence[Section]
    data: Mapping[str, Any] = field(default_factory=dict)
    """What the script re-bins from."""
    about: Sequence[str] = ()
    """Who wrote the page, when, and what it is about."""
    answer: Section | None = None
    """The picture and the tables of the first screen."""
    key_numbers: Sequence[KeyNumber] = ()
    checks: Sequence[LimitCheck] = ()

    @property
    def footer(self) -> str:
        """What wrote the page, and what is not in it."""
        return f"Made by calibrant {calibrant.__version__}. No row of the data is in this file."

    def to_dict(self) -> dict[str, object]:
        """All that is on the page but its pictures, ready for JSON; tables keep all digits."""
        parts = [*([] if self.answer is None else [self.answer]), *self.sections]
        return {
            "title": self.title,
            "about": list(self.about),
            "verdict": self.verdict.sentence,
            "tone": self.verdict.tone,
            "action": self.verdict.action,
            "supporting": list(self.verdict.supporting),
            "key_numbers": [each.to_dict() for each in self.key_numbers],
            "limits": [check.to_dict() for check in self.checks],
            "sections": [part.to_dict() for part in parts],
            "footer": self.footer,
        }

    def to_html(self) -> str:
        """The page as one file: no network, nothing inline that is not hashed in its policy."""
        from jinja2 import Environment, StrictUndefined

        folder = files("calibrant.report")
        style, script = (folder.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
        environment = Environment(
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        template = environment.from_string(folder.joinpath("page.html").read_text("utf-8"))
        policy = (
            "default-src 'none'; base-uri 'none'; form-action 'none'; "
            f"style-src '{_hashed(style)}'; script-src '{_hashed(script)}'"
        )
        return template.render(
            page=self,
            policy=policy,
            style=Markup(style),
            script=Markup(script),
            patterns=hatches(),
            data=Markup(embedded(self.data)),
        )


def embedded(data: Mapping[str, Any]) -> str:
    """JSON that can stand inside a script element.

    >>> print(embedded({"name": "</script>"}))
    {"name":"\\u003c/script>"}
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _bare(cell: float | int | Quoted) -> float | int:
    return cell.value if isinstance(cell, Quoted) else cell


def _hashed(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
