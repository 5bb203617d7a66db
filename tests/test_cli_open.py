"""`calibrant open` shows a page, and `--quiet` keeps standard error for what is wrong."""

import webbrowser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from calibrant.cli.commands import group


def every(command, name=""):
    """All commands, those in groups included, by what is typed."""
    for part, inner in getattr(command, "commands", {}).items():
        yield from every(inner, f"{name} {part}".strip())
    if not hasattr(command, "commands"):
        yield name, command


@pytest.fixture
def browser(monkeypatch):
    """What a browser was told to open, on a desktop."""
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    monkeypatch.setenv("DISPLAY", ":0")
    return opened


@pytest.fixture
def predictions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(300)
    np.savez("predictions.npz", y=(rng.random(300) < p).astype(int), p=p)
    return "predictions.npz"


def run(*words):
    return CliRunner().invoke(group, list(words))


def test_a_page_is_shown(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("report.html", "other.HTM"):
        Path(name).write_text("<p>")
    assert run("open").output == f"shown in the browser: {tmp_path / 'report.html'}\n"
    assert run("open", "other.HTM").exit_code == 0
    assert browser == [(tmp_path / name).as_uri() for name in ("report.html", "other.HTM")]


def test_without_a_display_the_path_is_printed(browser, tmp_path, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    page = tmp_path / "page.html"
    page.write_text("<p>")
    assert run("open", str(page)).output == f"open this page in a browser: {page}\n"
    assert browser == []


def test_without_a_page_it_is_said_how_to_make_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = run("open")
    assert ended.exit_code == 3
    assert ended.output == "calibrant: report.html: there is no such page; calibrant report FILE writes one\n"


def test_a_report_of_predictions_is_made_elsewhere_and_shown(browser, predictions, tmp_path):
    ended = run("open", predictions)
    assert ended.exit_code == 0, ended.output
    page = Path(browser[0].removeprefix("file://"))
    assert ended.output == f"shown in the browser: {page}\n"
    assert "<html" in page.read_text("utf-8")
    assert tmp_path not in page.parents
    assert [path.name for path in tmp_path.iterdir()] == [predictions]
    page.unlink()
    page.parent.rmdir()


@pytest.mark.parametrize("name", dict(every(group)))
def test_every_command_can_be_quiet(name):
    options = [option for option in dict(every(group))[name].params if "--quiet" in option.opts]
    assert len(options) == 1
    assert "-q" in options[0].opts


def test_quiet_commands_say_nothing_beside_results(predictions):
    for words in (
        ("state", predictions, "-o", "-"),
        ("recalibrate", "fit", predictions, "-o", "-"),
        ("recalibrate", "choose", predictions, "-m", "temperature", "--format", "json", "-o", "map.json"),
        ("simulate", "bias", "-m", "ece", "-n", "50", "--replicates", "5", "--format", "json", "-o", "bias.csv"),
    ):
        loud, quiet = run(*words), run(*words, "--quiet")
        assert loud.exit_code == quiet.exit_code == 0, loud.output
        assert loud.stderr
        assert quiet.stderr == ""
        assert quiet.stdout_bytes == loud.stdout_bytes


def test_quiet_commands_still_say_what_is_wrong(predictions):
    failed = run("measure", predictions, "-m", "ece", "--fail-above", "ece=0", "-q")
    assert failed.exit_code == 1
    assert "above 0" in failed.stderr
