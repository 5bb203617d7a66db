"""Simulated truth: laws of scores, curves, true errors, what a metric's target is; classes."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant import simulate
from calibrant.simulate import IDENTITY, UNIFORM, BetaScores, CalibrationCurve, EmpiricalScores, power_curve
from calibrant.simulate.calibration_curves import GivenCurve, as_curve, described, parted
from calibrant.simulate.classes import true_rows
from calibrant.simulate.scores import checked_scores
from oracles import simulate as oracle

pytestmark = pytest.mark.slow

FAMILIES = ("log_log", "logflip_logflip", "logit_logit", "logit_logflip")
NETWORKS = {
    # true L2 and L1 errors in points, found by an independent program
    "resnet110_c10": (10.709, 5.837),
    "resnet110_SD_c10": (9.531, 4.887),
    "resnet_wide32_c10": (10.126, 5.624),
    "densenet40_c10": (10.372, 5.900),
    "resnet110_c100": (20.366, 15.306),
    "resnet110_SD_c100": (18.519, 13.071),
    "resnet_wide32_c100": (21.261, 14.750),
    "densenet40_c100": (23.359, 16.437),
    "resnet152_imgnet": (8.605, 6.744),
    "densenet161_imgnet": (5.468, 4.929),
}


def close(value, tolerance=1e-12):
    return pytest.approx(value, rel=0, abs=tolerance)


# ---- curves ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
@given(b0=st.floats(-2, 1), b1=st.floats(-2, 3), s=st.floats(0.001, 0.999))
def test_a_curve_is_its_formula_clipped(name, b0, b1, s):
    plain = min(1.0, max(0.0, oracle.curve_value(name, b0, b1, s)))
    assert float(CalibrationCurve(name, b0, b1)(s)) == close(plain, 1e-12)


@pytest.mark.parametrize("name", FAMILIES[:3])
def test_equal_link_and_transform_with_zero_and_one_is_calibrated_to_the_bit(name):
    s = np.random.default_rng(0).random(1000)
    assert np.array_equal(CalibrationCurve(name)(s), s)


def test_curves_have_their_limits_at_the_ends():
    assert power_curve(2)([0.0, 1.0]).tolist() == [0, 1]
    assert CalibrationCurve("logflip_logflip", -0.24, 0.3)([1.0]).tolist() == [1]
    assert CalibrationCurve("logit_logit", 0.5, 2)([0.0, 1.0]).tolist() == [0, 1]
    assert CalibrationCurve("logit_logflip", 0.0, -0.5)([1.0]).tolist() == [1]
    assert CalibrationCurve("logit_logit", 0.0, 0.0)([0.0, 0.3, 1.0]).tolist() == [0.5, 0.5, 0.5]  # not 0 * infinity


def test_a_curve_above_one_is_clipped():
    assert CalibrationCurve("log_log", 0.5, 0.1)([0.9]).tolist() == [1]
    assert CalibrationCurve("logflip_logflip", 0.5, 0.1)([0.1]).tolist() == [0]


def test_near_one_the_rest_is_not_lost():
    curve = CalibrationCurve("logflip_logflip", 0.0, 0.1)
    assert float(1 - curve.at(np.float64(1.0), np.float64(1e-30))) == close(1e-3, 1e-15)


@pytest.mark.parametrize(
    ("name", "b1", "rises"),
    [("log_log", 1, True), ("log_log", -1, False), ("logflip_logflip", 0.5, True), ("logit_logflip", -1, True),
     ("logit_logflip", 1, False), ("logit_logit", 0, False), ("logit_identity", 10, True)],
)  # fmt: skip
def test_which_curves_rise(name, b1, rises):
    curve = CalibrationCurve(name, -0.5, b1)
    assert curve.rises is rises
    steps = np.diff(curve(np.linspace(0.01, 0.99, 50)))
    assert (steps >= 0).all() and steps.any() if rises else (steps <= 0).all()


def test_the_logistic_curve():
    assert simulate.logistic_curve(10, -5)([0.3, 0.5]).tolist() == close([1 / (1 + math.e**2), 0.5])


def test_any_function_is_a_curve():
    assert as_curve(np.sqrt)([0.25]).tolist() == [0.5]
    assert as_curve(lambda s: 2 * s)([0.75]).tolist() == [1]
    with pytest.raises(cal.CalibrationInputError, match=r"curve: must give one probability per score, got shape \(\)"):
        as_curve(lambda s: 0.5)([0.1, 0.2])
    with pytest.raises(cal.CalibrationInputError, match="curve: must be finite, got nan"):
        as_curve(lambda s: s * np.nan)([0.1])
    with pytest.raises(cal.CalibrationInputError, match="curve: must be a CalibrationCurve or a function"):
        as_curve(3)


@pytest.mark.parametrize("name", ["logit", "probit_log", "log_", "", None, "log_log_b0"])
def test_an_unknown_curve_is_refused(name):
    with pytest.raises(cal.CalibrationInputError, match="name: must be link_transform"):
        CalibrationCurve(name, 0, 1)
    with pytest.raises(cal.CalibrationInputError, match="did you mean 'logit_logit'"):
        parted("logit_logiit")


@pytest.mark.parametrize("bad", [math.nan, math.inf, "1", None, True])
def test_coefficients_are_finite_numbers(bad):
    with pytest.raises(cal.CalibrationInputError, match="b1: must be a finite number"):
        CalibrationCurve("log_log", 0, bad)


def test_a_function_without_a_name_cannot_be_told_from_others():
    with pytest.raises(cal.CalibrationInputError, match="must have a name of its own"):
        described(GivenCurve(lambda s: s))
    assert described(GivenCurve(np.sqrt)) == {"curve": ".sqrt"} or "sqrt" in described(GivenCurve(np.sqrt))["curve"]
    assert described(simulate.Tempered(2.0)) == {"curve": "Tempered", "temperature": 2.0}


# ---- laws of scores --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.7752, 0.0478), (0.3, 0.2), (5.0, 7.0), (3000.0, 500.0)])
def test_beta_moments_by_quadrature(a, b):
    scores = BetaScores(a, b)
    assert scores.mean_of(lambda x, q: x) == close(a / (a + b), 1e-10)  # quadrature
    assert scores.mean_of(lambda x, q: (x - scores.mean) ** 2) == close(scores.sd**2, 1e-10)


def test_draws_follow_the_law():
    rng = np.random.default_rng(0)
    for scores in (BetaScores(1.1, 0.1), UNIFORM, EmpiricalScores([0.1, 0.5, 0.5, 1.0])):
        drawn = scores.draw(rng, (50, 1000))
        assert drawn.shape == (50, 1000)
        mean = scores.mean_of(lambda x, q: x)
        assert drawn.mean() == pytest.approx(mean, abs=5 * drawn.std() / np.sqrt(drawn.size))  # false alarm 1 in 1e6


def test_quantiles_carry_their_complement():
    x, q = BetaScores(2.7752, 0.0478).quantiles(1000)
    assert (np.diff(x) >= 0).all()
    assert x[:10] + q[:10] == pytest.approx(np.ones(10), rel=0, abs=1e-12)
    assert x[-1] == 1
    assert 0 < q[-1] < 1e-30


def test_observed_scores_are_their_own_law():
    scores = EmpiricalScores(np.array([0.9, 0.6, 1.0], np.float32))
    assert scores.mean_of(lambda x, q: q) == close((0.1 + 0.4 + 0) / 3, 1e-7)  # float32
    assert simulate.true_calibration_error(EmpiricalScores([0.5, 1.0]), power_curve(2), p=1) == close(0.125)
    assert set(scores.draw(np.random.default_rng(0), 100)) <= set(scores.values)


@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, "2", True, None])
def test_a_beta_law_has_positive_parameters(bad):
    with pytest.raises(cal.CalibrationInputError, match="b: must be a finite number above 0"):
        BetaScores(1, bad)


@pytest.mark.parametrize("bad", [[], [[0.5]], ["a"], 0.5, [True]])
def test_scores_are_a_list_of_numbers(bad):
    with pytest.raises(cal.CalibrationInputError, match="scores: must"):
        checked_scores(bad, "scores")


@pytest.mark.parametrize("bad", [-0.1, 1.0001, math.nan, math.inf])
def test_scores_lie_between_zero_and_one(bad):
    with pytest.raises(cal.CalibrationInputError, match=r"values: must lie in \[0, 1\].* at row 1"):
        EmpiricalScores([0.5, bad])


# ---- true errors -----------------------------------------------------------------------------------------------------


def test_published_closed_forms():
    for scores, error in (
        (UNIFORM, 0.1825741858),
        (BetaScores(1.1, 0.1), 0.0846254),
        (BetaScores(2.8, 0.05), 0.0423593092),
    ):
        assert simulate.true_calibration_error(scores, power_curve(2)) == close(error, 1e-10)


@settings(max_examples=40)
@given(a=st.floats(0.2, 20), b=st.floats(0.02, 20), d=st.floats(1.05, 8))
def test_quadrature_equals_the_closed_form(a, b, d):
    scores, curve = BetaScores(a, b), power_curve(d)
    from_sums = scores.mean_of(lambda x, q: (x - curve.at(x, q)) ** 2, kink=lambda x, q: x - curve.at(x, q))
    assert math.sqrt(from_sums) == close(simulate.true_calibration_error(scores, curve), 1e-8)  # what is promised


@settings(max_examples=40)
@given(a=st.floats(0.2, 20), b=st.floats(0.02, 20), d=st.floats(1, 8))
def test_an_overconfident_curve_is_off_by_the_difference_of_means(a, b, d):
    moment = math.exp(math.lgamma(a + d) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(a + b + d))
    error = simulate.true_calibration_error(BetaScores(a, b), power_curve(d), p=1)
    assert error == close(a / (a + b) - moment, 1e-8)  # what is promised


@pytest.mark.parametrize("p", [1, 2, 3.5])
@pytest.mark.parametrize(
    ("name", "b0", "b1"), [("logflip_logflip", -0.24, 0.3), ("log_log", 0.2, 1.5), ("logit_logit", -0.9, 0.5)]
)
def test_true_errors_agree_with_midpoint_sums(name, b0, b1, p):
    curve = CalibrationCurve(name, b0, b1)
    plain = oracle.true_error(2.0, 0.3, lambda x, q: float(curve.at(np.float64(x), np.float64(q))), p, strips=4000)
    error = simulate.true_calibration_error(BetaScores(2.0, 0.3), curve, p)
    assert error == close(plain, 2e-6)  # the sums' own error: halving the strips moves them by as much


@pytest.mark.parametrize("name", list(NETWORKS))
def test_published_networks(name):
    fit = simulate.PUBLISHED[name]
    second, first = (100 * simulate.true_calibration_error(fit.scores, fit.curve, p) for p in (2, 1))
    assert (round(second, 3), round(first, 3)) == NETWORKS[name]


def test_a_calibrated_model_has_no_error():
    for scores in (UNIFORM, BetaScores(2.8, 0.05), EmpiricalScores([0.0, 0.3, 1.0])):
        assert simulate.true_calibration_error(scores, IDENTITY) == 0


def test_the_error_near_calibration_keeps_its_digits():
    # s^(1 + e) is off by e s ln s: its mean square over [0, 1] is 2 e^2 / 27
    error = simulate.true_calibration_error(UNIFORM, power_curve(1 + 1e-6))
    assert error == pytest.approx(1e-6 * math.sqrt(2 / 27), rel=1e-5)  # the next term is 1e-6 as large


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("error", [0, 1e-5, 0.02, 0.1, 0.4])
def test_a_curve_with_a_wanted_error(error, p):
    curve = simulate.curve_with_error(UNIFORM, error, p)
    assert simulate.true_calibration_error(UNIFORM, curve, p) == close(error, 1e-10)
    assert curve.b1 >= 1


def test_an_error_that_cannot_be_had_is_refused():
    with pytest.raises(cal.CalibrationInputError, match=r"error: must lie between 0 and 0\.5773"):
        simulate.curve_with_error(UNIFORM, 0.6)
    with pytest.raises(cal.CalibrationInputError, match="p: needs a finite order"):
        simulate.true_calibration_error(UNIFORM, IDENTITY, p=0.5)
    with pytest.raises(cal.CalibrationInputError, match=r"scores: must be a law .* see true_value"):
        simulate.true_calibration_error(simulate.SoftmaxScores(), IDENTITY)


def test_an_integral_that_stays_unknown_is_said_to():
    with pytest.warns(UserWarning, match="an integral over scores is known to"):
        UNIFORM.mean_of(lambda x, q: np.sin(1e9 * x) ** 2 + 1)


# ---- classes ---------------------------------------------------------------------------------------------------------


def test_tempered_rows():
    p = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
    for temperature in (0.5, 2.0):
        plain = [[value ** (1 / temperature) for value in row] for row in p]
        expected = [[value / sum(row) for value in row] for row in plain]
        assert np.allclose(simulate.Tempered(temperature)(p), expected, rtol=0, atol=1e-15)
    assert np.array_equal(simulate.Tempered(1)(p), p)
    assert simulate.Tempered(0)(p).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert np.allclose(simulate.Tempered(math.inf)(p), 1 / 3, rtol=0, atol=1e-15)


def test_softmax_scores_are_probabilities_that_a_spread_sharpens():
    rng = np.random.default_rng(0)
    flat, sharp = (simulate.SoftmaxScores(5, spread).draw(rng, (3, 400)) for spread in (0.0, 5.0))
    assert np.allclose(flat, 0.2)
    assert sharp.shape == (3, 400, 5)
    assert np.allclose(sharp.sum(axis=2), 1)
    assert sharp.max(axis=2).mean() > 0.8


def test_rows_of_truth_are_checked():
    p = np.full((4, 3), 1 / 3)
    with pytest.raises(cal.CalibrationInputError, match="curve: must be a function of rows"):
        true_rows(IDENTITY, p)
    with pytest.raises(cal.CalibrationInputError, match="curve: must give one row per forecast"):
        true_rows(lambda rows: rows[:, :2], p)
    with pytest.raises(cal.CalibrationInputError, match="curve: must give probabilities that sum to 1"):
        true_rows(lambda rows: rows / 2, p)


# ---- targets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "order"),
    [(cal.ECE, 1), (cal.ADAPTIVE_ECE, 1), (cal.ECE_SWEEP, 1), (cal.RMSCE, 2), (cal.ECE_DEBIASED, 2), (cal.ECE_LB, 1),
     (cal.LabelBinnedError(p=3), 3), (cal.ECE_KDE, 1), (cal.KDEError(order=2), 2), (cal.SMECE, 1),
     (cal.BinnedError(distance=cal.power(3), aggregate=cal.root(3)), 3), (cal.NeighbourError(p=2), 2),
     (cal.BinnedError(distance=cal.power(3), aggregate=cal.root(2)), None),
     (cal.BinnedError(distance=cal.squared), None),
     (cal.MCE, None), (cal.MCS, None), (cal.BRIER, None), (cal.SCE, None), (cal.ECCE_MAD, None),
     (cal.BinnedError(select=cal.confidence_between(0.5, 1)), None)],
)  # fmt: skip
def test_what_a_metric_estimates(metric, order):
    assert simulate.order_of(metric) == order


def test_other_metrics_tend_to_their_own_limit():
    def value(metric):
        limit = simulate.true_value(metric, UNIFORM, power_curve(2))
        assert limit.words == "its limit"
        return limit.value

    # points stand 1e-5 apart; a limit of means is off by their square, one of a maximum by themselves
    assert value(cal.MCS) == close(1 / 2 - 1 / 3, 1e-8)
    assert value(cal.BRIER) == close(1 / 3 - 2 * (1 / 4) + 1 / 3, 1e-8)  # E s^2 - 2 s T + T
    assert value(cal.ECCE_MAD) == close(1 / 6, 1e-5)
    assert value(cal.MCE) == close(7.5 / 15 - (8**3 - 7**3) / (3 * 15**2), 1e-4)  # the middle bin
    assert value(cal.BinnedError(distance=cal.debiased_squared)) == close(
        sum((b + 0.5 - ((b + 1) ** 3 - b**3) / 45) ** 2 for b in range(15)) / 15**3, 1e-8
    )


def test_metrics_of_classes_have_true_values():
    scores, curve = simulate.SoftmaxScores(4, 2.0), simulate.Tempered(2.0)
    values = {
        name: simulate.true_value(cal.RECIPES[name], scores, curve)
        for name in ("ECE", "SCE", "ACE", "TACE", "FULL_ECE")
    }
    values["TOP2"] = simulate.true_value(cal.BinnedError(lens=cal.TopK(2), binning=cal.KDTree()), scores, curve)
    values["DEBIASED"] = simulate.true_value(cal.ECE_DEBIASED, scores, curve)
    assert {target.words for target in values.values()} == {"its limit"}
    big = simulate.draw(scores, curve, n=60_000, seed=3)
    for name, metric in {**cal.RECIPES, "TOP2": cal.BinnedError(lens=cal.TopK(2), binning=cal.KDTree()),
                         "DEBIASED": cal.ECE_DEBIASED}.items():  # fmt: skip
        if name in values:  # both from some 50,000 rows: 2 deviations of a mean, and the bins' own noise
            assert metric(big).value == pytest.approx(values[name].value, abs=0.006)


def test_a_calibrated_model_of_classes_is_off_by_nothing():
    scores = simulate.SoftmaxScores(3, 2.0)
    for metric in (cal.ECE, cal.SCE, cal.ACE, cal.FULL_ECE):
        assert simulate.true_value(metric, scores, simulate.Tempered(1)).value == close(0)


def test_a_metric_that_refuses_soft_labels_is_asked_with_drawn_ones():
    scores, curve = simulate.SoftmaxScores(3, 2.0), simulate.Tempered(2.0)
    limit = simulate.true_value(cal.WSECE, scores, curve).value
    again = cal.WSECE(simulate.draw(scores, curve, n=50_000, seed=1)).value
    assert limit == pytest.approx(again, abs=0.01)  # three deviations of a difference of two such draws


def test_what_no_event_can_be_asked_says_so():
    with pytest.raises(cal.CalibrationInputError, match="is a question about classes"):
        simulate.true_value(cal.SCE, UNIFORM, IDENTITY)
    with pytest.raises(cal.CalibrationInputError, match="scores: must be BetaScores, EmpiricalScores or SoftmaxScores"):
        simulate.true_value(cal.ECE, [0.5], IDENTITY)


# ---- published parameters --------------------------------------------------------------------------------------------


def test_the_published_tables():
    assert list(simulate.PUBLISHED) == list(NETWORKS)
    fit = simulate.PUBLISHED["densenet40_c10"]
    assert (fit.scores, fit.curve) == (BetaScores(1.9824, 0.0397), CalibrationCurve("logit_logflip", 0.0, -0.26))
    assert (fit.observed, fit.simulated) == (0.067, 0.0809)
    for published in simulate.PUBLISHED.values():
        assert len({(row.curve.name, row.terms) for row in published.curves}) == 12
        assert [row.aic for row in published.curves] == sorted(row.aic for row in published.curves)
        assert published.curve.rises
    last = simulate.PUBLISHED["densenet161_imgnet"].curves[-1]
    assert (last.terms, last.aic, last.curve) == ("b0", 26662.65, CalibrationCurve("log_log", -0.27, 0.0))
    with pytest.raises(cal.CalibrationInputError, match=r"is no published fit.*did you mean 'resnet110_c10'"):
        simulate.PUBLISHED["resnet110_c1"]


def test_importing_it_loads_no_scipy():
    code = "import sys, calibrant.simulate; print([n for n in ('scipy', 'matplotlib') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
