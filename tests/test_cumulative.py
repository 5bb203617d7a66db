"""The cumulative error: library and loop agree, p-values keep their level, and the edges are as said."""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.errors.cumulative import (
    CumulativeError,
    brownian_range,
    brownian_reach,
    cumulative_path,
    ks,
    kuiper,
)
from oracles import cumulative, lenses
from strategies import events, rows
from toy import P, y

STATISTICS = st.sampled_from([(ks, cumulative.ks), (kuiper, cumulative.kuiper)])


def close(value):
    return pytest.approx(value, rel=0, abs=1e-12)


def path(truth, forecast):
    (ladder,) = CumulativeError().summarise(cal.Predictions.from_probs(truth, forecast)).ladders()
    return cumulative_path(ladder)


@given(data=events(), statistics=STATISTICS)
def test_an_event_is_followed_as_the_loop_does(data, statistics):
    p, outcomes = data
    ours, theirs = statistics
    result = CumulativeError(statistic=ours)(outcomes, p)
    assert path(outcomes, p).tolist() == close(cumulative.path(p.tolist(), outcomes.tolist()))
    assert result.value == close(theirs(p.tolist(), outcomes.tolist()))


@given(data=events())
@example(data=(np.array([1 - 2.0**-52]), np.array([1])))
@example(data=(np.full(40, 1e-12), np.arange(40) == 0))
def test_p_values_are_those_of_the_loop(data):
    p, outcomes = data
    sigma = cumulative.sigma(p.tolist())
    assume(sigma > 0)
    missed = cumulative.shortfall(p.tolist())
    farthest, apart = (f(p.tolist(), outcomes.tolist()) for f in (cumulative.ks, cumulative.kuiper))
    found = CumulativeError()(outcomes, p).details["p_value"]
    reach = (farthest + missed) / sigma
    tail = 1 - cumulative.stays_within(reach) if reach > 0.01 and farthest > 0 else 1
    assert found == pytest.approx(tail, rel=0, abs=1e-9)  # the path is known to 1e-16, over sigma to 1e-12
    found = CumulativeError(statistic=kuiper)(outcomes, p).details["p_value"]
    assert found == pytest.approx(brownian_range((apart + 2 * missed) / sigma) if apart else 1, rel=0, abs=1e-9)


@given(data=rows(classes=st.integers(2, 5)), statistics=STATISTICS)
def test_top_labels_and_classes_are_followed_as_the_loop_does(data, statistics):
    p, labels = data
    ours, theirs = statistics
    assert CumulativeError(statistic=ours)(labels, p).value == close(
        theirs(*lenses.top_label(p.tolist(), labels.tolist()))
    )
    classwise = CumulativeError(lens=cal.Classwise(), statistic=ours)(labels, p)
    each = [theirs(p[:, c].tolist(), (labels == c).astype(int).tolist()) for c in range(p.shape[1])]
    assert classwise.values == close(each)
    assert classwise.value == close(np.mean(each))
    assert classwise.details == {}


@given(data=events())
def test_inequalities(data):
    p, outcomes = data
    farthest, apart = (CumulativeError(statistic=statistic)(outcomes, p).value for statistic in (ks, kuiper))
    assert farthest <= apart <= 2 * farthest
    assert farthest >= abs(cal.MCS(outcomes, p).value) - 1e-15


@given(data=events())
def test_the_complement_of_an_event_has_the_same_range(data):
    p, outcomes = data[0].round(6), data[1]
    metric = CumulativeError(statistic=kuiper)
    assert metric(1 - outcomes, 1 - p).value == close(metric(outcomes, p).value)


def test_four_forecasts_worked_by_hand():
    outcomes, p = [0, 0, 1, 1], [0.2, 0.4, 0.4, 0.6]
    assert path(outcomes, p).tolist() == close([0, -0.05, 0, 0.1])
    result = CumulativeError()(outcomes, p)
    missed = 0.5826 * (0.16**1.5 + 3 * 0.24**1.5) / (0.16 + 3 * 0.24)
    assert result.value == close(0.1)
    assert CumulativeError(statistic=kuiper)(outcomes, p).value == close(0.15)
    assert result.details["p_value"] == close(brownian_reach((0.4 + missed) / math.sqrt(0.16 + 3 * 0.24)))
    assert str(result) == "ECCE_MAD 0.1000 (n=4, event, ks of cumulative differences)"
    assert result.bins is None


def test_tied_forecasts_count_at_once():
    assert path([1, 0], [0.5, 0.5]).tolist() == [0, 0]
    assert CumulativeError()([1, 0], [0.5, 0.5]).value == 0
    assert CumulativeError()([1, 0], [0.5, 0.5]).details["p_value"] == 1


def test_the_path_starts_at_zero():
    assert CumulativeError(statistic=kuiper)([1], [0.25]).value == 0.75
    assert CumulativeError(statistic=kuiper)([1, 1], [0.25, 0.5]).value == 0.625


def test_all_correct_and_sure_is_no_gap_and_one_surprise_is_impossible():
    for statistic in (ks, kuiper):
        metric = CumulativeError(statistic=statistic)
        sure, surprised = metric([0, 1, 1], [0.0, 1.0, 1.0]), metric([0, 1, 0], [0.0, 1.0, 1.0])
        assert (sure.value, sure.details["p_value"]) == (0, 1)
        assert (surprised.value, surprised.details["p_value"]) == (1 / 3, 0)


def test_soft_labels_are_followed_too():
    assert path([0.5, 0.75], [0.25, 0.5]).tolist() == [0, 0.125, 0.25]


# ---- Brownian motion -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.15, 0.3, 0.6, 0.999, 1, 1.5, 2, 2.5, 4, 6])
def test_the_reach_is_that_of_the_heat_equation(x):
    assert brownian_reach(x) == close(1 - cumulative.stays_within(x))


@pytest.mark.parametrize("x", [0.5, 1, 1.5, 1.999, 2, 2.5, 3, 5])
def test_the_range_has_the_density_of_feller(x):
    assert brownian_range(x) == pytest.approx(cumulative.range_exceeds(x), rel=0, abs=1e-10)  # by Simpson's rule


@pytest.mark.parametrize(
    ("tail", "mean", "square"),
    [
        (brownian_reach, math.sqrt(math.pi / 2), 2 * 0.915965594177219),  # Catalan's constant
        (brownian_range, 2 * math.sqrt(2 / math.pi), 4 * math.log(2)),
    ],
)
def test_the_moments_are_the_known_ones(tail, mean, square):
    x = np.linspace(0, 12, 6001)
    tails = np.array([tail(point) for point in x])
    assert np.trapezoid(tails, x) == pytest.approx(mean, abs=1e-6)  # by the trapezoidal rule
    assert np.trapezoid(2 * x * tails, x) == pytest.approx(square, abs=1e-6)


@pytest.mark.parametrize("tail", [brownian_reach, brownian_range])
def test_tails_fall_from_one_to_nothing_without_a_seam(tail):
    x = np.concatenate([np.linspace(0, 5, 2001), [10, 20, 40, math.inf]])
    tails = np.array([tail(point) for point in x])
    assert (np.diff(tails) <= 1e-15).all()
    assert tails[0] == 1
    assert tails[-1] == 0
    assert 0 < tail(30) < 1e-190  # no 1 - 1: the smallest p-values are still numbers
    for seam in (0.1, 1, 2):
        assert tail(seam) == close(tail(seam - 1e-13))


def test_critical_values_of_the_reach():
    for level, x in ((0.1, 1.959964), (0.05, 2.241403), (0.01, 2.807034)):
        assert brownian_reach(x) == pytest.approx(level, abs=1e-6)  # nearly the normal quantile at level / 4


def test_simulated_walks_reach_as_far():
    """5000 walks of 2000 steps, seed 7; four standard errors: one false alarm in 16,000 for each of six."""
    steps = np.random.default_rng(7).choice(np.array([-1, 1], np.int8), size=(5000, 2000))
    walks = np.cumsum(steps, axis=1, dtype=np.int32) / math.sqrt(2000)
    top, bottom = np.maximum(walks.max(axis=1), 0), np.minimum(walks.min(axis=1), 0)
    for tail, far in ((brownian_reach, np.maximum(top, -bottom)), (brownian_range, top - bottom)):
        for x in (1.2, 1.8, 2.4):
            error = math.sqrt(tail(x) * (1 - tail(x)) / 5000)
            # a walk in steps overshoots less than a motion does, by about 0.6 step at each end
            assert np.mean(far >= x) == pytest.approx(tail(x), abs=4 * error + 0.02)


@pytest.mark.parametrize("statistic", [ks, kuiper])
def test_calibrated_forecasts_are_rejected_as_often_as_the_level_says(statistic):
    """400 samples of 1000, seed 3, level 5 %: between 6 and 35 rejections, one false alarm in 1000."""
    rng = np.random.default_rng(3)
    metric = CumulativeError(statistic=statistic)
    rejected = 0
    for _ in range(400):
        p = rng.beta(2, 1, 1000)
        rejected += metric((rng.random(1000) < p).astype(int), p).details["p_value"] <= 0.05
    assert 6 <= rejected <= 35


@pytest.mark.parametrize("statistic", [ks, kuiper])
def test_a_weighted_row_is_one_row_in_the_p_value(statistic):
    """200 samples of 200, weights 1 to 5, seed 4, level 5 %: at most 22 rejections, one false alarm in 10,000.

    As repeated rows, almost half of them would be rejected."""
    rng = np.random.default_rng(4)
    metric = CumulativeError(statistic=statistic)
    rejected = 0
    for _ in range(200):
        p, weight = rng.random(200), rng.integers(1, 6, 200)
        rejected += metric((rng.random(200) < p).astype(int), p, sample_weight=weight).details["p_value"] <= 0.05
    assert rejected <= 22


def test_weighted_rows_are_redrawn_as_rows():
    """100 samples of 100, weights 1 to 5, seed 6, level 5 %: at most 15 rejections, one false alarm in 20,000."""
    rng = np.random.default_rng(6)
    rejected = 0
    for _ in range(100):
        p, weight = rng.random(100), rng.integers(1, 6, 100)
        predictions = cal.Predictions.from_probs((rng.random(100) < p).astype(int), p, sample_weight=weight)
        rejected += cal.consistency(cal.ECCE_MAD, predictions, n=59).p_value <= 0.05
    assert rejected <= 15


@pytest.mark.parametrize("statistic", [ks, kuiper])
def test_overconfident_forecasts_are_rejected(statistic):
    """40 samples of 1000 whose true rate is p^1.5, seed 5: the power is above 0.99."""
    rng = np.random.default_rng(5)
    metric = CumulativeError(statistic=statistic)
    for _ in range(40):
        p = rng.random(1000)
        assert metric((rng.random(1000) < p**1.5).astype(int), p).details["p_value"] < 0.05


# ---- pieces ----------------------------------------------------------------------------------------------------------


def test_a_statistic_of_ones_own_has_no_p_value():
    def last(path):
        return float(path[-1])

    result = CumulativeError(statistic=last)(y, P)
    assert result.value == close(-cal.MCS(y, P).value)
    assert result.details == {}


@pytest.mark.parametrize("statistic", ["ks", None, 2])
def test_a_statistic_is_a_function(statistic):
    with pytest.raises(cal.CalibrationInputError, match=r"statistic: must be a function of a path.*use ks or kuiper"):
        CumulativeError(statistic=statistic)
