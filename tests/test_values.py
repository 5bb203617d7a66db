"""The committed table of values: every recipe on data that do not change."""

import importlib.util
import json
from pathlib import Path

import pytest

import calibrant as cal

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("table_of_values", ROOT / "scripts" / "table_of_values.py")
values = importlib.util.module_from_spec(spec)
spec.loader.exec_module(values)
TABLE = json.loads(values.TABLE.read_text(encoding="utf-8"))
NAMES = pytest.mark.parametrize("name", TABLE)


def predictions_of(name):
    if name in values.DATA:
        return values.DATA[name]()
    beside = values.beside()
    return beside[name] if beside else pytest.skip("the folder with other people's predictions is not here")


def same(one, other):
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    numbers = [[float(row["value"]), *row["values"]] for row in (one, other)]
    return one["n"] == other["n"] and numbers[0] == pytest.approx(numbers[1], rel=1e-12, abs=1e-12, nan_ok=True)


@NAMES
def test_every_recipe_has_the_value_that_it_had(name):
    predictions = predictions_of(name)
    for recipe, written in TABLE[name].items():
        exact = values.is_exact(recipe, predictions)
        rows = predictions[:1000] if recipe == "SKCE" else predictions
        found = values.row(cal.RECIPES[recipe], rows, exact=exact)
        assert found == written if exact else same(found, written), recipe


def test_every_recipe_is_in_the_table():
    for rows in TABLE.values():
        assert set(rows) == set(cal.RECIPES)


def test_a_value_that_is_off_by_a_bit_is_noticed():
    row = TABLE["decimals"]["ECE"]
    assert float.fromhex(row["value"]) == cal.ECE(values.decimals()).value
    assert float.hex(float.fromhex(row["value"]) * (1 + 2**-52)) != row["value"]
