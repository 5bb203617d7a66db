"""Metrics of torchmetrics in two real processes over gloo: the bytes of one process, whoever saw which rows."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torchmetrics")

import torch

import calibrant as cal
from calibrant.scale import State

SOURCES = Path(__file__).parents[1] / "src"
METRICS = {"ece": cal.ECE, "mce": cal.MCE, "classwise": cal.SCE, "brier": cal.BRIER, "sweep": cal.ECE_SWEEP}
EVENTS = {"ece": cal.ECE, "auroc": cal.AUROC, "adaptive": cal.ADAPTIVE_ECE}
PROCESS = """
import pathlib, sys
import numpy as np, torch
from torchmetrics import MetricCollection
from test_torchmetrics_processes import EVENTS, METRICS, parts
from calibrant.integrations.torchmetrics import Calibration
import calibrant as cal

rank, place = int(sys.argv[1]), pathlib.Path(sys.argv[2])
torch.distributed.init_process_group("gloo", init_method=f"file://{place}/meeting", rank=rank, world_size=2)
for case, metrics in (("classes", METRICS), ("events", EVENTS), ("one", METRICS)):
    collection = MetricCollection({name: Calibration(metric) for name, metric in metrics.items()})
    for preds, target in parts(case)[rank]:
        collection.update(preds, target)
    for turn in range(2):  # after a synchronisation each process goes on with its own
        values = {name: value.numpy() for name, value in collection.compute().items()}
    np.savez(place / f"{case}{rank}.npz", **values)
    for name, metric in collection.items():
        (place / f"{case}.{name}{rank}.state").write_bytes(metric.state().to_bytes())

mixed = Calibration(cal.ECE)
mixed.update(*((torch.tensor([[0.5, 0.5]]), torch.tensor([1])) if rank else (torch.tensor([0.5]), torch.tensor([1]))))
try:
    mixed.compute()
except cal.CalibrationInputError as error:
    (place / f"mixed{rank}.txt").write_text(str(error))
torch.distributed.destroy_process_group()
"""


def parts(case):
    """The batches of both processes, uneven in number and size, of float32 and float64."""
    rng = np.random.default_rng(0)
    batches = []
    for index, n in enumerate((40, 1, 300, 64, 17)):
        p = rng.random(n) if case == "events" else rng.dirichlet(np.full(5, 0.4), n)
        y = rng.random(n) < p**1.3 if case == "events" else (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        dtype = torch.float64 if index % 2 else torch.float32
        batches.append((torch.tensor(p, dtype=dtype), torch.tensor(y.astype(np.int64))))
    return (batches, []) if case == "one" else (batches[:1], batches[1:])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    path = os.pathsep.join([str(SOURCES), str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    processes = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(rank), str(folder)], env=environment) for rank in range(2)
    ]
    try:
        assert [process.wait(timeout=120) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
    return folder


@pytest.mark.parametrize(
    ("case", "name"),
    [
        *(("classes", name) for name in METRICS),
        *(("events", name) for name in EVENTS),
        ("one", "ece"),
        ("one", "sweep"),
    ],
)
def test_two_processes_give_the_bytes_of_all_rows_in_memory(place, case, name):
    """Where one process saw no batch, too."""
    metric = (EVENTS if case == "events" else METRICS)[name]
    batches = [batch for part in parts(case) for batch in part]
    in_memory = [
        torch.cat([batch[column] for batch in batches if batch[0].dtype is dtype])
        for dtype in (torch.float32, torch.float64)
        for column in (0, 1)
    ]
    halves = [cal.Predictions.from_probs(y, p) for p, y in (in_memory[:2], in_memory[2:])]
    expected = sum(State.of(half, {metric.name: metric}) for half in halves)
    for rank in range(2):
        assert (place / f"{case}.{name}{rank}.state").read_bytes() == expected.to_bytes()
        with np.load(place / f"{case}{rank}.npz") as values:
            assert float(values[name]) == expected.results()[metric.name].value


def test_processes_that_saw_other_forecasts_are_refused_in_both(place):
    for rank in range(2):
        assert (
            "must be of one metric, its options and one number of classes" in (place / f"mixed{rank}.txt").read_text()
        )
