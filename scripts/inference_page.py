"""The page of the study of intervals and tests: which cover, which keep their level, from the counts of its cells."""

import numpy as np
from calibration_laws import CALIBRATED, LEVELS, OFF
from interval_laws import CURVES
from scipy.special import betaincinv

COLUMNS = [
    "data sets",
    "withheld",
    "held",
    "summed width",
    "compared",
    "held by basic",
    "width there",
    "width of basic",
]
LEAST = 0.88
"""No cell's upper 99 % limit may be below, nor a recipe's mean over its cells."""
WIDEST = 1.8
"""The most that widths may be of those of the basic bootstrap, where that covers."""
NEAR = 1.6
"""Cells with a larger ratio are compared on all of their data sets."""
DATA, REGIME, N = 1, 2, 3
INTRODUCTION = """# Do intervals cover, do tests keep their level?

Written by `scripts/inference_study.py`; do not edit. Raw results: `inference_study.csv`.

Intervals are `Confidence()` at 90 %, {datasets} data sets a cell. The target is the limit of the metric as rows grow in
number; of the sweep, with as many bins of equal mass as it chose. The distributions are others than those on which the
methods were tried out. TACE, CWECE, MSECE and CWMCS have an interval, too, which is not tested here. The other recipes
have none: a note says so.

A recipe *covers* in a regime at an n if no cell of data has an upper 99 % limit of coverage below 88 %; the range is
that of the cells. It is *withheld* if more than half of the data sets get no interval; smaller shares stand beside.
"""


def page(rows, tests, datasets, minutes, compared, again):
    """The study as a page; `again` are the recipes that were computed anew, if not all were."""
    lines = [*INTRODUCTION.format(datasets=datasets).splitlines(), *verdicts(rows), *means(rows), *lowest(rows)]
    lines += [*widths(rows, compared), *alarms(tests), *rates(tests)]
    what = f"{', '.join(again)} and the tests were last made in" if again else "Made in"
    return "\n".join([*lines, "", f"{what} {minutes:,.0f} minutes of one processor core.", ""])


def table(*rows):
    """Lines of a Markdown table, the header first."""
    header, *body = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return ["", header, f"|{'---|' * len(rows[0])}", *body]


def counts(row):
    """The counts of a cell by name."""
    return dict(zip(COLUMNS, row[4:], strict=True))


def coverage(row):
    """The share of the intervals of a cell that hold the limit."""
    cell = counts(row)
    return cell["held"] / (cell["data sets"] - cell["withheld"])


def upper(row):
    """The upper 99 % limit of a cell's coverage (Clopper and Pearson)."""
    cell = counts(row)
    there = cell["data sets"] - cell["withheld"]
    return 1.0 if cell["held"] == there else float(betaincinv(cell["held"] + 1, there - cell["held"], 0.995))


def there(rows):
    """The cells in which at least a tenth of the data sets has an interval."""
    return [row for row in rows if counts(row)["withheld"] <= 0.9 * counts(row)["data sets"]]


def verdict(rows):
    """Whether the intervals of some cells cover."""
    if not rows:
        return ""
    withheld = sum(counts(row)["withheld"] for row in rows) / sum(counts(row)["data sets"] for row in rows)
    if withheld > 0.5 or not there(rows):
        return "withheld"
    shares = [coverage(row) for row in there(rows)]
    word = "covers" if min(map(upper, there(rows))) >= LEAST else "**fails**"
    beside = f", none in {100 * withheld:.0f} %" if withheld >= 0.005 else ""
    return f"{word}, {100 * min(shares):.0f}-{100 * max(shares):.0f} %{beside}"


def verdicts(rows):
    """Recipe by n and regime."""
    body = []
    for name in unique(rows, 0):
        own = [row for row in rows if row[0] == name]
        for n in sorted(unique(own, N)):
            cells = [[row for row in own if row[N] == n and row[REGIME] == regime] for regime in CURVES]
            body.append((name, f"{n:,}", *map(verdict, cells)))
    return ["", "## Coverage by recipe, n and regime", *table(("recipe", "n", *CURVES), *body)]


def means(rows):
    """Recipe by sort of data: mean coverage, and over all cells."""
    sorts = (
        "event, ties",
        "event, few values",
        "event",
        "nearly sure",
        "2 classes",
        "10 classes",
        "100 classes",
        "real",
        "weights",
        "labels",
        "groups",
    )
    body = []
    for name in unique(rows, 0):
        own = there([row for row in rows if row[0] == name])
        shares = [[coverage(row) for row in own if sort_of(row[DATA], sorts) == sort] for sort in sorts]
        every = [coverage(row) for row in own]
        mean = f"{100 * np.mean(every):.1f} %{'' if np.mean(every) >= LEAST else ' (**fails**)'}" if every else ""
        withheld = [counts(row) for row in rows if row[0] == name and row[N] >= 200]
        none = sum(cell["withheld"] for cell in withheld) / max(1, sum(cell["data sets"] for cell in withheld))
        body.append((name, *(f"{100 * np.mean(some):.1f} %" if some else "" for some in shares), mean, f"{none:.1%}"))
    header = ("recipe", *sorts, "all cells", "withheld, n >= 200")
    return ["", "## Mean coverage by sort of data", *table(header, *body)]


def sort_of(data, sorts):
    """The sort that some data belong to."""
    return "groups" if "groups" in data else next(sort for sort in sorts if sort in data)


def lowest(rows):
    """The cells that cover least."""
    least = sorted(there(rows), key=coverage)[:15]
    body = [
        (row[0], row[DATA], row[REGIME], f"{row[N]:,}", f"{100 * coverage(row):.1f} %", f"{100 * upper(row):.1f} %")
        for row in least
    ]
    header = ("recipe", "data", "regime", "n", "coverage", "upper 99 % limit")
    return ["", "## The cells that cover least", *table(header, *body)]


def is_fair(cell):
    """Whether widths were compared where the basic bootstrap covers."""
    return cell["compared"] > 0 and cell["held by basic"] >= LEAST * cell["compared"]


def is_near_limit(cell):
    """Whether the basic bootstrap covers and is narrower by about as much as is allowed, or more."""
    return is_fair(cell) and cell["width there"] > NEAR * cell["width of basic"]


def widths(rows, compared):
    """Widths against those of the basic bootstrap."""
    resamples, datasets = compared
    body = []
    for name in unique(rows, 0):
        cells = [counts(row) for row in rows if row[0] == name and counts(row)["compared"]]
        fair = [cell for cell in cells if is_fair(cell)]
        ratios = [cell["width there"] / cell["width of basic"] for cell in fair]
        if ratios:
            above = sum(ratio > WIDEST for ratio in ratios)
            body.append((name, len(cells), len(fair), f"{np.median(ratios):.2f}", f"{max(ratios):.2f}", above))
    header = ("recipe", "cells", "basic covers", "median ratio", "largest ratio", f"above {WIDEST}")
    lines = ["", "## Widths", ""]
    lines += [
        f"Mean width over that of the basic bootstrap ({resamples} resamples, {datasets} data sets a cell), in the"
    ]
    lines += [f"cells in which the bootstrap itself covers at least {LEAST:.0%}. Cells with a ratio above {NEAR} were"]
    lines += ["compared on all of their data sets."]
    return [*lines, *table(header, *body)]


def alarms(tests):
    """How many calibrated data sets raise an alarm at 5 %, and how many that are off."""
    place = LEVELS.index(0.05)
    body = [
        (law, f"{n:,}", "yes" if law in CALIBRATED else "no", f"{some[place]} of {datasets}")
        for name, law, n, datasets, *some in tests
        if name == "calibration_test" and n >= 300
    ]
    lines = [
        "",
        "## Alarms",
        "",
        "How many data sets have a p-value of `calibration_test` (199 redraws) of at most 0.05.",
    ]
    return [*lines, *table(("data", "n", "calibrated", "alarms"), *body)]


def rates(tests):
    """Rejections by level: of calibrated data, and of data that are off."""
    lines = []
    header = ("test", "data", "n", *(f"{100 * level:g} %" for level in LEVELS))
    for title, laws in (("Rejections of calibrated data", CALIBRATED), ("Power", OFF)):
        body = [
            (name, law, f"{n:,}", *(rate(k, datasets, level, law) for k, level in zip(some, LEVELS, strict=True)))
            for name, law, n, datasets, *some in tests
            if law in laws
        ]
        lines += ["", f"## {title}"]
        if laws is CALIBRATED:
            lines += ["", "Bold: the lower 99.9 % limit is above the level."]
        lines += table(header, *body)
    return lines


def rate(rejected, datasets, level, law):
    """A rate of rejections; of calibrated data, in bold where it is clearly above the level."""
    low = float(betaincinv(rejected, datasets - rejected + 1, 0.0005)) if rejected and law in CALIBRATED else 0.0
    words = f"{100 * rejected / datasets:.1f} %"
    return f"**{words}**" if low > level else words


def unique(rows, column):
    """The values of a column, in order."""
    return list(dict.fromkeys(row[column] for row in rows))
