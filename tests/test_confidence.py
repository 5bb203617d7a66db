"""Intervals that cover: moments against enumeration, influences against one row more, coverage, and every refusal."""

import math

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.gap_sums import GapSum, distances
from calibrant.inference.shared_outcomes import of_groups, of_ties
from calibrant.inference.skewness import skewed, student

INFLUENCES = [cal.SLOPE, cal.INTERCEPT, cal.OE_RATIO, cal.AUROC, cal.BRIER_SKILL]


def rows(n=300, seed=0, power=1.3, low=0.02):
    rng = np.random.default_rng(seed)
    p = rng.uniform(low, 1 - low, n)
    return (rng.random(n) < p**power).astype(int), p


def several(happened, forecasts):
    return cal.Predictions.from_multilabel(np.array(happened), np.array(forecasts))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("chance", [0.0, 0.03, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.77, 1.0])
def test_moments_of_distances_are_those_of_every_count(n, chance, share):
    counts = np.arange(n + 1)
    weight = np.array([math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in counts.tolist()])
    far = np.abs(counts - share * n)
    mean = (weight * far).sum()
    expected = mean, (weight * (far - mean) ** 2).sum(), (weight * (far - mean) ** 3).sum()
    found = distances(np.array([n]), np.array([chance]), np.array([share * n]))
    assert [float(moment[0]) for moment in found] == pytest.approx(expected, abs=1e-9 * n**3)


def test_quantiles_of_the_sum_are_those_of_redraws():
    size, forecast = np.array([40.0, 60.0, 25.0]), np.array([0.1, 0.5, 0.93])
    sums = GapSum(size, forecast, forecast, size / 125, 125.0)
    rng = np.random.default_rng(0)
    drawn = (np.abs(rng.binomial(size.astype(int), forecast, (40_000, 3)) / size - forecast) * size / 125).sum(axis=1)
    for z, tail in ((1.645, 0.95), (-1.645, 0.05), (0.0, 0.5)):
        assert sums._quantile(np.zeros(3), z) == pytest.approx(np.quantile(drawn, tail), abs=0.0025)


@pytest.mark.parametrize("metric", INFLUENCES, ids=lambda metric: metric.name)
def test_influences_are_what_one_row_more_does(metric):
    y, p = rows()
    (ladder,) = metric.summarise(y, p).ladders()
    value, moves = metric.part_facts.influence(ladder)
    assert value == pytest.approx(metric(y, p).value)
    counts = np.array([np.bincount(y[p == forecast], minlength=2) for forecast in ladder.values])
    assert (counts * moves).sum() == pytest.approx(0, abs=2e-3 * len(y))  # the mean influence of a sample is 0
    for forecast, outcome in ((0.2, 0), (0.2, 1), (0.7, 0), (0.95, 1)):
        place = int(np.abs(ladder.values - forecast).argmin())
        more = metric(np.append(y, outcome), np.append(p, ladder.values[place])).value
        assert len(y) * (more - value) == pytest.approx(moves[place, outcome], rel=0.06, abs=0.06)


def test_without_skewness_it_is_student_and_with_it_the_longer_end_is_on_the_skewed_side():
    even = np.array([-1.0, 1.0] * 20) / 40
    half = student(0.9, 39) * math.sqrt((even @ even) * 40 / 39)
    assert skewed(3.0, even, 0.9) == pytest.approx((3 - half, 3 + half))
    rare = (np.arange(40) < 4) - 0.1
    low, high = skewed(0.1, rare / 40, 0.9)
    assert high - 0.1 > 1.3 * (0.1 - low)
    assert skewed(0.1, rare / 40, 0.9, most=3)[1] > high


@pytest.mark.parametrize(
    ("metric", "data", "reason"),
    [
        (cal.SMECE, rows(), "no interval is known to cover for this metric"),
        (cal.MCE, rows(), "no interval is known to cover for this metric: compare it with its noise floor"),
        (cal.NetBenefit(0.3), rows(), "no interval is known to cover for this metric; that of Bootstrap may not"),
        (cal.ECE, ([0.3, 0.6], [0.2, 0.7]), "under soft labels"),
        (cal.BRIER, ([0] * 19 + [1], [0.05] * 20), "one outcome was seen fewer than 2 times"),
        (cal.BRIER, ([0] * 20, [[0.95, 0.05]] * 20), "one outcome was seen fewer than 2 times"),
        (cal.BRIER, ([0, 1] * 20, [0.01, 0.99] * 20), "fewer than 2 outcomes were unlikely by their forecasts"),
        (cal.LOG_LOSS, ([0, 1] * 19 + [0, 0], [0.01, 0.99] * 20), "fewer than 2 outcomes were unlikely"),
        (cal.MCS, ([0, 1] * 20, [0.01, 0.99] * 20), "fewer than 2 outcomes were unlikely"),
        (cal.BRIER, (several([[0, 1]] * 30, [[0.01, 0.99]] * 30),), "fewer than 2 outcomes were unlikely"),
        (cal.LOG_LOSS, (several([[0, 0]] * 30, [[0.01, 0.02]] * 30),), "one outcome was seen fewer than 2 times"),
        (cal.LOG_LOSS, ([0, 1] * 10, [0.5] * 19 + [0.0]), "the value is not finite"),
        (cal.AUROC, ([0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.8, 0.9]), "at the end of its range"),
        (cal.ECE_SWEEP, rows(150), "fewer than 200 rows choose"),
        (cal.ECE_DEBIASED, rows(140), "fewer than 10 rows each"),
        (cal.ECE, ([1], [0.9]), "fewer than 2 rows"),
        (cal.RMSCE, ([1] * 30, [0.99] * 30), "one outcome was seen fewer than 2 times"),
    ],
    ids=lambda part: getattr(part, "name", ""),
)
def test_where_nothing_covers_there_is_no_interval_but_a_reason(metric, data, reason):
    result = metric(*data, interval=cal.Confidence())
    assert result.interval is None
    assert reason in result.notes[-1]


@pytest.mark.parametrize("rows", [3, 30, 600])
def test_sure_forecasts_of_both_outcomes_may_still_be_wrong(rows):
    truth = np.arange(rows) % 2
    event = cal.ECE(cal.Predictions.from_probs(truth, truth.astype(float)), interval=cal.Confidence()).interval
    sure = np.column_stack([1.0 - truth, truth])
    label = cal.ECE(cal.Predictions.from_probs(truth, sure), interval=cal.Confidence()).interval
    assert (event.low, event.high) == pytest.approx((0.0, label.high))  # who is right is one outcome alone
    assert event.high > 1 - 0.05 ** (1 / rows) - 1e-9  # Clopper & Pearson's end for none among so many


def test_intervals_cover_the_error_of_sure_forecasts():
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        forecast = (random.random(300) < 0.5).astype(float)
        truth = np.where(random.random(300) < 0.002, 1 - forecast, forecast).astype(int)
        predictions = cal.Predictions.from_probs(truth, forecast)
        covered += cal.ECE(predictions, interval=cal.Confidence()).interval.high >= 0.002
    assert covered >= 250  # fewer in 0.01% of runs if 90% are covered; 43% were


@pytest.mark.parametrize("forecast", [0.99, 0.999999, 1.0])
def test_what_was_never_seen_may_still_happen(forecast):
    """Thirty forecasts that all came true: a true frequency of .92 shows that in 8 % of samples."""
    between = cal.ECE([1] * 30, [forecast] * 30, interval=cal.Confidence()).interval
    assert between.low == 0
    assert between.high == pytest.approx(1 - 0.05 ** (1 / 30), rel=0.1)  # Student's quantile is farther out
    opposite = cal.ECE([0] * 30, [1 - forecast] * 30, interval=cal.Confidence()).interval
    assert opposite.high == pytest.approx(between.high)


@pytest.mark.parametrize("metric", [cal.ECE, cal.SCE, cal.ACE, cal.ADAPTIVE_ECE])
def test_an_interval_reaches_to_the_value(metric):
    """Ten calibrated samples of 60: chance alone often makes an error that is larger than any true one may be."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        p = rng.dirichlet(np.ones(5), 60)
        y = (p.cumsum(axis=1) < rng.random(60)[:, None]).sum(axis=1)
        result = metric(y, p, interval=cal.Confidence())
        assert result.interval.low <= result.value <= result.interval.high
        assert all(part.interval.low <= part.value <= part.interval.high for part in result.parts.values())


def test_an_interval_says_what_it_is_an_interval_of():
    result = cal.ECE(*rows(), interval=cal.Confidence())
    assert result.interval.target == "the metric's own limit with these bins"
    assert cal.Result.from_json(result.to_json()).interval == result.interval
    assert cal.BRIER(*rows(), interval=cal.Confidence()).interval.target == "the metric's own limit"
    assert cal.ECE(*rows(), interval=cal.Bootstrap(20)).interval.target == result.interval.target


def test_groups_are_one_row_each_for_means_and_bins_alike():
    y, p = rows(400)
    predictions = cal.Predictions.from_probs(np.repeat(y, 3), np.repeat(p, 3), group=np.repeat(np.arange(400), 3))
    alone = cal.MCS(y, p, interval=cal.Confidence()).interval
    together = cal.MCS(predictions, interval=cal.Confidence(groups="group")).interval
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))
    blind = cal.MCS(predictions, interval=cal.Confidence()).interval
    assert blind.high - blind.low < 0.65 * (alone.high - alone.low)
    for metric in (cal.ECE, cal.ADAPTIVE_ECE, cal.RMSCE):  # groups of three equal rows are one row
        alone = metric(y, p, interval=cal.Confidence()).interval
        together = metric(predictions, interval=cal.Confidence(groups="group")).interval
        blind = metric(predictions, interval=cal.Confidence()).interval
        assert together.high == pytest.approx(alone.high, rel=0.12)  # design effects are estimated
        assert blind.high < together.high
    few = cal.Predictions.from_probs(y, p, group=np.arange(400) % 19)
    result = cal.ECE(few, interval=cal.Confidence(groups="group"))
    assert result.interval is None
    assert "fewer than 20 groups" in result.notes[-1]
    uneven = cal.Predictions.from_probs(y, p, group=np.maximum(np.arange(400) - 300, 0))
    assert cal.ECE(uneven, interval=cal.Confidence(groups="group")).interval is None


def test_an_infinite_loss_of_one_label_leaves_the_mean_without_an_interval():
    y, p = np.array([[0, 1], [1, 0]] * 20), np.array([[0.3, 0.6], [0.6, 0.3]] * 20)
    p[0, 1] = 0.0
    result = cal.LOG_LOSS(cal.Predictions.from_multilabel(y, p), interval=cal.Confidence())
    assert result.interval is None
    assert "not finite" in result.notes[-1]


def test_weights_make_intervals_wider_than_as_many_rows_would():
    y, p = rows(600)
    for metric in (cal.ECE, cal.MCS):
        plain = metric(y, p, interval=cal.Confidence()).interval
        heavy = metric(y, p, sample_weight=np.where(np.arange(600) % 6, 1, 30), interval=cal.Confidence()).interval
        assert heavy.high - heavy.low > 1.3 * (plain.high - plain.low)


@pytest.mark.slow
@pytest.mark.parametrize("metric", [cal.ECE, cal.ECE_DEBIASED, cal.MCS, cal.BRIER, cal.SLOPE, cal.AUROC], ids=str)
@pytest.mark.parametrize("slope", [1.0, 0.7])
def test_nine_of_ten_intervals_hold_the_limit(metric, slope):
    def drawn(n, seed, soft):
        rng = np.random.default_rng(seed)
        z = rng.normal(-0.5, 1.2, n)
        p, truth = (1 / (1 + np.exp(-s * z)) for s in (1.0, slope))
        return truth if soft else (rng.random(n) < truth).astype(int), p

    exact = metric.replace(distance=cal.squared) if metric is cal.ECE_DEBIASED else metric
    target = exact(*drawn(300_000, 1, metric is not cal.BRIER)).value
    ends = [metric(*drawn(400, (2, seed), False), interval=cal.Confidence()).interval for seed in range(200)]
    held = np.mean([end.low - 1e-9 <= target <= end.high + 1e-9 for end in ends])
    assert held > 0.9 - 3 * math.sqrt(0.09 / 200)


def test_ends_of_squared_gaps_are_where_the_sum_without_bias_lies_at_its_quantile():
    size, forecast = [50.0, 80.0, 70.0], [0.2, 0.5, 0.8]
    frequency, n, z = [0.36, 0.55, 0.6], 200.0, 1.65
    unbiased, fourth, second, weighted, plain, least = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for m, c, f in zip(size, forecast, frequency, strict=True):
        w, chance = m / n, (f * m + 2 * c) / (m + 2)
        v, excess = chance * (1 - chance), (f - c) ** 2 - f * (1 - f) / (m - 1)
        unbiased += w * excess
        second += w * max(excess, 0)
        fourth += w * max(excess, 0) ** 2
        weighted += w * max(excess, 0) * v
        plain += v / 3
        least += 2 * (w * v / m) ** 2
    mean = max(weighted / second, plain)
    low, high = GapSum(*map(np.array, (size, forecast, frequency)), np.array(size) / n, n).squared_interval(z)
    for end, sign in ((low, 1), (high, -1)):
        t = end**2
        deviation = math.sqrt(4 * t * mean / n + least + (fourth / second**2 - 1) * t * t / n)
        assert t + sign * z * deviation == pytest.approx(unbiased, abs=1e-9)


def test_few_events_make_the_interval_of_a_statistic_longer():
    rng = np.random.default_rng(0)
    p = np.where(np.arange(400) < 5, rng.uniform(0.2, 0.9, 400), rng.uniform(0.01, 0.5, 400))
    y = (np.arange(400) < 5).astype(int)
    (ladder,) = cal.AUROC.summarise(y, p).ladders()
    area, moves = cal.AUROC.part_facts.influence(ladder)
    each = moves[np.searchsorted(ladder.values, p), y] / 400 / (area * (1 - area))
    large = (each @ each) ** 2 / (each**4).sum()
    low, high = skewed(math.log(area / (1 - area)), each, 0.9, most=min(4, large - 1))
    interval = cal.AUROC(y, p, interval=cal.Confidence()).interval
    assert (interval.low, interval.high) == pytest.approx((1 / (1 + math.exp(-low)), 1 / (1 + math.exp(-high))))


@pytest.mark.parametrize("metric", [cal.SLOPE, cal.INTERCEPT], ids=str)
def test_forecasts_of_0_and_1_that_are_right_move_no_line_and_no_end(metric):
    """Rows that the fit leaves out had made the interval as many times shorter as there were more rows."""
    y, p = rows(200)
    alone = metric(y, p, interval=cal.Confidence()).interval
    certain = np.arange(600) % 2
    among = metric(np.append(y, certain), np.append(p, certain), interval=cal.Confidence()).interval
    assert (among.low, among.high) == pytest.approx((alone.low, alone.high), rel=0.01)
    few = metric(np.append(y[:5], certain), np.append(p[:5], certain), interval=cal.Confidence())
    assert few.interval is None or few.interval.high - few.interval.low > alone.high - alone.low


@pytest.mark.parametrize("data", ["sure", "sure, one too high", "mostly certain"])
def test_where_few_rows_move_a_gap_its_interval_still_holds_the_limit(data):
    """Of 200 forecasts of .01 and .99 about six fail: these six rows alone move the mean gap."""
    held = []
    for seed in range(300):
        rng = np.random.default_rng([8, seed])
        p = (
            rng.choice([0.01, 0.99], 200)
            if "sure" in data
            else rng.choice([0.001, 0.5, 0.999], 200, p=[0.45, 0.1, 0.45])
        )
        truth = {"sure": 0.02 + 0.96 * p, "sure, one too high": np.where(p > 0.5, p, 0.04), "mostly certain": p}[data]
        interval = cal.MCS((rng.random(200) < truth) * 1, p, interval=cal.Confidence()).interval
        limit = -0.015 if data == "sure, one too high" else 0.0
        held.append(interval is None or interval.low <= limit <= interval.high)
    assert np.mean(held) > 0.9 - 3 * math.sqrt(0.09 / 300)


def uneven(n, seed=0, width=3, first=4.0):
    """Calibrated forecasts of classes, of which the first is much the likeliest."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1, (n, width)) + first * (np.arange(width) == 0)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), p


@pytest.mark.parametrize("group", [cal.ByLabel, cal.ByPrediction])
@pytest.mark.parametrize("heaviest", [1, 9])
def test_gaps_of_classes_weighted_by_size_are_the_mean_gap_and_have_its_interval(group, heaviest):
    y, p = uneven(400, first=1.5)
    weight = np.random.default_rng(1).integers(1, heaviest + 1, 400)
    whole = cal.MCS(y, p, sample_weight=weight, interval=cal.Confidence())
    parts = cal.MCS.replace(lens=group(cal.TopLabel()), across=cal.weighted_by_size)
    result = parts(y, p, sample_weight=weight, interval=cal.Confidence())
    assert result.value == pytest.approx(whole.value)
    assert (result.interval.low, result.interval.high) == pytest.approx((whole.interval.low, whole.interval.high))


def test_metrics_of_true_classes_have_an_interval_where_it_covers():
    """Where one class dominates, that of CWECE covered 54 %, of CWMCS 67 %, of WSECE 46 %, of WSMCS 10 %."""
    y, p = uneven(60)
    for metric in (cal.CWECE, cal.CWMCS):
        result = metric(y, p, interval=cal.Confidence())
        assert result.interval is None
        assert "no interval: a class has fewer than 10 rows" in result.notes[-1]
        assert metric(*uneven(300, first=0.5), interval=cal.Confidence()).interval is not None
    for seed in range(3):
        y, p = uneven(300, seed, first=0.5)
        for metric in (cal.WSECE, cal.WSMCS, cal.CECE):
            assert metric(y, p, interval=cal.Confidence()).interval is None
            over = metric(y, (p**6) / (p**6).sum(axis=1, keepdims=True), interval=cal.Confidence())
            assert over.interval is None  # also where all gaps have one sign
            assert "no interval is known to cover" in over.notes[-1]


def test_weights_count_in_bins_of_equal_mass():
    y, p = rows(3000)
    weight = np.where(np.arange(3000) % 2, 1, 5)
    interval = cal.ADAPTIVE_ECE(y, p, sample_weight=weight, interval=cal.Confidence()).interval
    repeated = cal.ADAPTIVE_ECE(y, p, sample_weight=np.full(3000, 3), interval=cal.Confidence()).interval
    assert interval.high - interval.low > 1.1 * (repeated.high - repeated.low)


@pytest.mark.parametrize("metric", [cal.ADAPTIVE_ECE, cal.RMSCE], ids=str)
@pytest.mark.parametrize(("events", "forecast"), [(150, 0.6), (150, 0.74), (9, 0.02)])
def test_bins_of_one_tie_have_the_interval_of_one_bin(metric, events, forecast):
    y, p = (np.arange(200) < events).astype(int), np.full(200, forecast)
    whole, *parts = (
        metric.replace(binning=cal.EqualMass(count))(y, p, interval=cal.Confidence()).interval for count in (1, 2, 10)
    )
    for interval in parts:
        assert (interval.low, interval.high) == pytest.approx((whole.low, whole.high), rel=1e-6)


@pytest.mark.parametrize(("off", "dependence"), [(0.05, 2.0), (0.25, 1.0)])  # standard errors are .08
def test_groups_that_are_shifted_move_bins_together_unless_their_gaps_are_clear(off, dependence):
    group, side = np.repeat(np.arange(40), 10), np.tile([0.5 - off, 0.5 + off], 200)
    predictions = cal.Predictions.from_probs(group % 2, side)  # both bins happen half the time: gaps of opposite signs
    bins = cal.ECE(predictions).bins
    sums = GapSum.of(bins, np.ones(1))
    shared = of_groups(sums, bins, cal.ECE.binning, cal.ECE.view(predictions), bins, group).applied(sums)
    assert shared.dependence == pytest.approx(dependence)
    assert shared.size == pytest.approx([39, 39], rel=0.02)  # as many as groups; two samples more in each variance


def test_one_heavy_row_leaves_few_degrees_of_freedom():
    y, p = rows(60)
    weight = np.where(np.arange(60) < 3, 20.0, 1.0)
    freedom = (weight**2).sum() ** 2 / (weight**4).sum() - 1
    score = (p - y) ** 2
    value = weight @ score / weight.sum()
    expected = skewed(value, weight * (score - value) / weight.sum(), 0.9, most=freedom)
    interval = cal.BRIER(y, p, sample_weight=weight, interval=cal.Confidence()).interval
    assert (interval.low, interval.high) == pytest.approx((max(0.0, expected[0]), expected[1]))
    heavy = cal.Predictions.from_probs(y, p, group=np.maximum(np.arange(60) - 20, 0))
    sizes = np.array([21.0, *np.ones(39)])
    moved = np.bincount(heavy.column("group"), (score - score.mean()) / 60)
    expected = skewed(score.mean(), moved, 0.9, most=(sizes**2).sum() ** 2 / (sizes**4).sum() - 1)
    interval = cal.BRIER(heavy, interval=cal.Confidence(groups="group")).interval
    assert (interval.low, interval.high) == pytest.approx((max(0.0, expected[0]), min(1.0, expected[1])))


def tied(seed, n=60):
    rng = np.random.default_rng(seed)
    p = rng.choice([0.1, 0.3, 0.35, 0.6, 0.9], n)
    return (rng.random(n) < p).astype(int), p, rng.integers(1, 4, n)


@pytest.mark.parametrize("seed", range(4))
def test_outcomes_shared_by_ties_vary_as_each_outcome_moves_the_bins(seed):
    y, p, weight = tied(seed)
    binning = cal.EqualMass(7)
    predictions = cal.Predictions.from_probs(y, p, sample_weight=weight)
    table = cal.ADAPTIVE_ECE.summarise(predictions)
    bins = cal.ADAPTIVE_ECE.replace(binning=binning)(predictions).bins
    sharing = of_ties(GapSum.of(bins, np.ones(1)), bins, binning, table)
    moves = []
    for row in range(len(p)):  # frequencies are linear in outcomes: what each moves says how they vary together
        labels = (np.arange(len(p)) == row).astype(int)
        again = cal.Predictions.from_probs(labels, p, sample_weight=weight)
        moves.append(cal.ADAPTIVE_ECE.replace(binning=binning)(again).bins.frequency[0, :, 0])
    covariance = np.array(moves).T @ np.array(moves)
    assert np.diag(covariance) == pytest.approx(1 / sharing.size, rel=1e-9)
    assert covariance.sum() == pytest.approx(sharing.parts.summed(1 / bins.counts[0]), rel=1e-9)


@pytest.mark.parametrize("metric", [cal.ECE, cal.ADAPTIVE_ECE], ids=str)
def test_variances_of_groups_are_those_of_a_loop(metric):
    y, p, weight = tied(0, 120)
    owner = np.arange(120) % 24
    predictions = cal.Predictions.from_probs(y, p, sample_weight=weight)
    view, summary = metric.view(predictions), metric.summarise(predictions)
    bins = metric(predictions).bins
    sums = GapSum.of(bins, np.ones(1))
    sharing = of_groups(sums, bins, metric.binning, view, summary, owner)
    size, gaps = bins.counts[0], bins.frequency[0, :, 0] - bins.forecast[0, :, 0]
    order = np.lexsort((np.arange(120), p))
    expected = np.zeros((24, len(size)))
    for value in np.unique(p):  # a tied row lies in every bin of its tie, with the share of the tie in that bin
        tie = order[p[order] == value]
        before, mass = weight[p < value].sum(), weight[tie].sum()
        ends = np.cumsum(size)
        for place, (low, high) in enumerate(zip(ends - size, ends, strict=True)):
            if metric is cal.ECE:
                share = float(size[place] > 0 and bins.low[0, place] < value <= bins.high[0, place] + 1e-12)
            else:
                share = max(0.0, min(high, before + mass) - max(low, before)) / mass
            for row in tie if share else ():
                expected[owner[row], place] += share * weight[row] * (y[row] - p[row] - gaps[place])
    held = size > 0
    squares = (expected**2).sum(axis=0)[held] * 24 / 23
    assert sharing.parts.squares(held.sum()) == pytest.approx(squares, rel=1e-9)
    together = (expected[:, held].sum(axis=1) ** 2).sum() * 24 / 23
    assert sharing.parts.summed(np.ones(held.sum())) == pytest.approx(together, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("effect", ["shift", "slope"])
def test_nine_of_ten_intervals_of_grouped_rows_hold_the_limit(effect):
    def drawn(seed, n=1500, count=40):
        rng = np.random.default_rng(seed)
        p, group = rng.beta(2, 2, n), rng.integers(0, count, n)
        by = {"shift": 0.6 * np.minimum(p, 1 - p), "slope": (p - 0.5) * 3 * p * (1 - p)}[effect]
        truth = 0.9 * p + 0.02 + 0.8 * by * rng.choice([-1, 1], count)[group]
        return cal.Predictions.from_probs((rng.random(n) < truth).astype(int), p, group=group)

    p = np.random.default_rng(0).beta(2, 2, 300_000)
    target = cal.ECE(0.9 * p + 0.02, p).value
    ends = [cal.ECE(drawn(seed), interval=cal.Confidence(groups="group")).interval for seed in range(150)]
    held = np.mean([end.low <= target <= end.high for end in ends])
    assert held > 0.9 - 3 * math.sqrt(0.09 / 150)


def test_the_variance_of_the_area_is_that_of_delong():
    y, p, _ = tied(1, 80)
    (ladder,) = cal.AUROC.summarise(y, p).ladders()
    area, moves = cal.AUROC.part_facts.influence(ladder)
    each = moves[np.searchsorted(ladder.values, p), y] / len(y)
    high, low = p[y == 1], p[y == 0]

    def placed(forecast, others):
        return sum(1.0 if forecast > other else 0.5 * (forecast == other) for other in others) / len(others)

    events, others = [placed(forecast, low) for forecast in high], [1 - placed(forecast, high) for forecast in low]
    assert area == pytest.approx(sum(events) / len(events))
    for placements, own in ((events, each[y == 1]), (others, each[y == 0])):
        count = len(placements)
        component = sum((place - area) ** 2 for place in placements) / (count - 1) / count
        assert own @ own * count / (count - 1) == pytest.approx(component, rel=1e-9)


def nearly_sure(n, k, wrong, sure=0.95, seed=0):
    """Classes of a network that is equally sure of every row, and wrong too often."""
    rng = np.random.default_rng(seed)
    said = rng.integers(0, k, n)
    p = np.full((n, k), (1 - sure) / (k - 1))
    p[np.arange(n), said] = sure
    return np.where(rng.random(n) < wrong, (said + rng.integers(1, k, n)) % k, said), p


@pytest.mark.parametrize("recipe", [cal.SCE, cal.ACE, cal.TACE])
def test_two_classes_that_tell_each_other_are_known_no_better_than_one(recipe):
    y, p = nearly_sure(1000, 2, 0.1)
    both = recipe(y, p, interval=cal.Confidence()).interval
    one = recipe.replace(lens=cal.OneClass(1))(y, p, interval=cal.Confidence()).interval
    assert both.high - both.low == pytest.approx(one.high - one.low, rel=0.1)


@pytest.mark.parametrize("metric", [cal.ECE, cal.ADAPTIVE_ECE, cal.MCS, cal.RMSCE])
def test_answers_of_a_row_that_are_pooled_are_known_no_better_than_one(metric):
    y, p = nearly_sure(1000, 2, 0.1)
    pooled, one = (metric.replace(lens=lens)(y, p, interval=cal.Confidence()) for lens in (cal.Flat(), cal.OneClass(1)))
    if metric is cal.MCS:  # what one class has too much, the other lacks
        assert pooled.interval.low == pytest.approx(pooled.interval.high, abs=1e-12)
    else:
        widths = [result.interval.high - result.interval.low for result in (pooled, one)]
        assert widths[0] == pytest.approx(widths[1], rel=0.2)


@pytest.mark.parametrize(("n", "k", "wrong"), [(300, 2, 0.1), (1000, 3, 0.1), (1000, 10, 0.1), (300, 3, 0.01)])
def test_intervals_of_classes_cover_where_a_network_is_nearly_sure(n, k, wrong):
    """Intervals that took the classes to be independent fail here."""
    limit = (abs(1 - wrong - 0.95) + abs(wrong - 0.05)) / k
    held = 0
    for seed in range(150):
        interval = cal.SCE(*nearly_sure(n, k, wrong, seed=seed), interval=cal.Confidence()).interval
        held += interval.low <= limit <= interval.high
    assert held >= 0.85 * 150  # 90 % are promised, of which 127 or fewer would be 3 % of such counts


def test_some_rows_tell_how_classes_depend_on_each_other(monkeypatch):
    y, p = nearly_sure(4000, 5, 0.1)
    for recipe in (cal.SCE, cal.ACE, cal.ECE.replace(lens=cal.Flat())):
        whole = recipe(y, p, interval=cal.Confidence()).interval
        monkeypatch.setattr("calibrant.inference.shared_outcomes.MOST_ANSWERS", 5 * 500)
        some = recipe(y, p, interval=cal.Confidence()).interval
        monkeypatch.undo()
        assert some.high - some.low == pytest.approx(whole.high - whole.low, rel=0.15)
        assert some != whole
