"""The density error: values, the plain loop, laws, edges, limits and refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.errors.kde import STEP, KDEError
from oracles import kde, lenses
from strategies import events, rows
from toy import P, y

ORDERS = st.sampled_from([1, 1.5, 2])
MISSING = "no bandwidth: forecasts that came true are missing or all alike"


def close(value):
    return pytest.approx(value, rel=0, abs=1e-12, nan_ok=True)


# ---- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "value"), [(1, 0.1088458760), (2, 0.1498174292)])
def test_four_forecasts(order, value):
    result = KDEError(order=order)([1, 0, 1, 1], [0.6, 0.7, 0.8, 0.9])
    assert result.value == pytest.approx(value, rel=0, abs=1e-6)  # the reference shares samples between grid points


@pytest.mark.parametrize(("order", "value"), [(1, 0.05803781250190704), (2, 0.08008445404044476)])
def test_twelve_forecasts(order, value):
    assert KDEError(order=order)(y, P).value == close(value)


def test_the_bandwidth_is_that_of_what_came_true():
    result = KDEError()([1, 0, 0, 1], [0.4, 0.7, 0.9, 0.6])
    assert result.details["bandwidth"] == close(0.1 * 8**-0.2)


@pytest.mark.slow
@settings(max_examples=25)  # the loop takes a third of a second
@given(data=events(), order=ORDERS)
def test_events_agree_with_the_plain_loop(data, order):
    p, hits = data
    assert KDEError(order=order)(hits, p).value == close(kde.kde_error(p.tolist(), hits.tolist(), order))


@pytest.mark.slow
@settings(max_examples=15)
@given(data=rows(most=20), order=ORDERS)
def test_top_labels_agree_with_the_plain_loop(data, order):
    p, labels = data
    scores, hits = lenses.top_label(p.tolist(), labels.tolist())
    assert KDEError(order=order)(labels, p).value == close(kde.kde_error(scores, hits, order))


@pytest.mark.parametrize("narrow", [0.0015, 0.01])
def test_kernels_of_a_few_grid_points_agree_with_the_plain_loop(narrow):
    p = 0.9 + narrow * np.random.default_rng(3).random(50)
    hits = [1, 0] * 25
    result = KDEError()(hits, p)
    assert STEP < result.details["bandwidth"] < 10 * STEP
    assert result.value == pytest.approx(kde.kde_error(p.tolist(), hits), rel=0, abs=1e-9)  # rounding of many moments


@pytest.mark.slow
def test_many_samples_agree_with_a_direct_sum():
    rng = np.random.default_rng(4)
    p = rng.beta(3, 0.1, 4000)
    hits = rng.random(len(p)) < p
    result = KDEError()(hits.astype(int), p)
    h = result.details["bandwidth"]
    x = np.linspace(-0.6, 1.6, 2**14)
    x = x[(x > 0) & (x < 1)]
    both = np.zeros((2, len(x)))
    for scores in np.array_split(np.stack([p, hits]), 40, axis=1):
        for place in (scores[0], np.where(scores[0] < 0.5, -scores[0], 2 - scores[0])):
            kernel = np.maximum(1 - ((x - place[:, None]) / (3 * h)) ** 2, 0) ** 3
            both += [scores[1] @ kernel, kernel.sum(axis=0)]
    correct, every = both
    trapezoid = np.r_[0.5, np.ones(len(x) - 2), 0.5]
    direct = (trapezoid * np.abs(x * every - correct)).sum() / (trapezoid * every).sum()
    assert result.value == pytest.approx(direct, rel=0, abs=1e-6)  # densities up to 1e-6 count nothing


# ---- laws ------------------------------------------------------------------------------------------------------------


@given(data=events())
def test_the_error_is_at_most_one_and_grows_with_the_order(data):
    first, second = (KDEError(order=order)(*data[::-1]).value for order in (1, 2))
    assert math.isnan(first) or 0 <= first <= second + 1e-12 <= 1 + 2e-12


def test_the_order_is_printed_where_it_is_not_one():
    assert str(KDEError()(y, P)).endswith("(n=12, top label)")
    assert str(KDEError(order=2)(y, P)).endswith("(n=12, top label, order 2)")


# ---- edges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "p"),
    [
        ([1], [0.7]),
        ([0], [0.7]),
        ([0, 0, 0], [0.1, 0.5, 0.9]),
        ([1, 0, 1, 1], [0.7, 0.7, 0.7, 0.7]),
        ([1, 0, 1, 1, 1], [0.7, 0.2, 0.7, 0.7, 0.7]),
        ([1, 1, 0], [0.7, 0.7 + 1e-6, 0.1]),
    ],
    ids=["one hit", "one miss", "none true", "equal", "true ones equal", "finer than the grid"],
)
def test_without_a_bandwidth_the_error_is_nan_with_a_note(hits, p):
    result = KDEError()(hits, p)
    assert math.isnan(result.value)
    assert MISSING in result.notes


def test_a_question_without_a_bandwidth_makes_the_whole_nan():
    result = KDEError(lens=cal.Classwise())([0, 1, 1, 0], [[0.9, 0.1, 0], [0.4, 0.6, 0], [0.3, 0.7, 0], [0.6, 0.4, 0]])
    assert [math.isnan(value) for value in result.values] == [False, False, True]
    assert math.isnan(result.value)
    assert MISSING in result.notes


def test_when_all_come_true_the_gap_is_doubt():
    p = [0.75, 0.8, 0.85]
    assert KDEError()([1, 1, 1], p).value == pytest.approx(0.2, rel=0, abs=1e-6)  # the kernel is symmetric; grid sums


def test_forecasts_of_zero_and_one_lie_on_their_mirror():
    hits, p = [0, 1, 1, 0], [0.0, 1.0, 1.0, 1.0]
    assert math.isnan(KDEError()(hits, p).value)  # what came true was forecast alike
    hits, p = [1, 1, 1, 0], [0.0, 1.0, 1.0, 1.0]
    assert KDEError()(hits, p).value == close(kde.kde_error(p, hits))


def test_a_calibrated_sample_has_a_small_error_and_a_shifted_one_the_shift():
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    hits = (rng.random(len(p)) < p).astype(int)
    assert KDEError()(hits, p).value < 0.01  # 0.004 and 0.0007 its deviation over seeds: eight away
    shifted = 0.2 + 0.6 * p
    hits = (rng.random(len(p)) < shifted + 0.1).astype(int)
    assert KDEError()(hits, shifted).value == pytest.approx(0.1, abs=0.01)  # six deviations of the mean outcome


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [0, 0.5, -1, True, math.inf, math.nan, "2", None], ids=repr)
def test_an_order_is_finite_and_at_least_one(order):
    with pytest.raises(cal.CalibrationInputError, match="order: must be a finite order of at least 1, got "):
        KDEError(order=order)
