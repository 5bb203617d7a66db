"""How fast files are scanned, beside the bare read of the same columns, or the same metric in memory, in the same run.

python benchmarks/scan.py [--rows 20000000] [--files 4] [--threads 1] [--matrix-rows 50000]

Seconds are those of the processor, the fewest of three runs, so that rows a second are those of one core.
"""

import argparse
import platform
import resource
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal

ROW_GROUP = 1 << 20
CASES = {
    "ECE": {"ece": cal.ECE},
    "ECE, Brier": {"ece": cal.ECE, "brier": cal.BRIER},
    "ECE, cells (one pass)": {"ece": cal.ECE, "adaptive": cal.ADAPTIVE_ECE},
    "cells (one pass)": {"adaptive": cal.ADAPTIVE_ECE},
    "ADAPTIVE_ECE (exact)": {"adaptive": cal.ADAPTIVE_ECE},
}


def write(folder, rows, files):
    """Float32 forecasts and 0 / 1 labels, with checksums of pages, a column that nobody needs beside them."""
    rng = np.random.default_rng(0)
    for index in range(files):
        p = rng.random(rows // files, np.float32)
        columns = {"label": (rng.random(len(p)) < p).astype(np.int8), "p": p, "other": rng.random(len(p))}
        path = folder / f"{index:03}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=ROW_GROUP, write_page_checksum=True)


def bare(folder):
    """Read the two columns, checksums verified, and do nothing with them."""
    rows = 0
    for path in sorted(folder.iterdir()):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        for batch in file.iter_batches(1 << 18, columns=["label", "p"], use_threads=False):
            rows += batch.num_rows
    return rows


def timed(run):
    seconds = []
    for _ in range(3):
        start = time.process_time()
        outcome = run()
        seconds.append(time.process_time() - start)
    return outcome, min(seconds)


def of_matrices(folder, rows):
    """Rows of 1,000 classes in a pair of NPY files, beside the same metric of the matrix in memory and of its map."""
    rng = np.random.default_rng(0)
    p = rng.random((rows, 1000), np.float32) ** 20
    p /= p.sum(axis=1, keepdims=True)
    labels, files = rng.integers(0, 1000, len(p)), [folder / "labels.npy", folder / "probs.npy"]
    for file, array in zip(files, (labels, p), strict=True):
        np.save(file, array)
    print(f"\n{len(p):,} x {p.shape[1]:,} float32 in two NPY files\n")
    heads = ("in memory, s", "of the map, s", "scan, s", "passes", "scan / memory", "scan / map", "GB/s")
    print(f"{'what':14s} {' '.join(f'{head:>13s}' for head in heads)}")
    for name, metric in {"ECE": cal.ECE, "SCE": cal.SCE, "Brier": cal.BRIER, "ADAPTIVE_ECE": cal.ADAPTIVE_ECE}.items():
        expected, alone = timed(partial(metric, labels, p))
        mapped, of_map = timed(lambda metric=metric: metric(*(np.load(file, mmap_mode="r") for file in files)))
        scanned, seconds = timed(partial(cal.scale.scan, files, {name: metric}))
        assert scanned[name].value == expected.value == mapped.value
        times = " ".join(f"{each:13.3f}" for each in (alone, of_map, seconds))
        ratios = " ".join(f"{each:13.1f}" for each in (seconds / alone, seconds / of_map, p.nbytes / seconds / 1e9))
        print(f"{name:14s} {times} {scanned.passes:13d} {ratios}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--matrix-rows", type=int, default=50_000)
    options = parser.parse_args()
    versions = f"pyarrow {pa.__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    print(f"calibrant {cal.__version__}, {versions}")
    print(f"{options.rows:,} rows of one event in {options.files} Parquet files, {options.threads} thread(s)\n")
    print(f"{'what':22s} {'passes':>6s} {'seconds':>8s} {'million rows/s':>15s} {'state bytes':>12s} {'peak MB':>8s}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, options.rows, options.files)
        rows, seconds = timed(lambda: bare(folder))
        print(f"{'bare read (pyarrow)':22s} {1:6d} {seconds:8.2f} {rows / seconds / 1e6:15.1f} {'':>12s} {peak():8.0f}")
        for name, metrics in CASES.items():
            choices = {"exact": "exact" in name, "threads": options.threads}
            scanned, seconds = timed(partial(cal.scale.scan, folder, metrics, **choices))
            assert scanned.state.n == rows
            speed, size = rows / seconds / 1e6, len(scanned.state.to_bytes())
            print(f"{name:22s} {scanned.passes:6d} {seconds:8.2f} {speed:15.1f} {size:12,d} {peak():8.0f}")
    with tempfile.TemporaryDirectory() as place:
        of_matrices(Path(place), options.matrix_rows)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
