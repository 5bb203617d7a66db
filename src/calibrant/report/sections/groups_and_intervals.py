"""Groups and intervals: for whom predictions are off, and what "likely" means here."""

from __future__ import annotations

import re

import numpy as np

from calibrant.binning.fixed import Edges, EqualWidth
from calibrant.door.arrays import Array
from calibrant.inference.grouped import bin_numbers
from calibrant.kernels.totals import Floats, Ints
from calibrant.predictions import Predictions
from calibrant.report.charts import Bar
from calibrant.report.group_gaps import Gap, corrected, gap_bars, gaps, most_drawn
from calibrant.report.page import Cell, PageFigure, PageTable, Section, all_in_json
from calibrant.report.quoting import counted, listed, points
from calibrant.report.subject import Subject
from calibrant.text import inert

MOST_COLUMNS, MOST_VALUES, LISTED, LEAST_ROWS = 12, 100, 60, 20
"""Columns looked at, values of a column, groups listed on the page, rows a group must have to be looked at."""
HEADER = (
    "group", "gap", "p, corrected", "flag", "90% from", "90% to", "samples", "mean prediction", "observed", "ECE"
)  # fmt: skip
ROW_NUMBER = re.compile(r"(.*[_. -])?(id|ids|idx|index|uuid|key|row|row_?number)", re.IGNORECASE)
"""Names of columns that number rows or those that rows belong to."""
FEW_NUMBERS, MANY_NUMBERS, EACH = 12, 60, 50
"""Numbers of more different values than the first are cut into four ranges; whole ones only above the second, or where
there are fewer rows a value than the third."""
LIKERT = (("almost never", 0.0, 0.1), ("unlikely", 0.1, 0.35), ("even", 0.35, 0.65), ("likely", 0.65, 0.9),
          ("almost certain", 0.9, 1.0))  # fmt: skip
"""Words that people use, and the forecasts they stand for."""


def groups_section(subject: Subject) -> Section | None:
    """Signed gaps of the values of each column, the worst flagged after Holm's correction."""
    if not subject.predictions.columns:
        return None
    groups, remarks = _groups(subject)
    if not groups:
        small = f"No group of these columns has {LEAST_ROWS} {_units(subject)}."
        seen = [name for name in subject.predictions.columns if name != subject.groups]
        return Section("groups", "Groups", (*([small] if seen else []), *remarks))
    flagged = [gap for gap, _ in groups if gap.flag]
    sentence = (
        f"{len(flagged)} of {counted(len(groups), 'group')} {'is' if len(flagged) == 1 else 'are'} off by more than "
        "noise after Holm's correction for their number"
    )
    if flagged:
        worst = flagged[0]
        sentence += f". The clearest is {inert(worst.name, 80)}, {worst.flag} by {points(abs(worst.value))}"
    most = most_drawn([gap.name for gap, _ in groups])
    shown = [gap for gap, _ in groups[:most]]
    picture = gap_bars("groups-picture", shown, f"Signed gaps by group, {subject.size}", "groups")
    some = "" if len(shown) == len(groups) else f" The {most} clearest of {len(groups):,} are drawn."
    caption = (
        f"{subject.size}. Mean prediction less observed frequency, smallest p-value first. Strokes: 90% intervals. "
        f"Bold: more than noise after correction.{some}"
    )
    title = "Groups" if len(groups) <= LISTED else f"Groups ({LISTED} clearest of {len(groups):,})"
    rows = [(*gap.cells, float(error)) for gap, error in groups]
    grid = PageTable(HEADER, rows, title, most=LISTED)
    figure = PageFigure("groups-figure", picture, caption, grid)
    return Section("groups", "Groups", (f"{sentence}.", *remarks, *all_in_json(grid)), (figure,))


def likert_section(subject: Subject) -> Section:
    """How often predictions that people would call unlikely, even or likely were right."""
    event, words = subject.event, [word for word, *_ in LIKERT]
    bins = bin_numbers(Edges([0.0, *(high for _, _, high in LIKERT)], closed="left"), event)
    by_word = {gap.name: gap for gap in gaps(event, bins, words, subject.cluster)}
    rows: list[tuple[Cell, ...]] = []
    for word, low, high in LIKERT:
        gap = by_word.get(word)
        between = f"{100 * low:g}–{100 * high:g}%"
        if gap is None:
            rows.append((word, between, "no predictions", 0, *[float("nan")] * 5))
            continue
        frequency = min(max(gap.frequency, 0.0), 1.0)
        ends = Bar(low, high, gap.rows, gap.forecast, frequency, gap.rows * gap.effect).interval
        cells = (gap.rows, gap.forecast, gap.frequency, *ends, gap.value)
        rows.append((word, between, _within(low, high, ends), *cells))
    columns = ("samples", "mean prediction", "observed", "90% from", "90% to", "gap")
    header = ("in words", "predictions", "in its range?", *columns)
    question = (
        "If a prediction is shown to people as a word, is the word right? It is where the observed frequency lies in "
        "the word's own range. The whole 90% interval inside: yes; none of it: no; else: cannot tell."
    )
    grid = PageTable(header, rows, f"Predictions in words, {subject.size}")
    return Section("likert", "Predictions as words (Likert intervals)", (question,), (), (grid,))


def column_groups(values: Array) -> tuple[Ints, list[str]] | None:
    """The groups that a column makes: its values, or four ranges of many numbers; None where it makes none.

    Whole numbers that are all different are taken to number the rows.

    >>> column_groups(np.array(["b", "a", "b"]))
    (array([1, 0, 1]), ['a', 'b'])
    >>> column_groups(np.arange(100.0))[1]
    ['0 to 24', '25 to 49', '50 to 74', '75 to 99']
    >>> column_groups(np.arange(100)) is None
    True
    """
    if values.dtype.kind not in "USbiuf":
        return None
    every, codes = np.unique(values, return_inverse=True)
    if values.dtype.kind in "iu" and len(every) == len(values) > FEW_NUMBERS:
        return None  # numbers of rows
    few = MANY_NUMBERS if values.dtype.kind in "iu" and len(values) >= EACH * len(every) else FEW_NUMBERS
    if values.dtype.kind in "fiu" and len(every) > few:
        return _ranges(values.astype(np.float64))
    if not 2 <= len(every) <= MOST_VALUES:
        return None
    names = ["missing" if value != value else str(value) for value in every.tolist()]
    if "" in names and "missing" not in names:
        names[names.index("")] = "missing"
    return codes.ravel(), names


def _ranges(values: Floats) -> tuple[Ints, list[str]]:
    """Four ranges of about equally many numbers; what is no number is missing."""
    there = np.isfinite(values)
    ends = np.unique(np.quantile(values[there], [0.25, 0.5, 0.75, 1.0], method="lower"))
    codes = np.where(there, np.searchsorted(ends, np.where(there, values, ends[0])), len(ends))
    names = []
    for index in range(len(ends)):
        inside = values[codes == index]
        names.append(f"{inside.min():.6g} to {inside.max():.6g}")
    return codes, [*names, *(["missing"] if not there.all() else [])]


def _groups(subject: Subject) -> tuple[list[tuple[Gap, float]], list[str]]:
    """The groups of all columns with their ECE, smallest p-value first; and what was not looked at."""
    tested: list[tuple[Gap, float]] = []
    event, small = subject.event, 0
    columns, skipped, numbering = _columns(subject)
    telling: list[str] = []
    bins = bin_numbers(EqualWidth(), event)
    for column, values in columns.items():
        groups = column_groups(values)
        if groups is None:
            skipped.append(column)
            continue
        codes, names = np.repeat(groups[0], subject.together or 1), groups[1]
        if _tells_the_outcome(event, codes, len(names)):
            telling.append(column)
            continue
        errors = _errors(event, codes * EqualWidth().n_bins + bins, len(names))
        every = gaps(event, codes, [f"{column} = {name}" for name in names], subject.cluster)
        enough = [gap for gap in every if gap.units >= LEAST_ROWS]
        small += len(every) - len(enough)
        tested += [(gap, errors[names.index(gap.name.removeprefix(f"{column} = "))]) for gap in enough]
    tested.sort(key=lambda pair: (pair[0].p, -abs(pair[0].value)))
    adjusted = corrected([gap for gap, _ in tested]) if tested else []
    remarks = [f"{counted(small, 'group')} of fewer than {LEAST_ROWS} {_units(subject)} left out."] if small else []
    ordered = [(gap, error) for gap, (_, error) in zip(adjusted, tested, strict=True)]
    return ordered, remarks + _not_looked_at(subject, skipped, numbering, telling)


def _columns(subject: Subject) -> tuple[dict[str, Array], list[str], list[str]]:
    """The columns that are looked at; those beyond the most that are; those whose names say that they number rows."""
    columns = {name: values for name, values in subject.predictions.columns.items() if name != subject.groups}
    if subject.by is not None:
        return {name: columns[name] for name in subject.by if name in columns}, [], []
    numbering = [name for name in columns if ROW_NUMBER.fullmatch(name)]
    names = [name for name in columns if name not in numbering]
    return {name: columns[name] for name in names[:MOST_COLUMNS]}, names[MOST_COLUMNS:], numbering


def _not_looked_at(subject: Subject, skipped: list[str], numbering: list[str], telling: list[str]) -> list[str]:
    """Columns that make no groups, and why."""
    remarks = []
    if subject.groups:
        remarks.append(f"Not looked at: {inert(subject.groups, 60)}, whose rows may depend on each other.")
    if numbering:
        remarks.append(
            f"Not looked at, because the name says row number: {listed(numbering)}. To see one, name it with --by."
        )
    if skipped:
        remarks.append(
            f"Not looked at: {listed(skipped)} (one value, a number for each row, more than {MOST_VALUES} different "
            f"texts, or beyond {MOST_COLUMNS} columns)."
        )
    if telling:
        remarks.append(f"Left out because the outcome can be read from it: {listed(telling)}.")
    return remarks


def _units(subject: Subject) -> str:
    """What independent rows, or sets of rows, are called."""
    return f"values of {inert(subject.groups, 60)}" if subject.groups else "rows"


def _tells_the_outcome(event: Predictions, codes: Ints, groups: int) -> bool:
    """Whether every group of a column has one outcome only, though there are several: the column is the answer."""
    truth = event.truth_rows
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, codes, truth)
    np.maximum.at(high, codes, truth)
    return bool((low >= high).all() and truth.min() < truth.max())


def _errors(event: Predictions, cell: Ints, groups: int) -> Floats:
    """The ECE of each group, from the cells (group, bin)."""
    weight = np.ones(len(event)) if event.weight is None else event.weight
    gap = weight * (np.asarray(event.probabilities, np.float64) - event.truth_rows)
    shape = groups, EqualWidth().n_bins
    summed, size = (np.bincount(cell, part, shape[0] * shape[1]).reshape(shape) for part in (gap, weight))
    with np.errstate(invalid="ignore"):
        return np.abs(summed).sum(axis=1) / size.sum(axis=1)


def _within(low: float, high: float, ends: tuple[float, float]) -> str:
    """Whether a word is right: its frequency's interval against its range."""
    if low <= ends[0] and ends[1] <= high:
        return "yes"
    return "no" if ends[1] < low or ends[0] > high else "cannot tell"
