"""Sheets: rows of words and numbers, as Markdown for people and CSV with every digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.text import as_csv, inert, safe_cell


@dataclass(frozen=True)
class Spread:
    """A mean over seeds and the standard deviation around it (n - 1; none of one seed).

    >>> print(Spread.of([0.9, 0.92]), Spread.of([0.9]), Spread.of([0.9, float("nan")]))
    0.9100 ± 0.0141 0.9000 0.9000 (1 of 2)
    """

    mean: float
    sd: float
    n: int
    asked: int
    digits: int = 4

    @classmethod
    def of(cls, values: Any, *, digits: int = 4, factor: float = 1.0) -> Spread:
        """The spread of values, multiplied by a factor (100 for percentages); nan values are left out and counted."""
        scaled = factor * np.asarray(values, np.float64)
        kept = scaled[~np.isnan(scaled)]
        finite = bool(np.isfinite(kept).all())
        mean = float(kept.mean()) if len(kept) else float("nan")
        sd = float(kept.std(ddof=1)) if len(kept) > 1 and finite else float("nan")
        return cls(mean, sd, len(kept), len(scaled), digits)

    def __str__(self) -> str:
        if not self.n:
            return "-"
        around = "" if np.isnan(self.sd) else f" ± {self.sd:.{self.digits}f}"
        missing = "" if self.n == self.asked else f" ({self.n} of {self.asked})"
        return f"{self.mean:.{self.digits}f}{around}{missing}"


@dataclass(frozen=True)
class Sheet:
    """A named table: a title, a header, rows of words, numbers and spreads, and notes.

    >>> print(Sheet("a", "Two", ("model", "ece"), (("mlp", Spread.of([0.1, 0.2])),)).to_markdown())
    ### Two
    <BLANKLINE>
    | model | ece |
    |---|---|
    | mlp | 0.1500 ± 0.0707 |
    <BLANKLINE>
    """

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()

    def to_markdown(self) -> str:
        """The table for people; names are inert."""
        lines = [f"### {_cell(self.title)}", "", _line(self.header), "|" + "---|" * len(self.header)]
        lines += [_line([f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row]) for row in self.rows]
        lines += ["", *(f"- {_cell(note)}" for note in self.notes)] if self.notes else []
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """The table with every digit: a spread becomes its mean, its standard deviation and its number of seeds."""
        spreads = [any(isinstance(row[index], Spread) for row in self.rows) for index in range(len(self.header))]
        rows = (
            [cell for value, wide in zip(row, spreads, strict=True) for cell in _cells(value, wide)]
            for row in self.rows
        )
        return as_csv([map(safe_cell, _wide(self.header, spreads)), *rows])

    def records(self) -> list[dict[str, Any]]:
        """The rows by name of their columns."""
        return [dict(zip(self.header, row, strict=True)) for row in self.rows]


def _wide(header: Sequence[str], spreads: Sequence[bool]) -> list[str]:
    return [
        name
        for column, wide in zip(header, spreads, strict=True)
        for name in ((column, f"{column} sd", f"{column} seeds") if wide else (column,))
    ]


def _cells(value: Any, wide: bool) -> list[str]:
    if isinstance(value, Spread):
        return [repr(value.mean), repr(value.sd), str(value.n)]
    text = repr(value) if isinstance(value, float) else safe_cell(str(value))
    return [text, "", ""] if wide else [text]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    """Text that Markdown shows as it is."""
    shown = inert(text, 300)
    for mark in ("\\", "|", "<", "*", "_", "`", "["):
        shown = shown.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return shown
