"""How long the kernel error takes, which compares all pairs of samples.

    python benchmarks/pairs.py [--rows 50000] [--classes 1000] [--threads 2] > benchmarks/results/pairs.txt

Progress is shown on standard error. What must be done for a pair and class is a minimum, a product and two sums.
"""

import argparse
import os
import time

from matrix import forecasts

import calibrant as cal
from calibrant.errors.kernel import KernelError


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    predictions = cal.Predictions.from_probs(*forecasts(options.rows, options.classes))
    clock, processor = time.perf_counter(), time.process_time()
    result = KernelError()(predictions)
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    compared = options.rows * (options.rows + 1) / 2 * options.classes
    print(f"calibrant {cal.__version__}, kernels: {': '.join(cal.kernels.serving())}, threads: {options.threads}")
    print(result)
    print(f"{options.rows:,} x {options.classes:,}: {clock:.1f} s, {processor:.1f} s of all processors")
    print(f"{compared / processor / 1e9:.1f} classes of a pair in a nanosecond of one processor")


if __name__ == "__main__":
    main()
