"""Do the bands of reliability curves cover? Writes docs/bands_study.md and its raw results.

    python scripts/bands_study.py [--datasets 300] [--out docs]

Every band is held against what it says that it covers, on laws other than those on which the methods were tried out.
"""

import argparse
import csv
import itertools
import operator
import time
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.errors.local_linear import CELLS, LocalLines
from calibrant.inference.reliability_curves import binned, isotonic, smooth, spread

LEVEL = 0.9
SIZES = (200, 1000, 5000)
COLUMNS = ["band", "curve", "simultaneous", "forecasts", "law", "n", "datasets", "points", "whole", "width", "exact"]
DOCS = Path(__file__).parents[1] / "docs"


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


FORECASTS = {
    "spread": lambda rng, n: rng.beta(1.3, 0.9, n),
    "rare": lambda rng, n: sigmoid(rng.normal(-2.0, 1.2, n)),
    "ties": lambda rng, n: rng.beta(1.2, 1.2, n).round(1).clip(0.02, 0.98),
}
TRUTHS = {
    "calibrated": lambda p: p,
    "slope": lambda p: sigmoid(0.55 * np.log(p / (1 - p))),
    "shift": lambda p: sigmoid(np.log(p / (1 - p)) + 0.5),
    "wave": lambda p: np.clip(p + 0.05 * np.sin(5 * np.pi * p), 0, 1),
    "step": lambda p: np.where(p < 0.35, 0.12, np.where(p < 0.75, 0.5, 0.85)),
    "falling wave": lambda p: np.clip(p + 0.12 * np.sin(5 * np.pi * p), 0, 1),
}
CELLS_OF_EVENTS = [("spread", law, n) for law in TRUTHS for n in SIZES]
CELLS_OF_EVENTS += [("rare", law, n) for law in ("slope", "shift") for n in SIZES[:2]]
CELLS_OF_EVENTS += [("ties", law, n) for law in ("slope", "wave", "step") for n in SIZES[:2]]
FALLING = "falling wave"
"""The law whose true curve does not rise throughout: the isotonic band does not promise to cover it."""
GROUP = operator.itemgetter("band", "curve", "simultaneous")
CURVES = {"binned": binned(), "isotonic": isotonic, "smooth": smooth}


def averaged(table, chances):
    """The mean of the true chances in each of 15 bins."""
    code, counts = np.clip(np.ceil(15 * table.values).astype(int) - 1, 0, 14), np.diff(table.ranks)
    with np.errstate(invalid="ignore"):
        return np.bincount(code, counts * chances, 15) / np.bincount(code, counts, 15)


def smoothed(table, chances, points):
    """The true chances at the forecasts, with the weights of the smooth curve."""
    lines = LocalLines.of(table)
    place = table.values * CELLS
    cell = np.minimum(place.astype(int), CELLS - 1)
    counts, right = np.diff(table.ranks) * chances, place - cell
    hits = np.bincount(cell, counts * (1 - right), CELLS + 1) + np.bincount(cell + 1, counts * right, CELLS + 1)
    held, shares = lines.shares(points)
    return np.clip(shares @ hits[held], 0, 1)


def target(name, table, truth, band):
    """What the confidence band of a curve says that it covers, at the points of the band."""
    chances = truth(table.values)
    if name == "isotonic":
        return truth(band.forecast)
    return averaged(table, chances) if name == "binned" else smoothed(table, chances, band.forecast)


def covered(band, goal):
    """The share of points that are covered, and whether all are."""
    known = ~np.isnan(band.low) & ~np.isnan(goal)
    inside = (band.low[known] <= goal[known] + 1e-12) & (goal[known] <= band.high[known] + 1e-12)
    return inside.mean(), inside.all(), np.mean((band.high - band.low)[known])


def study(forecasts, law, n, datasets):
    """Rows of one kind of data: band, curve, coverage of points, of whole curves, of the true curve, mean width."""
    seen = {}
    truth = TRUTHS[law]
    for index in range(datasets):
        rng = np.random.default_rng([n, index, *map(ord, forecasts + law)])
        p = np.clip(FORECASTS[forecasts](rng, n), 1e-4, 1 - 1e-4)
        (table,) = cal.IsotonicError().summarise((rng.random(n) < truth(p)).astype(int), p).ladders()
        for (name, curve), simultaneous in itertools.product(CURVES.items(), (False, True)):
            band = cal.ConfidenceBand(LEVEL, simultaneous)(curve, table)
            exact = covered(band, truth(np.clip(band.forecast, 1e-4, 1 - 1e-4)))
            cover = (*covered(band, target(name, table, truth, band)), exact[simultaneous])
            seen.setdefault(("confidence", name, simultaneous), []).append(cover)
    return [(*key, forecasts, law, n, datasets, *np.mean(shares, axis=0)) for key, shares in seen.items()]


def calibrated(forecasts, n, datasets):
    """The same of consistency bands, which must hold the curve of calibrated forecasts."""
    rows = []
    rng = np.random.default_rng([n, *map(ord, forecasts)])
    p = np.clip(FORECASTS[forecasts](rng, n), 1e-4, 1 - 1e-4)
    tables = [
        next(cal.IsotonicError().summarise((rng.random(n) < p).astype(int), p).ladders()) for _ in range(datasets)
    ]
    for (name, curve), simultaneous in itertools.product(CURVES.items(), (False, True)):
        band = cal.ConsistencyBand(LEVEL, simultaneous, n=1000 if simultaneous else 200)(curve, tables[0])
        at = spread(len(curve(tables[0]).forecast))
        seen = [covered(band, curve(table).frequency[at]) for table in tables]
        key = ("consistency", name, simultaneous, forecasts, "calibrated", n, datasets)
        rows.append((*key, *np.mean(seen, axis=0), np.nan))
    return rows


def promised(row):
    """Whether the band of a row says that it covers under this law."""
    return not (row["curve"] == "isotonic" and row["band"] == "confidence" and row["law"] == FALLING)


def summary(rows):
    """One line for each band: the share that is covered, over the kinds of data on which it is promised."""
    lines = ["| band | curve | at | covered, mean | least | most | mean width | kinds of data |", "|---" * 8 + "|"]
    for key, some in itertools.groupby(sorted(rows, key=GROUP), key=GROUP):
        shares = [
            (row["whole"] if row["simultaneous"] else row["points"], row["width"]) for row in some if promised(row)
        ]
        covers, widths = zip(*shares, strict=True)
        at = "all forecasts at once" if key[2] else "each forecast"
        numbers = (
            f"{np.mean(covers):.1%} | {min(covers):.1%} | {max(covers):.1%} | {np.mean(widths):.3f} | {len(covers)}"
        )
        lines.append(f"| {key[0]} | {key[1]} | {at} | {numbers} |")
    return lines


def by_law(rows):
    """One line for each kind of data: coverage of the confidence bands of the whole curve."""
    lines = [
        "| forecasts | law | n | binned | isotonic | smooth | smooth, of the true curve itself |",
        "|---" * 7 + "|",
    ]
    whole = [row for row in rows if row["band"] == "confidence" and row["simultaneous"]]
    for key, some in itertools.groupby(whole, key=lambda row: (row["forecasts"], row["law"], row["n"])):
        cells = {row["curve"]: row for row in some}
        shares = [f"{cells[name]['whole']:.1%}" + " (not promised)" * (not promised(cells[name])) for name in CURVES]
        lines.append(f"| {key[0]} | {key[1]} | {key[2]:,} | {' | '.join(shares)} | {cells['smooth']['exact']:.1%} |")
    return lines


def page(rows, datasets, seconds):
    """The document."""
    text = f"""# Do the bands of reliability curves cover?

Written by `scripts/bands_study.py`: {datasets} data sets of each kind, bands of level {LEVEL:.0%}, in
{seconds:,.0f} seconds. Raw results are in `bands_study.csv`.
The chance error of a share is at most {1.96 * (0.25 / datasets) ** 0.5:.1%} either way.

**Forecasts.** "spread" is Beta(1.3, 0.9), "rare" has logits of mean -2, "ties" has eleven values. **Laws.** The event
happens with the chance p (calibrated), with .55 of its log-odds (slope), with log-odds .5 higher (shift),
p + .05 sin 5πp (wave), p + .12 sin 5πp ({FALLING}: it falls in places), or .12, .5 and .85 with jumps at .35 and .75
(step).

**What is to be covered.** Of a confidence band what it says: of bins the mean chance in the bin, of the isotonic curve
the chance itself, of the smooth curve the chances smoothed with the weights of the curve. Of a consistency band the
curves of calibrated forecasts. "Each forecast" is the mean share of points that are covered; "all at once" is the share
of data sets in which every point is.

## Summary

"""
    notes = f"""
The isotonic band promises nothing where the true curve falls, so that its rows of the {FALLING} are not in the summary.
Consistency bands are valid on average over their redraws. Here one band of each kind is held against all data sets,
so that its share varies by two to three points around the level.

## Confidence bands of the whole curve, by kind of data

"""
    return "\n".join([text + "\n".join(summary(rows)), notes + "\n".join(by_law(rows)), ""])


def main():
    """Run all, write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=300)
    parser.add_argument("--out", type=Path, default=DOCS)
    options = parser.parse_args()
    start, rows = time.perf_counter(), []
    for forecasts, n in itertools.product(FORECASTS, SIZES[:2]):
        rows += calibrated(forecasts, n, options.datasets)
    for forecasts, law, n in CELLS_OF_EVENTS:
        rows += study(forecasts, law, n, options.datasets)
    table = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    with open(options.out / "bands_study.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows({name: f"{x:.4f}" if isinstance(x, float) else x for name, x in row.items()} for row in table)
    seconds = time.perf_counter() - start
    (options.out / "bands_study.md").write_text(page(table, options.datasets, seconds), encoding="utf-8")


if __name__ == "__main__":
    main()
