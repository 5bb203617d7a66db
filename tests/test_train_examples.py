"""The examples in the docstrings of calibrant.train, run where torch is; without it, the error that says so."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import calibrant
try:
    import calibrant.train
except ImportError as error:
    print(error)
"""


def test_without_torch_the_error_says_what_to_install():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "calibrant.train needs torch: pip install 'calibrant[torch]'"


def test_a_fault_inside_torch_is_not_taken_for_its_absence(tmp_path):
    (tmp_path / "torch.py").write_text("import a_part_of_torch_that_is_missing\n", encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import calibrant.train"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "No module named 'a_part_of_torch_that_is_missing'" in done.stderr
    assert "pip install" not in done.stderr


def test_every_example_prints_what_it_says():
    pytest.importorskip("torch")
    import calibrant.train as package

    modules = [package, *(importlib.import_module(module.name) for module in _modules(package))]
    tried = 0
    for module in modules:
        assert inspect.getdoc(module)
        result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
        assert result.failed == 0, module.__name__
        tried += result.attempted
    assert tried > len(modules)


def test_every_public_name_is_documented_with_an_example_and_its_reference():
    pytest.importorskip("torch")
    import calibrant.train as package

    assert package.__all__ == sorted(package.__all__)
    for name in package.__all__:
        thing = getattr(package, name)
        assert doctest.DocTestFinder(recurse=False).find(thing)[0].examples, name
        assert name in ("Mixed", "cross_entropy") or "References:" in inspect.getdoc(thing), name


def _modules(package):
    return pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
