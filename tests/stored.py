"""A finished study whose outcomes are drawn, not trained: small, quick, and the same every time."""

import sqlite3

import numpy as np

from calibrant.experiments.findings.tables import tables_of
from calibrant.experiments.running import runner
from calibrant.experiments.running.evidence import Evidence
from calibrant.experiments.running.study_store import DONE
from calibrant.experiments.training.trial_outcomes import Answers, Outcome

TEXT = """\
name: drawn
data: {name: digits}
models: [mlp]
training: {epochs: 1}
interventions: []
seeds: [0, 1, 2]
post_processing: {methods: [temperature]}
metrics: [accuracy, ece]
bootstrap: 5
"""
TABLES = ["accuracy", "metrics"]
CLASSES = ("a", "b", "c")


def drawn_outcome(trial, *_):
    """What came of a trial: a function of its seed alone."""
    random = np.random.default_rng(trial.seed)
    parts = []
    for _ in range(2):
        logits = random.normal(size=(12, 3)).astype(np.float32)
        parts.append(Answers(logits, (logits + random.gumbel(size=(12, 3))).argmax(axis=1)))
    return Outcome(trial.to_json(), *parts, CLASSES, about={"seconds": 1.5})


def finished_store(folder, patch, text=TEXT):
    """The store of a study, run to its end with drawn outcomes; `patch` is pytest's."""
    patch.setattr(runner, "train", drawn_outcome)
    patch.setattr(runner, "dataset", lambda *arguments: None)
    study, store = runner.open_study(folder, text)
    runner.work(study, store, runner.Options())
    found(folder)
    return store


def found(folder):
    """All that the study found, and how many trials are done."""
    study, store = runner.reopen(folder)
    counts = store.counts()
    return counts[DONE], [sheet.to_csv() for sheet in tables_of(Evidence(study, store), TABLES)]


def compact(path):
    """Make a database as small as it gets: in small pages, without a log beside it."""
    with sqlite3.connect(path, isolation_level=None) as database:
        for statement in ("pragma journal_mode = delete", "pragma page_size = 512", "vacuum"):
            database.execute(statement)
    database.close()
