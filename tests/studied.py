"""Studies of clouds of points: a file to train on, everything that a study found, and whether two found the same."""

import csv

import numpy as np

from calibrant.experiments.findings.evidence import Evidence
from calibrant.experiments.findings.tables import tables_of
from calibrant.experiments.running import runner
from calibrant.experiments.running.outcomes import read_outcome
from calibrant.experiments.running.store import DONE


def write_clouds(folder):
    """Three overlapping clouds of points as blobs.csv; the folder."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 600)
    points = random.normal(size=(600, 4)) + 1.2 * np.eye(4)[labels]
    with (folder / "blobs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "d", "label"])
        writer.writerows([*point, f"k{label}"] for point, label in zip(points, labels, strict=True))
    return folder


def results(folder):
    """Everything that a study found, but for the time that it took."""
    study, store = runner.reopen(folder)
    done = [row.trial.id for row in store.rows() if row.state == DONE]
    outcomes = {trial: read_outcome(store.result_path(trial)) for trial in done}
    return outcomes, [sheet.to_csv() for sheet in tables_of(Evidence(study, store))]


def assert_same(one, other):
    """Two outcomes are the same to the bit."""
    for split in ("validation", "test"):
        np.testing.assert_array_equal(getattr(one, split).logits, getattr(other, split).logits)
        np.testing.assert_array_equal(getattr(one, split).labels, getattr(other, split).labels)
    np.testing.assert_array_equal(one.curves, other.curves)
    np.testing.assert_array_equal(one.epochs, other.epochs)
    assert (one.kept is None) == (other.kept is None)
    for name in ("train", "validation", "labels") if one.kept else ():
        np.testing.assert_array_equal(getattr(one.kept, name), getattr(other.kept, name))


def assert_same_results(one, other):
    """Two studies found the same."""
    assert one[0].keys() == other[0].keys()
    for name in one[0]:
        assert_same(one[0][name], other[0][name])
    assert one[1] == other[1]
