"""How often does a watch raise a false alarm, and how soon a true one? Writes docs/watch_study.md and its raw results.

    python scripts/watch_study.py [--runs 400] [--long 100] [--out docs]

Streams of forecasts and outcomes are simulated, many at once; each is looked at once a day.
"""

import argparse
import csv
import math
import time
from pathlib import Path

import numpy as np
from scipy import special, stats

from calibrant.binning import cells
from calibrant.watch.bets import CellCounts
from calibrant.watch.confidence_sequences import mean_gap_sequence, slope_sequence
from calibrant.watch.day_bets import DayBets
from calibrant.watch.e_processes import EProcess
from calibrant.watch.looks import change_start, is_scattered, scatter
from calibrant.watch.model_differences import mean_sequence
from calibrant.watch.row_bets import RowBets

LEVEL, ROWS, CHANGE, LOOKS, LONG = 0.05, 300, 100, 365, 3650
DOCS = Path(__file__).parents[1] / "docs"
ATOMS = 40
"""Forecasts of a stream take so many values, each a cell of its own: cells then lose nothing to rows."""


def quantiles(distribution):
    return distribution.ppf((np.arange(ATOMS) + 0.5) / ATOMS)


FORECASTS = {
    "base rate .25": special.expit(quantiles(stats.norm(-1.35, 1.0))),
    "rare, .4%": special.expit(quantiles(stats.norm(-5.8, 0.8))),
    "top label": special.expit(quantiles(stats.norm(1.5, 1.0))),
    "skewed": quantiles(stats.beta(0.15, 0.6)).clip(1e-6, 1 - 1e-6),
}


def stream(forecasts, runs, looks, seed, *, shift=0.0, slope=1.0, day=0.0, kept=(1.0, 1.0), read=1.0):
    """Each day's counts in many runs: from day 101 on, log-odds are `slope` times as large and `shift` larger.

    `day` moves all log-odds of a day up or down together, calibrated on average. `kept` are the shares of positives and
    of negatives whose labels arrive before the window is closed, `read` that of positives not recorded as negatives.
    """
    rng, p = np.random.default_rng(seed), FORECASTS[forecasts]
    odds, cell = special.logit(p), cells.numbers(p)
    for look in range(looks):
        changed = look >= CHANGE
        chance = special.expit(odds * (slope if changed else 1.0) + (shift if changed else 0.0))
        if day:
            half = (special.expit(odds + day) - special.expit(odds - day)) / 2
            chance = chance + half * rng.choice([-1, 1], (runs, 1))
        count = rng.multinomial(ROWS, np.full(ATOMS, 1 / ATOMS), runs)
        true = rng.binomial(count, np.broadcast_to(chance, count.shape))
        positives, negatives = (
            rng.binomial(part, share) for part, share in zip((true, count - true), kept, strict=True)
        )
        count, hits = positives + negatives, rng.binomial(positives, read)
        yield CellCounts(cell, count.astype(float), hits.astype(float), count * p)


class Watching:
    """The watch itself."""

    def __init__(self, betting, looks):
        self.process = EProcess(betting)

    def alarms(self, counts):
        self.process = self.process.after(counts)
        return self.process.log_e >= -math.log(LEVEL)


class Repeated:
    """A z-test of each day, at the level divided by a number of looks."""

    def __init__(self, looks):
        self.limit = stats.norm.isf(LEVEL / 2 / looks)

    def alarms(self, counts):
        return np.abs(z_of(counts)) > self.limit


class Cumulative:
    """A z-test of all days so far, at the level divided by the number of looks."""

    def __init__(self, looks):
        self.limit, self.sums = stats.norm.isf(LEVEL / 2 / looks), 0.0

    def alarms(self, counts):
        self.sums = self.sums + np.stack([(counts.hits - counts.total).sum(-1), counts.variance.sum(-1)])
        return np.abs(self.sums[0]) > self.limit * np.sqrt(self.sums[1])


class Cusum:
    """Sums of z less or plus a half, never below 0; its limit is tuned on normal z to 5% over 365 looks."""

    drift, limit = 0.5, None

    def __init__(self, looks):
        self.up = self.down = 0.0
        if Cusum.limit is None:
            Cusum.limit = 0.0  # while it is found
            z = np.random.default_rng(1).standard_normal((LOOKS, 4000))
            highest, tuned = np.zeros(4000), Cusum(looks)
            for each in z:
                highest = np.maximum(highest, tuned.moved(each))
            Cusum.limit = np.quantile(highest, 1 - LEVEL)

    def moved(self, z):
        self.up = np.maximum(self.up + z - self.drift, 0)
        self.down = np.maximum(self.down - z - self.drift, 0)
        return np.maximum(self.up, self.down)

    def alarms(self, counts):
        return self.moved(z_of(counts)) > self.limit


class Distribution:
    """Two-sample Kolmogorov-Smirnov of a day's forecasts against those of the first 30 days, by its asymptotic limit."""

    def __init__(self, looks):
        self.limit, self.day, self.first = stats.kstwobign.isf(LEVEL / looks), 0, 0.0

    def alarms(self, counts):
        self.day += 1
        if self.day <= 30:
            self.first = self.first + counts.count
            return np.zeros(len(counts.count), bool)
        shares = [each.cumsum(-1) / each.sum(-1, keepdims=True) for each in (self.first, counts.count)]
        sizes = [each.sum(-1) for each in (self.first, counts.count)]
        gap = np.abs(shares[0] - shares[1]).max(-1)
        return gap * np.sqrt(sizes[0] * sizes[1] / (sizes[0] + sizes[1])) > self.limit


METHODS = {
    "watch, rows independent": lambda looks: Watching(RowBets(), looks),
    "watch, windows independent": lambda looks: Watching(DayBets(), looks),
    "z each day at 5%": lambda looks: Repeated(1),
    "z each day, Bonferroni": Repeated,
    "z of all days, Bonferroni": Cumulative,
    "CUSUM tuned to 365 looks": Cusum,
    "KS of forecasts, Bonferroni": Distribution,
}
WATCH = tuple(METHODS)[:2]


def z_of(counts):
    variance = counts.variance.sum(-1)
    return np.divide(
        (counts.hits - counts.total).sum(-1), np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0
    )


def first_alarms(forecasts, runs, looks, seed, methods, **change):
    """The day of the first alarm of each method in each run, from 1; 0 where there is none."""
    watching = {name: METHODS[name](looks) for name in methods}
    first = {name: np.zeros(runs, int) for name in methods}
    for day, counts in enumerate(stream(forecasts, runs, looks, seed, **change), 1):
        for name, method in watching.items():
            first[name][(first[name] == 0) & method.alarms(counts)] = day
    return first


FALSE = [
    *((forecasts, forecasts, {}) for forecasts in FORECASTS),
    ("labels of 10% missing, whatever the outcome", "base rate .25", {"kept": (0.9, 0.9)}),
]
BROKEN = [
    ("days move by .1 logits", "base rate .25", {"day": 0.1}),
    ("days move by .3 logits", "base rate .25", {"day": 0.3}),
    ("days move by .5 logits, rare", "rare, .4%", {"day": 0.5}),
    ("closed when 20% of the negatives have no label yet", "base rate .25", {"kept": (1.0, 0.8)}),
    ("closed when 20% of the positives are still recorded as negatives", "base rate .25", {"read": 0.8}),
]
DELAYS = [
    ("logits .1 higher", "base rate .25", {"shift": 0.1}),
    ("logits .2 higher", "base rate .25", {"shift": 0.2}),
    ("logits .4 higher", "base rate .25", {"shift": 0.4}),
    ("logits .4 higher, rare", "rare, .4%", {"shift": 0.4}),
    ("logits .3 lower, top label", "top label", {"shift": -0.3}),
    ("logits 1.15 times as large", "base rate .25", {"slope": 1.15}),
]


def false_alarms(scenarios, runs, looks, methods):
    for seed, (name, forecasts, change) in enumerate(scenarios):
        first = first_alarms(forecasts, runs, looks, seed, methods, **change)
        for method, days in first.items():
            yield {"part": "false alarms", "stream": name, "looks": looks, "runs": runs, "method": method,
                   "value": float((days > 0).mean())}  # fmt: skip


def delays(runs):
    for seed, (name, forecasts, change) in enumerate(DELAYS):
        first = first_alarms(forecasts, runs, LOOKS, 100 + seed, METHODS, **change)
        for method, days in first.items():
            late = np.where(days == 0, np.inf, days)[(days == 0) | (days > CHANGE)] - CHANGE
            yield {"part": "delay", "stream": name, "looks": LOOKS, "runs": runs, "method": method,
                   "value": float(np.median(late)) if len(late) else math.nan,
                   "before": float(((days > 0) & (days <= CHANGE)).mean())}  # fmt: skip


def path_sums(counts):
    """The sums over forecasts that a watch remembers of a day (runs, 5)."""
    return RowBets().lesson(counts).sum(-2)


def warnings_and_starts(runs):
    """How often a watch says that days move together, and how far its estimate of the start of a change is off."""
    for name, forecasts, change in [*FALSE[:4], *BROKEN[:3]]:
        days = np.stack([path_sums(counts) for counts in stream(forecasts, runs, 100, 200, **change)], 1)
        told = [is_scattered(scatter(run[:, 0], run[:, 1]), 100) for run in days]
        yield {"part": "warning", "stream": name, "looks": 100, "runs": runs, "method": WATCH[0],
               "value": float(np.mean(told))}  # fmt: skip
    for name, forecasts, change in DELAYS:
        process, first, days = EProcess(RowBets()), np.zeros(runs, int), []
        for day, counts in enumerate(stream(forecasts, runs, LOOKS, 300, **change), 1):
            process = process.after(counts)
            first[(first == 0) & (process.log_e >= -math.log(LEVEL))] = day
            days.append(path_sums(counts))
        sums = np.stack(days, 1)
        off = [change_start(sums[run, : first[run]]) - CHANGE for run in range(runs) if first[run] > CHANGE]
        yield {"part": "start", "stream": name, "looks": LOOKS, "runs": len(off), "method": WATCH[0],
               "value": float(np.median(np.abs(off)))}  # fmt: skip


def of_classes(runs, looks=LOOKS, classes=10):
    """Alarms of ten classes: calibrated, and with the first class 1.5 times as frequent from day 101 on."""
    rng = np.random.default_rng(5)
    p = special.softmax(1.6 * rng.standard_normal((60, classes)), axis=1)
    top = p.argmax(1)
    views = [(p.max(1), top), *((p[:, each], np.full(60, each)) for each in range(classes))]
    weights = np.where(np.arange(classes) == 0, 1.5, 1.0)
    for name, factor in (("ten classes", np.ones(classes)), ("ten classes, one 1.5 times as frequent", weights)):
        processes = [EProcess(RowBets()) for _ in views]
        first = {"top label": np.zeros(runs, int), "top label and classes": np.zeros(runs, int)}
        for day in range(1, looks + 1):
            chance = p * (factor if day > CHANGE else 1.0)
            chance = chance / chance.sum(1, keepdims=True)
            count = rng.multinomial(ROWS, np.full(60, 1 / 60), runs)
            labels = rng.multinomial(count, chance)
            for place, (forecast, label) in enumerate(views):
                hits = labels[:, np.arange(60), label].astype(float)
                counts = CellCounts(cells.numbers(forecast), count.astype(float), hits, count * forecast)
                processes[place] = processes[place].after(counts)
            log_e = np.stack([process.log_e for process in processes])
            mean = np.logaddexp.reduce(log_e[1:], axis=0) - math.log(classes)
            both = np.logaddexp(log_e[0], mean) - math.log(2)
            for method, value in zip(first, (log_e[0], both), strict=True):
                first[method][(first[method] == 0) & (value >= -math.log(LEVEL))] = day
        for method, days in first.items():
            late = np.where(days == 0, np.inf, days)[(days == 0) | (days > CHANGE)] - CHANGE
            calibrated = (factor == 1).all()
            yield {"part": "classes", "stream": name, "looks": looks, "runs": runs, "method": method,
                   "value": float((days > 0).mean()) if calibrated else float(np.median(late))}  # fmt: skip


def sequences(runs):
    """The share of runs in which an interval of level 95% ever misses, among looks that become rarer."""
    days = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 365)
    truth = {"calibrated": (0.0, 1.0), "logits .2 higher, 1.15 times as large": (0.2, 1.15)}
    for forecasts in FORECASTS:
        p = FORECASTS[forecasts]
        odds, cell, rng = special.logit(p), cells.numbers(p), np.random.default_rng(9)
        for name, (shift, slope) in truth.items():
            chance, missed, width = special.expit(shift + slope * odds), {"mean gap": 0, "slope": 0}, []
            for _ in range(runs):
                total = np.zeros((2, ATOMS))
                ever = dict.fromkeys(missed, False)
                for day in range(1, days[-1] + 1):
                    count = rng.multinomial(ROWS, np.full(ATOMS, 1 / ATOMS))
                    total += np.stack([count, rng.binomial(count, chance)])
                    if day in days:
                        counts = CellCounts(cell, total[0], total[1], total[0] * p)
                        gap = mean_gap_sequence(total[0].sum(), total[1].sum(), counts.total.sum(), 0.95)
                        true = (total[0] * (p - chance)).sum() / total[0].sum()
                        ever["mean gap"] |= not gap.low <= true <= gap.high
                        line = slope_sequence(counts, 0.95)
                        ever["slope"] |= not line.low <= slope <= line.high
                width.append((gap.high - gap.low, line.high - line.low))
                missed = {key: missed[key] + ever[key] for key in missed}
            for key, size in zip(missed, np.median(width, axis=0), strict=True):
                yield {"part": "intervals", "stream": f"{forecasts}, {name}", "looks": len(days), "runs": runs,
                       "method": key, "value": missed[key] / runs, "before": float(size)}  # fmt: skip


def differences(runs):
    """The share of runs in which the interval of two models' difference ever misses, looked at from day 30 to 365."""
    rng = np.random.default_rng(11)
    p, q = FORECASTS["base rate .25"], special.expit(0.8 * special.logit(FORECASTS["base rate .25"]) - 0.2)
    gap = {"Brier": (p - 0) ** 2 - (q - 0) ** 2, "log": np.log((1 - q) / (1 - p))}
    hit = {"Brier": (p - 1) ** 2 - (q - 1) ** 2, "log": np.log(q / p)}
    missed = dict.fromkeys(gap, 0)
    for _ in range(runs):
        count = rng.multinomial(ROWS, np.full(ATOMS, 1 / ATOMS), LOOKS)
        true = rng.binomial(count, p)
        for score in gap:
            days = (true @ hit[score] + (count - true) @ gap[score]) / ROWS
            expected = (count @ (p * hit[score] + (1 - p) * gap[score])) / ROWS
            intervals = [(mean_sequence(days[:day]), expected[:day].mean()) for day in range(30, LOOKS + 1)]
            missed[score] += any(not interval.low <= mean <= interval.high for interval, mean in intervals)
    for score, times in missed.items():
        yield {"part": "difference", "stream": "two models", "looks": LOOKS, "runs": runs, "method": score,
               "value": times / runs}  # fmt: skip


def measured(runs, long):
    yield from false_alarms(FALSE, runs, LOOKS, METHODS)
    yield from false_alarms(BROKEN, runs, LOOKS, METHODS)
    yield from false_alarms(FALSE[:2], long, LONG, METHODS)
    yield from delays(runs // 2)
    yield from warnings_and_starts(runs // 2)
    yield from of_classes(runs // 4)
    yield from sequences(runs // 8)
    yield from differences(runs // 2)


COLUMNS = ["part", "stream", "looks", "runs", "method", "value", "before"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--long", type=int, default=100)
    parser.add_argument("--out", type=Path, default=DOCS)
    parser.add_argument("--page", action="store_true", help="write the page again, from the raw results that are there")
    options = parser.parse_args()
    raw = Path(options.out, "watch_study.csv")
    if not options.page:
        with raw.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
            writer.writeheader()
            for record in measured(options.runs, options.long):
                writer.writerow(record)
                print(*record.values(), flush=True)
    with raw.open(newline="") as file:
        Path(options.out, "watch_study.md").write_text(page(list(csv.DictReader(file))))
