"""Do memory, files, clusters and training loops give one state? Writes docs/scale_digest.md.

    python scripts/one_digest.py [--rows 20000000] [--files 40] [--ways memory files dask spark torchmetrics]

Each way reads the same Parquet files, float32 and float64 mixed, and gives the state of the same metrics. A way whose
packages are not installed is listed as such.
"""

import argparse
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal
from calibrant.scale import State, scan

ROOT = Path(__file__).parents[1]
METRICS = {"ECE": cal.ECE, "BRIER": cal.BRIER, "ADAPTIVE_ECE": cal.ADAPTIVE_ECE, "AUROC": cal.AUROC}


def write(folder, rows, files):
    """One event, float32 in every other file, with checksums of pages."""
    rng = np.random.default_rng(0)
    for index in range(files):
        p = rng.random(rows // files).astype(np.float32 if index % 2 else np.float64)
        columns = {"label": (rng.random(len(p)) < p**1.1).astype(np.int8), "p": p}
        pq.write_table(pa.table(columns), folder / f"{index:03}.parquet", write_page_checksum=True)


def rows_of(path):
    table = pq.read_table(path)
    return table["label"].to_numpy(), table["p"].to_numpy()


def of_memory(folder):
    """Each file whole, by `State.of`; the states are added."""
    return sum(State.of(cal.Predictions.from_probs(*rows_of(path)), METRICS) for path in sorted(folder.iterdir()))


def of_files(folder):
    """`scan` in this process."""
    return scan(folder, METRICS, exact=False).state


def of_dask(folder):
    """`scan` by two workers, one of which is killed (SIGKILL) while both work."""
    from distributed import Client

    with cluster() as (address, workers), Client(address, timeout=30) as client:
        client.wait_for_workers(2, timeout=60)
        killer = threading.Thread(target=kill_when_busy, args=(client, workers[0]))
        killer.start()
        state = scan(folder, METRICS, exact=False, client=client, deadline=600).state
        killer.join()
        assert workers[0].wait(10) == -signal.SIGKILL
    return state


def of_spark(folder):
    """`calibrant.scale.spark.summarise` on a local cluster of two executors."""
    from pyspark.sql import SparkSession

    from calibrant.scale import spark as executors

    environment = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "PYSPARK_PYTHON": sys.executable}
    os.environ.update(environment)
    builder = SparkSession.builder.master("local-cluster[2,1,1100]")
    for name, value in environment.items():
        builder = builder.config(f"spark.executorEnv.{name}", value)
    spark = builder.getOrCreate()
    frames = [spark.read.parquet(*map(str, sorted(folder.iterdir())[first::2])) for first in (0, 1)]
    try:
        return executors.summarise(frames, METRICS, exact=False).state
    finally:
        spark.stop()


def of_torchmetrics(folder):
    """`calibrant.integrations.torchmetrics.Calibration` of each metric, a file a batch."""
    import torch

    from calibrant.integrations import torchmetrics as loops

    metrics = {name: loops.Calibration(metric) for name, metric in METRICS.items()}
    for path in sorted(folder.iterdir()):
        label, p = map(torch.tensor, rows_of(path))
        for metric in metrics.values():
            metric.update(p, label)
    return loops.state_of(metrics)


WAYS = {
    "memory": of_memory,
    "files": of_files,
    "dask": of_dask,
    "spark": of_spark,
    "torchmetrics": of_torchmetrics,
}
"""What gives the state of the files of a folder."""


@contextmanager
def cluster():
    """The address of a scheduler, and two workers, each a process."""
    with tempfile.TemporaryDirectory() as place:
        file, processes = Path(place, "scheduler.json"), []

        def start(module, *options):
            command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(file), *options]
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            processes.append(subprocess.Popen(command, env=environment, **quiet))

        try:
            start("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
            wait_until(lambda: file.exists() and file.read_text().endswith("}"))
            for _ in range(2):
                start("dask_worker", "--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", place)
            yield json.loads(file.read_text())["address"], processes[1:]
        finally:
            for process in processes:
                process.kill()
                process.wait()


def kill_when_busy(client, worker):
    wait_until(lambda: len(busy := client.processing()) == 2 and all(busy.values()))
    worker.send_signal(signal.SIGKILL)


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def measured(way, folder):
    """What a way gives: the digest of its state, its values, and how long it took; or what is not installed."""
    start = time.perf_counter()
    try:
        state = way(folder)
    except ImportError:
        return "not run: its packages are not installed"
    seconds, data = time.perf_counter() - start, state.to_bytes()
    values = {name: repr(result.value) for name, result in state.results().items()}
    return hashlib.sha256(data).hexdigest(), len(data), state.n, values, seconds


def page(outcomes, rows, files):
    versions = f"calibrant {cal.__version__}, pyarrow {pa.__version__}, Python {platform.python_version()}"
    known = [each for each in outcomes.values() if isinstance(each, tuple)]
    lines = [
        "# One state from memory, files and clusters",
        "",
        f"`scripts/one_digest.py` wrote this page: {rows:,} rows of one event in {files} Parquet files, float32",
        f"and float64 mixed, with checksums of pages ({versions}).",
        "",
        "| way | how | rows | bytes of the state | SHA-256 of the state begins |",
        "|---|---|---|---|---|",
    ]
    for name, outcome in outcomes.items():
        how = WAYS[name].__doc__.rstrip(".")
        told = f"{outcome} | | |" if isinstance(outcome, str) else "{2:,} | {1:,} | `{0:.16}` |".format(*outcome)
        lines.append(f"| {name} | {how} | {told}")
    same = len({each[0] for each in known}) == 1 and all(each[3] == known[0][3] for each in known)
    verdict = "All states are equal to the byte, and all values to the bit." if same else "**They differ.**"
    lines += ["", f"{verdict} Values: {', '.join(f'{name} {value}' for name, value in known[0][3].items())}."]
    return "\n".join(lines) + "\n", same


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "scale_digest.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, options.rows, options.files)
        outcomes = {}
        for name in options.ways:
            outcomes[name] = measured(WAYS[name], folder)
            print(name, outcomes[name], flush=True)
    text, same = page(outcomes, options.rows, options.files)
    options.page.write_text(text, encoding="utf-8")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
