"""Studies from the file to the figures: the same results however often they are interrupted, and whoever does the work.

What trains networks needs torch; these tests are left out where it is missing.
"""

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")
pytest.importorskip("yaml")

import torch

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.design.checking import check
from calibrant.experiments.findings.tables import accuracy, tables_of
from calibrant.experiments.running import runner, trial
from calibrant.experiments.running.evidence import Evidence
from calibrant.experiments.running.runner import DiskFullError, Options
from calibrant.experiments.running.study_store import DONE, FAILED, WAITING, Store
from calibrant.experiments.training import interventions, optimisers, trainer
from calibrant.experiments.training.augmentation import augmented, changes
from calibrant.experiments.training.trainer import StoppedError, Surroundings, train
from calibrant.experiments.training.trial_outcomes import read_outcome
from calibrant.experiments.training.trials import Trial, read_trials, write_trials
from studied import assert_same, assert_same_results, results, write_clouds

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[1] / "src"
STUDY = """\
name: blobs
data: {name: "csv:blobs.csv", validation: 0.25}
models: [mlp]
training:
  epochs: 4
  batch_size: 32
  optimiser: {kind: adam, learning_rate: 5e-3}
interventions:
  - {kind: label_smoothing, strengths: [0.05, 0.2]}
  - {kind: mixup, strengths: [0.2, 1.0]}
  - {kind: focal, strengths: [2], schedule: [[0, 1], [2, 0.5]]}
seeds: [0, 1]
tuning: {seeds: [0]}
post_processing: {methods: [temperature, histogram]}
metrics: [accuracy, ece, sce, "top_k(2)/kdtree(0.1)"]
over_training: {metrics: [accuracy, ece], every: 2, train_rows: 50}
gammas: [0.5, 0.2]
bootstrap: 5
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with three overlapping clouds of points."""
    return write_clouds(tmp_path_factory.mktemp("data"))


def a_trial(**changes):
    described = json.loads(check(STUDY).trials()[0].to_json())
    for name, value in changes.items():
        described[name] = {**described[name], **value} if isinstance(value, dict) else value
    return Trial.from_json(json.dumps(described))


def around(data, **options):
    return Surroundings(root=data, **options)


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """The study, run without any trouble."""
    folder = tmp_path_factory.mktemp("finished") / "store"
    runner.open_study(folder, STUDY)
    assert runner.run(folder, Options(data=str(data))) == 0
    return folder


# one trial


def test_a_trial_trained_twice_is_the_same_to_the_bit(data):
    first, second = (train(a_trial(), around(data)) for _ in range(2))
    assert_same(first, second)
    assert first.test.logits.shape == (120, 3)
    assert first.epochs.tolist() == [2, 4]
    assert first.curves.shape == (2, 2, 2)
    assert first.curves[-1, 1, 0] > 0.5  # a third would be guessing


def test_what_was_drawn_before_does_not_matter(data):
    torch.manual_seed(5)
    outcome = train(a_trial(), around(data))
    torch.rand(7)
    torch.manual_seed(6)
    assert_same(outcome, train(a_trial(), around(data)))


def test_another_seed_is_another_network(data):
    first, second = (train(a_trial(seed=seed), around(data)) for seed in (0, 1))
    assert (first.test.logits != second.test.logits).any()
    np.testing.assert_array_equal(first.test.labels, second.test.labels)


TRAININGS = {
    "adam": {},
    "sgd": {
        "optimiser": {"kind": "sgd", "learning_rate": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}
    },
    "plain sgd": {"optimiser": {"kind": "sgd", "learning_rate": 0.05, "momentum": 0.0}},
    "adamw": {
        "optimiser": {"kind": "adamw", "learning_rate": 1e-3, "weight_decay": 0.01},
        "schedule": {"kind": "cosine"},
    },
    "bfloat16": {"precision": "bfloat16"},
}


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(data, tmp_path, name, stop_after):
    trial = a_trial(training=TRAININGS[name], intervention={"kind": "mixup", "strength": 0.5})
    whole = train(trial, around(data))
    path, done = tmp_path / "c.npz", []
    stopping = around(
        data, checkpoint=path, told=lambda epoch, of: done.append(epoch), stop=lambda: len(done) == stop_after
    )
    with pytest.raises(StoppedError, match=f"after epoch {stop_after} of 4"):
        train(trial, stopping)
    again = around(data, checkpoint=path, told=lambda epoch, of: done.append(epoch))
    assert_same(whole, train(trial, again))
    assert done == [1, 2, 3, 4]


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_logits_kept_after_epochs_go_on_as_if_nothing_had_been_stopped(data, tmp_path, stop_after):
    trial = a_trial(over_training={"keep": True})
    whole, path, done = train(trial, around(data)), tmp_path / "c.npz", []
    hears = {"told": lambda epoch, of: done.append(epoch), "stop": lambda: len(done) == stop_after}
    with pytest.raises(StoppedError):
        train(trial, around(data, checkpoint=path, **hears))
    assert_same(whole, train(trial, around(data, checkpoint=path)))
    assert whole.kept.train.shape == (2, 50, 3)
    assert whole.kept.validation.shape == (2, 120, 3)


def test_logits_kept_after_epochs_are_those_that_were_measured(data):
    outcome = train(a_trial(over_training={"keep": True}), around(data))
    np.testing.assert_array_equal(outcome.kept.validation[-1], outcome.validation.logits.astype(np.float16))
    for split, name in enumerate(("train", "validation")):
        for index, (epoch, answers) in enumerate(outcome.over_training(name)):
            assert epoch == outcome.epochs[index]
            hits = (answers.values.argmax(1) == answers.hard_labels("testing")).mean()
            assert hits == pytest.approx(outcome.curves[index, split, 0], abs=1e-12)


def test_logits_are_kept_without_any_metric(data):
    outcome = train(a_trial(over_training={"keep": True, "metrics": []}), around(data))
    assert outcome.curves.shape == (2, 2, 0)
    assert outcome.kept.train.shape == (2, 50, 3)


def test_nothing_is_kept_after_epochs_unless_it_is_asked_for(data):
    outcome = train(a_trial(), around(data))
    assert outcome.kept is None
    assert list(outcome.over_training("train")) == []


def test_what_modules_draw_goes_on_as_if_nothing_had_been_stopped(data, tmp_path, monkeypatch):
    from calibrant.experiments.training import networks

    def with_drop_out(name, *, shape, classes, seed, initialisation):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, classes))

    monkeypatch.setattr(networks, "build", with_drop_out)
    whole, path = train(a_trial(), around(data)), tmp_path / "c.npz"
    with pytest.raises(StoppedError):
        train(a_trial(), around(data, checkpoint=path, stop=lambda: True))
    torch.rand(3)
    assert_same(whole, train(a_trial(), around(data, checkpoint=path)))


@pytest.mark.parametrize("damage", ["cut", "other trial", "other network", "not a number"])
def test_a_checkpoint_that_cannot_be_used_is_as_good_as_none(data, tmp_path, damage):
    path, trial = tmp_path / "c.npz", a_trial()
    with pytest.raises(StoppedError):
        train(trial, around(data, checkpoint=path, stop=lambda: True))
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:500])
    elif damage == "other trial":
        trial = a_trial(seed=9)
    else:
        arrays = dict(np.load(path))
        last = [name for name in arrays if name.startswith("network")][-1]
        arrays[last] = arrays[last][:1] if damage == "other network" else np.array(["x"])
        np.savez(path, **arrays)
    assert_same(train(trial, around(data)), train(trial, around(data, checkpoint=path)))


def test_checkpoints_hold_no_pickles(data, tmp_path):
    path = tmp_path / "c.npz"
    with pytest.raises(StoppedError):
        train(a_trial(), around(data, checkpoint=path, stop=lambda: True))
    with np.load(path, allow_pickle=False) as arrays:
        assert {name.split("/")[0] for name in arrays.files} == {"network", "optimiser", "meta", "epochs", "curves"}
        assert all(arrays[name].dtype != object for name in arrays.files)


def test_a_training_that_diverges_fails_with_a_reason(data):
    wild = a_trial(training={"optimiser": {"kind": "sgd", "learning_rate": 1e30, "momentum": 0.0}})
    with pytest.raises(CalibrationInputError, match="finite"):
        train(wild, around(data))


@pytest.mark.parametrize(
    "intervention",
    [
        {"kind": "none", "strength": 0.0},
        {"kind": "label_smoothing", "strength": 0.1},
        {"kind": "mixup", "strength": 0.4},
        {"kind": "focal", "strength": 2.0},
        {"kind": "focal", "strength": 2.0, "schedule": [[0, 1.0], [2, 0.5]]},
        {"kind": "flsd", "strength": 3.0},
        {"kind": "margin", "strength": 0.1, "margin": 1.0},
    ],
    ids=lambda intervention: intervention["kind"] + " schedule" * ("schedule" in intervention),
)
def test_every_intervention_learns(data, intervention):
    outcome = train(a_trial(intervention=intervention), around(data))
    assert (outcome.test.logits.argmax(1) == outcome.test.labels).mean() > 0.6


LOGITS = [[2.0, 0.5, -1.0]]


@pytest.mark.parametrize(
    ("intervention", "epoch", "label", "loss"),
    [
        # hand-worked: softmax(2, .5, -1) = (.7856, .1753, .0391)
        ({"kind": "none", "strength": 0}, 0, 0, 0.2413112967),
        ({"kind": "label_smoothing", "strength": 0.1}, 0, 0, 0.3913112967),
        ({"kind": "focal", "strength": 2}, 0, 0, 0.0110927501),
        ({"kind": "focal", "strength": 2, "schedule": [[0, 1.0], [3, 0.5]]}, 2, 0, 0.0110927501),
        ({"kind": "focal", "strength": 2, "schedule": [[0, 1.0], [3, 0.5]]}, 3, 0, 0.0517378576),
        ({"kind": "flsd", "strength": 3}, 0, 2, 2.6551147544),
        ({"kind": "flsd", "strength": 3}, 0, 0, 0.0023783185),
        ({"kind": "flsd", "strength": 2}, 0, 0, 0.0110927501),
        ({"kind": "flsd", "strength": 2, "below": 3, "threshold": 0.9}, 0, 0, 0.0023783185),
        ({"kind": "margin", "strength": 0.1, "margin": 2}, 0, 0, 0.2746446300),
    ],
)
def test_an_intervention_is_its_loss_at_its_strength(intervention, epoch, label, loss):
    batch = interventions.batch_loss(intervention, epoch, torch.Generator())
    computed = batch(lambda inputs: inputs, torch.tensor(LOGITS, dtype=torch.float64), torch.tensor([label]))
    assert float(computed) == pytest.approx(loss, abs=1e-9)


def test_an_unknown_intervention_is_named():
    with pytest.raises(CalibrationInputError, match="did you mean 'mixup'"):
        interventions.batch_loss({"kind": "mixupp", "strength": 1}, 0, torch.Generator())


@pytest.mark.parametrize(
    ("schedule", "epoch", "rate"),
    [
        ({"kind": "constant"}, 7.5, 0.2),
        ({"kind": "cosine"}, 0, 0.2),
        ({"kind": "cosine"}, 5, 0.1),
        ({"kind": "cosine"}, 10, 0.0),
        ({"kind": "steps", "milestones": [4, 8], "factor": 0.1}, 3.99, 0.2),
        ({"kind": "steps", "milestones": [4, 8], "factor": 0.1}, 4, 0.02),
        ({"kind": "steps", "milestones": [4, 8], "factor": 0.1}, 9, 0.002),
        ({"kind": "constant", "warmup": 2}, 1, 0.1),
        ({"kind": "constant", "warmup": 2}, 0, 0.001),
        ({"kind": "constant", "warmup": 2}, 2, 0.2),
    ],
)
def test_the_learning_rate_follows_its_schedule(schedule, epoch, rate):
    described = {"epochs": 10, "optimiser": {"learning_rate": 0.2}, "schedule": schedule}
    assert optimisers.learning_rate(described, epoch) == pytest.approx(rate, abs=1e-12)


def test_pictures_are_mirrored_and_shifted_as_a_plain_loop_does():
    pictures = torch.arange(3 * 2 * 4 * 5, dtype=torch.float32).reshape(3, 2, 4, 5)
    how = {"flip": True, "crop": 2}
    (change,) = changes(how, [3], torch.Generator().manual_seed(3))
    changed = augmented(pictures, how, change)
    random = torch.Generator().manual_seed(3)
    mirrored = torch.rand(3, generator=random) < 0.5
    down, right = torch.randint(0, 5, (2, 3, 1), generator=random)
    for index in range(3):
        for channel in range(2):
            for y in range(4):
                for x in range(5):
                    row, column = y + int(down[index]) - 2, x + int(right[index]) - 2
                    inside = 0 <= row < 4 and 0 <= column < 5
                    column = 4 - column if mirrored[index] else column
                    wanted = pictures[index, channel, row, column] if inside else 0.0
                    assert changed[index, channel, y, x] == wanted
    assert torch.equal(augmented(pictures, {}, changes({}, [3], random)[0]), pictures)


@pytest.mark.parametrize("how", [{"flip": True, "crop": 1}, {"flip": True}, {"crop": 1}, {}])
def test_changes_of_several_batches_are_those_of_one_after_the_other(how):
    together = changes(how, [3, 2], torch.Generator().manual_seed(3))
    random = torch.Generator().manual_seed(3)
    for n, change in zip([3, 2], together, strict=True):
        pictures = torch.rand(n, 1, 4, 4)
        (alone,) = changes(how, [n], random)
        assert torch.equal(augmented(pictures, how, change), augmented(pictures, how, alone))


def test_every_row_is_trained_on_once_an_epoch_and_no_batch_is_a_single_row(data):
    run = trainer._Run(a_trial(training={"batch_size": 59}), around(data))
    for epoch in (0, 1):
        batches = run._batches(epoch)
        assert sorted(torch.cat(batches).tolist()) == list(range(len(run.labels)))
        sizes = [len(batch) for batch in batches]
        assert max(sizes) <= 59
        assert max(sizes) - min(sizes) <= 1
    assert run._batches(0)[0].tolist() != run._batches(1)[0].tolist()


# a study


def test_a_study_goes_from_the_file_to_tables_and_figures(finished, tmp_path):
    pytest.importorskip("matplotlib")
    from calibrant.experiments.findings.figures import FIGURES, save_figures
    from calibrant.experiments.findings.tables import TABLES

    study, store = runner.reopen(finished)
    evidence = Evidence(study, store)
    # on the tuning seed 1 + 2 + 2, two seeds of the focal loss, one more of the base and of two chosen strengths
    assert store.counts() == {WAITING: 0, "running": 0, DONE: 10, FAILED: 0}
    sheets = {sheet.name: sheet for sheet in tables_of(evidence)}
    assert sheets.keys() == TABLES.keys()
    assert [row[0] for row in sheets["accuracy"].rows] == [
        "base",
        "label_smoothing",
        "mixup",
        "focal",
        "temperature",
        "histogram",
    ]
    assert all(row[1].n == 2 for row in sheets["accuracy"].rows)
    drawn = {path.stem for path in save_figures(evidence, tmp_path, form="png") if path.suffix == ".png"}
    of_groups = {"groups", "group_confidence", "hierarchy"}  # the classes have none
    of_epochs = {"range_bounds", "range_errors", "bins_over_training", "logit_norms"}  # no logits were kept
    assert drawn == FIGURES.keys() - of_groups - of_epochs - {"sizes"}  # the networks have none to choose
    with (tmp_path / "over_training.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["rows"] for row in rows} == {"train", "validation"}
    assert {row["epoch"] for row in rows} == {"2", "4"}


def test_groups_of_classes_are_asked_of_all_samples_and_of_each_group(finished, tmp_path):
    pytest.importorskip("matplotlib")
    from calibrant import diagnostics
    from calibrant.experiments.findings import figure_rows
    from calibrant.experiments.findings.figures import save_figures

    study, store = runner.reopen(finished)
    evidence = Evidence(study, store)
    members = {"near": ("k0", "k1"), "far": ("k2",)}
    grouped = {row.trial.id: replace(store.outcome(row.trial.id), hierarchy={"place": members}) for row in store.rows()}
    evidence.outcome = grouped.__getitem__
    base = [row for row in figure_rows.groups(evidence).records() if row["method"] == "base"]
    names = ["ECE, 15 bins", "all samples", "samples of near", "samples of far"]
    assert [(row["level"], row["measure"]) for row in base] == [("place", name) for name in names]
    outputs = figure_rows.group_confidence(evidence).records()[0]
    wanted = [
        diagnostics.group_outputs(grouped[name].predictions("test"), members)["near"]["near"]
        for name in evidence.variants()[0].trials
    ]
    assert outputs["value"].mean == pytest.approx(np.mean(wanted), abs=1e-12)
    assert len(save_figures(evidence, tmp_path, ["groups", "group_confidence"])) == 4


def test_a_series_has_one_look_in_all_panels_and_the_legend_names_each():
    pytest.importorskip("matplotlib")
    from calibrant.experiments.findings import figure_rows
    from calibrant.experiments.findings.figures import DrawnFinding
    from calibrant.experiments.findings.sheets import Sheet, Spread

    rows = (
        ("mlp", "base", "kind", "all", Spread.of([0.1])),
        ("mlp", "base", "kind", "tops", Spread.of([0.2])),
        ("mlp", "base", "place", "all", Spread.of([0.3])),
        ("mlp", "base", "place", "shoes", Spread.of([0.4])),
    )
    sheet = Sheet("groups", "T", ("model", "method", "level", "measure", "value"), rows)
    for bars in (True, False):
        across = "method" if bars else "value"
        figure = DrawnFinding(figure_rows.groups, across, "value", "measure", ("model", "level"), bars)
        if not bars:
            sheet = Sheet("groups", "T", sheet.header, tuple((*row[:4], row[4].mean) for row in rows))
        picture = figure.draw(sheet)
        colours = {}
        for panel in picture.axes:
            for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
                colour = handle.patches[0].get_facecolor() if bars else handle.get_color()
                colours.setdefault(label, set()).add(colour)
        assert sorted(colours) == ["all", "shoes", "tops"]
        assert [len(some) for some in colours.values()] == [1, 1, 1]
        assert len(set.union(*colours.values())) == 3
        assert sorted(text.get_text() for text in picture.legends[0].get_texts()) == ["all", "shoes", "tops"]


def test_tables_say_what_the_outcomes_do(finished):
    study, store = runner.reopen(finished)
    evidence = Evidence(study, store)
    base = evidence.variants()[0]
    assert base.is_base
    hits = []
    for name in base.trials:
        test = store.outcome(name).test
        hits.append(float((test.logits.argmax(1) == test.labels).mean()))
    cells = next(row for row in accuracy(evidence).rows if row[0] == "base")
    assert cells[1].mean == pytest.approx(np.mean(hits), abs=1e-12)
    assert cells[1].sd == pytest.approx(np.std(hits, ddof=1), abs=1e-12)


def test_metrics_over_training_are_means_over_seeds(finished):
    from calibrant.experiments.findings import epoch_rows

    study, store = runner.reopen(finished)
    evidence = Evidence(study, store)
    outcomes = [store.outcome(name) for name in evidence.variants()[0].trials]
    found = [row for row in epoch_rows.over_training(evidence).records() if row["method"] == "base"]
    assert [row["epoch"] for row in found[:2]] == outcomes[0].epochs.tolist()
    for split, part in enumerate(("train", "validation")):
        for index, metric in enumerate(outcomes[0].names):
            values = [row["value"] for row in found if (row["rows"], row["metric"]) == (part, metric)]
            curves = np.array([outcome.curves[:, split, index] for outcome in outcomes])
            assert [value.mean for value in values] == pytest.approx(curves.mean(axis=0))
            assert [value.sd for value in values] == pytest.approx(curves.std(axis=0, ddof=1))


def test_post_processing_is_fitted_on_validation_rows_alone(finished):
    from calibrant.recalibrate import TemperatureScaling

    study, store = runner.reopen(finished)
    evidence = Evidence(study, store)
    name = evidence.variants()[0].trials[0]
    outcome = store.outcome(name)
    fitted = TemperatureScaling().fit(outcome.validation.logits, outcome.validation.labels)
    wanted = fitted.predict_proba(outcome.test.logits)
    probabilities = evidence.predictions(name, "temperature").probabilities
    np.testing.assert_array_equal(probabilities, wanted)
    assert evidence.fitted(name, "temperature").to_json() == fitted.to_json()  # kept in the store since


def test_strengths_are_chosen_by_the_tuning_seed_and_trained_on_all(finished):
    study, store = runner.reopen(finished)
    evidence = Evidence(study, store)
    for choice in evidence.choices:
        if len(choice.candidates) == 1:
            continue
        trained = {
            row.trial.strength: sorted(
                other.trial.seed
                for other in store.rows()
                if other.trial.intervention_name == choice.intervention and other.trial.strength == row.trial.strength
            )
            for row in store.rows()
            if row.trial.intervention_name == choice.intervention
        }
        assert trained[choice.strength] == [0, 1]
        assert [seeds for strength, seeds in trained.items() if strength != choice.strength] == [[0]]
        errors = {
            candidate.strength: candidate.error for candidate in choice.candidates if candidate.accuracy >= choice.floor
        }
        assert choice.strength == min(errors, key=errors.get)


def test_running_a_finished_study_again_does_nothing(finished, data):
    before = {path.name: path.stat().st_mtime_ns for path in (finished / "results").iterdir()}
    runner.open_study(finished, STUDY)
    assert runner.run(finished, Options(data=str(data))) == 0
    assert {path.name: path.stat().st_mtime_ns for path in (finished / "results").iterdir()} == before


def test_a_study_that_grows_keeps_what_is_done(finished, data, tmp_path):
    import shutil

    shutil.copytree(finished, tmp_path / "grown")
    runner.open_study(tmp_path / "grown", STUDY.replace("seeds: [0, 1]", "seeds: [0, 1, 2]"))
    waiting = [row.trial.seed for row in Store(tmp_path / "grown").rows() if row.state == WAITING]
    assert waiting == [2] * 4
    assert Store(tmp_path / "grown").counts()[DONE] == 10


def test_a_trial_that_fails_hinders_no_other_and_is_said(data, tmp_path):
    wild = STUDY.replace("strengths: [0.05, 0.2]", "strengths: [0.05]").replace("seeds: [0, 1]\n", "seeds: [0]\n")
    too_fast = "{name: mlp, label: wild, training: {optimiser: {kind: sgd, learning_rate: 1e30}}}"
    wild = wild.replace("models: [mlp]", f"models: [mlp, {too_fast}]")
    runner.open_study(tmp_path, wild)
    assert runner.run(tmp_path, Options(data=str(data))) == 0
    study, store = runner.reopen(tmp_path)
    assert {row.trial.model_name for row in store.rows() if row.state == FAILED} == {"wild"}
    assert {row.trial.model_name for row in store.rows() if row.state == DONE} == {"mlp"}
    assert any("finite" in reason for reason in Evidence(study, store).failures())
    _, tables = results(tmp_path)
    assert all(tables)


# trouble


ZYGOTE = """
import contextlib, os, random, signal, sqlite3, sys, time
import torch
from calibrant import train
from calibrant.experiments.training import datasets, networks, trainer
from calibrant.experiments.running import runner
folder, study, data = sys.argv[1], open(sys.argv[2]).read(), sys.argv[3]
kills, seconds = int(sys.argv[4]), float(sys.argv[5])
# load all that a training loads, once; children of this process then begin at once
first = runner.study_in(study, folder).trials()[0]
trainer.dataset(first.data, data)
torch.optim.Adam(networks.build("mlp", shape=(4,), classes=3).parameters(), 0.1)
options = runner.Options(data=data, seconds_between_checkpoints=0.0)
random.seed(0)

def work():
    runner.open_study(folder, study)
    os._exit(runner.run(folder, options))

for number in range(kills):
    child = os.fork()
    if child == 0:
        work()
    time.sleep(random.uniform(0.05, seconds))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        with contextlib.closing(sqlite3.connect(os.path.join(folder, "study.sqlite"))) as database:
            print(dict(database.execute("select state, count(*) from trials group by state")), flush=True)
    except sqlite3.OperationalError:
        print({}, flush=True)
began = time.monotonic()
child = os.fork()
if child == 0:
    work()
print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), time.monotonic() - began)
"""


def python(*arguments, **options):
    """Python in a process of its own that knows this calibrant."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, text=True, **options)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs Unix")
def test_killed_ten_times_at_random_moments_a_study_ends_as_if_nothing_had_happened(data, tmp_path):
    (tmp_path / "study.yaml").write_text(STUDY.replace("epochs: 4", "epochs: 40"))
    (tmp_path / "zygote.py").write_text(ZYGOTE)

    def run(name, kills, seconds):
        arguments = [tmp_path / name, tmp_path / "study.yaml", data, str(kills), str(seconds)]
        process = python(tmp_path / "zygote.py", *arguments)
        *states, ended = process.communicate(timeout=300)[0].splitlines()
        assert ended.startswith("ended 0 "), ended
        return states, float(ended.split()[2])

    _, seconds = run("left alone", 0, 0.0)
    for share in (6, 12, 24):  # a machine that was busy meanwhile was killed too late to show anything
        states, _ = run(f"killed {share}", 10, seconds / share)
        assert_same_results(results(tmp_path / f"killed {share}"), results(tmp_path / "left alone"))
        store = Store(tmp_path / f"killed {share}")
        assert list(store.checkpoints.glob("*.npz")) == []
        # the kills met trials that were being trained, at different places
        met = sum("running" in state for state in states) >= 5 and len(set(states)) >= 4
        if met and sum(row.attempts - 1 for row in store.rows()) >= 5:
            return
    pytest.fail(f"too few kills met a training: {states}")


def change_trials(store, **values):
    """Change what a store knows of all its trials."""
    with store.database.writing() as database:
        for record in store.database.rows(database, "trials"):
            store.database.put(database, "trials", {**record, **values})


def test_a_trial_whose_file_is_whole_is_not_trained_again(finished, data, tmp_path, monkeypatch):
    import shutil

    shutil.copytree(finished, tmp_path / "store")
    change_trials(Store(tmp_path / "store"), state="running", owner="me")  # as if every worker had been killed then
    monkeypatch.setattr(runner, "train", lambda *arguments: pytest.fail("it was trained again"))
    assert runner.run(tmp_path / "store", Options(data=str(data), lease=0.2)) == 0
    assert Store(tmp_path / "store").counts()[DONE] == 10


@pytest.mark.parametrize(
    ("codes", "left", "ended"),
    [([0, 0], 0, 0), ([0, -9], 0, 0), ([-9, -9], 2, 1), ([130, 0], 1, 130), ([4, 130], 3, 4)],
)
def test_several_workers_end_as_the_work_does(codes, left, ended):
    assert runner._ended(codes, {"waiting": left, "running": 0}) == ended


def test_two_processes_share_the_work_of_one_store(finished, data, tmp_path):
    runner.open_study(tmp_path, STUDY)
    assert runner.run(tmp_path, Options(data=str(data)), jobs=2) == 0
    store = Store(tmp_path)
    assert [row.attempts for row in store.rows()] == [1] * 10  # nothing was done twice
    processes = {store.outcome(row.trial.id).about["process"] for row in store.rows()}
    assert len(processes) == 2
    assert_same_results(results(tmp_path), results(finished))


def test_a_full_disk_stops_with_a_message_and_an_intact_store(finished, data, tmp_path, monkeypatch):
    runner.open_study(tmp_path, STUDY)
    written, real = [], os.fsync

    def full(handle):
        written.append(handle)
        if len(written) > 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFullError, match=r"the disk is full: mlp, .* was stopped and the store is whole"):
        runner.run(tmp_path, Options(data=str(data), seconds_between_checkpoints=0.0))
    monkeypatch.undo()
    store = Store(tmp_path)
    assert store.counts()["running"] == store.counts()[FAILED] == 0
    assert all(store.is_whole(row.trial.id) for row in store.rows() if row.state == DONE)
    assert [path.name for path in tmp_path.rglob(".*")] == []
    assert runner.run(tmp_path, Options(data=str(data))) == 0
    assert_same_results(results(tmp_path), results(finished))


def test_an_interruption_stops_after_the_epoch_and_the_rest_goes_on(finished, data, tmp_path, monkeypatch):
    runner.open_study(tmp_path, STUDY)
    finish, seen = Store.finish, []

    def interrupting(self, *arguments, **options):
        finish(self, *arguments, **options)
        seen.append(True)
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Store, "finish", interrupting)
    assert runner.run(tmp_path, Options(data=str(data))) == runner.STOPPED
    counts = Store(tmp_path).counts()
    assert counts["running"] == 0
    assert counts[WAITING] > 0
    assert runner.run(tmp_path, Options(data=str(data))) == 0
    assert_same_results(results(tmp_path), results(finished))


def test_a_worker_that_lost_its_claim_stops(data, tmp_path):
    runner.open_study(tmp_path, STUDY, lease=0.4)
    store = Store(tmp_path, lease=0.4)
    trial_ = store.claim("me")
    with runner._Heart(store, trial_.id, "me") as heart:
        assert not heart.lost.wait(0.5)  # it is renewed
        change_trials(store, owner="somebody else")
        assert heart.lost.wait(5)


def test_missing_data_are_said_before_any_trial_begins(tmp_path):
    runner.open_study(tmp_path, STUDY)
    with pytest.raises((CalibrationInputError, OSError), match=r"blobs\.csv"):
        runner.run(tmp_path, Options(data=str(tmp_path / "nowhere")))
    assert Store(tmp_path).counts()[WAITING] == 9 - 2 + 1


# elsewhere


def test_the_bare_worker_makes_what_the_runner_makes(finished, data, tmp_path, capsys):
    from calibrant.experiments.running.outcome_intake import collect

    study, store = runner.open_study(tmp_path / "store", STUDY)
    for _ in range(2):  # the second round trains the strengths that the first one chose
        waiting = [row.trial for row in store.rows() if row.state == WAITING]
        (tmp_path / "trials.jsonl").write_text(write_trials(waiting))
        arguments = [str(tmp_path / "trials.jsonl"), str(tmp_path / "out"), "--data", str(data)]
        assert trial.main([*arguments, "--pack", str(tmp_path / "packed")]) == 0
        collect(store, sorted(tmp_path.glob("packed-*.zip")))
        runner.extend(study, store)
    assert "are left" in capsys.readouterr().out
    assert store.counts()[DONE] == 10
    assert_same_results(results(tmp_path / "store"), results(finished))


def test_the_bare_worker_stops_in_time_and_goes_on_later(data, tmp_path, monkeypatch, capsys):
    first = a_trial()
    (tmp_path / "trials.jsonl").write_text(write_trials([first, a_trial(seed=1)]))
    arguments = [str(tmp_path / "trials.jsonl"), str(tmp_path / "out"), "--data", str(data)]
    assert trial.main([*arguments, "--minutes", "1e-9"]) == 3
    assert "2 are left" in capsys.readouterr().out
    clock = iter(range(10**6))
    monkeypatch.setattr(trial.time, "monotonic", lambda: next(clock) * 20.0)  # a minute is over after three looks
    assert trial.main([*arguments, "--minutes", "1"]) == 3
    monkeypatch.undo()
    assert "stopped after epoch" in capsys.readouterr().out
    assert list((tmp_path / "out" / "checkpoints").glob("*.npz"))
    assert trial.main(arguments) == 0
    assert_same(read_outcome(tmp_path / "out" / f"{first.id}.npz"), train(first, around(data)))
    assert list((tmp_path / "out" / "checkpoints").glob("*.npz")) == []


def test_data_that_are_missing_stop_the_bare_worker_before_any_trial_fails(data, tmp_path, capsys):
    (tmp_path / "trials.jsonl").write_text(write_trials([a_trial()]))
    arguments = [str(tmp_path / "trials.jsonl"), str(tmp_path / "out"), "--data"]
    assert trial.main([*arguments, str(tmp_path / "nowhere")]) == 3
    assert "blobs.csv" in capsys.readouterr().err
    assert list((tmp_path / "out").glob("*.failed.json")) == []
    assert trial.main([*arguments, str(data), "--pack", str(tmp_path / "new" / "packed")]) == 0
    assert (tmp_path / "new" / "packed-1.zip").is_file()


def test_a_trial_that_fails_in_the_bare_worker_hinders_no_other(data, tmp_path, capsys):
    wild = a_trial(training={"optimiser": {"kind": "sgd", "learning_rate": 1e30, "momentum": 0.0}})
    (tmp_path / "trials.jsonl").write_text(write_trials([wild, a_trial()]))
    arguments = [str(tmp_path / "trials.jsonl"), str(tmp_path / "out"), "--data", str(data)]
    assert trial.main(arguments) == 3
    output = capsys.readouterr().out
    assert "1/2 failed" in output
    assert "2/2 done" in output
    note = json.loads((tmp_path / "out" / f"{wild.id}.failed.json").read_text())
    assert "finite" in note["reason"]


def test_two_bare_workers_share_a_folder(data, tmp_path):
    (tmp_path / "trials.jsonl").write_text(write_trials([a_trial(seed=seed) for seed in range(6)]))
    arguments = [tmp_path / "trials.jsonl", tmp_path / "out", "--data", data, "--jobs", "2"]
    process = python("-m", "calibrant.experiments.running.trial", *arguments)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert output.count("done in") == 6  # nothing was done twice
    assert "6 of 6 trials are done" in output
    processes = {read_outcome(path).about["process"] for path in (tmp_path / "out").glob("*.npz")}
    assert len(processes) == 2


def test_what_trains_a_network_needs_numpy_and_torch_alone():
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"scipy", "yaml", "pydantic", "click", "rich", "sklearn", "pandas", "matplotlib"}:
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import calibrant.experiments.running.trial, calibrant.experiments.training.interventions
from calibrant.experiments.training import datasets, networks, trainer
from calibrant.experiments.training.trials import Trial
networks.build("mlp", shape=(3,), classes=2)
trainer._metrics(Trial({}, {}, {}, {}, 0, {"metrics": ["accuracy", "log_loss", "ece", "sce", "ace", "tace"]}))
print("yes")
"""
    process = python("-c", code)
    assert process.communicate(timeout=120)[0] == "yes\n"


# the command


@pytest.fixture
def command(monkeypatch):
    click_testing = pytest.importorskip("click.testing")
    pytest.importorskip("rich")
    from calibrant.cli.commands import experiment

    def run(*arguments):
        return click_testing.CliRunner().invoke(experiment, [str(argument) for argument in arguments])

    return run


def test_the_miniature_study_runs_from_the_command_to_tables_and_figures(command, tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    began = time.monotonic()
    folder = tmp_path / "store"
    result = command("check", "miniature")
    assert result.output == "miniature: 10 trials\n"
    result = command("run", "miniature", "--store", folder)
    assert result.exit_code == 0, result.output
    assert "10 done" in result.output
    assert "10 done" in command("status", folder).output
    result = command("table", folder, "-o", tmp_path / "tables")
    assert result.exit_code == 0, result.output
    assert len(list((tmp_path / "tables").glob("*.md"))) == len(list((tmp_path / "tables").glob("*.csv"))) == 10
    accuracy = (tmp_path / "tables" / "accuracy.md").read_text()
    assert "| base | 0.9" in accuracy
    result = command("figure", folder, "top_k", "over_training", "reliability", "-o", tmp_path / "figures")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        f"{name}.{form}" for name in ("top_k", "over_training", "reliability") for form in ("csv", "svg")
    }
    assert time.monotonic() - began < 60


def test_the_command_says_all_that_is_wrong_with_a_file(command, tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("name: a\ndata: {name: digitss}\nmodels: [mlp]\nseed: [1]\n")
    result = command("check", path)
    assert result.exit_code == 3
    assert "line 2: data.name: must name a data set, got 'digitss'; did you mean 'digits'?" in result.output
    assert "line 4: seed: is no key here; did you mean 'seeds'?" in result.output
    assert "2 problems" in result.output


def test_tables_come_as_markdown_and_csv_and_unknown_names_are_named(command, finished):
    result = command("table", finished, "accuracy", "--format", "markdown")
    assert result.output.startswith("### Accuracy, csv:blobs.csv")
    assert command("table", finished, "strengths", "--format", "csv").output.count("chosen") == 2
    assert "base" in command("table", finished, "accuracy").output
    result = command("table", finished, "acuracy")
    assert result.exit_code == 2
    assert "did you mean 'accuracy'?" in result.output
    told = json.loads(command("status", finished, "--format", "json").output)
    assert told["counts"]["done"] == len(told["trials"]) == 10


def test_a_plan_has_the_first_seed_of_everything_first(command, tmp_path):
    (tmp_path / "study.yaml").write_text(STUDY.replace("tuning: {seeds: [0]}\n", ""))
    command("plan", tmp_path / "study.yaml", "--store", tmp_path / "store", "-o", tmp_path / "trials.jsonl")
    trials = read_trials(tmp_path / "trials.jsonl")
    assert [each.seed for each in trials] == [0] * 6 + [1] * 6
    assert [each.label.replace("seed 1", "seed 0") for each in trials[6:]] == [each.label for each in trials[:6]]


def test_trials_are_planned_and_collected_by_the_command(command, data, tmp_path):
    (tmp_path / "study.yaml").write_text(STUDY.replace("seeds: [0, 1]\ntuning: {seeds: [0]}\n", "seeds: [0]\n"))
    folder, plan = tmp_path / "store", tmp_path / "trials.jsonl"
    result = command("plan", tmp_path / "study.yaml", "--store", folder, "-o", plan)
    assert result.output.startswith("6 trials")
    assert result.output.endswith("  6 x mlp, 4 epochs\n")
    assert trial.main([str(plan), str(tmp_path / "out"), "--data", str(data)]) == 0
    result = command("collect", folder, tmp_path / "out")
    assert "6 outcomes taken, 0 were there" in result.output
    assert "6 done" in result.output
    result = command("resume", folder, "--data", data, "--quiet")
    assert result.exit_code == 0, result.output


def test_progress_is_told_in_lines_where_there_is_no_terminal(finished, capsys):
    from calibrant.experiments.running.progress_display import Lines

    lines = Lines(Store(finished))
    lines.update()
    assert capsys.readouterr().err == ""
    lines.told.clear()
    lines.close()
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == 10
    assert printed[0].startswith("1/10 done: mlp, none, seed 0 (")
    assert printed[9].startswith("10/10 ")


def test_progress_is_told_in_bars_in_a_terminal(finished, capsys):
    pytest.importorskip("rich")
    from calibrant.experiments.running.progress_display import Bars

    bars = Bars(Store(finished))
    bars.update()
    bars.close()
    assert bars.bars.tasks[0].completed == bars.bars.tasks[0].total == 10
