"""How much faster simulations are for many replicates at once than in a plain loop over them, in the same run.

python benchmarks/simulate.py [--replicates 1000] [--jobs 2]
"""

import argparse
import platform
import time
import tracemalloc

import numpy as np

import calibrant as cal
from calibrant import simulate

ROOTED = {"distance": cal.squared, "aggregate": cal.root_mean}
LEFT = cal.EqualWidth(15, closed="left")
FIT = simulate.PUBLISHED["resnet110_c10"]
METRICS = {
    "equal width": cal.BinnedError(binning=LEFT, **ROOTED),
    "equal mass": cal.BinnedError(binning=cal.EqualMass(15), **ROOTED),
    "debiased": cal.ECE_DEBIASED,
    "sweep": cal.BinnedError(binning=cal.Sweep(), **ROOTED),
    "label-binned": cal.ECE_LB,
}
SIZES = (200, 400, 800, 1600, 3200, 6400)
BINS = (2, 4, 8, 16, 32, 64)


def loop(metric, n, replicates):
    """The plain way: draw one replicate, pass the door, ask the metric; again."""
    rng = np.random.default_rng(1)
    values = []
    for _ in range(replicates):
        scores = rng.beta(FIT.scores.a, FIT.scores.b, n)
        outcomes = (rng.random(n) < FIT.curve(scores)).astype(int)
        values.append(metric(outcomes, scores).value)
    return np.array(values)


def at_once(metric, n, replicates):
    return simulate.estimates({"it": metric}, FIT.scores, FIT.curve, n, replicates)["it"][:, 0]


def timed(run, *args):
    start = time.perf_counter()
    values = run(*args)
    return values, time.perf_counter() - start


def peak(n, replicates):
    tracemalloc.start()
    at_once(METRICS["sweep"], n, replicates)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print(f"calibrant {cal.__version__}, NumPy {np.__version__}, Python {platform.python_version()}")
    print(f"{options.replicates} replicates\n")
    print(f"{'metric':14s} {'n':>5s} {'loop, s':>9s} {'at once, s':>11s} {'times faster':>13s} {'means':>17s}")
    for name, metric in METRICS.items():
        for n in (200, 3200):
            plain, slow = timed(loop, metric, n, options.replicates)
            fast, quick = timed(at_once, metric, n, options.replicates)
            means = f"{plain.mean():.5f} {fast.mean():.5f}"
            print(f"{name:14s} {n:5d} {slow:9.3f} {quick:11.3f} {slow / quick:13.1f} {means:>17s}")
    run = {"replicates": options.replicates, "n_jobs": options.jobs}
    grid = {"EW": METRICS["equal width"]}
    _, seconds = timed(lambda: simulate.bias_grid(grid, FIT.scores, FIT.curve, SIZES, BINS, **run))
    print(f"\n36 cells (n 200 to 6400, 2 to 64 bins) with {options.jobs} processes: {seconds:.1f} s")
    print("\npeak memory of the sweep at n = 2000, MB: " + ", ".join(
        f"{peak(2000, replicates):.1f} with {replicates} replicates" for replicates in (100, 1000, 5000)
    ))  # fmt: skip


if __name__ == "__main__":
    main()
