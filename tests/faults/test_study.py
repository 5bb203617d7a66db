"""A study under faults: killed, out of room and with errors of the disk at random writes, it ends as if undisturbed."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("yaml")
pytest.importorskip("pydantic")

import calibrant as cal
from calibrant.experiments.running import runner
from faults.injection import KILLED, injected, killed, points
from stored import TEXT, drawn_outcome, found

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs Unix")
FAULTS = 50
STUDY = TEXT.replace("seeds: [0, 1, 2]", f"seeds: {list(range(12))}")


def work(folder):
    """Run the study, or go on with it."""
    study, store = runner.open_study(folder, STUDY)
    runner.work(study, store, runner.Options())


def disturbed(point, folder):
    """Whether a fault struck while the study was run."""
    if point.kind == "kill":
        return killed(point, lambda: work(folder)) == KILLED
    with injected(point) as layer:
        try:
            work(folder)
        except (OSError, cal.CalibrationInputError):
            assert layer.spent, point  # nothing else may go wrong
    return layer.spent


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / "results").glob("*.npz")}


@pytest.fixture
def folder(tmp_path):
    """A folder in memory, where the system has one: a disk would be waited for some thousand times."""
    memory = "/dev/shm"
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_after_fifty_faults_at_random_writes_a_study_ends_as_if_undisturbed(folder, monkeypatch):
    monkeypatch.setattr(runner, "train", drawn_outcome)
    monkeypatch.setattr(runner, "dataset", lambda *arguments: None)
    work(folder / "left alone")
    every = [point for point in points(lambda: work(folder / "traced")) if point.number < 30]
    random, struck = np.random.default_rng(0), []
    while len(struck) < FAULTS:
        point = every[int(random.integers(len(every)))]
        if disturbed(point, folder / "disturbed"):
            struck.append(point)
        elif len(files(folder / "disturbed")) == 12:  # it is done: some of it is lost, and has to be done again
            for path in sorted((folder / "disturbed" / "results").glob("*.npz"))[::2]:
                path.unlink()
    assert {point.kind for point in struck} >= {"kill", "ENOSPC", "EIO"}
    work(folder / "disturbed")
    assert files(folder / "disturbed") == files(folder / "left alone")
    assert found(folder / "disturbed") == found(folder / "left alone")
