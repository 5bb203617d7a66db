"""What many rows cost: rows a second, bytes of files and states, memory. Writes docs/scale_costs.md.

    python scripts/scale_costs.py [simulate --rows 1000000000] [layouts] [page]

`simulate` summarises generated Arrow batches of one event in one process and thread, and notes time, memory and the
bytes of the state at each power of ten. `layouts` writes and scans Parquet files of every layout. Both keep what they
measured in docs/scale_costs.csv; `page` makes the page of it, and of arithmetic with it.
"""

import argparse
import csv
import math
import os
import platform
import resource
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal
from calibrant.door.streams import InputFile
from calibrant.files.finding import Finder
from calibrant.files.parquet import arrow_columns
from calibrant.scale import State, scan
from calibrant.scale.dask_cluster import TOGETHER
from calibrant.scale.part_states import summed

DOCS = Path(__file__).parents[1] / "docs"
RAW = DOCS / "scale_costs.csv"
FIELDS = ("what", "case", "rows", "seconds", "file_bytes", "state_bytes", "peak_mb")
BATCH = 1 << 18
METRICS = {"ece": cal.ECE, "adaptive": cal.ADAPTIVE_ECE}
"""Counts in bins, and counts in cells, from which many other metrics follow."""
WORKERS = (1, 8, 64)


def generated(rows, seed):
    """Arrow batches of forecasts of one event, float32 and float64 by turns, which fill nearly all cells."""
    rng, left, number = np.random.default_rng(seed), rows, 0
    while left:
        size, number = min(BATCH, left), number + 1
        p = rng.random(size, np.float32)
        if number % 8 == 0:
            p = (1 / (1 + np.exp(rng.normal(0, 6, size)))).astype(np.float32)
        if number % 2:
            p = p + rng.random(size) * 2.0**-24 * (1 - p)
        label = (rng.random(size, np.float32) < p).astype(np.int8)
        yield pa.record_batch({"label": label, "p": p})
        left -= size


def state_of(batch):
    """The state of a batch, read as the batches of files are."""
    arrays = arrow_columns(pa.Table.from_batches([batch]), InputFile("generated", "", None))
    return State.of(Finder(arrays).predictions({}), {**METRICS, "brier": cal.BRIER})


def simulate(rows):
    """One process that never holds more than a batch: what it took at each power of ten."""
    total, start, done, ends = None, time.process_time(), 0, [10**power for power in range(4, 13) if 10**power <= rows]
    for end in ends:
        part = summed(map(state_of, generated(end - done, seed=end)))
        total, done = part if total is None else total + part, end
        yield {
            "what": "simulated",
            "case": "one event",
            "rows": total.n,
            "seconds": time.process_time() - start,
            "state_bytes": len(total.to_bytes()),
            "peak_mb": peak(),
        }


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def layouts():
    """Every layout in a Parquet file of about the same size: bytes, and the time of one pass in one thread."""
    for case, (columns, options, rows) in cases().items():
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "a.parquet")
            pq.write_table(pa.table(columns), path, write_page_checksum=True)
            seconds = []
            for _ in range(3):
                start = time.process_time()
                scanned = scan(path, METRICS, exact=False, **options)
                seconds.append(time.process_time() - start)
            yield {
                "what": "layout",
                "case": case,
                "rows": rows,
                "seconds": min(seconds),
                "file_bytes": path.stat().st_size,
                "state_bytes": len(scanned.state.to_bytes()),
                "peak_mb": peak(),
            }


def cases():
    """The columns of each layout, the options that it needs, and its rows."""
    rng = np.random.default_rng(0)

    def drawn(n, k):
        p = rng.random((n, k), np.float32) ** 8
        return rng.integers(0, k, n), p / p.sum(axis=1, keepdims=True, dtype=np.float32)

    def lists(p):
        return pa.FixedSizeListArray.from_arrays(pa.array(p.ravel()), p.shape[1])

    n = 2_000_000
    p = rng.random(n)
    label, ten = drawn(n // 10, 10)
    order = np.argsort(-ten, axis=1)[:, :3].astype(np.int32)
    hits = rng.random(ten.shape) < ten
    few, thousand = drawn(n // 1000, 1000)
    fewest, many = drawn(100, 100_000)
    return {
        "one event, float32": ({"label": (rng.random(n) < p).astype(np.int8), "p": p.astype(np.float32)}, {}, n),
        "one event, float64": ({"label": (rng.random(n) < p).astype(np.int8), "p": p}, {}, n),
        "confidence and correct": ({"correct": rng.random(n) < p, "confidence": p.astype(np.float32)}, {}, n),
        "10 classes, a column each": ({"label": label, **{f"p_{c}": ten[:, c] for c in range(10)}}, {}, n // 10),
        "10 classes, lists": ({"label": label, "probs": lists(ten)}, {}, n // 10),
        "10 classes, a line each": (
            {
                "label": np.repeat(label, 10),
                "row": np.repeat(np.arange(n // 10), 10),
                "class": np.tile(np.arange(10), n // 10),
                "p": ten.ravel(),
            },
            {},
            n // 10,
        ),
        "the 3 likeliest of 10": (
            {"label": label, "ids": lists(order), "probs": lists(np.take_along_axis(ten, order, axis=1))},
            {"classes": 10},
            n // 10,
        ),
        "10 independent labels": ({"multilabel": lists(hits.astype(np.int8)), "probs": lists(ten)}, {}, n // 10),
        "1,000 classes, lists": ({"label": few, "probs": lists(thousand)}, {}, n // 1000),
        "100,000 classes, lists": ({"label": fewest, "probs": lists(many)}, {}, 100),
    }


def stored():
    if not RAW.exists():
        return []
    with RAW.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def kept(what, lines):
    """Keep lines as they come, in the place of what was measured before."""
    others = [line for line in stored() if line["what"] != what]
    fresh = []
    for line in lines:
        print(line, flush=True)
        fresh.append({name: _text(line.get(name, "")) for name in FIELDS})
        with RAW.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows([*others, *fresh])


def _text(value):
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def page():
    """The tables of what was measured, and what follows from it for more rows."""
    lines = stored()
    simulated = [line for line in lines if line["what"] == "simulated"]
    files = {line["case"]: line for line in lines if line["what"] == "layout"}
    versions = f"calibrant {cal.__version__}, NumPy {np.__version__}, pyarrow {pa.__version__}"
    text = [
        "# What many rows cost",
        "",
        f"`scripts/scale_costs.py` wrote this page ({versions}, Python {platform.python_version()}).",
        f"Seconds are processor time of one process and one thread, on one core of {processor()}.",
        "Metrics are ECE and counts in cells, from which equal mass, AUROC and [others](bracket_study.md) follow.",
        "",
        "## Files, by layout",
        "",
        "One pass over a Parquet file in the memory of the system, checksums verified.",
        "",
        "| layout | bytes a row | million rows/s | million numbers/s | bytes of the state |",
        "|---|---|---|---|---|",
    ]
    for case, line in files.items():
        speed, width = int(line["rows"]) / float(line["seconds"]), numbers_of(case)
        size = int(line["file_bytes"]) / int(line["rows"])
        text.append(
            f"| {case} | {size:,.1f} | {speed / 1e6:.3g} | {speed * width / 1e6:.3g} | {int(line['state_bytes']):,} |"
        )
    text += [
        "",
        "## Memory and the state do not grow with the rows",
        "",
        "Batches of 262,144 generated rows, float32 and float64 by turns, which fill nearly all cells. Making them",
        "is part of the time, as is the first use of each function; the Brier score was kept, too. Peak memory is that",
        "of the whole process.",
        "",
        "| rows | seconds | million rows/s | bytes of the state | peak MB |",
        "|---|---|---|---|---|",
    ]
    for line in simulated:
        rows, seconds = int(line["rows"]), float(line["seconds"])
        size, megabytes = int(line["state_bytes"]), float(line["peak_mb"])
        text.append(f"| {rows:,} | {seconds:,.1f} | {rows / seconds / 1e6:.3g} | {size:,} | {megabytes:.0f} |")
    text += ["", *costs(files), ""]
    (DOCS / "scale_costs.md").write_text("\n".join(text), encoding="utf-8")


def numbers_of(case):
    """How many forecasts a row has."""
    return {"10": 10, "the": 3, "1,000": 1000, "100,000": 100_000}.get(case.split()[0], 1)


def costs(files):
    """Arithmetic: rows over rows a second, shared by workers that read as fast as one does here."""
    yield from (
        "## What more rows would take",
        "",
        "Arithmetic with the speeds above: each worker is one core as fast as this one, and disks keep up. A part of a",
        f"large file has 256 MB. Tasks add up {TOGETHER} states each; the depth is how many of them follow each other.",
        "",
        "| rows | layout | files | parts | depth | "
        + " | ".join(f"{workers} worker{'s' * (workers > 1)}" for workers in WORKERS)
        + " |",
        "|---|---|---|---|---|" + "---|" * len(WORKERS),
    )
    for rows in (10**9, 10**11):
        for case in ("one event, float32", "10 classes, lists", "1,000 classes, lists", "100,000 classes, lists"):
            line = files[case]
            size = rows * int(line["file_bytes"]) / int(line["rows"])
            parts = max(1, math.ceil(size / (256 << 20)))
            seconds = rows * float(line["seconds"]) / int(line["rows"])
            depth = max(1, math.ceil(math.log(parts, TOGETHER)))
            times = " | ".join(spoken(seconds / workers) for workers in WORKERS)
            yield f"| {rows:,} | {case} | {sized(size)} | {parts:,} | {depth} | {times} |"


def spoken(seconds):
    for unit, length in (("years", 31_557_600), ("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.1f} seconds"


def sized(count):
    units = ("GB", "TB", "PB")
    power = min(len(units) - 1, int(math.log(max(1e9, count) / 1e9, 1000)))
    return f"{count / 1e9 / 1000**power:.3g} {units[power]}"


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", default=["simulate", "layouts", "page"])
    parser.add_argument("--rows", type=int, default=10**9)
    options = parser.parse_args()
    if "simulate" in options.steps:
        kept("simulated", simulate(options.rows))
    if "layouts" in options.steps:
        kept("layout", layouts())
    if "page" in options.steps:
        page()


if __name__ == "__main__":
    main()
