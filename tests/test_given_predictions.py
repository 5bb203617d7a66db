"""Studies of given predictions: files in the place of trainings, groups from the study's file, other splits of data."""

import json
import sys

import numpy as np
import pytest

pytest.importorskip("yaml")
pytest.importorskip("pydantic")

from calibrant.binning import KDTree
from calibrant.errors.binned import BinnedError
from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.design.checking import check
from calibrant.experiments.design.study_schema import Study
from calibrant.experiments.findings import figure_rows
from calibrant.experiments.findings.figures import save_figures
from calibrant.experiments.findings.tables import tables_of
from calibrant.experiments.running import runner
from calibrant.experiments.running.evidence import Evidence
from calibrant.experiments.running.progress_display import Lines
from calibrant.experiments.training.datasets import load
from calibrant.experiments.training.given_predictions import given_outcome
from calibrant.experiments.training.trials import Trial
from calibrant.lenses import TopK
from calibrant.predictions import Predictions
from calibrant.recipes import ACE, ECE, SCE, TACE, WSMCS, likert

STUDY = """\
name: given
models:
  - {name: first, predictions: {validation: first_validation.npz, test: first_test.npz}}
  - name: second network
    predictions:
      - {test: {file: second.csv, label: truth}, share: 0.4, seed: 3}
      - {test: {file: second.csv, label: truth}, share: 0.4, seed: 4}
groups: {kind: {animals: [cat, dog], machines: [car, bus]}}
post_processing: {methods: [temperature, cwmcs]}
metrics: [accuracy, ece, wsmcs]
gammas: [0.5]
bootstrap: 2
"""
CLASSES = ("cat", "dog", "car", "bus")
FIGURES_1_TO_6 = (
    "top_k", "ranked_confidence", "groups", "group_confidence", "likert_errors", "likert_counts",
)  # fmt: skip


def rows(seed, n):
    random = np.random.default_rng(seed)
    logits = 2.0 * random.normal(size=(n, len(CLASSES)))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (chances.cumsum(axis=1) < random.random(n)[:, None]).sum(axis=1)
    return logits.astype(np.float32), chances, labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    for seed, part in enumerate(("validation", "test")):
        logits, _, labels = rows(seed, 300)
        np.savez(folder / f"first_{part}.npz", logits=logits, labels=labels, classes=np.array(CLASSES))
    _, chances, labels = rows(2, 250)
    lines = [",".join(["truth", *(f"p_{name}" for name in CLASSES)])]
    lines += [",".join([CLASSES[label], *map(str, row)]) for label, row in zip(labels, chances, strict=True)]
    (folder / "second.csv").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def evidence(folder):
    runner.open_study(folder / "store", STUDY)
    assert runner.run(folder / "store", runner.Options(data=str(folder))) == 0
    return Evidence(*runner.reopen(folder / "store"))


def given_trial(predictions):
    return Trial({}, {"name": "a", "predictions": predictions}, {}, {"kind": "none", "strength": 0.0}, 0)


def test_a_study_of_given_predictions_needs_neither_data_nor_training(evidence):
    assert [variant.label for variant in evidence.variants("first")] == ["base", "temperature", "cwmcs"]
    assert [len(variant.trials) for variant in evidence.variants("second network")] == [2, 2, 2]
    assert all(row.state == "done" for row in evidence.rows)


def test_torch_is_not_needed(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    runner.open_study(folder / "without", STUDY)
    assert runner.run(folder / "without", runner.Options(data=str(folder))) == 0
    assert runner.reopen(folder / "without")[1].counts()["done"] == 3


def test_a_file_that_is_not_there_is_named_before_any_trial_begins(tmp_path):
    runner.open_study(tmp_path / "store", STUDY)
    with pytest.raises(CalibrationInputError, match=r"first_validation.npz: must be a file .* start from --data"):
        runner.run(tmp_path / "store", runner.Options(data=str(tmp_path)))
    assert runner.reopen(tmp_path / "store")[1].counts()["waiting"] == 3


def test_its_numbers_are_those_of_the_files(evidence):
    logits, _, labels = rows(1, 300)
    predictions = Predictions.from_logits(labels, logits, classes=list(CLASSES))
    base = evidence.variants("first")[0]
    assert evidence.values(base, "ece") == pytest.approx([ECE(predictions).value])
    assert evidence.values(base, "wsmcs") == pytest.approx([WSMCS(predictions).value])


def of_first(sheet, method="base"):
    """The rows about the first network."""
    return [row for row in sheet.records() if (row["model"], row["method"]) == ("first", method)]


def test_figures_of_all_forecasts_are_those_of_plain_loops(evidence):
    """Errors of the two likeliest classes, ranked outputs beside the base's, entropy, and errors of each class."""
    (trial,) = evidence.variants("first")[0].trials
    base, scaled = (evidence.predictions(trial, method) for method in ("", "temperature"))
    errors = {row["measure"]: row["value"].mean for row in of_first(figure_rows.top_k(evidence))}
    assert errors["top 2"] == pytest.approx(BinnedError(lens=TopK(2), binning=KDTree(0.1))(base).value)
    assert errors["ECE, 15 bins"] == pytest.approx(ECE(base).value)
    ranked = [np.sort(each.probabilities, axis=1)[:, ::-1].mean(axis=0) for each in (scaled, base)]
    found = [row["difference"].mean for row in of_first(figure_rows.ranked_confidence(evidence), "temperature")]
    assert found == pytest.approx(ranked[0] - ranked[1], abs=1e-6)
    (uncertain,) = of_first(figure_rows.entropy(evidence))
    assert uncertain["value"].mean == pytest.approx(-(base.probabilities * np.log(base.probabilities)).sum(1).mean())
    classes = [row["value"].mean for row in of_first(figure_rows.class_errors(evidence)) if row["metric"] == "tace"]
    assert classes == pytest.approx(TACE(base).values)


def test_figures_of_confidences_are_those_of_plain_loops(evidence):
    """Categories and their errors, and bins whose gaps make the ECE."""
    (trial,) = evidence.variants("first")[0].trials
    base = evidence.predictions(trial)
    largest, categories = base.probabilities.max(axis=1), evidence.study.categories
    counts = [row["value"].mean for row in of_first(figure_rows.likert_counts(evidence))]
    assert counts == np.histogram(largest, categories)[0].tolist()
    errors = {row["measure"]: row["value"].mean for row in of_first(figure_rows.likert_errors(evidence))}
    for name, metric in likert(categories).items():
        assert errors[name] == pytest.approx(metric(base).value, nan_ok=True)
    bins = [row for row in of_first(figure_rows.reliability(evidence)) if row["samples"]]
    gaps = [row["samples"] * abs(row["confidence"] - row["accuracy"]) for row in bins]
    assert sum(gaps) / len(base) == pytest.approx(ECE(base).value)


def test_tables_of_methods_are_those_of_the_metrics(evidence):
    names = ["miscalibration", "ece_by_method", "post_processing"]
    sheets = {sheet.name: sheet for sheet in tables_of(evidence, names)}
    (trial,) = evidence.variants("first")[0].trials
    scaled = evidence.predictions(trial, "temperature")
    signed = WSMCS(scaled)
    (row,) = of_first(sheets["miscalibration"], "temperature")
    assert row["ECE %"].mean == pytest.approx(100 * ECE(scaled).value)
    assert row["wsMCS"].mean == pytest.approx(signed.value)
    columns = {
        "UC %": "mean_under",
        "classes under %": "share_under",
        "OC %": "mean_over",
        "classes over %": "share_over",
    }
    for column, detail in columns.items():
        assert row[column].mean == pytest.approx(100 * signed.details[detail]), column
    (row,) = of_first(sheets["post_processing"], "temperature")
    errors = {"ECE %": ECE, "TACE %": TACE, "SCE %": SCE, "ACE %": ACE}
    assert [row[name].mean for name in errors] == pytest.approx([100 * each(scaled).value for each in errors.values()])
    first = sheets["ece_by_method"].records()[0]
    assert (first["model"], first["temperature"].mean) == ("first", pytest.approx(100 * ECE(scaled).value))


def test_figures_1_to_6_are_drawn(evidence, tmp_path):
    pytest.importorskip("matplotlib")
    paths = save_figures(evidence, tmp_path, FIGURES_1_TO_6)
    assert {path.stem for path in paths} == set(FIGURES_1_TO_6)


def test_table_1_has_the_base_and_every_method_side_by_side(evidence):
    (table,) = tables_of(evidence, ["side_by_side"])
    first, second = table.records()
    assert (first["model"], second["model"]) == ("first", "second network")
    for method, label in (("", "base"), ("temperature", "temperature"), ("cwmcs", "cwmcs")):
        variant = next(each for each in evidence.variants("second network") if each.method == method)
        for name, spelled, factor in (("ECE %", "ece", 100), ("wsECE %", "wsece", 100), ("wsMCS", "wsmcs", 1)):
            values = factor * evidence.values(variant, spelled)
            assert second[f"{name}, {label}"].mean == pytest.approx(values.mean())
            assert second[f"{name}, {label}"].n == 2


def test_probabilities_stay_what_they_are(folder):
    _, chances, labels = rows(2, 250)
    files = {"test": {"file": "second.csv", "label": "truth"}, "share": 0.4, "seed": 3}
    outcome = given_outcome(given_trial(files), folder)
    assert len(outcome.validation.labels) == 100
    together = np.vstack([outcome.predictions(part).probabilities for part in ("validation", "test")])
    order = np.lexsort(together.T)
    np.testing.assert_allclose(together[order], chances[np.lexsort(chances.T)], atol=1e-6)  # kept in float32
    counts = np.bincount(outcome.validation.labels, minlength=4) + np.bincount(outcome.test.labels, minlength=4)
    assert counts.tolist() == np.bincount(labels, minlength=4).tolist()


@pytest.mark.parametrize("name", ["probs", "logits"])
def test_an_event_has_two_classes(tmp_path, name):
    chances, labels = np.array([0.1, 0.9, 0.0, 0.5]), np.array([0, 1, 0, 1])
    values = {"probs": chances, "logits": np.array([-2.0, 2.0, -9.0, 0.0])}[name]
    np.savez(tmp_path / "event.npz", **{"p" if name == "probs" else "logits": values, "y": labels})
    files = {"test": {"file": "event.npz"}, "validation": {"file": "event.npz"}}
    outcome = given_outcome(given_trial(files), tmp_path)
    expected = chances if name == "probs" else 1 / (1 + np.exp(-values))
    np.testing.assert_allclose(outcome.predictions("test").probabilities[:, 1], expected, atol=1e-6)
    assert outcome.classes == ("0", "1")


def test_validation_and_test_files_must_have_the_same_classes(tmp_path):
    for part, classes in (("validation", 3), ("test", 4)):
        np.savez(tmp_path / f"{part}.npz", logits=np.zeros((5, classes)), labels=np.arange(5) % classes)
    files = {part: {"file": f"{part}.npz"} for part in ("validation", "test")}
    with pytest.raises(CalibrationInputError, match="must have the 4 classes of the test file, got 3 classes"):
        given_outcome(given_trial(files), tmp_path)


def test_groups_come_from_the_file(evidence):
    logits, _, labels = rows(1, 300)
    predictions = Predictions.from_logits(labels, logits, classes=list(CLASSES))
    members = {"animals": ("cat", "dog"), "machines": ("car", "bus")}
    record = next(
        record
        for record in figure_rows.groups(evidence).records()
        if (record["model"], record["method"], record["measure"]) == ("first", "base", figure_rows.ALL)
    )
    assert record["level"] == "kind"
    assert record["value"].mean == pytest.approx(figure_rows.between(members)(predictions).value)


def test_categories_need_not_adjoin(evidence):
    study = evidence.study.model_copy(update={"likert_pairs": [[0.0, 0.5], [0.9, 1.0]]})
    apart = Evidence(study, evidence.store)
    logits, _, labels = rows(1, 300)
    confidence = Predictions.from_logits(labels, logits).probabilities.max(axis=1)
    counts = {
        record["measure"]: record["value"].mean
        for record in figure_rows.likert_counts(apart).records()
        if (record["model"], record["method"]) == ("first", "base")
    }
    assert counts == {"[0, 0.5)": (confidence < 0.5).sum(), "[0.9, 1]": (confidence >= 0.9).sum()}
    assert {"[0, 0.5)", "[0.9, 1]"} <= {record["measure"] for record in figure_rows.likert_errors(apart).records()}


@pytest.mark.parametrize(
    ("machines", "message"),
    [(["car"], "got no 'bus'$"), (["car", "bsu"], "got 'bsu', which is no class; did you mean 'bus'"),
     (["car", "bus", "cat"], "got 'cat' twice$")],
)  # fmt: skip
def test_groups_must_hold_every_class_once(evidence, machines, message):
    study = evidence.study.model_copy(update={"groups": {"kind": {"animals": ["cat", "dog"], "machines": machines}}})
    with pytest.raises(CalibrationInputError, match=f"must hold every class once, {message}"):
        figure_rows.groups(Evidence(study, evidence.store))


def test_tables_say_which_predictions_were_split(evidence):
    (table, other) = tables_of(evidence, ["side_by_side", "accuracy"])
    note = "second network: methods are fitted on 0.4 of the test rows, all is measured on the others"
    assert (table.notes, other.notes) == ((note,), ())
    second = evidence.study.models[1]
    alike = evidence.study.model_copy(update={"models": [second, second.model_copy(update={"name": "third"})]})
    (table,) = tables_of(Evidence(alike, evidence.store), ["strengths"])
    assert table.notes == (note.replace("second network", "second network, third"),)


def test_a_trial_that_fails_says_which_file_and_why(tmp_path, capsys):
    (tmp_path / "labels.csv").write_text("y_a,y_b,p_a,p_b\n1,0,0.5,0.5\n0,1,0.5,0.5\n")
    study = "name: a\nmodels: [{name: a, predictions: {test: labels.csv}}]"
    runner.open_study(tmp_path / "store", study)
    runner.run(tmp_path / "store", runner.Options(data=str(tmp_path)))
    (row,) = runner.reopen(tmp_path / "store")[1].rows()
    assert row.reason == f"{tmp_path / 'labels.csv'}: needs one true class per row, got independent labels"


def test_progress_counts_the_trials_that_ended_one_by_one(evidence, capsys):
    lines = Lines(evidence.store)
    lines.told.clear()
    lines.update()
    assert [line.split(" ")[:2] for line in capsys.readouterr().err.splitlines()] == [
        [f"{number}/3", "done:"] for number in (1, 2, 3)
    ]


def test_a_figure_that_is_named_and_has_no_data_is_said_to_be_left_out(evidence, tmp_path):
    pytest.importorskip("matplotlib")
    CliRunner = pytest.importorskip("click.testing").CliRunner
    from calibrant.cli.experiment import experiment

    figure = ["figure", str(evidence.store.folder), "over_training"]
    several = CliRunner().invoke(experiment, [*figure, "likert_counts", "-o", str(tmp_path)])
    assert several.exit_code == 0
    assert several.stderr == "left out: over_training, for which the study has no data\n"
    alone = CliRunner().invoke(experiment, [*figure, "-o", "-"])
    assert (alone.stdout, alone.stderr) == ("", "left out: over_training, for which the study has no data\n")


def test_a_study_of_given_predictions_is_not_asked_for_data():
    problems = check("name: a\nmodels: [{name: a, predictions: {tset: b.npz}}]")
    assert not any("data must name" in str(each) for each in problems), list(map(str, problems))
    problems = check("name: a\nmodels: [mlp, {name: a, predictions: {tset: b.npz}}]")
    assert any("data must name" in str(each) for each in problems)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: a\nmodels: [mlp]", "line 1: data must name the rows"),
        ("name: a\nmodels: [{name: a, predictions: {tset: b.npz}}]", "models[0].predictions.tset: is no key here"),
        ("name: a\nmodels: [{name: a, predictions: {validation: b.npz}}]", "models[0].predictions.test: is missing"),
        ("name: a\nmodels: [{name: a, predictions: {test: b.npz, share: 1}}]", "models[0].predictions.share: must be"),
        (
            "name: a\nmodels: [{name: a, predictions: {test: b.npz}}]\ninterventions: [{kind: mixup, strengths: [1]}]",
            "interventions: must have a network to train",
        ),
        ("name: a\ndata: {name: digits}\nmodels: [mlpp]", "models[0]: must name a network"),
        (
            "name: a\nmodels: [{name: a, predictions: {test: b.npz, validation: c.npz, share: 0.5}}]",
            "models[0].predictions: validation rows are in their own file: leave out share and seed",
        ),
        (
            "name: a\nmodels: [{name: a, predictions: {test: b.npz}}]\nlikert: [0, 0.5, 0.3, 1]",
            "line 3: likert: needs 0 <= low <= high <= 1, got (0.5, 0.3)",
        ),
        (
            "name: a\nmodels: [{name: a, predictions: {test: b.npz}}]\nlikert_pairs: [[0.5, 0.2]]",
            "line 3: likert_pairs: needs 0 <= low <= high <= 1, got (0.5, 0.2)",
        ),
    ],
)
def test_what_is_wrong_is_said(text, problem):
    problems = check(text)
    assert not isinstance(problems, Study)
    assert any(problem in str(each) for each in problems), list(map(str, problems))


def test_usual_splits_leave_the_names_of_trials_as_they_were():
    study = check("name: a\ndata: {name: digits}\nmodels: [mlp]")
    assert json.loads(study.trials()[0].to_json())["data"] == {
        "limit": None, "name": "digits", "seed": 0.0, "validation": 0.1
    }  # fmt: skip
    other = check("name: a\ndata: {name: digits, validation: 0.5, validation_of: test}\nmodels: [mlp]")
    assert other.trials()[0].data["validation_of"] == "test"


@pytest.fixture
def pets(tmp_path):
    lines = [f"{number},{'cat' if number % 2 else 'dog'}" for number in range(100)]
    (tmp_path / "pets.csv").write_text("\n".join(["weight,label", *lines]))
    return tmp_path


def test_test_rows_can_be_halved(pets):
    usual, halved = (
        load("csv:pets.csv", root=pets, **how) for how in ({}, {"validation": 0.5, "validation_of": "test"})
    )
    assert (len(usual.train), len(usual.validation), len(usual.test)) == (72, 8, 20)
    assert (len(halved.train), len(halved.validation), len(halved.test)) == (80, 10, 10)


def test_any_share_can_be_tested_on(pets):
    data = load("csv:pets.csv", root=pets, validation=1 / 9, test=0.1)
    assert (len(data.train), len(data.validation), len(data.test)) == (80, 10, 10)
    together = np.concatenate([data.train.inputs, data.validation.inputs, data.test.inputs])
    assert len(np.unique(together)) == 100
