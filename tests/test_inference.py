"""Inference: intervals, nulls, comparisons, sensitivity."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.door.class_kinds import redrawn_labels
from calibrant.inference import bootstrap, comparison, consistency, draws, engines
from calibrant.inference.bootstrap import ALONE, POINT
from calibrant.inference.comparison import holm
from strategies import rows

replace = dataclasses.replace
RECIPES = pytest.mark.parametrize("metric", cal.RECIPES.values(), ids=cal.RECIPES.keys())


def calibrated(n=400, seed=0, power=1.0, **columns):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 1, n)
    return cal.Predictions.from_probs((rng.random(n) < p**power).astype(int), p, **columns)


def classes(n=300, k=5, seed=0, sharper=1.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, (n, k))
    p, truth = (np.exp(s * z) / np.exp(s * z).sum(axis=1, keepdims=True) for s in (sharper, 1.0))
    return cal.Predictions.from_probs(redrawn_labels(truth, rng), p)


# Engines


@pytest.mark.slow
@RECIPES
@settings(max_examples=15)
@given(data=rows(most=20), seed=st.integers(0, 1000))
def test_a_replicate_is_what_the_drawn_rows_give(metric, data, seed):
    p, y = data
    predictions = cal.Predictions.from_probs(y, p)
    (counts,) = draws.RowDraws(len(y))(np.random.default_rng(seed), 1)
    drawn = metric(np.repeat(y, counts), np.repeat(p, counts, axis=0))
    found = engines.exact(metric, predictions)([counts])
    assert found[0] == pytest.approx([drawn.value, *drawn.values], rel=0, abs=1e-12, nan_ok=True)


LENSES = [
    cal.Flat(), cal.ByLabel(cal.Classwise()), cal.Above(cal.Classwise(), 0.1), cal.Between(cal.TopLabel(), 0.2, 0.9),
    cal.ByPrediction(cal.TopLabel()),
]  # fmt: skip


@pytest.mark.parametrize("lens", LENSES, ids=repr)
@pytest.mark.parametrize("binning", [cal.EqualWidth(7), cal.EqualMass(4), cal.Edges([0, 0.3, 1])], ids=repr)
def test_replicates_of_every_lens_are_what_the_drawn_rows_give(lens, binning):
    predictions = classes(60, 3)
    metric = cal.BinnedError(select=~cal.predicted_in(1), lens=lens, binning=binning, across=cal.weighted_by_size)
    for counts in draws.RowDraws(60)(np.random.default_rng(1), 3):
        drawn = metric(np.repeat(predictions.labels, counts), np.repeat(predictions.values, counts, axis=0))
        found = engines.exact(metric, predictions)([counts])[0]
        assert found == pytest.approx([drawn.value, *drawn.values], rel=0, abs=1e-12, nan_ok=True)


def test_sample_weights_are_kept_under_resampling():
    base = calibrated(50)
    weighted = cal.Predictions.from_probs(base.labels, base.values, sample_weight=np.arange(50) % 3 + 1)
    for metric in (cal.ECE, cal.ADAPTIVE_ECE, cal.BRIER):
        for counts in draws.RowDraws(50)(np.random.default_rng(0), 2):
            direct = metric(
                cal.Predictions.from_probs(base.labels, base.values, sample_weight=weighted.weight * counts)
            )
            assert engines.exact(metric, weighted)([counts])[0, 0] == pytest.approx(direct.value, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("power", [1.0, 1.3, 3.0])
def test_cells_and_rows_agree_within_monte_carlo_error(power):
    predictions = calibrated(2000, seed=3, power=power)
    for metric in (cal.ECE, cal.ADAPTIVE_ECE, cal.MCS):
        exact, cells = (
            cal.Bootstrap(600, seed=1, engine=e).replicates(metric, predictions)[:, 0] for e in ("exact", "cells")
        )
        assert cells.mean() == pytest.approx(exact.mean(), abs=5 * exact.std() / np.sqrt(300))  # fails once in 10^6
        assert cells.std() == pytest.approx(exact.std(), rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("metric", [cal.ECE, cal.MCS, cal.WSMCS, cal.MCE], ids=["ECE", "MCS", "WSMCS", "MCE"])
def test_rows_drawn_by_way_of_their_cells_have_the_law_of_rows(metric):
    predictions = classes(300, 4)
    rng = np.random.default_rng(0)
    quick = engines.RowsInCells.of(metric, predictions)(rng, 2000)
    slow = engines.exact(metric, predictions)(draws.RowDraws(300)(rng, 2000))
    spread = np.nanstd(slow, axis=0)
    assert np.nanmean(quick, axis=0) == pytest.approx(np.nanmean(slow, axis=0), abs=5 * spread.max() / np.sqrt(1000))
    assert np.nanstd(quick, axis=0) == pytest.approx(spread, rel=0.12)  # fails once in 10^5


def test_places_within_cells_are_uniform():
    predictions = calibrated(50)
    work = engines.RowsInCells.of(cal.ECE, predictions)
    rng = np.random.default_rng(0)
    source, counts = np.random.SFC64(1), np.zeros(50)
    for drawn in rng.multinomial(50, work.sizes / 50, 4000):
        counts += np.bincount(work._places(source, drawn), minlength=50)
    assert counts == pytest.approx(4000, abs=5 * np.sqrt(4000))


def test_cells_refuse_what_they_cannot_do():
    predictions = classes()
    for metric in (cal.SCE, cal.FULL_ECE, cal.BRIER):
        with pytest.raises(cal.CalibrationInputError, match="cells needs"):
            metric(predictions, interval=cal.Bootstrap(10, engine="cells"))
    assert cal.CWECE(predictions, interval=cal.Bootstrap(50, engine="cells")).intervals


# Intervals


@pytest.mark.slow
@RECIPES
def test_every_recipe_and_every_part_has_an_interval(metric):
    result = metric(classes(80), interval=cal.Bootstrap(20, seed=0))
    assert result.interval.low <= result.interval.high
    assert len(result.intervals) == len(result.values)
    for part in result.parts.values():
        assert part.interval is not None


def test_an_interval_is_printed_and_travels():
    result = cal.SCE(classes(80), interval=cal.Bootstrap(20, seed=0))
    assert f"{result.interval.low:.4f}" in str(result)
    again = cal.Result.from_json(result.to_json())
    assert again.interval == result.interval
    assert again.intervals == result.intervals


@pytest.mark.slow
def test_results_depend_on_the_seed_and_not_on_the_number_of_processes():
    predictions = classes(100)
    one, two = (cal.Bootstrap(50, seed=7, n_jobs=jobs).replicates(cal.ACE, predictions) for jobs in (1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, cal.Bootstrap(50, seed=8).replicates(cal.ACE, predictions))
    nulls = [cal.consistency(cal.SCE, predictions, n=40, seed=7, n_jobs=jobs).values for jobs in (1, 2)]
    assert np.array_equal(*nulls)


def test_row_order_changes_no_interval_of_a_fixed_design():
    """Replicates are of rows, so the draws differ; but blocks of draws never overlap between seeds or stages."""
    first = draws.replicate(lambda rng, count: rng.random((count, 1)), 60, seed=0, stage=0)
    assert len(np.unique(first)) == 60
    for seed, stage in ((0, 1), (1, 0)):
        other = draws.replicate(lambda rng, count: rng.random((count, 1)), 60, seed=seed, stage=stage)
        assert not np.isin(first, other).any()


def test_an_interval_of_a_mean_has_the_width_that_theory_says():
    predictions = calibrated(3000)
    result = cal.MCS(predictions, interval=cal.Bootstrap(2000, seed=0))
    gaps = predictions.values - predictions.labels
    width = 2 * 1.6449 * gaps.std() / np.sqrt(len(gaps))
    assert result.interval.high - result.interval.low == pytest.approx(width, rel=0.06)  # sd of the quantiles: 2 %


def test_the_three_kinds_agree_where_there_is_no_bias():
    predictions = calibrated(1000)
    ends = []
    for kind in ("basic", "percentile", "bca"):
        interval = cal.MCS(predictions, interval=cal.Bootstrap(2000, seed=0, kind=kind)).interval
        ends.append((interval.low, interval.high))
        assert interval.kind == kind
    assert np.ptp(ends, axis=0).max() < 0.004  # a tenth of the interval's width


def test_bca_equals_its_textbook_formula():
    replicates = np.random.default_rng(0).normal(1.2, 1, 1999)
    left_out = np.random.default_rng(1).gamma(1, 1, 50)
    normal = __import__("statistics").NormalDist()
    shift = normal.inv_cdf(np.mean(replicates < 1.0))
    gaps = left_out.mean() - left_out
    speed = (gaps**3).sum() / (6 * (gaps**2).sum() ** 1.5)
    wanted = []
    for tail in (0.05, 0.95):
        z = shift + normal.inv_cdf(tail)
        wanted.append(np.quantile(replicates, normal.cdf(shift + z / (1 - speed * z))))
    assert bootstrap.bca(replicates, 1.0, 0.9, left_out) == pytest.approx(tuple(wanted))
    assert np.isnan(bootstrap.bca(replicates, 100.0, 0.9, left_out)[0])


def test_unsigned_errors_have_no_negative_ends():
    assert cal.ECE(calibrated(300), interval=cal.Bootstrap(100, seed=0)).interval.low >= 0
    assert cal.MCS(calibrated(300, power=0.7), interval=cal.Bootstrap(100, seed=0)).interval.low < 0


def test_clusters_that_repeat_themselves_widen_the_interval():
    base = calibrated(200, power=1.5)
    tenfold = cal.Predictions.from_probs(
        np.repeat(base.labels, 10), np.repeat(base.values, 10), prompt=np.repeat(np.arange(200), 10)
    )
    narrow = cal.MCS(tenfold, interval=cal.Bootstrap(500, seed=0)).interval
    wide = cal.MCS(tenfold, interval=cal.Bootstrap(500, seed=0, groups="prompt")).interval
    assert (wide.high - wide.low) / (narrow.high - narrow.low) == pytest.approx(np.sqrt(10), rel=0.15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n: must be a whole number"),
        ({"level": 95}, "95% is level=0.95"),
        ({"level": 0}, "strictly between 0 and 1"),
        ({"level": 1}, "strictly between 0 and 1"),
        ({"seed": None}, "so that the run can be repeated"),
        ({"seed": -1}, "seed"),
        ({"kind": "wald"}, "must be one of basic, percentile, bca"),
        ({"engine": "fast"}, 'must be "exact" or "cells"'),
        ({"engine": "cells", "groups": "prompt"}, "cells knows no rows"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_use_of_the_bootstrap_is_a_clear_error(arguments, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        cal.Bootstrap(**arguments)


def test_clusters_must_exist_and_differ():
    with pytest.raises(cal.CalibrationInputError, match="unknown"):
        cal.ECE(calibrated(50), interval=cal.Bootstrap(10, groups="prompt"))
    with pytest.raises(cal.CalibrationInputError, match="at least two values"):
        cal.ECE(calibrated(50, prompt=["a"] * 50), interval=cal.Bootstrap(10, groups="prompt"))


# Nulls


@pytest.mark.slow
def test_the_three_ways_to_redraw_labels_have_one_distribution():
    predictions = classes(150, 4)
    for metric in (cal.ADAPTIVE_ECE, cal.ECE):
        table_or_view = consistency._work(metric, predictions)
        assert isinstance(table_or_view, (consistency._RedrawnTable, consistency._RedrawnView))
        rng = np.random.default_rng(0)
        quick = table_or_view(rng, 1500)[:, 0]
        slow = consistency._Relabelled(metric, predictions)(rng, 1500)[:, 0]
        assert quick.mean() == pytest.approx(slow.mean(), abs=5 * slow.std() / np.sqrt(750))  # fails once in 10^6
        assert quick.std() == pytest.approx(slow.std(), rel=0.15)


@pytest.mark.parametrize(
    "metric",
    [cal.WSMCS, cal.CWECE, replace(cal.ECE, select=cal.label_in(0)), replace(cal.ECE, lens=cal.Flat()), cal.BRIER],
    ids=["by label", "parts by label", "selected by label", "flat", "score"],
)
def test_questions_that_look_at_the_label_are_asked_anew(metric):
    work = consistency._work(metric, classes(50))
    assert isinstance(work, consistency._Relabelled) == (metric is not cal.BRIER)


@pytest.mark.slow
def test_vector_lenses_redraw_among_their_coordinates():
    predictions = classes(400, 4)
    for lens in (cal.TopK(2), cal.Groups({"a": [0, 1], "b": [2, 3]}), cal.Full()):
        metric = cal.BinnedError(lens=lens, binning=cal.KDTree(0.2))
        rng = np.random.default_rng(0)
        quick = consistency._work(metric, predictions)(rng, 300)[:, 0]
        slow = consistency._Relabelled(metric, predictions)(rng, 300)[:, 0]
        assert quick.mean() == pytest.approx(slow.mean(), abs=5 * slow.std() / np.sqrt(150))  # fails once in 10^6


def test_the_null_tells_floor_excess_and_p_value():
    off, fine = (cal.consistency(cal.ECE, calibrated(500, power=power), n=199, seed=0) for power in (2.0, 1.0))
    assert off.p_value == 1 / 200
    assert fine.p_value > 0.05
    assert off.excess == off.result.value - off.mean > 0.05
    assert fine.quantile(0.5) <= fine.quantile(0.95)
    assert "under calibration" in str(fine)


def test_signed_metrics_are_tested_by_absolute_value():
    for power in (0.6, 1.7):
        assert cal.consistency(cal.MCS, calibrated(500, power=power), n=99, seed=0).p_value == 0.01


def test_parts_have_p_values_of_their_own():
    sharp = cal.consistency(cal.SCE, classes(2000, 3, sharper=3.0), n=99, seed=0)
    assert set(sharp.part_p_values) == {"0", "1", "2"}
    assert max(sharp.part_p_values.values()) == 0.01


def test_soft_labels_and_bad_counts_have_no_null():
    soft = cal.Predictions.from_probs([0.5, 1.0], [0.4, 0.9])
    with pytest.raises(cal.CalibrationInputError, match="soft labels"):
        cal.consistency(cal.ECE, soft)
    with pytest.raises(cal.CalibrationInputError, match="at least 1"):
        cal.consistency(cal.ECE, calibrated(20), n=0)


def test_redrawn_labels_follow_the_forecasts():
    p = np.array([0.1, 0.0, 0.6, 0.3])
    labels = redrawn_labels(np.tile(p, (20_000, 1)), np.random.default_rng(0))
    assert np.bincount(labels, minlength=4) / 20_000 == pytest.approx(p, abs=0.02)  # five standard errors
    assert not (labels == 1).any()


# Comparisons


def test_a_better_model_is_found_better_and_itself_equal():
    rng = np.random.default_rng(0)
    truth = rng.beta(2, 1, 1500)
    y = (rng.random(1500) < truth).astype(int)
    good, bad = (cal.Predictions.from_probs(y, p) for p in (truth, truth**3))
    found = cal.compare(cal.ECE, good, bad, n=200, seed=0, margin=0.01)
    assert found.difference < 0
    assert found.interval.high < 0
    assert found.p_value < 0.01
    assert found.equivalent is False
    itself = cal.compare(cal.ECE, good, good, n=50, seed=0, margin=0.01)
    assert (itself.difference, itself.p_value, itself.equivalent) == (0.0, 1.0, True)
    assert "equivalent within 0.01" in str(itself)


def test_pairing_cancels_what_both_models_share():
    rng = np.random.default_rng(0)
    truth = rng.beta(2, 1, 800)
    y = (rng.random(800) < truth).astype(int)
    a, b = cal.Predictions.from_probs(y, truth), cal.Predictions.from_probs(y, np.clip(truth + 0.01, 0, 1))
    paired = cal.compare(cal.BRIER, a, b, n=300, seed=0).interval
    alone = cal.BRIER(a, interval=cal.Bootstrap(300, seed=0)).interval
    assert paired.high - paired.low < (alone.high - alone.low) / 5


def test_models_of_other_rows_are_not_compared():
    with pytest.raises(cal.CalibrationInputError, match="rows of a"):
        cal.compare(cal.ECE, calibrated(50), calibrated(60))
    with pytest.raises(cal.CalibrationInputError, match="labels of a"):
        cal.compare(cal.ECE, calibrated(50), calibrated(50, seed=1))
    with pytest.raises(cal.CalibrationInputError, match="margin"):
        cal.compare(cal.ECE, calibrated(50), calibrated(50), margin=0)


def noisy_pair(n, seed):
    """Two models that are equally good and not the same: the truth's logits, each with noise of its own."""
    rng = np.random.default_rng([seed, n])
    z = rng.normal(0, 1.5, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return (cal.Predictions.from_probs(y, 1 / (1 + np.exp(-z - rng.normal(0, 0.5, n)))) for _ in range(2))


@pytest.mark.parametrize(("metric", "runs"), [(cal.ECE, 200), (cal.BRIER, 200), (cal.LOG_LOSS, 200)])
def test_equally_good_models_are_seldom_called_different(metric, runs):
    # At an exact 5 %, more than 21 of 200 come once in 1,000 times; reflected quantiles say so of ECE in 10 %.
    verdicts = [cal.compare(metric, *noisy_pair(200, seed), n=100).worse for seed in range(runs)]
    assert sum(verdict is not None for verdict in verdicts) <= 21


def test_the_direction_of_a_metric_says_which_model_is_worse():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.3, 0.7, 1500)
    labels = (rng.random(1500) < p).astype(int)
    right, low, high = (cal.Predictions.from_probs(labels, p + by) for by in (0, -0.2, 0.2))
    for metric in (cal.ECE, cal.BRIER, cal.MCS):
        assert [cal.compare(metric, a, right, n=100).worse for a in (low, high)] == [True, True]
        assert cal.compare(metric, right, low, n=100).verdict("new", "old") == "new is better"
    opposite = cal.compare(cal.MCS, low, high, n=100)
    assert opposite.p_value < 0.001
    assert opposite.worse is None  # as far off, on the other side
    assert opposite.verdict() == "different, but neither is clearly better"


def test_a_worse_model_is_a_different_one():
    p = cal.Predictions.from_probs([1, 0, 1, 1], [0.9, 0.2, 0.6, 0.8])
    comparison = dataclasses.replace(cal.compare(cal.MCS, p, p, n=50), worse_by=0.1, worse_p_value=0.001)
    assert [dataclasses.replace(comparison, p_value=of).worse for of in (0.04, 0.3)] == [True, None]
    corrected = dataclasses.replace(comparison, p_value=0.04, adjusted_p_value=0.08, adjusted_worse_p_value=0.002)
    assert (corrected.worse, corrected.verdict()) == (None, "no clear difference")


def test_models_are_called_unequal_only_where_the_interval_says_so():
    p = cal.Predictions.from_probs([1, 0, 1, 1], [0.9, 0.2, 0.6, 0.8])
    comparison = cal.compare(cal.MCS, p, p, n=50, margin=0.1)

    def words(low: float, high: float) -> str:
        interval = dataclasses.replace(comparison.interval, low=low, high=high)
        return dataclasses.replace(comparison, interval=interval).verdict().removeprefix("no clear difference, ")

    assert words(-0.09, 0.05) == "equivalent within 0.1"
    assert words(-0.3, 0.4) == words(0.05, 0.4) == "not shown to be equivalent within 0.1"
    assert words(0.1, 0.4) == words(-0.4, -0.2) == "not equivalent within 0.1"


def test_infinite_losses_have_no_difference_and_say_so():
    y = [1, 0, 1, 1]
    finite, infinite = (cal.Predictions.from_probs(y, [p, 0.2, 0.6, 0.7]) for p in (0.9, 0.0))
    both, first = (cal.compare(cal.LOG_LOSS, infinite, other, n=20) for other in (infinite, finite))
    assert (both.worse, both.verdict()) == (None, "no difference: first and second are infinite")
    assert (first.worse, first.verdict()) == (True, "second is better: first is infinite")
    assert all(np.isnan([pair.difference, pair.p_value, pair.interval.low]).all() for pair in (both, first))


def test_p_values_that_stand_together_are_corrected():
    pairs = {seed: cal.compare(cal.BRIER, *noisy_pair(100, seed), n=50) for seed in range(4)}
    together = comparison.corrected_for_number(pairs)
    assert [pair.adjusted_p_value for pair in together.values()] == pytest.approx(
        holm(np.array([pair.p_value for pair in pairs.values()]))
    )
    again = comparison.corrected_for_number(together)
    assert [pair.adjusted_p_value for pair in again.values()] == [pair.adjusted_p_value for pair in together.values()]


def test_p_values_of_a_table_are_corrected_and_have_one_floor():
    predictions = calibrated(300, power=2.0, region=np.arange(300) % 3)
    table = cal.table(predictions, {"ece": cal.ECE, "mcs": cal.MCS, "brier": cal.BRIER}, by="region", null=99)
    results = [result for row in table.results.values() for name, result in row.items() if name != "brier"]
    raw, corrected = (np.array([r.details[name] for r in results]) for name in ("null_p_value", "corrected_p_value"))
    assert corrected == pytest.approx(holm(raw))
    assert corrected.min() == pytest.approx(8 / 100)
    quoted = [text for row in table.rows() for text in row if "p <" in text]
    assert quoted
    assert all("p < 0.09)" in text for text in quoted)


def test_holm_is_never_below_the_p_value_and_keeps_its_order():
    assert holm(np.array([0.04, 0.01, 0.03])).tolist() == pytest.approx([0.06, 0.03, 0.06])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]


# Sensitivity


def test_sensitivity_follows_the_number_of_bins():
    curve = cal.sensitivity(cal.ECE, calibrated(500), values=[2, 20, 200], bootstrap=40, seed=0)
    assert curve.values.tolist() == [
        replace(cal.ECE, binning=cal.EqualWidth(bins))(calibrated(500)).value for bins in (2, 20, 200)
    ]
    assert np.all(np.diff(curve.values) > 0)
    assert np.all(np.diff(curve.bin_sizes[:, 1]) < 0)
    assert not curve.stable.any()


def test_an_end_of_the_settings_is_never_called_stable_since_one_side_of_it_is_unknown():
    flat = cal.sensitivity(cal.ECE, calibrated(500), values=[10, 11, 12, 13], bootstrap=40, seed=0)
    assert flat.stable.tolist() == [False, True, True, False]
    assert [line.split()[-1] for line in str(flat).splitlines()] == ["stable", "-", "yes", "yes", "-"]
    steep = replace(flat, sds=np.array([1.0, 0.0, 0.0, 0.0]))
    assert steep.stable.tolist() == [False, False, False, False]
    single = cal.sensitivity(cal.ECE, calibrated(100), values=[10], bootstrap=5, seed=0)
    assert single.stable.tolist() == [False]
    assert str(single).splitlines()[1].endswith("-")


@pytest.mark.slow
def test_sensitivity_to_gamma_and_to_fewer_rows():
    predictions = classes(300, 3)
    curve = cal.sensitivity(cal.FULL_ECE, predictions, over="gamma", values=[0.5, 0.1, 0.02], bootstrap=20, seed=0)
    assert np.all(np.diff(curve.values) > 0)
    assert np.all(curve.bin_sizes[:, 2] < [150, 30, 6])
    fewer = cal.sensitivity(cal.FULL_ECE, predictions, over="share", values=[0.1, 1.0], bootstrap=40, seed=0)
    assert fewer.sds[0] > fewer.sds[1]
    assert fewer.means[0] > fewer.means[1]


def test_sensitivity_knows_what_can_be_varied():
    with pytest.raises(cal.CalibrationInputError, match="it has: closed, n_bins"):
        cal.sensitivity(cal.ECE, calibrated(20), over="gamma", values=[0.1])
    with pytest.raises(cal.CalibrationInputError, match="share"):
        cal.sensitivity(cal.ECE, calibrated(20), over="share", values=[2])
    with pytest.raises(cal.CalibrationInputError, match="values"):
        cal.sensitivity(cal.ECE, calibrated(20), values=[])


def test_progress_is_silent_where_there_is_no_terminal(capfd):
    cal.Bootstrap(40, seed=0).replicates(cal.FULL_ECE, classes(500))
    assert capfd.readouterr().err == ""


def test_a_bootstrap_interval_that_misses_what_is_known_has_a_note():
    """Calibrated classes: the limit of every error is 0. Seeds 0 to 9; no interval above 0 goes without a note."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.full(4, 0.4), 300)
        y = (p.cumsum(axis=1) < rng.random(300)[:, None]).sum(axis=1)
        for metric in (cal.ECE, cal.SCE, cal.MCE):
            result = metric(y, p, interval=cal.Bootstrap(60, seed=0))
            assert result.notes or result.interval.low == 0


def test_a_bootstrap_without_an_interval_says_so():
    result = cal.SLOPE([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], interval=cal.Bootstrap(20))
    assert np.isnan(result.interval.low)
    assert result.notes[-1] == "no interval: the value, or that of the resamples, is not finite"


@pytest.mark.parametrize(("n", "level", "few"), [(5, 0.9, True), (19, 0.9, True), (20, 0.9, False), (20, 0.95, True)])
def test_a_bootstrap_of_few_resamples_says_so(n, level, few):
    result = cal.BRIER(calibrated(300), interval=cal.Bootstrap(n, level=level))
    assert any("too few for quantiles" in note for note in result.notes) == few


def test_an_error_that_is_mostly_noise_says_so():
    noisy = cal.ECE(calibrated(300), interval=cal.Bootstrap(100, seed=0))
    assert any("noise" in note for note in noisy.notes)
    clear = cal.ECE(calibrated(2000, power=3.0), interval=cal.Bootstrap(100, seed=0))
    assert not any("noise" in note for note in clear.notes)


# Jackknife


@pytest.mark.slow
def test_the_jackknife_takes_off_the_bias_of_a_squared_error():
    """Squared binned errors have a bias of ybar (1 - ybar) / n per bin: 300 calibrated data sets, seed 0."""
    squared = replace(cal.ECE, distance=cal.squared)
    plain, corrected = [], []
    for seed in range(300):
        found = cal.jackknife(squared, calibrated(150, seed=seed), blocks=150)
        plain.append(found.result.value)
        corrected.append(found.corrected)
    assert np.mean(plain) > 0.008
    assert abs(np.mean(corrected)) < 4 * np.std(corrected) / np.sqrt(300)  # fails once in 15,000


def test_the_jackknife_of_a_mean_is_its_standard_error():
    predictions = calibrated(400)
    found = cal.jackknife(cal.BRIER, predictions, blocks=400)
    scores = (predictions.values - predictions.labels) ** 2
    assert found.bias == pytest.approx(0, abs=1e-12)
    assert found.standard_error == pytest.approx(scores.std(ddof=1) / 20)
    assert "without its bias" in str(found)


def test_the_jackknife_needs_rows_and_blocks():
    with pytest.raises(cal.CalibrationInputError, match="two rows"):
        cal.jackknife(cal.ECE, calibrated(1))
    with pytest.raises(cal.CalibrationInputError, match="blocks"):
        cal.jackknife(cal.ECE, calibrated(10), blocks=1)


# What has no value has no interval, and no significance either


def nobody(metric):
    return replace(metric, select=cal.confidence_between(0, 0))


def test_where_there_is_no_value_there_is_no_interval():
    empty = nobody(cal.ECE)(calibrated(50), interval=cal.Bootstrap(20))
    assert np.isnan([empty.value, empty.interval.low, empty.interval.high]).all()
    assert np.isnan(cal.ECE(calibrated(50)[:0], interval=cal.Bootstrap(20)).interval.low)
    cells = nobody(cal.ECE)(calibrated(50), interval=cal.Bootstrap(20, engine="cells"))
    assert np.isnan(cells.interval.low)
    p = np.tile([[0.6, 0.3, 0.1]], (40, 1))
    absent = cal.CWECE(np.zeros(40, int), p, interval=cal.Bootstrap(20))
    assert np.isnan(absent.parts["2"].interval.high)
    rare = cal.CWECE([2] + [0, 1] * 20, np.vstack([p, p[:1]]), interval=cal.Bootstrap(50, kind="bca"))
    assert rare.interval.low <= rare.interval.high


def test_nothing_is_not_significant():
    assert np.isnan(cal.compare(nobody(cal.ECE), calibrated(50), calibrated(50), n=20).p_value)
    assert np.isnan(cal.consistency(nobody(cal.ECE), calibrated(50), n=20).p_value)


def test_redraws_without_a_value_are_left_out():
    few = cal.Predictions.from_probs([1, 1] + [0] * 10, np.linspace(0.02, 0.2, 12))
    null = cal.consistency(cal.ECE_KDE, few, n=99, seed=0)
    there = null.values[~np.isnan(null.values)]
    assert 0 < len(there) < 99
    assert null.mean == there.mean()
    assert null.p_value == (1 + np.sum(there >= null.result.value)) / (len(there) + 1)


def test_an_impossible_truth_keeps_the_log_loss_infinite():
    predictions = cal.Predictions.from_probs([1] + [0] * 30, [0.0] + [0.2] * 30)
    result = cal.LOG_LOSS(predictions, interval=cal.Bootstrap(200, seed=0, kind="percentile"))
    assert result.interval.high == np.inf


def test_accuracies_stay_below_one():
    sure = cal.Predictions.from_confidence([1] * 98 + [0] * 2, [0.9] * 100)
    assert cal.ACCURACY(sure, interval=cal.Bootstrap(200, seed=0, level=0.99)).interval.high == 1.0


# Errors without bias


@pytest.mark.slow
def test_replicates_of_a_debiased_error_are_centred_on_the_plug_in_error():
    """Coverage of the limit by 90 % intervals, 100 data sets, seeds 0-99; without the pivot it is about 50 %."""
    held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = rng.random(500)
        predictions = cal.Predictions.from_probs((rng.random(500) < p**1.4).astype(int), p)
        interval = cal.ECE_DEBIASED(predictions, interval=cal.Bootstrap(100, seed=seed)).interval
        held += interval.low <= 0.0896 <= interval.high  # the root mean square of c - c^1.4, in fifteen equal bins
    assert held >= 76  # a coverage of 85 % gives less once in 100


def below_zero(metric):
    """Calibrated data on which an error without bias is negative."""
    return next(p for p in (calibrated(200, seed=seed) for seed in range(50)) if metric(p).value < 0)


def test_errors_that_may_be_negative_have_intervals_below_zero():
    for metric in (cal.SKCE, replace(cal.ECE_DEBIASED, aggregate=cal.mean)):
        result = metric(below_zero(metric), interval=cal.Bootstrap(50, seed=0))
        assert result.interval.low < result.value < 0


def test_only_signed_errors_are_tested_on_both_sides():
    assert cal.consistency(cal.SKCE, below_zero(cal.SKCE), n=99, seed=0).p_value > 0.4


def test_cells_refuse_weights_soft_labels_and_shared_rows():
    base = calibrated(100)
    weighted = cal.Predictions.from_probs(base.labels, base.values, sample_weight=np.full(100, 0.01))
    soft = cal.Predictions.from_probs(np.full(100, 0.5), base.values)
    for predictions in (weighted, soft):
        with pytest.raises(cal.CalibrationInputError, match="plain counts"):
            cal.ECE(predictions, interval=cal.Bootstrap(10, engine="cells"))
    for lens in (cal.ByPrediction(cal.Classwise()), cal.Flat()):
        with pytest.raises(cal.CalibrationInputError, match="different rows"):
            cal.BinnedError(lens=lens)(classes(50), interval=cal.Bootstrap(10, engine="cells"))


def test_models_of_other_weights_are_not_compared():
    base = calibrated(50)
    weighted = cal.Predictions.from_probs(base.labels, base.values, sample_weight=np.arange(1, 51))
    with pytest.raises(cal.CalibrationInputError, match="weights of a"):
        cal.compare(cal.ECE, base, weighted)


def test_fewer_rows_show_the_mean_over_draws():
    curve = cal.sensitivity(cal.ECE, calibrated(400), over="share", values=[0.1, 1.0], bootstrap=40, seed=0)
    assert np.array_equal(curve.values, curve.means)
    assert np.isnan(curve.bin_sizes).all()


def test_a_row_that_sums_below_one_has_no_impossible_outcome():
    short = cal.Predictions.from_probs(np.zeros(2000, int), np.tile([[0.6, 0.2, 0.1995]], (2000, 1)))
    rng = np.random.default_rng(0)
    quick = consistency._work(cal.LOG_LOSS, short)(rng, 50)[:, 0]
    slow = consistency._Relabelled(cal.LOG_LOSS, short)(rng, 50)[:, 0]
    assert quick.mean() == pytest.approx(slow.mean(), abs=4 * slow.std() / 5)
    assert np.isfinite(quick).all()


def test_a_noise_floor_does_not_overwrite_an_estimators_own_p_value():
    made = cal.table(calibrated(200), {"ks": cal.ECCE_MAD}, null=19)["all"]["ks"]
    assert made.details["p_value"] == cal.ECCE_MAD(calibrated(200)).details["p_value"]
    assert made.details["null_p_value"] in np.arange(1, 21) / 20


def test_tables_show_what_was_asked_for():
    predictions = calibrated(200, region=np.repeat(["a", "b"], 100))
    made = cal.table(predictions, {"ece": cal.ECE}, by="region", interval=cal.Bootstrap(20), null=19)
    assert "[" in str(made)
    assert "noise" in str(made)
    assert (
        made.to_csv().splitlines()[0]
        == "region,n,ece,ece low,ece high,ece noise_floor,ece null_p_value,ece corrected_p_value"
    )


# Formulas, said again


def test_interval_and_p_value_of_a_comparison_are_students_with_the_resampled_spread():
    from scipy import stats

    a = calibrated(120)
    b = cal.Predictions.from_probs(a.labels, np.clip(a.values + 0.02, 0, 1))
    found = cal.compare(cal.BRIER, a, b, n=200, seed=3)
    pair = comparison._Paired((engines.exact(cal.BRIER, a), engines.exact(cal.BRIER, b)), draws.RowDraws(120))
    drawn = np.subtract(*draws.replicate(pair, 200, seed=3, stage=2).T)
    student = stats.t(199, scale=drawn.std(ddof=1))
    assert found.p_value == pytest.approx(2 * student.sf(abs(found.difference)))
    ends = (found.interval.low, found.interval.high)
    assert ends == pytest.approx((found.difference - student.ppf(0.95), found.difference + student.ppf(0.95)))
    at_p = cal.compare(cal.BRIER, a, b, n=200, seed=3, level=1 - found.p_value).interval
    assert min(abs(at_p.low), abs(at_p.high)) < 1e-9  # the interval ends at 0 where its level is 1 - p


def test_the_jackknife_of_four_rows_by_hand():
    p, y = np.array([0.9, 0.4, 0.7, 0.2]), np.array([1, 1, 0, 0])
    whole = cal.RMSCE(y, p).value
    others = np.array([cal.RMSCE(np.delete(y, row), np.delete(p, row)).value for row in range(4)])
    found = cal.jackknife(cal.RMSCE, cal.Predictions.from_probs(y, p))
    assert found.bias == pytest.approx(3 * (others.mean() - whole))
    assert found.standard_error == pytest.approx(np.sqrt(3 / 4 * np.sum((others - others.mean()) ** 2)))


@pytest.mark.parametrize("metric", [cal.ECE, cal.MCE, cal.MCS, cal.SMECE, cal.ACCURACY], ids=lambda one: one.name)
def test_no_interval_leaves_the_values_that_there_are(metric):
    made = cal.Predictions.from_probs([0, 0, 0, 0, 1], [[0.01, 0.99]] * 4 + [[0.02, 0.98]])
    result = metric(made, interval=cal.Bootstrap(50, seed=0))
    assert -1 <= result.interval.low <= result.interval.high <= 1


def test_basic_intervals_are_reflected():
    assert bootstrap.basic(np.arange(101.0), 40.0, 0.5) == (5.0, 55.0)


def test_a_bootstrap_interval_that_does_not_cover_says_so():
    perfect = cal.ECE([0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], interval=cal.Bootstrap(20, seed=0))
    assert (perfect.interval.low, perfect.interval.high) == (0.0, 0.0)
    assert POINT in perfect.notes
    alone = cal.ECE([1], [0.7], interval=cal.Bootstrap(20, seed=0))
    assert np.isnan(alone.interval.low)
    assert ALONE in alone.notes
