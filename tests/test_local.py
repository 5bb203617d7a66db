"""Local calibration: the curves are the loop's, a mirror changes nothing, and the edges are as said."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.errors.local import LocalCalibration, by_count, halves
from calibrant.specification import encoding as specification
from oracles import local
from strategies import events, rows
from toy import P, y

TOY = cal.Predictions.from_probs(y, P, classes=["cat", "dog", "owl"])
HAND = cal.Predictions.from_probs([0, 1, 1, 1], [0.2, 0.2, 0.3, 0.6])
DECAYS = st.sampled_from([0.5, 0.9, 0.99, 1.0])
CELLS = st.sampled_from([1, 7, 20, 100])
QUERIES = [0.0, 0.07, 0.2, 0.25, 1 / 3, 0.5, 0.63, 0.999, 1.0]
seeds = st.integers(0, 2**32 - 1)


def close(value):
    return pytest.approx(value, rel=0, abs=1e-10)


def to_ten_digits(value):
    return pytest.approx(value, rel=0, abs=5e-11)


@given(data=events(), decay=DECAYS, cells=CELLS)
def test_an_event_is_estimated_as_the_loop_does(data, decay, cells):
    p, outcomes = data
    curve = LocalCalibration(decay, cells).fit(cal.Predictions.from_probs(outcomes, p))
    loop = [local.local_calibration(p.tolist(), outcomes.tolist(), query, decay, cells) for query in QUERIES]
    assert curve(QUERIES).tolist() == close(loop)
    assert curve.gap(QUERIES).tolist() == close([found - query for found, query in zip(loop, QUERIES, strict=True)])


@given(data=rows(most=12, classes=st.integers(2, 4)), decay=DECAYS)
def test_classes_are_estimated_as_the_loop_does(data, decay):
    p, labels = data
    curves = LocalCalibration(decay).fit(cal.Predictions.from_probs(labels, p))
    for c in range(p.shape[1]):
        hits = (labels == c).astype(int).tolist()
        loop = [local.local_calibration(p[:, c].tolist(), hits, query, decay) for query in QUERIES]
        assert curves(QUERIES, of=c).tolist() == close(loop)


@given(data=events(), decay=DECAYS, balance=st.sampled_from([halves, by_count]))
def test_forecasts_and_outcomes_in_the_mirror_give_the_curve_in_the_mirror(data, decay, balance):
    p, outcomes = data
    method = LocalCalibration(decay, balance=balance)
    curve = method.fit(cal.Predictions.from_probs(outcomes, p))
    mirrored = method.fit(cal.Predictions.from_probs(1 - outcomes, 1 - p))
    assert mirrored.values[0] == close(1 - curve.values[0, ::-1])


@given(data=rows(), seed=seeds)
def test_order_batches_and_whole_weights_change_no_bit(data, seed):
    p, labels = data
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    method = LocalCalibration()
    whole = cal.Predictions.from_probs(labels, p)
    values = method.fit(whole).values
    assert np.array_equal(method.fit(whole[order]).values, values)
    batches = [whole[part] for part in np.array_split(order, 3)]  # some may be empty
    assert np.array_equal(method.conclude(sum(method.summarise(batch) for batch in batches)).values, values)
    times = rng.integers(1, 4, size=len(labels))
    weighted = method.fit(cal.Predictions.from_probs(labels, p, sample_weight=times))
    assert np.array_equal(weighted.values, method.fit(whole[np.repeat(np.arange(len(labels)), times)]).values)


@given(data=events(), decay=DECAYS)
def test_values_lie_between_the_smallest_and_the_largest_label(data, decay):
    p, outcomes = data
    values = LocalCalibration(decay).fit(cal.Predictions.from_probs(outcomes, p)).values
    assert outcomes.min() - 1e-12 <= values.min() <= values.max() <= outcomes.max() + 1e-12


def test_four_points_worked_by_hand():
    curve = LocalCalibration(decay=0.5).fit(HAND)
    assert curve(0.25) == close(0.75)  # left 1/2, right 1
    assert curve(0.4) == to_ten_digits(0.9995126706)
    left = (1 + 2**10) / (2 + 2**10)  # in units of 2^-20: two points at .2, one of them a hit, and one at .3
    assert curve(0.4) == close((left + 1) / 2)
    assert curve.gap(0.25) == close(0.5)


def test_points_counted_by_weight_worked_by_hand():
    curve = LocalCalibration(decay=0.5, balance=by_count).fit(HAND)
    left, right = 2.0**-20 * np.array([2 + 2**10, 1 + 2**10]), 2.0**-20  # at .4: weights and hits
    assert curve(0.4) == close((left[1] + right) / (left[0] + right))
    at = np.array([2 + 2.0**-10 + 2.0**-40, 1 + 2.0**-10 + 2.0**-40])  # at .2 there are two points, each counted once
    assert curve(0.2) == close(at[1] / at[0])


@given(data=events(), decay=DECAYS)
def test_points_counted_by_weight_are_the_decayed_mean_of_all(data, decay):
    p, outcomes = data
    curve = LocalCalibration(decay, balance=by_count).fit(cal.Predictions.from_probs(outcomes, p))
    for at in (0.0, 0.25, 0.5, 1.0):
        assert curve(at) == close(local.decayed_mean(p.tolist(), outcomes.tolist(), at, decay))


def test_class_zero_of_the_toy_data():
    curves = LocalCalibration().fit(TOY)
    expected = [0.0686325131, 0.5613121444, 0.2773501215, 0.4372590553, 0.9384543432, 0.9807859487]
    for name in (0, "cat", np.int64(0)):
        assert curves([0, 0.2, 0.25, 0.5, 0.8, 1], of=name).tolist() == to_ten_digits(expected)
    assert curves.grid.tolist() == [j / 100 for j in range(101)]
    assert curves.values.shape == (3, 101)
    assert curves(curves.grid, of="dog").tolist() == curves.values[1].tolist()
    assert repr(curves) == "LocalCurves(n=12, 3 classes, 100 cells, decay 0.9)"


def test_between_grid_points_the_curve_is_straight():
    curve = LocalCalibration().fit(HAND)
    assert curve(0.234) == close(0.6 * curve(0.23) + 0.4 * curve(0.24))
    assert curve([[0.1, 0.2], [0.3, 0.4]]).shape == (2, 2)


def test_the_decay_is_per_hundredth_whatever_the_number_of_cells():
    fine, coarse = (LocalCalibration(cells=cells).fit(HAND) for cells in (100, 10))
    assert coarse.values[0] == close(fine.values[0, ::10])


def test_a_side_without_points_is_left_out():
    curve = LocalCalibration().fit(HAND)
    assert curve(1.0) == close(local.decayed_mean([0.2, 0.2, 0.3, 0.6], [0, 1, 1, 1], 1.0, 0.9))
    single = LocalCalibration().fit(cal.Predictions.from_probs([1], [0.4]))
    assert set(single.values[0].tolist()) == {1.0}


def test_no_decay_makes_plain_means():
    curve = LocalCalibration(decay=1).fit(HAND)
    assert curve(0.5) == close((2 / 3 + 1) / 2)
    assert curve(0.0) == close(0.75)


def test_the_strongest_decay_still_knows_the_farthest_point():
    for cells in (1, 100):
        assert LocalCalibration(0.001, cells).fit(cal.Predictions.from_probs([1], [0.0])).values == close(1)


def test_all_equal_forecasts_and_all_correct_outcomes():
    assert LocalCalibration().fit(cal.Predictions.from_probs([1, 0, 1, 1], [0.3] * 4)).values == close(0.75)
    assert LocalCalibration().fit(cal.Predictions.from_probs([1, 1], [0.3, 0.9])).values == close(1)


def test_float32_and_rounded_complements_lie_on_the_grid():
    p = np.array([0.37, 0.29, 0.58, 0.07])
    outcomes = np.array([1, 0, 1, 1])
    double = LocalCalibration(0.5).fit(cal.Predictions.from_probs(outcomes, p)).values
    for copy in (p.astype(np.float32), 1 - (1 - p)):
        single = LocalCalibration(0.5).fit(cal.Predictions.from_probs(outcomes, copy)).values
        assert single[0].tolist() == close(double[0].tolist())


def test_a_subset_is_what_it_selects():
    chosen = LocalCalibration(subset=cal.predicted_in("cat")).fit(TOY)
    alone = LocalCalibration().fit(TOY[P.argmax(axis=1) == 0])
    assert np.array_equal(chosen.values, alone.values)
    assert chosen.about.n == 5


def test_an_empty_subset_is_nan_with_a_note():
    curves = LocalCalibration(subset=cal.confidence_between(0, 0.1)).fit(TOY)
    assert np.isnan(curves.values).all()
    assert np.isnan(curves(0.3, of=1))
    assert curves.notes == ("no samples: the selection is empty",)
    assert LocalCalibration().fit(TOY).notes == ()


def test_the_top_answer_alone_and_soft_labels():
    top = LocalCalibration().fit(cal.Predictions.from_confidence([1, 0], [0.9, 0.6]))
    assert repr(top) == "LocalCurves(n=2, top answer, 100 cells, decay 0.9)"
    soft = LocalCalibration(decay=1).fit(cal.Predictions.from_probs([0.5, 0.25], [0.9, 0.6]))
    assert soft(0.0) == close(0.375)


def test_the_method_is_a_specification():
    method = LocalCalibration(0.8, 50, by_count, cal.predicted_in(1))
    pieces = {"LocalCalibration": LocalCalibration, "by_count": by_count}
    assert specification.decode(specification.encode(method), pieces) == method
    assert hash(method) == hash(LocalCalibration(0.8, 50, by_count, cal.predicted_in(1)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"decay": 0}, r"decay: must lie in \[0.001, 1\], got 0"),
        ({"decay": 1.1}, "decay: must lie in"),
        ({"decay": math.nan}, "decay: must lie in"),
        ({"decay": True}, "decay: must lie in"),
        ({"decay": "0.9"}, "decay: must lie in"),
        ({"cells": 0}, "cells: must be a whole number in 1..10,000, got 0"),
        ({"cells": 10.0}, "cells: must be a whole number"),
        ({"cells": 10_001}, "cells: must be a whole number"),
        ({"cells": True}, "cells: must be a whole number"),
        ({"balance": "count"}, "balance: must be a function .*use halves or by_count"),
        ({"subset": "predicted"}, "subset: must be a selection or None.*predicted_in"),
    ],
)
def test_parameters_without_meaning_are_refused(fields, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        LocalCalibration(**fields)


@pytest.mark.parametrize(
    ("predictions", "query", "message"),
    [
        (TOY, {"p": 0.3}, "of: must be a class, got None; there are: cat, dog, owl"),
        (TOY, {"p": 0.3, "of": 3}, "of: must be a class, got 3"),
        (TOY, {"p": 0.3, "of": "dgo"}, "did you mean 'dog'"),
        (HAND, {"p": 0.3, "of": 0}, "of: must be left out"),
        (HAND, {"p": 1.5}, r"p: must lie in \[0, 1\], got 1.5"),
        (HAND, {"p": [0.5, -0.1]}, r"p: must lie in \[0, 1\], got -0.1 to 0.5"),
        (HAND, {"p": math.nan}, r"p: must lie in \[0, 1\], got nan"),
        (HAND, {"p": "high"}, "p: must hold numbers"),
    ],
)
def test_queries_without_an_answer_are_refused(predictions, query, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        LocalCalibration().fit(predictions)(**query)


def test_fractional_weights_are_refused():
    with pytest.raises(cal.CalibrationInputError, match="LocalCalibration: counts samples, so weights must be whole"):
        LocalCalibration().fit(cal.Predictions.from_probs([1, 0], [0.3, 0.4], sample_weight=[0.5, 1]))
