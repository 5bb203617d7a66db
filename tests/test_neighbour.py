"""The neighbour error: against the plain loop, in any order, at ties and at the edges."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant import CalibrationInputError
from calibrant.binning.ladder import Forecasts
from calibrant.errors.neighbour import NeighbourError, forecasts_within, nearest_forecasts
from oracles import errors, lenses
from strategies import events, rows

GRAIN = Fraction(1, 2**44)
seeds = st.integers(0, 2**32 - 1)
counts = st.integers(1, 45)
radii = st.sampled_from([0, 0.05, 0.1, 0.3, 1, 2])


def close(value):
    return pytest.approx(value, rel=0, abs=1e-12, nan_ok=True)


def decimal(value):
    return Fraction(repr(float(value)))


def plain_within(scores, radius):
    """For each score, the indices of those at most so far away, in exact decimals."""
    exact = [decimal(score) for score in scores]
    return [[j for j, b in enumerate(exact) if abs(a - b) <= r + GRAIN] for a, r in zip(exact, radius, strict=True)]


def plain_nearest(scores, k):
    """For each score, the indices of those no farther than the k-th nearest, in exact decimals."""
    exact = [decimal(score) for score in scores]
    return plain_within(scores, [sorted(abs(a - b) for b in exact)[min(k, len(exact)) - 1] for a in exact])


# --- the formula ----------------------------------------------------------------------------------


@given(data=events(), k=counts, p=st.sampled_from([1, 2, 3.5]))
def test_nearest_forecasts_are_the_plain_loop(data, k, p):
    scores, labels = data[0].tolist(), data[1].tolist()
    value = NeighbourError(neighbours=nearest_forecasts(k), p=p)(data[1], data[0]).value
    assert value == close(errors.neighbour_error(scores, labels, plain_nearest(scores, k), p))


@given(data=events(), radius=radii)
def test_forecasts_within_a_radius_are_the_plain_loop(data, radius):
    scores, labels = data[0].tolist(), data[1].tolist()
    near = plain_within(scores, [decimal(radius)] * len(scores))
    value = NeighbourError(neighbours=forecasts_within(radius))(data[1], data[0]).value
    assert value == close(errors.neighbour_error(scores, labels, near))


@given(data=rows(classes=st.integers(2, 5)), k=counts)
def test_the_top_label_is_the_plain_loop(data, k):
    scores, hits = lenses.top_label(data[0].tolist(), data[1].tolist())
    value = NeighbourError(neighbours=nearest_forecasts(k))(data[1], data[0]).value
    assert value == close(errors.neighbour_error(scores, hits, plain_nearest(scores, k)))


def test_the_nearest_of_five_forecasts_worked_by_hand():
    y, p = [1, 1, 0, 0, 1], [0.1, 0.2, 0.4, 0.5, 0.9]
    # The three nearest are .1 .2 .4 for the first two, .2 .4 .5 for the next two, .4 .5 .9 for the last.
    gaps = [2 / 3 - 0.1, 2 / 3 - 0.2, 0.4 - 1 / 3, 0.5 - 1 / 3, 0.9 - 1 / 3]
    assert NeighbourError(neighbours=nearest_forecasts(3))(y, p).value == close(sum(gaps) / 5)
    root = math.sqrt(sum(gap**2 for gap in gaps) / 5)
    assert NeighbourError(neighbours=nearest_forecasts(3), p=2)(y, p).value == close(root)
    # The fourth from .5 are both .1 and .9.
    gaps = [0.5 - 0.1, 0.5 - 0.2, 0.5 - 0.4, 0.6 - 0.5, 0.9 - 0.5]
    assert NeighbourError(neighbours=nearest_forecasts(4))(y, p).value == close(sum(gaps) / 5)


def ladder(p):
    predictions = cal.Predictions.from_probs(np.zeros(len(p), int), p)
    return next(Forecasts.of(cal.TopLabel()(predictions), "here").ladders())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_in_distance_are_decimal_ties(dtype):
    tenths = np.arange(11, dtype=dtype) / dtype(10)  # .8 - .7 > .1 > .3 - .2 in floats
    for piece in (nearest_forecasts(2), forecasts_within(0.1)):
        start, stop = piece(ladder(tenths))
        assert start.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        assert stop.tolist() == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11]
    start, stop = nearest_forecasts(4)(ladder(tenths))
    assert start.tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 7]
    assert stop.tolist() == [4, 4, 5, 6, 7, 8, 9, 10, 11, 11, 11]
    assert [ends.tolist() for ends in forecasts_within(0)(ladder(tenths))] == [list(range(11)), list(range(1, 12))]


def test_tied_forecasts_are_neighbours_of_each_other_however_few_are_asked_for():
    y, p = np.array([1, 0, 0, 1]), np.array([0.3, 0.3, 0.3, 0.9])
    value = NeighbourError(neighbours=nearest_forecasts(1))(y, p).value
    assert value == close((3 * abs(0.3 - 1 / 3) + 0.1) / 4)


def test_more_neighbours_than_samples_are_all_of_them():
    y, p = np.array([1, 0, 1]), np.array([0.2, 0.5, 0.9])
    expected = np.abs(p - 2 / 3).mean()
    for piece in (nearest_forecasts(), nearest_forecasts(3), forecasts_within(1)):
        assert NeighbourError(neighbours=piece)(y, p).value == close(expected)


@dataclass(frozen=True)
class SameBin:
    """Each forecast's neighbours are those in its equal-width bin."""

    n_bins: int

    def __call__(self, ladder):
        cuts = np.searchsorted(ladder.ranks, cal.EqualWidth(self.n_bins).cuts(ladder))
        bins = np.searchsorted(cuts, np.arange(len(ladder.values)), side="right") - 1
        return cuts[bins], cuts[bins + 1]


@given(data=events(), n_bins=st.integers(1, 20), p=st.sampled_from([1, 2]))
def test_neighbours_of_the_same_bin_make_the_label_binned_error(data, n_bins, p):
    binned = cal.LabelBinnedError(binning=cal.EqualWidth(n_bins), p=p)(data[1], data[0])
    assert NeighbourError(neighbours=SameBin(n_bins), p=p)(data[1], data[0]).value == close(binned.value)


# --- laws -----------------------------------------------------------------------------------------


@given(data=events(), seed=seeds, k=counts)
def test_soft_labels_are_the_plain_loop(data, seed, k):
    scores = np.clip(data[0], 0.01, 0.99)  # forecasts of 0 and 1 alone would look like labels
    soft = np.random.default_rng(seed).random(len(scores))
    value = NeighbourError(neighbours=nearest_forecasts(k))(soft, scores).value
    assert value == close(errors.neighbour_error(scores, soft.tolist(), plain_nearest(scores, k)))


@given(data=events(), k=counts)
def test_neighbourhoods_hold_enough_samples_and_grow_with_their_number(data, k):
    table = ladder(data[0])
    start, stop = nearest_forecasts(k)(table)
    wider = nearest_forecasts(k + 1)(table)
    assert (wider[0] <= start).all()
    assert (wider[1] >= stop).all()
    assert (table.ranks[stop] - table.ranks[start] >= min(k, len(data[0]))).all()


def test_calibrated_forecasts_miss_by_the_noise_of_their_neighbourhoods():
    # Seed 2. A mean of k labels of rate q misses q by sqrt(2 q (1 - q) / (pi k)) in the mean; q is uniform. There are
    # some 500 neighbourhoods that share nothing, so 4 standard deviations are 14 %.
    rng = np.random.default_rng(2)
    p = rng.random(200_000)
    value = NeighbourError(neighbours=nearest_forecasts(400))((rng.random(len(p)) < p).astype(int), p).value
    assert value == pytest.approx(math.sqrt(2 / math.pi / 400) * math.pi / 8, rel=0.14)


# --- edges ----------------------------------------------------------------------------------------


def test_one_sample_is_its_own_neighbour():
    for piece in (nearest_forecasts(), forecasts_within(0)):
        assert NeighbourError(neighbours=piece)([1], [0.7]).value == close(0.3)


def test_equal_forecasts_are_compared_with_the_overall_rate():
    assert NeighbourError(neighbours=nearest_forecasts(1))([1, 0, 0, 0], [0.5] * 4).value == close(0.25)


@pytest.mark.parametrize("wrong", [0, -1, 2.0, True, "3", None])
def test_k_is_a_whole_number(wrong):
    with pytest.raises(CalibrationInputError, match="k: must be a whole number of at least 1, got"):
        nearest_forecasts(wrong)


@pytest.mark.parametrize("wrong", [-0.1, math.inf, math.nan, True, "wide", None])
def test_a_radius_is_a_number(wrong):
    with pytest.raises(CalibrationInputError, match="radius: must be a finite number of at least 0, got"):
        forecasts_within(wrong)


@pytest.mark.parametrize("wrong", [0.5, math.inf, math.nan, True, "2"])
def test_an_order_is_at_least_one(wrong):
    with pytest.raises(CalibrationInputError, match="NeighbourError: needs a finite order p of at least 1, got"):
        NeighbourError(p=wrong)


@pytest.mark.parametrize("wrong", ["nearest", 3, None, nearest_forecasts])
def test_neighbours_are_a_piece(wrong):
    with pytest.raises(CalibrationInputError, match=r"neighbours: must be a piece such as nearest_forecasts\(100\)"):
        NeighbourError(neighbours=wrong)


def test_a_forecast_without_neighbours_is_refused():
    def nobody(ladder):
        return np.arange(len(ladder.values)), np.arange(len(ladder.values))

    with pytest.raises(CalibrationInputError, match="neighbours: must be at least one for every forecast"):
        NeighbourError(neighbours=nobody)([1, 0], [0.3, 0.4])


def test_a_result_says_its_choices():
    result = NeighbourError(neighbours=forecasts_within(0.1), p=2)([1, 0], [0.3, 0.4])
    assert str(result).endswith("(n=2, event, forecasts within 0.1, order 2)")
    selected = NeighbourError(select=cal.confidence_between(0, 0.5))([1, 0], [0.3, 0.4])
    assert selected.choices.startswith("where confidence_between(")
    assert selected.choices.endswith(", 100 nearest forecasts")
