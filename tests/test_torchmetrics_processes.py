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

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[1] / "src"
METRICS = {"ece": cal.ECE, "mce": cal.MCE, "classwise": cal.SCE, "brier": cal.BRIER, "sweep": cal.ECE_SWEEP}
EVENTS = {"ece": cal.ECE, "brier": cal.BRIER, "adaptive": cal.ADAPTIVE_ECE}
CASES = {"classes": METRICS, "one process idle": METRICS, "events": EVENTS, "2 million rows": EVENTS}
PROCESS = """
import pathlib, sys
import numpy as np, torch
from torchmetrics import MetricCollection
from test_torchmetrics_processes import CASES, parts
from calibrant.integrations.torchmetrics import Calibration, state_of
import calibrant as cal

rank, place = int(sys.argv[1]), pathlib.Path(sys.argv[2])
torch.distributed.init_process_group("gloo", init_method=f"file://{place}/meeting", rank=rank, world_size=2)
for case, metrics in CASES.items():
    collection = MetricCollection({name: Calibration(metric) for name, metric in metrics.items()})
    for preds, target in parts(case)[rank]:
        collection.update(preds, target)
    for turn in range(2):  # after a synchronisation each process goes on with its own
        values = {name: value.numpy() for name, value in collection.compute().items()}
    np.savez(place / f"{case}{rank}.npz", **values)
    (place / f"{case}{rank}.state").write_bytes(state_of(collection).to_bytes())

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
    sizes = [50_000] * 40 if case == "2 million rows" else [40, 1, 300, 64, 17]
    of_events, batches = CASES[case] is EVENTS, []
    for index, n in enumerate(sizes):
        p = rng.random(n) if of_events else rng.dirichlet(np.full(5, 0.4), n)
        y = rng.random(n) < p**1.3 if of_events else (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        dtype = torch.float32 if index % 2 else torch.float64
        batches.append((torch.tensor(p, dtype=dtype), torch.tensor(y.astype(np.int64))))
    first = len(batches) if case == "one process idle" else len(batches) // 3
    return batches[:first], batches[first:]


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


@pytest.mark.parametrize(("case", "metrics"), CASES.items())
def test_two_processes_give_the_bytes_of_all_rows_in_memory(place, case, metrics):
    metrics = dict(sorted(metrics.items()))  # as a collection has them
    batches = [batch for part in parts(case) for batch in part]
    halves = [[batch for batch in batches if batch[0].dtype is dtype] for dtype in (torch.float32, torch.float64)]
    columns = [map(torch.cat, zip(*half, strict=True)) for half in halves]
    expected = sum(State.of(cal.Predictions.from_probs(y, p), metrics) for p, y in columns)
    for rank in range(2):
        assert (place / f"{case}{rank}.state").read_bytes() == expected.to_bytes()
        with np.load(place / f"{case}{rank}.npz") as values:
            assert {name: float(value) for name, value in values.items()} == {
                name: result.value for name, result in expected.results().items()
            }


def test_processes_that_saw_other_forecasts_are_refused_in_both(place):
    for rank in range(2):
        assert (
            "must be of one metric, its options and one number of classes" in (place / f"mixed{rank}.txt").read_text()
        )
