"""How long a report takes and how much memory it needs, as multiples of its input.

    python benchmarks/report.py [--quick]

Each case runs in a fresh process that imports what a report imports, reads the file and writes the page; memory is the
peak above what it was after importing, in multiples of the arrays in the file: the process's own (`ru_maxrss`), or that
of it and its copy together (proportional set sizes, looked at every 5 ms), whichever is larger. CPU time is of both.
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


def together(process):
    """The memory of a process and of those that it started, in bytes; what they share counts once."""
    try:
        sizes = Path(f"/proc/{process}/smaps_rollup").read_text().split("Pss:")[1].split()[0]
        started = [Path(one, "children").read_text().split() for one in Path(f"/proc/{process}/task").iterdir()]
    except (OSError, IndexError):  # it has ended, or this is no Linux
        return 0
    return 1024 * int(sizes) + sum(together(child) for children in started for child in children)


def busy():
    """CPU seconds of this process and of those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure(path, page):
    """In a process of its own: import, read, report; what it took as JSON."""
    import jinja2

    from calibrant.files import reading as io
    from calibrant.report import Report

    jinja2.Environment().from_string("").render()
    imported, before = peak(), together(os.getpid())
    began = time.perf_counter()
    predictions = io.read(path)
    read, after_reading = time.perf_counter() - began, peak()
    began, used = time.perf_counter(), busy()
    Report.of(predictions, name=Path(path).name).save(page)
    print(
        json.dumps(
            {
                "read": read,
                "wall": time.perf_counter() - began,
                "cpu": busy() - used,
                "memory of reading": after_reading - imported,
                "memory": peak() - imported,
                "before": before,
                "page": Path(page).stat().st_size,
            }
        )
    )


def elsewhere(*words):
    """What this script prints in a process of its own; memory of this one would count as the other's."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command, most = [sys.executable, __file__, *map(str, words)], 0
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            most = max(most, together(process.pid))
            time.sleep(0.005)
        found = json.loads(process.stdout.read() if process.returncode == 0 else sys.exit("a case has failed"))
    if words[0] == "--measure" and most:
        found["memory"] = max(found["memory"], most - found["before"])
    return found


def case(name, path, size):
    """One line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        found = elsewhere("--measure", path, Path(folder, "page.html"))
    print(
        f"{name:31s} {size / 1e6:7.1f} {found['wall']:7.1f} {found['cpu']:7.1f} {found['wall'] / found['read']:9.0f} "
        f"{found['memory of reading'] / size:9.2f} {found['memory'] / size:9.2f} {found['page'] / 1e3:8.0f}",
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
    with np.load(shipped) as given:
        case("shipped, 10,000 x 10", shipped, sum(given[name].nbytes for name in given.files))


if __name__ == "__main__":
    main()
