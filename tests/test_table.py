"""Tables: several metrics side by side."""

import csv
import io
import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.text import inert
from toy import P, y

PREDICTIONS = cal.Predictions.from_probs(y, P, region=np.array(["north", "=cmd"])[y % 2], age=np.arange(12) // 6)
METRICS = {"ece": cal.ECE, "sce": cal.SCE}


def test_rows_are_the_column_values_and_cells_their_results():
    made = cal.table(PREDICTIONS, METRICS, by="region")
    assert list(made.results) == ["all", "=cmd", "north"]
    part = PREDICTIONS[PREDICTIONS.columns["region"] == "north"]
    assert made["north"]["ece"].value == cal.ECE(part).value
    assert made["all"]["sce"].value == cal.SCE(PREDICTIONS).value


def test_numbers_in_columns_become_rows_too():
    assert list(cal.table(PREDICTIONS, METRICS, by="age").results) == ["all", "0", "1"]


def test_csv_holds_every_digit_and_no_formula():
    rows = list(csv.reader(io.StringIO(cal.table(PREDICTIONS, METRICS, by="region").to_csv())))
    assert rows[0] == ["region", "n", "ece", "sce"]
    assert [row[0] for row in rows[1:]] == ["all", "'=cmd", "north"]
    assert float(rows[1][2]) == cal.ECE(PREDICTIONS).value


def test_json_carries_the_specification_of_every_number():
    made = json.loads(cal.table(PREDICTIONS, METRICS).to_json())
    assert made["rows"]["all"]["ece"]["metric"]["binning"] == {"piece": "EqualWidth", "n_bins": 15, "closed": "right"}


def test_html_escapes_names():
    hostile = cal.Predictions.from_probs(y, P, region=["<b>"] * 12)
    assert "<b>" not in cal.table(hostile, METRICS, by="region")._repr_html_()


def test_unknown_columns_name_the_nearest():
    with pytest.raises(cal.CalibrationInputError, match="did you mean 'region'"):
        cal.table(PREDICTIONS, METRICS, by="regoin")
    with pytest.raises(cal.CalibrationInputError, match="a dictionary from names to metrics"):
        cal.table(PREDICTIONS, {})


def test_a_column_of_measurements_is_refused():
    many = cal.Predictions.from_probs(np.zeros(1500, int), np.full(1500, 0.5), weightless=np.arange(1500))
    with pytest.raises(cal.CalibrationInputError, match="at most 1000 values"):
        cal.table(many, {"ece": cal.ECE}, by="weightless")


def test_a_value_called_all_does_not_hide_the_total():
    named = cal.Predictions.from_probs(y, P, region=["all"] * 6 + ["b"] * 6)
    assert list(cal.table(named, METRICS, by="region").results) == ["all", "all (value)", "b"]


def test_terminals_are_not_steered():
    assert inert("a\x1b[31m\u202eb") == "a\\x1b[31m\\u202eb"
    assert len(inert("x" * 10_000)) == 60


def test_any_method_gives_the_intervals():
    covering = cal.table(PREDICTIONS, METRICS, interval=cal.Confidence())["all"]["ece"]
    assert covering.interval == cal.ECE(PREDICTIONS, interval=cal.Confidence()).interval
    told = cal.table(PREDICTIONS, METRICS, interval=lambda metric, rows, result: result)["all"]["ece"]
    assert told.interval is None


def by_site():
    """Four sites of 50 rows whose forecasts are too high by 0, 0.1, 0.3 and 0.2; seed 0."""
    rng = np.random.default_rng(0)
    site, shift = np.repeat(list("abcd"), 50), np.repeat([0.0, 0.1, 0.3, 0.2], 50)
    p = rng.uniform(0.35, 0.65, 200)
    return cal.Predictions.from_probs((rng.random(200) < p - shift).astype(int), p, site=site)


def test_rows_are_sorted_by_the_worst_value_or_the_smallest_p():
    rows = by_site()
    parts = {value: rows[rows.columns["site"] == value] for value in "abcd"}
    mcs = cal.table(rows, {"mcs": cal.MCS, "ece": cal.ECE}, by="site").sorted_by("value")
    assert list(mcs.results) == ["all", *sorted(parts, key=lambda site: -abs(cal.MCS(parts[site]).value))]
    good = cal.table(rows, {"brier_skill": cal.BRIER_SKILL}, by="site").sorted_by("value")
    assert list(good.results) == ["all", *sorted(parts, key=lambda site: cal.BRIER_SKILL(parts[site]).value)]
    nulls = cal.table(rows, {"mcs": cal.MCS, "ece": cal.ECE}, by="site", null=99).sorted_by("p")
    least = [min(result.details["corrected_p_value"] for result in row.values()) for row in nulls.results.values()]
    assert least[1:] == sorted(least[1:])
    assert least[1] < least[-1]
    assert next(iter(nulls.results)) == "all"
    with pytest.raises(cal.CalibrationInputError, match='what: must be "value" or "p"'):
        nulls.sorted_by("n")


def test_a_row_without_a_number_is_last():
    rows = cal.Predictions.from_probs([1, 0, 1], [0.9, 0.3, 0.8], site=list("abc"))
    metric = cal.ECE.replace(select=~cal.where(site="a"))
    assert list(cal.table(rows, {"ece": metric}, by="site").sorted_by("value").results) == ["all", "b", "c", "a"]
