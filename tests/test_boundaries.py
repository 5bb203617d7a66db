"""Rules at the very place where they change: each test fails where a limit, a sign or a default is off by one."""

import dataclasses
import io
import math
import os
import re

import numpy as np
import pytest

import calibrant as cal
from calibrant.aggregates import _rooted
from calibrant.binning import cells
from calibrant.binning.bounds import Gaps
from calibrant.binning.compact import _spread
from calibrant.binning.running import _ties
from calibrant.binning.tallying import tallied
from calibrant.bins import MOST_BYTES, check_memory
from calibrant.distances.of_gaps import _debiased_within
from calibrant.inference.bands import ends_of_each
from calibrant.inference.draws import check_level
from calibrant.inference.engines import RowsInCells
from calibrant.inference.gap_sums import GapSum
from calibrant.inference.grouped import Dependent, Resampling, _ends, _rows_resampled, grouped, ranks
from calibrant.inference.monotonicity import monotonicity_test
from calibrant.inference.proportions import largest_chance, least_chance
from calibrant.inference.reliability_curves import _bounds_of_each, smooth
from calibrant.inference.shared_outcomes import of_groups
from calibrant.kernels import compiled, progress
from calibrant.kernels.totals import Totals
from calibrant.specification.facts import UNKNOWN


def an_event(n=400, seed=0, **fields):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return cal.Predictions.from_probs((rng.random(n) < p).astype(int), p, **fields)


def one_ladder(event):
    (ladder,) = cal.EqualMass(1).summarise(cal.TopLabel()(event)).ladders()
    return ladder


# limits


def test_twenty_groups_are_enough_for_an_interval():
    assert cal.ECE(an_event(group=np.arange(400) % 20), interval=cal.Confidence(groups="group")).interval is not None


def test_a_level_of_a_hundred_is_no_percentage_of_something():
    with pytest.raises(cal.CalibrationInputError) as refused:
        check_level(100)
    assert "%" not in str(refused.value)
    with pytest.raises(cal.CalibrationInputError, match=r"99% is level=0\.99"):
        check_level(99)


@pytest.mark.parametrize(("told", "threads"), [("3", 3), ("0", None), ("", None), ("many", None), ("1000", 64)])
def test_the_environment_says_how_many_threads_where_it_says_a_number(told, threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    free = min(len(os.sched_getaffinity(0)), compiled.MOST_THREADS)
    assert compiled.threads_for(compiled.SHARED) == (min(threads, compiled.MOST_THREADS) if threads else free)


def test_a_stored_forecast_above_one_is_a_fault():
    table = cal.ADAPTIVE_ECE.summarise(an_event())
    beyond = table.values.copy()
    beyond[-1] = 1.5
    assert not list(table.faults())
    assert next(dataclasses.replace(table, values=beyond).faults()) == "values that are no probabilities"


def test_two_models_are_enough_to_compare_and_one_is_not():
    models = {name: an_event(seed=0) for name in "ab"}
    assert list(cal.compare_all(cal.BRIER, models, n=20, seed=0)) == [("a", "b")]
    with pytest.raises(cal.CalibrationInputError, match="must be at least two"):
        cal.compare_all(cal.BRIER, {"a": models["a"]}, n=20, seed=0)


def test_models_are_equivalent_where_the_interval_stays_inside_the_margin():
    found = cal.compare(cal.BRIER, an_event(seed=0), an_event(seed=0), n=20, seed=0, margin=0.1)
    at = (
        dataclasses.replace(found.interval, low=-0.1, high=0.05),
        dataclasses.replace(found.interval, low=0.0, high=0.1),
    )
    assert found.equivalent
    assert [dataclasses.replace(found, interval=interval).equivalent for interval in at] == [False, False]


def test_quantiles_are_at_least_one_and_cut_at_values_that_are_there():
    with pytest.raises(cal.CalibrationInputError, match="n_bins"):
        cal.Quantiles(0)
    assert cal.Quantiles(3)._wanted(2).tolist() == [1, 1]
    nobody = cal.ADAPTIVE_ECE.replace(select=cal.where(region=1)).summarise(an_event(region=np.zeros(400)))
    (ladder,) = nobody.ladders()
    assert cal.Quantiles(3).cuts(ladder).tolist() == [0, 0, 0, 0]


def test_all_numbers_of_bins_that_are_tried_unless_others_are_said():
    assert cal.sensitivity(cal.ECE, an_event(), bootstrap=2, seed=0).settings == (5, 10, 15, 20, 30, 50)


# facts


def test_the_root_of_a_mean_has_the_root_of_what_a_calibrated_model_has():
    known = dataclasses.replace(UNKNOWN, low=0.0, high=1.0, calibrated=0.04)
    assert _rooted(known, 2).calibrated == pytest.approx(0.2)
    assert _rooted(dataclasses.replace(known, calibrated=None), 2).calibrated is None


def test_powers_of_the_gaps_of_two_distributions_sum_to_two_at_most():
    assert cal.power(3).facts.high == 2.0


# draws


def test_every_cluster_is_drawn_by_a_bootstrap_of_clusters():
    event = cal.Predictions.from_probs([1, 0, 1], [0.1, 0.2, 0.3])
    tables = list(_rows_resampled(grouped(event), 60, 0, Dependent.of(event, np.array([0, 1, 2]))))
    assert {int(table.counts.sum()) for table in tables} == {3}
    assert {float(value) for table in tables for value in table.values} == {0.1, 0.2, 0.3}


# what a sweep looks at


def test_bins_that_follow_values_have_no_cuts_to_look_at():
    sweep = cal.Sweep(cal.EqualWidth(15))
    assert list(sweep._looked_at(one_ladder(an_event()))) == []


# tensors


def test_scores_that_are_minus_infinity_are_counted_as_no_numbers():
    torch = pytest.importorskip("torch")
    from calibrant.kernels.rowwise import add_scores

    table = torch.zeros((4, 1), dtype=torch.int64)
    add_scores(table, torch.tensor([[1.0], [-torch.inf]], dtype=torch.float64), 4.0)
    assert table[2:, 0].tolist() == [1, 1]


def test_the_first_of_the_leaders_is_found_where_nothing_is_known_yet():
    torch = pytest.importorskip("torch")
    from calibrant.kernels.tensors import DeviceArray
    from calibrant.kernels.torch import leaders

    assert leaders(DeviceArray(torch.tensor([[0.1, 0.9], [0.5, 0.5]])), 1).tensor.tolist() == [[1], [0]]


# tables and bands


def test_a_table_of_bins_may_fill_its_memory_and_no_more():
    most = MOST_BYTES // (3 * 16)  # counts, outputs and targets, in two limbs each
    check_memory(1, most, 1)
    with pytest.raises(cal.CalibrationInputError, match="must fit 4 GiB"):
        check_memory(1, most + 1, 1)


def test_totals_of_closed_cells_stand_where_these_are():
    spread = _spread(Totals.whole(np.array([3, 5])), np.array([False, True, True]))
    assert spread.value.tolist() == [0.0, 3.0, 5.0]


def test_eighteen_draws_reach_as_far_as_the_outermost():
    assert ends_of_each(np.arange(18.0)[:, None], 0.8).tolist() == [[0.0, 17.0]]


def test_stretches_that_give_a_bound_are_no_longer_than_the_data():
    """By the definition: stretches of 3, 6, ..., 96 of 100 rows, each with its share of the error."""
    event = an_event(100)
    low, high = _bounds_of_each(one_ladder(event), np.array([0, 99]), 0.1)
    came = event.labels[np.argsort(event.probabilities)]
    tail = 0.1 / (2 * 6)
    upward = [largest_chance(came[:length].sum(), length, tail) for length in (3, 6, 12, 24, 48, 96)]
    downward = [least_chance(came[-length:].sum(), length, tail) for length in (3, 6, 12, 24, 48, 96)]
    assert high[0] == pytest.approx(min(upward))
    assert low[1] == pytest.approx(max(downward))


def test_what_came_true_cannot_sum_to_more_than_all():
    table = cal.ECCE_MAD.refine().summarise([1, 1, 1], [0.50001, 0.50002, 0.50003])
    assert table.closed.any()
    assert not list(table.faults())
    less = table.outputs - Totals.exactly(table.closed.astype(np.int64))
    assert "true_outputs above the outputs" in list(dataclasses.replace(table, outputs=less).faults())


@pytest.mark.parametrize("metric", [cal.ECE, cal.ADAPTIVE_ECE], ids=str)
def test_rows_that_all_weigh_two_are_as_many_as_without_weights(metric):
    weights = None, np.full(400, 2.0)
    ends = [metric(an_event(sample_weight=each), interval=cal.Confidence()).interval for each in weights]
    assert (ends[1].low, ends[1].high) == pytest.approx((ends[0].low, ends[0].high), rel=0.02)


def test_equal_values_of_sorted_rows_begin_and_end_together():
    begins, ends = _ties(np.array([[1.0, 1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0, 2.0]]))
    assert begins.tolist() == [[0, 0, 2], [0, 1, 2], [0, 1, 1]]
    assert ends.tolist() == [[2, 2, 3], [1, 2, 3], [1, 3, 3]]


def test_progress_says_how_long_the_rest_takes(monkeypatch):
    """One item every two seconds, of three."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    clock = iter(range(100, 120, 2))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    assert list(progress.shown("abc", 3, "work")) == ["a", "b", "c"]
    assert re.findall(r"work: \d/3, \d s left", terminal.getvalue()) == [
        "work: 1/3, 4 s left", "work: 2/3, 2 s left", "work: 3/3, 0 s left",
    ]  # fmt: skip


def test_a_weighted_value_is_exact_where_a_product_of_floats_would_be_rounded():
    value, weight = 1 + 2.0**-26, 2.0**27 + 1
    assert int(Totals.of(np.array([value]), np.array([weight])).units[0]) == (2**26 + 1) * (2**27 + 1) << 26


def test_no_rows_have_no_cells_to_be_redrawn_from():
    assert RowsInCells.of(cal.ECE, an_event()) is not None
    assert RowsInCells.of(cal.ECE, an_event()[:0]) is None


def test_fixed_bins_count_their_memory_for_one_coordinate(monkeypatch):
    monkeypatch.setattr("calibrant.bins.MOST_BYTES", 10 * 3 * 16)
    assert cal.ECE.replace(binning=cal.EqualWidth(10))(an_event()).bins.shape == (1, 10, 1)
    with pytest.raises(cal.CalibrationInputError, match="of all questions must fit"):
        cal.ECE.replace(binning=cal.EqualWidth(11))(an_event())


def test_forecasts_on_either_side_of_a_rank_are_groups_of_their_own():
    ladder = one_ladder(an_event(5000))
    ends, at = _ends(ladder), ranks(ladder.n)
    for places in (at[:-1], at[1:] - 1):
        assert np.isin(ladder.values[ladder.entry(places)], ends).all()


@pytest.mark.parametrize(("units", "rounded"), [(5 << 31, 2), (7 << 31, 4), ((1 << 31) + 1, 1), (1 << 31, 0)])
def test_a_share_of_very_many_is_rounded_once_with_halves_to_even(units, rounded):
    shared = Totals.exactly([units]).share(np.array([1]), np.array([1 << 32]))
    assert shared.units.tolist() == [rounded]


def test_forecasts_of_opened_cells_are_all_kept_apart():
    event = cal.Predictions.from_probs([1, 0, 1, 1], [0.311, 0.312, 0.3121, 0.9])
    opened = [(0, cells.numbers(0.311)), (0, cells.numbers(0.312))]
    table = tallied(cal.TopLabel()(event), opened)
    assert [ladder.n for ladder in table.ladders()] == [4]
    assert table.starts.tolist() == [0, 4]
    assert table.values[:3].tolist() == [0.311, 0.312, 0.3121]


def test_bins_move_the_sum_of_gaps_by_their_share_of_the_rows():
    event, owner = an_event(), np.arange(400) % 40
    bins = cal.ECE(event).bins
    sums = GapSum.of(bins, np.ones(1))
    sharing = of_groups(sums, bins, cal.ECE.binning, cal.ECE.view(event), bins, owner)
    assert (np.abs(sharing.each) * bins.counts).round(12).tolist() == np.ones((5, 15)).tolist()


def test_what_is_done_at_once_says_nothing_on_a_terminal(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    assert list(progress.shown("abc", 3, "work")) == ["a", "b", "c"]
    assert terminal.getvalue() == ""


def test_a_curve_rises_unless_the_p_value_is_below_five_percent():
    found = monotonicity_test(an_event(), draws=99)
    assert [dataclasses.replace(found, p_value=p).rises for p in (0.049, 0.05, 0.06)] == [False, True, True]
    with pytest.raises(cal.CalibrationInputError, match="seed"):
        monotonicity_test(an_event(), draws=99, seed=-1)


def test_the_largest_debiased_square_has_the_smallest_variance_that_can_be():
    gaps = Gaps(*(np.array([number]) for number in (10.0, 10.0, 0.3, 0.3, 0.1, 0.2)))
    least, most = _debiased_within(gaps)
    assert most == pytest.approx(0.3**2 - 0.1 * 0.9 / 9)
    assert least == pytest.approx(0.3**2 - 0.2 * 0.8 / 9)


def test_only_predictions_have_a_noise_floor():
    with pytest.raises(cal.CalibrationInputError, match="predictions"):
        cal.consistency(cal.ECE, [0.1, 0.9], n=10)


def test_how_much_worse_a_model_is_comes_from_the_rows_themselves():
    good = an_event()
    bad = cal.Predictions.from_probs(good.labels, good.probabilities**3)
    found = cal.compare(cal.BRIER, bad, good, n=20, seed=0)
    assert found.worse_by == pytest.approx(cal.BRIER(bad).value - cal.BRIER(good).value, abs=1e-12)


def test_weighted_gaps_of_two_distributions_are_the_root_of_twice_the_weight_at_most():
    assert cal.weighted([1, 3]).facts.high == pytest.approx(math.sqrt(6))


def test_bins_without_a_clear_gap_are_tried_with_both_signs():
    event = an_event(400)
    bins = cal.ECE(event).bins
    sums = GapSum.of(bins, np.ones(1))
    sharing = of_groups(sums, bins, cal.ECE.binning, cal.ECE.view(event), bins, np.arange(400) % 40)
    _, up, down, sloped, against = np.sign(sharing.each)
    unclear = up != down
    assert unclear.any()
    assert (up[unclear] == 1).all()
    assert (sloped[unclear] == -against[unclear]).all()


def test_one_sample_is_enough_for_a_point_of_the_smooth_curve():
    curve = smooth(*cal.SMECE.summarise([1], [0.5]).ladders())
    assert np.nanmax(curve.frequency) == pytest.approx(1.0)


def test_tied_samples_have_the_frequency_of_all_of_them():
    ladder = one_ladder(cal.Predictions.from_probs([1, 0, 1], [0.1, 0.2, 0.3]))
    begins, ends = _ties(np.array([[0.1, 0.2, 0.2]]))
    assert dataclasses.replace(ladder, ties=(begins[0], ends[0])).rates.tolist() == [1.0, 0.5, 0.5]


def test_of_two_nulls_the_one_with_the_larger_p_value_is_shown():
    event = an_event()
    result, far, near = cal.ECE(event), np.linspace(0.0, 0.01, 99), np.linspace(0.0, 1.0, 99)
    for labels, flips in ((far, near), (near, far)):
        shown = Resampling(grouped(event), {}, {cal.ECE: labels}, {cal.ECE: flips}).null(result)
        assert shown.p_value > 0.5


def test_a_bin_of_one_sample_counts_in_the_monotonicity_test():
    three = cal.Predictions.from_probs([0, 1, 1], [0.1, 0.5, 0.9])
    assert sorted(monotonicity_test(three, draws=19, warn=False).sizes.tolist()) == [1.0, 2.0]


def test_draws_that_may_be_uneven_in_the_largest_cell_are_drawn_again():
    cells_of_rows = RowsInCells.of(cal.ECE, an_event())
    assert cells_of_rows.largest == cells_of_rows.sizes.max() > cells_of_rows.sizes.min()
