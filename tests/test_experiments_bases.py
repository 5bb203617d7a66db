"""Bases of studies: networks in several sizes, from given weights, swept hyperparameters, ensembles of seeds."""

import hashlib
import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")
pytest.importorskip("yaml")

import torch

from calibrant.binning import KDTree
from calibrant.errors.binned import BinnedError
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.design.checking import check, study_in
from calibrant.experiments.findings import figure_rows
from calibrant.experiments.findings.tables import TABLES
from calibrant.experiments.running import runner
from calibrant.experiments.running.evidence import Evidence
from calibrant.experiments.running.runner import Options
from calibrant.experiments.training import networks
from calibrant.experiments.training.trainer import Surroundings, train
from calibrant.experiments.training.trial_outcomes import Answers, Outcome, pooled
from calibrant.experiments.training.tuning import TrainingChoice
from calibrant.inference.sensitivity import sensitivity
from calibrant.lenses import TopK
from calibrant.recipes import FULL_ECE
from studied import write_clouds

START = """\
name: clouds
data: {name: "csv:blobs.csv", validation: 0.25}
training: {epochs: 1, batch_size: 64, optimiser: {kind: adam, learning_rate: 5e-3}}
over_training: {metrics: []}
metrics: [accuracy, ece]
"""
SWEPT = (
    START
    + """\
models: [{name: linear, sweep: {learning_rate: [1e-5, 0.5], weight_decay: [0, 1e-3]}}]
interventions: [{kind: label_smoothing, strengths: [0.1, 0.2]}]
seeds: [0, 1, 2]
tuning: {seeds: [0]}
ensemble: true
post_processing: {methods: [temperature], of: chosen}
gammas: [0.5, 0.25]
bootstrap: 4
"""
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with three overlapping clouds of points."""
    return write_clouds(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def swept(data, tmp_path_factory):
    """A study whose base is swept, run to its end."""
    folder = tmp_path_factory.mktemp("swept") / "store"
    runner.open_study(folder, SWEPT)
    assert runner.run(folder, Options(data=str(data))) == 0
    return Evidence(*runner.reopen(folder))


# sizes


@pytest.mark.parametrize(("depth", "count"), [(20, 269_722), (32, 464_154), (44, 658_586), (56, 853_018)])
def test_residual_networks_have_their_published_numbers_of_weights(depth, count):
    """0.27, 0.46, 0.66 and 0.85 million: He et al. (2016), table 6."""
    network = networks.build("resnet", shape=(3, 32, 32), classes=10, depth=depth)
    assert sum(parameter.numel() for parameter in network.parameters()) == count
    assert sum(isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear)) for layer in network.modules()) == depth


@pytest.mark.parametrize("width", [16, 64])
def test_the_nine_layers_have_as_many_weights_as_their_shapes_say(width):
    shapes = [(3, 1), (1, 2), (2, 2), (2, 2), (2, 4), (4, 8), (8, 8), (8, 8)]  # channels in units of the width
    shapes = [(3 if inputs == 3 else inputs * width, outputs * width) for inputs, outputs in shapes]
    count = sum(9 * inputs * outputs + 2 * outputs for inputs, outputs in shapes) + 80 * width + 10
    network = networks.build("resnet9", shape=(3, 32, 32), classes=10, width=width)
    assert sum(parameter.numel() for parameter in network.parameters()) == count


def test_a_width_that_is_given_is_that_of_the_published_network():
    usual, given = (networks.build("cnn", shape=(1, 28, 28), classes=10, **size) for size in ({}, {"width": 32}))
    for name, value in usual.state_dict().items():
        assert torch.equal(value, given.state_dict()[name])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("{name: cnn, depth: 20}", "must be a size of cnn, which has none such, got 20; cnn has width; resnet has"),
        ("{name: resnet, depth: 21}", "must be 8, 14, 20, .. (6 n + 2) for resnet, got 21"),
        ("{name: mlp, width: 8}", "must be a size of mlp, which has none such"),
        ("{name: vit, width: 96}", "must be a multiple of 64 for vit, got 96"),
        ("{name: mlp, interventions: [mixup]}", "mlp names 'mixup', which is no intervention of the study"),
        ("{name: mlp, interventions: [flsd, flsd]}", "must be different, got flsd twice"),
        ("{name: mlp, interventions: {flsd: [0.5, 0.5]}}", "must be different, got 0.5 twice"),
        ("{name: mlp, interventions: {flsd: []}}", "must have at least 1"),
        ("{name: cnn, width: 0}", "must be greater than or equal to 1"),
    ],
)
def test_what_a_network_does_not_have_is_refused(model, words):
    (problem,) = check(f"name: a\ndata: {{name: digits}}\nmodels: [{model}]")
    assert words in str(problem)


def test_networks_are_called_by_their_sizes():
    study = check("name: a\ndata: {name: digits}\nmodels: [{name: resnet, depth: 8}, {name: resnet, depth: 14}, cnn]")
    assert [model.title for model in study.models] == ["resnet depth 8", "resnet depth 14", "cnn"]
    assert [trial.model_name for trial in study.trials()] == [model.title for model in study.models]


def test_a_series_is_of_networks_that_differ_in_one_size(tmp_path):
    models = "[{name: cnn, width: 2}, {name: cnn, width: 1}, {name: resnet, depth: 8, width: 1}]"
    text = f"name: a\ndata: {{name: digits, limit: 80}}\nmodels: {models}\ntraining: {{epochs: 1}}\nmetrics: [ece]"
    runner.open_study(tmp_path / "store", text)
    assert runner.run(tmp_path / "store", Options()) == 0
    evidence = Evidence(*runner.reopen(tmp_path / "store"))
    rows = figure_rows.sizes(evidence).rows
    assert [row[:4] for row in rows] == [
        ("cnn by width", f"cnn width {width}", float(width), measure)
        for width in (1, 2)
        for measure in ("test error", "ECE")
    ]
    accuracy = evidence.values(evidence.variants("cnn width 1")[0], "accuracy")
    assert rows[0][4].mean == pytest.approx(1 - accuracy.mean(), abs=1e-12)
    sheet = TABLES["architecture"](evidence)
    assert [row[0] for row in sheet.rows] == ["cnn width 2", "cnn width 1", "resnet width 1 depth 8"]
    # convolutions, the hidden layer of 32 a width from a picture of 2 x 2, ten classes; each with its biases
    assert [row[1] for row in sheet.rows[:2]] == [str(52 + 204 + 17 * 64 + 650), str(26 + 52 + 9 * 32 + 330)]


# given weights


def weights_file(folder, network, name="weights.npz"):
    """The weights of a network in a file; what a study says of it."""
    np.savez(folder / name, **{key: value.numpy() for key, value in network.state_dict().items()})
    return f"{{file: {name}, sha256: {hashlib.sha256((folder / name).read_bytes()).hexdigest()}}}"


def study_from(weights, more=""):
    return f"{START}models: [{{name: linear, weights: {weights}{more}}}]\n"


def untrained(study):
    """The first trial with steps of no size."""
    described = json.loads(study.trials()[0].to_json())
    described["training"]["optimiser"] = {"kind": "sgd", "learning_rate": 0.0, "momentum": 0.0}
    return type(study.trials()[0])(**described)


def test_training_begins_with_the_given_weights(data):
    source = networks.build("linear", shape=(4,), classes=3, seed=5)
    study = study_in(study_from(weights_file(data, source)), "study")
    outcome = train(untrained(study), Surroundings(root=data))
    plain = train(untrained(check(f"{START}models: [linear]")), Surroundings(root=data))
    changed = np.abs(outcome.test.logits - plain.test.logits).max()
    assert changed > 0.1
    inputs = torch.from_numpy(np.ascontiguousarray(_test_inputs(study, data)))
    np.testing.assert_allclose(outcome.test.logits, source(inputs).detach().numpy(), atol=1e-6)  # float32 sums


def _test_inputs(study, data):
    from calibrant.experiments.training.trainer import dataset

    return dataset(study.trials()[0].data, data).test.inputs


def test_the_digest_of_the_weights_is_part_of_the_trial(data):
    first, second = (
        study_in(study_from(weights_file(data, networks.build("linear", shape=(4,), classes=3, seed=seed))), "study")
        for seed in (1, 2)
    )
    assert first.trials()[0].id != second.trials()[0].id


def test_weights_that_are_not_the_named_ones_are_refused(data, tmp_path):
    source = networks.build("linear", shape=(4,), classes=3, seed=5)
    text = study_from(weights_file(data, source, "named.npz"))
    weights_file(data, networks.build("linear", shape=(4,), classes=3, seed=6), "named.npz")
    runner.open_study(tmp_path / "store", text)
    with pytest.raises(
        CalibrationInputError, match=r"named\.npz: must have the SHA-256 [0-9a-f]{64}, got [0-9a-f]{64}"
    ):
        runner.run(tmp_path / "store", Options(data=str(data)))
    (data / "named.npz").unlink()
    with pytest.raises(CalibrationInputError, match="must be a file of weights, got nothing there"):
        runner.run(tmp_path / "store", Options(data=str(data)))


@pytest.mark.parametrize(
    ("shape", "classes", "words"),
    [
        ((4,), 5, r"weights: must have 1\.bias of shape \(3,\), got \(5,\); weights\.without"),
        ((7,), 3, r"weights: must have 1\.weight of shape \(3, 4\), got \(3, 7\)"),
    ],
)
def test_weights_of_other_shapes_are_refused(data, shape, classes, words):
    study = check(study_from(weights_file(data, networks.build("linear", shape=shape, classes=classes, seed=5))))
    with pytest.raises(CalibrationInputError, match=words):
        train(study.trials()[0], Surroundings(root=data))


def test_weights_that_lack_a_layer_or_are_not_finite_are_refused(data):
    network = networks.build("linear", shape=(4,), classes=3, seed=5)
    network.extra = torch.nn.Linear(1, 1)
    study = check(study_from(weights_file(data, network)))
    with pytest.raises(CalibrationInputError, match=r"must have extra\.bias of shape none, got \(1,\)"):
        train(study.trials()[0], Surroundings(root=data))
    network = networks.build("linear", shape=(4,), classes=3, seed=5)
    network.state_dict()["1.bias"][0] = float("nan")
    study = check(study_from(weights_file(data, network)))
    with pytest.raises(CalibrationInputError, match=r"must have finite numbers in 1\.bias"):
        train(study.trials()[0], Surroundings(root=data))


def test_a_layer_may_begin_anew(data):
    source = networks.build("mlp", shape=(4,), classes=7, seed=5)
    weights = weights_file(data, source).replace("}", ", without: ['5.']}")
    text = study_from(weights).replace("name: linear", "name: mlp")
    outcome = train(untrained(check(text)), Surroundings(root=data))
    assert outcome.test.logits.shape[1] == 3


# swept hyperparameters


def test_every_combination_is_trained_on_the_tuning_seeds_first():
    study = check(SWEPT)
    first = study.trials()
    assert [(trial.seed, trial.intervention_name) for trial in first] == [(0, "none")] * 4
    rates = [
        (trial.training["optimiser"]["learning_rate"], trial.training["optimiser"]["weight_decay"]) for trial in first
    ]
    assert rates == [(1e-5, 0), (1e-5, 1e-3), (0.5, 0), (0.5, 1e-3)]
    # the chosen one on two more seeds, both strengths on the tuning seed, the chosen one on two more seeds
    assert len(study.all_trials()) == 4 + 2 + 2 + 2


def test_the_training_with_the_lowest_validation_loss_becomes_the_base(swept):
    losses = {}
    for row in swept.rows:
        if row.trial.intervention_name == "none" and row.trial.seed == 0:
            answers = swept.outcome(row.trial.id).validation
            logs = answers.logits - np.logaddexp.reduce(answers.logits, axis=1, keepdims=True)
            steps = row.trial.training["optimiser"]
            words = f"learning_rate {steps['learning_rate']:g}, weight_decay {steps['weight_decay']:g}"
            losses[words] = -logs[np.arange(len(logs)), answers.labels].mean()
    best = min(losses, key=losses.get)
    assert best.startswith("learning_rate 0.5")
    sheet = TABLES["base_trainings"](swept)
    assert [(row[1], row[3]) for row in sheet.rows] == [(words, "chosen" if words == best else "") for words in losses]
    np.testing.assert_allclose([row[2] for row in sheet.rows], list(losses.values()), rtol=1e-6)  # float32 logits
    assert swept.bases == {"linear": best}
    assert swept.store.counts()["done"] == len(swept.study.all_trials())


def test_interventions_are_trained_as_the_chosen_base_is(swept):
    chosen = swept.study.trainings(swept.study.models[0])[swept.bases["linear"]]
    assert all(row.trial.training == chosen for row in swept.rows if row.trial.intervention_name != "none")
    assert all(len(variant.trials) == 3 for variant in swept.variants() if variant.intervention != "ensemble")


def test_a_network_is_trained_with_the_interventions_that_are_named_for_it(data, tmp_path):
    models = (
        "[linear, {name: linear, label: plain, interventions: []}, {name: linear, label: one, interventions: [flsd]}]"
    )
    kinds = "[{kind: label_smoothing, strengths: [0.1, 0.2]}, {kind: flsd, strengths: [3]}]"
    runner.open_study(tmp_path / "store", START + f"models: {models}\ninterventions: {kinds}\n")
    assert runner.run(tmp_path / "store", Options(data=str(data))) == 0
    evidence = Evidence(*runner.reopen(tmp_path / "store"))
    tried = {
        model.title: {each.intervention for each in evidence.variants(model.title)} for model in evidence.study.models
    }
    assert tried == {"linear": {"none", "label_smoothing", "flsd"}, "plain": {"none"}, "one": {"none", "flsd"}}
    assert evidence.store.counts()["done"] == len(evidence.rows) == 1 + 3 + 1 + 2
    assert not evidence.failures()


def test_where_every_training_failed_none_is_chosen():
    nothing = TrainingChoice("mlp", {"learning_rate 1": float("nan")})
    assert nothing.chosen is None
    assert nothing.words == "no training of mlp ended"


# ensembles


def test_an_ensemble_answers_the_mean_of_its_members_probabilities(swept):
    base, ensemble = swept.variants("linear")[:2]
    assert (ensemble.label, len(ensemble.trials)) == ("ensemble 3", 1)
    members = [swept.predictions(trial).probabilities for trial in base.trials]
    together = swept.predictions(ensemble.trials[0]).probabilities
    np.testing.assert_allclose(together, np.mean(members, axis=0), atol=1e-12)
    np.testing.assert_allclose(np.exp(swept.outcome(ensemble.trials[0]).test.logits), together, atol=1e-12)
    hits = (np.mean(members, axis=0).argmax(axis=1) == swept.outcome(base.trials[0]).test.labels).mean()
    assert swept.values(ensemble, "accuracy").tolist() == [hits]


def test_methods_follow_an_ensemble_too_and_tables_name_it(swept):
    labels = [row[1] for row in TABLES["metrics"](swept).rows]
    assert "ensemble 3" in labels
    assert "ensemble 3, temperature" in labels


def test_networks_that_answer_other_rows_make_no_ensemble():
    several = [Outcome("{}", rows, rows, ("a", "b")) for rows in (_answers([0, 1]), _answers([1, 1]))]
    with pytest.raises(CalibrationInputError, match="ensemble: must be of networks that answer the same rows"):
        pooled(several)


def _answers(labels):
    return Answers(np.zeros((2, 2), np.float32), np.array(labels))


# spread


def test_the_spread_of_the_top_1_error_stands_beside_that_of_the_full_one(swept):
    rows = [row for row in figure_rows.gamma_sweep(swept).rows if row[2] == "share"]
    assert [row[1] for row in rows] == ["full"] * 10 + ["top 1"] * 10
    first = swept.predictions(swept.variants("linear")[0].trials[0])
    for name, error in (("full", FULL_ECE), ("top 1", BinnedError(lens=TopK(1), binning=KDTree(0.1)))):
        alone = sensitivity(error, first, "share", [step / 10 for step in range(1, 11)], swept.study.bootstrap, seed=0)
        np.testing.assert_array_equal([row[4:6] for row in rows if row[1] == name], np.c_[alone.values, alone.sds])


# damage, which the store keeps: last


def test_an_ensemble_without_a_member_is_measured_anew(swept):
    ensemble = swept.variants("linear")[1].trials[0]
    swept.values(swept.variants("linear")[1], "ece")
    assert swept.store.measured(ensemble, "", "test")
    lost = ensemble.split("+")[0]
    path = swept.store.result_path(lost)
    kept = path.read_bytes()
    path.write_bytes(kept[:100])
    assert swept.store.mend() == [lost]
    assert not swept.store.measured(ensemble, "", "test")
