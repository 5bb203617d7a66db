"""How times grow with rows, classes and bins, as exponents; writes benchmarks/results/growth.txt.

    python benchmarks/growth.py [--most 1e8] > benchmarks/results/growth.txt

The exponent is the slope of log time on log size over the upper half of the sizes, where fixed costs no longer show: 1
is a time in proportion. Processor time of one thread, the shortest of three calls.
"""

import argparse
import time

import numpy as np
from matrix import forecasts

import calibrant as cal


def shortest(call, times=3):
    durations = []
    for _ in range(times):
        started = time.process_time()
        call()
        durations.append(time.process_time() - started)
    return min(durations)


def exponent(sizes, seconds):
    """The slope on logarithmic scales over the upper half of the sizes."""
    upper = slice(len(seconds) // 2, len(seconds))  # some are not asked at the largest sizes
    return np.polyfit(np.log(sizes[upper]), np.log(seconds[upper]), 1)[0]


def series(title, sizes, calls):
    """A line for each metric: its time at each size, and the exponent."""
    print(f"\n{title}: ms at {', '.join(f'{size:,}' for size in sizes)}; exponent")
    seconds = {}
    for size in sizes:
        for name, call in calls(size).items():
            seconds.setdefault(name, []).append(shortest(call))
    for name, taken in seconds.items():
        times = " ".join(f"{1e3 * second:10.2f}" for second in taken)
        print(f"{name:24s} {times}   {exponent(sizes, taken):5.2f}", flush=True)


def events(n):
    rng = np.random.default_rng(0)
    p = rng.random(n, dtype=np.float32)
    y = (rng.random(n, dtype=np.float32) < p).astype(np.int8)
    metrics = {"ECE": cal.ECE, "equal mass": cal.ADAPTIVE_ECE, "Brier score": cal.BRIER, "log loss": cal.LOG_LOSS}
    metrics |= {"sweep": cal.ECE_SWEEP, "Kolmogorov-Smirnov": cal.CumulativeError()} if n <= 10**7 else {}
    return {name: lambda metric=metric: metric(y, p) for name, metric in metrics.items()}


def classes(k):
    y, p = forecasts(max(2_000_000 // k, 100), k)
    metrics = {"ECE": cal.ECE, "SCE": cal.SCE, "ACE": cal.ACE, "Brier score": cal.BRIER}
    return {name: lambda metric=metric: metric(y, p) for name, metric in metrics.items()}


def bins(number):
    rng = np.random.default_rng(0)
    p = rng.random(1_000_000, dtype=np.float32)
    y = (rng.random(len(p)) < p).astype(np.int8)
    kinds = {"equal width": cal.EqualWidth, "equal mass": cal.EqualMass}
    return {name: lambda kind=kind: cal.BinnedError(binning=kind(number))(y, p) for name, kind in kinds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=float, default=1e8)
    options = parser.parse_args()
    print(f"calibrant {cal.__version__}, NumPy {np.__version__}, kernels: {cal.kernels.serving()[0]}, one thread")
    sizes = [10**power for power in range(3, 9) if 10**power <= options.most]
    series("one event, rows", sizes, events)
    series("matrices of two million entries, classes", [2, 10, 100, 1_000, 20_000], classes)
    series("a million rows of one event, bins", [10, 100, 1_000, 10_000, 100_000], bins)


if __name__ == "__main__":
    main()
