"""Do the bands of reliability curves cover? Writes docs/bands_study.md and its raw results.

    python scripts/bands_study.py [--datasets 300] [--jobs 1] [--out docs]

Every band is held against what it says that it covers, on laws other than those on which the methods were tried out.
"""

import argparse
import csv
import itertools
import operator
import time
from concurrent.futures import ProcessPoolExecutor
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
    "spread": lambda rng, n: rng.beta(0.8, 1.5, n),
    "rare": lambda rng, n: sigmoid(rng.normal(-2.6, 1.0, n)),
    "ties": lambda rng, n: (8 * rng.beta(1.5, 1.0, n)).round().clip(0.2, 7.8) / 8,
}
TRUTHS = {
    "calibrated": lambda p: p,
    "slope": lambda p: sigmoid(1.6 * np.log(p / (1 - p))),
    "shift": lambda p: sigmoid(np.log(p / (1 - p)) - 0.7),
    "wave": lambda p: np.clip(p + 0.07 * np.sin(4 * np.pi * p), 0, 1),
    "step": lambda p: np.where(p < 0.25, 0.08, np.where(p < 0.6, 0.45, 0.9)),
    "falling wave": lambda p: np.clip(p + 0.15 * np.sin(4 * np.pi * p), 0, 1),
}
BANDS = 10
"""Bands of calibrated forecasts, each of redraws of its own and held against its share of the data sets."""
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
    seen = {}
    rng = np.random.default_rng([n, *map(ord, forecasts)])
    p = np.clip(FORECASTS[forecasts](rng, n), 1e-4, 1 - 1e-4)
    for (name, curve), simultaneous, seed in itertools.product(CURVES.items(), (False, True), range(BANDS)):
        tables = [
            next(cal.IsotonicError().summarise((rng.random(n) < p).astype(int), p).ladders())
            for _ in range(datasets // BANDS)
        ]
        band = cal.ConsistencyBand(LEVEL, simultaneous, n=1000 if simultaneous else 200, seed=seed)(curve, tables[0])
        at = spread(len(curve(tables[0]).forecast))
        seen.setdefault((name, simultaneous), []).extend(covered(band, curve(table).frequency[at]) for table in tables)
    cell = forecasts, "calibrated", n, datasets
    return [("consistency", *key, *cell, *np.mean(shares, axis=0), np.nan) for key, shares in seen.items()]


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

**Forecasts.** "spread" is Beta(0.8, 1.5), "rare" has logits of mean -2.6, "ties" has nine values. **Laws.** The event
happens with the chance p (calibrated), with 1.6 times its log-odds (slope), with log-odds .7 lower (shift),
p + .07 sin 4πp (wave), p + .15 sin 4πp ({FALLING}: it falls in places), or .08, .45 and .9 with jumps at .25 and .6
(step). The smooth band was fitted to simulations on other laws; the binned and isotonic bands were fitted to none.

**What is to be covered.** Of a confidence band what it says: of bins the mean chance in the bin, of the isotonic curve
the chance itself, of the smooth curve the chances smoothed with the weights of the curve. Of a consistency band the
curves of calibrated forecasts. "Each forecast" is the mean share of points that are covered; "all at once" is the share
of data sets in which every point is.

## Summary

"""
    notes = f"""
The isotonic band promises nothing where the true curve falls, so that its rows of the {FALLING} are not in the summary.
Consistency bands are valid on average over their redraws: {BANDS} of each kind, each of redraws of its own, are held
against their shares of the data sets.

## Confidence bands of the whole curve, by kind of data

"""
    return "\n".join([text + "\n".join(summary(rows)), notes + "\n".join(by_law(rows)), ""])


def main():
    """Run all, write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=DOCS)
    options = parser.parse_args()
    start = time.perf_counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        cells = [(study, each, law, n) for each, law, n in itertools.product(FORECASTS, TRUTHS, reversed(SIZES))]
        cells += [(calibrated, each, n) for each, n in itertools.product(FORECASTS, SIZES[:2])]
        waiting = [pool.submit(*cell, options.datasets) for cell in cells]
        rows = [row for future in waiting for row in future.result()]
    table = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    with open(options.out / "bands_study.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows({name: f"{x:.4f}" if isinstance(x, float) else x for name, x in row.items()} for row in table)
    seconds = time.perf_counter() - start
    (options.out / "bands_study.md").write_text(page(table, options.datasets, seconds), encoding="utf-8")


if __name__ == "__main__":
    main()
