"""Binnings of events: hand-worked counts, edges and ties."""

import dataclasses

import numpy as np
import pytest

import calibrant as cal

replace = dataclasses.replace


def counts(binning, p, y=None):
    y = np.zeros(len(p), int) if y is None else y
    return cal.BinnedError(binning=binning)(y, np.asarray(p)).bins.counts[0].astype(int).tolist()


def test_forecasts_of_zero_and_one_fall_in_the_outer_bins():
    for closed in ("left", "right"):
        assert counts(cal.EqualWidth(4, closed), [0.0, 1.0]) == [1, 0, 0, 1]


def test_one_has_no_bin_of_its_own():
    assert cal.ECE([1, 0], [0.95, 1.0]).value == 0.475


def test_right_closed_bins_hold_their_upper_edge():
    assert counts(cal.EqualWidth(10), [0.1, 0.3, 0.6, 0.7]) == [1, 0, 1, 0, 0, 1, 1, 0, 0, 0]
    assert counts(cal.EqualWidth(10, "left"), [0.1, 0.3, 0.6, 0.7]) == [0, 1, 0, 1, 0, 0, 1, 1, 0, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [2, 3, 5, 10, 15, 20, 100])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_every_edge_falls_on_its_own_side_in_every_precision(dtype, n_bins, closed):
    edges = (np.arange(n_bins + 1) / n_bins).astype(dtype)
    if len(np.unique(edges)) < len(edges):
        pytest.skip("the edges are not distinct in this precision")
    found = counts(cal.EqualWidth(n_bins, closed), edges)
    doubled = 0 if closed == "right" else n_bins - 1
    assert found == [2 if index == doubled else 1 for index in range(n_bins)]


def test_eleven_levels_fall_in_the_same_bins_as_float32_and_float64():
    levels = np.tile(np.arange(11) / 10, 20)
    y = (np.random.default_rng(0).random(len(levels)) < levels).astype(int)
    metric = replace(cal.ECE, binning=cal.EqualWidth(10))
    double, single = metric(y, levels), metric(y, levels.astype(np.float32))
    assert np.array_equal(double.bins.counts, single.bins.counts)
    assert single.value == pytest.approx(double.value, rel=0, abs=1e-7)


def test_many_bins_are_searched_as_few_are_compared():
    p = np.random.default_rng(1).integers(0, 201, 500) / 200
    for closed in ("left", "right"):
        edges = np.arange(201) / 200
        below = (edges[1:-1] < p[:, None]) if closed == "right" else (edges[1:-1] <= p[:, None])
        expected = np.bincount(below.sum(axis=1), minlength=200).tolist()
        assert counts(cal.EqualWidth(200, closed), p) == expected


def test_sums_of_group_outputs_meet_their_edge():
    lens = cal.InTopK(2)
    p = np.array([[0.1, 0.2, 0.3, 0.15, 0.25], [0.05, 0.05, 0.2, 0.1, 0.6]])
    view = lens(cal.Predictions.from_probs([0, 0], p))
    assert cal.EqualWidth(20).assign(view)[:, 0].tolist() == [10, 15]  # .55 and .80 lie on edges
    narrow = lens(cal.Predictions.from_probs([0, 0], p.astype(np.float32)))
    assert cal.EqualWidth(20).assign(narrow)[:, 0].tolist() == [10, 15]


def test_equal_mass_bins_start_at_the_ceiling_of_their_share():
    p = np.arange(1, 12) / 12
    assert counts(cal.EqualMass(3), p) == [4, 4, 3]
    assert counts(cal.EqualMass(5), p) == [3, 2, 2, 2, 2]
    assert counts(cal.EqualMass(22), np.linspace(0, 1, 22)) == [1] * 22


def test_more_equal_mass_bins_than_samples_leaves_some_empty_and_says_so():
    result = cal.BinnedError(binning=cal.EqualMass(5))([1, 0], [0.9, 0.2])
    assert sorted(result.bins.counts[0].tolist()) == [0, 0, 0, 1, 1]
    assert "more bins than samples" in result.notes


def test_tied_forecasts_share_their_mean_label_across_a_cut():
    bins = cal.BinnedError(binning=cal.EqualMass(2))([1, 1, 0, 0], [0.6] * 4).bins
    assert bins.frequency[0, :, 0].tolist() == [0.5, 0.5]
    assert bins.forecast[0, :, 0] == pytest.approx([0.6, 0.6], abs=1e-15)


def test_a_sweep_over_ties_ignores_row_order():
    for outcomes in ([0, 1, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]):
        assert cal.ECE_SWEEP(outcomes, [0.6] * 4).value == pytest.approx(0.1, abs=1e-15)


def test_the_hand_worked_sweep():
    result = cal.ECE_SWEEP([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert (result.value, result.details["n_bins"]) == (pytest.approx(0.25, abs=1e-15), 3)
    rooted = replace(cal.RMSCE, binning=cal.Sweep())([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert rooted.value == pytest.approx(0.2872281323, abs=5e-11)


def test_a_sweep_does_not_stop_at_the_rounding_of_a_shared_label():
    scores = [0.5] * 9 + [0.9, 0.95]
    outcomes = [1] * 3 + [0] * 6 + [1, 0]
    assert cal.ECE_SWEEP(outcomes, scores).details["n_bins"] == 5  # bins of 1/3, 1/3, 1/3, 1/3, 1/2


def test_a_sweep_of_several_questions_tells_each_number_of_bins():
    metric = cal.BinnedError(lens=cal.Classwise(), binning=cal.Sweep())
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 200)
    y = np.array([np.random.default_rng(i).choice(3, p=row) for i, row in enumerate(p)])
    result = metric(y, p)
    for index, part in enumerate(result.parts.values()):
        alone = cal.BinnedError(lens=cal.OneClass(index), binning=cal.Sweep())(y, p)
        assert part.value == alone.value
        assert part.bins.requested[0] == alone.details["n_bins"]


def test_quantile_bins_keep_ties_together():
    assert counts(cal.Quantiles(2), [0.2, 0.9, 0.9, 0.9]) == [1, 3]


def test_bins_know_their_ends():
    wide = cal.ECE([1, 0], [0.2, 0.9]).bins
    assert wide.low[0, :2].tolist() == [0.0, 1 / 15]
    mass = cal.BinnedError(binning=cal.EqualMass(2))([1, 0, 1], [0.2, 0.9, 0.3]).bins
    assert mass.low[0].tolist() == [0.2, 0.9]
    assert mass.high[0].tolist() == [0.3, 0.9]


def test_given_edges_bin_as_they_say():
    assert counts(cal.Edges([0, 0.5, 1]), [0.2, 0.5, 0.51]) == [2, 1]
    assert counts(cal.Edges([0, 0.5, 1], "left"), [0.2, 0.5, 0.51]) == [1, 2]


def test_summaries_of_different_bins_do_not_add():
    p = cal.Predictions.from_probs([1], [0.5])
    ten = replace(cal.ECE, binning=cal.EqualWidth(10))
    with pytest.raises(cal.CalibrationInputError, match=r"binning .* bins"):
        cal.ECE.summarise(p) + ten.summarise(p)
    left, right = (replace(cal.ECE, binning=cal.Edges([0, edge, 1])) for edge in (0.4, 0.5))
    with pytest.raises(cal.CalibrationInputError, match=r"binning .* bins"):
        left.summarise(p) + right.summarise(p)
    two = cal.Predictions.from_probs([1], [[0.5, 0.5]])
    with pytest.raises(cal.CalibrationInputError, match="same questions"):
        cal.ECE.summarise(p) + cal.ECE.summarise(two)


def test_one_pass_over_many_classes_equals_one_class_at_a_time():
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(20, 0.1), 300).astype(np.float32)
    y = p.argmax(axis=1)
    y[::3] = rng.integers(0, 20, len(y[::3]))
    for binning in (
        cal.EqualWidth(),
        cal.EqualWidth(7, "left"),
        cal.EqualWidth(1),
        cal.EqualWidth(100),
        cal.EqualMass(),
    ):
        every = replace(cal.SCE, binning=binning)(y, p)
        for index in range(20):
            alone = cal.BinnedError(lens=cal.OneClass(index), binning=binning)(y, p)
            assert every.values[index] == alone.value
            assert every.bins.question(index).outputs.same(alone.bins.outputs)


# ---- sums that bins without samples cannot change --------------------------------------------------------------------


@pytest.mark.parametrize("aggregate", [cal.mean, cal.root_mean, cal.uniform])
@pytest.mark.parametrize("binning", [cal.Sweep(), cal.Sweep(cal.EqualWidth()), cal.KDTree(0.1), cal.Grid(40)], ids=str)
def test_a_question_that_is_padded_has_the_number_that_it_has_alone(binning, aggregate):
    """Questions with fewer bins stand beside others with more: no bit may change."""
    if isinstance(binning, cal.Grid) and aggregate is cal.uniform:
        pytest.skip("refused of a grid")
    metric = cal.BinnedError(binning=binning, aggregate=aggregate)
    rng = np.random.default_rng(0)
    for _ in range(10):
        p = np.column_stack([rng.beta(0.2, 0.2, 400), rng.random(400), rng.beta(30, 30, 400)])
        y = (rng.random(p.shape) < p).astype(int)
        together = metric(cal.Predictions.from_multilabel(y, p))
        assert list(together.values) == [metric(y[:, label], p[:, label]).value for label in range(3)]


def test_cells_of_no_weight_change_no_bit_of_a_grid():
    metric = cal.BinnedError(lens=cal.Full(), binning=cal.Grid(4))
    rng = np.random.default_rng(2)
    for _ in range(20):
        weights = rng.integers(0, 3, 60).astype(float)
        rows = cal.Predictions.from_probs(rng.integers(0, 6, 60), rng.dirichlet(np.ones(6), 60), sample_weight=weights)
        summary = metric.summarise(rows)
        assert (summary.counts > 0).all()
        assert len(summary.cells) == summary.requested[0]
        values = {
            metric(rows).value,
            metric(rows[weights > 0]).value,
            metric.conclude(cal.Summary.from_bytes(summary.to_bytes())).value,
            cal.Stream(metric).update(rows[:30]).update(rows[30:]).result().value,
        }
        assert len(values) == 1


def test_no_sample_is_lost_where_fewer_bins_were_asked_for_than_hold_samples():
    bins = dataclasses.replace(cal.ECE([0, 1, 0], [0.1, 0.9, 0.95]).bins, requested=np.array([2]))
    assert cal.ECE.of_bins(bins).value == cal.ECE([0, 1, 0], [0.1, 0.9, 0.95]).value


@pytest.mark.parametrize("fallen", [None, 1, 3000, 5999])
def test_outcomes_of_a_large_table_fall_wherever_they_do(fallen):
    forecasts, truth = np.linspace(0, 1, 6000), (np.arange(6000) >= 3000).astype(int)
    if fallen is not None:
        truth[fallen] = 1 - truth[fallen]
    (ladder,) = cal.ECE_SWEEP.refine().summarise(truth, forecasts).ladders()
    (n_bins,) = cal.Sweep().choose(ladder)
    assert (n_bins == 6000) == (fallen in (None, 3000))  # without the first that came true, they still rise


def ladders(monkeypatch, p, y):
    """The table of one event with running totals at once, and with those that are made when asked for."""
    table = cal.ADAPTIVE_ECE.summarise(y, p)
    (plain,) = table.ladders()
    monkeypatch.setattr("calibrant.binning.long_ladder.LONG", 0)
    monkeypatch.setattr("calibrant.binning.long_ladder.COST", 1)
    while True:
        (long,) = table.ladders()
        yield plain, long


@pytest.mark.parametrize("seed", range(4))
def test_long_tables_say_what_short_ones_do(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    n, dtype = 64 * [100, 300][seed % 2] + seed, [np.float32, np.float64][seed // 2]
    p = rng.random(n).astype(dtype)
    p[: n // 3] = rng.choice([0.0, 0.1, 0.5, 1.0, 1e-9], n // 3)
    y = (rng.random(n) < p).astype(int)
    for few, (plain, long) in zip((1, 7, 40, 5 * n), ladders(monkeypatch, p, y), strict=False):
        assert type(long) is not type(plain)
        m = len(plain.values)
        ranks = np.sort(np.concatenate([[0, n], rng.integers(0, n + 1, few)]))
        entries = np.concatenate([[0, m - 1, m], rng.integers(0, m + 1, few)])
        assert np.array_equal(long.entry(ranks), plain.entry(ranks))
        assert long.running_targets(ranks).same(plain.running_targets(ranks))
        assert long.running_outputs(ranks).same(plain.running_outputs(ranks))
        assert np.array_equal(long.before(ranks[:-1]), plain.before(ranks[:-1]))
        assert np.array_equal(long.at(ranks), plain.at(ranks))
        assert all(one.same(other) for one, other in zip(long.cut(ranks), plain.cut(ranks), strict=True))
        for ends in zip(long.ends(ranks), plain.ends(ranks), strict=True):
            assert np.array_equal(*ends, equal_nan=True)
        for closed in ("left", "right"):
            edges = rng.choice([0.0, 0.1, 0.3, 0.5, 1.0], 3)
            assert np.array_equal(long.below(edges, closed), plain.below(edges, closed))
        assert np.array_equal(long._ranks_before(entries), plain._ranks_before(entries))
        assert long._outputs_before(entries).same(plain._outputs_before(entries))
        assert long._targets_before(entries).same(plain._targets_before(entries))
        assert ("ranks" in vars(long)) == (few > n)  # few places do not need all totals
    assert (long.n, long.targets_are_whole) == (n, plain.targets_are_whole)
    assert long.happened.same(plain.happened)
    for name in ("counts", "hits", "rates", "ranks", "forecasts"):
        assert np.array_equal(getattr(long, name), getattr(plain, name))
    assert long.outputs.same(plain.outputs)
    assert long.targets.same(plain.targets)
    assert type(replace(long, alike=None)) is type(plain)
    with pytest.raises(AttributeError, match="nonsense"):
        long.nonsense  # noqa: B018


@pytest.mark.parametrize("seed", range(3))
def test_metrics_of_long_tables_are_those_of_short_ones(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    p = rng.random(900).astype([np.float32, np.float64, np.float32][seed])
    p[::4] = p[0]
    y = (rng.random(900) < p).astype(int)
    kuiper = cal.CumulativeError(statistic=cal.errors.cumulative.kuiper)
    metrics = [
        *(recipe for recipe in vars(cal.recipes).values() if isinstance(recipe, cal.metric.Metric)),
        *(cal.CumulativeError(), kuiper, cal.IsotonicError(), cal.IsotonicError(score=cal.errors.isotonic.logarithmic)),
        *(cal.BinnedError(binning=cal.Sweep(cal.EqualWidth())), cal.BinnedError(binning=cal.Quantiles(7))),
    ]
    table = cal.ADAPTIVE_ECE.reads[-1]
    asked = [metric for metric in metrics if table in metric.reads and metric.lens == cal.TopLabel()]
    short = [metric(y, p) for metric in asked]
    monkeypatch.setattr("calibrant.binning.long_ladder.LONG", 0)
    monkeypatch.setattr("calibrant.binning.long_ladder.COST", 1)
    long = [metric(y, p) for metric in asked]
    assert len(asked) > 8
    for one, other in zip(short, long, strict=True):
        assert one.to_dict() == other.to_dict()
