"""calibrant explain, as a newcomer types it."""

import json
from dataclasses import astuple

import numpy as np
import pytest

import calibrant as cal
from typed import typed


@pytest.fixture
def run(monkeypatch, capsys):
    return lambda *words: astuple(typed(monkeypatch, capsys, words))


@pytest.fixture
def saturated(tmp_path):
    """Forecasts of an event on a grid that ends at 1, as CSV."""
    p = np.repeat(np.arange(11) / 10, 20)
    y = (np.arange(len(p)) % 2 == 0) | (p == 0.9)
    path = tmp_path / "saturated.csv"
    path.write_text(
        "\n".join(["y,p", *(f"{int(a)},{b!r}" for a, b in zip(y, p.tolist(), strict=True))]), encoding="utf-8"
    )
    return path, y, p


def test_the_table_names_libraries_and_choices(run, saturated):
    path, y, p = saturated
    code, out, err = run("explain", path, "--bins", "10")
    assert (code, err) == (0, "")
    for library in ("torchmetrics", "netcal", "scikit-learn", "MAPIE", "uncertainty-calibration", "relplot"):
        assert library in out
    assert "TensorFlow Probability" in out
    assert "1 has a bin of its own" in out
    assert "220 rows" in out
    assert f"{cal.explain(y, p, n_bins=10).rows[0].value:.4f}" in out
    assert "note: TensorFlow Probability" in out


def test_json_is_what_python_says(run, saturated):
    path, y, p = saturated
    code, out, _ = run("explain", path, "--format", "json")
    content = json.loads(out)
    assert code == 0
    assert content.pop("calibrant") == cal.__version__
    assert content == cal.explain(y, p).to_dict()


def test_one_bin_is_wrong_usage(run, saturated):
    code, _, err = run("explain", saturated[0], "--bins", "1")
    assert code == 2
    assert "--bins: must be a whole number of at least 2" in err


def test_weights_are_wrong_input(run, tmp_path):
    path = tmp_path / "weighted.csv"
    path.write_text("y,p,w\n1,0.9,2\n0,0.2,1\n", encoding="utf-8")
    code, _, err = run("explain", path, "--weight", "w")
    assert code == 3
    assert "sample weights" in err
