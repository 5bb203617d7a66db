"""The commands report and compare: what is typed, what is printed and written, and how they end."""

import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import webbrowser

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import commands
from calibrant.files import read
from calibrant.inference.comparison import holm
from calibrant.report import subject
from calibrant.scale import State
from typed import Ended, typed

pytestmark = pytest.mark.slow

HOSTILE = ("<script>alert(1)</script>", "=cmd", "[/x]", "\u202eevil", "a" * 10_000, "\x1b[31mred")
unix = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predictions")
    rng = np.random.default_rng(3)
    z = rng.normal(size=(300, 4)) * 2
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    for name, sharp in {"new": 1.0, "old": 3.0, "model_a": 1.0, "model_b": 2.0, "predictions": 1.5}.items():
        np.savez(
            folder / f"{name}.npz", labels=y, logits=sharp * z, region=np.arange(300) % 2, patient=np.arange(300) // 3
        )
    np.savez(folder / "short.npz", labels=y[:200], logits=z[:200])
    np.savez(
        folder / "hostile.npz",
        labels=y,
        logits=z,
        classes=np.array(HOSTILE[:4]),
        who=np.array(HOSTILE)[np.arange(300) % 6],
    )
    np.save(folder / "labels.npy", y)
    np.save(folder / "probabilities.npy", p)
    chance = p[:, 0]
    lines = [f"{int(label == 0)},{value:.6f}" for label, value in zip(y, chance, strict=True)]
    (folder / "predictions.csv").write_text("\n".join(["label,p", *lines]) + "\n", encoding="utf-8")
    State.of(read(folder / "predictions.csv"), {"ece": cal.ECE}).save(folder / "week.state")
    (folder / "bad.csv").write_text("label,p\n1,1.7\n", encoding="utf-8")
    (folder / "empty.csv").write_text("", encoding="utf-8")
    return folder


@pytest.fixture
def command(folder, tmp_path, monkeypatch, capsys):
    """The whole command without a new process, among copies of the files; few resamples."""
    for path in folder.iterdir():
        shutil.copy(path, tmp_path / path.name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subject, "MOST", 20)
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address))
    opened.clear()

    return lambda *words: typed(monkeypatch, capsys, words)


opened: list[str] = []


def examples(name):
    text = inspect.cleandoc(commands.group.commands[name].help or "")
    return [line.strip() for line in text.splitlines() if line.strip().startswith("calibrant ")]


# report


@pytest.mark.parametrize("example", examples("report"))
def test_every_example_in_the_help_of_report_runs(command, tmp_path, example):
    ended = command(*shlex.split(example)[1:])
    assert (ended.code, ended.err) == (0, "")
    if "summary.md" in example:
        assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("### Calibration of predictions")
        assert not (tmp_path / "report.html").exists()
        return
    page = tmp_path / ("page.html" if "page.html" in example else "report.html")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert opened == ([page.as_uri()] if "--open" in example else [])
    assert shlex.join(shlex.split(example)) in page.read_text(encoding="utf-8")


def test_the_report_says_its_verdict_and_where_the_page_is(command, tmp_path):
    ended = command("report", "predictions.npz")
    lines = ended.out.splitlines()
    assert lines[0] == "300 rows, 4 classes, logits"
    assert lines[2].startswith(("Over-confident", "Too few", "No miscalibration", "Miscalibrated"))
    assert lines[-1] == "written: report.html"
    assert "Calibration of predictions.npz" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_report_ends_with_one_where_a_limit_was_passed_and_the_page_is_written(command, tmp_path):
    result = cal.ECE(read(tmp_path / "old.npz"), interval=cal.Confidence())
    for limit, options, code in (
        (result.value * 1.001, (), 0),
        (result.value * 0.999, (), 1),
        (result.interval.low * 1.001, ("--confident",), 0),
        (result.interval.low * 0.999, ("--confident",), 1),
    ):
        ended = command("report", "old.npz", "-q", "-o", "page.html", "--fail-above", f"ece={limit!r}", *options)
        assert ended.code == code, ended.err
        assert ("ece of all is" in ended.err) == (code == 1)
        assert (tmp_path / "page.html").exists()
    assert command("report", "old.npz", "--fail-above", "nothing=1").code == 2


def test_groups_of_rows_are_said_on_the_page(command, tmp_path):
    assert command("report", "old.npz", "-q", "-o", "page.html", "--groups", "patient").code == 0
    assert "those of one patient (100 values)" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert command("report", "old.npz", "-q", "--groups", "nobody").code == 3


def test_quiet_is_quiet(command, tmp_path):
    ended = command("report", "predictions.npz", "--quiet", "-o", "a.html")
    assert ended == Ended(0, "", "")
    assert (tmp_path / "a.html").exists()


def test_json_has_the_numbers(command):
    ended = command("report", "predictions.npz", "--format", "json")
    document = json.loads(ended.out)
    assert document["calibrant"] == cal.__version__
    assert document["report"] == "report.html"
    assert document["tone"] in ("good", "poor", "unsure")
    ece = document["numbers"][0]
    predictions = read("predictions.npz")
    assert (ece["metric"], ece["value"], ece["rows"]) == ("ECE", cal.ECE(predictions).value, 300)
    assert ece["p, corrected"] >= 1 / 41


def test_a_file_of_json_has_all_that_is_on_the_page(command, tmp_path):
    told = ["--title", "Screening", "--author", "Ada", "--note", "spring", "--date", "2026-01-02", "--by", "region"]
    assert command("report", "old.npz", "--json", "all.json", "--fail-above", "ece=0.9", *told).code == 0
    document, page = json.loads((tmp_path / "all.json").read_text()), (tmp_path / "report.html").read_text()
    assert (document["title"], document["about"]) == ("Screening", ["Ada · 2026-01-02", "spring"])
    assert [check["status"] for check in document["limits"]] == ["pass"]
    assert document["key_numbers"][0]["name"] == "ECE"
    assert f"<h1>{document['title']}</h1>" in page
    sections = {section["id"]: section for section in document["sections"]}
    assert set(re.findall(r'<section id="([a-z]+)"', page)) == {"verdict", *sections}
    tables = [table for section in sections.values() for table in (*section["figures"], *section["tables"])]
    assert len(tables) == page.count("<table")
    assert {row["group"].split(" = ")[0] for row in sections["groups"]["figures"][0]["table"]} == {"region"}
    assert command("report", "old.npz", "-q", "--by", "nothing").code == 3
    command("report", "old.npz", "-q")
    assert re.search(r'<p class="about">\d{4}-\d\d-\d\d</p>', (tmp_path / "report.html").read_text())


def test_markdown_is_a_comment_for_a_pull_request(command):
    ended = command("report", "predictions.npz", "--format", "markdown")
    assert ended.out.startswith("### Calibration of predictions.npz\n\n**")
    assert "\n| ECE | 0." in ended.out


def test_several_files_are_models_side_by_side(command, tmp_path):
    ended = command("report", "new.npz", "old.npz")
    assert ended.code == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Models side by side" in text
    assert "new.npz less old.npz" in text
    assert "new.npz is better calibrated than old.npz: its ECE is lower by " in ended.out


def test_files_of_other_rows_are_said_to_be(command, tmp_path):
    ended = command("report", "new.npz", "short.npz")
    assert ended.code == 0
    assert "Compare models on the same rows." in ended.out
    assert "do not hold the same rows" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_two_files_of_one_name_go_by_their_paths(command, tmp_path):
    (tmp_path / "b").mkdir()
    shutil.copy(tmp_path / "old.npz", tmp_path / "b" / "new.npz")
    assert command("report", "new.npz", "b/new.npz").code == 0
    assert "new.npz less b/new.npz" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["report"], 2, "Missing argument 'FILES...'"),
        (["report", "new.npz", "new.npz"], 2, "one file is named twice; name each model's file once"),
        (["report", "new.npz", "--seed", "-1"], 2, "seed: must be a whole number"),
        (["report", "new.npz", "--format", "pdf"], 2, "'pdf' is not one of 'text', 'json', 'markdown'"),
        (["report", "labels.npy"], 2, "NPY files come in pairs: calibrant report labels.npy probabilities.npy"),
        (["report", "new.npz", "-o", "new.npz"], 2, "would overwrite new.npz; give another name with -o"),
        (["report", "new.npz", "--probs", "a", "--logits", "b"], 2, "exclude each other"),
        (["report", "bad.csv"], 3, "1.7"),
        (["report", "empty.csv"], 3, "empty.csv"),
        (["report", "new.npz", "--label", "labelz"], 3, "labels"),
        (["report", "absent.npz"], 3, "absent.npz"),
        (["report", "new.npz", "-o", "absent/page.html"], 4, "absent: is no folder; make it first"),
        (["report", "new.npz", "-o", "."], 4, "is a directory; name a file in it"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_code(command, tmp_path, words, code, message):
    before = sorted(path.name for path in tmp_path.iterdir())
    ended = command(*words)
    assert ended.code == code
    assert message in ended.err
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@unix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_named(command, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    ended = command("report", "new.npz", "-o", "locked/page.html")
    assert ended.code == 4
    assert "locked" in ended.err


def test_a_full_disk_is_named(command, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "report.html")

    monkeypatch.setattr("calibrant.report.calibration_report.write_text", full)
    ended = command("report", "new.npz")
    assert (ended.code, ended.err) == (4, "calibrant: report.html: No space left on device\n")


@pytest.mark.parametrize("style", ["text", "json", "markdown"])
def test_hostile_names_steer_no_terminal(command, tmp_path, style):
    shutil.copy(tmp_path / "hostile.npz", tmp_path / "[red]\x1b[31m.npz")
    ended = command("report", "[red]\x1b[31m.npz", "--format", style)
    assert ended.code == 0
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", ended.out)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count("<script") == 2
    assert "\x1b" not in text


@unix
@pytest.mark.parametrize("options", [[], ["--quiet"]])
def test_progress_is_shown_on_a_terminal_unless_it_is_not_wanted(options, tmp_path):
    import pty

    rng = np.random.default_rng(0)
    p = rng.random(30_000)
    np.savez(tmp_path / "many.npz", label=rng.random(30_000) < p, p=p)
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "calibrant", "report", "many.npz", *options]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs) as started:
        os.close(theirs)
        printed = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            printed += read
        assert started.wait(60) == 0
        assert (started.stdout.read() == b"") == bool(options)
    os.close(ours)
    assert (b"report: " in printed) == (not options)
    assert printed == b"" if options else printed.endswith(b"\r\x1b[K")
    assert (tmp_path / "report.html").exists()


# compare


def test_a_difference_from_an_infinite_loss_is_not_written_as_a_number(command, tmp_path):
    for name, first in {"never": "0", "seldom": "0.1"}.items():
        (tmp_path / f"{name}.csv").write_text(f"label,p\n1,{first}\n" + "1,0.8\n0,0.3\n" * 20)
    ended = command("compare", tmp_path / "seldom.csv", tmp_path / "never.csv", "-m", "log_loss", "-n", "20")
    assert "nan" not in ended.out
    assert ended.out.count("–") == 2
    assert "first is better: second is infinite" in ended.out


@pytest.mark.parametrize("example", examples("compare"))
def test_every_example_in_the_help_of_compare_runs(command, example):
    ended = command(*shlex.split(example)[1:], "-n", "30")
    assert ended.code == 0
    assert ended.err == ""
    assert "ece" in ended.out


def test_a_comparison_is_that_of_python(command):
    ended = command("compare", "new.npz", "old.npz", "-m", "ece", "-n", "50", "--format", "json")
    document = json.loads(ended.out)["comparisons"]["ece"]
    known = cal.compare(cal.ECE, read("new.npz"), read("old.npz"), 50, 0)
    assert document["difference"] == known.difference
    assert document["interval"] == [known.interval.low, known.interval.high]
    assert document["p_value"] == known.p_value


def test_p_values_stop_at_a_thousandth(command):
    ended = command("compare", "new.npz", "old.npz", "-m", "ece", "-n", "30")
    assert "< 0.001" in ended.out
    assert "first is better" in ended.out


def test_words_exit_status_and_p_value_follow_one_rule(command, tmp_path):
    """One rule: a metric is called better, and fails the gate, where its corrected p-value is at most 0.05."""
    arrays = np.load(tmp_path / "new.npz")
    for size in range(1, 6):
        noise = np.random.default_rng(size).normal(size=arrays["logits"].shape) * size / 5
        np.savez(tmp_path / "noisy.npz", labels=arrays["labels"], logits=arrays["logits"] + noise)
        words = ("compare", "noisy.npz", "new.npz", "-n", "30", "--fail-if-worse")
        ended, document = command(*words), json.loads(command(*words, "--format", "json").out)["comparisons"]
        worse = [name for name, pair in document.items() if pair["adjusted_p_value"] <= 0.05 and pair["difference"] > 0]
        assert ended.code == bool(worse)
        assert ended.out.count("second is better") == len(worse)
        p_values = np.array([pair["p_value"] for pair in document.values()])
        assert [pair["adjusted_p_value"] for pair in document.values()] == pytest.approx(holm(p_values))


def test_worse_is_a_failure_only_when_asked_for(command):
    assert command("compare", "old.npz", "new.npz", "-n", "30").code == 0
    ended = command("compare", "old.npz", "new.npz", "-n", "30", "--fail-if-worse")
    assert ended.code == 1
    assert "old.npz is worse than new.npz in ece" in ended.err
    assert command("compare", "new.npz", "old.npz", "-n", "30", "--fail-if-worse").code == 0


def test_a_lower_accuracy_is_worse(command, tmp_path):
    rng = np.random.default_rng(0)
    arrays = np.load(tmp_path / "new.npz")
    np.savez(tmp_path / "dull.npz", labels=arrays["labels"], logits=arrays["logits"] + rng.normal(size=(300, 4)) * 9)
    assert command("compare", "dull.npz", "new.npz", "-m", "accuracy", "-n", "30", "--fail-if-worse").code == 1
    assert command("compare", "new.npz", "dull.npz", "-m", "accuracy", "-n", "30", "--fail-if-worse").code == 0


def test_farther_below_nothing_is_worse_too(command, tmp_path):
    arrays = np.load(tmp_path / "new.npz")
    np.savez(tmp_path / "shy.npz", labels=arrays["labels"], logits=arrays["logits"] / 9)
    words = ("-m", "mcs", "-n", "30", "--fail-if-worse")
    assert command("compare", "shy.npz", "new.npz", *words).code == 1
    assert command("compare", "new.npz", "shy.npz", *words).code == 0


def test_models_within_a_margin_are_equivalent(command):
    ended = command("compare", "new.npz", "new.npz", "-m", "ece", "-n", "30", "--margin", "0.01")
    assert "equivalent within 0.01" in ended.out
    assert "not equivalent" in command("compare", "new.npz", "old.npz", "-m", "ece", "-n", "30", "--margin", "0.01").out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["new.npz"], 2, "Missing argument 'SECOND'"),
        (["new.npz", "old.npz", "-n", "0"], 2, "--resamples: must be a whole number of at least 1"),
        (
            ["new.npz", "old.npz", "--level", "90"],
            2,
            "--level: must lie strictly between 0 and 1, got 90; type --level 0.9 for 90%",
        ),
        (["new.npz", "old.npz", "--margin", "-1"], 2, "--margin: must be positive"),
        (["new.npz", "old.npz", "-m", "eec"], 2, "did you mean"),
        (["new.npz", "short.npz"], 3, "short.npz: must have the rows of new.npz"),
        (["new.npz", "old.npz", "--groups", "regoin"], 3, "region"),
        (["new.npz", "absent.npz"], 3, "absent.npz"),
    ],
)
def test_what_is_wrong_with_a_comparison_is_said(command, words, code, message):
    ended = command("compare", *words)
    assert ended.code == code
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_the_page_of_a_state_has_its_title_who_wrote_it_and_its_limits(command, tmp_path):
    about = ("--title", "The week", "--author", "Ada", "--note", "n")
    ended = command("report", "week.state", *about, "--fail-above", "ece=0.0001", "-o", "x.html")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert ended.code == 1
    assert "<h1>The week</h1>" in page
    assert "Ada" in page
    assert "Fail: ECE is" in ended.out
