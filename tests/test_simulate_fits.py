"""Fits of simulated models: score laws, calibration curves, and whether a fit behaves like the model it is of."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant import simulate
from calibrant.simulate import UNIFORM, BetaScores, CalibrationCurve, fit_curve, fit_model, fit_scores, power_curve
from calibrant.simulate.outcomes import outcomes_of
from oracles import simulate as oracle

pytestmark = pytest.mark.slow

TEN = [0.35, 0.6, 0.72, 0.8, 0.88, 0.91, 0.95, 0.97, 0.99, 0.999]
FORTY = (np.arange(1, 41) - 0.5) / 40
FORTY_HITS = ((0.6180339887498949 * np.arange(1, 41)) % 1 < FORTY**2).astype(int)


def close(value, tolerance=1e-12):
    return pytest.approx(value, rel=0, abs=tolerance)


# ---- scores ----------------------------------------------------------------------------------------------------------


def test_ten_scores():
    fit = fit_scores(TEN)
    assert (round(fit.scores.a, 6), round(fit.scores.b, 6)) == (2.447143, 0.544874)
    assert fit.nll == close(-8.1584896859, 1e-10)
    assert (fit.n, fit.floored) == (10, 0)


def test_ten_scores_by_a_shrinking_grid():
    def loss(a, b):
        return oracle.beta_nll(TEN, a, b) if min(a, b) > 0 else math.inf

    (a, b), nll = oracle.shrinking_grid(loss, (100, 25), (100, 25), tolerance=1e-5)
    fit = fit_scores(TEN)
    assert (fit.scores.a, fit.scores.b) == (close(a, 1e-4), close(b, 1e-4))  # the grid ends at 1e-5, flat ground
    assert fit.nll <= nll + 1e-12
    assert fit.nll == close(oracle.beta_nll(TEN, fit.scores.a, fit.scores.b), 1e-9)


@settings(max_examples=40)
@given(a=st.floats(0.05, 50), b=st.floats(0.05, 50), seed=st.integers(0, 1000), n=st.integers(2, 200))
def test_the_fit_is_where_the_mean_logarithms_are_the_law_s_own(a, b, seed, n):
    from scipy.special import psi

    x = np.random.default_rng(seed).beta(a, b, n)
    x = np.unique(np.clip(x, 1e-12, 1 - 1e-12))
    if len(x) < 2 or np.ptp(x) < 1e-3:  # nearly one value: shape parameters beyond 1e6
        return
    law = fit_scores(x).scores
    assert psi(law.a) - psi(law.a + law.b) == pytest.approx(np.log(x).mean(), rel=1e-7, abs=1e-9)  # digits of psi
    assert psi(law.b) - psi(law.a + law.b) == pytest.approx(np.log1p(-x).mean(), rel=1e-7, abs=1e-9)


def test_a_law_is_found_again():
    law = BetaScores(1.1823, 0.3)
    fitted = fit_scores(law.draw(np.random.default_rng(0), 50_000)).scores
    assert fitted.a == pytest.approx(law.a, rel=0.05)  # five standard errors of some 1 %
    assert fitted.b == pytest.approx(law.b, rel=0.05)


def test_scores_of_one_are_held_at_the_floor_which_sets_b():
    x = [0.5, 0.8, 0.9, 1.0, 1.0]
    fit = fit_scores(x)
    assert fit.floored == 2
    held = [0.5, 0.8, 0.9, 1 - 1.1102230246251565e-16, 1 - 1.1102230246251565e-16]
    assert fit.nll == close(oracle.beta_nll(held, fit.scores.a, fit.scores.b), 1e-9)
    assert fit_scores(x, eps=1e-3).scores.b > fit.scores.b
    assert "2 held at 1e-16 from 0 or 1" in str(fit)


def test_scores_of_zero_are_held_too():
    assert fit_scores([0.0, 0.0, 0.5, 0.7]).floored == 2


def test_tied_scores_have_a_law():
    fit = fit_scores([0.5, 0.5, 0.5, 0.6])
    assert fit.scores.mean == pytest.approx(0.525, abs=0.01)


def test_order_of_scores_does_not_matter():
    assert fit_scores(TEN[::-1]).scores.a == close(fit_scores(TEN).scores.a, 1e-9)


@pytest.mark.parametrize("scores", [[0.7], [0.7] * 9, [1.0] * 50, [0.0] * 5])
def test_equal_scores_have_no_law(scores):
    with pytest.raises(cal.CalibrationInputError, match=r"scores: must differ for a law to be fitted, got \d+ times"):
        fit_scores(scores)


def test_what_is_no_score_is_refused():
    with pytest.raises(cal.CalibrationInputError, match=r"scores: must lie in \[0, 1\], got 1\.5 at row 1"):
        fit_scores([0.1, 1.5])
    with pytest.raises(cal.CalibrationInputError, match="eps: must lie in"):
        fit_scores(TEN, eps=0)


def test_scores_of_predictions():
    p = cal.Predictions.from_probs([0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    assert outcomes_of(p)[1].tolist() == [1, 0, 1]
    assert fit_scores(p).scores == fit_scores([0.9, 0.8, 0.7]).scores


# ---- curves ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "b0", "b1", "nll", "aic"),
    [
        ("log_log_b0_b1", 0.024399, 1.939707, 16.49541798, 36.990836),
        ("log_log_b1", 0, 1.885592, 16.51164647, 35.023293),
        ("logflip_logflip_b0_b1", 0.007306, 0.580799, 17.16737038, 38.334741),
        ("logit_logit_b0_b1", -1.054859, 1.269105, 16.59371526, 37.187431),
        ("logit_logflip_b0_b1", -2.723390, -2.086865, 17.35149870, 38.702997),
    ],
)
def test_forty_outcomes(name, b0, b1, nll, aic):
    fit = fit_curve(FORTY, FORTY_HITS)[name]
    assert (fit.curve.b0, fit.curve.b1) == (close(b0, 1e-6), close(b1, 1e-6))  # known to six decimals
    assert fit.nll == close(nll, 1e-8)  # as many digits as are known
    assert fit.aic == close(aic, 1e-6)


def test_the_best_of_forty_outcomes_and_the_constants_that_are_one_model():
    fits = fit_curve(FORTY, FORTY_HITS)
    assert fits.best.name == "log_log_b1"
    assert len(fits.fits) == 13
    assert [fit.bic for fit in fits.fits] == sorted(fit.bic for fit in fits.fits)
    assert all(fit.bic - fit.aic == close(fit.coefficients * (math.log(40) - 2)) for fit in fits.fits)
    constant = [fit for fit in fits.fits if fit.terms == "b0"]
    assert [fit.nll for fit in constant] == close([25.897866] * 4, 1e-6)
    assert all(float(fit.curve(0.3)) == close(14 / 40, 1e-9) for fit in constant)


@pytest.mark.parametrize("name", ["log_log", "logflip_logflip", "logit_logit", "logit_logflip"])
def test_fits_are_no_worse_than_a_shrinking_grid(name):
    start = {"log_log": (0.0, 2.0), "logflip_logflip": (0.0, 0.6), "logit_logit": (-1, 1), "logit_logflip": (-3, -2)}
    _, nll = oracle.shrinking_grid(
        lambda b0, b1: oracle.curve_nll(name, b0, b1, FORTY.tolist(), FORTY_HITS.tolist()),
        start[name],
        (1.0, 1.0),
        1e-3,
    )
    fit = fit_curve(FORTY, FORTY_HITS)[f"{name}_b0_b1"]
    assert fit.nll <= nll + 1e-9
    assert fit.nll == close(nll, 0.02)  # a grid cannot follow the wall where a probability is 1
    assert fit.nll == close(
        oracle.curve_nll(name, fit.curve.b0, fit.curve.b1, FORTY.tolist(), FORTY_HITS.tolist()), 1e-9
    )


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), n=st.integers(8, 200), d=st.floats(0.3, 4))
def test_more_coefficients_never_fit_worse(seed, n, d):
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    y = rng.random(n) < x**d
    if not 0 < y.sum() < n:
        return
    fits = fit_curve(x, y)
    for family in ("log_log", "logflip_logflip", "logit_logit", "logit_logflip"):
        both = fits[f"{family}_b0_b1"].nll
        assert both <= min(fits[f"{family}_b0"].nll, fits[f"{family}_b1"].nll) + 1e-8  # what is left of the wall


@pytest.mark.parametrize("name", ["resnet110_c100", "resnet110_SD_c100", "densenet161_imgnet"])
def test_a_published_curve_is_found_again(name):
    fit = simulate.PUBLISHED[name]
    p = simulate.draw(fit.scores, fit.curve, n=20_000, seed=1)
    fits = fit_curve(p)
    curve = fits[f"{fit.curve.name}_b0_b1"].curve
    grid = np.linspace(0.3, 0.99, 20)
    assert curve(grid) == pytest.approx(fit.curve(grid), abs=0.04)  # some three standard errors
    assert fits[f"{fit.curve.name}_b0_b1"].aic < fits.best.aic + 8  # the truth is at least close to the best


def test_a_constant_that_outcomes_follow_wins_or_ties():
    rng = np.random.default_rng(2)
    fits = fit_curve(rng.random(500), rng.random(500) < 0.7)
    assert fits["logit_logit_b0"].aic < fits.best.aic + 2.1


def test_outcomes_that_a_score_parts_are_fitted_as_well_as_can_be():
    fits = fit_curve(FORTY, FORTY > 0.5)
    assert fits["logit_logit_b0_b1"].nll == close(0, 1e-6)  # the slope would be infinite
    assert np.isfinite([fit.nll for fit in fits.fits]).all()


def test_scores_of_zero_and_one_are_left_out_and_counted():
    x, y = np.append(FORTY, [0, 1, 1]), np.append(FORTY_HITS, [0, 1, 0])
    fits = fit_curve(x, y)
    assert (fits.n, fits.removed) == (43, 3)
    assert fits.best == fit_curve(FORTY, FORTY_HITS).best


def test_other_families_can_be_asked_for():
    rng = np.random.default_rng(0)
    x = rng.random(5000)
    fits = fit_curve(
        x, rng.random(5000) < simulate.logistic_curve(10, -5)(x), families=["logit_identity", "logit_logit"]
    )
    assert fits.best.name == "logit_identity_b0_b1"
    assert fits.curve.b1 == pytest.approx(10, abs=1.5)  # some five standard errors
    with pytest.raises(cal.CalibrationInputError, match="families: must be curves that can stay within"):
        fit_curve(x, x > 0.5, families=["log_logit"])


@pytest.mark.parametrize("hits", [[1, 1, 1], [0, 0, 0]])
def test_one_outcome_alone_has_no_curve(hits):
    with pytest.raises(cal.CalibrationInputError, match="hits: must hold both outcomes"):
        fit_curve([0.2, 0.5, 0.7], hits)


def test_saturated_scores_alone_have_no_curve():
    with pytest.raises(cal.CalibrationInputError, match=r"hits: must hold both outcomes .* got 0 of 0 occurred"):
        fit_curve([1.0, 1.0, 0.0], [1, 0, 1])


def test_what_is_missing_or_too_much_is_said():
    p = cal.Predictions.from_probs([1, 0], [0.3, 0.4])
    with pytest.raises(cal.CalibrationInputError, match="hits: are required"):
        fit_curve([0.1, 0.2])
    with pytest.raises(cal.CalibrationInputError, match="hits: must be left out"):
        fit_curve(p, [1, 0])
    with pytest.raises(cal.CalibrationInputError, match="must count every row once"):
        fit_curve(cal.Predictions.from_probs([1, 0], [0.3, 0.4], sample_weight=[1, 2]))
    with pytest.raises(cal.CalibrationInputError, match="needs one true class per row"):
        fit_curve(cal.Predictions.from_probs([0.5, 0.2], [0.3, 0.4]))
    with pytest.raises(cal.CalibrationInputError, match="predictions: must not be empty"):
        fit_curve(p[:0])
    with pytest.raises(cal.CalibrationInputError, match="name: is no fitted curve"):
        fit_curve([0.1, 0.2, 0.3], [0, 1, 0])["probit"]


def test_a_table_of_fits():
    lines = str(fit_curve(FORTY, FORTY_HITS)).splitlines()
    assert lines[0].split() == ["curve", "b0", "b1", "nll", "AIC", "BIC"]
    assert lines[1].split() == ["log_log_b1", "0.0000", "1.8856", "16.5116", "35.0233", "36.7122"]


def test_perfect_calibration_is_a_candidate_without_coefficients():
    fit = fit_curve(FORTY, FORTY_HITS)["calibrated"]
    assert fit.curve is simulate.IDENTITY
    assert fit.nll == close(oracle.curve_nll("log_log", 0.0, 1.0, FORTY.tolist(), FORTY_HITS.tolist()), 1e-9)
    assert fit.coefficients == 0
    assert fit.aic == fit.bic == 2 * fit.nll


def test_a_sure_forecast_that_was_wrong_rules_perfect_calibration_out():
    x, right, wrong = np.append(FORTY, [0, 1]), np.append(FORTY_HITS, [0, 1]), np.append(FORTY_HITS, [0, 0])
    assert fit_curve(x, right)["calibrated"].nll == fit_curve(FORTY, FORTY_HITS)["calibrated"].nll
    assert "calibrated" not in {fit.name for fit in fit_curve(x, wrong).fits}


# ---- models ----------------------------------------------------------------------------------------------------------


def test_a_fit_of_a_simulated_model_reproduces_its_errors():
    fit = fit_model(simulate.draw(BetaScores(1.2, 0.5), power_curve(1.7), n=3000, seed=5), replicates=100)
    assert fit.reproduces
    assert fit.curves.curve(0.5) == pytest.approx(0.5**1.7, abs=0.05)  # four standard errors
    assert set(fit.simulated) == {"L1", "L2"}
    assert str(fit).endswith("reproduced")


def test_a_fit_that_cannot_follow_the_scores_says_so_and_the_observed_scores_can():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(4000) < 0.5, 0.2 + 0.001 * rng.random(4000), 0.8 + 0.001 * rng.random(4000))  # two humps
    p = cal.Predictions.from_confidence(rng.random(4000) < x**3, x)
    fitted, observed = (fit_model(p, empirical=empirical, replicates=60) for empirical in (False, True))
    assert abs(observed.distances["L2"]) < abs(fitted.distances["L2"])
    assert observed.reproduces
    assert not fitted.reproduces
    assert "NOT reproduced" in str(fitted)


def test_a_fit_depends_on_its_seed_alone():
    p = simulate.draw(UNIFORM, CalibrationCurve("logit_logit", 0, 0.5), n=300)
    assert fit_model(p, replicates=30).simulated["L1"] == fit_model(p, replicates=30).simulated["L1"]
    assert fit_model(p, replicates=30, seed=1).simulated["L1"] != fit_model(p, replicates=30).simulated["L1"]


def test_fewer_than_twenty_samples_are_refused():
    with pytest.raises(cal.CalibrationInputError, match=r"predictions: must be at least 20 .* got 19"):
        fit_model(simulate.draw(UNIFORM, power_curve(2), n=19))
