"""Stopping several processes: an interruption of the parent alone reaches all of them, politely first.

What trains networks needs torch; these tests are left out where it is missing.
"""

import csv
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")
pytest.importorskip("yaml")
pytest.importorskip("click")
pytest.importorskip("rich")

from calibrant.experiments.running import runner
from calibrant.experiments.running.claim_owners import is_dead
from calibrant.experiments.running.runner import polite
from calibrant.experiments.running.study_store import FAILED, RUNNING, WAITING

SOURCES = Path(__file__).parents[1] / "src"
STUDY = """\
name: blobs
data: {{name: "csv:blobs.csv", validation: 0.25, limit: {limit}}}
models: [mlp]
training: {{epochs: {epochs}, batch_size: 2, optimiser: {{kind: adam, learning_rate: 1e-3}}}}
seeds: [0, 1, 2, 3]
metrics: [accuracy, ece]
"""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="needs signals of Unix")]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with two clouds of points."""
    folder = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(0)
    with (folder / "blobs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "label"])
        writer.writerows([*random.normal(size=2) + label, f"k{label}"] for label in random.integers(0, 2, 20_000))
    return folder


@pytest.fixture
def start(data):
    """What starts the command with two processes, in a group of its own that does not outlive the test."""
    processes = []

    def command(folder):
        arguments = ["experiment", "resume", folder, "--data", data, "--jobs", "2", "--quiet"]
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", "from calibrant.cli import main; main()", *map(str, arguments)],
                env={**os.environ, "PYTHONPATH": str(SOURCES)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return processes[0]

    yield command
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def until(holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not (holding := holds()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)
    return holding


def running(store):
    return [row for row in store.rows() if row.state == RUNNING]


@pytest.mark.parametrize("whom", ["the parent alone", "the whole group"])
def test_an_interruption_stops_every_process_after_the_epoch(start, tmp_path, whom):
    _, store = runner.open_study(tmp_path, STUDY.format(epochs=1000, limit=400))
    process = start(tmp_path)
    until(lambda: sum(row.epoch > 0 for row in running(store)) == 2)
    if whom == "the parent alone":
        os.kill(process.pid, signal.SIGINT)
    else:  # as a terminal does
        os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == "calibrant: stopped; calibrant experiment resume goes on\n"
    assert store.counts() == {WAITING: 4, RUNNING: 0, "done": 0, FAILED: 0}
    assert len(list(store.checkpoints.glob("*.npz"))) == 2


def test_processes_stop_after_the_epoch_when_their_parent_was_killed(start, tmp_path):
    _, store = runner.open_study(tmp_path, STUDY.format(epochs=1000, limit=400))
    process = start(tmp_path)
    until(lambda: sum(row.epoch > 0 for row in running(store)) == 2)
    process.kill()
    process.wait()
    until(lambda: not running(store))
    assert store.counts() == {WAITING: 4, RUNNING: 0, "done": 0, FAILED: 0}
    assert len(list(store.checkpoints.glob("*.npz"))) == 2


def test_the_second_interruption_ends_every_process_at_once(start, tmp_path):
    _, store = runner.open_study(tmp_path, STUDY.format(epochs=2, limit=12_000))  # an epoch takes seconds
    process = start(tmp_path)
    owners = until(lambda: len(running(store)) == 2 and [row.owner for row in running(store)])
    os.kill(process.pid, signal.SIGINT)
    time.sleep(0.7)  # the first one has been passed on by now
    assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert all(is_dead(owner, tmp_path) for owner in owners)
    assert list(store.checkpoints.glob("*.npz")) == []  # in the middle of the epoch, at whose end they are written
    _, store = runner.reopen(tmp_path)
    assert store.claim("me") is not None  # what they had is free at once


def test_an_interruption_while_processes_start_is_heard_once_they_listen(start, tmp_path):
    _, store = runner.open_study(tmp_path, STUDY.format(epochs=1000, limit=400))
    process = start(tmp_path)
    until(lambda: _children(process.pid))
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert store.counts()[WAITING] == 4


def _children(process):
    listing = Path(f"/proc/{process}/task/{process}/children")
    if not listing.exists():
        pytest.skip("this system does not tell the children of a process")
    commands = [Path(f"/proc/{child}/cmdline") for child in listing.read_text().split()]
    return sum(b"spawn_main" in path.read_bytes() for path in commands if path.exists()) == 2


def test_a_process_that_is_told_twice_what_was_said_once_stays_polite():
    with polite(twice=False) as stop:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.is_set()
    with polite() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
