"""Kernels: large matrices in little memory, and the same bits however they are cut up."""

import tracemalloc

import numpy as np
import pytest

import calibrant as cal
from calibrant import kernels


def large(n=6000, k=1000, dtype=np.float32):
    rng = np.random.default_rng(0)
    p = rng.random((n, k), dtype=np.float32) ** 40
    p /= p.sum(axis=1, keepdims=True)
    y = p.argmax(axis=1)
    y[::4] = rng.integers(0, k, len(y[::4]))
    return p.astype(dtype), y


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ECE", "SCE", "CWECE", "MCS", "ECE_SWEEP", "ACCURACY", "BRIER", "LOG_LOSS"])
def test_no_temporary_is_as_large_as_the_matrix(name):
    p, y = large()
    metric = cal.RECIPES[name]
    metric(y[:10], p[:10])  # imports and caches
    tracemalloc.start()
    metric(y, p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < p.nbytes / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ECE", "SCE"])
def test_logits_are_never_copied_whole(name):
    p, y = large(n=12_000)
    logits = np.log(p + 1e-7)
    predictions = cal.Predictions.from_logits(y, logits)
    tracemalloc.start()
    cal.RECIPES[name](predictions)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * logits.nbytes  # the float64 softmax of all rows would be twice the float32 logits


@pytest.mark.slow
@pytest.mark.parametrize("block", [7, 1000, 1 << 22])
def test_the_size_of_blocks_changes_no_bit(monkeypatch, block):
    p, y = large(n=300, k=40)
    expected = {name: recipe(y, p).value for name, recipe in cal.RECIPES.items()}
    monkeypatch.setattr("calibrant.kernels.blocks.BLOCK", block)
    monkeypatch.setattr("calibrant.binning.fixed.STREAM", block)
    monkeypatch.setattr("calibrant.errors.asking.STREAM", block)
    assert {name: recipe(y, p).value for name, recipe in cal.RECIPES.items()} == expected


def test_softmax_survives_logits_of_any_size():
    logits = np.array([[1000.0, 0.0, -1000.0], [-1e5, -1e5, -1e5], [0.0, 700.0, 710.0]])
    p = kernels.softmax(logits, *kernels.normalisers(logits))
    assert np.allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert p[1].tolist() == pytest.approx([1 / 3] * 3)


def test_logits_that_round_to_one_probability_keep_their_order():
    logits = np.array([[0.0, 1e-17, 0.0], [40.0, 40.0 + 1e-14, -1.0]])
    predictions = cal.Predictions.from_logits([1, 1], logits)
    assert predictions.predicted.tolist() == [1, 1]


@pytest.mark.parametrize("k", [1, 2, 16, 17, 20])
def test_leaders_are_the_largest_and_ties_go_to_the_lowest_class(k):
    scores = np.random.default_rng(0).integers(0, 5, (50, 20)).astype(float)
    expected = np.array([sorted(range(20), key=lambda c, row=row: (-row[c], c))[:k] for row in scores])
    assert np.array_equal(kernels.leaders(scores, k), expected)
