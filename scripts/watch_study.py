"""How often does a watch raise a false alarm, and how soon a true one? Writes docs/watch_study.md and its raw results.

    python scripts/watch_study.py [--runs 400] [--long 100] [--parts delay ...] [--out docs]

Streams of forecasts and outcomes are simulated, many at once; each is looked at once a day.
"""

import argparse
import csv
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


def false_alarms(part, scenarios, runs, looks):
    for seed, (name, forecasts, change) in enumerate(scenarios):
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


HEAD = """# How often does a watch raise a false alarm, and how soon a true one?

**What is not guaranteed.** The level of a watch holds if each outcome happens with the probability of its forecast,
given all windows closed before it. It does not hold

- where outcomes come late: **neither choice of `--independent` holds if outcomes of a window are decided only after
  the next has begun**, as with defaults within 30 days and daily windows. No stream below is of that kind;
- where rows are left out, or labels are wrong, **by their outcome**: windows that are closed while labels of one
  outcome are still missing, or while labels are provisional (false alarms in 100% of runs below);
- with `--independent rows`, where **rows of a window move together**: days that move by .3 logits give false alarms
  in most runs. The watch then warns, after 100 days in all runs; by .1 logits it mostly does not. `--independent
  windows` holds there;
- with `--independent windows`, where the **number of rows or the other forecasts of a window** say something of its
  outcomes, as on busy days with other rates;
- for **corrections**: the e-value with late labels is told beside and raises no alarm;
- for the **start of a change**, which is an estimate, and for the interval of a difference of scores, which is
  asymptotic. The interval of a slope needs independent rows and one line for all windows.

**What is guaranteed** otherwise: over any number of looks, the chance of a false alarm is at most the level, here
5%. No tuning and no number of looks enters.

Written by `scripts/watch_study.py`; raw results are in `watch_study.csv`. Every stream has {rows} rows a day,
looked at once a day. Forecasts have 40 values: logits of mean -1.35 (base rate .25), -5.8 (rare) or 1.5 (top label)
and standard deviation 1, .8 or 1, or Beta(.15, .6) (skewed). Changes begin on day 101. A share of {runs} runs has a
chance error of at most {error} either way (two standard errors at 5%), one of {long} runs {long_error}.

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


def page(records):
    by = {part: [record for record in records if record["part"] == part] for part in PARTS}
    runs, long = int(by["false alarms"][0]["runs"]), int(by["many looks"][0]["runs"])
    error, long_error = (f"{200 * math.sqrt(0.05 * 0.95 / count):.1f}%" for count in (runs, long))
    classes = [[record["stream"], record["method"], share(record) if record["stream"] == "ten classes" else "–",
                "–" if record["stream"] == "ten classes" else median(record)] for record in by["classes"]]  # fmt: skip
    intervals = [
        [record["method"], record["stream"], share(record), f"{float(record['before']):.4f}"]
        for record in by["intervals"]
    ]
    parts = [
        HEAD.format(rows=ROWS, runs=runs, error=error, long=long, long_error=long_error),
        "## False alarms where the promise holds\n",
        f"Share of {runs} runs with an alarm in 365 looks.\n",
        crossed(by["false alarms"], share),
        f"\nShare of {long} runs with an alarm in 3,650 looks; starts are still spread over 365 days first.\n",
        crossed(by["many looks"], share),
        "\n## False alarms where it does not\n",
        f"Share of {runs} runs with an alarm in 365 looks. Forecasts are right on average in the first three lines.\n",
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
        "looked at on 13 days from 1 to 365, and its median width on day 365. The slope is constant here, "
        "as its interval needs.\n",
        table(["of", "stream", "ever missed", "width"], intervals),
        f"\nDifference of two models' scores, {by['difference'][0]['runs']} runs, looked at each day from 30 to 365:\n",
        table(["score", "ever missed"], [[record["method"], share(record)] for record in by["difference"]]),
    ]
    size, seconds = (float(record["value"]) for record in by["year"])
    parts += [
        "\n## A year of days of a million rows\n",
        f"The store of {by['year'][0]['looks']} windows with the sums of the time tree has {size:.0f} MB. A look at "
        f"it takes {seconds:.2f} seconds of one core.",
    ]
    return "\n".join(parts) + "\n"


def year(days=365, rows=1_000_000):
    """The store of a year of days of a million rows: its size, and how long a look takes. Four days are drawn."""
    rng, states = np.random.default_rng(21), []
    for _ in range(4):
        p = special.expit(rng.normal(-1.35, 1.0, rows))
        states.append(watch_state(cal.Predictions.from_probs(rng.random(rows) < p, p)))
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(Path(folder, "year.watch"))
        for day in range(days):
            watch.append(f"{day:03}", states[day % 4])
        size = watch.store.path.stat().st_size / 1e6
        start = time.process_time()
        count = len(Watch(watch.store.path).look().windows)
        seconds = time.process_time() - start
    for method, value in (("megabytes", size), ("seconds of a look", seconds)):
        yield {"part": "year", "stream": f"{days} days", "looks": count, "runs": 1, "method": method, "value": value}


PARTS = {
    "false alarms": lambda options: false_alarms("false alarms", FALSE, options.runs, LOOKS),
    "not guaranteed": lambda options: false_alarms("not guaranteed", BROKEN, options.runs, LOOKS),
    "many looks": lambda options: false_alarms("many looks", FALSE[:2], options.long, LONG),
    "delay": lambda options: delays(options.runs // 2),
    "warning": lambda options: warnings(options.runs // 2),
    "start": lambda options: starts(options.runs // 2),
    "classes": lambda options: of_classes(options.runs // 4),
    "intervals": lambda options: sequences(options.runs // 4),
    "difference": lambda options: differences(options.runs // 2),
    "year": lambda options: year(),
}
COLUMNS = ["part", "stream", "looks", "runs", "method", "value", "before"]


def kept(raw, parts):
    """The raw results that are there, but those of parts that are measured again."""
    if not raw.exists():
        return []
    with raw.open(newline="") as file:
        return [record for record in csv.DictReader(file) if record["part"] not in parts]


def main(options):
    raw = Path(options.out, "watch_study.csv")
    records = kept(raw, options.parts)
    for part in options.parts:
        for record in PARTS[part](options):
            records.append({name: str(record.get(name, "")) for name in COLUMNS})
            print(*record.values(), flush=True)
    with raw.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(records, key=lambda record: list(PARTS).index(record["part"])))
    Path(options.out, "watch_study.md").write_text(page(kept(raw, ())))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--long", type=int, default=100)
    parser.add_argument("--out", type=Path, default=DOCS)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS, help="measure these again")
    main(parser.parse_args())
