"""Bands of reliability curves: bounds by hand, targets, the whole curve at once, what is refused."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.errors import local_linear
from calibrant.errors.local_linear import BANDWIDTHS, LocalLines
from calibrant.inference import bands, proportions
from calibrant.inference.reliability_curves import Curve, binned, isotonic, smooth


def ladder_of(y, p):
    (ladder,) = cal.IsotonicError().summarise(y, p).ladders()
    return ladder


def drawn(seed, n, truth=lambda p: p, decimals=16):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 1.0, n).round(decimals)
    return (rng.random(n) < truth(p)).astype(int), p


def test_bounds_of_a_chance_leave_the_tail_that_is_asked_for():
    hits, n = np.array([0, 3, 7, 12]), np.array([12, 12, 12, 12])
    low, high = proportions.least_chance(hits, n, 0.03), proportions.largest_chance(hits, n, 0.03)
    assert stats.binom.sf(hits[1:] - 1, 12, low[1:]) == pytest.approx(0.03)
    assert stats.binom.cdf(hits[:-1], 12, high[:-1]) == pytest.approx(0.03)
    assert (low[0], high[-1]) == (0.0, 1.0)


def test_the_ends_of_wilson_are_z_standard_errors_away():
    low, high = proportions.wilson(np.array([0.3]), np.array([37.5]), 1.7)
    for end in (low[0], high[0]):
        assert abs(0.3 - end) / math.sqrt(end * (1 - end) / 37.5) == pytest.approx(1.7)


def test_bins_have_wilson_intervals_and_together_exact_ones():
    y, p = drawn(0, 60)
    curve, filled = binned(cal.EqualWidth(4)), 4
    alone, together = (
        cal.reliability_band(y, p, curve=curve, band=cal.ConfidenceBand(0.9, whole)) for whole in (False, True)
    )
    for index in range(4):
        inside = (p > index / 4) & (p <= (index + 1) / 4)
        n, hits = inside.sum(), y[inside].sum()
        assert alone.forecast[index] == pytest.approx(p[inside].mean())
        interval = stats.binomtest(hits, n).proportion_ci(0.9, "wilson")
        assert (alone.low[index], alone.high[index]) == pytest.approx(tuple(interval))
        interval = stats.binomtest(hits, n).proportion_ci(0.9 ** (1 / filled), "exact")
        assert (together.low[index], together.high[index]) == pytest.approx(tuple(interval))


def test_empty_bins_have_no_band_and_do_not_count():
    y, p = [0, 1, 1, 0], [0.1, 0.15, 0.9, 0.95]
    band = cal.reliability_band(y, p, curve=binned(cal.EqualWidth(4)), band=cal.ConfidenceBand(0.9, simultaneous=True))
    assert np.isnan(band.low).tolist() == [False, True, True, False]
    assert band.low[0] == pytest.approx(stats.binomtest(1, 2).proportion_ci(0.9**0.5, "exact").low)


def plain_isotonic_ends(y, p, error):
    """The bounds of every stretch between distinct forecasts, in loops."""
    values = np.unique(p)
    pairs = [(a, b) for a in values for b in values if a <= b]
    tail, low, high = error / (2 * len(pairs)), np.zeros(len(values)), np.ones(len(values))
    for a, b in pairs:
        inside = (p >= a) & (p <= b)
        interval = stats.binomtest(int(y[inside].sum()), int(inside.sum())).proportion_ci(1 - 2 * tail, "exact")
        low[values >= b] = np.maximum(low[values >= b], interval.low)
        high[values <= a] = np.minimum(high[values <= a], interval.high)
    return low, high


@pytest.mark.parametrize("seed", range(3))
def test_the_isotonic_band_of_the_whole_curve_is_the_sharpest_bound_of_all_stretches(seed):
    y, p = drawn(seed, 40, lambda p: p**2, decimals=1)
    band = cal.reliability_band(y, p, curve=isotonic, band=cal.ConfidenceBand(0.8, simultaneous=True))
    low, high = plain_isotonic_ends(y, p, 0.2)
    assert band.low == pytest.approx(np.minimum(low, band.frequency))
    assert band.high == pytest.approx(np.maximum(high, band.frequency))


def test_the_isotonic_band_at_a_forecast_takes_stretches_that_end_or_begin_there():
    y, p = drawn(5, 64)
    order = np.argsort(p)
    y, p = y[order], p[order]
    band = cal.reliability_band(y, p, curve=isotonic, band=cal.ConfidenceBand(0.9))
    lengths = [2, 4, 8, 16, 32, 64]  # 64^(2/3) / 8 is 2
    for index in (0, 20, 63):
        ends = [stats.binomtest(int(y[max(0, index + 1 - s) : index + 1].sum()), min(s, index + 1)) for s in lengths]
        starts = [stats.binomtest(int(y[index : index + s].sum()), min(s, 64 - index)) for s in lengths]
        low = max(test.proportion_ci(1 - 0.1 / 6, "exact").low for test in ends)
        high = min(test.proportion_ci(1 - 0.1 / 6, "exact").high for test in starts)
        assert band.low[index] == pytest.approx(min(low, band.frequency[index]))
        assert band.high[index] == pytest.approx(max(high, band.frequency[index]))


def leave_out(y, p, h):
    """The squared error of local lines from all samples but one, in a loop."""
    total = 0.0
    for index in range(len(p)):
        rest = np.arange(len(p)) != index
        weight = np.exp(-0.5 * ((p[rest] - p[index]) / h) ** 2)
        design = np.column_stack([np.ones(rest.sum()), p[rest] - p[index]]) * np.sqrt(weight)[:, None]
        total += (y[index] - np.linalg.lstsq(design, y[rest] * np.sqrt(weight), rcond=None)[0][0]) ** 2
    return total


def test_the_bandwidth_predicts_samples_that_are_left_out_best():
    y, p = drawn(1, 150, lambda p: np.where(p < 0.5, 0.1, 0.9))
    p = (p * 1024).round() / 1024  # at the ends of cells
    lines = LocalLines.of(ladder_of(y, p))
    wide = BANDWIDTHS[BANDWIDTHS >= 0.02]
    best = wide[np.argmin([leave_out(y, p, h) for h in wide])]
    assert lines.bandwidth == best


def test_errors_of_samples_left_out_are_those_of_a_loop():
    y, p = drawn(6, 120)
    p = (p * 1024).round() / 1024
    ladder = ladder_of(y, p)
    mass, hits = (np.bincount((p * 1024).astype(int), each, 1025) for each in (np.ones(120), y))
    frequency, _, own = local_linear._curves(mass, hits, 0)
    errors = local_linear._left_out(mass, hits, frequency, own)
    assert (mass == LocalLines.of(ladder).mass).all()
    for index in (8, 10, 12):  # the ridge, which a loop has not, is 1e-3 of the spread
        assert errors[index] == pytest.approx(leave_out(y, p, BANDWIDTHS[index]), rel=2e-3)


def test_the_smooth_curve_is_a_line_fitted_around_each_point():
    y, p = drawn(2, 300, lambda p: p**3)
    p = (p * 1024).round() / 1024
    ladder = ladder_of(y, p)
    lines, curve = LocalLines.of(ladder), smooth(ladder)
    for index in (40, 128, 230):
        t = curve.forecast[index]
        weight = np.exp(-0.5 * ((p - t) / lines.bandwidth) ** 2)
        centre, rate = np.average(p, weights=weight), np.average(y, weights=weight)
        spread = np.average((p - centre) ** 2, weights=weight) + lines.bandwidth**2 / 1000
        slope = np.average((p - centre) * y, weights=weight) / spread
        assert curve.frequency[index] == pytest.approx(np.clip(rate + (t - centre) * slope, 0, 1), abs=1e-9)


def test_the_smooth_curve_follows_a_steep_curve_to_its_end():
    """Averages as wide as the smooth error say .1 and more at a forecast of 0; the bin there says .05."""
    steep = lambda p: np.where(p < 0.1, 0.05 + 4 * p, 0.45 + 0.5 * (p - 0.1))  # noqa: E731
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 2, 4000)
    y = (rng.random(4000) < steep(p)).astype(int)
    curve = smooth(ladder_of(y, p))
    first = curve.forecast < 0.04
    assert np.abs(curve.frequency - steep(curve.forecast))[first].max() < 0.04


def test_tied_forecasts_have_a_smooth_curve_between_them():
    p = np.repeat(np.arange(1, 10) / 10, 50)
    y = (np.random.default_rng(0).random(450) < p).astype(int)
    curve = smooth(ladder_of(y, p))
    assert not np.isnan(curve.frequency[(curve.forecast >= 0.1) & (curve.forecast <= 0.9)]).any()
    assert np.isnan(curve.frequency[curve.forecast < 0.09]).all()


def test_the_smooth_band_is_as_wide_as_the_weights_say():
    y, p = drawn(3, 200, lambda p: 0.3 + 0.4 * p)
    p = (p * 1024).round() / 1024
    ladder = ladder_of(y, p)
    band, lines = cal.ConfidenceBand()(smooth, ladder), LocalLines.of(ladder)
    index = 128
    t, h = band.forecast[index], lines.bandwidth
    weight = np.exp(-0.5 * ((p - t) / h) ** 2)
    weight /= weight.sum()
    centre = weight @ p
    weight *= 1 + (t - centre) * (p - centre) / (weight @ (p - centre) ** 2 + h**2 / 1000)
    z = 1.81084
    low, high = proportions.wilson(band.frequency[[index]], np.array([1 / (weight**2).sum()]), z)
    tail = 2 * stats.norm.sf(z) + 2 * math.acos(math.sqrt(2 * math.sqrt(2) / 3)) / math.pi * math.exp(-(z**2) / 2)
    assert tail == pytest.approx(0.1, abs=1e-4)  # z of the tube formula, to four digits
    assert (band.low[index], band.high[index]) == pytest.approx((low[0], high[0]), abs=1e-3)


def test_the_smooth_band_at_an_end_is_as_wide_as_the_outcomes_that_lead_there_scatter():
    """Near 1 outcomes hardly vary, but a wide bandwidth rests the curve on those of lower forecasts, which do."""
    y, p = drawn(1, 400)
    ladder = ladder_of(y, p)
    band, lines = cal.ConfidenceBand()(smooth, ladder), LocalLines.of(ladder)
    assert lines.bandwidth > 0.2
    last = np.flatnonzero(~np.isnan(band.low))[-1]
    held, shares = lines.shares(band.forecast[[last]])
    chances = np.clip(lines.frequency[held], 0, 1)
    deviation = math.sqrt((shares[0] ** 2 * lines.mass[held]) @ (chances * (1 - chances)))
    assert band.low[last] == pytest.approx(lines.frequency[4 * last] - 1.81084 * deviation, abs=1e-6)


def test_the_smooth_band_of_the_whole_curve_follows_the_path_of_its_weights():
    """Where the interval is Wilson's, its z solves the tube formula of that path and of all bandwidths."""
    y, p = drawn(3, 200, lambda p: 0.3 + 0.4 * p)
    ladder = ladder_of(y, p)
    band, lines = cal.ConfidenceBand(0.9, simultaneous=True)(smooth, ladder), LocalLines.of(ladder)
    known = ~np.isnan(band.low)
    held, shares = lines.shares(band.forecast[known])
    rows = shares * np.sqrt(lines.mass[held])
    norms = np.linalg.norm(rows, axis=1)
    path = sum(math.acos(min(1.0, a @ b)) for a, b in itertools.pairwise(rows / norms[:, None]))
    length = path + (len(BANDWIDTHS) - 1) * math.acos(math.sqrt(2 * math.sqrt(2) / 3))
    place = np.flatnonzero(known)[known.sum() // 2]
    high, n = band.high[place], 1 / norms[known.sum() // 2] ** 2
    z = (high - band.frequency[place]) / math.sqrt(high * (1 - high) / n)
    assert 2 * stats.norm.sf(z) + length / math.pi * math.exp(-(z**2) / 2) == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize("curve", [binned(), isotonic, smooth], ids=["binned", "isotonic", "smooth"])
@pytest.mark.parametrize("band", [cal.ConfidenceBand, partial(cal.ConsistencyBand, n=600)], ids=["around", "null"])
def test_bands_hold_their_curve_and_the_whole_is_wider(curve, band):
    y, p = drawn(4, 100)
    alone, together = (
        cal.reliability_band(y, p, curve=curve, band=band(0.9, simultaneous=each)) for each in (False, True)
    )
    known = ~np.isnan(alone.low)
    assert known.any()
    assert (together.high - together.low)[known].sum() > 1.1 * (alone.high - alone.low)[known].sum()
    if band is cal.ConfidenceBand:
        assert ((alone.low <= alone.frequency) & (alone.frequency <= alone.high))[known].all()
    assert together.low.tolist() != alone.low.tolist()
    narrower = cal.reliability_band(y, p, curve=curve, band=band(0.5, simultaneous=True))
    assert np.nanmean(narrower.high - narrower.low) <= np.nanmean(together.high - together.low)
    assert alone.covers


def whole(curve, band, truth, seeds, n, goal):
    """The share of data sets in which the whole band holds what it should."""
    held = []
    for seed in seeds:
        y, p = drawn(seed, n, truth)
        ends = cal.reliability_band(y, p, curve=curve, band=band)
        target = goal(y, p, ends)
        known = ~np.isnan(ends.low)
        held.append(((ends.low <= target + 1e-12) & (target <= ends.high + 1e-12))[known].all())
    return np.mean(held)


def test_the_whole_true_curve_is_covered():
    """Of 60 data sets at least 50 are covered: at 90 % that fails in 4 of 100 runs of other seeds, at 95 % in none."""
    truth = lambda p: 1 / (1 + (1 / p - 1) ** 0.6)  # noqa: E731
    band = cal.ConfidenceBand(0.9, simultaneous=True)
    assert whole(isotonic, band, truth, range(60), 200, lambda y, p, ends: truth(ends.forecast)) >= 50 / 60

    def means(y, p, ends):
        code = np.ceil(p * 15).astype(int) - 1
        with np.errstate(invalid="ignore"):
            return np.bincount(code, truth(p), 15) / np.bincount(code, minlength=15)

    assert whole(binned(), band, truth, range(60), 200, means) >= 50 / 60


def test_the_whole_curve_of_calibrated_forecasts_stays_in_its_band():
    """The band follows from the forecasts alone; of 200 redraws of the labels at least 170 lie inside."""
    _, p = drawn(0, 150)
    rng = np.random.default_rng(1)
    for curve in (binned(), isotonic):
        tables = [ladder_of((rng.random(150) < p).astype(int), p) for _ in range(200)]
        band = cal.ConsistencyBand(0.9, simultaneous=True, n=600)(curve, tables[0])
        rows = np.array([curve(table).frequency for table in tables])
        known = ~np.isnan(band.low)
        share = ((band.low <= rows) & (rows <= band.high))[:, known].all(axis=1).mean()
        assert 170 / 200 <= share < 1


def test_a_consistency_band_is_made_of_order_statistics():
    _, p = drawn(0, 30)
    ladder = ladder_of((p > 0.5).astype(int), p)
    few = cal.ConsistencyBand(0.5, n=7, seed=3)(binned(cal.EqualWidth(2)), ladder)
    other = cal.ConsistencyBand(0.5, n=7, seed=3)(binned(cal.EqualWidth(2)), ladder_of((p < 0.5).astype(int), p))
    assert few.low.tolist() == other.low.tolist()
    assert {(value * (p <= 0.5).sum()) % 1 for value in (few.low[0], few.high[0])} == {0}
    rows = np.array([[3.0], [1.0], [2.0], [5.0], [4.0]])
    assert bands.ends_of_each(rows, 0.5).tolist() == [[1, 5]]  # k = floor(.25 * 6)
    assert bands.ends_of_each(rows, 0.3).tolist() == [[2, 4]]


def test_the_band_of_whole_rows_is_stretched_until_enough_stay_inside():
    """Medians .5, reaches .1 and .2 at first; the other rows deviate by 2, 1, .5 and 1 of these."""
    first = np.array([[0.4, 0.5], [0.5, 0.5], [0.7, 0.5], [0.5, 0.5]])
    second = np.array([[0.3, 0.5], [0.7, 0.5], [0.6, 0.5], [0.4, 0.5]])
    drawn = np.concatenate([first, second])
    assert bands.ends_of_all(drawn, 0.8) == pytest.approx(np.array([[0.3, 0.9], [0.5, 0.5]]))
    assert bands.ends_of_all(drawn, 0.6) == pytest.approx(np.array([[0.4, 0.7], [0.5, 0.5]]))
    with pytest.raises(cal.CalibrationInputError, match="n: must be larger"):
        bands.ends_of_all(drawn, 0.9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"band": cal.ConsistencyBand(n=9)}, "n: must be larger"),
        ({"band": "confidence"}, "band: must be a way to a band"),
        ({"curve": lambda ladder: Curve("own", np.zeros(1), np.zeros(1))}, "curve: must have a confidence band"),
        ({"curve": binned(cal.Sweep(cal.EqualMass()))}, "band: needs bins that outcomes do not choose"),
        ({"curve": binned(cal.KDTree())}, "binning: must pool the forecasts of one event"),
        ({"sample_weight": [1, 2, 1, 1]}, "band: needs rows of weight 1"),
    ],
)
def test_what_has_no_valid_band_is_refused(options, words):
    with pytest.raises(cal.CalibrationInputError, match=words):
        cal.reliability_band([0, 1, 0, 1], [0.1, 0.6, 0.4, 0.7], **options)


def test_several_questions_and_pooled_answers_have_no_band():
    rows = cal.Predictions.from_probs([0, 1, 1], [[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    for lens in (cal.Classwise(), cal.Flat()):
        with pytest.raises(cal.CalibrationInputError, match="band: needs one answer a row"):
            cal.reliability_band(rows, lens=lens)
    soft = cal.Predictions.from_probs([[0.5, 0.5], [0.2, 0.8]], [[0.8, 0.2], [0.3, 0.7]])
    with pytest.raises(cal.CalibrationInputError, match=r"band: needs .* hard labels, got soft labels"):
        cal.reliability_band(soft)


@pytest.mark.parametrize("kind", [cal.ConfidenceBand, cal.ConsistencyBand])
def test_levels_are_checked(kind):
    with pytest.raises(cal.CalibrationInputError, match="level"):
        kind(90)
    with pytest.raises(cal.CalibrationInputError, match="simultaneous"):
        kind(0.9, simultaneous="yes")
