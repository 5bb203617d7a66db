"""How long a report takes and how much memory it needs, as multiples of its input.

    python benchmarks/report.py [--quick]

Each case runs in a fresh process that imports what a report imports, reads the file and writes the page; memory is the
peak (`ru_maxrss`) above what it was after importing, in multiples of the arrays in the file.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import calibrant
from calibrant.files import SHIPPED


def event(path, rows):
    """Forecasts of one event, a little over-confident, and whether it happened."""
    rng = np.random.default_rng(0)
    p = rng.random(rows)
    np.savez(path, label=(rng.random(rows) < p**1.2).astype(np.int64), p=p)
    return 16 * rows


def matrix(path, rows, classes):
    """float32 logits, 1.3 times those that the labels are drawn from."""
    rng = np.random.default_rng(0)
    logits, labels = np.empty((rows, classes), np.float32), np.empty(rows, np.int64)
    for start in range(0, rows, 1000):
        part = slice(start, min(start + 1000, rows))
        logits[part] = rng.standard_normal(logits[part].shape, dtype=np.float32) * 2
        scores = np.exp(logits[part] - logits[part].max(axis=1, keepdims=True))
        running = scores.cumsum(axis=1)
        labels[part] = (running > rng.random((len(running), 1)) * running[:, -1:]).argmax(axis=1)
    np.savez(path, label=labels, logits=logits * np.float32(1.3))
    return logits.nbytes + labels.nbytes


def peak():
    """The most memory this process had, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def measure(path, page):
    """In a process of its own: import, read, report; what it took as JSON."""
    import jinja2

    from calibrant.files import reading as io
    from calibrant.report import Report

    jinja2.Environment().from_string("").render()
    imported = peak()
    began = time.perf_counter()
    predictions = io.read(path)
    read, after_reading = time.perf_counter() - began, peak()
    began, used = time.perf_counter(), time.process_time()
    Report.of(predictions, name=Path(path).name).save(page)
    print(
        json.dumps(
            {
                "read": read,
                "wall": time.perf_counter() - began,
                "cpu": time.process_time() - used,
                "memory of reading": after_reading - imported,
                "memory": peak() - imported,
                "page": Path(page).stat().st_size,
            }
        )
    )


def elsewhere(*words):
    """What this script prints in a process of its own; memory of this one would count as the other's."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *map(str, words)]
    ended = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


def case(name, path, size):
    """One line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        figures = elsewhere("--measure", path, Path(folder, "page.html"))
    wall, reading, memory = figures["wall"], figures["memory of reading"], figures["memory"]
    print(
        f"{name:31s} {size / 1e6:7.1f} {wall:7.1f} {figures['cpu']:7.1f} {wall / figures['read']:9.0f} "
        f"{reading / size:9.2f} {memory / size:9.2f} {figures['page'] / 1e3:8.0f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(*options.measure)
        return
    if options.make:
        path, rows, classes = options.make
        print(event(path, int(rows)) if classes == "0" else matrix(path, int(rows), int(classes)))
        return
    share = 10 if options.quick else 1
    print(f"calibrant {calibrant.__version__}, NumPy {np.__version__}, Python {platform.python_version()}\n")
    print("                                  input  report     CPU  report /  memory / input       page")
    print("what                                 MB       s       s   reading   reading    report       kB")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "predictions.npz")
        for name, rows, classes in (("one event", 1_000_000 // share, 0), ("float32 logits", 50_000 // share, 1000)):
            size = elsewhere("--make", path, rows, classes)
            case(f"{name}, {rows:,}{f' x {classes:,}' if classes else ''}", path, size)
    shipped = SHIPPED / "fashion_mnist_test.npz"
    with np.load(shipped) as arrays:
        case("shipped, 10,000 x 10", shipped, sum(arrays[name].nbytes for name in arrays.files))


if __name__ == "__main__":
    main()
