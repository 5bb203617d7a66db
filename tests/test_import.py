"""Importing: light, quick, documented."""

import doctest
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant as cal

HEAVY = ("scipy", "torch", "sklearn", "matplotlib", "pandas", "polars", "pyarrow", "click", "rich", "yaml", "pydantic")


def test_import_loads_numpy_alone():
    code = f"import sys, calibrant; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@pytest.mark.slow
def test_import_adds_less_than_a_fifth_of_a_second_to_numpy(tmp_path):
    """With its bytecode, as installed; on a machine on which NumPy takes long, less than 2.5 times what that takes."""
    code = "import time; start = time.process_time(); import numpy; middle = time.process_time(); import calibrant; "
    command = [sys.executable, "-c", code + "print(middle - start, time.process_time() - middle)"]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    kept["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    runs = [subprocess.run(command, capture_output=True, text=True, check=True, env=kept).stdout for _ in range(6)]
    theirs, ours = zip(*(map(float, run.split()) for run in runs[1:]), strict=True)
    assert list(tmp_path.rglob("calibrant/*.pyc"))
    assert min(ours) < max(0.2, 2.5 * min(theirs))


def test_a_report_without_its_extra_says_what_to_install():
    code = "import sys; sys.modules |= {'jinja2': None, 'markupsafe': None}; import calibrant.report"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr.splitlines()[-1]
    assert told == "ModuleNotFoundError: calibrant.report needs jinja2: pip install 'calibrant[cli]'"


DOCUMENTED_BY_THEIR_MODULES = {"everything", "diagnostics", "recalibrate"}
OF_TORCH = ("along_rows", "down_columns", "fused", "order_statistics", "rowwise", "tensors", "torch")
DOCUMENTED = [name for name in cal.__all__ if name != name.upper() and name not in DOCUMENTED_BY_THEIR_MODULES]
MODULES = [found.name for found in pkgutil.walk_packages(cal.__path__, "calibrant.")]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_is_documented_with_an_example(name):
    thing = getattr(cal, name)
    assert inspect.getdoc(thing), name
    assert doctest.DocTestFinder(recurse=False).find(thing)[0].examples, name


@pytest.mark.parametrize("module", [name for name in MODULES if name != "calibrant.__main__"])  # that runs the command
def test_every_module_says_what_it_is(module):
    optional = ("calibrant.train", "calibrant.experiments", "calibrant.integrations.sklearn")
    optional += ("calibrant.integrations.torchmetrics",)
    optional += tuple(f"calibrant.kernels.{name}" for name in OF_TORCH)
    try:
        found = importlib.import_module(module)
    except ImportError as missing:
        if not module.startswith(optional) or (missing.name or "").startswith("calibrant"):
            raise
        pytest.skip(str(missing))
    assert inspect.getdoc(found)


def test_continuous_integration_runs_the_commands_of_the_readme():
    root = Path(__file__).parents[1]
    readme, script = ((root / name).read_text(encoding="utf-8") for name in ("README.md", ".ci/run"))
    commands = [line for line in readme.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    for command in commands:
        assert command in script
