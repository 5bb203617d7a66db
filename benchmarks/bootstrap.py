"""How much faster the bootstrap's engines are than resampling rows in a NumPy loop, in the same run.

python benchmarks/bootstrap.py [--rows 50000] [--resamples 1000]
"""

import argparse
import platform
import time

import numpy as np

import calibrant as cal

LAWS = {"uniform": (1.0, 1.0), "Beta(2.8, 0.5)": (2.8, 0.5), "Beta(1.1, 0.1)": (1.1, 0.1)}


def loop(scores, outcomes, resamples):
    """The plain way: draw rows, bin them, add up."""
    rng = np.random.default_rng(1)
    edges = np.arange(1, 15) / 15
    n = len(scores)
    values = []
    for _ in range(resamples):
        rows = rng.integers(0, n, n)
        p, y = scores[rows], outcomes[rows]
        bins = np.digitize(p, edges, right=True)
        values.append(np.abs(np.bincount(bins, p, 15) - np.bincount(bins, y, 15)).sum() / n)
    return np.array(values)


def timed(run):
    start = time.perf_counter()
    values = run()
    return values, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--resamples", type=int, default=1_000)
    options = parser.parse_args()
    print(f"calibrant {cal.__version__}, NumPy {np.__version__}, Python {platform.python_version()}")
    print(f"{options.resamples} resamples of ECE, {options.rows} rows\n")
    print(f"{'scores':16s} {'engine':8s} {'seconds':>8s} {'times faster':>13s} {'mean':>9s} {'sd':>9s}")
    for name, law in LAWS.items():
        rng = np.random.default_rng(0)
        scores = rng.beta(*law, options.rows)
        outcomes = (rng.random(options.rows) < scores**1.2).astype(int)
        predictions = cal.Predictions.from_probs(outcomes, scores)
        runs = {"loop": lambda s=scores, y=outcomes: loop(s, y, options.resamples)}
        for engine in ("exact", "cells"):
            bootstrap = cal.Bootstrap(options.resamples, seed=0, engine=engine)
            runs[engine] = lambda b=bootstrap, p=predictions: b.replicates(cal.ECE, p)[:, 0]
        floor = None
        for engine, run in runs.items():
            values, seconds = timed(run)
            floor = floor or seconds
            speed = f"{seconds:8.3f} {floor / seconds:13.1f}"
            print(f"{name:16s} {engine:8s} {speed} {values.mean():9.5f} {values.std():9.5f}")


if __name__ == "__main__":
    main()
