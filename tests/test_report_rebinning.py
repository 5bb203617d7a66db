"""RebinningCounts and groups: from counts alone, every setting's bins, and resamples that are those of the rows."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.inference import grouped as groups
from calibrant.inference.grouped import Resampling, by_blocks, concluded, edges, grouped, ranks
from calibrant.lenses.events import TopLabel
from calibrant.predictions import Predictions
from calibrant.report.rebinning import RebinningCounts, squared_weights
from strategies import events

pytestmark = pytest.mark.slow


def width_bins(cells, m):
    """Bins of equal width as sums of neighbouring cells, in the plainest loop."""
    corners = edges().tolist()
    sums = np.zeros((m, 4))
    for cell, row in enumerate(cells.width):
        sums[next(k for k in range(m) if corners[cell] < (k + 1) / m)] += row
    return sums


def mass_bins(cells, m):
    """Bins of equal mass as sums of the cells between two ranks, in the plainest loop."""
    sums = np.zeros((m, 4))
    for cell, row in enumerate(cells.mass):
        sums[next(k for k in range(m) if cells.ranks[cell] < math.ceil((k + 1) * round(cells.n) / m))] += row[:4]
    return sums


def expected(binning, event):
    bins = cal.BinnedError(binning=binning)(event).bins
    return np.column_stack([bins.counts[0], bins.outputs.value[0, :, 0], bins.targets.value[0, :, 0]])


def agree(event, *, settings=range(1, 51), mass=True):
    cells = RebinningCounts.of(event)
    for m in settings:
        np.testing.assert_allclose(width_bins(cells, m)[:, :3], expected(cal.EqualWidth(m), event), rtol=0, atol=1e-9)
        if mass:
            np.testing.assert_allclose(mass_bins(cells, m)[:, :3], expected(cal.EqualMass(m), event), rtol=0, atol=1e-9)


@settings(max_examples=8)
@given(events(most=60))
def test_bins_of_every_setting_are_sums_of_cells(sample):
    p, y = sample
    agree(Predictions.from_probs(y, p))


@settings(max_examples=6)
@given(events(most=60), st.integers(0, 2**32 - 1))
def test_so_they_are_under_whole_weights_and_soft_labels(sample, seed):
    p, y = sample
    rng = np.random.default_rng(seed)
    agree(Predictions.from_probs(y, p, sample_weight=rng.integers(1, 5, len(p))), settings=(1, 2, 7, 15, 49))
    agree(Predictions.from_probs(rng.random(len(p)), p), settings=(1, 2, 7, 15, 49))


def test_forecasts_on_edges_fall_as_python_bins_them():
    p = np.concatenate([np.arange(51) / 50, np.arange(16) / 15, np.arange(8) / 7])
    agree(Predictions.from_probs(np.arange(len(p)) % 2, p))
    agree(Predictions.from_probs(np.arange(len(p)) % 2, p.astype(np.float32)), settings=(5, 7, 15, 50))


@pytest.mark.parametrize("n", [1, 2, 3, 19, 50])
def test_fewer_samples_than_bins(n):
    rng = np.random.default_rng(n)
    agree(Predictions.from_probs(rng.integers(0, 2, n), np.round(rng.random(n), 1)))


def test_fractional_weights_have_cells_of_equal_width_only():
    event = Predictions.from_probs([1, 0, 1], [0.9, 0.2, 0.85], sample_weight=[0.5, 1.5, 2.25])
    cells = RebinningCounts.of(event)
    assert cells.mass.shape == (0, 6)
    assert cells.ranks.shape == (0,)
    assert cells.width[:, 3].sum() == 0.25 + 2.25 + 5.0625
    agree(event, mass=False)


def test_squared_weights_are_those_of_the_rows_of_a_bin():
    rng = np.random.default_rng(3)
    p, weight = rng.random(40), rng.integers(1, 6, 40)
    event = Predictions.from_probs(rng.integers(0, 2, 40), p, sample_weight=weight)
    cells = RebinningCounts.of(event)
    bins = np.minimum(np.ceil(p * 15).astype(int) - 1, 14)
    np.testing.assert_allclose(width_bins(cells, 15)[:, 3], np.bincount(bins, weight**2, 15))
    assert mass_bins(cells, 7)[:, 3].sum() == pytest.approx((weight**2).sum(), rel=1e-12)


def test_squared_weights_of_equal_rows_are_their_number():
    event = Predictions.from_probs([1, 0, 1, 1], [0.2, 0.4, 0.4, 0.9])
    np.testing.assert_allclose(squared_weights(event, grouped(event), np.array([0.0, 2.0, 4.0]), np.ones(4)), [2, 2])


def test_the_page_gets_no_more_than_two_cells_a_possible_cut_and_no_row():
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    plain = RebinningCounts.of(Predictions.from_probs(rng.random(len(p)) < p, p)).to_dict()
    assert len(plain["width"]) <= len(edges()) == 775
    assert len(plain["mass"]) <= len(ranks(100_000)) < 800
    assert plain["most"] == 50


# groups of very many forecasts


def many(n=30_000, decimals=None, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 0.5, n) if decimals is None else np.round(rng.beta(2, 0.5, n), decimals)
    return Predictions.from_probs((rng.random(n) < p**1.3).astype(int), p.astype(dtype))


@pytest.mark.parametrize("event", [many(), many(decimals=2), many(dtype=np.float32), many(25_001, decimals=3)])
def test_grouped_forecasts_give_the_bins_of_the_rows(event):
    table = grouped(event)
    assert len(table.values) < 12_000
    assert int(table.counts.sum()) == len(event)
    np.testing.assert_allclose(table.values * table.counts, table.summed.value, rtol=1e-12)  # values are means
    for m in (1, 2, 10, 15, 37, 50):
        for binning in (cal.EqualWidth(m), cal.EqualMass(m)):
            exact = expected(binning, event)
            bins = table.cut(binning.cuts)
            mine = np.column_stack([bins.counts[0], bins.outputs.value[0, :, 0], bins.targets.value[0, :, 0]])
            np.testing.assert_allclose(mine, exact, rtol=1e-12, atol=1e-9)
    bins, known = table.cut(cal.EqualMass(7).cuts), cal.BinnedError(binning=cal.EqualMass(7))(event).bins
    assert (bins.low.tolist(), bins.high.tolist()) == (known.low.tolist(), known.high.tolist())


def test_grouped_forecasts_leave_the_other_numbers_as_they_are_to_a_millionth():
    event = many(100_000)
    table = grouped(event)
    for metric in (cal.SMECE, cal.ECCE_MAD):
        assert concluded(metric, table).value == pytest.approx(metric(event).value, abs=1e-6)  # groups are 1/4096 wide
    assert concluded(cal.ECE_SWEEP, table).value == pytest.approx(cal.ECE_SWEEP(event).value, abs=1e-4)


def test_saturated_forecasts_are_grouped_by_rank():
    rng = np.random.default_rng(1)
    p = 1 - 10.0 ** -rng.uniform(5, 9, 50_000)
    table = grouped(Predictions.from_probs(rng.random(50_000) < p, p))
    assert table.counts.max() <= 50_000 / groups.FINE + 1


def test_tied_forecasts_stay_together_and_keep_their_value():
    event = many(decimals=1)
    table = grouped(event)
    assert table.values.tolist() == np.unique(event.probabilities).tolist()


@pytest.fixture(scope="module")
def resampled():
    event = many(21_000)
    return event, Resampling.of(grouped(event), [cal.ECE, cal.MCS], 150, 0)


def test_resampled_groups_spread_as_resampled_rows_do(resampled):
    # seed 0; two standard deviations from 150 draws each differ by 35 % in less than 1 of 1000 runs
    event, resampling = resampled
    for metric in (cal.ECE, cal.MCS):
        direct = cal.Bootstrap(150, seed=0).replicates(metric, event)[:, 0]
        assert resampling.rows[metric].std() == pytest.approx(direct.std(), rel=0.35)
        assert resampling.rows[metric].mean() == pytest.approx(direct.mean(), abs=5 * direct.std() / math.sqrt(75))
        null = cal.consistency(metric, event, n=150, seed=0)
        assert resampling.labels[metric].std() == pytest.approx(null.sd, rel=0.35)
        assert resampling.labels[metric].mean() == pytest.approx(null.mean, abs=5 * null.sd / math.sqrt(75))


def test_the_same_seed_draws_the_same():
    table = grouped(many())
    runs = [Resampling.of(table, [cal.ECE], 3, seed).rows[cal.ECE].tolist() for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


@given(events())
@settings(max_examples=20)
def test_blocks_change_no_bit(sample):
    p, y = sample
    event = Predictions.from_probs(y, p)
    whole, before = cal.ECE(event), groups.BLOCK
    groups.BLOCK = 3
    try:
        assert by_blocks(cal.ECE, event).value == whole.value
        assert by_blocks(cal.LOG_LOSS, event).value == cal.LOG_LOSS(event).value
        inside = groups.bin_numbers(cal.EqualWidth(15), event)
    finally:
        groups.BLOCK = before
    assert inside.tolist() == cal.EqualWidth(15).assign(TopLabel()(event))[:, 0].tolist()


def test_logits_of_an_event_are_grouped_as_probabilities():
    rng = np.random.default_rng(0)
    z = rng.normal(size=30_000) * 3
    event = Predictions.from_logits(rng.integers(0, 2, 30_000), z)
    assert concluded(cal.ECE, grouped(event)).value == pytest.approx(cal.ECE(event).value, abs=1e-12)


def test_groups_know_how_many_rows_they_stand_for():
    event = many()
    assert grouped(event).about.n == len(event)
    assert grouped(dataclasses.replace(event, weight=np.full(len(event), 0.5))) is None
