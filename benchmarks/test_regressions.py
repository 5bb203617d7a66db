"""Times of the main calls, kept and compared by pytest-benchmark (pip install pytest-benchmark).

    PYTHONPATH=benchmarks pytest benchmarks/test_regressions.py -p no:xdist --benchmark-autosave
    PYTHONPATH=benchmarks pytest benchmarks/test_regressions.py -p no:xdist --benchmark-compare-fail=min:20%

The first command keeps the times of this machine; the second, after a change, fails where a call became slower.
"""

import numpy as np
import pytest
from matrix import forecasts

import calibrant as cal

pytest.importorskip("pytest_benchmark")
MATRIX = forecasts(5_000, 1_000)
LOGITS = np.log(MATRIX[1] + np.float32(1e-7))
FORECASTS = np.random.default_rng(0).random(1_000_000, dtype=np.float32)
OUTCOMES = (np.random.default_rng(1).random(len(FORECASTS)) < FORECASTS).astype(np.int64)


@pytest.mark.parametrize("name", ["ECE", "SCE", "ACE", "FULL_ECE", "TOP5_ECE", "BRIER", "LOG_LOSS"])
def test_of_classes(benchmark, name):
    benchmark(cal.RECIPES[name], *MATRIX)


@pytest.mark.parametrize("name", ["ECE", "BRIER", "LOG_LOSS"])
def test_of_logits(benchmark, name):
    benchmark(lambda: cal.RECIPES[name](cal.Predictions.from_logits(MATRIX[0], LOGITS, copy=False)))


@pytest.mark.parametrize("name", ["ECE", "ADAPTIVE_ECE", "ECE_SWEEP", "BRIER", "LOG_LOSS", "SLOPE", "AUROC"])
def test_of_an_event(benchmark, name):
    benchmark(cal.RECIPES[name], OUTCOMES, FORECASTS)


def test_temperature(benchmark):
    benchmark(lambda: cal.TemperatureScaling().fit(LOGITS, MATRIX[0]))


def test_interval(benchmark):
    benchmark(lambda: cal.ECE(OUTCOMES[:2_000], FORECASTS[:2_000], interval=cal.Confidence()))
