"""How long metrics take on one processor, as multiples of reading their input once, or of sorting it.

    python benchmarks/cpu.py [--threads 2] [--kernels numpy] [--repeats 5] > benchmarks/results/cpu.txt

The floor is one read of the input (`max` of the forecasts, and of the labels where there is one for each forecast).
Tasks, reads and sorts take turns; each line is the shortest of some runs. With one thread, times are those of the
processor, so that what else the machine does counts little; with more, they are those of the clock.
"""

import argparse
import os
import platform
import time
import tracemalloc

import numpy as np
from matrix import forecasts

import calibrant as cal


def tasks_of_classes(rows, classes):
    """Name, run and target of each task of a matrix of float32, and what reads it once."""
    y, p = forecasts(rows, classes)
    checked = cal.Predictions.from_probs(y, p)
    logits = np.log(p + np.float32(1e-7))
    tasks = {
        "ECE of arrays, with all checks": (lambda: cal.ECE(y, p), 1.5),
        "ECE of logits, with all checks": (lambda: cal.ECE(of_logits(y, logits)), 3),
        "SCE": (lambda: cal.SCE(checked), 2),
        "ACE": (lambda: cal.ACE(checked), 22),
        "Brier score": (lambda: cal.BRIER(checked), 1.5),
        "log loss": (lambda: cal.LOG_LOSS(checked), 0.15),
        "Brier score of logits, with all checks": (lambda: cal.BRIER(of_logits(y, logits)), 3.5),
        "log loss of logits, with all checks": (lambda: cal.LOG_LOSS(of_logits(y, logits)), 3.5),
        "full ECE (kd-tree)": (lambda: cal.FULL_ECE(checked), 20),
        "temperature fit": (lambda: cal.TemperatureScaling().fit(logits, y), None),
    }
    return tasks, p.max, None, p.nbytes


def of_logits(y, logits):
    return cal.Predictions.from_logits(y, logits, copy=False)


def tasks_of_an_event(rows):
    """The same of one event; what is said against a sort has no target in floors."""
    rng = np.random.default_rng(0)
    p = rng.random(rows, dtype=np.float32)
    y = (rng.random(rows) < p).astype(np.int64)
    checked = cal.Predictions.from_probs(y, p)
    tasks = {
        "ECE": (lambda: cal.ECE(checked), 6.5),
        "Brier score": (lambda: cal.BRIER(checked), 4),
        "log loss": (lambda: cal.LOG_LOSS(checked), 12),
    }
    against_sorting = {
        "equal mass": (lambda: cal.ADAPTIVE_ECE(checked), 2),
        "sweep": (lambda: cal.ECE_SWEEP(checked), 2),
        "Kolmogorov-Smirnov": (lambda: cal.CumulativeError()(checked), 2),
        "isotonic": (lambda: cal.IsotonicError()(checked), 4),
    }
    return tasks, lambda: (p.max(), y.max()), (against_sorting, lambda: np.sort(p)), p.nbytes + y.nbytes


def shortest(runs, repeats, clock):
    """The shortest time of each run, in seconds; all take turns."""
    times = dict.fromkeys(runs, np.inf)
    for _ in range(repeats):
        for name, run in runs.items():
            start = clock()
            run()
            times[name] = min(times[name], clock() - start)
    return times


def extra_memory(run):
    """The most memory that Python allocated during a run, in bytes."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def table(title, tasks, unit, read, size, options):
    """Lines of times, ratios, targets and memory."""
    clock = time.process_time if options.threads == 1 else time.perf_counter
    times = shortest({"": read} | {name: run for name, (run, _) in tasks.items()}, options.repeats, clock)
    print(f"\n{title}; {unit} takes {times[''] * 1e3:.1f} ms")
    print(f"{'':40s} {'ms':>9s} {'times ' + unit:>16s} {'target':>7s} {'memory / input':>15s}")
    for name, (run, target) in tasks.items():
        ratio = times[name] / times[""]
        memory = extra_memory(run) / size
        asked = "" if target is None else f"{target:g}"
        print(f"{name:40s} {times[name] * 1e3:9.1f} {ratio:16.2f} {asked:>7s} {memory:15.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--kernels", default=cal.kernels.serving()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--events", type=int, default=10_000_000)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    with cal.kernels.using(options.kernels):
        versions = f"NumPy {np.__version__}, Python {platform.python_version()}"
        print(f"calibrant {cal.__version__}, {versions}, kernels: {options.kernels}, threads: {options.threads}")
        tasks, read, _, size = tasks_of_classes(options.rows, options.classes)
        table(f"{options.rows:,} x {options.classes:,} float32", tasks, "one read", read, size, options)
        passes = 1 + tasks["temperature fit"][0]().certificate_.iterations  # the first tells the log loss before
        print(f"passes of the temperature fit that raise all logits: {passes} (target 4)")
        del tasks, read
        tasks, read, (sorted_tasks, sort), size = tasks_of_an_event(options.events)
        table(f"one event, {options.events:,} float32", tasks, "one read", read, size, options)
        table(f"one event, {options.events:,} float32", sorted_tasks, "one sort", sort, size, options)


if __name__ == "__main__":
    main()
