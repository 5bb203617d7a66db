"""The test of the sweep's premise: the closest rising frequencies, its level and power, the ROC curve, the warning."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.diagnostics import monotonicity_test
from calibrant.inference.monotonicity import rising_means
from oracles import isotonic


def drawn(curve, n, seed):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return cal.Predictions.from_probs(rng.random(n) < curve(p), p)


def flat(p):
    return 0.7 + 0 * p


def wave(p):
    return 0.5 - 0.3 * np.sin(7 * p)


@given(values=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=9))
def test_rising_means_are_pooled_neighbours(values):
    heights, weights = (np.array(part, float) for part in zip(*values, strict=True))
    pooled = isotonic.pooled(heights.tolist(), weights.tolist())
    assert rising_means(heights[None], weights)[0] == pytest.approx(pooled, abs=1e-12)


def test_the_statistic_is_the_distance_from_rising_frequencies_by_hand():
    p = np.repeat([0.2, 0.5, 0.8], 100)
    happened = np.concatenate([np.arange(100) < count for count in (30, 60, 50)])
    test = monotonicity_test(cal.Predictions.from_probs(happened, p), n_bins=3, warn=False)
    assert test.frequency == pytest.approx([0.3, 0.6, 0.5])
    assert test.rising == pytest.approx([0.3, 0.55, 0.55])
    share = 55.5 / 101
    assert test.statistic == pytest.approx(2 * 100 * 0.05**2 / (share * (1 - share)))
    assert 0.1 < test.p_value < 0.6
    assert test.rises


def test_the_gap_of_the_roc_curve_is_that_to_its_convex_hull_by_hand():
    p = np.repeat([0.2, 0.5, 0.8], 100)
    happened = np.concatenate([np.arange(100) < count for count in (30, 60, 50)])
    test = monotonicity_test(cal.Predictions.from_probs(happened, p), n_bins=3, warn=False)
    corners = [(0, 0), (50, 50), (90, 110), (160, 140)]  # misses and hits from the highest forecast on
    hull = [(0, 0), (90, 110), (160, 140)]
    areas = [
        sum((right[0] - left[0]) * (right[1] + left[1]) / 2 for left, right in itertools.pairwise(points))
        for points in (corners, hull)
    ]
    assert test.roc_gap == pytest.approx((areas[1] - areas[0]) / (160 * 140))
    assert monotonicity_test(drawn(lambda p: p, 5000, 0), n_bins=5).roc_gap == pytest.approx(0.0, abs=1e-12)


def test_a_curve_without_slope_is_accused_no_more_often_than_the_level_says():
    """Seeds 0 to 299; a level of 0.05 would be exceeded by 0.09 with a probability below 0.002."""
    ps = np.array([monotonicity_test(drawn(flat, 400, seed), draws=199, warn=False).p_value for seed in range(300)])
    assert (ps < 0.05).mean() < 0.09
    assert (ps < 0.3).mean() > 0.2  # and it is no test that never speaks


def test_a_wave_is_noticed():
    ps = [monotonicity_test(drawn(wave, 600, seed), draws=199, warn=False).p_value for seed in range(20)]
    assert sum(p < 0.05 for p in ps) >= 19


def test_a_failed_premise_is_warned_of_and_a_kept_one_is_not():
    with pytest.warns(cal.CalibrationWarning, match="a monotonic sweep may choose too few bins; use ADAPTIVE_ECE"):
        test = monotonicity_test(drawn(wave, 1000, 0))
    assert str(test).endswith("the curve does not rise everywhere")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(monotonicity_test(drawn(lambda p: p, 1000, 0))).endswith("compatible with a curve that rises")


def test_other_questions_are_asked_by_their_lens():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(3), 300)
    predictions = cal.Predictions.from_probs(rng.integers(0, 3, 300), rows)
    assert monotonicity_test(predictions, lens=cal.OneClass(1), warn=False).question == "class 1"
    with pytest.raises(cal.CalibrationInputError, match="must ask one question"):
        monotonicity_test(predictions, lens=cal.Classwise())
    few = monotonicity_test(predictions[:45], warn=False)
    assert len(few.sizes) == 2
