"""calibrant recalibrate and simulate, as a newcomer types them."""

import json
from dataclasses import astuple

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant.cli import commands
from calibrant.files import reading as io
from typed import typed

VALIDATION, TEST = (str(io.SHIPPED / f"fashion_mnist_{part}.npz") for part in ("validation", "test"))


@pytest.fixture
def run(monkeypatch, capsys):
    return lambda *words: astuple(typed(monkeypatch, capsys, words))


@pytest.fixture
def small(tmp_path):
    """300 over-confident rows of three named classes, as CSV with a patient column."""
    rng = np.random.default_rng(0)
    calm = rng.normal(scale=1.5, size=(300, 3))
    labels = np.array(["cat", "dog", "=cmd"])[(calm + rng.gumbel(size=calm.shape)).argmax(axis=1)]
    p = np.exp(2 * calm)
    p /= p.sum(axis=1, keepdims=True)
    rows = [
        f"{label},{index // 3},{','.join(map(repr, p[index].tolist()))}" for index, label in enumerate(labels.tolist())
    ]
    path = tmp_path / "small.csv"
    path.write_text("\n".join(["label,patient,p_cat,p_dog,p_=cmd", *rows]), encoding="utf-8")
    return path


def test_fit_then_apply_then_measure(run, tmp_path):
    code, out, _ = run("recalibrate", "fit", VALIDATION, "--method", "temperature", "-o", tmp_path / "map.json")
    assert code == 0
    assert "temperature 2.34" in out
    assert "converged" in out
    code, out, err = run("recalibrate", "apply", tmp_path / "map.json", TEST, "-o", tmp_path / "after.npz")
    assert (code, err) == (0, "")
    assert "10,000 rows through TemperatureScaling" in out
    after = io.read(tmp_path / "after.npz")
    fitted = cal.recalibrate.from_json((tmp_path / "map.json").read_text())
    assert np.array_equal(after.values, fitted.predict_proba(io.read(TEST).values))
    assert cal.ECE(after).value < 0.01
    assert set(after.columns) == {"ink"}
    code, out, _ = run("measure", tmp_path / "after.npz", "-m", "ece")
    assert code == 0


def test_names_and_columns_survive_csv(run, small, tmp_path):
    assert run("recalibrate", "fit", small, "-m", "platt", "-o", tmp_path / "map.json")[0] == 0
    code, _, err = run("recalibrate", "apply", tmp_path / "map.json", small, "-o", tmp_path / "after.csv")
    assert code == 0
    assert "the numbers flatter it" in err
    header, first = (tmp_path / "after.csv").read_text().splitlines()[:2]
    assert header == "label,patient,p_cat,p_dog,p_=cmd"
    assert float(first.split(",")[2]) + float(first.split(",")[3]) + float(first.split(",")[4]) == pytest.approx(1)
    assert json.loads((tmp_path / "map.json").read_text())["classes"] == ["cat", "dog", "=cmd"]


def test_names_and_columns_survive_parquet(run, small, tmp_path):
    run("recalibrate", "fit", small, "-o", tmp_path / "map.json")
    for ending in ("csv", "parquet"):
        assert run("recalibrate", "apply", tmp_path / "map.json", small, "-o", tmp_path / f"after.{ending}")[0] == 0
    text, table = (io.read(tmp_path / f"after.{ending}") for ending in ("csv", "parquet"))
    assert np.array_equal(text.values, table.values)
    assert (table.classes, list(table.columns)) == (text.classes, ["patient"])


def test_a_fit_says_what_it_did_to_the_log_loss_and_warns_where_that_grew(run, small, tmp_path):
    rows = io.read(small)
    for method in ("temperature", "vector", "isotonic", "histogram(n_bins=1)"):
        _, out, err = run("recalibrate", "fit", small, "-m", method, "-o", tmp_path / "map.json")
        fitted = cal.recalibrate.from_json((tmp_path / "map.json").read_text())
        before, after = (
            cal.LOG_LOSS(rows).value,
            cal.LOG_LOSS(rows.labels, fitted.predict_proba(rows.values).copy()).value,
        )
        assert f"log loss {before:.4f} -> {after:.4f}" in out
        assert ("the log loss has grown" in err) == (after > before)


def test_the_side_of_one_half_is_no_accuracy_of_answers(run, tmp_path):
    np.savez(tmp_path / "answers.npz", confidence=[0.4, 0.3, 0.9, 0.8], correct=[True, False, True, False])
    _, out, _ = run("recalibrate", "fit", tmp_path / "answers.npz", "-o", tmp_path / "map.json")
    assert "accuracy" not in out


@pytest.mark.parametrize("ending", ["jsonl", "npz", "parquet"])
def test_confidences_stay_confidences(run, tmp_path, ending):
    rows = [{"confidence": 0.1 * (index % 10), "correct": index % 3 == 0, "subject": "law"} for index in range(60)]
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert run("recalibrate", "fit", tmp_path / "answers.jsonl", "-o", tmp_path / "map.json")[0] == 0
    after = tmp_path / f"after.{ending if ending != 'jsonl' else 'csv'}"
    assert run("recalibrate", "apply", tmp_path / "map.json", tmp_path / "answers.jsonl", "-o", after)[0] == 0
    predictions = io.read(after)
    assert (predictions.kind, list(predictions.columns)) == ("confidence", ["subject"])
    assert predictions.labels.tolist() == [row["correct"] for row in rows]


def test_percentages_are_scaled_where_a_map_is_applied(run, tmp_path):
    shares = np.linspace(0.05, 0.95, 60)
    happened = (np.arange(60) % 7 > 3).astype(int)
    io.write(tmp_path / "shares.csv", shares, ["0", "1"], {"label": happened})
    io.write(tmp_path / "percent.npz", 100 * shares, ["0", "1"], {})
    assert run("recalibrate", "fit", tmp_path / "shares.csv", "-m", "platt", "-o", tmp_path / "map.json")[0] == 0
    apply = ("recalibrate", "apply", tmp_path / "map.json", tmp_path / "percent.npz", "-o", tmp_path / "after.npz")
    code, _, err = run(*apply)
    assert code == 3
    assert "add --scale 100" in err
    assert run(*apply, "--scale", "100")[0] == 0
    fitted = cal.recalibrate.from_json((tmp_path / "map.json").read_text())
    written = np.load(tmp_path / "after.npz")["p"]
    assert np.array_equal(written, fitted.predict_proba(100 * shares / 100))


def options_of(*words):
    command = commands.group
    for word in words:
        command = command.commands[word]
    return {option for param in command.params for option in param.opts if option.startswith("--")}


@pytest.mark.parametrize(
    "words",
    [
        *(("recalibrate", part) for part in ("apply", "choose")), ("measure",), ("report",), ("open",), ("compare",),
        ("explain",), ("simulate", "like"), ("state",),
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_command_that_reads_predictions_has_the_same_reading_options(words):
    assert options_of("recalibrate", "fit") - {"--method", "--output"} <= options_of(*words)


def line(row):
    """A row of an event: row 5 has a label that is left out, row 7 has no forecast."""
    outcome = -1 if row == 5 else int(row % 10 > 5) ^ (row % 7 == 0)
    return f"{row},{'' if row == 7 else row % 10 / 10 + 0.05},{outcome}\n"


EVENTS = "who,risk,outcome\n" + "".join(map(line, range(60)))


def test_what_a_map_was_fitted_on_can_be_recalibrated_with_the_same_options(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text(EVENTS)
    options = ("--label", "outcome", "--probs", "risk", "--missing", "drop", "--ignore-index", "-1")
    assert run("recalibrate", "fit", "events.csv", "-m", "platt", *options, "-o", "map.json")[0] == 0
    assert run("recalibrate", "apply", "map.json", "events.csv", *options, "-o", "after.csv")[0] == 0
    rows = [line.split(",") for line in (tmp_path / "after.csv").read_text().splitlines()]
    assert rows[0] == ["who", "outcome", "p"]
    assert [int(row[0]) for row in rows[1:]] == [row for row in range(60) if row not in (5, 7)]
    code, _, err = run("recalibrate", "apply", "map.json", "events.csv", *options[:4], "-o", "after.csv")
    assert code == 3
    assert "must have a number in every row, got '' at line 9; pass --missing drop to leave such rows out" in err
    code, _, err = run("recalibrate", "apply", "map.json", "events.csv", "--label", "outcom", "-o", "after.csv")
    assert code == 3
    assert "got no outcom; there are: 'who', 'risk', 'outcome'" in err


def test_confidences_of_other_names_are_written_under_ours(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.csv").write_text("sure,ok\n" + "90,true\n70,false\n30,false\n80,true\n60,true\n" * 9)
    options = ("--confidence", "sure", "--correct", "ok", "--scale", "100")
    assert run("recalibrate", "fit", "answers.csv", "-m", "platt", *options, "-o", "map.json")[0] == 0
    assert run("recalibrate", "apply", "map.json", "answers.csv", *options, "-o", "after.csv")[0] == 0
    assert io.read(tmp_path / "after.csv").kind == "confidence"
    assert io.read(tmp_path / "after.csv").labels.tolist() == [1, 0, 0, 1, 1] * 9
    (tmp_path / "twice.csv").write_text("sure,ok,correct\n90,true,false\n")
    code, _, err = run("recalibrate", "apply", "map.json", "twice.csv", *options, "-o", "after.csv")
    assert code == 3
    assert "must have no column 'correct' beside 'ok'" in err


def test_maps_of_classes_are_recalibrated_with_their_labels(run, tmp_path, monkeypatch):
    """Seed 0; classes on the second axis, their columns in another order than in the map."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(10, 3, 4, 5))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    labels[0, 0, 0] = 255
    np.savez("maps.npz", logits=2 * logits, label=labels, classes=["a", "b", "c"])
    np.savez("turned.npz", logits=2 * logits[:, ::-1], label=labels)
    options = ("--class-axis", "1", "--ignore-index", "255")
    assert run("recalibrate", "fit", "maps.npz", *options, "-o", "map.json")[0] == 0
    assert run("recalibrate", "apply", "map.json", "maps.npz", *options[:2], "-o", "after.npz")[0] == 0
    turned = ("turned.npz", "--classes", "c,b,a", *options[:2])
    assert run("recalibrate", "apply", "map.json", *turned, "-o", "other.npz")[0] == 0
    after, other = np.load("after.npz"), np.load("other.npz")
    assert after["probs"].shape == logits.shape
    assert np.array_equal(after["probs"], other["probs"])
    assert np.array_equal(after["label"], labels)
    fitted = cal.recalibrate.from_json((tmp_path / "map.json").read_text())
    assert np.array_equal(after["probs"], fitted.predict_proba(2 * logits, class_axis=1))
    code, _, err = run("recalibrate", "apply", "map.json", "maps.npz", *options, "-o", "after.npz")
    assert code == 3
    assert "--ignore-index: needs one label a row, got maps" in err
    code, _, err = run("recalibrate", "apply", "map.json", "maps.npz", *options[:2], "-o", "after.csv")
    assert code == 3
    assert "after.csv: can hold a row a sample, got maps of classes; write a file that ends in .npz" in err


def test_a_map_of_choices_is_applied_to_a_log(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    likelihoods = rng.normal(size=(60, 4))
    lines = [
        {"doc_id": row, "target": int(rng.integers(4)), "filtered_resps": [[str(value), "False"] for value in values]}
        for row, values in enumerate(likelihoods.tolist())
    ]
    (tmp_path / "samples_quiz.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert run("recalibrate", "fit", "samples_quiz.jsonl", "-o", "map.json")[0] == 0
    assert run("recalibrate", "apply", "map.json", "samples_quiz.jsonl", "-o", "after.csv")[0] == 0
    fitted = cal.recalibrate.from_json((tmp_path / "map.json").read_text())
    assert np.array_equal(io.read(tmp_path / "after.csv").values, fitted.predict_proba(likelihoods))


def test_a_pair_of_arrays_is_scaled(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", [0, 1, 1, 0])
    np.save("p.npy", [20.0, 90, 70, 40])
    code, out, _ = run("measure", "y.npy", "p.npy", "--scale", "100", "-m", "brier", "--format", "json")
    assert code == 0
    assert json.loads(out)["rows"]["all"]["brier"]["value"] == pytest.approx(0.075, abs=1e-12)


def test_labels_are_not_needed_to_apply(run, small, tmp_path):
    assert run("recalibrate", "fit", small, "-o", tmp_path / "map.json")[0] == 0
    lines = small.read_text().splitlines()
    bare = tmp_path / "bare.csv"
    bare.write_text("\n".join(line.split(",", 1)[1] for line in lines))
    assert run("recalibrate", "apply", tmp_path / "map.json", bare, "-o", tmp_path / "after.csv")[0] == 0
    assert (tmp_path / "after.csv").read_text().startswith("patient,p_cat")


def test_rows_that_are_left_out_are_told(run, small, tmp_path):
    assert run("recalibrate", "fit", small, "-o", tmp_path / "map.json")[0] == 0
    header, *lines = small.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    cells[0][-1] = cells[3][-1] = ""
    gaps = tmp_path / "gaps.csv"
    gaps.write_text("\n".join([header, *map(",".join, cells)]))
    apply = ("recalibrate", "apply", tmp_path / "map.json", gaps, "-o", tmp_path / "after.csv")
    code, _, err = run(*apply)
    assert code == 3
    code, out, err = run(*apply, "--missing", "drop")
    assert (code, f"{len(lines) - 2} rows through" in out) == (0, True)
    assert "note: 2 rows were left out: missing values\n" in err
    scores = cal.files.read_scores(gaps, missing="drop")
    assert (len(scores.values), scores.remarks) == (len(lines) - 2, (("left out: missing values", 2),))


def test_columns_are_matched_by_name(run, small, tmp_path):
    assert run("recalibrate", "fit", small, "-o", tmp_path / "map.json")[0] == 0
    cells = [line.split(",") for line in small.read_text().splitlines()]
    other = tmp_path / "other.csv"
    other.write_text("\n".join(",".join([row[0], row[1], row[4], row[2], row[3]]) for row in cells))
    for file, target in ((small, "a.csv"), (other, "b.csv")):
        assert run("recalibrate", "apply", tmp_path / "map.json", file, "-o", tmp_path / target)[0] == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    other.write_text(other.read_text().replace("p_dog", "p_fox", 1))
    code, _, err = run("recalibrate", "apply", tmp_path / "map.json", other, "-o", tmp_path / "c.csv")
    assert code == 3
    assert "must name the classes of the map" in err
    code, _, err = run("recalibrate", "apply", tmp_path / "map.json", small, "-o", small)
    assert code == 2
    assert "would overwrite" in err


def test_predictions_of_another_kind_than_the_map_are_told_by_their_file(run, small, tmp_path):
    assert run("recalibrate", "fit", small, "-o", tmp_path / "map.json")[0] == 0
    (tmp_path / "event.csv").write_text("label,p\n1,0.9\n0,0.2\n")
    code, _, err = run("recalibrate", "apply", tmp_path / "map.json", tmp_path / "event.csv", "-o", tmp_path / "a.csv")
    assert code == 3
    assert "event.csv: must be 3 columns, as fitted, got shape (2,)" in err
    np.savez(tmp_path / "logits.npz", label=[0, 1], logits=np.eye(3)[:2])
    code, _, err = run("recalibrate", "apply", tmp_path / "map.json", tmp_path / "logits.npz", "-o", tmp_path / "a.csv")
    assert code == 3
    assert "logits.npz: must hold probabilities, as the map was fitted on, got logits" in err


def test_choose_compares_and_saves_the_winner(run, small, tmp_path):
    words = ("recalibrate", "choose", small, "-m", "temperature", "-m", "platt", "--cv", "3")
    code, out, err = run(*words, "--groups", "patient", "-o", tmp_path / "map.json")
    assert (code, err) == (0, "")
    assert "lowest cross-fitted log loss" in out
    assert "unchanged" in out
    assert (tmp_path / "map.json").exists()
    code, out, _ = run(*words, "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert document["ranking"][0] == document["best"]
    assert document["test"]["p_value"] <= 0.05
    assert set(document["methods"]) == {"temperature", "platt", "unchanged"}


def test_choose_ends_with_one_where_the_choice_is_still_off(run, small):
    words = ("recalibrate", "choose", small, "-m", "temperature", "--cv", "3")
    _, out, _ = run(*words, "--format", "json")
    document = json.loads(out)
    best = document["methods"][document["best"]]["ECE"]
    for limit, options, code in (
        (best["value"] * 1.001, (), 0),
        (best["value"] * 0.999, (), 1),
        (best["interval"]["low"] + 1e-9, ("--confident",), 0),
        (best["interval"]["low"] - 1e-9, ("--confident",), 1),
    ):
        ended, _, err = run(*words, "--fail-above", f"ece={limit!r}", *options)
        assert ended == code, err
        assert (f"ECE of {document['best']} is {best['value']:.4f}" in err) == (code == 1)
    assert run(*words, "--fail-above", "mce=0.1")[0] == 2


def test_choose_writes_the_identity_where_nothing_is_wrong(run, small, tmp_path):
    """Calibrated probabilities, 300 rows, seed 0: the map that is saved changes nothing, and that is said."""
    rng = np.random.default_rng(0)
    p = rng.random(300)
    happened = (rng.random(300) < p).astype(int)
    file, saved = tmp_path / "calibrated.csv", tmp_path / "map.json"
    file.write_text("\n".join(["label,p", *(f"{y},{each!r}" for y, each in zip(happened, p.tolist(), strict=True))]))
    code, out, err = run("recalibrate", "choose", file, "-m", "temperature", "-o", saved)
    assert (code, err) == (0, "")
    assert "The calibration test finds nothing wrong (p = " in out
    assert "(the identity, which changes nothing)" in out
    assert np.array_equal(cal.recalibrate.from_json(saved.read_text()).predict_proba(p[:9]), p[:9])


@pytest.mark.slow
def test_choose_compares_every_method_that_fits(run, small):
    code, out, _ = run("recalibrate", "choose", small, "--cv", "2", "--format", "json")
    assert code == 0
    document = json.loads(out)
    assert set(document["methods"]) | set(document["failures"]) >= {
        "temperature",
        "vector",
        "matrix",
        "isotonic",
        "gp",
        "bbq",
    }


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("recalibrate", "fit", TEST), 2, "Missing option '-o'"),
        (("recalibrate", "fit", TEST, "-m", "temprature", "-o", "x.json"), 2, "did you mean 'temperature'"),
        (("recalibrate", "fit", TEST, "-m", "histogram(n_bin=3)", "-o", "x.json"), 2, "did you mean 'n_bins'"),
        (("recalibrate", "fit", "nowhere.npz", "-o", "x.json"), 3, "nowhere.npz: No such file"),
        (("recalibrate", "fit", TEST, "-o", "/nowhere/x.json"), 4, "/nowhere: is no folder; make it first"),
        (("recalibrate", "choose", TEST, "--cv", "1"), 3, "folds: must be a whole number"),
        (("recalibrate", "apply", TEST, TEST, "-o", "x.npz"), 3, "must be UTF-8 text"),
        (("recalibrate", "apply", TEST, TEST, "-o", "x.npz"), 3, "the map comes first, then the file of predictions"),
        (("simulate", "like", "nowhere.npz"), 3, "No such file"),
        (
            ("simulate", "like", TEST, "-o", "x.zzz"),
            2,
            "--output: must end in .csv, .json or .png, .svg, .pdf, got '.zzz'",
        ),
        (("simulate", "like", TEST, "--seed", "-1"), 2, "seed"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run, tmp_path, monkeypatch, words, code, part):
    monkeypatch.chdir(tmp_path)
    status, _, err = run(*words)
    assert status == code
    assert part in err
    assert not list(tmp_path.iterdir())


def test_a_changed_map_and_the_wrong_kind_of_scores_are_refused(run, small, tmp_path):
    assert run("recalibrate", "fit", small, "-o", tmp_path / "map.json")[0] == 0
    code, _, err = run("recalibrate", "apply", tmp_path / "map.json", TEST, "-o", tmp_path / "after.npz")
    assert code == 3
    assert "must hold probabilities, as the map was fitted on" in err
    text = (tmp_path / "map.json").read_text()
    (tmp_path / "map.json").write_text(text.replace('"kind": "classes"', '"kind": "event"'))
    code, _, err = run("recalibrate", "apply", tmp_path / "map.json", small, "-o", tmp_path / "after.csv")
    assert code == 3
    assert "do not match the seal" in err
    assert not (tmp_path / "after.csv").exists()


def test_a_file_that_is_no_map_is_named(run, small, tmp_path):
    (tmp_path / "other.json").write_text("{}")
    code, _, err = run("recalibrate", "apply", tmp_path / "other.json", small, "-o", tmp_path / "after.csv")
    assert code == 3
    assert "other.json: must" in err


def test_separable_rows_are_warned_of(run, tmp_path):
    path = tmp_path / "sure.csv"
    path.write_text("label,p\n" + "1,0.9\n0,0.1\n" * 20)
    code, _, err = run("recalibrate", "fit", path, "-o", tmp_path / "map.json")
    assert code == 0
    assert "warning: TemperatureScaling: temperature ended at its lower bound" in err


@pytest.mark.parametrize("words", [("recalibrate", "fit"), ("recalibrate", "apply"), ("recalibrate", "choose")])
def test_every_help_has_an_example(words):
    ended = CliRunner().invoke(commands.group, [*words, "--help"])
    assert ended.exit_code == 0
    assert f"calibrant {' '.join(words)} " in ended.output


def test_shells_complete_the_words(run, monkeypatch):
    monkeypatch.setenv("_CALIBRANT_COMPLETE", "bash_source")
    code, out, _ = run()
    assert code == 0
    assert "_calibrant_completion" in out
    monkeypatch.setenv("_CALIBRANT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "calibrant rec")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert "recalibrate" in run()[1]


def test_fewer_rows_than_folds_are_told_the_option(run, tmp_path):
    path = tmp_path / "three.csv"
    path.write_text("label,p\n1,0.9\n0,0.2\n1,0.4\n")
    code, _, err = run("recalibrate", "choose", path)
    assert code == 3
    assert "must be at most the number of rows, 3, got 5; use fewer folds (--cv), or collect more rows" in err
