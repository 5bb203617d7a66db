"""How long the recipes take on a matrix the size of ImageNet's validation set, as multiples of reading it once.

    python benchmarks/matrix.py [--rows 50000] [--classes 1000]

The floor is the fastest single pass over the same matrix (`max`) in the same run; each line is the best of three.
"""

import argparse
import platform
import time
import tracemalloc

import numpy as np

import calibrant as cal


def best(run, times=3):
    """The shortest of some runs, in seconds."""
    durations = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        durations.append(time.perf_counter() - start)
    return min(durations)


def peak(run):
    """The most memory allocated during a run, in bytes."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def forecasts(rows, classes):
    """Softmax rows of a network that is right about two times in three, and their labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, rows)
    p = rng.standard_normal((rows, classes), dtype=np.float32) * 2
    p[np.arange(rows), y] += 7.5
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    return y, p


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1_000)
    options = parser.parse_args()
    y, p = forecasts(options.rows, options.classes)
    floor = best(lambda: p.max())
    checked = cal.Predictions.from_probs(y, p)
    logits = cal.Predictions.from_logits(y, np.log(p + np.float32(1e-7)))
    runs = {"the door": lambda: cal.Predictions.from_probs(y, p)}
    for name in ("ECE", "SCE", "ACE", "CWECE", "ECE_SWEEP", "FULL_ECE", "TOP5_ECE", "BRIER", "LOG_LOSS"):
        runs[name] = lambda metric=cal.RECIPES[name]: metric(checked)
    runs["ECE of logits"] = lambda: cal.ECE(cal.Predictions.from_logits(y, logits.values))
    runs["SCE of logits"] = lambda: cal.SCE(logits)
    print(f"calibrant {cal.__version__}, NumPy {np.__version__}, Python {platform.python_version()}")
    print(f"{options.rows} x {options.classes} float32, {p.nbytes / 1e6:.0f} MB; one pass takes {floor * 1e3:.1f} ms\n")
    print(f"{'what':16s} {'ms':>8s} {'passes':>8s} {'peak memory / matrix':>22s}")
    for name, run in runs.items():
        seconds = best(run)
        print(f"{name:16s} {seconds * 1e3:8.1f} {seconds / floor:8.1f} {peak(run) / p.nbytes:22.2f}")


if __name__ == "__main__":
    main()
