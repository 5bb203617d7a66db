"""Study files: what is read, what is refused, and how everything that is wrong is said at once."""

import re

import pytest

pytest.importorskip("yaml")
pytest.importorskip("pydantic")

from hypothesis import given
from hypothesis import strategies as st

from calibrant.exceptions import CalibrationInputError
from calibrant.experiments.design import strict_yaml
from calibrant.experiments.design.checking import STUDIES, StudyError, check, read, text_of
from calibrant.experiments.design.study_schema import Study

SMALL = """\
name: small
data: {name: digits}
models: [mlp]
"""


def problems(text):
    checked = check(text)
    assert isinstance(checked, list), checked
    return [str(problem) for problem in checked]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1e-3", 0.001),
        ("a: 1E5", 1e5),
        ("a: .5", 0.5),
        ("a: -2", -2),
        ("a: 010", 10),
        ("a: no", "no"),
        ("a: on", "on"),
        ("a: Yes", "Yes"),
        ("a: true", True),
        ("a: null", None),
        ("a:", None),
        ("a: '1'", "1"),
        ("a: 1_000", "1_000"),
        ("a: 0x10", "0x10"),
        ("a: 12:30", "12:30"),
        ("a: 2020-01-01", "2020-01-01"),
        ("a: .inf", ".inf"),
        ("a: |\n  1\n", "1\n"),
        ("a: [1, x, 2.5]", [1, "x", 2.5]),
    ],
)
def test_scalars_mean_what_they_look_like(text, value):
    read_value = strict_yaml.read(text).value["a"]
    assert read_value == value
    assert type(read_value) is type(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_as_python_writes_it_is_that_number(number):
    assert strict_yaml.read(f"a: {number!r}").value["a"] == number


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: a: stands twice, first in line 1"),
        ("a: {b: 1, b: 2}", "line 1: a.b: stands twice, first in line 1"),
        ("a: !!python/object/apply:os.system [ls]", "has the tag tag:yaml.org,2002:python/object/apply:os.system"),
        ("a: !int 3", "has the tag !int"),
        ("a: &x 1\nb: *x", "uses the alias *x"),
        ("a: &x 1", "has the anchor &x"),
        ("? [1, 2]\n: 3", "has a key that is no plain word"),
        ("{a: 1}: 2", "has a key that is no plain word"),
        ("a: 1\n---\nb: 2", "line 2: must be one document, not several"),
        ("a: [1, 2", "is no YAML"),
        ("a: b: c", "line 1: is no YAML"),
        ("\ta: 1", "is no YAML"),
        ("a: \x07", "is no YAML"),
        ("[" * 40 + "]" * 40, "is nested deeper than 16 levels"),
        ("a: " + "x" * 1_000_001, "must have at most 1,000,000 letters"),
    ],
)
def test_what_would_surprise_is_refused(text, message):
    assert any(message in str(problem) for problem in strict_yaml.read(text).problems)


def test_a_bomb_of_aliases_is_not_expanded():
    levels = [f"l{index}: &l{index} [{', '.join([f'*l{index - 1}'] * 9)}]" for index in range(1, 9)]
    document = strict_yaml.read("\n".join(["l0: &l0 [x, x, x, x, x, x, x, x, x]", *levels]))
    assert len(str(document.value)) < 1000
    assert len(document.problems) == 9 + 8 * 9


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text):
    document = strict_yaml.read(text)
    assert isinstance(document.problems, list)


def test_everything_that_is_wrong_is_said_at_once_with_lines():
    text = """\
name: broken
data: {nmae: digits, validation: 1.5}
models: [mlpp]
training:
  epochs: 2.5
  batch_size: "64"
  optimiser: {kind: sgdd, learning_rate: -1}
  epochs: 3
interventions:
  - {kind: label_smoothing, strengths: [0.1, 1.5]}
  - {kind: mixup, strenghts: [0.2]}
  - {kind: mixdown, strengths: [1]}
  - {strengths: [1]}
seeds: 3
metrics: [ece, eec, top_k(5)/kdtre]
post_processing: {methods: [temprature]}
figures: [topk]
sedes: [1]
"""
    lines = "\n".join(problems(text))
    for line in (
        "line 2: data.name: is missing",
        "line 2: data.nmae: is no key here; did you mean 'name'?",
        "line 2: data.validation: must be less than 1, got 1.5",
        "line 3: models[0]: must name a network, got 'mlpp'; did you mean 'mlp'?",
        "line 6: training.batch_size: must be a whole number, got '64'",
        "line 7: training.optimiser.kind: must be one of sgd, adam, adamw, got 'sgdd'",
        "line 7: training.optimiser.learning_rate: must be greater than 0, got -1",
        "line 8: training.epochs: stands twice, first in line 5",
        "line 10: interventions[0].strengths[1]: must be less than 1, got 1.5",
        "line 11: interventions[1].strengths: is missing",
        "line 11: interventions[1].strenghts: is no key here; did you mean 'strengths'?",
        "line 12: interventions[2]: has an unknown kind 'mixdown'; there are: flsd, focal",
        "line 13: interventions[3]: must have a kind",
        "line 14: seeds: must be a list, got 3",
        "line 15: metrics[1]: metric: is unknown, got 'eec'",
        "line 15: metrics[2]: metric: is unknown, got 'kdtre'; did you mean 'kdtree'?",
        "line 16: post_processing.methods[0]: method: is unknown, got 'temprature'; did you mean 'temperature'?",
        "line 17: figures[0]: figure: is unknown, got 'topk'; did you mean 'top_k'?",
        "line 18: sedes: is no key here; did you mean 'seeds'?",
    ):
        assert line in lines, f"{line}\nnot in\n{lines}"
    assert len(lines.splitlines()) == 19


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("seeds: [1, 1]", "seeds: must be different, got 1 twice"),
        ("seeds: []", "line 4: seeds: must have at least 1 item"),
        ("seeds: [true]", "line 4: seeds[0]: must be a whole number, got True"),
        ("seeds: [0]\ntuning: {seeds: [7]}", "tuning: must choose on seeds of the study, got 7"),
        ("interventions: [{kind: mixup, strengths: [1]}, {kind: mixup, strengths: [2]}]", "got 'mixup' twice"),
        ("interventions: [{kind: focal, strengths: [1], schedule: [[1, 1]]}]", "rising whole epochs"),
        ("interventions: [{kind: focal, strengths: [1], schedule: [[0, 1], [0, 1]]}]", "rising whole epochs"),
        ("training: {epochs: 0}", "greater than or equal to 1, got 0"),
        ("training: {optimiser: {learning_rate: 1e400}}", "must be finite"),
        ("training: []", "line 4: training: must be a mapping of keys to values"),
        ("likert: [0.5]", "at least 2 items"),
        ("name: ../evil", "name: stands twice"),
    ],
)
def test_what_cannot_be_is_refused(more, message):
    assert any(message in problem for problem in problems(SMALL + more)), problems(SMALL + more)


@pytest.mark.parametrize("text", ["", "[]", "3", "name", "null"])
def test_what_is_no_mapping_is_no_study(text):
    assert len(problems(text)) == 1


@pytest.mark.parametrize("name", [path.stem for path in STUDIES.glob("*.yaml")])
def test_the_studies_that_come_with_calibrant_are_studies(name):
    assert isinstance(check(text_of(name)), Study)
    assert read(name).name == name


def test_a_file_that_is_no_study_says_how_many_problems_and_the_first(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(SMALL + "seeds: 1\nsedes: 2")
    with pytest.raises(StudyError, match=re.escape("must be a study, got 2 problems; line 4: seeds: must be a list")):
        read(path)
    assert len(check(path.read_text())) == 2
    path.write_bytes(b"name: \xff")
    with pytest.raises(CalibrationInputError, match="must be UTF-8"):
        read(path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.yaml")


GRID = """\
name: grid
data: {name: digits}
models:
  - mlp
  - {name: mlp, label: wide, initialisation: normal, training: {epochs: 3}}
training: {epochs: 2, batch_size: 32}
interventions:
  - {kind: label_smoothing, strengths: [0.05, 0.1]}
  - {kind: margin, strengths: [0.1], margin: 6}
seeds: [0, 1, 2]
tuning: {seeds: [1]}
"""


def test_strengths_that_are_to_be_chosen_are_trained_on_tuning_seeds_first():
    study = check(GRID)
    first = study.trials()
    # each model: 3 seeds of the base, 2 strengths on one seed, 3 seeds of the margin, whose strength is given
    assert len(first) == 2 * (3 + 2 + 3)
    chosen = study.trials({("mlp", "label_smoothing"): 0.1})
    assert len(chosen) == len(first) + 2
    labels = [trial.label for trial in chosen]
    assert [label for label in labels if label.startswith("mlp, label_smoothing 0.1")] == [
        f"mlp, label_smoothing 0.1, seed {seed}" for seed in (0, 1, 2)
    ]


def test_a_model_may_have_a_strength_of_its_own():
    own = GRID.replace("label: wide,", "label: wide, interventions: {label_smoothing: [0.1]},")
    study = check(own)
    labels = {trial.label for trial in study.trials() if trial.model_name == "wide" and trial.seed == 2}
    assert labels == {"wide, none, seed 2", "wide, label_smoothing 0.1, seed 2"}
    (problem,) = check(own.replace("[0.1]}", "[0.2]}"))
    assert "wide tries label_smoothing at 0.2, which is no strength of it" in str(problem)


def test_a_model_changes_only_the_training_that_it_names():
    plain, wide = (trial for trial in check(GRID).trials() if trial.label.endswith("none, seed 0"))
    assert (plain.training["epochs"], wide.training["epochs"]) == (2, 3)
    assert plain.training["batch_size"] == wide.training["batch_size"] == 32
    assert wide.model == {"name": "mlp", "label": "wide", "initialisation": "normal"}


def test_the_order_of_keys_and_how_a_number_is_written_do_not_change_a_trial():
    other = GRID.replace("{epochs: 2, batch_size: 32}", "{batch_size: 32, epochs: 2}")
    other = other.replace("0.05, 0.1]", "5e-2, .10]")
    assert other != GRID
    assert [trial.id for trial in check(other).trials()] == [trial.id for trial in check(GRID).trials()]
    assert {trial.id for trial in check(GRID.replace("32", "33")).trials()}.isdisjoint(
        trial.id for trial in check(GRID).trials()
    )


def test_what_is_not_kept_changes_no_trials_name():
    plain = [trial.id for trial in check(GRID).trials()]
    over = "over_training: {{metrics: [accuracy, log_loss, ece, sce], keep: {}}}\n"
    assert "over_training" not in GRID
    assert [trial.id for trial in check(GRID + over.format("false")).trials()] == plain
    assert {trial.id for trial in check(GRID + over.format("true")).trials()}.isdisjoint(plain)


def test_trials_have_the_names_that_they_had():
    """Outcomes are kept under these names: a description that says more, or less, would lose them."""
    assert [trial.id for trial in check(GRID).trials()][:3] == [
        "3999b17d42823ab9",
        "fd61feb17cef60f5",
        "1fc88c92b034468a",
    ]
