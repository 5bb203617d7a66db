"""Recalibration of events and of classes one against all: optima, loops, edges and laws."""

import json
import math
import time
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.exceptions import CalibrationWarning
from calibrant.recalibrate.bbq import BBQ, binnings
from calibrant.recalibrate.beta import BetaCalibration, beta_curve, logarithms
from calibrant.recalibrate.fitting.lessons import ModelScores, as_lesson
from calibrant.recalibrate.fitting.one_vs_all import Event
from calibrant.recalibrate.histogram import (
    CELLS,
    HistogramBinning,
    cells,
    edges_of,
    even_edges,
    left_out_loss,
    mass_edges,
)
from calibrant.recalibrate.isotonic_calibration import IsotonicCalibration, broken_line, fit_isotonic
from calibrant.recalibrate.platt import PlattScaling, fit_platt
from oracles import recalibrate_events as oracle
from strategies import events, rows
from toy import P, Z, y

pytestmark = pytest.mark.slow

METHODS = [PlattScaling, BetaCalibration, IsotonicCalibration, HistogramBinning, BBQ]
MONOTONE = [BetaCalibration, IsotonicCalibration]
PLAIN_ISOTONIC = partial(IsotonicCalibration, smooth=False)
PLAIN_HISTOGRAM = partial(HistogramBinning, smooth=False)


def plain_left_out_loss(lesson, n_bins):
    return left_out_loss(lesson, lambda event: even_edges(n_bins), smooth=False)


seeds = st.integers(0, 2**32 - 1)
few_classes = st.integers(2, 4)


def close(value, within=1e-12):
    return pytest.approx(value, rel=0, abs=within)


def fitted(method, scores, labels, weight=None, **options):
    """A fit whose warnings of bounds are none of the test's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return method(**options).fit(scores, labels, weight)


def on_probabilities(method, scores, labels, weight=None, **options):
    return fitted(method, scores, labels, weight, input="probabilities", **options)


def drawn(n, seed, slope=1.0, intercept=0.0):
    """Log-odds N(0, 2^2) and outcomes of sigmoid(slope z + intercept)."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    return z, (rng.random(n) < 1 / (1 + np.exp(-slope * z - intercept))).astype(int)


def slopes(features, targets, weight, *at):
    return oracle.logistic_slopes(np.asarray(features).tolist(), list(targets), list(weight), at)


# One against all


@given(data=rows(classes=few_classes, most=20))
def test_rows_are_divided_by_their_sums_and_rows_of_zeros_stay(data):
    p, labels = data
    fit = on_probabilities(PLAIN_ISOTONIC, p, labels)
    curves = [
        oracle.isotonic_map(p[:, k].tolist(), (labels == k).astype(int).tolist()) for k in range(p.shape[1])
    ]  # fmt: skip
    points = np.random.default_rng(0).dirichlet(np.ones(p.shape[1]), 20)
    for given_rows in (p, points):
        expected = oracle.one_against_all(given_rows.tolist(), curves)
        assert np.allclose(fit.predict_proba(given_rows), expected, rtol=0, atol=1e-12)


def test_a_row_of_zeros_is_the_uncalibrated_row():
    p = np.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]])
    fit = on_probabilities(PLAIN_ISOTONIC, p, [1, 2, 0, 0])
    strange = [[0.6, 0.1, 0.3]]  # class 0 falls: its curve is 1/2 everywhere
    assert fit.predict_proba(strange).sum() == close(1)
    fit.values_ = tuple(np.zeros_like(values) for values in fit.values_)
    assert fit.predict_proba(strange).tolist() == strange
    single = np.array(strange, np.float32)
    assert fit.predict_proba(single)[0].tolist() == close((single[0] / single[0].astype(float).sum()).tolist())


@pytest.mark.parametrize("method", [PlattScaling, BetaCalibration, IsotonicCalibration])
def test_two_columns_are_the_event_of_the_second(method):
    z, outcomes = drawn(400, seed=3, slope=0.6, intercept=0.5)
    event = fitted(method, z, outcomes).predict_proba(z)
    columns = fitted(method, np.column_stack([np.zeros_like(z), z]), outcomes)
    assert np.allclose(columns.predict_proba(np.column_stack([z * 0, z]))[:, 1], event, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", [HistogramBinning, BBQ])
def test_two_columns_are_nearly_the_event_where_bins_have_sides(method):
    z, outcomes = drawn(400, seed=3, slope=0.6, intercept=0.5)
    event = fitted(method, z, outcomes).predict_proba(z)
    columns = fitted(method, np.column_stack([z * 0, z]), outcomes).predict_proba(np.column_stack([z * 0, z]))
    assert np.abs(columns[:, 1] - event).max() < 0.02  # a mirrored bin may hold one row more or less


@pytest.mark.parametrize("method", METHODS)
@given(data=rows(classes=few_classes, most=25), seed=seeds)
@settings(max_examples=25)
def test_rows_sum_to_one_and_no_order_or_repetition_matters(method, data, seed):
    p, labels = data
    rng = np.random.default_rng(seed)
    times = rng.integers(0, 4, len(labels))
    times[0] = 1
    points = rng.dirichlet(np.ones(p.shape[1]), 10)
    probabilities = on_probabilities(method, p, labels, times).predict_proba(points)
    assert np.allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert probabilities.min() >= 0
    again = on_probabilities(method, np.repeat(p, times, axis=0), np.repeat(labels, times)).predict_proba(points)
    order = rng.permutation(len(labels))
    shuffled = on_probabilities(method, p[order], labels[order], times[order]).predict_proba(points)
    # a search that could go on for ever is left where rounding has it
    within = 1e-9 if method not in (PlattScaling, BetaCalibration) else 1e-6
    assert np.allclose(again, probabilities, rtol=0, atol=within)
    assert np.allclose(shuffled, probabilities, rtol=0, atol=within)


@pytest.mark.parametrize("method", METHODS)
def test_whole_weights_are_repetition_for_ordinary_rows(method):
    z, outcomes = drawn(300, seed=8, slope=0.7)
    times = np.random.default_rng(8).integers(0, 4, 300)
    points = np.linspace(-6, 6, 50)
    weighted = method().fit(z, outcomes, times).predict_proba(points)
    repeated = method().fit(np.repeat(z, times), np.repeat(outcomes, times)).predict_proba(points)
    assert np.allclose(weighted, repeated, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_fractional_weights_work_in_any_order(method):
    z, outcomes = drawn(300, seed=9)
    z = z.round(1)
    weight = np.random.default_rng(9).random(300).round(1) + 0.1
    order = np.random.default_rng(10).permutation(300)
    points = np.linspace(-6, 6, 50)
    probabilities = method().fit(z, outcomes, weight).predict_proba(points)
    shuffled = method().fit(z[order], outcomes[order], weight[order]).predict_proba(points)
    assert np.allclose(probabilities, shuffled, rtol=0, atol=1e-9)
    assert not np.allclose(probabilities, method().fit(z, outcomes).predict_proba(points), atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_next_to_no_weight_are_not_there(method):
    z, outcomes = drawn(50, seed=2)
    weight = np.ones(52)
    weight[50:] = [0.0, 1e-200]
    fit = method().fit(np.append(z, [99.0, -99.0]), np.append(outcomes, [0, 1]), weight)
    points = np.linspace(-5, 5, 11)
    assert np.array_equal(fit.predict_proba(points), method().fit(z, outcomes).predict_proba(points))


@pytest.mark.parametrize("method", METHODS)
def test_logits_and_their_probabilities_are_the_same_scores(method):
    fit = fitted(method, Z, y)
    p = ModelScores(Z, "logits").probabilities
    other = on_probabilities(method, p, y)
    # where outcomes are parted the search is left where rounding has it
    assert np.allclose(fit.predict_proba(Z), other.predict_proba(p), rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_float32_scores_are_computed_in_float64(method):
    z, outcomes = drawn(200, seed=4)
    single = z.astype(np.float32)
    probabilities = method().fit(single, outcomes).predict_proba(single)
    assert probabilities.dtype == np.float64
    assert np.array_equal(probabilities, method().fit(single.astype(np.float64), outcomes).predict_proba(single))


@pytest.mark.parametrize("method", METHODS)
def test_a_method_and_its_json_rebuild_each_other(method, monkeypatch):
    monkeypatch.setitem(cal.recalibrate.METHODS, method.__name__, method)
    for scores, labels in ((Z, y), drawn(60, seed=1)):
        fit = fitted(method, scores, labels)
        again = cal.recalibrate.from_json(fit.to_json())
        assert np.array_equal(again.predict_proba(scores), fit.predict_proba(scores))


@pytest.mark.parametrize("method", MONOTONE)
@given(data=events())
def test_methods_that_keep_the_order_never_fall(method, data):
    p, outcomes = data
    probabilities = on_probabilities(method, p, outcomes).predict_proba(np.linspace(0, 1, 200))
    assert np.diff(probabilities).min() >= -1e-15
    assert 0 <= probabilities.min() <= probabilities.max() <= 1


@pytest.mark.parametrize("method", METHODS)
def test_what_only_tells_classes_apart_is_said_by_name(method):
    fit = fitted(method, Z, np.array(["cat", "dog", "owl"])[y], classes=["cat", "dog", "owl"])
    assert fit.predict(Z[:1]).tolist() == ["cat"]
    assert fit.certificate_.n == 12
    assert fit.certificate_.log_loss_after < fit.certificate_.log_loss_before


# Edges that all methods share


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        ([0.3], [1]),
        ([[0.2, 0.3, 0.5]], [1]),
        ([0.25] * 4, [0, 1, 0, 0]),
        ([0.0, 1.0, 0.0, 1.0, 0.5, 0.5], [0, 1, 1, 0, 1, 0]),
        ([0.0, 1.0, 0.0, 1.0], [0, 1, 0, 1]),
        ([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0, 1, 1, 0]),
        ([1e-310, 2e-310, 3e-310, 4e-310], [0, 1, 0, 1]),
        (1 - np.array([1, 2, 3, 4]) * 2.0**-53, [0, 1, 0, 1]),
        ([0.2, 0.4, 0.6], [1, 1, 1]),
    ],
)
def test_edges_give_probabilities_and_no_numerical_warning(method, scores, labels):
    fit = on_probabilities(method, scores, labels)
    points = np.array([0.0, 1e-310, 1e-20, 0.5, 1.0]) if np.ndim(scores) == 1 else np.array(scores)
    probabilities = fit.predict_proba(points)
    assert np.isfinite(probabilities).all()
    assert 0 <= probabilities.min() <= probabilities.max() <= 1


@pytest.mark.parametrize("method", METHODS)
def test_the_largest_logits_overflow_nothing(method):
    scores = np.array([1e308, -1e308, 1e308, -1e308, 3.0, 4.0])
    probabilities = fitted(method, scores, [0, 1, 1, 0, 1, 0]).predict_proba(scores)
    assert np.isfinite(probabilities).all()
    narrow = fitted(method, np.linspace(-800, -740, 20), np.arange(20) % 2)
    assert np.isfinite(narrow.predict_proba([-1e308, -800.0, 0.0, 800.0, 1e308])).all()


@pytest.mark.parametrize("method", METHODS)
def test_equal_scores_get_the_base_rate(method):
    probabilities = fitted(method, [1.5] * 4, [0, 1, 0, 0]).predict_proba([1.5])
    expected = 2 / 6 if method is BBQ else 0.25  # the prior: one of two
    assert probabilities[0] == close(expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wrong", ["logit", None, 1])
def test_what_scores_are_must_be_said(method, wrong):
    with pytest.raises(cal.CalibrationInputError, match='input: must be "logits" or "probabilities"'):
        method(input=wrong)


# Platt scaling


def test_platt_scaling_of_two_scores_worked_by_hand():
    fit = PlattScaling().fit([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0, 0, 1, 0, 1, 1])
    assert fit.predict_proba([0.0, 1.0]).tolist() == close([1 / 3, 2 / 3])
    assert fit.intercept_ == close(-math.log(2))
    assert fit.slope_ == close(2 * math.log(2))
    assert isinstance(fit.slope_, float)
    assert fit.certificate_.converged
    assert fit.certificate_.gradient_norm < 1e-12
    assert fit.certificate_.log_loss_after == close(-(2 * math.log(2 / 3) + math.log(1 / 3)) / 3)


def test_smoothed_targets_worked_by_hand():
    fit = PlattScaling(smooth_targets=True).fit([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0, 0, 1, 0, 1, 1])
    assert fit.predict_proba([0.0, 1.0]).tolist() == close([0.4, 0.6])  # of 0.2, 0.2, 0.8 and 0.2, 0.8, 0.8
    certain = PlattScaling(smooth_targets=True).fit([-1.0, -1.0, 1.0], [0, 0, 1])
    assert certain.predict_proba([-1.0, 1.0]).tolist() == close([1 / 4, 2 / 3])  # 1 / (2 + 2), (1 + 1) / (1 + 2)
    assert certain.certificate_.converged


@given(data=events(), seed=seeds, smooth=st.booleans())
def test_the_derivatives_vanish_at_the_slope_and_intercept(data, seed, smooth):
    p, outcomes = data
    weight = np.random.default_rng(seed).integers(1, 4, len(p)).astype(float)
    z = ModelScores(p, "probabilities").log_odds
    fit = fitted(PlattScaling, z, outcomes, weight, smooth_targets=smooth)
    if not fit.certificate_.converged:
        return  # another test
    happened, failed = weight @ outcomes, weight @ (1 - outcomes)
    targets = np.where(outcomes == 1, (happened + 1) / (happened + 2), 1 / (failed + 2)) if smooth else outcomes
    assert slopes([z], targets, weight, fit.slope_, fit.intercept_) == close([0, 0], 1e-9 * max(1, np.abs(z).max()))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e200])
@pytest.mark.parametrize("shift", [0.0, 3.0, -1000.0])
def test_no_unit_of_scores_is_too_large_or_too_small(scale, shift):
    z, outcomes = drawn(500, seed=5, slope=0.5, intercept=1.0)
    plain = PlattScaling().fit(z, outcomes)
    scaled = PlattScaling().fit((z + shift) * scale, outcomes)
    assert scaled.certificate_.converged
    assert scaled.slope_ * scale == pytest.approx(plain.slope_, rel=1e-9)
    assert scaled.predict_proba((z + shift) * scale).tolist() == close(plain.predict_proba(z).tolist(), 1e-9)


def test_a_negative_slope_reverses_the_order():
    z, outcomes = drawn(2000, seed=6, slope=-0.8, intercept=0.3)
    fit = PlattScaling().fit(z, outcomes)
    assert -1 < fit.slope_ < -0.6
    assert np.diff(fit.predict_proba([-1.0, 0.0, 1.0])).max() < 0


@pytest.mark.parametrize(
    ("z", "labels", "sign"),
    [
        ([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], 1),
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0], -1),
        ([1.0, 2.0, 2.0, 4.0], [0, 0, 1, 1], 1),
        ([-1.0, 0.0, 1e-9, 1.0], [0, 0, 1, 1], 1),
        ([-1.0, 0.0, 1e-13, 1.0], [0, 0, 1, 1], 1),
        (np.linspace(-1e6, 1e6, 101), (np.linspace(-1, 1, 101) > 0).astype(int), 1),
    ],
)
def test_outcomes_parted_by_a_threshold_end_at_a_bound_that_is_said(z, labels, sign):
    with pytest.warns(CalibrationWarning, match="PlattScaling: a threshold parts the outcomes.*smooth_targets=True"):
        fit = PlattScaling().fit(z, labels)
    assert fit.certificate_.at_bound == ("slope",)
    assert not fit.certificate_.converged
    assert sign * fit.slope_ > 0
    assert abs(fit.slope_) < 1e9
    assert fit.certificate_.iterations < 60
    assert fit.certificate_.log_loss_after < 0.35  # ln 2 for half of the rows, if the two at the threshold are alike
    smooth = PlattScaling(smooth_targets=True).fit(z, labels)
    assert smooth.certificate_.converged
    assert abs(smooth.slope_) < abs(fit.slope_)


def test_the_classes_at_bounds_are_named():
    with pytest.warns(CalibrationWarning, match="class owl: a threshold parts the outcomes") as caught:
        fit = PlattScaling(classes=["cat", "dog", "owl"]).fit(Z, np.array(["cat", "dog", "owl"])[y])
    assert len(caught) == 1
    assert fit.certificate_.at_bound == ("slope of owl",)
    assert fit.slope_.shape == fit.intercept_.shape == (3,)


@pytest.mark.parametrize("method", [PlattScaling, BetaCalibration])
def test_one_outcome_gets_the_probability_of_smoothed_targets(method):
    with pytest.warns(CalibrationWarning, match=r"the event never comes true: .* set to 1 / \(n \+ 2\)"):
        never = method().fit([0.0, 1.0, 5.0], [0, 0, 0])
    assert never.predict_proba([-9.0, 9.0]).tolist() == close([1 / 5, 1 / 5])
    with pytest.warns(CalibrationWarning, match=r"the event always comes true: .* \(n \+ 1\) / \(n \+ 2\)"):
        always = method().fit([0.0, 1.0, 5.0], [1, 1, 1])
    assert always.predict_proba([-9.0, 9.0]).tolist() == close([4 / 5, 4 / 5])
    with pytest.warns(CalibrationWarning, match=r"class 1: the event never comes true") as caught:
        absent = method().fit(np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 2 * 2)
    assert "likewise 1 more" in str(caught[0].message)
    assert absent.certificate_.at_bound == ("intercept of 1", "intercept of 3")
    assert absent.predict_proba(np.zeros((1, 4)))[0, 1] > 0
    if method is PlattScaling:
        smooth = PlattScaling(smooth_targets=True).fit([0.0, 1.0, 5.0], [0, 0, 0])
        assert smooth.certificate_.converged
        assert smooth.predict_proba([-9.0, 9.0]).tolist() == close([1 / 5, 1 / 5], 1e-9)


def test_platt_scaling_agrees_with_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    z, outcomes = drawn(2000, seed=7, slope=0.4, intercept=-0.7)
    weight = np.random.default_rng(7).random(2000) + 0.1
    fit = PlattScaling().fit(z, outcomes, weight)
    model = linear_model.LogisticRegression(C=1e10, tol=1e-10).fit(z[:, None], outcomes, weight)
    assert fit.slope_ == close(model.coef_[0, 0], 1e-6)  # what their search leaves
    assert fit.intercept_ == close(model.intercept_[0], 1e-6)


def test_platt_scaling_of_logits_is_a_logistic_regression_on_each_logit():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(3)
    z = rng.normal(0, 2, (1500, 3)) + 5.0
    y = (0.6 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    fit = PlattScaling(scores="logits").fit(z, y)
    rates = []
    for index in range(3):
        model = linear_model.LogisticRegression(C=1e10, tol=1e-10).fit(z[:, [index]], y == index)
        assert fit.slope_[index] == close(model.coef_[0, 0], 1e-5)  # what their search leaves
        rates.append(1 / (1 + np.exp(-fit.slope_[index] * z[:, index] - fit.intercept_[index])))
    expected = np.transpose(rates) / np.sum(rates, axis=0)[:, None]
    assert fit.predict_proba(z) == pytest.approx(expected, abs=1e-12)
    other = PlattScaling().fit(z, y)
    assert np.abs(other.predict_proba(z) - expected).max() > 0.05
    shifted = PlattScaling().fit(z + rng.normal(0, 9, (1500, 1)), y)  # log-odds do not see what is added to a row
    assert shifted.slope_ == pytest.approx(other.slope_, abs=1e-6)


def test_platt_scaling_of_logits_travels_and_old_maps_are_as_they_were():
    rng = np.random.default_rng(3)
    z = rng.normal(0, 2, (200, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    fit = PlattScaling(scores="logits").fit(z, y)
    back = cal.recalibrate.from_json(fit.to_json())
    assert back.scores == "logits"
    assert (back.predict_proba(z) == fit.predict_proba(z)).all()
    assert "scores" not in json.loads(PlattScaling().fit(z, y).to_json())["options"]
    event = z[:, 0], (y == 0).astype(int)
    assert PlattScaling(scores="logits").fit(*event).slope_ == PlattScaling().fit(*event).slope_


def test_platt_scaling_of_logits_needs_logits():
    with pytest.raises(cal.CalibrationInputError, match='scores: needs input="logits"'):
        PlattScaling(input="probabilities", scores="logits")
    with pytest.raises(cal.CalibrationInputError, match='scores: must be "log_odds" or "logits"'):
        PlattScaling(scores="margins")


def test_a_calibrated_model_stays_calibrated():
    """Seed 0; with 100,000 rows the slope has a standard error of 0.006: five of them are an ECE of about 0.005."""
    z, outcomes = drawn(100_000, seed=0)
    fresh, truth = drawn(100_000, seed=1)
    for method in METHODS:
        probabilities = method().fit(z, outcomes).predict_proba(fresh)
        assert cal.ECE(truth, probabilities).value < 0.006, method


def test_a_sigmoid_of_probabilities_does_not_keep_it():
    calibration = pytest.importorskip("sklearn.calibration")
    z, outcomes = drawn(100_000, seed=0)
    fresh, truth = drawn(100_000, seed=1)
    p, fresh_p = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-fresh))
    theirs = calibration._SigmoidCalibration().fit(p, outcomes).predict(fresh_p)
    ours = on_probabilities(PlattScaling, p, outcomes).predict_proba(fresh_p)
    assert cal.ECE(truth, theirs).value > 0.02
    assert cal.ECE(truth, ours).value < 0.006


@pytest.mark.parametrize("wrong", [1, "yes", None])
def test_smoothing_is_a_matter_of_yes_or_no(wrong):
    with pytest.raises(cal.CalibrationInputError, match="smooth_targets: must be True or False"):
        PlattScaling(smooth_targets=wrong)


# Beta calibration


def test_beta_calibration_passes_through_the_rates_of_three_scores():
    p = np.repeat([0.2, 0.5, 0.8], 10)
    outcomes = np.concatenate([np.arange(10) < k for k in (1, 5, 8)]).astype(int)
    fit = on_probabilities(BetaCalibration, p, outcomes)
    assert fit.predict_proba([0.2, 0.5, 0.8]).tolist() == close([0.1, 0.5, 0.8], 1e-9)
    assert (fit.a_, fit.b_, fit.c_) == close((2.20101100, 0.38395150, 1.25948966), 1e-7)  # three equations solved


@given(data=events(), seed=seeds)
def test_the_conditions_of_a_bounded_optimum_hold(data, seed):
    p, outcomes = data
    weight = np.random.default_rng(seed).integers(1, 4, len(p)).astype(float)
    fit = on_probabilities(BetaCalibration, p, outcomes, weight)
    if not fit.certificate_.converged:
        return  # another test
    assert min(fit.a_, fit.b_) >= 0
    features = logarithms(ModelScores(p, "probabilities").log_odds)
    *down, level = slopes(features, outcomes, weight, fit.a_, fit.b_, fit.c_)
    assert level == close(0, 1e-9)
    for slope, derivative in zip((fit.a_, fit.b_), down, strict=True):
        if slope > 0:
            assert derivative == close(0, 1e-6)  # the logarithms are nearly one where all p are alike
        else:
            assert derivative > -1e-6


@pytest.mark.parametrize("parameters", [(2.0, 0.5, 0.3), (0.3, 1.5, -1.0), (1.0, 1.0, 0.0)])
def test_beta_calibration_finds_the_curve_that_the_outcomes_were_drawn_from(parameters):
    """Seed 12; standard errors are about 0.02, 0.1 is five of them."""
    rng = np.random.default_rng(12)
    z = rng.normal(0, 2, 50_000)
    outcomes = (rng.random(50_000) < beta_curve(z, *parameters)).astype(int)
    fit = BetaCalibration().fit(z, outcomes)
    assert (fit.a_, fit.b_, fit.c_) == close(parameters, 0.1)


def test_a_slope_that_would_be_negative_is_nothing():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(13)
    z = rng.normal(0, 2, 5000)
    outcomes = (rng.random(5000) < beta_curve(z, 1.5, -0.4, 0.2)).astype(int)
    fit = BetaCalibration().fit(z, outcomes)
    assert fit.b_ == 0
    peer = linear_model.LogisticRegression(C=1e10, tol=1e-10).fit(logarithms(z)[:1].T, outcomes)
    assert (fit.a_, fit.c_) == close((peer.coef_[0, 0], peer.intercept_[0]), 1e-5)  # what their search leaves
    falling = BetaCalibration().fit(z, 1 - outcomes)
    assert (falling.a_, falling.b_) == (0, 0)
    assert falling.predict_proba([5.0])[0] == close(1 - outcomes.mean())


def test_beta_calibration_agrees_with_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    z, outcomes = drawn(3000, seed=14, slope=0.6)
    fit = BetaCalibration().fit(z, outcomes)
    model = linear_model.LogisticRegression(C=1e10, tol=1e-12, max_iter=1000).fit(logarithms(z).T, outcomes)
    assert (fit.a_, fit.b_) == close(tuple(model.coef_[0]), 1e-5)  # what their search leaves
    assert fit.c_ == close(model.intercept_[0], 1e-5)


def test_logits_lose_nothing_where_probabilities_would_be_one():
    rng = np.random.default_rng(15)
    z = rng.uniform(38, 48, 4000)  # all are 1.0 as probabilities
    outcomes = (rng.random(4000) < 1 / (1 + np.exp(-(z - 43)))).astype(int)
    for method in (PlattScaling, BetaCalibration):
        probabilities = method().fit(z, outcomes).predict_proba([39.0, 43.0, 47.0])
        assert probabilities.tolist() == close([0.018, 0.5, 0.982], 0.03)  # seed 15, four standard errors


def test_parted_outcomes_end_at_a_bound_of_beta_calibration():
    with pytest.warns(CalibrationWarning, match=r"BetaCalibration: a threshold parts .* PlattScaling\(smooth"):
        fit = BetaCalibration().fit([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1])
    assert fit.predict_proba([1.0, 2.0, 3.0, 4.0]).tolist() == close([0, 0, 1, 1], 1e-9)
    reverse = BetaCalibration().fit([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0])  # no slope may be negative: no warning
    assert reverse.predict_proba([1.0, 4.0]).tolist() == close([0.5, 0.5])


# Isotonic calibration


def test_twelve_rows_have_the_published_isotonic_rows():
    probabilities = on_probabilities(PLAIN_ISOTONIC, P, y).predict_proba(P.copy() + 0)
    assert probabilities[0].tolist() == [1, 0, 0]
    assert probabilities[3].tolist() == close([2 / 3, 1 / 3, 0])


def test_corners_and_straight_lines_worked_by_hand():
    fit = on_probabilities(PLAIN_ISOTONIC, [0.1, 0.3, 0.4, 0.6, 0.6, 0.8], [0, 1, 1, 0, 0, 1])
    assert fit.thresholds_.tolist() == [0.1, 0.3, 0.6, 0.8]  # of a pool, the first and the last
    assert fit.values_.tolist() == [0, 0.5, 0.5, 1]
    assert fit.predict_proba([0.0, 0.2, 0.45, 0.7, 1.0]).tolist() == close([0, 0.25, 0.5, 0.75, 1])


def test_ties_are_pooled_before_anything_else():
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        fit = on_probabilities(PLAIN_ISOTONIC, np.array([0.5, 0.5, 0.2])[order], np.array([1, 0, 0])[order])
        assert fit.predict_proba([0.2, 0.5]).tolist() == [0, 0.5]


@given(data=events(), seed=seeds)
def test_isotonic_calibration_is_the_loop_with_whole_weights(data, seed):
    p, outcomes = data
    times = np.random.default_rng(seed).integers(1, 4, len(p))
    fit = on_probabilities(PLAIN_ISOTONIC, p, outcomes, times)
    at = oracle.isotonic_map(np.repeat(p, times).tolist(), np.repeat(outcomes, times).tolist())
    points = np.concatenate([p, np.linspace(0, 1, 23)])
    assert fit.predict_proba(points).tolist() == close([at(point) for point in points.tolist()])


@pytest.mark.parametrize("seed", range(5))
def test_isotonic_calibration_agrees_with_scikit_learn(seed):
    isotonic = pytest.importorskip("sklearn.isotonic")
    rng = np.random.default_rng(seed)
    p = rng.random(3000).round(2 + seed)
    outcomes = (rng.random(3000) < p**2).astype(int)
    weight = rng.random(3000) + 0.01
    fit = on_probabilities(PLAIN_ISOTONIC, p, outcomes, weight)
    model = isotonic.IsotonicRegression(out_of_bounds="clip").fit(p, outcomes, weight)
    points = np.linspace(0, 1, 1001)
    assert np.allclose(fit.predict_proba(points), model.predict(points), rtol=0, atol=1e-9)
    assert fit.thresholds_.tolist() == model.X_thresholds_.tolist()


def test_a_late_drop_undoes_one_pool_after_another():
    rates = np.array([*range(29), 30, 26])  # of 64; 30 and 26 pool to 28, the rate before
    p = np.linspace(0.1, 0.9, 31)
    weight = np.concatenate([rates, 64 - rates])
    fit = on_probabilities(PLAIN_ISOTONIC, np.tile(p, 2), np.repeat([1, 0], 31), weight)
    assert fit.predict_proba(p).tolist() == close([*(np.arange(29) / 64), 28 / 64, 28 / 64])
    assert len(fit.thresholds_) == 30  # the last three are a pool: its first and its last


def test_lines_between_neighbouring_numbers_do_not_overflow():
    thresholds = np.array([1e-310, 2e-310, 0.5])
    heights = broken_line(np.array([0.0, 1.5e-310, 2e-310, 0.25, 1.0]), thresholds, np.array([0.0, 0.5, 1.0]))
    assert heights.tolist() == close([0, 0.25, 0.5, 0.75, 1])


def test_a_million_rows_are_pooled_in_a_moment():
    rng = np.random.default_rng(16)
    p = rng.random(1_000_000)
    event = Event(p, (rng.random(1_000_000) < p).astype(float), np.ones(1_000_000))
    start = time.process_time()
    _, values = fit_isotonic(event, smooth=False)
    assert time.process_time() - start < 20  # pairs of rows would take hours
    assert np.diff(values).min() >= 0


# Histogram binning


def test_cells_and_midpoints_worked_by_hand():
    fit = on_probabilities(PLAIN_HISTOGRAM, [0.0, 0.25, 0.26, 0.9, 1.0], [0, 1, 1, 1, 1], n_bins=4)
    assert fit.values_.tolist() == [0.5, 1, 0.625, 1]  # 0 is in the first cell, 1/4 too; nothing in (1/2, 3/4]
    assert fit.n_bins_ == 4
    assert fit.predict_proba([0.0, 0.25, 0.5, 0.75, 1.0]).tolist() == close([0.5, 0.5, 1, 0.625, 1])


def test_no_probability_is_below_the_floor_and_the_log_loss_is_finite():
    event = on_probabilities(PLAIN_HISTOGRAM, [0.1, 0.9], [0, 1], n_bins=2)
    assert event.predict_proba([0.1, 0.9]).tolist() == [1e-12, 1 - 1e-12]
    fit = on_probabilities(PLAIN_HISTOGRAM, P, y, n_bins=20)
    probabilities = fit.predict_proba(P[::-1])
    assert probabilities.min() == pytest.approx(1e-12, rel=1e-9, abs=0)
    assert probabilities.sum(axis=1).tolist() == close([1] * 12)


def test_edges_are_fractions_to_the_last_bit():
    assert cells(np.array([0.3, 0.1 + 0.2, 0.6, 0.7, np.nextafter(0.7, 1)]), even_edges(10)).tolist() == [2, 3, 5, 6, 7]


def test_a_left_out_row_of_which_no_cell_says_anything_stays_as_it_was():
    p, labels = np.array([[0.6, 0.2, 0.2], [0.5, 0.4, 0.1], [0.8, 0.1, 0.1]]), np.array([0, 1, 0])
    # without row 1, class 1 is at the midpoint 0.3 of an empty cell, class 0 at 1, class 2 at 0
    # without row 2, class 0 is at the midpoint 0.7 of an empty cell, the others at 0
    expected = (-math.log(0.6) - math.log(0.3 / 1.3) - math.log(1)) / 3
    assert plain_left_out_loss(as_lesson(p, labels, input="probabilities"), 5) == close(expected)
    assert oracle.left_out_log_loss(p.tolist(), labels.tolist(), 5) == close(expected)


@given(data=rows(classes=few_classes, most=15), n_bins=st.sampled_from([1, 2, 5, 10]))
def test_histogram_binning_is_the_loop(data, n_bins):
    p, labels = data
    fit = on_probabilities(PLAIN_HISTOGRAM, p, labels, n_bins=n_bins)
    curves = [
        oracle.histogram_map(p[:, k].tolist(), (labels == k).astype(int).tolist(), n_bins)
        for k in range(p.shape[1])
    ]  # fmt: skip
    expected = oracle.one_against_all(p.tolist(), curves)
    assert np.allclose(fit.predict_proba(p), expected, rtol=0, atol=1e-11)  # K floors of 1e-12
    given_rows = as_lesson(p, labels, input="probabilities")
    if len(labels) > 1:
        assert plain_left_out_loss(given_rows, n_bins) == close(
            oracle.left_out_log_loss(p.tolist(), labels.tolist(), n_bins), 1e-9
        )


@given(data=events(), seed=seeds)
def test_the_left_out_loss_of_an_event_counts_weights_as_repetitions(data, seed):
    p, outcomes = data
    times = np.random.default_rng(seed).integers(1, 4, len(p))
    weighted = as_lesson(p, outcomes, input="probabilities", sample_weight=times)
    again, truth = np.repeat(p, times), np.repeat(outcomes, times)
    for n_bins in (1, 4, 50):
        repeated = plain_left_out_loss(as_lesson(again, truth, input="probabilities"), n_bins)
        assert plain_left_out_loss(weighted, n_bins) == close(repeated, 1e-9)
    if len(again) > 1:  # in one cell, two columns are the event
        expected = oracle.left_out_log_loss(np.column_stack([1 - again, again]).tolist(), truth.tolist(), 1)
        assert plain_left_out_loss(weighted, 1) == close(expected, 1e-9)


def test_the_number_of_cells_is_that_of_the_smallest_plain_left_out_loss():
    for data in (drawn(300, seed=17), (Z, y)):
        fit = fitted(PLAIN_HISTOGRAM, *data)
        lesson = as_lesson(*data, input="logits")
        losses = [left_out_loss(lesson, partial(mass_edges, n_bins=n_bins), smooth=False) for n_bins in CELLS]
        assert fit.n_bins_ == CELLS[int(np.argmin(losses))]
        assert isinstance(fit.n_bins_, int)
    assert fitted(PLAIN_HISTOGRAM, [0.1] * 9, [0, 1, 1] * 3).n_bins_ == 1  # all are equal: the first


@given(data=events(), n_bins=st.integers(1, 20))
def test_cells_of_equal_mass_end_where_the_sorted_rows_are_cut(data, n_bins):
    """Cell k ends with row ceil(k n / B) of the sorted ones, its ties with it; weights are repetitions."""
    p, outcomes = data
    ends = {sorted(p.tolist())[math.ceil(k * len(p) / n_bins) - 1] for k in range(1, n_bins)} - {max(p)}
    event = Event(p, outcomes.astype(float), np.ones(len(p)))
    assert mass_edges(event, n_bins).tolist() == sorted(ends)
    twice = Event(p, outcomes.astype(float), np.full(len(p), 2.0))
    assert mass_edges(twice, n_bins).tolist() == sorted(ends)
    assert set(edges_of(cal.EqualMass(n_bins), event).tolist()) - {max(p)} == ends


@pytest.mark.parametrize(
    "binning", [cal.EqualMass(5), cal.EqualWidth(5), cal.Edges([0, 0.3, 1]), cal.Sweep(cal.EqualMass())], ids=repr
)
def test_a_binning_is_a_piece_that_travels_with_the_map(binning):
    p, outcomes = np.random.default_rng(3).random((2, 200))
    fit = on_probabilities(HistogramBinning, p, (outcomes < p).astype(int), binning=binning)
    bins = binning.conclude(binning.summarise(cal.TopLabel()(cal.Predictions.from_probs(outcomes < p, p))))
    held = bins.counts[0] > 0
    assert fit.predict_proba(bins.forecast[0, held, 0]) == close(bins.frequency[0, held, 0], 0.05)  # smoothed at 0, 1
    again = cal.recalibrate.from_json(fit.to_json())
    assert again.binning == binning
    assert np.array_equal(again.predict_proba(p), fit.predict_proba(p))
    with pytest.raises(cal.CalibrationInputError, match="n_bins: must be left out with a binning"):
        HistogramBinning(n_bins=5, binning=binning)


def test_a_number_of_cells_alone_is_of_cells_of_equal_width():
    p, outcomes = np.random.default_rng(4).random((2, 100))
    number, piece = (
        on_probabilities(HistogramBinning, p, (outcomes < p).astype(int), **options)
        for options in ({"n_bins": 7}, {"binning": cal.EqualWidth(7)})
    )
    assert np.array_equal(number.edges_, piece.edges_)
    assert np.array_equal(number.values_, piece.values_)


def test_many_rows_get_many_cells_and_few_rows_few():
    assert fitted(PLAIN_HISTOGRAM, *drawn(50_000, seed=18, slope=0.5)).n_bins_ >= 20
    z = np.random.default_rng(19).normal(0, 2, 60)
    assert fitted(PLAIN_HISTOGRAM, z, np.arange(60) % 2).n_bins_ <= 5  # scores that tell nothing


def test_float32_decimals_fall_into_the_cells_of_their_float64_copies():
    p = (np.arange(1, 11) / 10).repeat(2)
    outcomes = np.arange(20) % 3 == 0
    double = on_probabilities(PLAIN_HISTOGRAM, p, outcomes.astype(int), n_bins=10)
    single = on_probabilities(PLAIN_HISTOGRAM, p.astype(np.float32), outcomes.astype(int), n_bins=10)
    assert single.values_.tolist() == double.values_.tolist()


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "15", 10**9])
def test_cells_are_counted_in_whole_numbers(wrong):
    with pytest.raises(cal.CalibrationInputError, match="n_bins: must be a whole number"):
        HistogramBinning(smooth=False, n_bins=wrong)


# Bayesian binning into quantiles


def test_two_histograms_worked_by_hand():
    fit = on_probabilities(BBQ, [0.25, 0.75], [0, 1])
    assert fit.thresholds_.tolist() == [0.5]
    # one bin: alpha = beta = 1, chance of the outcomes 1/2 * 1/3 = 1/6, says (1 + 1) / (2 + 2)
    # two bins: alpha = 1/4, 3/4; chances 3/4 * 3/4 = 9/16, says 1/8 and 7/8
    first, second = 1 / 6, 9 / 16
    expected = [(first / 2 + second / 8) / (first + second), (first / 2 + second * 7 / 8) / (first + second)]
    assert fit.predict_proba([0.5, 0.51]).tolist() == close(expected)


def test_one_bin_is_the_mean_with_a_prior_of_one_in_two():
    fit = on_probabilities(BBQ, [0.5] * 3, [0, 0, 1])
    assert fit.predict_proba([0.0, 1.0]).tolist() == close([0.4, 0.4])
    assert fit.thresholds_.tolist() == []


def test_binnings_keep_ties_together_and_count_once():
    counted = [ends.tolist() for ends in binnings(np.array([0.0, 8.0, 9.0, 10.0]))]
    assert counted == [[], [1]]  # of 3 bins the ends 3.3 and 6.7 are nearest to 0 and 8: again two bins
    assert [ends.tolist() for ends in binnings(np.array([0.0, 1.0, 2.0, 3.0]))] == [[], [1], [1, 2]]


def test_the_numbers_of_bins_lie_between_a_tenth_of_the_cube_root_and_ten_times_it():
    sizes = [len(ends) + 1 for ends in binnings(np.arange(27_001.0))]
    assert sizes == list(range(3, 301))
    assert next(len(ends) + 1 for ends in binnings(np.arange(28_001.0))) == 4  # 3.04 and more


@given(data=events(most=30))
@settings(max_examples=40)
def test_bayesian_binning_is_the_loop(data):
    p, outcomes = data
    p = 0.01 + 0.98 * p  # at 0 and 1 a midpoint may be no further from them than rounding
    at = oracle.bbq_map(p.tolist(), outcomes.tolist())
    points = np.concatenate([p, [0.0, 0.123, 0.456, 0.789, 1.0]])
    probabilities = on_probabilities(BBQ, p, outcomes).predict_proba(points)
    assert probabilities.tolist() == close([at(point) for point in points.tolist()], 1e-9)


def test_bayesian_binning_of_many_rows_is_the_loop():
    rng = np.random.default_rng(20)
    p = rng.random(1200).round(3)
    outcomes = (rng.random(1200) < p**2).astype(int)
    at = oracle.bbq_map(p[::2].tolist(), outcomes[::2].tolist())
    probabilities = on_probabilities(BBQ, p[::2], outcomes[::2]).predict_proba(np.linspace(0, 1, 21))
    assert probabilities.tolist() == close([at(point) for point in np.linspace(0, 1, 21).tolist()], 1e-9)


@pytest.mark.parametrize("odd", [False, True])
def test_borders_lie_below_the_higher_score_where_nothing_is_between(odd):
    low = np.nextafter(0.5, 1) if odd else 0.5
    high = np.nextafter(low, 1)
    fit = on_probabilities(BBQ, [low] * 30 + [high] * 30, [0] * 30 + [1] * 30)
    probabilities = fit.predict_proba([low, high])
    assert probabilities[0] < 0.05
    assert probabilities[1] > 0.95


def test_fifty_thousand_rows_are_binned_in_a_moment():
    z, outcomes = drawn(50_000, seed=21)
    start = time.process_time()
    fit = BBQ().fit(z, outcomes)
    assert time.process_time() - start < 20  # pairs of rows would take hours
    assert len(fit.values_) == len(fit.thresholds_) + 1


def test_a_slope_and_an_intercept_are_what_the_pure_function_finds():
    z, outcomes = drawn(100, seed=22)
    slope, intercept, ending = fit_platt(Event(z, outcomes.astype(float), np.ones(100)))
    fit = PlattScaling().fit(z, outcomes)
    assert (fit.slope_, fit.intercept_) == (slope, intercept)
    assert fit.certificate_.iterations == ending.iterations


# What may happen is given no probability of 0


def test_end_plateaus_are_kept_from_0_and_1_by_hand():
    """0 among 3 rows is 1/5, 1 among 2 is 3/4; neither passes the value that follows."""
    p, outcomes = [0.1, 0.2, 0.3, 0.5, 0.5, 0.8, 0.9], [0, 0, 0, 1, 0, 1, 1]
    fit = on_probabilities(IsotonicCalibration, p, outcomes)
    assert fit.predict_proba([0.05, 0.3, 0.5, 0.8, 1.0]).tolist() == close([1 / 5, 1 / 5, 1 / 2, 3 / 4, 3 / 4])
    rare = on_probabilities(IsotonicCalibration, [0.1, *[0.5] * 50], [0, 1, *[0] * 49])
    assert rare.predict_proba([0.1, 0.5]).tolist() == close([1 / 50, 1 / 50])


def test_steps_are_constant_between_pools_and_exact_at_their_scores():
    p, outcomes = [0.1, 0.3, 0.6, 0.8], [0, 1, 0, 1]
    steps = on_probabilities(IsotonicCalibration, p, outcomes, interpolate=False, smooth=False)
    assert steps.predict_proba([0.0, 0.1, 0.19, 0.21, 0.3, 0.6, 0.69, 0.71, 0.8, 1.0]).tolist() == close(
        [0, 0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1, 1]
    )
    near = 0.5 + np.arange(4) * 2.0**-53 * 2
    assert on_probabilities(IsotonicCalibration, near, [0, 1, 0, 1], interpolate=False, smooth=False).predict_proba(
        near
    ).tolist() == close([0, 0.5, 0.5, 1])
    again = cal.recalibrate.from_json(steps.to_json())
    assert (again.interpolate, again.smooth) == (False, False)
    assert "interpolate" not in on_probabilities(IsotonicCalibration, p, outcomes).to_json()


def test_cells_of_one_outcome_count_a_row_of_their_midpoint():
    fit = on_probabilities(HistogramBinning, [0.1, 0.2, 0.3, 0.9], [0, 0, 0, 1], n_bins=2)
    assert fit.values_.tolist() == close([0.25 / 4, 1.75 / 2])


@pytest.mark.parametrize("method", [IsotonicCalibration, HistogramBinning, BBQ, cal.TopLabelCalibration])
def test_a_class_without_rows_is_told_and_may_still_happen(method):
    """Class 2 of 3 has no fitting rows, 200 others, seed 0: the loss of new rows of it is finite and no catastrophe."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 3))
    labels = (z[:, :2] + rng.gumbel(size=(200, 2))).argmax(axis=1)
    with pytest.warns(CalibrationWarning, match="there are no rows of class 2: its probability comes from smoothing"):
        fit = method().fit(z, labels)
    assert not fit.certificate_.converged
    new = cal.Predictions.from_logits([2] * 500, rng.normal(size=(500, 3)))
    assert cal.LOG_LOSS(fit.recalibrate(new)).value < 12


@pytest.mark.parametrize("method", [IsotonicCalibration, HistogramBinning, BBQ])
def test_no_default_rules_out_what_happens_in_new_rows(method):
    """50 fits on 60 rows, seeds 0 to 49: the log loss of 2,000 new rows is finite and below 3."""
    for seed in range(50):
        z, outcomes = drawn(60, seed)
        fresh, truth = drawn(2000, seed + 1000)
        assert cal.LOG_LOSS(method().fit(z, outcomes).recalibrate(cal.Predictions.from_logits(truth, fresh))).value < 3
