"""Classes and ranks: for which classes the model is over-confident, and what its second to fifth guesses are worth."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from calibrant.errors.binned import BinnedError
from calibrant.inference.grouped import by_blocks
from calibrant.lenses.events import InTopK
from calibrant.predictions import Predictions
from calibrant.report.charts import Bar, Line, lines
from calibrant.report.group_gaps import Gap, corrected, gap_bars, gaps, most_drawn
from calibrant.report.page import Cell, PageFigure, PageTable, Section, all_in_json
from calibrant.report.quoting import counted, points
from calibrant.report.subject import Subject
from calibrant.text import inert

LISTED = 60
"""Classes that the table on the page lists: about as many as fit on a sheet of paper."""
HEADER = ("p, corrected", "flag", "90% from", "90% to")
LEAST_ROWS = 20
"""Rows that a class must be predicted for, to be looked at by itself."""


@dataclass(frozen=True)
class _Words:
    """How predicted classes, or independent labels, are spoken of."""

    title: str
    several: tuple[str, str]
    by: str
    enough: str
    none: str
    gap: str
    question: str
    header: tuple[str, ...]


_PREDICTED = _Words(
    "Over- and under-confidence by class",
    ("class", "classes"),
    "predicted class",
    f" predicted {LEAST_ROWS} times or more",
    f"No class is predicted {LEAST_ROWS} times or more: too few rows to look at classes one by one.",
    "Mean confidence less the share of right answers.",
    "When the model answers with a class, how sure is it, and how often is it right?",
    ("class", "confidence - right", *HEADER, "samples predicted", "confidence", "right"),
)
_LABELLED = _Words(
    "Too high or too low, by label",
    ("label", "labels"),
    "label",
    "",
    f"Fewer than {LEAST_ROWS} rows: too few to look at labels one by one.",
    "Mean prediction less how often the label was true.",
    "Is each label true as often as predicted?",
    ("label", "prediction - true", *HEADER, "samples", "mean prediction", "true"),
)
TRUE_HEADER = ("samples of it", "their share", "confidence - right among them")


def classes_section(subject: Subject) -> Section | None:
    """Over- and under-confidence by predicted class, by true class in the table; of labels, each label by itself."""
    predictions = subject.predictions
    if not predictions.n_classes:
        return None
    words = _LABELLED if subject.together else _PREDICTED
    labels = np.tile(np.arange(subject.together), len(predictions))
    asked = labels if subject.together else predictions.predicted
    every = gaps(subject.event, asked, predictions.classes, subject.cluster)
    small = [gap for gap in every if gap.units < LEAST_ROWS]
    tested = [gap for gap in every if gap.units >= LEAST_ROWS]
    if not tested:
        grid = _grid(subject, [], small, words)
        return Section("classes", words.title, (words.none, *all_in_json(grid)), (), (grid,))
    ordered = sorted(corrected(tested), key=lambda gap: -gap.value)
    most = most_drawn([gap.name for gap in ordered])
    drawn = ordered if len(ordered) <= most else ordered[: most // 2] + ordered[-most // 2 :]
    some = "" if len(drawn) == len(ordered) else f" The {most // 2} farthest at each end of {len(ordered):,} are drawn."
    n = f"n = {len(predictions):,}"
    picture = gap_bars("classes-picture", drawn, f"Signed gaps by {words.by}, {n}", words.several[1])
    caption = (
        f"{n}, {counted(len(ordered), *words.several)}{words.enough}. {words.gap} Strokes: 90% intervals. "
        f"Bold: more than noise after Holm's correction for their number.{some}"
    )
    grid = _grid(subject, ordered, small, words)
    figure = PageFigure("classes-figure", picture, caption, grid)
    return Section("classes", words.title, (_said(ordered, len(small), words), *all_in_json(grid)), (figure,))


def _said(ordered: list[Gap], small: int, words: _Words) -> str:
    flagged = [gap for gap in ordered if gap.flag]
    over = sum(gap.value > 0 for gap in flagged)
    high, low = ordered[0].sides
    text = (
        f"{words.question} Of {counted(len(ordered), *words.several)} {over} {'is' if over == 1 else 'are'} {high} and "
        f"{len(flagged) - over} {low} by more than noise."
    )
    if flagged:
        worst = max(flagged, key=lambda gap: abs(gap.value))
        text += (
            f" Farthest off: {inert(worst.name, 60)}, {worst.flag} by {points(abs(worst.value))} "
            f"({counted(worst.rows, 'row')})."
        )
    if small:
        text += f" {counted(small, *words.several)} predicted fewer than {LEAST_ROWS} times left out."
    return text


def _grid(subject: Subject, tested: list[Gap], small: list[Gap], words: _Words) -> PageTable:
    """Tested classes, smallest p-value first, those off by more first among equals; beside them the true ones.

    Classes that were predicted too rarely to be tested come last, and are not on the page.
    """
    predictions = subject.predictions
    truly: dict[str, Gap] = {}
    if predictions.labels is not None and not subject.together:
        truly = {gap.name: gap for gap in gaps(subject.event, predictions.labels, predictions.classes)}
    clearest = sorted(tested, key=lambda gap: (gap.p, -abs(gap.value)))
    rare = [dataclasses.replace(gap, p=math.nan) for gap in sorted(small, key=lambda gap: -gap.rows)]
    rows = [(*gap.cells, *_true_cells(truly.get(gap.name), len(predictions))) for gap in [*clearest, *rare]]
    most = min(len(tested), LISTED)
    some = "" if most == len(rows) else f" (the {most:,} clearest of {len(rows):,})"
    title = f"{'Labels' if subject.together else 'Classes as predicted'}{some}"
    header = (*words.header, *(TRUE_HEADER if truly else ()))
    return PageTable(header, [row[: len(header)] for row in rows], title, most=most)


def _true_cells(gap: Gap | None, n: int) -> tuple[Cell, ...]:
    return (0, 0.0, float("nan")) if gap is None else (gap.rows, gap.rows / n, gap.value)


def _effect(subject: Subject, k: int) -> float:
    """By how much dependence between rows raises the variance of the truth being among the k likeliest."""
    view = InTopK(k)(subject.predictions)
    event = Predictions.from_confidence(view.truth_rows[:, 0, 0], view.outputs[:, 0, 0], sample_weight=view.weight)
    return gaps(event, np.zeros(len(event), np.int64), ["all"], subject.cluster)[0].effect


def ranks_section(subject: Subject) -> Section | None:
    """How probable the likeliest 1, 2, ... 5 classes are together, and how often the truth is among them."""
    predictions = subject.predictions
    most = min(5, predictions.forecasts.ranks, predictions.n_classes - 1)
    if most < 2:
        return None
    rows: list[tuple[float, ...]] = []
    for k in range(1, most + 1):
        result = by_blocks(BinnedError(lens=InTopK(k)), predictions)
        assert result.bins is not None
        size, predicted, observed = (
            float(part.value.sum()) for part in (result.bins.size, result.bins.outputs, result.bins.targets)
        )
        squares = None if predictions.weight is None else float((predictions.weight**2).sum())
        if subject.cluster is not None:
            squares = _effect(subject, k) * (size if squares is None else squares)
        bar = Bar(0, 1, size, predicted / size, min(observed / size, 1.0), squares)
        rows.append((k, bar.forecast, bar.frequency, *bar.interval, bar.forecast - bar.frequency, result.value))
    ks = [float(row[0]) for row in rows]
    columns = np.array(rows).T.tolist()
    picture = lines(
        "ranks-picture",
        [
            Line("predicted: mean probability of the k likeliest", ks, columns[1], marks=True),
            Line("observed: how often the truth is among them", ks, columns[2], columns[3], columns[4], marks=True),
        ],
        ("k", "share"),
        f"Top-k probability and accuracy, n = {len(predictions):,}",
        "Two lines over k; the table below has every number.",
        x_ticks=[(k, f"{k:g}") for k in ks],
        zero=False,
    )
    header = ("k", "predicted", "observed", "90% from", "90% to", "gap", "ECE of the truth being among the k")
    grid = PageTable(header, [(int(row[0]), *row[1:]) for row in rows], "The k likeliest classes")
    caption = f"n = {len(predictions):,}. The band is the 90% interval of the observed share (Wilson)."
    question = (
        "For a short list of suggestions: is the truth among the k likeliest as often as their probabilities say?"
    )
    return Section(
        "ranks", "Top-k: the k likeliest classes", (question,), (PageFigure("ranks-figure", picture, caption, grid),)
    )
