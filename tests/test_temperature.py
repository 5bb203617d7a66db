"""Temperature scaling: the optimum whatever the scale, bounds said aloud, and the numbers of the field."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import calibrant as cal
from calibrant.recalibrate.temperature import COLDEST, GRID, HOTTEST, best_on_grid, fit_temperature
from toy import Z, y


def log_loss(logits, labels, temperature):
    """The plain loop: mean of log-sum-exp less the true logit."""
    scaled = logits.astype(np.float64) / temperature
    top = scaled.max(axis=1)
    return np.mean(np.log(np.exp(scaled - top[:, None]).sum(axis=1)) + top - scaled[np.arange(len(labels)), labels])


def drawn(n, classes, temperature, seed, dtype=np.float64):
    """Logits and labels whose true temperature is known."""
    rng = np.random.default_rng(seed)
    calm = rng.normal(scale=2.0, size=(n, classes))
    labels = (calm + rng.gumbel(size=calm.shape)).argmax(axis=1)
    return (calm * temperature).astype(dtype), labels


def test_twelve_rows_have_the_published_temperature():
    fitted = cal.TemperatureScaling().fit(Z, y)
    assert fitted.temperature_ == pytest.approx(1.1489377003113457, rel=1e-11)
    assert fitted.certificate_.log_loss_before == pytest.approx(0.5705916977292435, abs=1e-12)
    assert fitted.certificate_.log_loss_after == pytest.approx(0.5666264042787762, abs=1e-12)
    assert fitted.certificate_.converged
    assert fitted.certificate_.gradient_norm < 1e-10


def test_twelve_rows_have_the_published_temperature_of_least_ece():
    fitted = cal.TemperatureScaling(objective="ece").fit(Z, y)
    assert fitted.temperature_ == 1.90
    after = cal.Predictions.from_logits(y, Z / 1.90)
    assert cal.ECE(after).value == pytest.approx(0.1608251285371676, abs=1e-12)
    assert np.isnan(fitted.certificate_.gradient_norm)


def test_the_grid_keeps_the_first_of_equal_errors():
    logits = np.array([[1.0, 0.0], [0.0, 1.0]])
    errors = [cal.ECE(cal.Predictions.from_logits([0, 1], logits / t)).value for t in GRID]
    assert best_on_grid(logits, np.array([0, 1]), np.ones(2)) == GRID[int(np.argmin(errors))]
    assert best_on_grid(np.zeros((2, 2)), np.array([0, 1]), np.ones(2)) == GRID[0]  # every temperature is as good


def test_the_end_of_the_grid_is_said_aloud():
    logits, labels = drawn(2000, 5, 4.0, seed=1)
    with pytest.warns(cal.CalibrationWarning, match="at the end of its grid, 1.99"):
        fitted = cal.TemperatureScaling(objective="ece").fit(logits, labels)
    assert fitted.certificate_.at_bound == ("temperature",)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("temperature", [0.02, 0.1, 1.0, 7.0, 19.85, 50.0])
@pytest.mark.parametrize(("n", "classes"), [(50, 2), (200, 3), (3000, 10), (400, 1000), (50_000, 5)])
def test_the_optimum_is_found_whatever_the_scale(temperature, n, classes, dtype):
    logits, labels = drawn(n, classes, temperature, seed=n + classes, dtype=dtype)
    fitted = cal.TemperatureScaling().fit(logits, labels)
    best = minimize_scalar(lambda b: log_loss(logits, labels, np.exp(-b)), bounds=(-7, 7), method="bounded",
                           options={"xatol": 1e-10})  # fmt: skip
    assert log_loss(logits, labels, fitted.temperature_) <= best.fun + 1e-9
    assert fitted.certificate_.converged
    assert fitted.certificate_.log_loss_after == pytest.approx(best.fun, abs=1e-6)


@pytest.mark.slow
def test_a_large_float32_matrix_is_fitted_in_float32_to_a_millionth():
    logits, labels = drawn(6000, 1000, 3.0, seed=1, dtype=np.float32)
    assert logits.size > 1 << 22
    fitted = cal.TemperatureScaling().fit(logits, labels)
    exact = cal.TemperatureScaling().fit(logits.astype(np.float64), labels)
    assert fitted.temperature_ == pytest.approx(exact.temperature_, rel=1e-5)  # what float32 exponentials allow
    loss = log_loss(logits, labels, fitted.temperature_) - log_loss(logits, labels, exact.temperature_)
    assert abs(loss) < 1e-9


@pytest.mark.parametrize("labels", [[0, 1], [0, 0]])
def test_rows_that_are_all_right_end_at_the_lower_bound_and_say_so(labels):
    logits = [[2.0, 0.0], [0.0, 1.0]] if labels == [0, 1] else [[2.0, 0.0], [3.0, 0.0]]
    with pytest.warns(cal.CalibrationWarning, match="lower bound 0.001: the true class leads in every row"):
        fitted = cal.TemperatureScaling().fit(logits, labels)
    assert fitted.temperature_ == COLDEST
    assert fitted.certificate_.at_bound == ("temperature",)
    assert not fitted.certificate_.converged


def test_rows_no_better_than_chance_end_at_the_upper_bound_and_say_so():
    with pytest.warns(cal.CalibrationWarning, match="upper bound 1000"):
        fitted = cal.TemperatureScaling().fit([[2.0, 0.0], [3.0, 0.0]], [1, 1])
    assert fitted.temperature_ == HOTTEST


def test_equal_logits_keep_a_temperature_of_one():
    fitted = cal.TemperatureScaling().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    assert fitted.temperature_ == 1
    assert fitted.predict_proba([[4.0, 4.0]]).tolist() == [[0.5, 0.5]]


def test_a_scale_beyond_the_bounds_is_called_that():
    logits, labels = drawn(500, 3, 1.0, seed=4)
    for scale, side in ((1e5, "upper"), (1e-5, "lower")):
        with pytest.warns(cal.CalibrationWarning, match=f"{side} bound .*: the scale of the logits lies outside"):
            cal.TemperatureScaling().fit(scale * logits, labels)


def test_logits_whose_squares_would_overflow_are_refused():
    with pytest.raises(cal.CalibrationInputError, match=r"X: must hold logits below 1e\+100 in size, got 1e\+200"):
        cal.TemperatureScaling().fit([[1e200, 0.0], [0.0, 1.0]], [0, 1])


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(5, 60))
@settings(max_examples=30)
def test_neither_order_nor_a_constant_nor_the_scale_matters(seed, classes, n):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, classes)) * 3
    labels = rng.integers(0, classes, n)
    weight = rng.integers(1, 4, n).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        temperature, ending = fit_temperature(logits, labels, weight)
        order = rng.permutation(n)
        again, _ = fit_temperature(logits[order] + rng.normal(size=(n, 1)), labels[order], weight[order])
        repeated, _ = fit_temperature(
            np.repeat(logits, weight.astype(int), axis=0),
            np.repeat(labels, weight.astype(int)),
            np.ones(int(weight.sum())),
        )
        wider, wide = fit_temperature(logits * 8, labels, weight)
    assert again == pytest.approx(temperature, rel=1e-7)
    assert repeated == pytest.approx(temperature, rel=1e-7)
    if not (ending.at_bound or wide.at_bound):
        assert wider == pytest.approx(8 * temperature, rel=1e-7)


def test_an_event_is_two_columns():
    rng = np.random.default_rng(3)
    z = rng.normal(size=300) * 4
    happened = rng.random(300) < 1 / (1 + np.exp(-z / 2))
    event = cal.TemperatureScaling().fit(z, happened)
    columns = cal.TemperatureScaling().fit(np.column_stack([np.zeros(300), z]), happened.astype(int))
    assert event.temperature_ == pytest.approx(columns.temperature_, rel=1e-12)
    assert event.predict_proba(z) == pytest.approx(columns.predict_proba(np.column_stack([np.zeros(300), z]))[:, 1])


def test_the_likeliest_class_stays():
    logits, labels = drawn(500, 7, 5.0, seed=2)
    fitted = cal.TemperatureScaling().fit(logits, labels)
    assert (fitted.predict(logits) == logits.argmax(axis=1)).all()
    assert fitted.certificate_.accuracy_before == fitted.certificate_.accuracy_after


def test_probabilities_are_scaled_through_their_logarithms():
    logits, labels = drawn(400, 4, 2.0, seed=5)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    by_logits = cal.TemperatureScaling().fit(logits, labels)
    by_probs = cal.TemperatureScaling(input="probabilities").fit(p, labels)
    assert by_probs.temperature_ == pytest.approx(by_logits.temperature_, rel=1e-6)  # p below 1e-12 is raised to it
    with pytest.raises(cal.CalibrationInputError, match=r"X: must lie in \[0, 1\]"):
        cal.TemperatureScaling(input="probabilities").fit(logits, labels)


@pytest.mark.parametrize("option", [{"input": "scores"}, {"objective": "brier"}, {"input": None}])
def test_options_that_cannot_be_are_refused(option):
    with pytest.raises(cal.CalibrationInputError, match=f"{next(iter(option))}: must be"):
        cal.TemperatureScaling(**option)
