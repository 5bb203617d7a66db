"""Studies of clouds of points: a file to train on, everything that a study found, and whether two found the same."""

import csv

import numpy as np

from calibrant.experiments.findings.tables import tables_of
from calibrant.experiments.running import runner
from calibrant.experiments.running.evidence import Evidence
from calibrant.experiments.running.study_store import DONE
from calibrant.experiments.training.trial_outcomes import read_outcome


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


def assert_same(first, second):
    """Two outcomes are the same to the bit."""
    for split in ("validation", "test"):
        np.testing.assert_array_equal(getattr(first, split).logits, getattr(second, split).logits)
        np.testing.assert_array_equal(getattr(first, split).labels, getattr(second, split).labels)
    np.testing.assert_array_equal(first.curves, second.curves)
    np.testing.assert_array_equal(first.epochs, second.epochs)
    assert (first.kept is None) == (second.kept is None)
    for name in ("train", "validation", "labels") if first.kept else ():
        np.testing.assert_array_equal(getattr(first.kept, name), getattr(second.kept, name))


def assert_same_results(first, second):
    """Two studies found the same."""
    assert first[0].keys() == second[0].keys()
    for name in first[0]:
        assert_same(first[0][name], second[0][name])
    assert first[1] == second[1]
