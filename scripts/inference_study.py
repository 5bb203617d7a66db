"""Do intervals cover, do tests keep their level? Writes docs/inference_study.md and its raw results.

    python scripts/inference_study.py [--datasets 400] [--jobs 2]

Intervals are `Confidence()` of each recipe, held against the recipe's own limit: its value on 400,000 samples with the
true chances as soft labels. The laws are others than those on which the methods were tried out.
"""

import argparse
import csv
import itertools
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import numpy as np
from calibration_laws import CALIBRATED, LEVELS, OFF, TESTS, rejections

import calibrant as cal

LEVEL = 0.9
MANY = 400_000
SIZES = (50, 200, 1000, 5000)
EVENTS = ["ECE", "ADAPTIVE_ECE", "ECE_SWEEP", "ECE_DEBIASED", "RMSCE", "MCS", "BRIER", "LOG_LOSS"]
EVENTS += ["SLOPE", "INTERCEPT", "OE_RATIO", "AUROC", "BRIER_SKILL"]
CLASSES = ["ECE", "SCE", "ACE", "MCS", "BRIER", "LOG_LOSS", "ACCURACY"]
DOCS = Path(__file__).parents[1] / "docs"


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "mostly likely": lambda rng, n: rng.beta(2.8, 0.5, n),
    "mostly rare": lambda rng, n: sigmoid(rng.normal(-2.5, 1.0, n)),
    "very likely": lambda rng, n: rng.beta(12, 0.4, n),
    "ties": lambda rng, n: rng.beta(1, 1, n).round(1).clip(0.05, 0.95),
}
CURVES = {
    "calibrated": lambda p: p,
    "slightly off": lambda p: p**1.15,
    "clearly off": lambda p: sigmoid(0.6 * np.log(p / (1 - p))),
    "shifted": lambda p: sigmoid(np.log(p / (1 - p)) - 0.3),
    "jagged": lambda p: np.clip(p + 0.1 * np.sign(np.sin(25 * p)) * np.minimum(1, 8 * np.minimum(p, 1 - p)), 0, 1),
}
SHARPER = {"calibrated": 1.0, "slightly off": 0.9, "clearly off": 0.6}


def event(scores, curve, n, rng):
    """Forecasts, and the chances with which they come true."""
    p = np.clip(SCORES[scores](rng, n), 1e-6, 1 - 1e-6)
    return p, CURVES[curve](p)


def classes(width, slope, n, rng):
    """Forecasts of classes, and the chances with which they come true."""
    z = rng.normal(0, 1.7, (n, width)) + np.random.default_rng(3).normal(0, 0.5, width)
    p, truth = (np.exp(s * z - (s * z).max(axis=1, keepdims=True)) for s in (1.0, slope))
    return p / p.sum(axis=1, keepdims=True), truth / truth.sum(axis=1, keepdims=True)


def cells():
    """Recipe, kind of data, regime, n."""
    for scores, curve, n in itertools.product(SCORES, CURVES, SIZES):
        yield from ((name, f"event, {scores}", curve, n) for name in EVENTS)
    for width, curve, n in itertools.product((10, 100), SHARPER, (200, 1000)):
        yield from ((name, f"{width} classes", curve, n) for name in CLASSES if width == 10 or name != "ACE")
    for how, curve in itertools.product(("weights", "groups"), ("calibrated", "clearly off")):
        yield from ((name, how, curve, 1000) for name in EVENTS)


def outcomes(truth, rng):
    """What came true, by chance."""
    if truth.ndim == 1:
        return (rng.random(len(truth)) < truth) * 1
    return (truth.cumsum(axis=1) < rng.random((len(truth), 1))).sum(axis=1).clip(0, truth.shape[1] - 1)


def draw(data, curve, n, rng):
    """Predictions of one data set, and the column of its groups."""
    if data.endswith("classes"):
        p, truth = classes(int(data.split()[0]), SHARPER[curve], n, np.random.default_rng(rng.integers(1 << 40)))
        return cal.Predictions.from_probs(outcomes(truth, rng), p), None
    scores = data.removeprefix("event, ") if data.startswith("event") else "uniform"
    p, truth = event(scores, curve, n, rng)
    if data == "groups":
        group = rng.integers(0, 50, n)
        by = 0.6 * np.minimum(truth, 1 - truth) * rng.choice([-1, 1], 50)[group]
        return cal.Predictions.from_probs(outcomes(truth + by, rng), p, group=group), "group"
    weight = rng.integers(1, 6, n) if data == "weights" else None
    return cal.Predictions.from_probs(outcomes(truth, rng), p, sample_weight=weight), None


@cache
def population(data, curve):
    """Very many forecasts of an event and the chances with which they come true, in order of forecast."""
    scores = data.removeprefix("event, ") if data.startswith("event") else "uniform"
    p, truth = event(scores, curve, MANY, np.random.default_rng(7))
    order = np.argsort(p)
    return p[order], np.concatenate([[0.0], np.cumsum((p - truth)[order])])


def within_bins(bins, data, curve):
    """The error of very many forecasts in the bins that a data set has chosen."""
    p, running = population(data, curve)
    held = bins.counts[0] > 0
    low, high = bins.low[0][held], bins.high[0][held]
    cuts = np.searchsorted(p, (high[:-1] + low[1:]) / 2)
    return float(np.abs(np.diff(running[np.concatenate([[0], cuts, [len(p)]])])).sum() / len(p))


@cache
def limit(name, data, curve):
    """The recipe's value as rows grow in number; nan where the bins that were chosen decide."""
    metric, rng = cal.RECIPES[name], np.random.default_rng(7)
    if name == "ECE_DEBIASED":  # its variance term vanishes, and soft labels need none
        metric = metric.replace(distance=cal.squared)
    if data.endswith("classes"):
        p, truth = classes(int(data.split()[0]), SHARPER[curve], MANY // int(data.split()[0]) * 2, rng)
    else:
        p, truth = event(data.removeprefix("event, ") if data.startswith("event") else "uniform", curve, MANY, rng)
    if name == "ECE_SWEEP":
        return float("nan")
    if name in ("BRIER", "BRIER_SKILL", "LOG_LOSS", "ACCURACY"):  # means over outcomes
        return metric(outcomes(truth, rng), p).value
    return metric(truth, p).value


def covered(task):
    """How often the interval holds the limit, how often there is none, its mean width, and that of the bootstrap."""
    name, data, curve, n, datasets, seed = task
    metric, target, held, none, width = cal.RECIPES[name], limit(name, data, curve), 0, 0, 0.0
    for index in range(datasets):
        rng = np.random.default_rng([seed, index, n, *map(ord, data + curve)])
        predictions, groups = draw(data, curve, n, rng)
        result = metric(predictions, interval=cal.Confidence(LEVEL, groups=groups))
        interval = result.interval
        if interval is None or np.isnan(interval.low):
            none += 1
            continue
        goal = within_bins(result.bins, data, curve) if np.isnan(target) else target
        held += interval.low - 1e-9 <= goal <= interval.high + 1e-9
        width += interval.high - interval.low
    there = datasets - none
    return name, data, curve, n, target, datasets, none, held, width / there if there else float("nan")


def levels(task):
    """How often a test rejects a law at each level."""
    name, law, n, datasets = task
    test = partial(TESTS[name], groups="group") if law.startswith("groups") else TESTS[name]
    return name, law, n, rejections(test, {**CALIBRATED, **OFF}[law], n, datasets)


def verdict(rows):
    """Whether the intervals of some cells cover: no cell's upper 99 % limit is below 88 %; and their range."""
    there = [(held, datasets - none) for *_, datasets, none, held, _ in rows if datasets > none]
    if not there:
        return "no interval"
    rates = [held / n for held, n in there]
    ends = [rate + 2.576 * np.sqrt(rate * (1 - rate) / n) for rate, (_, n) in zip(rates, there, strict=True)]
    withheld = sum(none for *_, none, _, _ in rows) / sum(row[5] for row in rows)
    words = f"{'covers' if min(ends) >= 0.88 else 'fails'}, {100 * min(rates):.0f}-{100 * max(rates):.0f} %"
    return words + (f", none in {100 * withheld:.0f} %" if withheld else "")


def page(rows, tested, options, seconds):
    """The study as a page."""
    names, sizes = list(dict.fromkeys(row[0] for row in rows)), sorted({row[3] for row in rows})
    lines = [
        "# Do intervals cover, do tests keep their level?",
        "",
        "Written by `scripts/inference_study.py`; do not edit. Raw results: `inference_study.csv`.",
        "",
        f"Intervals are `Confidence()` at {LEVEL:.0%}, {options.datasets} data sets a cell. The target is the limit of",
        "the metric; of the sweep, the error of the bins that it chose. A recipe covers at an n if no cell of data and",
        "regime has an upper 99 % limit below 88 %; the range is that of the cells. The laws are others than those on",
        "which the methods were tried out. Metrics that are not here have no interval: a note says so.",
        "",
        f"| recipe | {' | '.join(f'n = {n:,}' for n in sizes)} | mean of cells |",
        f"|---|{'---|' * (len(sizes) + 1)}",
    ]
    for name in names:
        cells_of = [[row for row in rows if row[0] == name and row[3] == n] for n in sizes]
        shares = [row[7] / (row[5] - row[6]) for row in rows if row[0] == name and row[5] > row[6]]
        mean = f"{100 * np.mean(shares):.1f} %" if shares else ""
        lines.append(f"| {name} | {' | '.join(verdict(some) if some else '' for some in cells_of)} | {mean} |")
    low = sorted((row for row in rows if row[5] > row[6]), key=lambda row: row[7] / (row[5] - row[6]))[:15]
    lines += [
        "",
        "## The cells that cover least",
        "",
        "| recipe | data | regime | n | coverage | mean width |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row[0]} | {row[1]} | {row[2]} | {row[3]:,} | {100 * row[7] / (row[5] - row[6]):.1f} % | {row[8]:.4f} |"
        for row in low
    ]
    header = f"| test | data | n | {' | '.join(f'{100 * level:g} %' for level in LEVELS)} |"
    for title, laws in (("Rejections of calibrated data", CALIBRATED), ("Power", OFF)):
        lines += ["", f"## {title}", "", header, f"|---|---|---|{'---|' * len(LEVELS)}"]
        lines += [
            f"| {name} | {law} | {n:,} | {' | '.join(f'{100 * share:.1f} %' for share in shares.values())} |"
            for name, law, n, shares in tested
            if law in laws
        ]
    return "\n".join([*lines, "", f"Made in {seconds:.0f} s by {options.jobs} processes.", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=DOCS)
    options = parser.parse_args()
    started = time.time()
    tasks = [(*cell, options.datasets, options.seed) for cell in cells()]
    tasks.sort(key=lambda task: -("classes" in task[1]))
    tests = [
        (name, law, n, options.datasets)
        for name in TESTS
        for law in CALIBRATED
        for n in (50, 300)
        if n > 50 or "groups" not in law
    ]
    tests += [(name, law, 500, options.datasets) for name in TESTS for law in OFF]
    with ProcessPoolExecutor(options.jobs) as pool:
        tested = list(pool.map(levels, tests))
        rows = list(pool.map(covered, tasks))
    with (options.out / "inference_study.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["recipe", "data", "regime", "n", "limit", "data sets", "withheld", "held", "mean width"])
        writer.writerows(rows)
    text = page(rows, tested, options, time.time() - started)
    (options.out / "inference_study.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
