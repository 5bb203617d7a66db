"""Tests of calibration: library and loop agree, levels hold, and the edges are as said."""

import itertools
import json
import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.errors.cumulative import CumulativeError, kuiper
from calibrant.inference.calibration_tests import excess_variance, whitening
from calibrant.inference.class_totals import ClassTotals
from calibrant.inference.main_question import MainQuestion
from oracles import calibration_tests as plain

REFERENCE = (cal.cox_test, cal.spiegelhalter_test, cal.hosmer_lemeshow_test)
chances = st.floats(0.02, 0.98)
answers = st.lists(st.tuples(chances, st.booleans(), st.integers(1, 4)), min_size=4, max_size=40)


def close(value):
    return pytest.approx(value, rel=1e-7, abs=1e-7)  # a two by two inverse, and statistics rounded to 1e-9


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def event(n, seed, *, curve=lambda z: sigmoid(z), **columns):
    rng = np.random.default_rng([seed, n])
    z = rng.normal(0, 1.5, n)
    return cal.Predictions.from_probs((rng.random(n) < curve(z)).astype(int), sigmoid(z), **columns)


def clustered(n, count, seed):
    """Groups that are about a logit too high or too low, and calibrated on average."""
    rng = np.random.default_rng([seed, n, count])
    group, z = rng.integers(0, count, n), rng.normal(0, 1.5, n)
    by = rng.choice([-1, 1], count)[group] * (sigmoid(z + 1) - sigmoid(z - 1)) / 2
    by = np.clip(by, -np.minimum(sigmoid(z), sigmoid(-z)), np.minimum(sigmoid(z), sigmoid(-z)))
    return cal.Predictions.from_probs((rng.random(n) < sigmoid(z) + by).astype(int), sigmoid(z), group=group)


# Oracles


@given(answers)
def test_statistics_are_those_of_the_loops(rows):
    p, y, w = (list(column) for column in zip(*sorted(rows), strict=True))
    predictions = cal.Predictions.from_probs(np.array(y, int), p, sample_weight=w)
    if max(p) - min(p) > 0.01:
        assert cal.cox_test(predictions).statistic == close(plain.cox(y, p, w))
    if max(abs(1 - 2 * chance) for chance in p) > 0.01:
        assert cal.spiegelhalter_test(predictions).statistic == close(plain.spiegelhalter(y, p, w))
    sample = MainQuestion.of(predictions)
    for masses, count in ((sample.weight, 3), (sample.variances, 10)):
        ends = [0, *(sample.cut(masses, count) + 1).tolist()]
        bins = [range(start, stop) for start, stop in itertools.pairwise(ends)]
        assert len(bins) <= count
        expected = plain.hosmer_lemeshow(y, p, w, bins)
        if count == 3:
            found = cal.hosmer_lemeshow_test(predictions, 3)
            assert (found.statistic, found.df) == (close(expected), len(bins))
    omnibus = cal.calibration_test(predictions, n=3).statistics
    assert omnibus["Hosmer-Lemeshow"] == close(expected)
    assert omnibus["Kolmogorov-Smirnov"] == close(plain.farthest(y, p, w))
    apart = [abs(a - b) for a, b in itertools.permutations(sorted(set(p)), 2)]
    assert omnibus["kernel"] == close(plain.kernel(y, p, w, statistics.median(apart) if apart else 1.0))


def test_a_score_test_worked_by_hand():
    predictions = cal.Predictions.from_probs([1, 1, 1, 0], [0.5, 0.5, 0.8, 0.2])
    logit = math.log(4)
    first, second = 0.5 + 0.5 + 0.2 - 0.2, 0.2 * logit + 0.2 * logit
    assert cal.cox_test(predictions).statistic == close(first**2 / 0.82 + second**2 / (0.32 * logit**2))
    z = (0.2 * -0.6 + -0.2 * 0.6) / math.sqrt(2 * 0.36 * 0.16)
    found = cal.spiegelhalter_test(predictions)
    assert (found.statistic, found.df, found.reference) == (close(z), 1, "z")
    assert found.p_value == close(math.erfc(abs(z) / math.sqrt(2)))
    assert cal.cox_test(predictions).p_value == close(math.exp(-cal.cox_test(predictions).statistic / 2))


def test_scipy_says_the_same_of_the_reference_distributions():
    from scipy import stats

    predictions = event(200, 0)
    found = cal.hosmer_lemeshow_test(predictions, 10)
    assert found.p_value == close(stats.chi2.sf(found.statistic, 10))
    fitted = cal.hosmer_lemeshow_test(predictions, 10, fitted=True)
    assert (fitted.df, fitted.p_value) == (8, close(stats.chi2.sf(found.statistic, 8)))


# Edges


@pytest.mark.parametrize("test", [*REFERENCE, cal.calibration_test])
def test_what_had_no_chance_and_happened_speaks_against_any_calibration(test):
    surprised, right = (cal.Predictions.from_probs(y, [0.0, 0.4, 0.5, 1.0]) for y in ([1, 0, 1, 1], [0, 0, 1, 1]))
    assert test(surprised).p_value <= 0.001
    assert test(right).p_value > 0.2
    assert test(cal.Predictions.from_probs([0, 1], [0.0, 1.0])).p_value == 1
    json.dumps(test(surprised).to_dict(), allow_nan=False)


def test_equal_forecasts_leave_one_thing_to_test():
    predictions = cal.Predictions.from_probs([1, 0, 1, 1], [0.5] * 4)
    cox = cal.cox_test(predictions)
    assert (cox.df, cox.statistic) == (1, close(1.0))
    assert (cal.spiegelhalter_test(predictions).p_value, cal.hosmer_lemeshow_test(predictions).df) == (1, 1)
    assert 0 < cal.calibration_test(predictions, n=19).p_value <= 1


@pytest.mark.parametrize("test", [*REFERENCE, cal.calibration_test])
def test_soft_labels_and_no_rows_are_refused(test):
    with pytest.raises(cal.CalibrationInputError, match="soft labels"):
        test(cal.Predictions.from_probs([0.5, 1.0], [0.4, 0.9]))
    with pytest.raises(cal.CalibrationInputError, match="at least one row"):
        test(event(20, 0)[:0])
    with pytest.raises(cal.CalibrationInputError, match="regoin"):
        test(event(20, 0), groups="regoin")


def test_fitted_forecasts_have_no_groups():
    with pytest.raises(cal.CalibrationInputError, match="fitted"):
        cal.hosmer_lemeshow_test(clustered(50, 10, 0), fitted=True, groups="group")


@pytest.mark.parametrize("test", [*REFERENCE, lambda p, **to: cal.calibration_test(p, n=49, **to)])
def test_the_order_of_rows_changes_nothing(test):
    predictions = clustered(120, 12, 0)
    predictions = cal.Predictions.from_probs(
        predictions.labels,
        predictions.values.round(1),
        sample_weight=np.arange(120) % 3,
        group=predictions.column("group"),
    )
    shuffled = predictions[np.random.default_rng(0).permutation(120)]
    for groups in (None, "group"):
        assert test(predictions, groups=groups).p_value == pytest.approx(
            test(shuffled, groups=groups).p_value, rel=1e-9
        )


def test_a_row_of_weight_0_is_not_there_and_equal_weights_do_not_matter():
    predictions = event(80, 0)
    weighed = cal.Predictions.from_probs(predictions.labels, predictions.values, sample_weight=np.full(80, 3.0))
    kept = cal.Predictions.from_probs(predictions.labels, predictions.values, sample_weight=np.arange(80) < 40)
    for test in (*REFERENCE, cal.calibration_test):
        assert test(weighed).p_value == close(test(predictions).p_value)
        assert test(kept).p_value == close(test(predictions[:40]).p_value)


def test_each_kind_of_forecast_asks_its_main_question():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 60)
    classes = cal.Predictions.from_probs(rng.integers(0, 4, 60), p)
    answers = cal.Predictions.from_confidence(classes.predicted == classes.labels, classes.confidence)
    labels = cal.Predictions.from_multilabel(rng.integers(0, 2, (60, 4)), p)
    pooled = cal.Predictions.from_probs(labels.labels.ravel(), p.ravel())
    for test in (*REFERENCE, cal.calibration_test):
        assert test(labels).p_value == close(test(pooled).p_value)
        assert (test(classes).n, test(labels).n) == (60, 240)
    for test in REFERENCE:
        assert test(classes).p_value == close(test(answers).p_value)
    of_classes, of_answers = (cal.calibration_test(some).p_values for some in (classes, answers))
    assert {name: of_classes[name] for name in of_answers} == of_answers
    assert of_classes.keys() - of_answers.keys() == {"class totals"}


def test_many_forecasts_are_put_into_cells_that_change_little(monkeypatch):
    from calibrant.inference import omnibus

    predictions = event(500, 0)
    exact = cal.calibration_test(predictions, n=99)
    monkeypatch.setattr(omnibus, "MOST_CELLS", 64)
    cells = cal.calibration_test(predictions, n=99)
    assert cells.statistics["kernel"] == pytest.approx(exact.statistics["kernel"], rel=0.1)
    assert {**cells.statistics, "kernel": 0} == {**exact.statistics, "kernel": 0}


def test_a_test_prints_itself_and_becomes_json():
    predictions = event(300, 0, curve=lambda z: sigmoid(z + 1))
    assert str(cal.cox_test(predictions)).startswith("Cox test: chi-squared = ")
    omnibus = cal.calibration_test(predictions, n=99)
    assert str(omnibus) == f"calibration test: p < 0.02, loudest {omnibus.loudest} (n=300, event, 99 redraws)"
    assert json.loads(json.dumps(omnibus.to_dict()))["p_values"][omnibus.loudest] == 0.01
    assert "20 groups" in str(cal.cox_test(clustered(300, 20, 0), groups="group"))


def test_rare_events_are_held_against_redrawn_labels_and_common_ones_against_chi_squared():
    rng = np.random.default_rng(0)
    rare, common = (rng.uniform(low, high, 300) for low, high in ((0.001, 0.01), (0.2, 0.8)))
    for test in REFERENCE:
        for p, redraws in ((rare, 1999), (common, 0)):
            found = test(cal.Predictions.from_probs((rng.random(300) < p).astype(int), p))
            assert found.redraws == redraws
            assert ("redraws" in str(found)) == bool(redraws)
    assert cal.hosmer_lemeshow_test(cal.Predictions.from_probs([0] * 299 + [1], rare), fitted=True).redraws == 0


def test_the_variance_that_decides_about_redraws_is_that_of_the_statistic():
    p = np.array([0.02, 0.05, 0.1, 0.4, 0.7])
    weight = np.array([1.0, 2.0, 1.0, 3.0, 1.0])
    chance, values = [], []
    for outcome in itertools.product([0, 1], repeat=5):
        chance.append(math.prod(q if y else 1 - q for y, q in zip(outcome, p, strict=True)))
        values.append(plain.cox(outcome, p, weight))
    mean = sum(c * v for c, v in zip(chance, values, strict=True))
    variance = sum(c * (v - mean) ** 2 for c, v in zip(chance, values, strict=True))
    sample = MainQuestion.of(cal.Predictions.from_probs([0, 0, 0, 1, 1], p, sample_weight=weight))
    features = np.column_stack([np.ones(5), sample.log_odds])
    white = features @ whitening((features * sample.variances[:, None]).T @ features)
    assert (mean, excess_variance(sample, white)) == (close(2.0), close(variance - 4.0))


def test_p_values_of_redraws_are_those_of_every_outcome():
    p = np.array([0.02, 0.05, 0.1, 0.04])
    seen = cal.cox_test(cal.Predictions.from_probs([0, 1, 0, 0], p))
    every = list(itertools.product([0, 1], repeat=4))
    chances = [math.prod(q if y else 1 - q for y, q in zip(outcome, p, strict=True)) for outcome in every]
    as_large = [plain.cox(outcome, p, [1] * 4) >= seen.statistic - 1e-9 for outcome in every]
    exact = sum(itertools.compress(chances, as_large))
    assert seen.p_value == pytest.approx(exact, abs=4 * math.sqrt(exact / 1999))


# Class totals


def of_classes(n, seed, width=5, shift=0.0, **columns):
    rng = np.random.default_rng([seed, n])
    z = rng.normal(0, 1.5, (n, width))
    truth = z + shift * (np.arange(width) == 1) - np.log(-np.log(rng.random((n, width))))
    return cal.Predictions.from_logits(truth.argmax(axis=1), z, **columns)


def test_class_totals_are_those_of_a_loop():
    weight = np.arange(40) % 3 + 1.0
    predictions = of_classes(40, 0, sample_weight=weight)
    p, y = predictions.probabilities, predictions.labels
    off, covariance = np.zeros(5), np.zeros((5, 5))
    for row, label, w in zip(p, y, weight, strict=True):
        for place in range(5):
            off[place] += w * ((label == place) - row[place])
            for other in range(5):
                covariance[place, other] += w * w * row[place] * ((place == other) - row[other])
    found = cal.calibration_test(predictions, n=9).statistics["class totals"]
    assert found == close(off @ np.linalg.pinv(covariance, rcond=1e-9) @ off)


def test_redrawn_classes_are_as_likely_as_forecast():
    predictions = cal.Predictions.from_probs([0, 2], [[0.5, 0.2, 0.3], [0.1, 0.3, 0.6]], sample_weight=[1, 3])
    totals = ClassTotals.of(predictions, MainQuestion.of(predictions))
    rng = np.random.default_rng(0)
    hits = rng.random((20_000, 2)) < [0.5, 0.6]
    drawn = totals.redrawn(hits, rng) + totals.weight @ totals.chances
    seen, counts = np.unique(drawn.round(6), axis=0, return_counts=True)
    chances = {}
    for first, second in itertools.product(range(3), range(3)):
        key = tuple((np.eye(3)[first] + 3 * np.eye(3)[second]).tolist())
        chances[key] = [0.5, 0.2, 0.3][first] * [0.1, 0.3, 0.6][second]
    assert {tuple(row): count / 20_000 for row, count in zip(seen.tolist(), counts, strict=True)} == pytest.approx(
        chances,
        abs=0.015,  # more than four standard errors
    )


def test_a_shifted_class_is_seen_that_the_likeliest_class_hides():
    data = [of_classes(400, seed, shift=0.7) for seed in range(40)]
    tests = [cal.calibration_test(p, n=99) for p in data]
    assert sum(test.p_value <= 0.05 for test in tests) >= 30
    assert sum(test.loudest == "class totals" for test in tests) >= 25


def test_classes_are_seldom_rejected_in_groups_or_alone():
    data = [of_classes(60, seed, group=np.arange(60) // 2) for seed in range(250)]
    assert rejected(lambda p: cal.calibration_test(p, n=39).p_value, data) <= 24
    assert rejected(lambda p: cal.calibration_test(p, n=39, groups="group").p_value, data) <= 24


# Each label


def of_labels(n, seed, exponents=(1.0, 1.0, 1.0), **columns):
    """Labels that happen as often as their forecasts to these powers."""
    rng = np.random.default_rng([seed, n, 7])
    p = rng.beta(1.2, 2.5, (n, len(exponents)))
    return cal.Predictions.from_multilabel((rng.random(p.shape) < p**exponents).astype(int), p, **columns)


def test_the_statistic_of_labels_is_the_sum_of_the_cox_tests_of_each():
    weight = np.arange(80) % 3 + 1.0
    predictions = of_labels(80, 0, sample_weight=weight)
    p, y = predictions.probabilities, predictions.labels
    total = sum(plain.cox(y[:, label], p[:, label], weight) for label in range(3))
    assert cal.calibration_test(predictions, n=9).statistics["each label"] == close(total)


def test_labels_that_are_off_in_opposite_directions_are_seen():
    tests = [cal.calibration_test(of_labels(400, seed, (1.0, 1.4, 0.75)), n=99) for seed in range(20)]
    assert sum(test.p_value <= 0.07 for test in tests) >= 18
    assert sum(test.loudest == "each label" for test in tests) >= 15


def test_calibrated_labels_are_seldom_rejected_in_groups_or_alone():
    data = [of_labels(60, seed, group=np.arange(60) // 2) for seed in range(250)]
    assert rejected(lambda p: cal.calibration_test(p, n=39).p_value, data) <= 24
    assert rejected(lambda p: cal.calibration_test(p, n=39, groups="group").p_value, data) <= 24


# Levels: at an exact 5 %, more than 24 of 250 come once in 1,000 times


def rejected(test, data):
    return sum(test(predictions) <= 0.05 for predictions in data)


@pytest.mark.parametrize("n", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_calibrated_events_are_seldom_rejected(n):
    data = [event(n, seed) for seed in range(250)]
    assert rejected(lambda p: cal.calibration_test(p, n=99).p_value, data) <= 24


def test_likely_events_and_tied_forecasts_are_seldom_rejected():
    rng = np.random.default_rng(3)
    for forecasts in (rng.beta(8, 0.2, (250, 60)), rng.random((250, 60)).round(1)):
        data = [cal.Predictions.from_probs((rng.random(60) < p).astype(int), p) for p in forecasts]
        assert rejected(lambda p: cal.calibration_test(p, n=99).p_value, data) <= 24


def test_rare_and_likely_events_are_seldom_rejected_in_bins():
    rng = np.random.default_rng(5)
    for forecasts in (rng.beta(8, 0.2, (250, 50)), rng.beta(0.3, 6, (250, 50))):
        data = [cal.Predictions.from_probs((rng.random(50) < p).astype(int), p) for p in forecasts]
        assert rejected(lambda p: cal.hosmer_lemeshow_test(p).p_value, data) <= 24


def test_weighted_rows_are_one_row_each():
    weight = np.random.default_rng(4).integers(1, 6, 200)
    data = [event(200, seed, sample_weight=weight) for seed in range(250)]
    for statistic in (CumulativeError(), CumulativeError(statistic=kuiper)):
        assert rejected(lambda p, metric=statistic: metric(p).details["p_value"], data) <= 24
    for test in REFERENCE:
        assert rejected(lambda p, test=test: test(p).p_value, data) <= 24
    assert rejected(lambda p: cal.consistency(cal.ECE, p, n=19).p_value, data[:100]) <= 13


def test_rows_that_belong_together_are_seldom_rejected():
    data = [clustered(240, 30, seed) for seed in range(150)]  # more than 16 come once in 1,000 times
    assert rejected(lambda p: cal.cox_test(p).p_value, data) > 16  # as if all were independent
    for test in REFERENCE:
        assert rejected(lambda p, test=test: test(p, groups="group").p_value, data) <= 16
    assert rejected(lambda p: cal.calibration_test(p, n=39, groups="group").p_value, data) <= 16
    assert rejected(lambda p: cal.consistency(cal.MCS, p, n=19, groups="group").p_value, data[:100]) <= 13


def test_groups_of_one_row_are_no_groups():
    predictions = event(100, 0, row=np.arange(100))
    alone, grouped = (cal.calibration_test(predictions, n=199, groups=groups) for groups in (None, "row"))
    assert all(grouped.p_values[name] >= p for name, p in alone.p_values.items())
    assert (
        cal.consistency(cal.ECE, predictions, n=99, groups="row").p_value
        >= cal.consistency(cal.ECE, predictions, n=99).p_value
    )


def test_signs_of_groups_need_questions_of_one_coordinate_that_no_label_selects():
    predictions = cal.Predictions.from_probs(
        [0, 1, 1, 0], [[0.8, 0.2], [0.3, 0.7], [0.6, 0.4], [0.9, 0.1]], g=[0, 0, 1, 1]
    )
    for metric, words in ((cal.WSECE, "labels select"), (cal.FULL_ECE, "one coordinate")):
        with pytest.raises(cal.CalibrationInputError, match=words):
            cal.consistency(metric, predictions, n=9, groups="g")
    assert cal.consistency(cal.SCE, predictions, n=9, groups="g").parts.shape == (9, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("curve", "least"),
    [
        (lambda z: sigmoid(0.85 * z), 0.2),
        (lambda z: sigmoid(z + 0.4), 0.8),
        (lambda z: sigmoid(z) + 0.09 * np.sin(4 * np.pi * sigmoid(z)), 0.4),
        (lambda z: sigmoid(z) - 0.17 * (np.abs(sigmoid(z) - 0.7) < 0.1), 0.4),
    ],
    ids=["slope", "shift", "wave", "local"],
)
def test_the_omnibus_sees_slopes_shifts_waves_and_ranges(curve, least):
    # Of 80 data sets: the bounds are two to three standard errors below what 500 show.
    data = [event(500, seed, curve=lambda z: np.clip(curve(z), 0, 1)) for seed in range(80)]
    assert rejected(lambda p: cal.calibration_test(p, n=99).p_value, data) / 80 >= least
