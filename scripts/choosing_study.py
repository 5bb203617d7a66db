"""Does `recalibrate.choose` leave calibrated models alone, repair others, and gain what it promises?

PYTHONPATH=src python scripts/choosing_study.py --datasets 300 --jobs 16 --out docs/choosing_study.md

Labels are drawn from logits, and the model says these logits shifted, or divided by a slope. Of classes the logit of
the first is shifted. What a promised gain is worth is the log loss of 20,000 new rows before and after the chosen map.
"""

from __future__ import annotations

import argparse
import csv
import io
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.files.writing import write_text
from calibrant.recalibrate.choice import UNCHANGED
from calibrant.recalibrate.methods import usual

NEW = 20_000
HELD, WORSE = 0.85, 0.1
"""An interval of 90 % that holds less often, and a change that makes more data sets worse, are said to fall short."""
SLOW = ("gp", "matrix", "dirichlet", "cwmcs", "bbq")
LAWS = {"calibrated": (1.0, 0.0), "slope 0.7": (0.7, 0.0), "shift 0.4": (1.0, 0.4), "shift 0.8": (1.0, 0.8)}
SETTINGS = [(law, classes, n) for law in LAWS for classes in (2, 4) for n in (300, 1000)]
WANTED = {
    "calibrated": "The forecasts are kept in at least 92 % of the data sets.",
    "slope 0.7": "At n = 1,000 they are changed in at least 95 %, and the interval holds the gain in at least 85 %.",
    "shift 0.4": "Two classes: a shift is answered with a shift (`prior_shift`), which removes it.",
}
COLUMNS = (  # noqa: SIM905 - a list of strings would be four times as long
    "forecasts classes n data_set changed method promised low high gained too_high_before too_high_after"
).split()


def drawn(rng: np.random.Generator, n: int, classes: int, slope: float, shift: float) -> cal.Predictions:
    """Labels of logits z, forecast by (z + shift) / slope; of classes the first is shifted."""
    if classes == 2:
        z = rng.normal(0, 1.5, n)
        return cal.Predictions.from_logits(rng.random(n) < 1 / (1 + np.exp(-z)), (z + shift) / slope)
    z = rng.normal(0, 1.5, (n, classes))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return cal.Predictions.from_logits(labels, (z + shift * (np.arange(classes) == 0)) / slope)


def gap(predictions: cal.Predictions) -> float:
    """How much too high the event, or the first class, is forecast on average, in points."""
    lens = cal.OneClass(0) if predictions.n_classes else cal.TopLabel()
    return 100 * cal.MCS.replace(lens=lens)(predictions).value


def studied(task: tuple[str, int, int, int]) -> dict[str, object]:
    """What is chosen on one data set, what that promises, and what it does to new rows."""
    warnings.simplefilter("ignore", cal.CalibrationWarning)
    law, classes, n, number = task
    rng = np.random.default_rng([number, classes, n, list(LAWS).index(law)])
    rows, new = (drawn(rng, size, classes, *LAWS[law]) for size in (n, NEW))
    methods = {name: method for name, method in usual(rows).items() if name not in SLOW}
    choice = cal.recalibrate.choose(rows, methods, seed=number, intervals=False)
    row: dict[str, object] = dict(zip(COLUMNS, (law, classes, n, number, choice.best != UNCHANGED), strict=False))
    if choice.gain is None:
        return row
    after = methods[choice.best].fit(rows).recalibrate(new)
    ends = choice.gain.interval
    gained = cal.LOG_LOSS(new).value - cal.LOG_LOSS(after).value
    numbers = (choice.best, choice.gain.value, ends.low, ends.high, gained, gap(new), gap(after))
    return row | dict(zip(COLUMNS[5:], numbers, strict=True))


def summary(rows: list[dict[str, object]]) -> list[str]:
    """The cells of a line: how often changed, by what, and how promise and gain agree."""
    changed = [row for row in rows if row["changed"]]
    cells = [f"{100 * len(changed) / len(rows):.1f} %"]
    if not changed:
        return [*cells, *["-"] * 6]
    promised, low, high, gained, before, after = (
        np.array([row[name] for row in changed], np.float64) for name in COLUMNS[6:]
    )
    often = Counter(str(row["method"]) for row in changed).most_common(2)
    return [
        *cells,
        ", ".join(f"{name} {100 * count / len(changed):.0f} %" for name, count in often),
        f"{100 * np.mean((low <= gained) & (gained <= high)):.1f} %",
        f"{promised.mean():.4f}",
        f"{gained.mean():.4f}",
        f"{100 * np.mean(gained < 0):.1f} %",
        f"{before.mean():+.1f} to {after.mean():+.1f}",
    ]


def page(rows: list[dict[str, object]], datasets: int) -> str:
    """The study as Markdown."""
    lines = [
        "# Does choosing a recalibration keep its promises?",
        "",
        "Printed by `scripts/choosing_study.py`.",
        *(__doc__ or "").split("\n\n")[2].splitlines(),
        f"Every line is of {datasets:,} data sets. Methods that take long are left out: {', '.join(SLOW)}.",
        "",
        *(f"- **{law}**: {wanted}" for law, wanted in WANTED.items()),
        "",
        *shortfalls(rows),
        "",
        "*Changed*: the calibration test rejected, and a method lowered the log loss. The next columns are of those",
        "data sets: the methods that were chosen most often; how often the 90 % interval holds the gain on new rows;",
        "the mean gain that was promised, and that was found, in log loss; how often new rows got worse. *Too high* is",
        "by how many points the mean forecast of the event, or of the first class, is above its frequency in new rows,",
        "before and after.",
        "",
        "| forecasts | classes | n | changed | by | interval holds gain | promised | gained | worse | too high |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for law, classes, n in SETTINGS:
        part = [row for row in rows if (row["forecasts"], row["classes"], row["n"]) == (law, classes, n)]
        lines.append(f"| {law} | {classes} | {n:,} | {' | '.join(summary(part))} |")
    return "\n".join([*lines, ""])


def shortfalls(rows: list[dict[str, object]]) -> list[str]:
    """Where the interval holds the gain clearly less often than it says, and where a change often made things worse."""
    kinds: dict[str, list[str]] = {
        f"the interval held the gain in less than {HELD:.0%}": [],
        "new rows got worse in": [],
    }
    low, worse = kinds.values()
    for law, classes, n in SETTINGS:
        part = [row for row in rows if (row["forecasts"], row["classes"], row["n"]) == (law, classes, n)]
        gains = np.array([[row[name] for name in ("low", "gained", "high")] for row in part if row["changed"]], float)
        if not len(gains):
            continue
        named = f"{law}, {classes} classes, n = {n:,}"
        if (held := np.mean((gains[:, 0] <= gains[:, 1]) & (gains[:, 1] <= gains[:, 2]))) < HELD:
            low.append(f"{named} ({held:.0%} of {len(gains)})")
        if (share := np.mean(gains[:, 1] < 0)) > WORSE:
            worse.append(f"{named} ({share:.0%} of {len(gains)})")
    lines = ["Of the data sets whose forecasts were changed, not all is as promised.", ""]
    kinds = ((f"The interval held the gain in less than {HELD:.0%}", low), (f"More than {WORSE:.0%} got worse", worse))
    return [*lines, *(f"- {words}: {'; '.join(settings)}." for words, settings in kinds if settings)]


def kept(path: Path) -> list[dict[str, object]]:
    """The rows of a table that was written before."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _read(name, text) for name, text in row.items()} for row in csv.DictReader(file)]


def _read(name: str, text: str) -> object:
    if name in ("forecasts", "method") or not text:
        return text or None
    return text == "True" if name == "changed" else int(text) if name in ("classes", "n", "data_set") else float(text)


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=300, help="of each sort")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="the page; its numbers go beside it as .csv")
    parser.add_argument("--kept", action="store_true", help="print the page of the numbers beside it")
    options = parser.parse_args()
    if options.kept:
        rows = kept(options.out.with_suffix(".csv"))
        write_text(options.out, page(rows, len({row["data_set"] for row in rows})))
        return
    tasks = [(*setting, number) for number in range(options.datasets) for setting in SETTINGS]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(studied, tasks, chunksize=4))
    text = page(rows, options.datasets)
    print(text)
    if options.out:
        write_text(options.out, text)
        table = io.StringIO()
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _digits(value) for name, value in row.items()} for row in rows)
        write_text(options.out.with_suffix(".csv"), table.getvalue())


def _digits(value: object) -> object:
    return f"{value:.6f}" if isinstance(value, float) else value


if __name__ == "__main__":
    main()
