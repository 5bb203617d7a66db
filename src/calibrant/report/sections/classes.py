"""Classes and ranks: which classes are promised too much, and what the second to fifth guesses are worth."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from calibrant.errors.binned import BinnedError
from calibrant.inference.grouped import by_blocks
from calibrant.lenses.events import InTopK
from calibrant.report.charts import Bar, Line, lines
from calibrant.report.gaps import Gap, corrected, gap_bars, gaps
from calibrant.report.page import Cell, Figure, Grid, Section
from calibrant.report.study import Study
from calibrant.report.words import counted, points, quoted_p
from calibrant.text import inert

NAMED = 10
"""Classes that are drawn at each end where there are more than twice as many."""
LISTED = 200
"""Classes that the table lists."""
LEAST_ROWS = 20
"""Rows that a class must be predicted for, to be looked at by itself."""
HEADER = (
    "class",
    "samples predicted",
    "confidence",
    "right",
    "confidence - right",
    "90% from",
    "90% to",
    "p, corrected",
    "flag",
    "samples of it",
    "their share",
    "confidence - right among them",
)


def classes_section(study: Study) -> Section | None:
    """Over- and under-confidence by predicted class; by true class in the table."""
    given = study.predictions
    if given.kind != "classes":
        return None
    title = "Over- and under-confidence by class"
    every = gaps(study.event, given.predicted, given.classes)
    small = [one for one in every if one.rows < LEAST_ROWS]
    tested = [one for one in every if one.rows >= LEAST_ROWS]
    if not tested:
        said = f"No class is predicted {LEAST_ROWS} times or more: too few rows to look at classes one by one."
        return Section("classes", title, (said,), (), (dataclasses.replace(_grid(study, [], small), folded=True),))
    found = sorted(corrected(tested), key=lambda one: -one.value)
    drawn = found if len(found) <= 2 * NAMED else found[:NAMED] + found[-NAMED:]
    some = "" if len(drawn) == len(found) else f" The {NAMED} farthest at each end of {len(found):,} are drawn."
    picture = gap_bars("classes-picture", drawn, f"Signed gaps by predicted class, n = {len(given):,}", "classes")
    caption = (
        f"n = {len(given):,}, {counted(len(found), 'class', 'classes')} predicted {LEAST_ROWS} times or more. Mean "
        "confidence less the share of right answers. Strokes: 90% intervals (normal approximation). Bold: more than "
        f"noise after Holm's correction for their number.{some}"
    )
    figure = Figure("classes-figure", picture, caption, _grid(study, found, small))
    return Section("classes", title, (_said(found, len(small)),), (figure,))


def _said(found: list[Gap], small: int) -> str:
    flagged = [one for one in found if one.flag]
    over = sum(one.value > 0 for one in flagged)
    said = (
        "When the model answers with a class, how sure is it, and how often is it right? Of "
        f"{counted(len(found), 'class', 'classes')} {over} {'is' if over == 1 else 'are'} over-confident and "
        f"{len(flagged) - over} under-confident by more than noise."
    )
    if flagged:
        worst = max(flagged, key=lambda one: abs(one.value))
        said += (
            f" Farthest off: {inert(worst.name, 60)}, {worst.flag} by {points(abs(worst.value))} "
            f"({counted(worst.rows, 'row')})."
        )
    if small:
        said += f" {counted(small, 'class', 'classes')} predicted fewer than {LEAST_ROWS} times left out."
    return said


def _grid(study: Study, found: list[Gap], small: list[Gap]) -> Grid:
    """Every class, or those at either end; beside the predicted classes what is known of the true ones.

    Classes that were predicted too rarely to be tested come last.
    """
    given = study.predictions
    truly: dict[str, Gap] = {}
    if given.labels is not None:
        truly = {one.name: one for one in gaps(study.event, given.labels, given.classes)}
    listed = found if len(found) <= LISTED else found[: LISTED // 2] + found[-LISTED // 2 :]
    rare = sorted(small, key=lambda one: -one.rows)[: LISTED - len(listed)]
    rare = [dataclasses.replace(one, p=math.nan) for one in rare]
    rows = [(*_cells(one), *_true_cells(truly.get(one.name), len(given))) for one in [*listed, *rare]]
    every = len(found) + len(small)
    title = "Classes as predicted" + ("" if len(rows) == every else f" ({len(rows)} of {every:,})")
    if not truly:
        return Grid(HEADER[:9], [one[:9] for one in rows], title)
    return Grid(HEADER, rows, title)


def _cells(one: Gap) -> tuple[Cell, ...]:
    numbers = (one.forecast, one.frequency, one.value, one.low, one.high)
    return (one.name, one.rows, *numbers, quoted_p(one.p), one.flag)


def _true_cells(one: Gap | None, n: int) -> tuple[Cell, ...]:
    return (0, 0.0, float("nan")) if one is None else (one.rows, one.rows / n, one.value)


def ranks_section(study: Study) -> Section | None:
    """What the likeliest 1, 2, ... 5 classes promise together, and keep."""
    given = study.predictions
    most = min(5, given.n_classes - 1)
    if given.kind != "classes" or most < 2:
        return None
    rows: list[tuple[float, ...]] = []
    for k in range(1, most + 1):
        found = by_blocks(BinnedError(lens=InTopK(k)), given)
        assert found.bins is not None
        size, promised, kept = (
            float(part.value.sum()) for part in (found.bins.size, found.bins.outputs, found.bins.targets)
        )
        squares = None if given.weight is None else float((given.weight**2).sum())
        bar = Bar(0, 1, size, promised / size, min(kept / size, 1.0), squares)
        rows.append((k, bar.forecast, bar.frequency, *bar.interval, bar.forecast - bar.frequency, found.value))
    ks = [float(one[0]) for one in rows]
    columns = np.array(rows).T.tolist()
    picture = lines(
        "ranks-picture",
        [
            Line("promised: mean probability of the k likeliest", ks, columns[1], marks=True),
            Line("kept: how often the truth is among them", ks, columns[2], columns[3], columns[4], marks=True),
        ],
        ("k", "share"),
        f"Top-k promise and accuracy, n = {len(given):,}",
        "Two lines over k; the table below has every number.",
        x_ticks=[(k, f"{k:g}") for k in ks],
        zero=False,
    )
    header = ("k", "promised", "kept", "90% from", "90% to", "promised - kept", "ECE of the truth being among the k")
    grid = Grid(header, [(int(one[0]), *one[1:]) for one in rows], "The k likeliest classes")
    caption = f"n = {len(given):,}. The band is the 90% interval of what is kept (Wilson)."
    said = "For a short list of suggestions: is the truth among the k likeliest as often as their probabilities say?"
    return Section(
        "ranks", "Top-k: the k likeliest classes", (said,), (Figure("ranks-figure", picture, caption, grid),)
    )
