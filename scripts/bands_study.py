"""Do the bands of reliability curves cover? Writes docs/bands_study.md and its raw results.

    python scripts/bands_study.py [--datasets 300] [--out docs]

Every band is held against what it says that it covers, on laws other than those on which the methods were tried out.
"""

import argparse
import csv
import itertools
import time
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.errors.local_linear import CELLS, LocalLines
from calibrant.inference.reliability_curves import binned, isotonic, smooth

LEVEL, ENOUGH = 0.9, 0.88
SIZES = (200, 1000, 5000)
REDRAWS = 200
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
RISING = ("calibrated", "slope", "shift", "wave", "step")
CURVES = {"binned": binned(), "isotonic": isotonic, "smooth": smooth}


def averaged(curve, table, chances):
    """What a curve that is linear in the outcomes would be if outcomes were chances: the target of its band."""
    code = np.clip(np.ceil(15 * table.values).astype(int) - 1, 0, 14)
    counts = np.diff(table.ranks)
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
    return averaged(name, table, chances) if name == "binned" else smoothed(table, chances, band.forecast)


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
    return [("law", *key, forecasts, law, n, datasets, *np.mean(shares, axis=0)) for key, shares in seen.items()]


def calibrated(forecasts, n, datasets):
    """The same of consistency bands, which must hold the curve of calibrated forecasts."""
    rows = []
    rng = np.random.default_rng([n, *map(ord, forecasts)])
    p = np.clip(FORECASTS[forecasts](rng, n), 1e-4, 1 - 1e-4)
    tables = [
        next(cal.IsotonicError().summarise((rng.random(n) < p).astype(int), p).ladders()) for _ in range(datasets)
    ]
    for (name, curve), simultaneous in itertools.product(CURVES.items(), (False, True)):
        band = cal.ConsistencyBand(LEVEL, simultaneous, n=REDRAWS * (5 if simultaneous else 1))(curve, tables[0])
        at = np.searchsorted(curve(tables[0]).forecast, band.forecast) if name == "isotonic" else slice(None)
        seen = [covered(band, curve(table).frequency[at]) for table in tables]
        key = ("consistency", name, simultaneous, forecasts, "calibrated", n, datasets)
        rows.append(("law", *key, *np.mean(seen, axis=0), np.nan))
    return rows
