"""The smooth error: values, the plain loop, a peer, laws, edges, limits and refusals."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.errors.smooth import SmoothError, _fixed_point
from oracles import lenses, smooth
from strategies import events, rows
from toy import P, y

seeds = st.integers(0, 2**32 - 1)


def close(value):
    return pytest.approx(value, rel=0, abs=1e-12, nan_ok=True)


def nearly(value):
    return pytest.approx(value, rel=0, abs=2e-6)  # both integrate |residual| by trapezoids, which miss its corners


# ---- values ----------------------------------------------------------------------------------------------------------


def test_two_residuals_of_one_sign_are_their_mean_at_any_bandwidth():
    for bandwidth in (None, 0.001, 0.1, 3):
        assert SmoothError(bandwidth=bandwidth)([1, 1], [0.6, 0.9]).value == close(0.25)


@pytest.mark.parametrize("sigma", [0.01, 0.03, 0.05])
def test_two_opposite_residuals_cancel_where_their_kernels_meet(sigma):
    value = SmoothError(bandwidth=sigma)([1, 0, 1, 0], [0.4, 0.4, 0.6, 0.6]).value
    # residuals .05 at .4 and -.05 at .6, over n: the overlap of two normal densities, far from both ends
    assert value == pytest.approx(0.1 * math.erf(0.1 / (sigma * math.sqrt(2))), rel=0, abs=1e-6)  # trapezoids


@settings(max_examples=25)  # the loop takes a tenth of a second
@given(data=events(most=15), sigma=st.sampled_from([0.03, 0.1, 0.4, 2.0]))
def test_events_agree_with_the_plain_loop(data, sigma):
    p, labels = data
    assert SmoothError(bandwidth=sigma)(labels, p).value == nearly(
        smooth.smooth_error(p.tolist(), labels.tolist(), sigma)
    )


@settings(max_examples=25)
@given(data=rows(most=15), sigma=st.sampled_from([0.03, 0.1, 0.4]))
def test_top_labels_agree_with_the_plain_loop(data, sigma):
    p, labels = data
    scores, hits = lenses.top_label(p.tolist(), labels.tolist())
    assert SmoothError(bandwidth=sigma)(labels, p).value == nearly(smooth.smooth_error(scores, hits, sigma))


@given(data=events())
def test_the_bandwidth_is_the_error_it_shows(data):
    result = SmoothError()(*data[::-1])
    assert result.details["bandwidth"] == pytest.approx(
        result.value, rel=0, abs=1e-10
    )  # found to 1e-12, slopes below 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_bandwidth_is_the_one_that_halving_finds(seed):
    rng = np.random.default_rng(seed)
    p, labels = rng.random(12), rng.integers(0, 2, 12)
    halved = smooth.fixed_point(p.tolist(), labels.tolist(), halvings=20, per_sigma=100)
    assert SmoothError()(labels, p).value == nearly(halved)


@pytest.mark.parametrize("jump", [0.0, 1e-9, 1e-3])
@pytest.mark.parametrize("root", [0.013, 0.1, 0.25])
def test_the_search_for_a_bandwidth_ends_even_at_a_jump(monkeypatch, root, jump):
    def falling(cosines, sigma):  # as where the number of points of the integral changes
        return root + (root - sigma) / 3 + (jump if sigma < root else -jump)

    monkeypatch.setattr("calibrant.errors.smooth._smoothed", falling)
    assert _fixed_point(np.array([root / 2])) == pytest.approx(root, rel=0, abs=1e-12)


def test_the_search_for_a_bandwidth_takes_few_steps(monkeypatch):
    steps = []

    def convex(cosines, sigma):  # one end of false position would stay where it is for long
        steps.append(sigma)
        return 0.5 * math.exp(-40 * sigma) + 0.001

    monkeypatch.setattr("calibrant.errors.smooth._smoothed", convex)
    found = _fixed_point(np.array([0.001]))
    assert convex(None, found) == pytest.approx(found, rel=0, abs=2e-12)
    assert len(steps) <= 20


@pytest.mark.slow
def test_twelve_forecasts():
    scores, hits = lenses.top_label(P.tolist(), y.tolist())
    assert SmoothError()(y, P).value == nearly(smooth.fixed_point(scores, hits))


@pytest.mark.parametrize("seed", range(8))
def test_relplot_agrees_within_its_own_grain(seed):
    # It halves ten times (2^-10), sums 200 points with whole weight at both ends and cuts its kernel at half the unit
    # interval. It also counts a sample on 0 or 1 once where reflection counts it twice: these stay off the ends.
    relplot = pytest.importorskip("relplot")
    rng = np.random.default_rng(seed)
    p = 0.05 + 0.9 * rng.beta(*[(1, 1), (3, 0.5), (0.5, 0.5), (2, 2)][seed % 4], size=2000)
    labels = (rng.random(len(p)) < p ** (1, 1.5)[seed % 2]).astype(int)
    assert SmoothError()(labels, p).value == pytest.approx(relplot.smECE(p, labels), rel=0, abs=1e-3)


@pytest.mark.parametrize("sigma", [0.02, 0.05, 0.1])
def test_relplot_on_a_finer_mesh_agrees_at_a_fixed_bandwidth(sigma, monkeypatch):
    relplot = pytest.importorskip("relplot")
    monkeypatch.setattr(relplot.config, "smECE_mesh_pts", 20_001)
    rng = np.random.default_rng(0)
    p = 0.05 + 0.9 * rng.random(500)
    labels = (rng.random(len(p)) < p).astype(int)
    theirs = relplot.metrics.smECE_sigma(p, labels, sigma)
    # it shares samples between 1000 points, a twentieth of the narrowest kernel: a relative 1e-3 of 0.05
    assert SmoothError(bandwidth=sigma)(labels, p).value == pytest.approx(theirs, rel=0, abs=5e-5)


# ---- laws ------------------------------------------------------------------------------------------------------------


@given(data=events())
def test_the_error_falls_with_the_bandwidth_from_mean_size_to_size_of_mean(data):
    p, labels = data
    wide = [SmoothError(bandwidth=sigma)(labels, p).value for sigma in (0.001, 0.01, 0.1, 1.0, 10.0)]
    bounds = [np.abs(labels - p).mean(), *wide, abs((labels - p).mean())]
    assert all(right <= left + 1e-5 for left, right in pairwise(bounds))  # grain at 0.001
    assert wide[-1] == close(bounds[-1])


@given(data=events(), seed=seeds)
def test_the_error_is_continuous_in_the_forecasts(data, seed):
    p, labels = data
    moved = np.clip(p + 1e-3 * np.random.default_rng(seed).uniform(-1, 1, len(p)), 0, 1)
    assert abs(SmoothError()(labels, moved).value - SmoothError()(labels, p).value) < 3e-3


@given(data=events())
def test_the_other_side_of_the_event_has_the_same_error(data):
    p, labels = data
    assert SmoothError()(1 - labels, 1 - p).value == pytest.approx(SmoothError()(labels, p).value, rel=0, abs=1e-9)


def test_a_given_bandwidth_is_printed_and_kept():
    assert str(SmoothError()(y, P)).endswith("(n=12, top label)")
    result = SmoothError(bandwidth=0.05)(y, P)
    assert str(result).endswith("(n=12, top label, bandwidth 0.05)")
    assert result.details == {"bandwidth": 0.05}


# ---- edges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("label", "p"), [(1, 0.7), (0, 0.7), (1, 0.0), (0, 1.0), (1, 1.0), (0, 0.0), (1, 1 - 1e-9)])
def test_one_sample_is_off_by_its_residual(label, p):
    assert SmoothError()([label], [p]).value == close(abs(label - p))


def test_equal_forecasts_compare_forecast_and_rate():
    for bandwidth in (None, 0.01):
        assert SmoothError(bandwidth=bandwidth)([1, 0, 1, 1], [0.7] * 4).value == close(0.05)


def test_all_true_and_none_true_are_doubt_and_belief():
    p = [0.2, 0.5, 0.9]
    assert SmoothError()([1, 1, 1], p).value == close(1 - np.mean(p))
    assert SmoothError()([0, 0, 0], p).value == close(np.mean(p))


def test_forecasts_of_zero_and_one():
    assert SmoothError()([0, 1, 1], [0.0, 1.0, 1.0]).value == 0
    result = SmoothError()([0, 1, 0, 1], [0.0, 0.0, 1.0, 1.0])  # residuals 1/4 at 0 and -1/4 at 1
    assert result.value == nearly(smooth.fixed_point([0, 0, 1, 1], [0, 1, 0, 1]))
    assert SmoothError(bandwidth=0.05)([0, 1, 0, 1], [0.0, 0.0, 1.0, 1.0]).value == close(0.5)


def test_no_residual_is_no_error():
    result = SmoothError()([[0.7, 0.3], [0.2, 0.8]], [[0.7, 0.3], [0.2, 0.8]])
    assert result.value == 0
    assert result.details == {"bandwidth": 0}


def test_soft_labels_count_as_they_are():
    p = np.array([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4]])
    soft = np.array([[0.5, 0.5], [0.3, 0.7], [0.9, 0.1]])
    found = SmoothError(bandwidth=0.1)(soft, p).value
    assert found == nearly(smooth.smooth_error([0.7, 0.8, 0.6], [0.5, 0.7, 0.9], 0.1))


def test_a_calibrated_sample_has_a_small_error_and_a_shifted_one_the_shift():
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    labels = (rng.random(len(p)) < p).astype(int)
    assert SmoothError()(labels, p).value < 0.01  # 0.0067 and 0.0005 its deviation over seeds: six away
    shifted = 0.2 + 0.6 * p
    labels = (rng.random(len(p)) < shifted + 0.1).astype(int)
    assert SmoothError()(labels, shifted).value == pytest.approx(0.1, abs=0.01)  # six deviations of the mean outcome


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", [0, 0.0009, -1, True, math.inf, math.nan, "0.1"], ids=repr)
def test_a_bandwidth_is_finite_and_no_finer_than_the_grid_bears(bandwidth):
    message = r"bandwidth: must be None or a finite number of at least 0\.001, got "
    with pytest.raises(cal.CalibrationInputError, match=message):
        SmoothError(bandwidth=bandwidth)
