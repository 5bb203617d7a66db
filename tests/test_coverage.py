"""The list of what the five documents hold: the names and tests in it exist, and the page says what the list does."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture(scope="module")
def coverage():
    sys.path.insert(0, str(SCRIPTS))
    try:
        spec = importlib.util.spec_from_file_location("coverage_page", SCRIPTS / "coverage.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SCRIPTS))
    return module


def test_every_name_and_test_of_the_list_exists(coverage):
    assert [fault for item in coverage.read() for fault in coverage.wrong(item)] == []


def test_the_page_is_printed_from_the_list(coverage):
    assert coverage.PAGE.read_text(encoding="utf-8") == "\n".join(coverage.page(coverage.read())).rstrip() + "\n"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": "ECEE"}, "there is no ECEE"),
        ({"name": "errors.kde.KDE"}, "there is no errors.kde.KDE"),
        ({"name": "scripts/nothing.py"}, "there is no scripts/nothing.py"),
        ({"test": "tests/test_kde.py::test_nothing"}, "there is no test"),
        ({"test": ""}, "has no name or no test"),
        ({"state": "partial"}, "what is missing is not said"),
        ({"state": "nearly"}, "unknown state"),
        ({None: ["and more"]}, "too many cells"),
    ],
)
def test_what_is_wrong_is_found(coverage, changes, fault):
    item = {
        "document": "K", "place": "eq. 3", "item": "ECE", "state": "works", "name": "errors.kde.KDEError",
        "test": "tests/test_kde.py::test_four_forecasts", "note": "",
    }  # fmt: skip
    assert list(coverage.wrong(item)) == []
    assert any(fault in words for words in coverage.wrong({**item, **changes}))
