"""The isotonic error: library and loop agree, the parts add up, and the edges are as said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.errors.isotonic import IsotonicError, isotonic_curve, logarithmic, quadratic
from oracles import isotonic, lenses
from strategies import events, rows
from toy import P, y

SCORES = st.sampled_from([(quadratic, isotonic.squared), (logarithmic, isotonic.logarithm)])
PARTS = ["miscalibration", "discrimination", "uncertainty", "score"]
seeds = st.integers(0, 2**32 - 1)


def close(value):
    return pytest.approx(value, rel=0, abs=1e-12)


def curve(truth, forecast):
    (ladder,) = IsotonicError().summarise(cal.Predictions.from_probs(truth, forecast)).ladders()
    return isotonic_curve(ladder)


@given(data=events(), scores=SCORES)
def test_an_event_is_decomposed_as_the_loop_does(data, scores):
    p, outcomes = data
    ours, theirs = scores
    result = IsotonicError(score=ours)(outcomes, p)
    assert result.details == close(isotonic.decomposition(p.tolist(), outcomes.tolist(), theirs))
    assert result.value == result.details["miscalibration"]


@given(data=rows(classes=st.integers(2, 5)), scores=SCORES)
def test_top_labels_and_classes_are_decomposed_as_the_loop_does(data, scores):
    p, labels = data
    ours, theirs = scores
    confidence, hits = lenses.top_label(p.tolist(), labels.tolist())
    assert IsotonicError(score=ours)(labels, p).details == close(isotonic.decomposition(confidence, hits, theirs))
    classwise = IsotonicError(lens=cal.Classwise(), score=ours)(labels, p)
    each = [
        isotonic.decomposition(p[:, c].tolist(), (labels == c).astype(int).tolist(), theirs) for c in range(p.shape[1])
    ]
    assert classwise.values == close([parts["miscalibration"] for parts in each])
    for name in PARTS:
        assert classwise.details[name] == close(np.mean([parts[name] for parts in each]))


@given(data=events())
def test_the_curve_is_the_isotonic_regression(data):
    p, outcomes = data
    found = curve(outcomes, p)
    assert (np.diff(found) >= 0).all()
    assert found[np.searchsorted(np.unique(p), p)].tolist() == close(
        isotonic.isotonic_regression(p.tolist(), outcomes.tolist())
    )


@given(data=events(), seed=seeds)
def test_soft_labels_are_rates(data, seed):
    p = 0.1 + 0.8 * data[0]  # forecasts of only 0 and 1 look like the truth
    soft = np.random.default_rng(seed).random(len(p)).round(2)
    result = IsotonicError()(soft, p)
    oracle = isotonic.decomposition(p.tolist(), soft.tolist(), isotonic.squared)
    scatter = np.mean(soft * (1 - soft))  # that of the outcomes around their rates, which no forecast can avoid
    assert result.details["miscalibration"] == close(oracle["miscalibration"])
    assert result.details["discrimination"] == close(oracle["discrimination"])
    assert result.details["score"] == close(oracle["score"] + scatter)
    found = curve(soft, p)
    assert (np.diff(found) >= -1e-15).all()


@given(data=rows(), score=st.sampled_from([quadratic, logarithmic]), lens=st.sampled_from(["top", "each"]))
def test_the_parts_add_up_to_the_last_bit(data, score, lens):
    p, labels = data
    metric = IsotonicError(lens=cal.TopLabel() if lens == "top" else cal.Classwise(), score=score)
    parts = metric(labels, p).details
    assert list(parts) == PARTS
    assert parts["score"] == parts["miscalibration"] - parts["discrimination"] + parts["uncertainty"]
    assert min(parts.values()) >= 0


@given(data=events())
def test_the_score_is_the_mean_score(data):
    p, outcomes = data
    assert IsotonicError()(outcomes, p).details["score"] == close(cal.BRIER(outcomes, p).value)
    log = IsotonicError(score=logarithmic)(outcomes, p).details["score"]
    assert log == close(cal.LOG_LOSS(outcomes, p).value)


@given(data=events())
def test_what_keeps_the_order_of_forecasts_changes_miscalibration_alone(data):
    p, outcomes = data[0].round(3), data[1]
    before, after = IsotonicError()(outcomes, p).details, IsotonicError()(outcomes, 0.1 + 0.5 * p).details
    assert after["discrimination"] == before["discrimination"]
    assert after["uncertainty"] == before["uncertainty"]


@given(data=events())
def test_recalibrated_forecasts_have_no_miscalibration_left(data):
    p, outcomes = data
    recalibrated = curve(outcomes, p)[np.searchsorted(np.unique(p), p)]
    for score in (quadratic, logarithmic):
        assert IsotonicError(score=score)(outcomes, recalibrated).value == close(0)


def test_four_forecasts_worked_by_hand():
    result = IsotonicError()([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.8])
    assert curve([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.8]).tolist() == [0, 0.5, 0.5, 1]
    assert result.value == close((0.01 + 0.49 + 0.36 + 0.04) / 4 - (0.25 + 0.25) / 4)
    assert result.bins.counts.tolist() == [[1, 2, 1]]
    assert result.bins.low.tolist() == [[0.1, 0.3, 0.8]]
    assert result.bins.high.tolist() == [[0.1, 0.6, 0.8]]
    assert str(result) == "IsotonicError 0.1000 (n=4, event, isotonic, quadratic score)"


def test_tied_forecasts_are_one_whatever_their_order():
    assert curve([1, 0, 0, 1], [0.4, 0.4, 0.7, 0.7]).tolist() == [0.5, 0.5]
    assert IsotonicError()([1, 0, 0, 1], [0.4, 0.4, 0.7, 0.7]).bins.counts.tolist() == [[4]]  # equal rates pool


def test_pools_that_merge_one_after_another():
    p = np.arange(1, 9) / 10
    assert curve([0, 1, 1, 1, 0, 0, 0, 1], p).tolist() == [0, *[0.5] * 6, 1]
    assert curve([1, 1, 1, 0], p[:4]).tolist() == [0.75] * 4
    soft = [0.0, 0.2, 0.4, 0.6, 0.8, 0.1]  # the last undoes one pool after another
    assert curve(soft, p[:6]).tolist() == close([0, 0.2, 0.4, 0.5, 0.5, 0.5])


@given(seed=seeds, drops=st.integers(1, 3))
def test_long_rising_rates_with_late_drops_pool_one_by_one(seed, drops):
    rng = np.random.default_rng(seed)
    soft = np.sort(rng.random(60)).round(3)
    soft[-drops:] = rng.random(drops).round(3)
    p = np.linspace(0.1, 0.9, 60)
    assert curve(soft, p).tolist() == close(isotonic.isotonic_regression(p.tolist(), soft.tolist()))


def test_a_pool_that_sinks_to_the_rate_of_the_one_before_joins_it():
    soft = np.array([*range(29), 30, 26]) / 64  # 30 and 26 pool to 28, the rate before
    assert IsotonicError()(soft, np.linspace(0.1, 0.9, 31)).bins.counts.tolist() == [[1] * 28 + [3]]


def test_a_large_sample_pools_as_in_scipy():
    optimize = pytest.importorskip("scipy.optimize")
    if not hasattr(optimize, "isotonic_regression"):
        pytest.skip("SciPy before 1.12")
    rng = np.random.default_rng(11)
    p = np.sort(rng.random(20_000))
    outcomes = (rng.random(20_000) < p).astype(int)
    assert np.allclose(curve(outcomes, p), optimize.isotonic_regression(outcomes).x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("side", [0, 1])
def test_rounding_never_leaves_less_than_nothing(side):
    assert IsotonicError()([1, 0, 0], np.full(3, np.nextafter(1 / 3, side))).value == 0


def test_one_sample():
    assert IsotonicError()([1], [0.75]).details == {
        "miscalibration": 0.0625, "discrimination": 0, "uncertainty": 0, "score": 0.0625,
    }  # fmt: skip


def test_equal_forecasts_are_recalibrated_to_the_base_rate():
    parts = IsotonicError()([1, 0, 0, 0], [0.75] * 4).details
    assert parts == {"miscalibration": 0.25, "discrimination": 0, "uncertainty": 0.1875, "score": 0.4375}


def test_outcomes_that_are_all_equal_leave_nothing_to_discriminate():
    for score in (quadratic, logarithmic):
        parts = IsotonicError(score=score)([1, 1, 1], [0.5, 0.5, 0.75]).details
        assert (parts["discrimination"], parts["uncertainty"]) == (0, 0)
        assert parts["score"] == parts["miscalibration"] > 0


def test_calibrated_forecasts_have_no_miscalibration_at_all():
    p = np.repeat([0.1, 0.3, 0.7], 10)
    outcomes = np.concatenate([np.arange(10) < k for k in (1, 3, 7)]).astype(int)
    assert IsotonicError()(outcomes, p).value == 0
    assert IsotonicError(score=logarithmic)(outcomes, p).value == 0


@pytest.mark.parametrize(("outcome", "forecast"), [(1, 0.0), (0, 1.0)])
def test_what_was_ruled_out_and_came_true_is_infinitely_bad(outcome, forecast):
    result = IsotonicError(score=logarithmic)([0, outcome, 1], [0.2, forecast, 0.6])
    parts = result.details
    assert result.value == parts["miscalibration"] == parts["score"] == np.inf
    assert np.isfinite([parts["discrimination"], parts["uncertainty"]]).all()
    assert IsotonicError()([0, outcome, 1], [0.2, forecast, 0.6]).value < 1
    assert cal.Result.from_json(result.to_json()).value == np.inf


def test_sure_forecasts_that_came_true_score_nothing():
    parts = IsotonicError(score=logarithmic)([0, 1], [0.0, 1.0]).details
    assert parts["miscalibration"] == parts["score"] == 0
    assert parts["discrimination"] == parts["uncertainty"] == close(np.log(2))


def test_selection_lens_and_score_are_said_in_words():
    metric = IsotonicError(select=cal.label_in(0), lens=cal.OneClass(1), score=logarithmic)
    assert str(metric(y, P)).endswith("(n=5, class 1, where label_in(0), isotonic, logarithmic score)")


def test_a_score_of_ones_own():
    def spherical(forecast, rate):
        return 1 - (rate * forecast + (1 - rate) * (1 - forecast)) / np.hypot(forecast, 1 - forecast)

    parts = IsotonicError(score=spherical)(y == 0, P[:, 0]).details
    assert min(parts.values()) >= 0
    assert parts["score"] == close(spherical(P[:, 0], (y == 0).astype(float)).mean())


@pytest.mark.parametrize("score", ["brier", None, 2])
def test_a_score_is_a_function(score):
    with pytest.raises(cal.CalibrationInputError, match=r"score: must be a function .* use quadratic or logarithmic"):
        IsotonicError(score=score)
