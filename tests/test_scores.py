"""Scores against plain loops: squares in whole units, and what changes no bit."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant import kernels
from calibrant.kernels import numpy as plain


def brier(outputs, truth):
    """Squares rounded to whole units of 2^-52 and added as integers."""
    units = 0
    for output, mass in zip(outputs, truth, strict=True):
        gap = float(output) - float(mass)
        units += round(Fraction(gap * gap) * 2**52)
    return float(Fraction(units, 2**52))


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 40), dtype=st.sampled_from([np.float16, np.float32, float]))
def test_brier_scores_are_whole_units(seed, k, dtype):
    rng = np.random.default_rng(seed)
    p, soft = rng.dirichlet(np.full(k, 0.3), (2, 5))
    p = p.astype(dtype)
    labels = rng.integers(0, k, 5)
    for y, truth in ((labels, np.eye(k)[labels]), (soft, soft)):
        predictions = cal.Predictions.from_probs(y, p)
        found = cal.brier_score(cal.Full()(predictions))[:, 0]
        assert found.tolist() == [brier(*pair) for pair in zip(p, truth, strict=True)]
        each = cal.brier_score(cal.Classwise()(predictions))
        assert each.tolist() == [
            [brier([a], [b]) for a, b in zip(*pair, strict=True)] for pair in zip(p, truth, strict=True)
        ]


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 40))
def test_the_order_of_classes_changes_no_bit_of_the_brier_score(seed, k):
    rng = np.random.default_rng(seed)
    p, soft = rng.dirichlet(np.full(k, 0.3), (2, 9))
    order = rng.permutation(k)
    labels = rng.integers(0, k, 9)
    assert cal.BRIER(np.argsort(order)[labels], p[:, order]).value == cal.BRIER(labels, p).value
    assert cal.BRIER(soft[:, order], p[:, order]).value == cal.BRIER(soft, p).value


def test_brier_scores_of_blocks_are_those_of_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    p, labels = rng.dirichlet(np.ones(9), 50)[:, None, :], rng.integers(-1, 9, 50)
    expected = kernels.brier(p, labels)
    monkeypatch.setattr(plain, "BLOCK", 20)
    assert np.array_equal(kernels.brier(p, labels), expected)
