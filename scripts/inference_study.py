"""Do intervals cover, do tests keep their level? Writes docs/inference_study.md and its raw results.

    python scripts/inference_study.py [--datasets 400] [--jobs 2] [--out DIR] [--only SLOPE INTERCEPT]

Intervals are `Confidence()` of each recipe, held against the recipe's own limit (`interval_laws`). Tests are held
against calibrated data, and data that are off (`calibration_laws`). What is finished is kept in inference_study.jsonl,
so that a run that was stopped goes on from there; the page is written when all is. With --only, other recipes stay as
inference_study.csv has them: data sets follow from the seed, so they change only where a recipe's interval does.
"""

import argparse
import csv
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from calibration_laws import ALARMS, CALIBRATED, OFF, TESTS, rejections
from inference_page import COLUMNS, counts, is_near_limit, page
from interval_laws import LAWS, limit

import calibrant as cal
from calibrant.exceptions import CalibrationInputError

LEVEL = 0.9
EVENTS = ["ECE", "ADAPTIVE_ECE", "ECE_SWEEP", "ECE_DEBIASED", "RMSCE", "MCS", "BRIER", "LOG_LOSS"]
EVENTS += ["SLOPE", "INTERCEPT", "OE_RATIO", "AUROC", "BRIER_SKILL"]
CLASSES = ["ECE", "ADAPTIVE_ECE", "ECE_SWEEP", "ECE_DEBIASED", "RMSCE", "SCE", "ACE", "MCS", "BRIER", "LOG_LOSS"]
CLASSES += ["ACCURACY"]
LABELS = ["ECE", "ADAPTIVE_ECE", "MCS", "BRIER", "LOG_LOSS"]
ALL = list(dict.fromkeys(EVENTS + CLASSES + LABELS))
SLOW = {"100 classes": ("ACE",)}
"""Recipes that are left out: their cells would take most of the time."""
COMPARED = (200, 1000)
"""Sizes at which widths are held against those of the bootstrap."""
RESAMPLES = 100
CHUNK = 100
"""Data sets that a process takes at once."""
DOCS = Path(__file__).parents[1] / "docs"


def cells():
    """Data, regime, n."""
    for data, regime in LAWS:
        sizes = (50, 200, 1000, 10_000) if data not in ("event, ties", "event, few values") else (50, 200, 1000)
        if "classes" in data or data == "real forecasts":
            sizes = (200, 1000, 5000) if data in ("10 classes", "real forecasts") else (200, 1000)
        if "groups" in data:
            sizes = (300, 1000, 3000) if "classes" not in data else (1000,)
        if "weights" in data or "labels" in data:
            sizes = (200, 1000)
        yield from ((data, regime, n) for n in sizes)


def recipes(data, only):
    """The recipes that are asked of some data."""
    several = "classes" in data or data == "real forecasts"
    names = LABELS if "labels" in data else CLASSES if several else EVENTS
    return [name for name in names if name in only and name not in SLOW.get(data, ())]


def covered(task):
    """Of each recipe: data sets, those without an interval, with one that holds the limit, and widths.

    Of the first data sets also how often the basic bootstrap holds the limit, and the widths of both.
    """
    data, regime, n, indices, first, seed, only = task
    tallies = {name: np.zeros(len(COLUMNS)) for name in recipes(data, only)}
    for index in indices:
        predictions, groups = drawn(data, regime, n, index, seed)
        for name in list(tallies):
            try:
                tallies[name] += tally(name, data, regime, predictions, groups, index < first)
            except CalibrationInputError:  # bins of equal mass refuse fractional weights
                del tallies[name]
    return [[name, data, regime, n, *map(float, counts)] for name, counts in tallies.items()]


def drawn(data, regime, n, index, seed):
    """The predictions of a data set, and the name of their groups."""
    rng = np.random.default_rng([seed, index, n, *map(ord, data + regime)])
    sample = LAWS[data, regime](rng, n)
    return sample.predictions(rng), None if sample.group is None else "group"


def compared(task):
    """A recipe's cell once more, with the basic bootstrap on all of its data sets."""
    name, data, regime, n, datasets, seed = task
    total = np.zeros(len(COLUMNS))
    for index in range(datasets):
        total += tally(name, data, regime, *drawn(data, regime, n, index, seed), True)
    return [[name, data, regime, n, *total.tolist()]]


def chunks(datasets, n):
    """Data sets of a cell in parts for several processes, and up to which one the bootstrap is compared."""
    first = datasets // 10 if n in COMPARED else 0
    return [(range(start, min(start + CHUNK, datasets)), first) for start in range(0, datasets, CHUNK)]


def added(rows):
    """The counts of a recipe's cell, over its parts."""
    totals = {}
    for *cell, part in ((*row[:4], np.array(row[4:])) for row in rows):
        totals[tuple(cell)] = totals.get(tuple(cell), 0.0) + part
    return [[*cell, *total.tolist()] for cell, total in totals.items()]


def tally(name, data, regime, predictions, groups, beside):
    """What one data set adds to the counts of a recipe, in the order of `COLUMNS`."""
    metric = cal.RECIPES[name]
    result = metric(predictions, interval=cal.Confidence(LEVEL, groups=groups))
    target = limit(name, data, regime, int((result.bins.counts > 0).sum()) if name == "ECE_SWEEP" else 0)
    if result.interval is None:
        return np.array([1, 1, 0, 0, 0, 0, 0, 0])
    held, width = holds(result.interval, target), result.interval.high - result.interval.low
    if not beside:
        return np.array([1, 0, held, width, 0, 0, 0, 0])
    basic = metric(predictions, interval=cal.Bootstrap(RESAMPLES, level=LEVEL, groups=groups)).interval
    return np.array([1, 0, held, width, 1, holds(basic, target), width, basic.high - basic.low])


def holds(interval, target):
    """Whether an interval holds its target."""
    return interval.low - 1e-9 <= target <= interval.high + 1e-9


def tested(task):
    """How often a test rejects a law at each level."""
    name, law, n, datasets = task
    groups = "group" if law.startswith("groups") else None
    return [name, law, n, datasets, *rejections(TESTS[name], {**CALIBRATED, **OFF}[law], n, datasets, groups=groups)]


def tests(datasets):
    """Test, law, n, data sets; the omnibus test on more of them, since its alarms are counted."""
    for name in TESTS:
        count = datasets if name != "calibration_test" else -(-datasets * ALARMS // 400)
        yield from ((name, law, n, count) for law in CALIBRATED for n in (50, 300) if n > 50 or "groups" not in law)
        yield from ((name, law, 500, count) for law in OFF)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=DOCS)
    parser.add_argument("--only", nargs="+", choices=ALL, default=ALL)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "inference_study.jsonl"
    known = dict(json.loads(line) for line in kept.read_text("utf-8").splitlines()) if kept.exists() else {}
    tasks = [
        (covered, (*cell, *some, options.seed, options.only))
        for cell in cells()
        for some in chunks(options.datasets, cell[2])
        if recipes(cell[0], options.only)
    ]
    tasks = {str(task[1]): task for task in [*tasks, *((tested, test) for test in tests(options.datasets))]}
    with ProcessPoolExecutor(options.jobs) as pool, kept.open("a", encoding="utf-8") as file:
        finish(tasks, known, pool, file)
        near = [row for row in found(covered, tasks, known) if is_near_limit(counts(row))]
        again = {f"again {row[:4]}": (compared, (*row[:4], options.datasets, options.seed)) for row in near}
        finish(again, known, pool, file)
    write(options, tasks | again, known)
    kept.unlink()


def finish(tasks, known, pool, file):
    """Run what is not known yet, long tasks first; each result is kept at once."""
    waiting = sorted((name for name in tasks if name not in known), key=lambda name: -effort(*tasks[name]))
    running = {pool.submit(run, tasks[name]): name for name in waiting}
    for future in as_completed(running):
        known[running[future]] = future.result()
        file.write(json.dumps([running[future], future.result()]) + "\n")
        file.flush()


def found(kind, tasks, known):
    """What all tasks of a kind found, in the order of the tasks; the counts of a cell added over its parts."""
    results = [known[name][0] for name, task in tasks.items() if task[0] is kind]
    return results if kind is tested else added(row for part in results for row in part)


def as_before(path, only):
    """The cells of a table of other recipes."""
    if set(only) == set(ALL):
        return []
    with path.open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return [[*row[:3], int(row[3]), *map(float, row[4:])] for row in rows if row[0] not in only]


def write(options, tasks, known):
    """The page and the table of cells from what all tasks found."""
    path = options.out / "inference_study.csv"
    rows = {tuple(row[:4]): row for row in as_before(path, options.only)}
    rows |= {tuple(row[:4]): row for kind in (covered, compared) for row in found(kind, tasks, known)}
    rows = [rows[cell] for cell in sorted(rows)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["recipe", "data", "regime", "n", *COLUMNS])
        writer.writerows(rows)
    order = {task[:3]: place for place, task in enumerate(tests(1))}
    tested_rows = sorted(found(tested, tasks, known), key=lambda row: order[tuple(row[:3])])
    minutes = sum(seconds for _, seconds in known.values()) / 60
    again = [] if set(options.only) == set(ALL) else options.only
    text = page(rows, tested_rows, options.datasets, minutes, (RESAMPLES, options.datasets // 10), again)
    (options.out / "inference_study.md").write_text(text, encoding="utf-8")


def run(task):
    """What a task finds, and the processor's seconds that it took."""
    function, arguments = task
    started = time.process_time()
    return function(arguments), time.process_time() - started


def effort(function, arguments):
    """About how long a task takes: long ones first."""
    if function is compared:
        return arguments[3]
    if function is tested:
        return (
            arguments[3]
            * arguments[2]
            * (0.01 if arguments[0] in ("calibration_test", "consistency of ECE") else 0.001)
        )
    data, _, n, indices, *_ = arguments
    return len(indices) * (300 if "classes" in data or "real" in data else 40) * (1 + n / 5000)


if __name__ == "__main__":
    main()
