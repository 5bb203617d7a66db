"""The page of a watch: its verdict, the evidence after each window, and what is not guaranteed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

import calibrant
from calibrant.kernels.totals import Floats
from calibrant.report.charts import planes
from calibrant.report.page import Cell, Page, PageFigure, PageTable, Section, Verdict
from calibrant.report.svg import Plane, element, picture
from calibrant.text import inert
from calibrant.watch.bets import CUTS
from calibrant.watch.closed_windows import OVERALL
from calibrant.watch.looks import Look
from calibrant.watch.watch_status import gap_sentence, headline, quoted, remarks

NOT_GUARANTEED = (
    "The level holds if each outcome happens with the probability of its forecast, given all windows closed before it. "
    "Neither choice (rows or windows independent) holds if outcomes of a window are decided only after the next has "
    "begun; labels that merely arrive late do no harm, as long as windows are closed in their order.",
    "It does not hold where rows are left out by their outcome: windows that are closed while labels of one outcome "
    "are still missing, or while labels are provisional.",
    "With rows taken as independent, it does not hold where rows of a window move together. With windows taken as "
    "independent, they may; but each outcome must have the probability of its forecast given also the number of rows "
    "and all forecasts of its window, which fails where busy days have other rates.",
    "An alarm says that forecasts and outcomes do not agree. It does not say why, nor that they ever agreed. No alarm "
    "does not show that they agree: a change may be small, or hidden from the questions that are asked.",
    "The window since which they do not agree is an estimate. Late labels correct the counts and the e-value beside, "
    "and neither raise nor withdraw an alarm.",
)
NEXT = (
    "Next: see below which forecasts moved and since when. Repair them (calibrant watch STORE --repair map.json), or "
    "change the model and begin anew (--restart)."
)


def watch_page(look: Look, name: str) -> Page:
    """The page of a look at a watch of this name.

    >>> from calibrant.watch.closed_windows import WatchSettings
    >>> from calibrant.watch.looks import look
    >>> watch_page(look([], WatchSettings()), "model.watch").verdict.sentence
    'No window is closed yet: there is no evidence.'
    """
    tone = "poor" if look.alarm is not None else "unsure" if not look.windows or remarks(look) else "good"
    gap, following = gap_sentence(look), [] if look.alarm is None else [NEXT]
    sections = [_evidence(look), _gaps(look), _forecasts(look)] if look.windows else []
    kinds = [_questions(look, kind) for kind in ("class", "group") if any(each == kind for each, _ in look.questions)]
    return Page(
        title=f"Watch of {inert(name, 120)}",
        verdict=Verdict(headline(look), [*([] if gap is None else [gap]), *remarks(look), *following], tone),
        sections=[Section("limits", "What is not guaranteed", NOT_GUARANTEED), *sections, *kinds, _methods(look)],
        data={"planes": planes()},
    )


def _evidence(look: Look) -> Section:
    """The e-value after each window, on a scale of powers of ten."""
    tens, limit = look.log_e / math.log(10), -math.log10(look.settings.level)
    rows: list[tuple[Cell, ...]] = [
        (window.name, window.n, window.total / window.n, window.hits / window.n, quoted(value))
        for window, value in zip(look.windows, look.log_e.tolist(), strict=True)
    ]
    header = ("window", "rows", "mean forecast", "observed frequency", "e-value after it")
    grid = PageTable(header, rows, "Windows", "windows-table")
    words = f"alarm at {quoted(-math.log(look.settings.level))}"
    drawing = _drawn("evidence", tens, "e-value, power of ten", "The e-value after each window", (limit, words))
    caption = (
        "Evidence against calibration after each window. If forecasts are calibrated, given all windows closed before, "
        f"the chance that the line ever reaches the dashed one is at most {look.settings.level:g}. An alarm stays."
    )
    return Section("evidence", "Evidence", (), (PageFigure("evidence-figure", drawing, caption, grid),))


def _gaps(look: Look) -> Section:
    """The mean of forecasts less outcomes in each window."""
    gaps = np.array([100 * (window.total - window.hits) / window.n for window in look.windows])
    rows: list[tuple[Cell, ...]] = [(window.name, gap) for window, gap in zip(look.windows, gaps.tolist(), strict=True)]
    grid = PageTable(("window", "points"), rows, "Mean forecast less observed frequency", "gaps-table", digits=2)
    drawing = _drawn("gaps", gaps, "points above outcomes", "Mean gap of each window", (0.0, "no gap"))
    caption = "Mean forecast less observed frequency of each window, in points. Single windows scatter by chance."
    return Section("gaps", "Gap of each window", (), (PageFigure("gaps-figure", drawing, caption, grid),))


def _forecasts(look: Look) -> Section:
    """How many more outcomes there were than forecast, since the change or over all windows."""
    start = look.since or 0
    lessons = np.sum([window.payments[OVERALL].lesson["rows"] for window in look.windows[start:]], axis=0)
    edges = [0.0, *CUTS, 1.0]
    rows: list[tuple[Cell, ...]] = []
    for low, high, (residual, variance, *_) in zip(edges[:-1], edges[1:], lessons.tolist(), strict=True):
        if variance > 0:
            rows.append((f"{low:.4g} to {high:.4g}", residual, math.sqrt(variance)))
    header = ("forecasts", "outcomes more than forecast", "standard deviation if calibrated")
    since = inert(look.windows[start].name, 60)
    words = (
        f"Windows since {since}: how many more outcomes there were than forecast, and how far this would scatter by "
        "chance. It describes what was seen and is no test."
    )
    grid = PageTable(header, rows, "Forecasts", digits=1)
    return Section("forecasts", "Which forecasts moved", (words,), (), (grid,))


def _questions(look: Look, kind: str) -> Section:
    """The e-value of each class or group."""
    changed = look.changed(kind)
    rows: list[tuple[Cell, ...]] = [
        (name, quoted(value), "does not agree" if name in changed else "–")
        for (each, name), value in sorted(look.questions.items(), key=lambda item: -item[1])
        if each == kind
    ]
    title = {"class": "Classes", "group": "Groups"}[kind]
    words = (
        f"At any one look, the false discovery rate is at most {look.settings.level:g} (e-BH; those that arrive later "
        "have smaller shares of it). They raise no alarm alone."
    )
    return Section(f"{kind}-values", title, (words,), (), (PageTable((kind, "e-value", ""), rows, title),))


def _methods(look: Look) -> Section:
    settings = look.settings
    rows = [
        ("level", f"{settings.level:g}"),
        ("taken as independent", settings.independent),
        ("tolerated shift of log-odds", f"{settings.tolerance:g}"),
        ("windows over which starts are spread first", str(settings.horizon)),
        ("calibrant", calibrant.__version__),
        ("NumPy", np.__version__),
    ]
    return Section("methods", "Methods", (), (), (PageTable(("what", "value"), rows, "Settings"),))


def _drawn(identity: str, values: Floats, axis: str, title: str, limit: tuple[float, str]) -> Markup:
    """A line over windows, beside a level with its words."""
    height, words = limit
    low, high = min(0.0, height, float(values.min())), max(0.1, height, float(values.max()))
    room = 0.08 * (high - low)
    plane = Plane((0.0, max(float(len(values)), 2.0)), (low - room, high + room))
    points: Sequence[tuple[float, float]] = list(enumerate(values.tolist(), 1))
    return picture(
        f"{identity}-picture",
        title,
        f"A line of {len(values)} windows; the last is at {values[-1]:.3g}.",
        plane.width,
        plane.height,
        plane.frame("window", axis),
        plane.line([(0.0, height), (plane.x[1], height)], class_="diagonal"),
        element("text", words, x=plane.across(plane.x[1]) - 6, y=plane.up(height) - 5, class_="tick end strong"),
        plane.line(points, class_="series s0"),
    )
