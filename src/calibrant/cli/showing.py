"""Showing: tables for the terminal, CSV and JSON, with every name inert."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping

import click

import calibrant
from calibrant.result import Result
from calibrant.table import Table, found_beside, null_p
from calibrant.text import as_csv, group_name, inert, safe_cell

LEVEL = 0.05
"""The p-value that redraws should be able to show."""
WORST_PARTS = 12
"""Parts that a table shows of a metric whose parts are asked for: those farthest from 0."""
SOME_ROWS = 3
"""Rows of a table that a note names; of more it says how many they are."""


def show(
    table: Table, style: str, title: str, *, parts: bool = False, beside: Mapping[str, object] | None = None
) -> None:
    """A table of results on standard output, as a table, CSV or JSON, which has what else is `beside` it."""
    if style == "json":
        content = {"calibrant": calibrant.__version__, **table.to_dict(), **(beside or {})}
        click.echo(json.dumps(content, allow_nan=False, indent=1))
    elif style == "csv":
        click.echo(table.to_csv() if table.by is not None else _csv(table), nl=False)
    else:
        click.echo(_text(table, title))
        if parts:
            click.echo(_parts(table))
        click.echo(_correction(table) + _targets(table), nl=False)
        for note, names in _notes(table).items():
            click.echo(f"note: {inert(note, 200)} ({inert(', '.join(names), 80)})")


def _text(table: Table, title: str) -> str:
    results = table["all"]
    if table.by is None:
        header, rows = _columns(results)
        return drawn(header, rows, title)
    asked = [f"{inert(name)}: {inert(words(result), 120)}" for name, result in results.items()]
    rows = [[group_name(name), *cells] for name, *cells in table.rows()]
    return "\n".join([drawn(table.header, rows, title), *asked])


def _columns(results: Mapping[str, Result]) -> tuple[list[str], list[list[str]]]:
    """A row a metric, with bounds, an interval and a noise floor where there are any."""
    bounded = any(result.bounds is not None for result in results.values())
    level = next((result.interval.level for result in results.values() if result.interval), None)
    floors = any("noise_floor" in result.details for result in results.values())
    header = ["metric", "value", *(["surely between"] if bounded else [])]
    header += [f"{100 * level:g}% interval"] if level else []
    header += ["noise floor", "p"] if floors else []
    rows = []
    for name, result in results.items():
        row = [name, f"{result.value:.4f}"]
        if bounded:
            row.append("{:.4f} and {:.4f}".format(*result.bounds) if result.bounds else "")
        if level:
            row.append(f"{result.interval.low:.4f} to {result.interval.high:.4f}" if result.interval else "")
        if floors:
            row += (
                [f"{result.details['noise_floor']:.4f}", null_p(result)]
                if "noise_floor" in result.details
                else ["", ""]
            )
        rows.append([*row, words(result)])
    return [*header, "what it asks"], rows


def _csv(table: Table) -> str:
    results = table["all"]
    numbers = {name: found_beside(result) for name, result in results.items()}
    more = list(dict.fromkeys(column for columns in numbers.values() for column in columns))
    rows: list[list[str]] = [["metric", "value", "n", "question", "choices", *more]]
    for name, result in results.items():
        spoken = [safe_cell(word) for word in (result.question, result.choices)]
        beside = [repr(numbers[name][column]) if column in numbers[name] else "" for column in more]
        rows.append([safe_cell(name), repr(result.value), str(result.n), *spoken, *beside])
    return as_csv(rows)


def _parts(table: Table) -> str:
    """The parts of each metric that has some, farthest from 0 first."""
    blocks = []
    for name, result in table["all"].items():
        named = sorted(zip(result.about.names, result.values, strict=True), key=lambda part: -abs(part[1] or 0.0))
        rows = [[part, f"{value:.4f}"] for part, value in named if value == value]
        if rows:
            more = f", {WORST_PARTS} of {len(rows)} farthest from 0" if len(rows) > WORST_PARTS else ""
            blocks.append("\n" + drawn(["part", "value"], rows[:WORST_PARTS], f"{name}: {result.question}{more}"))
    return "\n".join(blocks) if blocks else "note: none of these metrics has parts"


def _correction(table: Table) -> str:
    """What was done to p-values that stand together, and how many redraws they would need."""
    details = (result.details for results in table.results.values() for result in results.values())
    tests, redraws = max((d.get("tests", 1.0), d.get("redraws", 0.0)) for d in details)
    if tests == 1:
        return ""
    more = "" if tests <= LEVEL * (redraws + 1) else f"; to see any below {LEVEL:g}, use --null {tests / LEVEL:.0f}"
    return f"note: p-values are corrected for their number, {tests:.0f} (Holm){more}\n"


def _targets(table: Table) -> str:
    """What the intervals are intervals of."""
    every = (result.interval for results in table.results.values() for result in results.values())
    targets = {interval.target for interval in every if interval is not None and interval.target}
    words = max(targets, key=len, default="").replace("the metric's", "each metric's")
    return f"note: intervals are of {words}\n" if words else ""


def _notes(table: Table) -> dict[str, list[str]]:
    """Each note with the metrics it belongs to; where it is of some rows alone, with these or their number."""
    rows: dict[str, dict[str, list[str]]] = {}
    for row, results in table.results.items():
        for name, result in results.items():
            for note in result.notes:
                rows.setdefault(note, {}).setdefault(name, []).append(row)
    return {
        note: [_noted(name, those, len(table.results)) for name, those in names.items()] for note, names in rows.items()
    }


def _noted(name: str, rows: list[str], count: int) -> str:
    """A metric, and the rows of a table that a note of it is about."""
    if rows == ["all"] or len(rows) == count:
        return name
    if len(rows) > SOME_ROWS:
        return f"{name} of {len(rows)} rows of this table"
    *others, last = map(group_name, rows)
    return f"{name} of {', '.join(others)} and {last}" if others else f"{name} of {last}"


def words(result: Result) -> str:
    """What a result answers and how, in words."""
    return ", ".join(word for word in (result.question, result.choices) if word)


UNKNOWN = "–"
"""What stands in a table where there is no number."""
NONE = (UNKNOWN, "-")
"""The same, and what tables of studies have there."""


def drawn(header: list[str], rows: list[list[str]], title: str) -> str:
    """A table for the terminal, every cell inert."""
    from rich import box, console, table, text

    drawing = table.Table(box=box.SIMPLE_HEAD)
    for index, name in enumerate(header):
        number = index > 0 and all(_is_number(row[index]) for row in rows)
        drawing.add_column(
            text.Text(inert(name, 40)), justify="right" if number else "left", overflow="fold", no_wrap=number
        )
    for row in rows:
        drawing.add_row(*(text.Text(inert(cell, 120)) for cell in row))
    to_terminal = sys.stdout is not None and sys.stdout.isatty()
    screen = console.Console(highlight=False, width=None if to_terminal else 120)
    blocks = list(_blocks(header, rows, screen.width))
    if len(blocks) > 1:
        parts = [drawn([header[i] for i in keep], [[row[i] for i in keep] for row in rows], "") for keep in blocks]
        return "\n\n".join([inert(title, 200), *parts] if title else parts)
    with screen.capture() as captured:
        screen.print(drawing)
    lines = [line.rstrip() for line in captured.get().rstrip().splitlines() if line.strip()]
    return "\n".join([inert(title, 200), "", *lines] if title else lines)


def _blocks(header: list[str], rows: list[list[str]], width: int) -> Iterator[list[int]]:
    """Columns that fit side by side: those that name a row, and as many numbers behind them as there is room for."""
    widths = [max(len(inert(row[index])) for row in [header, *rows]) + 3 for index in range(len(header))]
    numbers = [index for index in range(1, len(header)) if all(_is_number(row[index]) for row in rows)]
    names = [index for index in range(len(header)) if index not in numbers]
    if names != list(range(len(names))):
        yield list(range(len(header)))
        return
    keep = list(names)
    for index in numbers:
        if len(keep) > len(names) and sum(widths[column] for column in [*keep, index]) > width:
            yield keep
            keep = list(names)
        keep.append(index)
    yield keep


def _is_number(text: str) -> bool:
    """Whether a cell is a number, maybe with its spread and how many it is of, or says that there is none."""
    number, _, spread = text.partition(" (")[0].partition(" ± ")
    try:
        float("nan" if number in NONE else number), float(spread or "nan")
    except ValueError:
        return False
    return True
