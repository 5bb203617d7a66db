"""Classes and ranks: which classes are promised too much, and what the second to fifth guesses are worth."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from calibrant import diagnostics, recipes
from calibrant.binning import EqualWidth
from calibrant.errors.binned import BinnedError
from calibrant.inference.bootstrap import Bootstrap
from calibrant.lenses import InTopK
from calibrant.report.charts import Line, lines, signed_bars
from calibrant.report.page import Figure, Grid, Section
from calibrant.report.study import LEAST, Study, tried

NAMED = 12
"""Classes that are drawn at each end where there are more than twice as many."""
LISTED = 200
"""Classes that the table lists."""


def classes_section(study: Study) -> Section | None:
    """Over- and under-confidence by true class."""
    given = study.predictions
    if given.kind != "classes" or given.soft is not None:
        return None
    resamples = study.wide_resamples
    interval = Bootstrap(max(resamples, LEAST), seed=study.seed) if resamples else None
    result = recipes.CWMCS(given, interval=interval)
    order = np.argsort(-np.nan_to_num(np.array(result.values), nan=-np.inf), kind="stable")
    ends = [(one.low, one.high) for one in result.intervals] or [(math.nan, math.nan)] * len(result.values)
    names, sizes = result.about.names, result.sizes
    rows = [(names[i], int(sizes[i]), result.values[i], *ends[i]) for i in order if sizes[i] > 0]
    drawn = rows if len(rows) <= 2 * NAMED else rows[:NAMED] + rows[-NAMED:]
    some = "" if len(drawn) == len(rows) else f" The {NAMED} farthest classes at each end of {len(rows)} are drawn."
    listed = rows if len(rows) <= LISTED else rows[: LISTED // 2] + rows[-LISTED // 2 :]
    worst = max(rows, key=lambda one: abs(one[2]))
    said = (
        f"Mean confidence less accuracy on the rows of each true class. Farthest off: {worst[0]} "
        f"({100 * worst[2]:+.1f} points, {'over' if worst[2] > 0 else 'under'}-confident, n = {worst[1]:,}).{some}"
    )
    picture = signed_bars(
        "classes-picture",
        [one[0] for one in drawn],
        [one[2] for one in drawn],
        f"Signed gaps by class, n = {result.n:,}",
        "Bars to the right are over-confident classes, to the left under-confident ones.",
        low=[one[3] for one in drawn],
        high=[one[4] for one in drawn],
    )
    header = ("class", "samples", "confidence less accuracy", "90% from", "90% to")
    title = "Signed gap by true class" + ("" if len(listed) == len(rows) else f" ({LISTED} of {len(rows)})")
    grid = Grid(header, listed, title)
    caption = f"n = {result.n:,}, {len(rows)} classes. Right: over-confident. Left: under-confident."
    figure = Figure("classes-figure", picture, caption, grid)
    return Section("classes", "Over- and under-confidence by class", (said,), (figure,))


def ranks_section(study: Study) -> Section | None:
    """What the likeliest 1, 2, ... 5 classes promise together, and keep."""
    given = study.predictions
    most = min(5, given.n_classes - 1)
    if given.kind != "classes" or given.soft is not None or most < 2:
        return None
    kept = diagnostics.top_k_accuracies(given, most)
    promised = np.cumsum(diagnostics.mean_ranked_outputs(given, most))
    rows = []
    for k in range(1, most + 1):
        metric = dataclasses.replace(_IN_TOP, lens=InTopK(k))
        found = tried(lambda metric=metric: metric(given))  # type: ignore[misc]
        rows.append((k, float(promised[k - 1]), float(kept[k - 1]), math.nan if found is None else found.value))
    ks = [float(one[0]) for one in rows]
    picture = lines(
        "ranks-picture",
        [
            Line("promised: mean probability of the k likeliest", ks, [one[1] for one in rows], marks=True),
            Line("kept: how often the truth is among them", ks, [one[2] for one in rows], marks=True),
        ],
        ("k", "share"),
        f"Top-k promise and accuracy, n = {len(given):,}",
        "Two lines over k; the table below has every number.",
        x_ticks=[(k, f"{k:g}") for k in ks],
        zero=False,
    )
    grid = Grid(("k", "promised", "kept", "ECE of the truth being among the k"), rows, "The k likeliest classes")
    figure = Figure("ranks-figure", picture, f"n = {len(given):,}.", grid)
    said = "For a short list of suggestions: is the truth among the k likeliest as often as their probabilities say?"
    return Section("ranks", "The k likeliest classes", (said,), (figure,))


_IN_TOP = BinnedError(lens=InTopK(1), binning=EqualWidth(15))
