"""Risk and coverage: AURC, AUGRC and E-AURC against loops and by hand; one number wherever it stands."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant import diagnostics
from calibrant.errors.risk import RiskCoverage, harmonic_between
from oracles import clinical
from strategies import events, rows

close = pytest.approx
ORACLES = {"AURC": clinical.aurc, "AUGRC": clinical.augrc, "E_AURC": clinical.excess_aurc}


@pytest.mark.parametrize("name", ORACLES)
@given(data=rows())
def test_of_classes_the_likeliest_is_the_answer(name, data):
    p, y = data
    certainty, wrong = p.max(axis=1).tolist(), (p.argmax(axis=1) != y).astype(float).tolist()
    assert cal.RECIPES[name](y, p).value == close(ORACLES[name](certainty, wrong), abs=1e-12)


@pytest.mark.parametrize("name", ORACLES)
@given(data=events())
def test_an_event_is_answered_with_yes_above_one_half(name, data):
    p, y = data
    certainty, wrong = np.maximum(p, 1 - p).tolist(), ((p > 0.5) != y).astype(float).tolist()
    metric = cal.RECIPES[name]
    assert metric(y, p).value == close(ORACLES[name](certainty, wrong), abs=1e-12)
    assert metric(y, np.column_stack([1 - p, p])).value == close(metric(y, p).value, abs=1e-12)


@given(data=events())
def test_generalised_risk_follows_from_detection(data):
    """Traub et al. (2024): (1 - AUROC_f) acc (1 - acc) + (1 - acc)^2 / 2."""
    p, y = data
    error, detection = 1 - y.mean(), diagnostics.risk_coverage(cal.Predictions.from_confidence(y, p)).detection
    if 0 < error < 1:
        expected = (1 - detection) * error * (1 - error) + error**2 / 2
        assert cal.AUGRC(cal.Predictions.from_confidence(y, p)).value == close(expected, abs=1e-12)


@given(data=events())
def test_detection_is_the_share_of_pairs(data):
    p, y = data
    curve = diagnostics.risk_coverage(cal.Predictions.from_confidence(y, p))
    expected = clinical.auroc(p.tolist(), y.tolist()) if 0 < y.sum() < len(y) else math.nan
    assert curve.detection == close(expected, abs=1e-12, nan_ok=True)


@given(data=rows())
def test_diagnostics_and_picture_have_the_number_of_the_metric(data):
    pytest.importorskip("matplotlib")
    from calibrant.plots import RiskCoverageDisplay

    p, y = data
    for predictions in (cal.Predictions.from_probs(y, p), cal.Predictions.from_probs(y == 0, p[:, 0])):
        curve = diagnostics.risk_coverage(predictions)
        assert curve.aurc == cal.AURC(predictions).value == close(curve.risk.mean(), abs=1e-12)
    (line,) = RiskCoverageDisplay.from_predictions(predictions).ax_.lines
    assert line.get_label() == f"AURC {cal.AURC(predictions).value:.4f}"
    assert np.array_equal(line.get_ydata(), curve.risk)


def test_by_hand():
    y, p = [1, 0, 0, 1], [0.9, 0.2, 0.8, 0.5]  # certainties .9, .8, .8, .5: right; right and wrong; an answer no, wrong
    curve = diagnostics.risk_coverage(cal.Predictions.from_probs(y, p))
    assert curve.kept.tolist() == [1, 3, 4]
    assert curve.wrong.tolist() == [0, 1, 2]
    assert cal.AURC(y, p).value == close((0 + 1 / 4 + 1 / 3 + 1 / 2) / 4, rel=1e-14)
    assert cal.AUGRC(y, p).value == close((0 + 0.5 / 2 + (0.5 + 1) / 2 + (1 + 2) / 2) / 16, rel=1e-14)
    assert cal.E_AURC(y, p).value == close((0 + 1 / 4 + 1 / 3 + 1 / 2 - 1 / 3 - 1 / 2) / 4, rel=1e-13)


def test_answers_that_are_all_right_or_all_wrong():
    p = [[0.9, 0.1], [0.7, 0.3]]
    assert [cal.RECIPES[name]([0, 0], p).value for name in ORACLES] == [0, 0, 0]
    assert [cal.RECIPES[name]([1, 1], p).value for name in ORACLES] == [1, 0.5, 0]


def test_the_best_order_has_no_excess():
    rng = np.random.default_rng(0)
    right = np.sort(rng.random(500) < 0.7)
    assert cal.E_AURC(cal.Predictions.from_confidence(right, np.linspace(0.1, 0.9, 500))).value == close(0, abs=1e-15)


def test_float_forecasts_of_the_same_decimals_tie():
    y, p = [1, 0, 0, 1], np.array([0.9, 0.1, 0.6, 0.4])
    for dtype in (np.float64, np.float32, np.float16):
        assert diagnostics.risk_coverage(cal.Predictions.from_probs(y, p.astype(dtype))).kept.tolist() == [2, 4]


@given(st.integers(0, 10**9), st.integers(1, 300))
def test_harmonic_numbers_of_neighbours_lose_nothing(low, more):
    expected = math.fsum(1 / k for k in range(low + 1, low + more + 1))
    found = harmonic_between(np.array([float(low)]), np.array([float(low + more)]))
    assert found[0] == close(expected, rel=1e-13)


def test_harmonic_numbers_are_those_of_scipy():
    from scipy.special import digamma

    x = np.concatenate([np.linspace(0, 3, 200), np.geomspace(3, 1e9, 200)])
    assert harmonic_between(np.zeros(400), x) == close(digamma(x + 1) - digamma(1), rel=0, abs=2e-14)


def test_rows_without_weight_do_not_count():
    curve = RiskCoverage.of(np.array([0.9, 0.8, 0.7]), np.array([1.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0]))
    assert curve.kept.tolist() == [1, 2]
    weighted = cal.Predictions.from_probs([1, 0, 1], [0.9, 0.8, 0.7], sample_weight=[1, 0, 2])
    assert diagnostics.risk_coverage(weighted).aurc == cal.AURC(weighted).value
