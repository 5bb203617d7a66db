"""The guides: every example and every command of a page, run in the order of the page, in a folder of its own."""

import doctest
import importlib.util
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from calibrant.cli import commands

GUIDES = Path(__file__).parents[1] / "docs" / "guides"
PAGES = sorted(page for page in GUIDES.glob("*.md") if page.stem != "index")
NEEDS = {"torch": ["torch", "torchmetrics"], "deployment": ["onnxruntime"]}
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CLUSTERS = ("distributed", "pyspark")
"""Packages without which a block that imports them is left out; the rest of its page runs."""
STATUS = '; echo "exit status $?"'


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets that py4j leaves to the collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_guide_leads_from_nothing_to_a_report_and_a_recalibrated_model(page, tmp_path, monkeypatch):
    for package in NEEDS.get(page.stem, []):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    _run(page.read_text(encoding="utf-8"))
    assert any("<html" in path.read_text(encoding="utf-8") for path in tmp_path.glob("*.html"))
    assert any("calibrant_map" in path.stem for path in tmp_path.iterdir())


def test_a_block_for_a_cluster_is_left_out_only_where_its_package_is_missing(monkeypatch):
    block = "```python\n>>> from distributed import Client\n>>> 1 + 1\n3\n```\n"
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    _run(block)
    with pytest.raises(doctest.DocTestFailure):
        _run(block.replace("from distributed", "from pathlib").replace("Client", "Path"))


def test_an_example_with_another_output_is_found():
    with pytest.raises(doctest.DocTestFailure):
        _run("```python\n>>> 1 + 1\n3\n```\n")


@pytest.mark.parametrize("command", ["calibrant info --unknown", "calibrant info\nnot what it prints"])
def test_a_command_that_fails_or_prints_something_else_is_found(command):
    with pytest.raises(AssertionError):
        _run(f"```console\n$ {command}\n```\n")


def _run(page: str) -> None:
    """Run the blocks of a page one after another; examples share their names."""
    session: dict[str, object] = {}
    for language, block in BLOCK.findall(page):
        if any(f">>> from {package}" in block and not _is_here(package) for package in CLUSTERS):
            continue
        if language == "python":
            examples = doctest.DocTestParser().get_doctest(block, {}, "guide", None, 0)
            examples.globs = session
            doctest.DebugRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, clear_globs=False)
        else:
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
                _call(command, shown)


def _is_here(package: str) -> bool:
    """Whether a package for clusters can be used; Spark needs Java."""
    java = package != "pyspark" or shutil.which("java") is not None or "JAVA_HOME" in os.environ
    return java and importlib.util.find_spec(package) is not None


def _call(command: str, shown: str) -> None:
    """Run a command of calibrant; what the page shows of its output, if anything, must be part of what it prints."""
    told = command.endswith(STATUS)
    words = shlex.split(command.removesuffix(STATUS), comments=True)
    assert words[0] == "calibrant", command
    ended = CliRunner().invoke(commands.group, words[1:])
    printed = ended.output + (f"exit status {ended.exit_code}\n" if told else "")
    assert told or ended.exit_code == 0, f"{command}: {ended.output}"
    assert " ".join(shown.split()) in " ".join(printed.split()), f"{command}:\n{printed}"
