"""calibrant simulate, as a newcomer types it: bias, power, samples and like."""

import csv
import io
import json
import re
import shlex
import sys
from dataclasses import astuple
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant import simulate
from calibrant.cli import commands
from typed import typed

FEW = ("--replicates", "20")
command = sys.modules["calibrant.cli.simulate"]  # the name in the package is the click group


@pytest.fixture
def run(monkeypatch, capsys):
    return lambda *words: astuple(typed(monkeypatch, capsys, ("simulate", *words)))


@pytest.fixture
def predictions(tmp_path):
    """300 over-confident answers."""
    rng = np.random.default_rng(0)
    scores = rng.random(300)
    rows = zip((rng.random(300) < scores**2).astype(int).tolist(), scores.tolist(), strict=True)
    path = tmp_path / "answers.csv"
    path.write_text("label,p\n" + "".join(f"{label},{score!r}\n" for label, score in rows))
    return path


def rows_of(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_bias_prints_what_bias_finds_with_its_error(run, tmp_path):
    out_file, document = tmp_path / "bias.csv", tmp_path / "bias.json"
    words = ("bias", "-m", "ece", "-m", "ece_sweep", "-n", "50", "-n", "80", "--model", "resnet110_c10", *FEW)
    code, out, _ = run(*words, "-o", out_file, "-o", document)
    assert code == 0
    fit = simulate.PUBLISHED["resnet110_c10"]
    biases = simulate.bias({"ece": cal.ECE, "ece_sweep": cal.ECE_SWEEP}, fit.scores, fit.curve, 80, 20)
    estimate = biases["ece"]
    assert f"{estimate.bias:+.4f} ± {estimate.mc_error:.4f}" in out
    assert f"n = 80: {biases.verdict}." in out
    assert "scores beta(2.7752, 0.0478); observed frequency at score s: 1 - 0.7866 (1 - s)^0.3" in out
    assert [(row["name"], row["n"]) for row in rows_of(out_file)] == [
        ("ece", "50"), ("ece", "80"), ("ece_sweep", "50"), ("ece_sweep", "80"),
    ]  # fmt: skip
    assert float(rows_of(out_file)[1]["mc_error"]) == estimate.mc_error
    read = json.loads(document.read_text())
    assert read["model"] == {**fit.scores.described(), "curve": "logflip_logflip", "b0": -0.24, "b1": 0.3}
    assert read["results"][1]["bias"] == estimate.bias


def test_bias_of_several_numbers_of_bins_and_of_one_order(run):
    code, out, _ = run("bias", "-m", "ece", "--bins", "5", "--bins", "9", "--order", "2", "-n", "40", *FEW)
    assert code == 0
    assert ("ece 5" in out, "ece 9" in out, "L2 error" in out, "L1 error" in out) == (True, True, True, False)
    grid = simulate.bias_grid(
        {"ece": cal.ECE}, simulate.UNIFORM, simulate.curve_with_error(simulate.UNIFORM, 0.05), (40,), (5, 9), 20, p=2
    )
    assert f"{grid['ece 9', 40].bias:+.4f}" in out


def test_power_prints_what_power_finds_with_its_error(run):
    words = ("power", "-m", "ece", "-m", "mcs", "-n", "50", "-n", "90", "--curve", "power(2)", "--level", "0.1", *FEW)
    code, out, _ = run(*words, "--format", "json")
    assert code == 0
    detections = simulate.power(
        {"ece": cal.ECE, "mcs": cal.MCS}, simulate.UNIFORM, simulate.power_curve(2), 90, 0.1, 20
    )
    assert json.loads(out)["results"][3] == vars(detections["mcs"])
    out = run(*words)[1]
    assert f"{detections['ece'].power:.3f} ± {detections['ece'].mc_error:.3f}" in out
    assert f"n = 90: {detections.verdict} of data sets." in out


def test_samples_says_the_interval_and_the_replicates(run, tmp_path):
    words = ("samples", "-m", "mcs", "--error", "0.2", "--order", "1", "--within", "0.5")
    code, out, _ = run(*words, "-o", tmp_path / "samples.csv")
    assert code == 0
    needed = simulate.samples_needed(cal.MCS, simulate.UNIFORM, 0.2, p=1, within=0.5)
    assert out.startswith(f"mcs: {needed}\n")
    assert rows_of(tmp_path / "samples.csv")[0]["high"] == str(needed.high)


def test_samples_of_several_metrics_are_of_one_model_and_name_ties(run):
    words = ("samples", "-m", "mcs", "-m", "mcs/equal_width(1)", "--error", "0.2", "--within", "1")
    code, out, _ = run(*words, "--replicates", "50")
    assert code == 0
    assert out.count("true L1 error of 0.2") == 2
    assert "Fewest: mcs; mcs/equal_width(1) ties with it within Monte Carlo error." in out


def test_like_says_what_to_trust(run, predictions, tmp_path):
    words = ("like", predictions, "-m", "ece", "-m", "mcs", "-n", "60", "--order", "1", *FEW)
    code, out, _ = run(*words, "-o", tmp_path / "like.csv")
    assert code == 0
    assert out.startswith("300 predictions (event), and simulated models like theirs at n = 60\n")
    assert "Trust " in out
    assert [row["name"] for row in rows_of(tmp_path / "like.csv")] == ["ece", "mcs"]
    document = json.loads(run(*words, "--format", "json")[1])
    assert document["estimators"]["mcs"]["target"] == "L1 error"
    assert document["advice"].split()[0] == "Trust"


@pytest.mark.parametrize(
    ("words", "suffix"),
    [
        (("bias", "-m", "ece", "-n", "30", "-n", "60"), ".png"),
        (("power", "-m", "ece", "-n", "30"), ".svg"),
        (("samples", "-m", "mcs", "--error", "0.3", "--within", "1"), ".pdf"),
        (("like", "answers.csv", "-m", "ece"), ".PNG"),
    ],
)
def test_pictures_are_written(run, predictions, monkeypatch, words, suffix):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(predictions.parent)
    path = predictions.with_name(f"{words[0]}{suffix}")
    code, out, err = run(*words, *FEW, "-o", path.name)
    assert (code, err) == (0, "")
    assert f"written: {path.name}" in out
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix.lower()]
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("bias", "-o", "bias.xlsx"), "--output: must end in .csv, .json or .png, .svg, .pdf, got '.xlsx'"),
        (("power", "-o", "power"), "--output: must end in .csv"),
        (("like", "nowhere.npz", "-o", "like.gif"), "--output: must end in .csv"),
        (("bias", "-m", "ecce"), "did you mean 'ece'"),
        (("bias", "--scores", "bta(2, 1)"), "--scores: is unknown, got 'bta(2, 1)'; did you mean 'beta'?"),
        (("bias", "--scores", "beta(2)"), "--scores: needs numbers as its help says"),
        (("bias", "--scores", "beta(2, -1)"), "--scores: b: must be a finite number above 0"),
        (("bias", "--curve", "powr(2)"), "did you mean 'power'?"),
        (("bias", "--curve", "power(2)", "--error", "0.1"), "--error: stands instead of --curve"),
        (("bias", "--curve", "tempered(2)"), "--curve: must be tempered(T) of softmax scores"),
        (("power", "--scores", "softmax(3, 2)"), "--curve: must be tempered(T) of softmax scores"),
        (("power", "--model", "resnet"), "--model: is no published fit, got 'resnet'; did you mean"),
        (("power", "--model", "resnet110_c10", "--error", "0.1"), "--model: must stand alone"),
        (("power", "--error", "0.9"), "error: must lie between 0 and"),
        (("samples", "--error", "-1"), "error: must lie between 0 and"),
        (("samples", "--error", "9"), "error: must lie between 0 and"),
        (("bias", "--order", "0"), "Invalid value for '--order'"),
        (("power", "-n", "0"), "Invalid value for '-n'"),
        (("samples", "--replicates", "1"), "Invalid value for '--replicates'"),
        (("samples", "--seed", "-1"), "seed: must be a whole number"),
    ],
)
def test_wrong_use_is_refused_before_the_work_begins(run, tmp_path, monkeypatch, words, part):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "estimates", lambda *_: pytest.fail("work has begun"))
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert part in err
    assert not list(tmp_path.iterdir())


def test_classes_are_simulated(run):
    words = ("-m", "sce", "--scores", "softmax(3, 2)", "--curve", "tempered(2)", "-n", "50", "--replicates", "5")
    code, out, _ = run("bias", *words)
    assert code == 0
    assert "scores softmax(3, 2); true class probabilities: the scores at temperature 2" in out
    assert run("power", *words)[0] == 0


@pytest.mark.parametrize(
    ("replicates", "words"), [("20", "20 data sets takes about 20 s;"), ("300", "300 data sets takes about 5 minutes;")]
)
def test_a_long_run_says_so_beforehand(run, monkeypatch, replicates, words):
    clock = [0.0]

    def estimates(*_):
        clock[0] += 2.0  # two seconds, whatever is asked for

    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(command, "estimates", estimates)
    code, _, err = run("bias", "-m", "ece", "-n", "30", "--replicates", replicates)
    assert code == 0
    assert words in err
    assert run("bias", "-m", "ece", "-n", "30", "--replicates", "9")[2] == ""


@pytest.mark.parametrize("name", ["bias", "power", "samples", "like"])
def test_every_help_has_an_example(name):
    ended = CliRunner().invoke(commands.group, ["simulate", name, "--help"])
    assert ended.exit_code == 0
    assert f"calibrant simulate {name} " in ended.output


PAGE = Path(__file__).parents[1] / "docs" / "simulation.md"
SHOWN = dict(re.findall(r"^```console\n\$ calibrant (.*)\n((?:.*\n)*?)```", PAGE.read_text(encoding="utf-8"), re.M))
"""The commands of the page, with what they print."""


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line, text in SHOWN.items() if text])
def test_the_page_shows_what_is_printed(monkeypatch, capsys, line):
    code, out, _ = astuple(typed(monkeypatch, capsys, shlex.split(line)))
    assert (code, out) == (0, SHOWN[line])


def test_the_page_shows_every_simulation():
    assert {line.split()[1] for line in SHOWN} == {"bias", "power", "samples", "like"}
    assert [line for line, text in SHOWN.items() if not text] == ["simulate like predictions.npz"]


def test_published_names_are_asked_for_like_keys():
    assert "resnet110_c10" in simulate.PUBLISHED
    assert "resnet" not in simulate.PUBLISHED
    assert None not in simulate.PUBLISHED
