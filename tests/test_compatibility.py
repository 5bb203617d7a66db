"""What version 0.1.0 wrote is read to the same values."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.files import SHIPPED, read
from calibrant.recalibrate.fitting.lessons import softmax
from calibrant.recalibrate.methods import METHODS

WRITTEN = Path(__file__).parent / "written_by_0_1_0"
MAPS = json.loads((WRITTEN / "maps.json").read_text(encoding="utf-8"))


def tolerance():
    """0 where NumPy exponentiates as it did when the maps were written; its last bit depends on the processor."""
    written = MAPS["temperature of classes, logits"]
    plain = softmax(np.array(written["scores"]) / written["map"]["learnt"]["temperature_"])
    return 0.0 if plain.tolist() == written["probabilities"] else 1e-12


@pytest.mark.parametrize("name", MAPS)
def test_a_map_gives_the_probabilities_that_it_gave(name):
    written = MAPS[name]
    fitted = cal.recalibrate.from_json(json.dumps(written["map"]))
    made = fitted.predict_proba(np.array(written["scores"]))
    assert np.abs(made - written["probabilities"]).max() <= tolerance()


@pytest.mark.parametrize("name", MAPS)
def test_a_map_is_written_as_it_was(name):
    written = MAPS[name]["map"]
    assert json.loads(cal.recalibrate.from_json(json.dumps(written)).to_json()) == written


def test_there_is_a_map_of_every_method_of_that_version():
    assert {written["map"]["method"] for written in MAPS.values()} <= set(METHODS)
    assert len({written["map"]["method"] for written in MAPS.values()}) == 14


METRICS = json.loads((WRITTEN / "metrics.json").read_text(encoding="utf-8"))
RESULTS = json.loads((WRITTEN / "results.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_read_as_what_it_was_and_written_as_it_was(name):
    metric = cal.from_json(json.dumps(METRICS[name]))
    assert json.loads(metric.to_json()) == METRICS[name]
    if name in cal.RECIPES:
        assert metric == cal.RECIPES[name]


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_read_to_the_same_values_and_bins(name):
    written = RESULTS[name]
    result = cal.Result.from_json(json.dumps(written))
    again = json.loads(result.to_json())
    for key in written.keys() - {"name"}:
        assert again[key] == written[key], key
    assert result.n == written["n"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METRICS if name in RESULTS])
def test_a_metric_of_that_version_gives_its_value_again(name):
    """To 1e-12: softmax is now accurate to the last bit. Blocks depend on the order of rows, which that bit changes."""
    predictions = read(SHIPPED / "fashion_mnist_test.npz")[:1500]
    value = cal.from_json(json.dumps(METRICS[name]))(predictions).value
    drawn = name == "kernel"
    assert value == pytest.approx(float(RESULTS[name]["value"]), abs=5e-3 if drawn else 1e-12, nan_ok=True)


def test_the_store_of_a_study_is_read_to_the_same_tables(tmp_path):
    pytest.importorskip("yaml")
    pytest.importorskip("pydantic")
    from calibrant.experiments.findings.tables import tables_of
    from calibrant.experiments.running import runner
    from calibrant.experiments.running.evidence import Evidence

    shutil.copytree(WRITTEN / "store", tmp_path / "store")
    study, store = runner.reopen(tmp_path / "store")
    written = json.loads((WRITTEN / "store" / "tables.json").read_text(encoding="utf-8"))
    tables = [sheet.to_csv() for sheet in tables_of(Evidence(study, store))[: len(written)]]  # newer ones come last
    assert [table.splitlines()[0] for table in tables] == [table.splitlines()[0] for table in written]
    for found, expected in zip(cells(tables), cells(written), strict=True):
        assert found == expected or float(found) == pytest.approx(float(expected), abs=1e-9, nan_ok=True)


def cells(tables):
    return [cell for table in tables for line in table.splitlines() for cell in line.split(",")]
