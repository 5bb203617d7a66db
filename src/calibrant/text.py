"""Text: cells that harm no terminal and no spreadsheet, columns in line, p-values as they are quoted."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from calibrant.exceptions import printable

SMALLEST_P = 1e-3
"""Computed p-values below this are only said to be below it: no approximation is good for more."""
_DANGEROUS = ("=", "+", "-", "@", "\t", "\r")


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = False) -> str:
    """Lines whose cells stand under each other, to the left; or all but the first to the right.

    >>> print(aligned(["name", "n"], [["ece", "100"], ["mce", "20"]], right=True))
    name    n
    ece   100
    mce    20
    """
    cells = [[inert(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    sides = [str.ljust, *[str.rjust if right else str.ljust] * (len(header) - 1)]
    lines = ([side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)] for row in cells)
    return "\n".join("  ".join(line).rstrip() for line in lines)


def as_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows as comma-separated text.

    >>> as_csv([["name", "n"], ["a, b", 2]])
    'name,n\\n"a, b",2\\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def safe_cell(text: str) -> str:
    """A cell of text that no spreadsheet takes for a formula.

    >>> safe_cell("=cmd"), safe_cell("cat")
    ("'=cmd", 'cat')
    """
    return no_formula(inert(text, len(text) * 10))


def no_formula(text: str) -> str:
    """A cell to the letter, but for a mark before what a spreadsheet would take for a formula.

    >>> no_formula("=cmd"), no_formula("cat")
    ("'=cmd", 'cat')
    """
    return f"'{text}" if text.lstrip("'").startswith(_DANGEROUS) else text


def restored_cell(text: str) -> str:
    """A cell as it was before it was made safe.

    >>> restored_cell("'=cmd"), restored_cell("'tis")
    ('=cmd', "'tis")
    """
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(_DANGEROUS) else text


def p_value(p: float, redraws: int | None = None, tests: int = 1) -> str:
    """A p-value as it is quoted: never smaller than its redraws, or its approximation, can tell.

    One that was corrected for the number of `tests` cannot be smaller than that many times what redraws can tell.

    >>> p_value(1 / 201, 200), p_value(0.3184, 200), p_value(1e-9), p_value(1 / 161, 160), p_value(1.0, 20, 28)
    ('p < 0.005', 'p = 0.32', 'p < 0.001', 'p < 0.007', 'p = 1')
    """
    if math.isnan(p):
        return "p unknown"
    least = SMALLEST_P if redraws is None else tests / (redraws + 1)
    if redraws is None and p < least:
        return f"p < {least:g}"
    if redraws is not None and p <= least * (1 + 1e-9) and _above(least) < 1:
        return f"p < {_above(least):g}"
    return f"p = {p:.2g}"


def inert(text: str, most: int = 60) -> str:
    """Text that cannot steer a terminal: control and direction marks are spelled out, long names cut.

    >>> inert("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def group_name(value: str) -> str:
    """A group by its value; an empty one is a value that is missing.

    >>> group_name("north"), group_name("")
    ('north', '(missing)')
    """
    return value or "(missing)"


def _above(value: float) -> float:
    """The next number of one digit above: what can be said to be larger."""
    grain = 10.0 ** math.floor(math.log10(value))
    return (math.floor(value / grain + 1e-9) + 1) * grain
