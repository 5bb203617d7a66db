"""Class-wise temperatures: values, the plain loop of the whole procedure, laws, edges and refusals."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.recalibrate.classwise_mcs import (
    GAMMAS,
    ClasswiseMCSTemperatureScaling,
    best_gamma,
    class_scores,
    errors_by_gamma,
    gammas,
    normalised,
    temperatures,
)
from toy import P, Z, y

pytestmark = pytest.mark.slow

FIVE = cal.BinnedError(binning=cal.EqualWidth(5))


def close(value, off=1e-9):
    return pytest.approx(value, rel=0, abs=off)


def drawn(n, k, seed, spread=2.0):
    """Logits and labels that follow them at a temperature of 1.5, each class at least once."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=spread, size=(n, k))
    labels = (z / 1.5 + rng.gumbel(size=z.shape)).argmax(axis=1)
    labels[:k] = np.arange(k)
    return z, labels


def quietly(method, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        return method.fit(*data, **options)


def error_of(fitted, z, labels, n_bins=5):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        return cal.BinnedError(binning=cal.EqualWidth(n_bins))(labels, fitted.predict_proba(z)).value


# ---- the plain loop --------------------------------------------------------------------------------------------------


def softmaxed(row):
    top = max(row)
    raised = [math.exp(value - top) for value in row]
    return [value / sum(raised) for value in raised]


def slope_of_loss(rows, labels, inverse):
    total = 0.0
    for row, label in zip(rows, labels, strict=True):
        p = softmaxed([inverse * value for value in row])
        total += sum(a * b for a, b in zip(p, row, strict=True)) - row[label]
    return total


def temperature_of(rows, labels):
    low, high = 1e-3, 1e3
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if slope_of_loss(rows, labels, middle) < 0 else (low, middle)
    return 1 / low


def answers(rows, divisors):
    """Predicted class and confidence of each row."""
    for row in rows:
        p = softmaxed([value / divisor for value, divisor in zip(row, divisors, strict=True)])
        best = max(range(len(p)), key=lambda k: (p[k], -k))
        yield best, p[best]


def error_and_accuracy(rows, labels, divisors, n_bins):
    gaps, right = [0.0] * n_bins, 0
    for (best, confidence), label in zip(answers(rows, divisors), labels, strict=True):
        cell = next(k for k in range(n_bins) if confidence <= (k + 1) / n_bins or k == n_bins - 1)
        gaps[cell] += confidence - (best == label)
        right += best == label
    return sum(map(abs, gaps)) / len(rows), right / len(rows)


def temperature_by_error(rows, labels):
    """The first of 0.5, 0.51, ..., 1.99 with the smallest ECE in 15 bins."""
    classes, lowest = len(rows[0]), None
    for step in range(50, 200):
        error, _ = error_and_accuracy(rows, labels, [step / 100] * classes, 15)
        if lowest is None or error < lowest[0]:
            lowest = error, step / 100
    return lowest[1]


def procedure(
    rows, labels, n_bins, *, clip_iqr=False, keep_accuracy=False, objective="nll", signed_maximum=False, reach=1
):
    """Temperature, scores, gamma, temperatures and error, step by step."""
    classes = len(rows[0])
    t = temperature_of(rows, labels) if objective == "nll" else temperature_by_error(rows, labels)
    off = [[] for _ in range(classes)]
    for (best, confidence), label in zip(answers(rows, [t] * classes), labels, strict=True):
        off[label].append(confidence - (best == label))
    scores = [sum(each) / len(each) if each else None for each in off]
    if clip_iqr:
        there = sorted(score for score in scores if score is not None)
        q1, q3 = (midpoint(there, share) for share in (0.25, 0.75))
        far = 1.5 * (q3 - q1)
        scores = [None if s is None else min(max(s, q1 - far), q3 + far) for s in scores]
    most = max(score if signed_maximum else abs(score) for score in scores if score is not None)
    u = [(score or 0.0) / most for score in scores]
    lowest = None
    _, before = error_and_accuracy(rows, labels, [t] * classes, n_bins)
    for step in range(-1000 * reach + 1, 1000 * reach):
        gamma = step / 1000
        divisors = [t * (1 + gamma * each) for each in u]
        if min(divisors) <= 0:
            continue
        error, accuracy = error_and_accuracy(rows, labels, divisors, n_bins)
        if keep_accuracy and accuracy < before:
            continue
        if lowest is None or error < lowest[0] - 1e-12:
            lowest = error, gamma, divisors
    return t, u, lowest[1], lowest[2], lowest[0]


def midpoint(ordered, share):
    place = share * (len(ordered) - 1)
    return (ordered[math.floor(place)] + ordered[math.ceil(place)]) / 2


@pytest.mark.parametrize(("clip_iqr", "keep_accuracy"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("n", "k", "n_bins", "seed"), [(25, 3, 5, 0), (30, 4, 15, 1), (12, 2, 10, 2), (30, 6, 7, 3)])
def test_the_whole_procedure_agrees_with_the_plain_loop(n, k, n_bins, seed, clip_iqr, keep_accuracy):
    z, labels = drawn(n, k, seed)
    method = ClasswiseMCSTemperatureScaling(n_bins=n_bins, clip_iqr=clip_iqr, keep_accuracy=keep_accuracy)
    fitted = quietly(method, z, labels)
    t, u, gamma, each, error = procedure(
        z.tolist(), labels.tolist(), n_bins, clip_iqr=clip_iqr, keep_accuracy=keep_accuracy
    )
    assert fitted.temperature_ == close(t)
    assert fitted.scores_.tolist() == close(u, 1e-8)  # the temperature is found to 1e-10, scores are divided
    assert fitted.gamma_ == gamma
    assert fitted.temperatures_.tolist() == close(each, 1e-8)
    assert error_of(fitted, z, labels, n_bins) == close(error, 1e-8)


@pytest.mark.parametrize(
    "options",
    [{"objective": "ece"}, {"signed_maximum": True}, {"reach": 2}, {"signed_maximum": True, "reach": 2}],
    ids=str,
)
@pytest.mark.parametrize(("n", "k", "spread", "seed"), [(30, 3, 2.0, 0), (40, 5, 0.4, 1), (30, 4, 3.0, 5)])
def test_the_options_of_the_authors_program_agree_with_the_plain_loop(n, k, spread, seed, options):
    z, labels = drawn(n, k, seed, spread)
    fitted = quietly(ClasswiseMCSTemperatureScaling(n_bins=10, **options), z, labels)
    t, u, gamma, each, _ = procedure(z.tolist(), labels.tolist(), 10, **options)
    assert fitted.temperature_ == close(t)
    assert fitted.scores_.tolist() == pytest.approx(u, rel=1e-7)  # a small largest score divides what is known to 1e-10
    assert fitted.gamma_ == gamma
    assert fitted.temperatures_.tolist() == pytest.approx(each, rel=1e-6)
    again = cal.recalibrate.from_json(fitted.to_json())
    assert again.temperatures_.tolist() == fitted.temperatures_.tolist()
    assert (fitted.temperatures_ > 0).all()


def test_dividing_by_the_largest_score_turns_signs_where_all_are_under_confident():
    assert normalised(np.array([-0.1, -0.4]), signed_maximum=True).tolist() == [1.0, 4.0]
    assert normalised(np.array([0.0, -0.4]), signed_maximum=True).tolist() == [0.0, 0.0]


def test_a_gamma_that_makes_a_temperature_negative_is_not_chosen():
    errors, accuracies = errors_by_gamma(Z, y, np.ones(12), 1.0, np.array([4.0, 1.0, -1.0]), 5, gammas(2))
    possible = np.abs(gammas(2) - 0.375) < 0.625 - 1e-9  # 1 + 4 gamma > 0, 1 - gamma > 0
    assert np.isfinite(errors).tolist() == possible.tolist()
    assert best_gamma(errors, accuracies, gammas(2)) in gammas(2)[possible]
    assert best_gamma(errors, accuracies, gammas(2), keep_accuracy=True) in gammas(2)[possible]


@pytest.mark.parametrize("options", [{"objective": "mse"}, {"reach": 0}, {"reach": 11}, {"signed_maximum": 1}], ids=str)
def test_options_of_another_kind_are_refused(options):
    with pytest.raises(cal.CalibrationInputError, match=next(iter(options))):
        ClasswiseMCSTemperatureScaling(**options).fit(Z, y)


# ---- values ----------------------------------------------------------------------------------------------------------


def test_twelve_forecasts():
    fitted = ClasswiseMCSTemperatureScaling(n_bins=5).fit(Z, y)
    assert fitted.temperature_ == close(1.1489377003, 1e-10)
    assert fitted.scores_.tolist() == close([0.7606380685540525, 1, -0.18770765560227598], 1e-11)
    assert fitted.gamma_ == -0.306
    assert fitted.temperatures_.tolist() == close([0.8815164198156961, 0.7973627640160739, 1.2149310073718507], 1e-11)
    assert error_of(fitted, Z, y) == close(0.08259793655675284, 1e-11)


def test_the_certificate_tells_that_the_accuracy_changed():
    certificate = ClasswiseMCSTemperatureScaling(n_bins=5).fit(Z, y).certificate_
    assert certificate.accuracy_before == close(8 / 12)
    assert certificate.accuracy_after == close(9 / 12)
    assert certificate.converged
    assert certificate.gradient_norm < 1e-9
    assert certificate.iterations > len(GAMMAS)


def test_columns_are_divided_by_their_temperatures():
    fitted = ClasswiseMCSTemperatureScaling(n_bins=5).fit(Z, y)
    raised = np.exp(Z[:4] / fitted.temperatures_)
    assert fitted.predict_proba(Z[:4]) == close(raised / raised.sum(axis=1, keepdims=True), 1e-14)


def test_scores_are_those_of_the_recipe_after_the_temperature():
    t = 1.3
    raised = np.exp(Z / t)
    wanted = cal.CWMCS(y, raised / raised.sum(axis=1, keepdims=True)).values
    assert class_scores(Z / t, y, np.ones(12)).tolist() == close(list(wanted), 1e-14)


@pytest.mark.parametrize("gamma", [-0.999, -0.306, 0.0, 0.5, 0.999])
def test_errors_are_those_of_the_recipe(gamma):
    u = np.array([0.5, -1.0, 0.25])
    errors, accuracies = errors_by_gamma(Z, y, np.ones(12), 1.2, u, 5)
    there = int(np.flatnonzero(np.isclose(GAMMAS, gamma, rtol=0, atol=1e-9))[0])
    predictions = cal.Predictions.from_logits(y, Z / temperatures(1.2, gamma, u))
    assert errors[there] == close(FIVE(predictions).value, 1e-14)
    assert accuracies[there] == close(cal.ACCURACY(predictions).value, 1e-14)


def test_blocks_of_rows_add_up(monkeypatch):
    z, labels = drawn(97, 4, 0)
    whole = errors_by_gamma(z, labels, np.ones(97), 1.0, np.linspace(-1, 1, 4), 15)
    monkeypatch.setattr("calibrant.recalibrate.classwise_mcs._BLOCK", 160)
    parts = errors_by_gamma(z, labels, np.ones(97), 1.0, np.linspace(-1, 1, 4), 15)
    assert np.array(parts) == close(np.array(whole), 1e-14)


def test_a_confidence_on_an_edge_falls_in_the_bin_below():
    z = np.array([[0.0, 0.0], [np.log(7 / 3), 0.0]])  # confidence .5, right, and .7, wrong: apart in two bins
    errors, _ = errors_by_gamma(z, np.array([0, 1]), np.ones(2), 1.0, np.zeros(2), 2)
    assert set(errors.round(12)) == {0.6}


def test_tied_logits_predict_the_first_class():
    z = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0]])
    _, accuracies = errors_by_gamma(z, np.array([0, 2]), np.ones(2), 1.0, np.zeros(3), 5)
    assert set(accuracies) == {0.5}


# ---- which gamma -----------------------------------------------------------------------------------------------------


def test_gamma_runs_through_the_open_interval_in_thousandths():
    assert len(GAMMAS) == 1999
    assert (GAMMAS[0], GAMMAS[999], GAMMAS[-1]) == (-0.999, 0.0, 0.999)


def test_the_first_of_equally_small_errors_counts():
    errors = np.full(1999, 0.5)
    errors[[100, 200]] = 0.25
    assert best_gamma(errors, np.ones(1999)) == GAMMAS[100]
    errors[100] += 1e-15  # what the order of rows may add
    assert best_gamma(errors, np.ones(1999)) == GAMMAS[100]
    errors[200] -= 1e-9
    assert best_gamma(errors, np.ones(1999)) == GAMMAS[200]


def test_gamma_is_zero_where_none_is_better():
    assert best_gamma(np.full(1999, 0.5), np.ones(1999)) == 0.0


def test_a_gamma_that_lowers_the_accuracy_can_be_left_out():
    errors, accuracies = np.full(1999, 0.5), np.full(1999, 0.75)
    errors[100], accuracies[100] = 0.1, 0.70
    errors[300], accuracies[300] = 0.2, 0.80
    assert best_gamma(errors, accuracies) == GAMMAS[100]
    assert best_gamma(errors, accuracies, keep_accuracy=True) == GAMMAS[300]


def test_the_accuracy_is_kept_on_rows_where_it_would_fall():
    z, labels = drawn(60, 4, 2)
    free = quietly(ClasswiseMCSTemperatureScaling(), z, labels).certificate_
    kept = quietly(ClasswiseMCSTemperatureScaling(keep_accuracy=True), z, labels).certificate_
    assert free.accuracy_after < free.accuracy_before
    assert kept.accuracy_after >= kept.accuracy_before


@given(u=st.floats(-1, 1), t=st.floats(1e-3, 1e3))
def test_no_temperature_is_zero_or_negative(u, t):
    assert all(temperatures(t, gamma, np.array([u]))[0] >= 0.0009 * t for gamma in GAMMAS[[0, 1, 999, -2, -1]])


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 8))
def test_normalised_scores_lie_within_one(seed, k):
    scores = np.random.default_rng(seed).normal(size=k)
    assert np.abs(normalised(scores)).max() == np.abs(normalised(scores, clip_iqr=True)).max() == 1.0
    assert np.array_equal(np.sign(normalised(scores)), np.sign(scores))


# ---- scores ----------------------------------------------------------------------------------------------------------


def test_all_negative_scores_keep_their_signs():
    assert normalised(np.array([-0.1, -0.4])).tolist() == [-0.25, -1.0]


def test_outlying_scores_are_brought_back():
    scores = np.array([0.0, 0.1, 0.2, 0.3, 5.0])  # quartiles .1 and .3: no more than .3 + 1.5 * .2 = .6
    assert normalised(scores, clip_iqr=True).tolist() == close([0, 1 / 6, 1 / 3, 1 / 2, 1])
    assert normalised(scores).tolist() == close([0, 0.02, 0.04, 0.06, 1])


def test_quartiles_are_midpoints_of_the_classes_that_are_there():
    scores = np.array([0.0, np.nan, 1.0, 2.0, 3.0])  # quartiles at .75 and 2.25 between ranks: .5 and 2.5
    assert normalised(scores, clip_iqr=True).tolist() == close([0, 0, 1 / 3, 2 / 3, 1])


def test_a_class_without_rows_keeps_the_common_temperature():
    z, labels = drawn(40, 4, 5)
    fitted = quietly(ClasswiseMCSTemperatureScaling(), z, np.where(labels == 3, 0, labels))
    assert fitted.scores_[3] == 0.0
    assert fitted.temperatures_[3] == fitted.temperature_
    assert np.abs(fitted.scores_).max() == 1.0


def test_a_class_of_rows_without_weight_is_a_class_without_rows():
    z, labels = drawn(40, 4, 5)
    weight = (labels != 3).astype(float)
    weighted = quietly(ClasswiseMCSTemperatureScaling(), z, labels, sample_weight=weight)
    left = quietly(ClasswiseMCSTemperatureScaling(), z[labels != 3], labels[labels != 3])
    assert weighted.scores_[3] == 0.0
    assert weighted.gamma_ == left.gamma_
    assert weighted.temperatures_ == close(left.temperatures_)


def test_scores_that_are_all_zero_leave_one_temperature():
    assert normalised(np.array([0.0, 0.0, np.nan])).tolist() == [0.0, 0.0, 0.0]
    assert normalised(np.array([1e-9, -1e-8])).tolist() == [0.0, 0.0]  # the temperature is no better known
    z = np.array([[9.0, 0.0], [8.0, 0.0], [0.0, 9.0]])
    with pytest.warns(cal.CalibrationWarning, match="temperature ended at its lower bound"):
        fitted = ClasswiseMCSTemperatureScaling().fit(z, [0, 0, 1])  # all right and, at that temperature, all sure
    assert fitted.scores_.tolist() == [0.0, 0.0]
    assert fitted.gamma_ == 0.0
    assert fitted.temperatures_.tolist() == [fitted.temperature_] * 2
    assert fitted.certificate_.at_bound == ("temperature",)


def test_a_gamma_at_the_end_is_warned_of():
    method = ClasswiseMCSTemperatureScaling(n_bins=1)
    z = np.array([[0.1, 0.0], [0.2, 0.0], [0.3, 0.0], [0.0, 0.1], [0.0, 0.2], [0.0, -0.1]])
    with pytest.warns(cal.CalibrationWarning, match=r"gamma ended at .*0\.999, the end of what is tried") as warned:
        fitted = method.fit(z, [0, 0, 0, 1, 1, 1])
    assert len(warned) == 1
    assert "gamma" in fitted.certificate_.at_bound


# ---- laws ------------------------------------------------------------------------------------------------------------


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 5))
def test_whole_weights_are_repetition(seed, k):
    z, labels = drawn(25, k, seed)
    times = np.random.default_rng(seed).integers(0, 4, len(labels))
    times[:k] = np.maximum(times[:k], 1)
    weighted = quietly(ClasswiseMCSTemperatureScaling(), z, labels, sample_weight=times)
    repeated = quietly(ClasswiseMCSTemperatureScaling(), np.repeat(z, times, axis=0), np.repeat(labels, times))
    assert weighted.gamma_ == repeated.gamma_
    assert weighted.temperatures_ == close(repeated.temperatures_)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(seed):
    z, labels = drawn(40, 3, seed)
    order = np.random.default_rng(seed).permutation(len(labels))
    first, other = (quietly(ClasswiseMCSTemperatureScaling(), z[rows], labels[rows]) for rows in (slice(None), order))
    assert first.gamma_ == other.gamma_
    assert first.temperatures_ == close(other.temperatures_)


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32 - 1))
def test_renamed_classes_have_renamed_temperatures(seed):
    z, labels = drawn(40, 4, seed)
    turn = np.random.default_rng(seed).permutation(4)
    first = quietly(ClasswiseMCSTemperatureScaling(), z, labels)
    other = quietly(ClasswiseMCSTemperatureScaling(), z[:, turn], np.argsort(turn)[labels])
    assert other.gamma_ == first.gamma_
    assert other.temperatures_ == close(first.temperatures_[turn])


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_error_is_no_larger_than_that_of_one_temperature(seed):
    z, labels = drawn(50, 4, seed)
    for keep in (False, True):
        fitted = quietly(ClasswiseMCSTemperatureScaling(keep_accuracy=keep), z, labels)
        alone = cal.ECE(cal.Predictions.from_logits(labels, z / fitted.temperature_)).value
        assert error_of(fitted, z, labels, 15) <= alone + 1e-12


def test_an_event_is_two_columns():
    rng = np.random.default_rng(0)
    z = rng.normal(size=80) * 3
    labels = (rng.random(80) < 1 / (1 + np.exp(-z / 2))).astype(int)
    event = quietly(ClasswiseMCSTemperatureScaling(), z, labels)
    columns = quietly(ClasswiseMCSTemperatureScaling(), np.column_stack([np.zeros(80), z]), labels)
    assert event.temperatures_.tolist() == columns.temperatures_.tolist()
    assert event.predict_proba(z[:9]) == close(1 / (1 + np.exp(-z[:9] / event.temperatures_[1])), 1e-14)
    p = 1 / (1 + np.exp(-z))
    event = quietly(ClasswiseMCSTemperatureScaling("probabilities"), p, labels)
    columns = quietly(ClasswiseMCSTemperatureScaling("probabilities"), np.column_stack([1 - p, p]), labels)
    assert event.predict_proba(p[:9]) == close(columns.predict_proba(np.column_stack([1 - p, p])[:9])[:, 1], 1e-12)


def test_float32_is_computed_in_float64():
    z = Z.astype(np.float32)
    single, double = (quietly(ClasswiseMCSTemperatureScaling(n_bins=5), kind, y) for kind in (z, z.astype(float)))
    assert single.temperatures_.tolist() == double.temperatures_.tolist()
    assert np.array_equal(single.predict_proba(z[:3]), double.predict_proba(z[:3].astype(float)))


def test_probabilities_are_logits_by_their_logarithms():
    by_logs = quietly(ClasswiseMCSTemperatureScaling(n_bins=5), np.log(P), y)
    by_probabilities = quietly(ClasswiseMCSTemperatureScaling("probabilities", n_bins=5), P, y)
    assert by_probabilities.temperatures_.tolist() == by_logs.temperatures_.tolist()


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bins", [0, 1001, 2.0, True, "5"], ids=repr)
def test_a_number_of_bins_is_whole_and_not_too_large(n_bins):
    with pytest.raises(cal.CalibrationInputError, match=r"n_bins: must be a whole number in 1\.\.1,000, got"):
        ClasswiseMCSTemperatureScaling(n_bins=n_bins)


@pytest.mark.parametrize("option", ["clip_iqr", "keep_accuracy"])
def test_switches_are_true_or_false(option):
    with pytest.raises(cal.CalibrationInputError, match=f"{option}: must be True or False, got 'yes'"):
        ClasswiseMCSTemperatureScaling(**{option: "yes"})
