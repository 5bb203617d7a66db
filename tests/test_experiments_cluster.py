"""Studies on a real Dask cluster of this machine: the same results as without one, whoever is killed on the way.

What trains networks needs torch, and a cluster needs distributed; these tests are left out where one is missing.
"""

import errno
import inspect
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")
pytest.importorskip("yaml")
pytest.importorskip("distributed")

import calibrant
import studied
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.running import cluster, remote_trial, runner, scheduler
from calibrant.experiments.running.cluster import take
from calibrant.experiments.running.remote_trial import DONE, UNFIT, RemoteTrial
from calibrant.experiments.running.runner import DiskFullError, Options
from calibrant.experiments.running.scheduler import ClusterError, connected
from calibrant.experiments.running.study_store import FAILED, RUNNING, WAITING, Store
from calibrant.experiments.training.trainer import Surroundings, train
from calibrant.experiments.training.trial_outcomes import read_outcome, write_outcome
from calibrant.experiments.training.trials import Trial
from studied import assert_same, assert_same_results, write_clouds

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[1] / "src"
STUDY = """\
name: blobs
data: {name: "csv:blobs.csv", validation: 0.25}
models: [mlp]
training: {epochs: 30, batch_size: 16, optimiser: {kind: adam, learning_rate: 5e-3}}
interventions:
  - {kind: label_smoothing, strengths: [0.05, 0.2]}
seeds: [0, 1]
tuning: {seeds: [0]}
metrics: [accuracy, ece]
over_training: {metrics: [ece], every: 20, train_rows: 50}
"""
TRIALS = 2 + 2 + 1  # two seeds of the base, two strengths on the first, the chosen one on the second


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with three overlapping clouds of points."""
    return write_clouds(tmp_path_factory.mktemp("data"))


class Cluster:
    """A scheduler and workers, each in a process of its own, which can be killed."""

    def __init__(self, folder, **settings):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.environment = {**os.environ, "PYTHONPATH": str(SOURCES), **settings}
        self.processes, self.workers = [], []
        self._start("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
        until(lambda: self.file.exists() and self.file.read_text().endswith("}"))
        self.address = json.loads(self.file.read_text())["address"]

    def start_worker(self):
        options = ["--no-nanny", "--nthreads", "2", "--no-dashboard", "--local-directory", self.folder / "scratch"]
        self.workers.append(self._start("dask_worker", *options, "--preload", "torch"))
        return self.workers[-1]

    def _start(self, program, *options):
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--scheduler-file", self.file, *options]
        with (self.folder / f"{len(self.processes)}.log").open("w") as log:
            self.processes.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log))
        return self.processes[-1]

    def stop(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@contextmanager
def a_cluster(folder, workers, **settings):
    started = Cluster(folder, **settings)
    try:
        for _ in range(workers):
            started.start_worker()
        with connected(started.address) as client:
            client.wait_for_workers(workers, timeout=60)
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A cluster of two workers."""
    with a_cluster(tmp_path_factory.mktemp("cluster"), 2) as started:
        yield started


def until(holds, seconds=60):
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not (holding := holds()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)
    return holding


@contextmanager
def when(holds, do):
    """Something is done as soon as something holds."""
    seen = []

    def wait():
        until(holds)
        seen.append(True)
        do()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()
    assert seen


def begun(store, many):
    """Whether so many trials are on their way, each with an epoch behind it."""
    return sum(row.state == RUNNING and row.epoch > 0 for row in store.rows()) >= many


def run(folder, data, where, **options):
    return cluster.run(folder, Options(data=str(data), **options), where.address)


def results(folder):
    """Everything that a study found that came to its end."""
    counts = runner.reopen(folder)[1].counts()
    assert counts == {WAITING: 0, RUNNING: 0, "done": TRIALS, FAILED: 0}
    return studied.results(folder)


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    """What the study finds without a cluster."""
    folder = tmp_path_factory.mktemp("alone") / "store"
    runner.open_study(folder, STUDY)
    assert runner.run(folder, Options(data=str(data))) == 0
    return results(folder)


def driver(folder, data, where):
    """The command, in a process of its own."""
    code = "import sys; from calibrant.cli import main; main()"
    arguments = ["experiment", "resume", folder, "--data", data, "--scheduler", where.address, "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=where.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# results


def test_a_cluster_finds_what_one_process_finds_to_the_bit(pair, alone, data, tmp_path):
    runner.open_study(tmp_path, STUDY)
    assert run(tmp_path, data, pair) == 0
    assert_same_results(results(tmp_path), alone)
    store = Store(tmp_path)
    assert {store.outcome(row.trial.id).about["process"] for row in store.rows()} == {
        worker.pid for worker in pair.workers
    }
    assert [row.attempts for row in store.rows()] == [1] * TRIALS
    assert [path.name for path in tmp_path.rglob(".*")] == []


def test_a_worker_killed_in_mid_trial_costs_nothing_but_time(pair, alone, data, tmp_path):
    _, store = runner.open_study(tmp_path, STUDY)
    with when(lambda: begun(store, 2), pair.workers.pop(0).kill):
        assert run(tmp_path, data, pair, seconds_between_checkpoints=0.0) == 0
    pair.start_worker()
    assert_same_results(results(tmp_path), alone)
    assert {store.outcome(row.trial.id).about["process"] for row in store.rows()} == {pair.workers[0].pid}


def test_a_study_goes_on_when_all_workers_died_and_others_came(pair, alone, data, tmp_path, monkeypatch):
    _, store = runner.open_study(tmp_path, STUDY)
    monkeypatch.setattr(cluster, "ADRIFT", 1.0)

    def replace():
        for worker in pair.workers:
            worker.kill()
        pair.workers = [pair.start_worker()]

    with when(lambda: begun(store, 1), replace):
        assert run(tmp_path, data, pair, seconds_between_checkpoints=0.0) == 0
    pair.start_worker()
    assert_same_results(results(tmp_path), alone)


def test_a_trial_whose_workers_die_has_failed_and_a_scheduler_that_dies_is_said(alone, data, tmp_path):
    store_folder = tmp_path / "store"
    _, store = runner.open_study(store_folder, STUDY)
    with a_cluster(tmp_path, 2, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as small:
        with when(lambda: begun(store, 2), small.workers[0].kill):
            assert run(store_folder, data, small) == 0  # the others went on
        (failed,) = [row for row in store.rows() if row.state == FAILED]
        assert failed.reason.startswith("too many of its workers died (1, the last was tcp://")
        assert store.retry() == 1
        gone = pytest.raises(ClusterError, match="the Dask scheduler is gone")
        with when(lambda: begun(store, 1), small.processes[0].kill), gone:
            run(store_folder, data, small)
    assert store.counts()[WAITING] > store.counts()[RUNNING] + store.counts()[FAILED] == 0
    assert runner.run(store_folder, Options(data=str(data))) == 0
    assert_same_results(results(store_folder), alone)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_driver_that_is_stopped_or_killed_is_started_again(pair, alone, data, tmp_path, sent, code):
    _, store = runner.open_study(tmp_path, STUDY)
    process = driver(tmp_path, data, pair)
    until(lambda: begun(store, 1))
    process.send_signal(sent)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code, errors
    if sent == signal.SIGINT:
        assert errors == "calibrant: stopped; calibrant experiment resume goes on\n"
        assert store.counts()[RUNNING] == 0
    until(lambda: list(store.checkpoints.glob("*.npz")))  # workers hear of it, and stop after the epoch
    assert run(tmp_path, data, pair) == 0
    assert_same_results(results(tmp_path), alone)


def test_a_full_disk_here_stops_with_a_message_and_an_intact_store(pair, alone, data, tmp_path, monkeypatch):
    _, store = runner.open_study(tmp_path, STUDY)
    written, real = [], os.fsync

    def full(handle):
        written.append(handle)
        if len(written) > 4:  # a file and its folder each
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFullError, match="the disk is full"):
        run(tmp_path, data, pair)
    monkeypatch.undo()
    assert store.counts() == {WAITING: 2, RUNNING: 0, "done": 2, FAILED: 0}
    assert run(tmp_path, data, pair) == 0
    assert_same_results(results(tmp_path), alone)


def test_a_training_that_diverges_has_failed_with_its_reason(pair, data, tmp_path):
    kind = "{kind: sgd, learning_rate: 1e30, momentum: 0}"
    _, store = runner.open_study(tmp_path, STUDY.replace("{kind: adam, learning_rate: 5e-3}", kind))
    assert run(tmp_path, data, pair) == 0
    assert {row.state for row in store.rows()} == {FAILED}
    assert "finite" in store.rows()[0].reason


# one remote trial


def a_remote_trial(seed, data, **changes):
    described = json.loads(runner.study_in(STUDY, "here").trials()[0].to_json())
    trial = Trial.from_json(json.dumps({**described, "seed": seed}))
    told = {"version": calibrant.__version__, "device": "cpu", "data": str(data), "checkpoints": "/nowhere"}
    more = {"seconds_between_checkpoints": 0.0, "topic": f"epochs-{seed}"}
    return trial, RemoteTrial(trial.to_json(), **{**told, **more, **changes})


def test_two_trials_that_one_process_is_given_at_once_do_not_disturb_each_other(pair, data, tmp_path):
    with connected(pair.address) as client:
        worker, *_ = client.processing()
        sent = [(trial, client.submit(asked.task(), pure=False, workers=[worker]))
                for trial, asked in (a_remote_trial(seed, data) for seed in (5, 6))]  # fmt: skip
        for trial, future in sent:
            how, content, address = future.result(timeout=60)
            assert (how, address) == (DONE, worker)
            path = tmp_path / f"{trial.id}.npz"
            path.write_bytes(content)
            assert_same(read_outcome(path), train(trial, Surroundings(root=data)))


def test_a_process_that_trains_takes_no_other_trial_and_gives_up_one_that_nobody_wants(monkeypatch):
    monkeypatch.setattr(remote_trial, "PAUSE", 0.01)
    asked = iter([False, False, True])
    place = SimpleNamespace(is_unwanted=lambda: next(asked))
    with remote_trial._alone(place) as first:
        assert first
        with remote_trial._alone(place) as second:
            assert not second
    assert next(asked, None) is None  # it was looked at three times
    with remote_trial._alone(place) as again:
        assert again


def test_where_the_store_cannot_be_reached_a_trial_goes_on_from_the_workers_own_checkpoint(pair, data):
    trial, asked = a_remote_trial(7, data)
    path = pair.folder / "scratch" / "dask-scratch-space" / "calibrant-checkpoints" / f"{trial.id}.npz"
    with connected(pair.address) as client:
        client.submit(asked.task(), key="first", pure=False)
        until(path.exists)
        client.cancel(["first"])
        heard = []
        client.subscribe_topic(asked.topic, lambda event: heard.append(event[1]))
        how, content, _ = client.submit(asked.task(), key="second", pure=False).result(timeout=60)
    assert how == DONE
    assert not path.exists()
    assert content[:2] == b"PK"
    assert min(epoch for _, epoch, _ in heard) > 1


def test_what_is_sent_needs_no_calibrant_to_arrive(data, tmp_path):
    from distributed.protocol.pickle import dumps

    _, asked = a_remote_trial(0, data)
    (tmp_path / "task").write_bytes(dumps(asked.task()))
    code = f"""
import sys, types
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "calibrant":
            raise ModuleNotFoundError("No module named 'calibrant'", name="calibrant")
sys.meta_path.insert(0, Refuse())
import distributed, pickle
distributed.get_worker = lambda: types.SimpleNamespace(address="tcp://here")
print(pickle.loads(open({str(tmp_path / "task")!r}, "rb").read())())
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    wanted = (UNFIT, f"No module named 'calibrant'; install calibrant {calibrant.__version__} there", "tcp://here")
    assert process.stdout == f"{wanted}\n"


def test_what_comes_back_is_checked_before_it_has_a_name(data, tmp_path):
    (trial, _), (other, _) = (a_remote_trial(seed, data) for seed in (0, 1))
    store = Store(tmp_path / "store", create=True)
    with pytest.raises(CalibrationInputError, match="arrived"):
        take(store, trial, b"PK half")
    write_outcome(tmp_path / "o.npz", train(other, Surroundings(root=data)))
    with pytest.raises(CalibrationInputError, match="must be that of mlp, none, seed 0, got another trial's"):
        take(store, trial, (tmp_path / "o.npz").read_bytes())
    assert list(store.results.iterdir()) == []


# what is wrong with a cluster


def test_workers_that_cannot_train_are_named_with_what_to_do(pair, data, tmp_path, monkeypatch, capsys):
    _, store = runner.open_study(tmp_path, STUDY)
    with pytest.raises(ClusterError, match=r"no worker can train this study: tcp://.* must be a file that can be read"):
        run(tmp_path, tmp_path / "no data", pair)
    with pytest.raises(ClusterError, match="no worker can train"):
        cluster.run(tmp_path, Options("no-device", str(data)), pair.address)
    here = calibrant.__version__
    monkeypatch.setattr(calibrant, "__version__", "9.9.9")
    with pytest.raises(ClusterError, match=f"it has calibrant {here}; install 9.9.9 there"):
        run(tmp_path, data, pair)
    assert store.counts()[WAITING] == 4
    assert capsys.readouterr().err.count("left out: tcp://") == 6


def test_a_scheduler_that_is_not_there_is_said(tmp_path, monkeypatch):
    runner.open_study(tmp_path, STUDY)
    monkeypatch.setattr(scheduler, "PATIENCE", 0.5)
    with pytest.raises(ClusterError, match="no Dask scheduler answers there") as raised:
        cluster.run(tmp_path, Options(), "tcp://127.0.0.1:9")
    assert raised.value.filename == "tcp://127.0.0.1:9"
    refused = pytest.raises(ClusterError, match=r"no Dask scheduler answers there \(in 0\.5 s\)")
    with socket.create_server(("127.0.0.1", 0)) as silent, refused:  # something else listens there
        cluster.run(tmp_path, Options(), f"tcp://127.0.0.1:{silent.getsockname()[1]}")
    for address in ("", "nonsense", "what://is:1"):
        with pytest.raises(CalibrationInputError, match="scheduler: must be an address such as tcp://HOST:8786"):
            cluster.run(tmp_path, Options(), address)


def test_a_missing_package_is_said(tmp_path, monkeypatch):
    runner.open_study(tmp_path, STUDY)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        CalibrationInputError, match=r"needs distributed, .*; pip install 'calibrant\[experiments,dask\]'"
    ):
        cluster.run(tmp_path, Options(), "tcp://127.0.0.1:9")


# the command


def _examples():
    from calibrant.cli.commands import experiment

    texts = [inspect.cleandoc(experiment.commands[name].help or "") for name in ("run", "resume")]
    return [line.strip() for text in texts for line in text.splitlines() if "--scheduler" in line]


def test_the_examples_in_the_help_run_on_a_cluster(pair, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    testing = pytest.importorskip("click.testing")
    pytest.importorskip("rich")
    from calibrant.cli.commands import experiment

    monkeypatch.chdir(tmp_path)
    examples = _examples()
    assert len(examples) == 2
    for example in examples:
        program, group, *arguments = shlex.split(example.replace("tcp://127.0.0.1:8786", pair.address))
        assert (program, group) == ("calibrant", "experiment")
        result = testing.CliRunner().invoke(experiment, arguments)
        assert result.exit_code == 0, result.output
        assert "miniature-study: 10 done" in result.output
    result = testing.CliRunner().invoke(experiment, [*arguments, "--jobs", "2"])
    assert result.exit_code == 2
    assert "--jobs counts processes here" in result.output
