"""Importing: light, quick, documented."""

import doctest
import importlib
import inspect
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


def test_import_adds_less_than_a_fifth_of_a_second_to_numpy():
    code = "import numpy, time; start = time.process_time(); import calibrant; print(time.process_time() - start)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    ]
    assert min(runs) < 0.2


@pytest.mark.parametrize("name", cal.__all__)
def test_every_public_name_is_documented_with_an_example(name):
    thing = getattr(cal, name)
    if name == name.upper() or name in ("everything", "diagnostics", "recalibrate"):  # documented by their modules
        return
    assert inspect.getdoc(thing), name
    assert doctest.DocTestFinder(recurse=False).find(thing)[0].examples, name


@pytest.mark.parametrize("module", [found.name for found in pkgutil.walk_packages(cal.__path__, "calibrant.")])
def test_every_module_says_what_it_is(module):
    if module == "calibrant.__main__":
        return
    optional = ("calibrant.train", "calibrant.experiments", "calibrant.integrations.sklearn")
    try:
        found = importlib.import_module(module)
    except ImportError as missing:
        if not module.startswith(optional):
            raise
        pytest.skip(str(missing))
    assert inspect.getdoc(found)


def test_imports_point_one_way():
    order = (  # noqa: SIM905 - a list of strings would be three times as long
        "exceptions checks precision totals sharing kernels elsewhere arrays leaks labels door predictions selections "
        "views lenses narrowing bins pooling forecasts binning sweep partitions distances aggregates specification "
        "metric errors recipes inference table diagnostics formats files io recalibrate simulate plots report cli"
    ).split()
    place = {name: index for index, name in enumerate(order)}
    for name in order:
        module = importlib.import_module(f"calibrant.{name}")
        paths = getattr(module, "__path__", None)
        parts = [module] if paths is None else [
            importlib.import_module(found.name) for found in pkgutil.walk_packages(paths, f"calibrant.{name}.")
        ]  # fmt: skip
        for part in parts:
            source = inspect.getsource(part)
            for line in source.splitlines():
                if line.startswith(("from calibrant", "import calibrant.")):
                    used = line.split()[1].split(".")[1:2] or [word.strip(",") for word in line.split()[3:]]
                    for one in used:
                        assert one not in place or place[one] <= place[name], f"{part.__name__}: {line}"


def test_continuous_integration_runs_the_commands_of_the_readme():
    root = Path(__file__).parents[1]
    readme, script = ((root / name).read_text(encoding="utf-8") for name in ("README.md", ".ci/run"))
    commands = [line for line in readme.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    for command in commands:
        assert command in script
