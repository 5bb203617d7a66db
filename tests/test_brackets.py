"""Bounds from counts in cells hold for the rows themselves, and are as near as their formulas say."""

import dataclasses
import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.binning import cells
from calibrant.binning.bounds import Boxes, Entries, extreme_orders, variation
from calibrant.errors.asking import Pass
from calibrant.errors.likelihood_bounds import gain_bounds
from calibrant.errors.platt_excess import platt_excess
from calibrant.kernels.cell_tallies import MODULUS
from calibrant.scale import State
from calibrant.specification.facts import Facts, declare

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("bracket_study", ROOT / "scripts" / "bracket_study.py")
study = importlib.util.module_from_spec(spec)
spec.loader.exec_module(study)


def in_cells(y, p, **options):
    predictions = cal.Predictions.from_probs(y, p, **options)
    return Pass(cal.ADAPTIVE_ECE).summarise(predictions), predictions


def assert_within(metric, table, predictions):
    result = study.told(metric, table)
    assert study.misses(result, metric(predictions)) == [], metric
    return result


# ---- every bracket holds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(10), ids=list(study.LAWS))
def test_bounds_hold_on_seeded_laws(place):
    """15 laws of each kind, n from 50 to 20,000; the metrics take turns, three laws for all of them."""
    lines = list(study.METRICS.values())
    for turn in range(15):
        y, p, _ = study.law(10 * turn + place)
        table, predictions = in_cells(y, p)
        for metric in itertools.chain(*lines[turn % 3 :: 3]):
            if len(y) < 3000 or metric != cal.ECE_SWEEP:  # a sweep of many rows is slow
                assert_within(metric, table, predictions)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_under_weights_and_soft_labels(seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, 400) if seed % 2 else 0.7 + 0.01 * rng.random(400)
    y, shares = (rng.random(400) < p).astype(int), rng.integers(0, 9, 400) / 8
    metrics = list(itertools.chain(*study.METRICS.values()))
    for metric in metrics:
        assert_within(metric, *in_cells(y, p, sample_weight=rng.integers(1, 4, 400)))
    lens = cal.OneClass(1)
    predictions = cal.Predictions.from_probs(np.column_stack([1 - shares, shares]), np.column_stack([1 - p, p]))
    table = Pass(cal.ADAPTIVE_ECE.replace(lens=lens)).summarise(predictions)
    for metric in metrics:
        asked = metric.replace(lens=lens)
        if metric == cal.ECE_DEBIASED or isinstance(metric, cal.MeanScore):  # more than shares of outcomes is needed
            with pytest.raises(cal.CalibrationInputError, match=r"soft labels|must follow from forecasts in cells"):
                study.told(asked, table)
        else:
            assert study.misses(study.told(asked, table), asked(predictions)) == [], metric


def test_small_bins_beside_a_heavy_one_keep_their_digits():
    """Running totals of 6e10 are floats of 1e-5: the gap of a bin of few samples is off by more than its bounds."""
    rng = np.random.default_rng(13)
    for _ in range(20):
        certain, beside = 0.2 + 0.001 * rng.random(3), 12 / 37 + 1e-5 * rng.normal(size=4)
        p, y = np.concatenate([[0.0612345], certain, beside]), [0, 1, 1, 1, 0, 1, 0, 1]
        table, predictions = in_cells(y, p, sample_weight=[6 * 10**10, *[1] * 7])
        assert_within(cal.MCE.replace(binning=cal.EqualWidth(37)), table, predictions)


@pytest.mark.parametrize("metric", [cal.ACE, cal.ACE.replace(across=cal.weighted_by_size)])
def test_each_class_has_bounds_of_its_own(metric):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), 3000)
    predictions = cal.Predictions.from_probs(rng.integers(0, 5, 3000), p)
    told, rows = Pass(metric).told(Pass(metric).summarise(predictions)), metric(predictions)
    assert told.bounds[0] <= rows.value <= told.bounds[1] < told.bounds[0] + 0.01
    for name, part in told.parts.items():
        assert part.bounds[0] <= rows.parts[name].value <= part.bounds[1]
        assert part.bounds[0] <= part.value <= part.bounds[1]


def test_sums_of_outputs_are_compared_with_edges_at_their_grain():
    """In-top-2 outputs are sums: what is 1e-14 beside the edge .7 lies on it, which cells of floats do not know."""
    rng = np.random.default_rng(1)
    top = np.array([[0.4, 0.3, 0.2, 0.1]]) + rng.choice([-1e-14, 0, 1e-14], (200, 1)) * [1, 0, -1, 0]
    predictions = cal.Predictions.from_probs(rng.integers(0, 4, 200), top)
    table = Pass(cal.ADAPTIVE_ECE.replace(lens=cal.InTopK(2))).summarise(predictions)
    for closed in ("left", "right"):
        metric = cal.BinnedError(lens=cal.InTopK(2), binning=cal.EqualWidth(10, closed), aggregate=cal.maximum)
        result = metric.within(table)
        assert study.misses(result, metric(predictions)) == []
        assert result.bounds is not None


def test_bounds_of_an_ensemble_of_range_schemes_hold_the_value_of_the_rows():
    rng = np.random.default_rng(5)
    p = rng.beta(3, 0.4, 500)
    predictions = cal.Predictions.from_probs(rng.random(500) < p**1.5, p)
    metric = cal.EnsembleError(binnings=[cal.EqualMass(4), cal.EqualMass(9), cal.EqualWidth(15)])
    low, high = metric.within(Pass(cal.ADAPTIVE_ECE).summarise(predictions)).bounds
    assert low <= metric(predictions).value <= high < low + 0.01


def test_each_precision_compares_with_its_own_edges():
    tenths = np.arange(11) / 10
    batches = [cal.Predictions.from_probs([0, 1] * 5 + [0], tenths.astype(kind)) for kind in (np.float64, np.float32)]
    for closed in ("left", "right"):
        metric = cal.ECE.replace(binning=cal.EqualWidth(10, closed))
        rows = metric.conclude(sum(map(metric.summarise, batches)))
        result = metric.within(sum(map(Pass(cal.ADAPTIVE_ECE).summarise, batches)))
        assert study.misses(result, rows) == []


@pytest.mark.parametrize(("seed", "widest"), [(40, 1e-6), (51, 1e-6), (52, 0), (54, 1e-6), (57, 1e-4), (8, 1e-5)])
def test_platts_excess_loss_is_known_closely(seed, widest):
    y, p, _ = study.law(seed)
    table, predictions = in_cells(y, p)
    metric = cal.TableStatistic(statistic=platt_excess)
    low, high = assert_within(metric, table, predictions).bounds or (0.0, 0.0)
    assert high - low <= widest
    told = State.of(predictions, {"auroc": cal.AUROC}).result(metric)  # from the cells of another metric
    assert (told.bounds or (0.0, 0.0)) == (low, high)


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([0, 0, 1, 1], [0.311, 0.3111, 0.3112, 0.7]),  # the cell that holds a threshold has both outcomes
        ([0, 1, 0, 1], [0.311, 0.3111, 0.3112, 0.3113]),  # one cell
        ([1, 1, 0, 0], [0.2, 0.3111, 0.3112, 0.7]),
        ([1, 1, 1], [0.2, 0.3111, 0.3112]),
    ],
)
def test_platts_excess_loss_has_bounds_where_no_line_is_the_best(y, p):
    metric = cal.TableStatistic(statistic=platt_excess)
    low, high = assert_within(metric, *in_cells(y, p)).bounds
    assert 0 <= low <= high <= metric.facts.high


def test_platts_excess_loss_is_known_where_every_forecast_is():
    y, p = [1, 0, 1, 0, 0, 1], [0.0, 1e-12, 1e-11, 1.0, 1 - 1e-13, 0.5]
    metric = cal.TableStatistic(statistic=platt_excess)
    separated = [0, 0, 1, 1], [0.1131, 0.2231, 0.2231, 0.3331]  # at the threshold, both outcomes of one forecast
    for outcomes, forecasts in ((y, p), (y[:3], p[:3]), separated):
        low, high = assert_within(metric, *in_cells(outcomes, forecasts)).bounds
        assert high - low < 1e-10


@pytest.mark.parametrize(
    ("y", "p", "weight"),
    [
        (
            [0, 1],
            [2**-32, 2**-32 * (1 + 1e-9)],
            [1, 1],
        ),  # log-odds of the means of two cells that floats do not tell apart
        ([0, 0, 1, 1, 0, 0], [0.25, 1e-12, *[2**-32 * (1 + 1e-9)] * 2, 1.0, 2**-32], [1] * 6),
        (
            [0, 1, 1, 0, 0, 1],
            [
                0.9831578477131406,
                1 - 2.187345e-10,
                1 - 3.644612e-10,
                1 - 7.6897572e-9,
                0.9991365453241174,
                1 - 2.879942e-10,
            ],
            [35774, 70041, 76601, 63130, 95209, 50150],
        ),
    ],
)
def test_platts_excess_loss_is_bounded_where_units_are_coarse(y, p, weight):
    assert_within(cal.TableStatistic(statistic=platt_excess), *in_cells(y, p, sample_weight=weight))


def test_one_sample_beside_very_many_in_its_cell_keeps_its_digits():
    """The sum of what failed, as a difference of floats, would be off by more than the bounds."""
    rng = np.random.default_rng(15)
    for _ in range(20):
        p = 2e-9 * (1 + 0.05 * rng.random(4))
        table, predictions = in_cells([0, 0, 0, 1], p, sample_weight=[2 * 10**10] * 3 + [1])
        assert_within(cal.LOG_LOSS.replace(lens=cal.TopLabel()), table, predictions)
        (ladder,) = table.ladders()
        entries = Entries.of(ladder)
        assert entries.true_outputs[0].sum() == pytest.approx(p[3], abs=2**-52)
    y, p = [1, 1, 0], 0.7 + 1e-6 * rng.random(3)
    (ladder,) = in_cells(y, p, sample_weight=[2 * 10**10, 2 * 10**10, 1])[0].ladders()
    assert Entries.of(ladder).false_outputs[0].sum() == pytest.approx(p[2], abs=2**-52)


def test_what_a_line_saves_lies_between_bounds_wherever_the_line_is():
    rng = np.random.default_rng(14)
    for turn in range(60):
        p = np.concatenate([0.3125 + 0.0019 * rng.beta(0.5, 0.5, 12), rng.beta(0.4, 0.4, 12).clip(1e-9, 1 - 1e-9)])
        y = rng.integers(0, 2, 24)
        level, rise = rng.normal(size=2) * (0.1, 1, 5)[turn % 3] + (0, 1)
        (ladder,) = in_cells(y, p)[0].ladders()
        line = level + rise * (np.log(p) - np.log1p(-p))
        before, after = -np.log(np.where(y, p, 1 - p)), np.logaddexp(0, np.where(y, -line, line))
        low, high = gain_bounds(Entries.of(ladder), level, rise)
        assert low <= (before - after).sum() <= high
        assert high - low < 1e-2 * (1 + abs(rise)) ** 2


# ---- exact where cells decide ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_bins_at_stored_edges_are_exact_to_the_bit(kind, closed):
    rng = np.random.default_rng(2)
    for n_bins in (1, 7, 10, 15, 20, 50, 100):
        edges = np.arange(n_bins + 1) / n_bins
        near = np.clip(np.concatenate([edges[:-1], rng.random(300), edges - 1e-9, edges + 1e-9]), 0, 0.99)
        p = np.concatenate([near, 0.991 + 1e-5 * rng.random(20)]).astype(kind)  # the last cell holds several
        table, predictions = in_cells(rng.integers(0, 2, len(p)), p)
        for aggregate in (cal.mean, cal.maximum):
            metric = cal.BinnedError(binning=cal.EqualWidth(n_bins, closed), aggregate=aggregate)
            result, rows = metric.within(table), metric(predictions)
            assert (result.value, result.bounds, result.notes) == (rows.value, None, rows.notes)
            for name in ("size", "outputs", "targets"):
                assert getattr(result.bins, name).same(getattr(rows.bins, name))
            assert np.array_equal(result.bins.low, rows.bins.low)


@pytest.mark.parametrize("metric", [cal.OE_RATIO, cal.NetBenefit(0.2), cal.NetBenefit(0.35)], ids=str)
def test_sums_and_stored_thresholds_are_exact(metric):
    y, p, _ = study.law(50)
    table, predictions = in_cells(y, p)
    result = Pass(metric).told(table)
    assert (result.value, result.bounds) == (metric(predictions).value, None)


def test_a_state_tells_other_metrics_from_its_cells():
    rng = np.random.default_rng(3)
    predictions = cal.Predictions.from_probs(rng.integers(0, 3, 2000), rng.dirichlet(np.ones(3), 2000))
    state = State.of(predictions, {"adaptive": cal.ADAPTIVE_ECE, "auroc": cal.AUROC})
    for metric in (cal.ECE, cal.MCS, cal.ECE.replace(binning=cal.EqualWidth(20))):
        assert state.result(metric).value == metric(predictions).value
        assert state.result(metric).bounds is None
    results = {**state.results(), "brier": state.result(cal.BRIER.replace(lens=cal.TopLabel()))}
    for result in results.values():
        low, high = result.bounds
        assert low <= result.metric(predictions).value <= high
    with pytest.raises(cal.CalibrationInputError, match="must follow from what the state keeps"):
        state.result(cal.SCE)


# ---- what is known of pieces decides ---------------------------------------------------------------------------------


def scattered(n=400, seed=4):
    rng = np.random.default_rng(seed)
    p = 0.3 + 0.003 * rng.random(n)
    return in_cells((rng.random(n) < 0.4).astype(int), p)


def test_a_distance_of_ones_own_needs_facts():
    def cubed(bins):
        return np.abs(bins.gap[:, :, 0]) ** 3

    table, predictions = scattered()
    metric = cal.BinnedError(binning=cal.EqualMass(4), distance=cubed)
    with pytest.raises(cal.CalibrationInputError, match="must follow from forecasts in cells"):
        metric.within(table)
    known = metric.replace(distance=declare(Facts("distance", low=0.0, high=1.0, order=3.0))(cubed))
    assert assert_within(known, table, predictions).bounds is not None


def test_an_aggregate_and_a_rule_across_of_ones_own_need_facts():
    table, _ = scattered()
    with pytest.raises(cal.CalibrationInputError, match="must follow from forecasts in cells"):
        cal.ADAPTIVE_ECE.replace(aggregate=lambda distances, bins: distances.max(axis=1)).within(table)
    rng = np.random.default_rng(5)
    predictions = cal.Predictions.from_probs(rng.integers(0, 2, 300), rng.dirichlet(np.ones(2), 300))
    metric = cal.ACE.replace(across=cal.contraharmonic)
    with pytest.raises(cal.CalibrationInputError, match="must follow from forecasts in cells"):
        metric.within(Pass(metric).summarise(predictions))


def test_a_statistic_of_ones_own_that_follows_the_order_has_bounds():
    def last_outcome(ladder):
        return float(ladder.targets.differences().value[-1] > 0)

    table, _ = scattered()
    with pytest.raises(cal.CalibrationInputError, match="must follow from forecasts in cells"):
        cal.TableStatistic(statistic=last_outcome).within(table)
    known = declare(Facts("statistic", "TableStatistic", low=0.0, high=1.0, swaps=True))(last_outcome)
    assert cal.TableStatistic(statistic=known).within(table).bounds == (0.0, 1.0)


@pytest.mark.parametrize("metric", [cal.NeighbourError(), cal.FULL_ECE, cal.SKCE], ids=lambda metric: metric.name)
def test_what_cells_do_not_tell_is_refused(metric):
    with pytest.raises(cal.CalibrationInputError, match="measure the rows themselves"):
        metric.within(scattered()[0])


@pytest.mark.parametrize("metric", [cal.ICI, cal.E50, cal.E90, cal.EMAX, cal.ECE_KDE], ids=lambda metric: metric.name)
def test_approximations_say_so(metric):
    y, p, _ = study.law(158)
    table, predictions = in_cells(y, p)
    result = metric.within(table)
    assert result.bounds is None
    assert any(note.startswith("approximate: ") for note in result.notes)
    assert result.value == pytest.approx(metric(predictions).value, abs=2e-3)


def test_a_sweep_says_how_many_bins_it_can_have():
    rng = np.random.default_rng(6)
    p = rng.random(20_000)
    table, predictions = in_cells((rng.random(20_000) < p).astype(int), p)
    result, rows = Pass(cal.ECE_SWEEP).told(table), cal.ECE_SWEEP(predictions)
    assert result.details["n_bins_low"] <= rows.details["n_bins"] <= result.details["n_bins_high"]
    assert result.bounds[0] <= rows.value <= result.bounds[1]
    undetermined = Pass(cal.ECE_SWEEP).told(in_cells([0] * 900 + [1] * 900, 0.311 + 1e-7 * np.arange(1800))[0])
    assert np.isnan(undetermined.value)
    assert any(note.startswith("undetermined") for note in undetermined.notes)


# ---- formulas, by brute force ----------------------------------------------------------------------------------------


def test_variation_is_the_least_and_the_most_of_all_paths():
    rng = np.random.default_rng(7)
    for _ in range(200):
        low = rng.integers(-3, 4, 5)
        high = low + rng.integers(0, 4, 5)
        paths = itertools.product(*(range(first, last + 1) for first, last in zip(low, high, strict=True)))
        sums = [np.abs(np.diff(path)).sum() for path in paths]  # ends of boxes are whole: so are both extremes
        assert variation(low.astype(float), high.astype(float)) == (min(sums), max(sums))


def orders(y, p):
    """The table when outcomes of one cell belong to its forecasts in every possible way."""
    for outcomes in set(itertools.permutations(y)):
        yield cal.Predictions.from_probs(outcomes, p)


@pytest.mark.parametrize(
    "metric",
    [cal.AUROC, cal.AURC.replace(lens=cal.TopLabel()), cal.AUGRC.replace(lens=cal.TopLabel())],
    ids=lambda metric: metric.name,
)
def test_some_order_of_outcomes_reaches_each_bound(metric):
    p = 0.311 + 1e-9 * np.arange(6)
    table, _ = in_cells([0, 1, 0, 1, 0, 0], p)
    values = [metric(predictions).value for predictions in orders([0, 1, 0, 1, 0, 0], p)]
    assert Pass(metric).told(table).bounds == pytest.approx((min(values), max(values)), abs=1e-7)


def test_a_path_goes_hardly_less_far_than_it_may():
    p = 0.311 + 1e-9 * np.arange(6)
    table, _ = in_cells([0, 1, 0, 1, 0, 0], p)
    values = [cal.ECCE_MAD(predictions).value for predictions in orders([0, 1, 0, 1, 0, 0], p)]
    low, high = Pass(cal.ECCE_MAD).told(table).bounds
    assert low <= min(values)
    assert max(values) <= high < max(values) + 1e-3


def test_running_totals_lie_in_their_boxes_and_boxes_are_narrow():
    rng = np.random.default_rng(8)
    for _ in range(50):
        p = np.sort(0.3125 + 0.0019 * rng.beta(0.5, 0.5, 12))
        y = rng.integers(0, 2, 12)
        (ladder,) = in_cells(y, p)[0].ladders()
        (rows,) = cal.ADAPTIVE_ECE.summarise(y, p).ladders()
        assert ladder.hidden.any()
        boxes = Boxes.of(ladder, cal.EqualMass(12).possible_cuts(ladder))
        path = (rows.outputs - rows.targets).value
        assert (boxes.excess[0] <= path + 1e-12).all()
        assert (path <= boxes.excess[1] + 1e-12).all()
        entries = Entries.of(ladder)
        assert (boxes.excess[1] - boxes.excess[0] <= np.minimum(entries.hits.max(), 12) + 0.02).all()


def test_a_cut_at_a_value_leaves_out_what_the_mean_rules_out():
    """Nine of ten forecasts at the upper end of their cell: few can lie below a cut near its lower end."""
    number = cells.numbers(np.array([0.3137]))[0]
    first, last = cells.firsts()[number], cells.lasts()[number]
    p = np.append(first, np.full(9, last))
    (ladder,) = in_cells([0, 1] * 5, p)[0].ladders()
    boxes = Boxes.of(ladder, cal.Edges([0, first + 0.2 * (last - first), 1]).possible_cuts(ladder))
    assert [int(ranks[1]) for ranks in boxes.ranks] == [0, 1]


def test_extreme_orders_keep_soft_labels_and_ties():
    shares = np.array([0.25, 0.5, 1.0, 0.75])
    p = np.column_stack([1 - (q := np.array([0.3111, 0.3112, 0.3113, 0.9])), q])
    predictions = cal.Predictions.from_probs(np.column_stack([1 - shares, shares]), p)
    metric = cal.ADAPTIVE_ECE.replace(lens=cal.OneClass(1))
    (ladder,) = Pass(metric).summarise(predictions).ladders()
    tables = [table.targets.differences().value.tolist() for table in extreme_orders(ladder)]
    assert tables == [[0.0, 0.75, 1.0, 0.75], [1.0, 0.75, 0.0, 0.75]]


def test_a_narrow_kernel_sees_what_a_cell_hides():
    """Outcomes at both ends of a cell and none in its middle: no sum and no dipole, but a second moment."""
    number = cells.numbers(np.array([0.4995]))[0]
    low, high = cells.firsts()[number], cells.lasts()[number]
    p = np.concatenate([[low, high], np.full(2, (low + high) / 2)])
    table, predictions = in_cells([1, 1, 0, 0], p)
    metric = cal.SMECE.replace(bandwidth=0.001)
    result = assert_within(metric, table, predictions)
    tied = cal.SMECE.replace(bandwidth=0.001)([1, 1, 0, 0], np.full(4, p.mean()))
    assert metric(predictions).value > tied.value + 0.01
    assert result.bounds[1] - result.bounds[0] < 1


# ---- marks -----------------------------------------------------------------------------------------------------------


def test_marks_tell_cells_that_hold_one_forecast_alone():
    rng = np.random.default_rng(9)
    levels = np.array([0.3111, 1e-20, 0.7000001, 1 - 1e-12])
    p = np.concatenate([rng.choice(levels, 200), [0.4112, 0.4113]])
    (ladder,) = in_cells(rng.integers(0, 2, len(p)), p)[0].ladders()
    assert ladder.cells.all()
    assert ladder.hidden.tolist() == [False, False, True, False, False]


def test_known_ties_make_bounds_narrow_and_are_noted():
    rng = np.random.default_rng(10)
    p = rng.choice([0.3111, 0.4222, 0.7333], 3000)
    table, predictions = in_cells((rng.random(3000) < p).astype(int), p)
    for metric in (cal.ADAPTIVE_ECE, cal.AUROC, cal.IsotonicError()):
        result = assert_within(metric, table, predictions)
        assert result.bounds[1] - result.bounds[0] < 1e-11
        assert any("told by marks" in note for note in result.notes)
        blind = study.told(metric, dataclasses.replace(table, marks=None))
        assert blind.bounds[1] - blind.bounds[0] > 0.01
        assert not any("told by marks" in note for note in blind.notes)


def test_marks_add_and_subtract_to_the_bit():
    rng = np.random.default_rng(11)
    p, y = rng.random(500).round(3), rng.integers(0, 2, 500)
    weight = rng.integers(1, 5, 500)
    whole, predictions = in_cells(y, p, sample_weight=weight)
    parts = [Pass(cal.ADAPTIVE_ECE).summarise(predictions[rows]) for rows in np.array_split(rng.permutation(500), 7)]
    assert np.array_equal(sum(parts).marks, whole.marks)
    assert ((sum(parts[1:]) + parts[0]) - parts[0]).to_bytes() == sum(parts[1:]).to_bytes()
    repeated, _ = in_cells(np.repeat(y, weight), np.repeat(p, weight))
    assert np.array_equal(repeated.marks, whole.marks)
    assert ((whole.marks >= 0) & (whole.marks < MODULUS)).all()


def test_other_forecasts_of_the_same_sum_are_not_taken_away():
    unit = 2.0**-52
    table, _ = in_cells([0, 0], [0.3111, 0.3111 + 3 * unit])
    other, _ = in_cells([0, 0], [0.3111 + unit, 0.3111 + 2 * unit])
    assert table.outputs.same(other.outputs)
    other = dataclasses.replace(other, squared_outputs=table.squared_outputs)
    with pytest.raises(cal.CalibrationInputError, match="must hold all that is taken away"):
        table - other


# ---- results ---------------------------------------------------------------------------------------------------------


def test_bounds_print_beside_the_value_and_travel_as_json():
    table, _ = scattered()
    result = Pass(cal.ADAPTIVE_ECE).told(table)
    low, high = result.bounds
    assert str(result).startswith(f"ADAPTIVE_ECE {result.value:.4f}, surely between {low:.4f} and {high:.4f} (n=400,")
    assert f"surely between {low:.4f}" in result._repr_html_()
    again = cal.Result.from_json(result.to_json())
    assert (again.bounds, again.part_bounds, again.notes) == (result.bounds, (), result.notes)
    assert "not of what others would show" in result.notes[-1]


def test_bounds_of_parts_print_and_travel():
    rng = np.random.default_rng(12)
    predictions = cal.Predictions.from_probs(rng.integers(0, 3, 200), rng.dirichlet(np.ones(3), 200))
    result = Pass(cal.ACE).told(Pass(cal.ACE).summarise(predictions))
    again = cal.Result.from_json(result.to_json())
    assert again.part_bounds == result.part_bounds
    assert len(result.part_bounds) == 3
    assert "surely between" in str(result.parts)
    assert again.parts["0"].bounds == result.parts["0"].bounds


def test_an_empty_question_has_no_bounds():
    predictions = cal.Predictions.from_probs([0, 1, 1], [[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    for metric in (cal.ADAPTIVE_ECE, cal.AUROC, cal.IsotonicError(), cal.SMECE, cal.BrierDecomposition()):
        chosen = metric.replace(select=cal.confidence_between(0.9, 1.0))
        result = Pass(chosen).told(Pass(chosen).summarise(predictions))
        assert np.isnan(result.value)


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT.parent / "shared" / "data").is_dir(), reason="other people's predictions are not here")
def test_bounds_hold_on_real_predictions():
    for number, (name, y, p) in enumerate(itertools.islice(study.events(ROOT.parent / "shared" / "data"), 12)):
        assert study.asked(name, number, y, p)["misses"] == 0
