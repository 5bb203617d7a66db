"""Laws: what holds of every recipe, whatever the predictions."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from strategies import events, rows, same

replace = dataclasses.replace


def over(named):
    return pytest.mark.parametrize("metric", named.values(), ids=named.keys())


RECIPES = over(cal.RECIPES)
OVER_TREES = ("FULL_ECE", "TOP5_ECE")
WITHOUT_TREES = over({name: metric for name, metric in cal.RECIPES.items() if name not in OVER_TREES})
WEIGHED = {
    name: metric
    for name, metric in cal.RECIPES.items()
    if isinstance(metric, cal.MeanScore)
    or (isinstance(metric, cal.BinnedError) and isinstance(metric.binning, cal.EqualWidth))
}
COUNTED = {name: metric for name, metric in cal.RECIPES.items() if name not in WEIGHED}
ASK_AN_EVENT = [
    "ECE",
    "MCE",
    "RMSCE",
    "ADAPTIVE_ECE",
    "ECE_SWEEP",
    "ECE_DEBIASED",
    "ECE_LB",
    "MCS",
    "FULL_ECE",
    "BRIER",
    "LOG_LOSS",
]
EVENTS = over({name: cal.RECIPES[name] for name in ASK_AN_EVENT})
seeds = st.integers(0, 2**32 - 1)


@RECIPES
@given(data=rows(), seed=seeds)
def test_row_order_changes_no_bit(metric, data, seed):
    p, y = data
    order = np.random.default_rng(seed).permutation(len(y))
    assert same(metric(y, p), metric(y[order], p[order]))


@RECIPES
@given(data=rows(), seed=seeds)
def test_batches_of_any_size_merged_in_any_order_change_no_bit(metric, data, seed):
    p, y = data
    rng = np.random.default_rng(seed)
    whole = cal.Predictions.from_probs(y, p)
    cuts = np.sort(rng.integers(0, len(y) + 1, size=rng.integers(0, 4)))
    batches = [whole[part] for part in np.split(np.arange(len(y)), cuts)]  # some may be empty
    summaries = [metric.summarise(batch) for batch in batches]
    rng.shuffle(summaries)
    assert same(metric.conclude(sum(summaries)), metric(whole))


@EVENTS
@given(data=events(), seed=seeds)
def test_events_obey_the_same_laws(metric, data, seed):
    p, y = data
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    whole = cal.Predictions.from_probs(y, p)
    half = len(y) // 2
    parts = [metric.summarise(whole[order[half:]]), metric.summarise(whole[order[:half]])]
    assert same(metric.conclude(sum(parts)), metric(whole))


@RECIPES
@given(data=rows())
def test_a_summary_of_nothing_is_the_identity_on_both_sides(metric, data):
    whole = cal.Predictions.from_probs(*data[::-1])
    nothing, everything = metric.summarise(whole[:0]), metric.summarise(whole)
    assert same(metric.conclude(nothing + everything), metric.conclude(everything + nothing))
    assert same(metric.conclude(nothing + everything), metric(whole))


@RECIPES
@given(data=rows(most=15), seed=seeds)
def test_whole_weights_are_repetition_to_the_bit(metric, data, seed):
    p, y = data
    times = np.random.default_rng(seed).integers(0, 4, size=len(y))
    times[0] = max(1, times[0])
    weighted = metric(cal.Predictions.from_probs(y, p, sample_weight=times))
    repeated = metric(np.repeat(y, times), np.repeat(p, times, axis=0))
    assert weighted.n == len(y)
    kept = [name for name in weighted.details if not name.startswith("p_value")]  # for those a weighted row is one row
    numbers = [[r.value, *(r.details[name] for name in kept), *r.values] for r in (weighted, repeated)]
    assert np.array_equal(*numbers, equal_nan=True)


@over(WEIGHED)
@given(data=rows(), seed=seeds)
def test_fractional_weights_are_order_free(metric, data, seed):
    p, y = data
    rng = np.random.default_rng(seed)
    weight = rng.random(len(y)) + 0.01
    order = rng.permutation(len(y))
    result = metric(cal.Predictions.from_probs(y, p, sample_weight=weight))
    assert same(result, metric(cal.Predictions.from_probs(y[order], p[order], sample_weight=weight[order])))


@over(COUNTED)
@given(data=rows(), seed=seeds)
def test_fractional_weights_are_refused_by_what_counts_samples(metric, data, seed):
    p, y = data
    weight = np.random.default_rng(seed).random(len(y)) + 0.01
    with pytest.raises(cal.CalibrationInputError, match="counts samples, so weights must be whole"):
        metric(cal.Predictions.from_probs(y, p, sample_weight=weight))


@WITHOUT_TREES  # equal variances are split on the lowest axis, which has changed
@given(data=rows(), seed=seeds)
def test_relabelling_the_classes_permutes_the_parts(metric, data, seed):
    p, y = data
    p = p + np.linspace(0, 1e-9, p.shape[1])  # no tied argmax: ties go to the lowest class, which has changed
    p /= p.sum(axis=1, keepdims=True)
    new = np.random.default_rng(seed).permutation(p.shape[1])
    before, after = metric(y, p[:, :]), metric(np.argsort(new)[y], p[:, new])
    assert after.value == pytest.approx(before.value, rel=0, abs=1e-9, nan_ok=True)
    if before.values:
        assert [after.values[i] for i in np.argsort(new)] == pytest.approx(list(before.values), abs=1e-9, nan_ok=True)


@WITHOUT_TREES  # a tree splits at a mean, which the decimals do not share
@given(seed=seeds, n=st.integers(1, 30))
def test_float32_and_float64_copies_of_the_same_decimals_agree(metric, seed, n):
    rng = np.random.default_rng(seed)
    tenths = rng.multinomial(20, np.full(5, 0.2), size=n) / 20
    y = rng.integers(0, 5, size=n)
    double, single = metric(y, tenths), metric(y, tenths.astype(np.float32))
    # logarithms, kernels and their bandwidths carry the rounding of the forecasts further than sums do
    tolerance = 1e-7 if isinstance(metric, cal.BinnedError) else 1e-6
    share = 1e-5 if isinstance(metric, cal.TableStatistic) else 0  # slopes and ratios have no bounds
    assert single.value == pytest.approx(double.value, rel=share, abs=tolerance, nan_ok=True)
    if double.bins is not None:
        assert np.array_equal(double.bins.counts, single.bins.counts)


@RECIPES
@given(data=rows(most=8))
def test_a_result_and_its_json_rebuild_each_other(metric, data):
    result = metric(data[1], data[0])
    again = cal.Result.from_json(result.to_json())
    assert again.to_json() == result.to_json()
    assert again.metric == metric
    assert str(again) == str(result)
    if result.bins is not None:
        assert np.array_equal(again.bins.gap, result.bins.gap)


@given(data=rows(classes=st.integers(2, 6)), bins=st.integers(1, 30))
def test_inequalities_between_errors_of_the_same_bins(data, bins):
    p, y = data
    for binning in (cal.EqualWidth(bins), cal.EqualWidth(bins, "left"), cal.EqualMass(bins), cal.Quantiles(bins)):
        l1 = replace(cal.ECE, binning=binning)(y, p).value
        l2 = replace(cal.RMSCE, binning=binning)(y, p).value
        worst = replace(cal.MCE, binning=binning)(y, p).value
        own = cal.LabelBinnedError(binning=binning)(y, p).value
        assert abs(cal.MCS(y, p).value) <= l1 + 1e-12
        assert l1 <= l2 + 1e-12
        assert l2 <= worst + 1e-12 <= 1 + 1e-12
        assert l1 <= own + 1e-12


@given(data=rows(), bins=st.integers(1, 40))
def test_the_signed_error_is_free_of_bins(data, bins):
    p, y = data
    many = replace(cal.MCS, binning=cal.EqualWidth(bins))(y, p).value
    assert many == pytest.approx(cal.MCS(y, p).value, rel=0, abs=1e-12)


@given(data=rows())
def test_one_bin_compares_mean_confidence_with_accuracy(data):
    p, y = data
    one = replace(cal.ECE, binning=cal.EqualWidth(1))(y, p).value
    assert one == pytest.approx(abs(p.max(axis=1).mean() - cal.ACCURACY(y, p).value), abs=1e-12)


@given(data=rows())
def test_the_top_one_vector_in_a_grid_is_the_ece(data):
    p, y = data
    vector = cal.BinnedError(lens=cal.TopK(1), binning=cal.Grid(15))
    assert vector(y, p).value == pytest.approx(cal.ECE(y, p).value, abs=1e-12)


@given(data=rows())
def test_singleton_groups_are_the_full_lens(data):
    p, y = data
    groups = cal.Groups({str(c): [c] for c in range(p.shape[1])})
    assert replace(cal.FULL_ECE, lens=groups)(y, p).value == cal.FULL_ECE(y, p).value


@given(data=rows())
def test_l1_is_twice_the_total_variation(data):
    p, y = data
    l1 = replace(cal.FULL_ECE, distance=cal.lp(1))(y, p).value
    assert l1 == pytest.approx(2 * cal.FULL_ECE(y, p).value, abs=1e-12)


@given(data=events(), low=st.sampled_from([0.0, 0.3, 0.7]))
def test_inter_interval_never_exceeds_interval_tvd_within_the_interval(data, low):
    p, y = data
    high = low + 0.3
    lens = cal.Between(cal.TopLabel(), low, high)
    near, far = (
        cal.BinnedError(lens=lens, distance=d(low, high))(y, p).value for d in (cal.inter_interval, cal.interval_tvd)
    )
    assert np.isnan(near) or near <= far + 1e-12


@given(data=rows(), gamma=st.floats(0.01, 1))
def test_tree_leaves_share_out_the_rows_and_stay_below_the_limit(data, gamma):
    p, y = data
    predictions = cal.Predictions.from_probs(y, p)
    bins = cal.BinnedError(lens=cal.Full(), binning=cal.KDTree(gamma))(predictions).bins
    assert bins.counts.sum() == len(y)
    codes = cal.KDTree(gamma).assign(cal.Full()(predictions))[:, 0]
    assert np.array_equal(np.bincount(codes), bins.counts[0])
    for leaf in range(codes.max() + 1):
        members = p[codes == leaf]
        coincide = (members.max(axis=0) - members.min(axis=0)).max() < 1e-5
        assert len(members) < max(2, round(gamma * len(y))) or coincide


@given(data=rows())
def test_a_threshold_below_every_output_makes_tace_ace(data):
    p, y = data
    assert replace(cal.TACE, lens=cal.Above(cal.Classwise(), -1.0))(y, p).value == cal.ACE(y, p).value


@given(data=rows(most=12))
def test_duplicating_every_row_changes_no_equal_width_error(data):
    p, y = data
    for metric in (cal.ECE, cal.SCE, cal.MCE, cal.WSMCS, cal.BRIER):
        once, twice = metric(y, p).value, metric(np.repeat(y, 2), np.repeat(p, 2, axis=0)).value
        assert once == pytest.approx(twice, rel=0, abs=1e-15)


@given(data=events())
def test_a_sweep_of_monotone_outcomes_uses_every_sample_as_a_bin(data):
    p, _ = data
    outcomes = (p > np.median(p)).astype(int)
    assert cal.ECE_SWEEP(outcomes, p).details["n_bins"] == len(p)


@given(data=events())
def test_two_columns_ask_the_class_question_and_one_column_the_event(data):
    p, y = data
    two = np.column_stack([1 - p, p])
    event = cal.ECE(y, p).value
    assert cal.BinnedError(lens=cal.OneClass(1))(y, two).value == event
    assert cal.ACCURACY(y, two).value == np.mean((two[:, 1] > two[:, 0]) == y)
