"""Scans on a real Dask cluster of this machine: the same bytes, whoever is killed on the way; ends are in time."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("distributed")

from distributed import Client, KilledWorker

import calibrant as cal
from calibrant.scale import dask_cluster, scan

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[1] / "src"
METRICS = {"ece": cal.ECE, "brier": cal.BRIER, "adaptive": cal.ADAPTIVE_ECE}


class Workers:
    """A scheduler and two workers, each in a process of its own, which can be killed."""

    def __init__(self, folder):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.scheduler = self._start("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
        until(lambda: self.file.exists() and self.file.read_text().endswith("}"))
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder / "scratch")]
        self.workers = [self._start("dask_worker", *options) for _ in range(2)]
        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, module, *options):
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(self.file), *options]
        environment = {**os.environ, "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1"}
        with open(self.folder / "log.txt", "ab") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def stop(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path_factory):
    workers = Workers(tmp_path_factory.mktemp("cluster"))
    client = Client(workers.address, timeout=20, set_as_default=False)
    client.wait_for_workers(2, timeout=30)
    yield workers, client
    workers.stop()
    client.close(timeout=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """2 million rows of one event in 40 files, float32 and float64 mixed."""
    place = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    for index in range(40):
        p = rng.random(50_000).astype(np.float32 if index % 2 else np.float64)
        columns = {"label": (rng.random(50_000) < p**1.1).astype(np.int8), "p": p}
        pq.write_table(pa.table(columns), place / f"{index:02}.parquet", write_page_checksum=True)
    return place


def kill_when_busy(workers, client):
    """Kill the first worker while both have work."""
    until(lambda: len(busy := client.processing()) == 2 and all(busy.values()))
    workers.workers[0].send_signal(signal.SIGKILL)


def test_memory_files_and_a_cluster_whose_worker_is_killed_give_one_digest(cluster, folder):
    workers, client = cluster
    frames = [pq.read_table(path) for path in sorted(folder.iterdir())]
    every = [cal.Predictions.from_probs(each["label"].to_numpy(), each["p"].to_numpy()) for each in frames]
    memory = sum(cal.scale.State.of(rows, METRICS) for rows in every)
    files = scan(folder, METRICS)
    assert files.state.to_bytes() == memory.to_bytes()
    killer = threading.Thread(target=kill_when_busy, args=(workers, client))
    killer.start()
    scanned = scan(folder, METRICS, client=client, deadline=120)
    killer.join()
    assert workers.workers[0].wait(10) == -signal.SIGKILL
    assert scanned.state.to_bytes() == memory.to_bytes()
    for name, metric in METRICS.items():
        value = metric.conclude(sum(map(metric.summarise, every))).value
        assert scanned[name].value == files[name].value == value
    assert scanned["ece"].n == 2_000_000


def test_what_is_wrong_is_named_and_skipped_on_a_cluster_too(cluster, tmp_path):
    _, client = cluster
    for index in range(3):
        pq.write_table(pa.table({"label": [0, 1], "p": [0.2, 0.7]}), tmp_path / f"{index}.parquet")
    (tmp_path / "1.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(cal.CalibrationInputError, match=r"1\.parquet: must be a whole Parquet file"):
        scan(tmp_path, {"ece": cal.ECE}, client=client, deadline=60)
    scanned = scan(tmp_path, {"ece": cal.ECE}, client=client, deadline=60, skip_bad=True)
    assert [os.path.basename(bad.part.path) for bad in scanned.skipped] == ["1.parquet"]
    assert scanned["ece"].n == 4


def test_a_file_that_kills_its_workers_is_named():
    killed = KilledWorker("/data/a.parquet, row groups 4 to 7 (0f3a)", None, 3)
    future = SimpleNamespace(status="error", exception=lambda: killed, add_done_callback=lambda call: call(None))
    with pytest.raises(
        cal.CalibrationInputError, match=r"a\.parquet, row groups 4 to 7: must be readable.*got 4 workers"
    ):
        dask_cluster._wait(future, SimpleNamespace(status="running"), np.inf)


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_dies_ends_in_an_error_within_the_deadline(cluster, folder):
    workers, client = cluster
    for worker in workers.workers:
        worker.send_signal(signal.SIGSTOP)  # so that there is work left
    threading.Timer(1.0, workers.scheduler.kill).start()
    started = time.monotonic()
    with pytest.raises(OSError, match=r"deadline|scheduler is gone"):
        scan(folder, {"ece": cal.ECE}, client=client, deadline=10)
    assert time.monotonic() - started < 15
    for worker in workers.workers:
        worker.send_signal(signal.SIGCONT)
