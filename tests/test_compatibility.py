"""What version 0.1.0 wrote is read to the same values."""

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibrate.methods import METHODS
from calibrant.recalibrate.scores import softmax

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
