"""Do memory, files, clusters, training loops and a GPU give one state? Writes docs/scale_digest.md.

    python scripts/one_digest.py [--rows 20000000] [--files 40] [--only memory files dask spark torchmetrics device]
    python scripts/one_digest.py --only device [--device cuda]

Each way has the same rows, float32 and float64 mixed, and gives the state of the same metrics; but for the device, from
Parquet files. A way whose packages are not installed is listed as such. What the page says of other ways about the same
rows stays there, so that a way can be run elsewhere: the device needs PyTorch and NumPy alone.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np

import calibrant as cal
from calibrant.scale import State, scan

ROOT = Path(__file__).parents[1]
METRICS = {"ECE": cal.ECE, "BRIER": cal.BRIER, "ADAPTIVE_ECE": cal.ADAPTIVE_ECE, "AUROC": cal.AUROC}


class Source(NamedTuple):
    """Where the rows are: in the files of a folder, in as many parts to be drawn again; and the device to use."""

    folder: Path
    rows: int
    files: int
    device: str

    def parts(self):
        """Labels and forecasts of one event in each file, float32 in every other one."""
        rng = np.random.default_rng(0)
        for index in range(self.files):
            p = rng.random(self.rows // self.files).astype(np.float32 if index % 2 else np.float64)
            yield (rng.random(len(p)) < p**1.1).astype(np.int8), p

    def write(self):
        """The files, with checksums of pages."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for index, (label, p) in enumerate(self.parts()):
            path = self.folder / f"{index:03}.parquet"
            pq.write_table(pa.table({"label": label, "p": p}), path, write_page_checksum=True)


def rows_of(path):
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    return table["label"].to_numpy(), table["p"].to_numpy()


def of_memory(source):
    """Each file whole, by `State.of`; the states are added."""
    paths = sorted(source.folder.iterdir())
    return sum(State.of(cal.Predictions.from_probs(*rows_of(path)), METRICS) for path in paths)


def of_device(source):
    """The rows of each file as tensors on a device, by `State.of`; the states are added."""
    import torch

    states = []
    for label, p in source.parts():
        tensors = (torch.as_tensor(array, device=source.device) for array in (label, p))
        states.append(State.of(cal.Predictions.from_probs(*tensors), METRICS))
    return sum(states)


def of_files(source):
    """`scan` in this process."""
    return scan(source.folder, METRICS, exact=False).state


def of_dask(source):
    """`scan` by two workers, one of which is killed (SIGKILL) while both work."""
    from distributed import Client

    with cluster() as (address, workers), Client(address, timeout=30) as client:
        client.wait_for_workers(2, timeout=60)
        killer = threading.Thread(target=kill_when_busy, args=(client, workers[0]))
        killer.start()
        state = scan(source.folder, METRICS, exact=False, client=client, deadline=600).state
        killer.join()
        assert workers[0].wait(10) == -signal.SIGKILL
    return state


def of_spark(source):
    """`calibrant.scale.spark.summarise` on two executors, one of which is killed (SIGKILL) while both work."""
    from pyspark.sql import SparkSession

    from calibrant.scale import spark as executors

    environment = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "PYSPARK_PYTHON": sys.executable}
    os.environ.update(environment)
    builder = SparkSession.builder.master("local-cluster[2,1,1100]").config("spark.sql.files.maxPartitionBytes", "4m")
    for name, value in environment.items():
        builder = builder.config(f"spark.executorEnv.{name}", value)
    spark = builder.getOrCreate()
    frames = [spark.read.parquet(*map(str, sorted(source.folder.iterdir())[first::2])) for first in (0, 1)]
    killed = []
    killer = threading.Thread(target=lambda: killed.append(kill_executor(spark.sparkContext)))
    killer.start()
    try:
        return executors.summarise(frames, METRICS, exact=False).state
    finally:
        killer.join()
        spark.stop()
        assert killed[0]


def kill_executor(context):
    """Kill one of the two executors while both have work and some of it is done; its process, and by when."""
    tracker = context.statusTracker()

    def busy():
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(each and each.numActiveTasks == 2 and each.numCompletedTasks >= 2 for each in stages)

    wait_until(busy)
    wanted = {context.applicationId.encode(), b"org.apache.spark.executor.CoarseGrainedExecutorBackend"}
    for process in Path("/proc").glob("[0-9]*"):
        if wanted <= set((process / "cmdline").read_bytes().split(b"\0")):
            os.kill(int(process.name), signal.SIGKILL)
            return process.name
    return None


def of_torchmetrics(source):
    """`calibrant.integrations.torchmetrics.Calibration` of each metric in two processes over gloo, a file a batch."""
    import torchmetrics  # noqa: F401 - each process needs it

    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, __file__, "--folder", str(source.folder), "--meeting", place, "--rank"]
        processes = [subprocess.Popen([*command, str(rank)], env=environment) for rank in range(2)]
        assert [process.wait() for process in processes] == [0, 0]
        first, second = (Path(place, f"{rank}.state").read_bytes() for rank in range(2))
    assert first == second
    return State.from_bytes(first)


def train(rank, folder, place):
    """What one of two processes does: the first has a quarter of the files."""
    import torch

    from calibrant.integrations import torchmetrics as loops

    torch.distributed.init_process_group("gloo", init_method=f"file://{place}/meeting", rank=rank, world_size=2)
    metrics = {name: loops.Calibration(metric) for name, metric in METRICS.items()}
    paths = sorted(folder.iterdir())
    quarter = len(paths) // 4
    for path in paths[quarter:] if rank else paths[:quarter]:
        label, p = map(torch.tensor, rows_of(path))
        for metric in metrics.values():
            metric.update(p, label)
    Path(place, f"{rank}.state").write_bytes(loops.state_of(metrics).to_bytes())
    torch.distributed.destroy_process_group()


WAYS = {
    "memory": of_memory,
    "files": of_files,
    "dask": of_dask,
    "spark": of_spark,
    "torchmetrics": of_torchmetrics,
    "device": of_device,
}
"""What gives the state of a source."""


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


def measured(way, source):
    """What a way gives: the digest of its state, its values, and how long it took; or what is not installed."""
    start = time.perf_counter()
    try:
        state = way(source)
    except ImportError:
        return "not run: its packages are not installed"
    seconds, data = time.perf_counter() - start, state.to_bytes()
    values = {name: repr(result.value) for name, result in state.results().items()}
    return hashlib.sha256(data).hexdigest(), len(data), state.n, values, seconds


def page(outcomes, rows, files, before="", device=""):
    """The page of these outcomes and of what it said before about the same rows, and whether all of it agrees."""
    about = f"`scripts/one_digest.py` wrote this page: {rows:,} rows of one event in {files} Parquet files, float32"
    kept = before if about in before else ""
    lines = {match[1]: match[0] for match in re.finditer(r"^\| (\w+) \|.*`.*$", kept, re.M) if match[1] in WAYS}
    values = re.findall(r"Values: (.*)\.$", kept, re.M)
    for name, outcome in outcomes.items():
        how = WAYS[name].__doc__.rstrip(".") + (f": {device}" if name == "device" else "")
        told = f"{outcome} | | |" if isinstance(outcome, str) else "{2:,} | {1:,} | `{0:.16}` |".format(*outcome)
        lines[name] = f"| {name} | {how} | {told}"
        if not isinstance(outcome, str):
            values.append(", ".join(f"{metric} {value}" for metric, value in outcome[3].items()))
    digests = set(re.findall(r"`[0-9a-f]{16}`", "".join(lines.values())))
    same = len(digests) == 1 and len(set(values)) == 1
    verdict = "All states are equal to the byte, and all values to the bit." if same else "**They differ.**"
    known = re.findall(r"checksums of pages \((.*)\)\.$", kept, re.M) if set(outcomes) == {"device"} else []
    return "\n".join(
        [
            "# One state from memory, files and clusters",
            "",
            about,
            f"and float64 mixed, with checksums of pages ({known[0] if known else versions()}).",
            "",
            "| way | how | rows | bytes of the state | SHA-256 of the state begins |",
            "|---|---|---|---|---|",
            *(lines[name] for name in WAYS if name in lines),
            "",
            f"{verdict} Values: {values[0] if values else 'none'}.\n",
        ]
    ), same


def named(device):
    """What a device is called, where torch is installed and knows."""
    try:
        import torch
    except ImportError:
        return device
    is_there = torch.device(device).type == "cuda" and torch.cuda.is_available()
    return torch.cuda.get_device_name(device) if is_there else device


def versions():
    try:
        arrow = f"pyarrow {version('pyarrow')}"
    except PackageNotFoundError:
        arrow = "no pyarrow"
    return f"calibrant {cal.__version__}, {arrow}, Python {platform.python_version()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--only", nargs="+", choices=WAYS, default=[name for name in WAYS if name != "device"])
    parser.add_argument("--device", default="cuda", help="the device of torch on which tensors are put")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "scale_digest.md")
    for name in ("--rank", "--folder", "--meeting"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        return train(int(options.rank), Path(options.folder), options.meeting)
    with tempfile.TemporaryDirectory() as place:
        source = Source(Path(place), options.rows, options.files, options.device)
        if options.only != ["device"]:
            source.write()
        outcomes = {}
        for name in options.only:
            outcomes[name] = measured(WAYS[name], source)
            print(name, outcomes[name], flush=True)
    before = options.page.read_text(encoding="utf-8") if options.page.exists() else ""
    text, same = page(outcomes, options.rows, options.files, before, named(options.device))
    options.page.write_text(text, encoding="utf-8")
    print("one state" if same else "the states differ")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
