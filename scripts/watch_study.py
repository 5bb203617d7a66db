"""How often does a watch raise a false alarm, and how soon a true one? Writes docs/watch_study.md and its raw results.

    python scripts/watch_study.py [--parts delay ...] [--again] [--fewer 10] [--out docs]

Streams of forecasts and outcomes are simulated, many at once; each is looked at once a day. Streams whose raw results
are there are not measured again, so that a study that was stopped goes on.
"""

import argparse
import csv
import itertools
import math
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import special, stats

import calibrant as cal
from calibrant.binning import cells
from calibrant.watch import Watch, watch_state
from calibrant.watch.bets import CellCounts
from calibrant.watch.confidence_sequences import (
    log_slope_mixture,
    mean_gap_sequence,
    slope_sequence,
    window_gap_sequence,
)
from calibrant.watch.day_bets import DayBets
from calibrant.watch.e_processes import EProcess
from calibrant.watch.looks import arrival_shares, change_start, e_bh, is_scattered, scatter
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
    "Beta(2, 5)": quantiles(stats.beta(2, 5)),
}


def stream(forecasts, runs, looks, seed, *, shift=0.0, slope=1.0, day=0.0, busy=0.0, decided=0, rows=None,
           kept=(1.0, 1.0), read=1.0):  # fmt: skip
    """Each day's counts in many runs: from day 101 on, log-odds are `slope` times as large and `shift` larger.

    `day` moves all log-odds of a day up or down together, calibrated on average. `busy` moves them up by so much on
    days of 450 rows, down by three times as much on days of 150 rows. `decided`: outcomes depend on what happens in so
    many days after their own, and share these with other days. `rows` are the fewest and the most of a day, even
    in their logarithm. `kept` are the shares of positives and of negatives whose labels arrive before the window is
    closed, `read` that of positives not recorded as negatives.
    """
    rng, p = np.random.default_rng(seed), FORECASTS[forecasts]
    odds, cell, spread = special.logit(p), cells.numbers(p), p * (1 - p)
    events = rng.standard_normal((looks + decided, runs, 1)) if decided else None
    for look in range(looks):
        changed = look >= CHANGE
        chance = special.expit(odds * (slope if changed else 1.0) + (shift if changed else 0.0))
        size = ROWS if rows is None else np.exp(rng.uniform(*np.log(rows), runs)).round().astype(int)
        if day:
            half = (special.expit(odds + day) - special.expit(odds - day)) / 2
            chance = chance + half * rng.choice([-1, 1], (runs, 1))
        if busy:
            is_busy = rng.random((runs, 1)) < 0.5
            chance = chance + np.where(is_busy, busy, -3 * busy) * spread
            size = np.where(is_busy[:, 0], 450, 150)
        if decided:
            mean = events[look : look + decided].sum(axis=0) / math.sqrt(decided)
            chance = chance + 0.3 * spread * mean.clip(-3, 3)
        count = rng.multinomial(size, np.full(ATOMS, 1 / ATOMS), runs)
        true = rng.binomial(count, np.broadcast_to(chance, count.shape))
        positives, negatives = (
            rng.binomial(part, share) for part, share in zip((true, count - true), kept, strict=True)
        )
        count, hits = positives + negatives, rng.binomial(positives, read)
        yield CellCounts(cell, count.astype(float), hits.astype(float), count * p)


def arrived(wait, *means):
    """The shares of labels that have come when a window is closed, if they take so many days on average."""
    return tuple(1 - math.exp(-wait / mean) for mean in means)


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
    """Two-sample Kolmogorov-Smirnov of a day's forecasts against those of the first 30 days; asymptotic limit."""

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
    *((forecasts, forecasts, {}) for forecasts in tuple(FORECASTS)[:4]),
    ("labels of 10% missing, whatever the outcome", "base rate .25", {"kept": (0.9, 0.9)}),
    ("50 to 2,000 rows a day, whatever happens", "base rate .25", {"rows": (50, 2000)}),
]
SHAPES = [
    ("Beta(2, 5), 300 rows a day", "Beta(2, 5)", {}),
    ("Beta(2, 5), 3 to 5,000 rows a day", "Beta(2, 5)", {"rows": (3, 5000)}),
    ("rare, 3 to 5,000 rows a day", "rare, .4%", {"rows": (3, 5000)}),
]
LONGER = [*FALSE[:2], SHAPES[1]]
BROKEN = [
    ("days move by .1 logits", "base rate .25", {"day": 0.1}),
    ("days move by .3 logits", "base rate .25", {"day": 0.3}),
    ("days move by .5 logits, rare", "rare, .4%", {"day": 0.5}),
    ("busy days of 450 rows with more events, quiet ones of 150 with fewer", "base rate .25", {"busy": 0.1}),
    ("outcomes decided in the 30 days after their own", "base rate .25", {"decided": 30}),
    ("outcomes decided in the 3 days after their own", "base rate .25", {"decided": 3}),
]
PROVISIONAL = "20% of the positives recorded as negatives for 7 days"
LATE = [
    ("labels take 2 days, closed after 1 day", "base rate .25", {"kept": arrived(1, 2, 2)}),
    ("labels take 2 days, closed after 3 days", "base rate .25", {"kept": arrived(3, 2, 2)}),
    ("rare, labels take 2 days, closed after 1 day", "rare, .4%", {"kept": arrived(1, 2, 2)}),
    ("positives take 1 day, negatives 3, closed after 3 days", "base rate .25", {"kept": arrived(3, 1, 3)}),
    ("positives take 1 day, negatives 3, closed after 10 days", "base rate .25", {"kept": arrived(10, 1, 3)}),
    ("positives take 1 day, negatives 3, closed after 40 days", "base rate .25", {"kept": arrived(40, 1, 3)}),
    (f"{PROVISIONAL}, closed after 3 days", "base rate .25", {"read": 0.8}),
    (f"{PROVISIONAL}, closed after 8 days", "base rate .25", {"read": 1.0}),
]
DELAYS = [
    ("logits .1 higher", "base rate .25", {"shift": 0.1}),
    ("logits .2 higher", "base rate .25", {"shift": 0.2}),
    ("logits .4 higher", "base rate .25", {"shift": 0.4}),
    ("logits .4 higher, rare", "rare, .4%", {"shift": 0.4}),
    ("logits .3 lower, top label", "top label", {"shift": -0.3}),
    ("logits 1.15 times as large", "base rate .25", {"slope": 1.15}),
]


def false_alarms(part, scenarios, runs, looks, there):
    for seed, (name, forecasts, change) in enumerate(scenarios):
        if name in there:
            continue
        first = first_alarms(forecasts, runs, looks, seed, METHODS, **change)
        for method, days in first.items():
            yield {"part": part, "stream": name, "looks": looks, "runs": runs, "method": method,
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


def warnings(runs):
    """How often a watch says, after 100 days, that days move together."""
    for name, forecasts, change in [*FALSE[:4], *BROKEN[:3]]:
        days = np.stack([path_sums(counts) for counts in stream(forecasts, runs, 100, 200, **change)], 1)
        told = [is_scattered(scatter(run[:, 0], run[:, 1]), 100) for run in days]
        yield {"part": "warning", "stream": name, "looks": 100, "runs": runs, "method": WATCH[0],
               "value": float(np.mean(told))}  # fmt: skip


def starts(runs):
    """How far the estimate of the start of a change is off when the alarm is raised."""
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


def of_classes(runs):
    """Alarms of ten classes: calibrated, and with the first class 1.5 times as frequent from day 101 on."""
    rng = np.random.default_rng(5)
    p = special.softmax(1.6 * rng.standard_normal((60, 10)), axis=1)
    weights = np.where(np.arange(10) == 0, 1.5, 1.0)
    usual = class_alarms(rng, p, np.ones(10), None, runs)
    changed = class_alarms(rng, p, weights, None, runs)
    other = rng.dirichlet(np.full(10, 0.5), 60).clip(1e-6)
    varied = class_alarms(rng, other / other.sum(1, keepdims=True), np.ones(10), (3, 5000), runs)
    for name, first in (
        ("ten classes", usual),
        ("ten classes, Dirichlet(.5), 3 to 5,000 rows a day", varied),
        ("ten classes, one 1.5 times as frequent", changed),
    ):
        for method, days in first.items():
            late = np.where(days == 0, np.inf, days)[(days == 0) | (days > CHANGE)] - CHANGE
            yield {"part": "classes", "stream": name, "looks": LOOKS, "runs": runs, "method": method,
                   "value": float(np.median(late)) if first is changed else float((days > 0).mean())}  # fmt: skip


def class_alarms(rng, p, factor, rows, runs):
    """The day of the first alarm, of the top label alone and with each class beside it; 0 where there is none."""
    atoms, classes = p.shape
    views = [(p.max(1), p.argmax(1)), *((p[:, each], np.full(atoms, each)) for each in range(classes))]
    processes = [EProcess(RowBets()) for _ in views]
    first = {"top label": np.zeros(runs, int), "top label and classes": np.zeros(runs, int)}
    for day in range(1, LOOKS + 1):
        chance = p * (factor if day > CHANGE else 1.0)
        chance = chance / chance.sum(1, keepdims=True)
        size = ROWS if rows is None else np.exp(rng.uniform(*np.log(rows), runs)).round().astype(int)
        count = rng.multinomial(size, np.full(atoms, 1 / atoms), runs)
        labels = rng.multinomial(count, chance)
        for place, (forecast, label) in enumerate(views):
            hits = labels[:, np.arange(atoms), label].astype(float)
            counts = CellCounts(cells.numbers(forecast), count.astype(float), hits, count * forecast)
            processes[place] = processes[place].after(counts)
        log_e = np.stack([process.log_e for process in processes])
        mean = np.logaddexp.reduce(log_e[1:], axis=0) - math.log(classes)
        both = np.logaddexp(log_e[0], mean) - math.log(2)
        for method, value in zip(first, (log_e[0], both), strict=True):
            first[method][(first[method] == 0) & (value >= -math.log(LEVEL))] = day
    return first


def of_groups(runs, groups=12):
    """False discoveries among groups of 25 rows a day, of which one arrives every ten days."""
    cell, p = cells.numbers(FORECASTS["base rate .25"]), FORECASTS["base rate .25"]
    for name, moved in (("logits of 3 groups .8 higher", [3, 7, 11]), ("no group moved", [])):
        rng, shifted = np.random.default_rng(17), np.isin(np.arange(groups), moved)
        chance = np.where(shifted[:, None], special.expit(special.logit(p) + 0.8), p)
        process, first, last, named = EProcess(RowBets()), np.full(runs, np.nan), np.zeros(runs), np.zeros(runs)
        for day in range(200):
            here = min(1 + day // 10, groups)
            count = rng.multinomial(25, np.full(ATOMS, 1 / ATOMS), (runs, groups)) * (np.arange(groups) < here)[:, None]
            hits = rng.binomial(count, chance)
            process = process.after(CellCounts(cell, count.astype(float), hits.astype(float), count * p))
            shares = arrival_shares([[str(group)] for group in range(here)])
            for run, values in enumerate(process.log_e[:, :here].tolist()):
                told = [int(each) for each in e_bh(dict(zip(shares, values, strict=True)), shares, LEVEL)]
                last[run] = float(np.mean(~shifted[told])) if told else 0.0
                named[run] = shifted[told].sum()
                if told and math.isnan(first[run]):
                    first[run] = last[run]
        for method, rates in (("the first that names one", np.nan_to_num(first)), ("the last, after 200 days", last)):
            yield {"part": "groups", "stream": name, "looks": 200, "runs": runs, "method": method,
                   "value": float(rates.mean()), "before": float(named.mean())}  # fmt: skip


SEEN = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 365)
"""The days on which intervals are looked at."""


def sequences(runs, there):
    """The share of runs in which an interval of level 95% ever misses, among looks that become rarer."""
    truth = {"calibrated": (0.0, 1.0), "logits .2 higher, 1.15 times as large": (0.2, 1.15)}
    for forecasts, (name, (shift, slope)) in itertools.product(tuple(FORECASTS)[:4], truth.items()):
        if f"{forecasts}, {name}" in there:
            continue
        p = FORECASTS[forecasts]
        cell, rng, width = cells.numbers(p), np.random.default_rng(9), []
        odds = special.logit(p)
        chance = special.expit(shift + slope * odds)
        missed = {"mean gap": 0, "slope": 0}
        for run in range(runs):
            total, ever = np.zeros((2, ATOMS)), dict.fromkeys(missed, False)
            for days in np.diff((0, *SEEN)):
                count = rng.multinomial(ROWS * days, np.full(ATOMS, 1 / ATOMS))
                total += np.stack([count, rng.binomial(count, chance)])
                counts = CellCounts(cell, total[0], total[1], total[0] * p)
                gap = mean_gap_sequence(total[0].sum(), total[1].sum(), counts.total.sum(), 0.95)
                true = (total[0] * (p - chance)).sum() / total[0].sum()
                ever["mean gap"] |= not gap.low <= true <= gap.high
                if 0 < total[1].sum() < total[0].sum():
                    ever["slope"] |= log_slope_mixture(*total, odds)(slope) >= -math.log(0.05)
            if run % 8 == 0:
                line = slope_sequence(counts, 0.95)
                width.append((gap.high - gap.low, line.high - line.low))
            missed = {key: missed[key] + ever[key] for key in missed}
        for key, size in zip(missed, np.median(width, axis=0), strict=True):
            yield {"part": "intervals", "stream": f"{forecasts}, {name}", "looks": len(SEEN), "runs": runs,
                   "method": key, "value": missed[key] / runs, "before": float(size)}  # fmt: skip


def window_sequences(runs):
    """The same of the mean gap over windows, where rows may move together."""
    for seed, (name, forecasts, change) in enumerate((FALSE[0], *BROKEN[:3], SHAPES[1], DELAYS[2])):
        days = list(stream(forecasts, runs, LOOKS, 400 + seed, **change))
        odds = special.logit(FORECASTS[forecasts])
        drift = FORECASTS[forecasts] - special.expit(odds + change.get("shift", 0.0))
        size = np.stack([day.count.sum(-1) for day in days], -1)
        mean, rate = (np.stack([part(day).sum(-1) for day in days], -1) / size for part in (total_of, hits_of))
        true = np.stack([(day.count * drift * (place >= CHANGE)).sum(-1) for place, day in enumerate(days)], -1) / size
        missed, width = 0, []
        for run in range(runs):
            intervals = [window_gap_sequence(mean[run, :day], rate[run, :day], 0.95) for day in SEEN]
            missed += any(not each.low <= true[run, :day].mean() <= each.high
                          for each, day in zip(intervals, SEEN, strict=True))  # fmt: skip
            width.append(intervals[-1].high - intervals[-1].low)
        yield {"part": "window intervals", "stream": name, "looks": len(SEEN), "runs": runs, "method": "mean gap",
               "value": missed / runs, "before": float(np.median(width))}  # fmt: skip


def total_of(counts):
    return counts.total


def hits_of(counts):
    return counts.hits


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


HEAD = """# How often does a watch raise a false alarm, and how soon a true one?

**What is not guaranteed.** The level of a watch holds if each outcome happens with the probability of its forecast,
given all windows closed before it. It does not hold

- where outcomes take longer than a window: **neither choice of `--independent` holds if outcomes of a window are
  decided only after the next has begun**, as with defaults within 30 days and daily windows. Below, outcomes that
  depend on the 30 days after their own give false alarms in {decided} of runs with rows taken as independent, and in
  {decided_windows} with windows. Labels that merely arrive late do no harm, as long as windows are
  closed in their order;
- where rows are left out, or labels are wrong, **by their outcome**. Windows that are closed when positives have come
  and negatives have not, or while labels are provisional, give false alarms in {first} and {provisional} of runs. When
  all but {missing} of the negatives have come, it is still {few}. The level holds again once windows are closed after
  labels of both outcomes are in and final. Delays that are the same for both outcomes do no harm, whenever a window
  is closed;
- with `--independent rows`, where **rows of a window move together**: days that move by .3 logits give false alarms
  in {moved} of runs. The watch then warns, after 100 days in {warned} of runs; by .1 logits in {little}.
  `--independent windows` holds there;
- with `--independent windows`, where the **number of rows or the other forecasts of a window** say something of its
  outcomes: busy days with more events give false alarms in {busy} of runs. Numbers of rows that vary for other
  reasons do no harm;
- for **corrections**: the e-value with late labels is told beside and raises no alarm;
- for the **start of a change**, which is an estimate, and for the interval of a difference of scores, which is
  asymptotic. The interval of a slope needs independent rows and one line for all windows;
- for **all groups that were ever named**: their false discovery rate is that of one look.

**What is guaranteed** otherwise: over any number of looks, the chance of a false alarm is at most the level, here
5%. No tuning and no number of looks enters.

Written by `scripts/watch_study.py`; raw results are in `watch_study.csv`. Unless a line says otherwise, a stream has
{rows} rows a day, looked at once a day. Forecasts have 40 values: logits of mean -1.35 (base rate .25), -5.8 (rare) or
1.5 (top label) and standard deviation 1, .8 or 1, or those of a Beta(.15, .6) (skewed) or Beta(2, 5) distribution.
Changes begin on day 101. A share of {runs} runs has a chance error of at most {error} either way (two standard errors
at 5%), one of {long} runs {long_error}.

Beside the watch stand what is often done instead: a z-test of each day, at 5% or at 5% divided by the number of
looks (Bonferroni); a z-test of all days so far, with Bonferroni; a CUSUM of daily z whose limit was tuned on normal
z to 5% over 365 looks; and a two-sample Kolmogorov-Smirnov test of each day's forecasts against those of the first
30 days, with Bonferroni, as drift monitors use it.
"""


def table(header, rows):
    return "\n".join(["| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]])


def crossed(records, form, first="stream"):
    """A row a stream, a column a method."""
    streams, methods = (list(dict.fromkeys(record[key] for record in records)) for key in ("stream", "method"))
    values = {(record["stream"], record["method"]): form(record) for record in records}
    return table([first, *methods], [[stream, *(values[stream, method] for method in methods)] for stream in streams])


def share(record):
    return f"{100 * float(record['value']):.1f}%"


def median(record):
    days, before = float(record["value"]), float(record["before"] or 0)
    shown = "–" if math.isnan(days) else "never" if math.isinf(days) else f"{days:g}"
    return f"{shown} ({100 * before:.0f}% before)" if before >= 0.03 else shown


def head(by):
    """The first lines, with the shares of the tables below."""

    def at(part, name, method=WATCH[0]):
        return next(share(each) for each in by[part] if each["stream"] == name and each["method"] == method)

    runs, long = int(by["false alarms"][0]["runs"]), int(by["many looks"][0]["runs"])
    error, long_error = (f"{200 * math.sqrt(0.05 * 0.95 / count):.1f}%" for count in (runs, long))
    slow = "outcomes decided in the 30 days after their own"
    return HEAD.format(
        decided=at("not guaranteed", slow), decided_windows=at("not guaranteed", slow, WATCH[1]),
        first=at("late", LATE[3][0]), provisional=at("late", f"{PROVISIONAL}, closed after 3 days"),
        missing=f"{100 * (1 - LATE[4][2]['kept'][1]):.1f}%", few=at("late", LATE[4][0]),
        moved=at("not guaranteed", BROKEN[1][0]), warned=at("warning", BROKEN[1][0]),
        little=at("warning", BROKEN[0][0]), busy=at("not guaranteed", BROKEN[3][0], WATCH[1]),
        rows=ROWS, runs=runs, error=error, long=long, long_error=long_error,
    )  # fmt: skip


def page(records):
    by = {part: [record for record in records if record["part"] == part] for part in PARTS}
    runs, long = int(by["false alarms"][0]["runs"]), int(by["many looks"][0]["runs"])
    classes = []
    for record in by["classes"]:
        cells_of = ("–", median(record)) if "frequent" in record["stream"] else (share(record), "–")
        classes.append([record["stream"], record["method"], *cells_of])
    intervals = [
        [record["method"], record["stream"], share(record), f"{float(record['before']):.4f}"]
        for record in [*by["intervals"], *by["window intervals"]]
    ]
    groups = [
        [record["stream"], record["method"], share(record), f"{float(record['before']):.1f}"] for record in by["groups"]
    ]
    parts = [
        head(by),
        "## False alarms where the promise holds\n",
        f"Share of {runs} runs with an alarm in 365 looks.\n",
        crossed(by["false alarms"], share),
        f"\nShare of {long} runs with an alarm in 3,650 looks; starts are still spread over 365 days first.\n",
        crossed(by["many looks"], share),
        "\nForecasts and numbers of rows of shapes that were not looked at while the watch was built:\n",
        crossed(by["shapes"], share),
        "\n## Late labels\n",
        f"Share of {runs} runs with an alarm in 365 looks. Delays are exponential with the mean that is named; labels "
        "that have not come when a window is closed are left out. In the last two lines, labels are corrected after 7 "
        "days.\n",
        crossed(by["late"], share),
        "\n## False alarms where it does not\n",
        f"Share of {runs} runs with an alarm in 365 looks. Forecasts are right on average in all of them.\n",
        crossed(by["not guaranteed"], share),
        "\nShare of runs in which the watch warns after 100 days that windows move together:\n",
        table(["stream", "warned"], [[record["stream"], share(record)] for record in by["warning"]]),
        "\n## Days until an alarm\n",
        f"Median over {by['delay'][0]['runs']} runs, of those without an alarm before the change. Where more "
        "than 3% of runs had one, their share stands beside.\n",
        crossed(by["delay"], median),
        "\nA CUSUM that is tuned to so many looks at such z is sooner. Its false alarms are those of the tables above: "
        "they grow with the looks, with rare events and with days that move together.",
        "\nHow far the estimated start of the change is from the true one at the alarm, in days (median):\n",
        table(["stream", "days off"], [[record["stream"], f"{float(record['value']):g}"] for record in by["start"]]),
        "\n## Ten classes\n",
        f"{by['classes'][0]['runs']} runs. With `--classes`, the e-value is the mean of that of the top label and of "
        "the mean over classes.\n",
        table(["stream", "watched", "false alarms", "days until an alarm"], classes),
        "\n## Intervals\n",
        f"Share of {by['intervals'][0]['runs']} runs in which a confidence sequence of level 95% ever misses, "
        "looked at on 13 days from 1 to 365, and its median width on day 365, of each eighth run in the first lines. "
        "The slope is constant here, as its interval needs. The last lines are the mean gap over windows, of "
        "`--independent windows`.\n",
        table(["of", "stream", "ever missed", "width"], intervals),
        f"\nDifference of two models' scores, {by['difference'][0]['runs']} runs, looked at each day from 30 to 365:\n",
        table(["score", "ever missed"], [[record["method"], share(record)] for record in by["difference"]]),
        "\n## Groups that keep arriving\n",
        f"Mean share of false ones among the groups that are named, {by['groups'][0]['runs']} runs at a false "
        "discovery rate of 5%. There are 12 groups of 25 rows a day; one arrives every ten days.\n",
        table(["stream", "look", "false", "named rightly after 200 days"], groups),
    ]
    size, seconds = (float(record["value"]) for record in by["year"])
    parts += [
        "\n## A year of days of a million rows\n",
        f"All days are drawn afresh. The store of {by['year'][0]['looks']} windows with the sums of the time tree has "
        f"{size:.0f} MB. A look at it takes {seconds:.2f} seconds of one core.",
    ]
    return "\n".join(parts) + "\n"


def year(days=365, rows=1_000_000):
    """The store of a year of days of a million rows: its size, and how long a look takes."""
    rng = np.random.default_rng(21)
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(Path(folder, "year.watch"))
        for day in range(days):
            p = special.expit(rng.normal(-1.35, 1.0, rows))
            watch.append(f"{day:03}", watch_state(cal.Predictions.from_probs(rng.random(rows) < p, p)))
        size = watch.store.path.stat().st_size / 1e6
        start = time.process_time()
        count = len(Watch(watch.store.path).look().windows)
        seconds = time.process_time() - start
    for method, value in (("megabytes", size), ("seconds of a look", seconds)):
        yield {"part": "year", "stream": f"{days} days", "looks": count, "runs": 1, "method": method, "value": value}


PARTS = {
    "late": (1000, lambda runs, there: false_alarms("late", LATE, runs, LOOKS, there)),
    "not guaranteed": (1000, lambda runs, there: false_alarms("not guaranteed", BROKEN, runs, LOOKS, there)),
    "shapes": (1000, lambda runs, there: false_alarms("shapes", SHAPES, runs, LOOKS, there)),
    "false alarms": (1000, lambda runs, there: false_alarms("false alarms", FALSE, runs, LOOKS, there)),
    "groups": (400, lambda runs, there: () if there else of_groups(runs)),
    "window intervals": (400, lambda runs, there: () if there else window_sequences(runs)),
    "intervals": (400, lambda runs, there: sequences(runs, there)),
    "delay": (400, lambda runs, there: () if there else delays(runs)),
    "warning": (200, lambda runs, there: () if there else warnings(runs)),
    "start": (400, lambda runs, there: () if there else starts(runs)),
    "classes": (200, lambda runs, there: () if there else of_classes(runs)),
    "difference": (400, lambda runs, there: () if there else differences(runs)),
    "year": (1, lambda runs, there: () if there else year()),
    "many looks": (300, lambda runs, there: false_alarms("many looks", LONGER, runs, LONG, there)),
}
"""Each part: how many runs, and what yields the records of streams that are not there."""
COLUMNS = ["part", "stream", "looks", "runs", "method", "value", "before"]


def kept(raw, parts=()):
    """The raw results that are there, but those of parts that are measured again."""
    if not raw.exists():
        return []
    with raw.open(newline="") as file:
        return [record for record in csv.DictReader(file) if record["part"] not in parts]


def main(options):
    raw = Path(options.out, "watch_study.csv")
    for part in options.parts or PARTS:
        runs, measure = PARTS[part]
        records = kept(raw, [part] if options.again else [])
        there, start = {record["stream"] for record in records if record["part"] == part}, time.process_time()
        measured = measure(max(runs // options.fewer, 1), there)
        for name, group in itertools.groupby(measured, key=lambda record: record["stream"]):
            records += [{column: str(record.get(column, "")) for column in COLUMNS} for record in group]
            write(raw, records)
            print(f"{part}, {name}: {time.process_time() - start:.0f} seconds so far", flush=True)
    Path(options.out, "watch_study.md").write_text(page(kept(raw)))


def write(raw, records):
    """Write the raw results, beside those that are there and then in their place."""
    with raw.with_suffix(".part").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(records, key=lambda record: list(PARTS).index(record["part"])))
    raw.with_suffix(".part").replace(raw)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fewer", type=int, default=1, help="divide the number of runs by so much")
    parser.add_argument("--out", type=Path, default=DOCS)
    parser.add_argument("--parts", nargs="*", choices=PARTS, help="these alone")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    main(parser.parse_args())
