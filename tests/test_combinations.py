"""Combinations: every lens with every binning, distance and aggregate works, or says which two do not fit."""

import itertools

import numpy as np
import pytest

import calibrant as cal
from toy import P, y

LENSES = [
    cal.TopLabel(),
    cal.TopK(2),
    cal.InTopK(2),
    cal.Ranked(2),
    cal.Groups({"a": [0], "b": [1, 2]}),
    cal.OneClass(1),
    cal.Classwise(),
    cal.Flat(),
    cal.Full(),
    cal.ByLabel(cal.TopLabel()),
    cal.ByPrediction(cal.Full()),
    cal.ByLabel(cal.Classwise()),
    cal.ByLabel(cal.Flat()),
    cal.ByPrediction(cal.ByLabel(cal.TopLabel())),
    cal.Between(cal.TopLabel(), 0.3, 0.8),
    cal.Between(cal.TopK(2), 0.3, 0.8, of="1"),
    cal.Above(cal.Classwise(), 0.1),
    cal.Above(cal.ByLabel(cal.Flat()), 0.1),
]
BINNINGS = [
    cal.EqualWidth(5),
    cal.EqualMass(5),
    cal.Quantiles(5),
    cal.Edges([0, 0.5, 1]),
    cal.KDTree(0.3),
    cal.KDTree(0.3, threshold="median"),
    cal.Sweep(cal.EqualMass()),
    cal.Sweep(cal.EqualWidth(closed="left")),
    cal.Grid(4),
]
DISTANCES = [
    cal.tvd,
    cal.squared,
    cal.power(3),
    cal.lp(2),
    cal.signed,
    cal.weighted([1, 2, 3]),
    cal.weighted([1]),
    cal.mahalanobis(np.eye(3)),
    cal.inter_interval(0.2, 0.6),
    cal.interval_tvd(0.2, 0.6),
    cal.debiased_squared,
    cal.relative,
    cal.log_odds(),
]
AGGREGATES = [cal.mean, cal.root_mean, cal.root(3), cal.maximum, cal.uniform]
ACROSS = [cal.mean_of, cal.mean_of_all, cal.weighted_by_size, cal.contraharmonic, cal.signed_balance, cal.root_mean_of]

PREDICTIONS = cal.Predictions.from_probs(y, P)
SCALAR = (cal.EqualWidth, cal.EqualMass, cal.Quantiles, cal.Edges, cal.Sweep)


def misfit(lens, binning, distance, aggregate):
    """The piece that must be named in the refusal, or None where everything fits."""
    coordinates = lens(PREDICTIONS).d
    if isinstance(binning, SCALAR) and coordinates > 1:
        return type(binning).__name__
    of_events = (cal.inter_interval, cal.interval_tvd, cal.log_odds)
    scalar = distance in (cal.signed, cal.relative) or isinstance(distance, of_events)
    if scalar and coordinates > 1:
        return getattr(distance, "__name__", type(distance).__name__)
    if isinstance(distance, cal.weighted) and coordinates != len(distance.w):
        return "weighted"
    if isinstance(distance, cal.mahalanobis) and coordinates != 3:
        return "mahalanobis"
    if isinstance(binning, cal.Grid) and aggregate is cal.uniform:
        return "uniform"
    return None


def fits(lens, binning):
    return misfit(lens, binning, cal.tvd, cal.mean) is None


PAIRS = list(itertools.product(LENSES, BINNINGS))
FITTING = pytest.mark.parametrize(("lens", "binning"), [pair for pair in PAIRS if fits(*pair)], ids=repr)
NOT_FITTING = pytest.mark.parametrize(("lens", "binning"), [pair for pair in PAIRS if not fits(*pair)], ids=repr)


@pytest.mark.slow
@pytest.mark.parametrize("lens", LENSES, ids=repr)
def test_every_combination_works_or_says_what_does_not_fit(lens):
    for binning, distance, aggregate in itertools.product(BINNINGS, DISTANCES, AGGREGATES):
        metric = cal.BinnedError(lens=lens, binning=binning, distance=distance, aggregate=aggregate)
        piece = misfit(lens, binning, distance, aggregate)
        if piece is None:
            result = metric(PREDICTIONS)
            assert np.isfinite(result.value), metric
            assert result.bins.counts.sum() > 0
        else:
            with pytest.raises(cal.CalibrationInputError, match=piece) as refusal:
                metric(PREDICTIONS)
            assert refusal.value.hint or refusal.value.got


ONE_AND_SEVERAL = pytest.mark.parametrize(
    "lens", [cal.TopLabel(), cal.Classwise(), cal.ByLabel(cal.TopLabel())], ids=repr
)


@pytest.mark.parametrize("across", ACROSS)
@ONE_AND_SEVERAL
def test_every_across_rule_takes_one_question_and_several(lens, across):
    result = cal.BinnedError(lens=lens, binning=cal.EqualWidth(5), across=across)(PREDICTIONS)
    assert 0 <= result.value <= 1


@ONE_AND_SEVERAL
def test_the_mean_of_all_is_the_plain_mean_where_every_question_has_samples(lens):
    plain, of_all = (
        cal.BinnedError(lens=lens, binning=cal.EqualWidth(5), across=across)(PREDICTIONS).value
        for across in (cal.mean_of, cal.mean_of_all)
    )
    assert of_all == plain


@FITTING
def test_every_combination_merges_to_the_same_bits(lens, binning):
    metric = cal.BinnedError(lens=lens, binning=binning)
    parts = [metric.summarise(PREDICTIONS[rows]) for rows in ([3, 1], [], range(4, 12), [0, 2])]
    assert metric.conclude(sum(parts)).value == metric(PREDICTIONS).value


@NOT_FITTING
def test_what_does_not_fit_assigns_no_bins(lens, binning):
    with pytest.raises(cal.CalibrationInputError, match=type(binning).__name__):
        binning.assign(lens(PREDICTIONS))


@FITTING
def test_assigned_bins_are_the_bins(lens, binning):
    view = lens(PREDICTIONS)
    bins = cal.BinnedError(lens=lens, binning=binning)(PREDICTIONS).bins
    codes = binning.assign(view)
    counted = np.zeros(bins.counts.shape)
    group = np.zeros(len(codes), int) if view.group is None else view.group
    for row, question in np.argwhere(codes >= 0):
        counted[group[row] * view.v + question, codes[row, question]] += 1
    assert np.array_equal(counted, bins.counts)


@pytest.mark.parametrize("lens", [lens for lens in LENSES if "ByLabel" not in repr(lens)], ids=repr)
def test_soft_labels_that_are_one_hot_give_the_hard_number(lens):
    almost = np.eye(3)[y]
    almost[0] = [0.5, 0.5, 0.0]  # one row is soft, so that all are held so
    soft = cal.Predictions.from_probs(almost, P)
    assert soft.labels is None
    for binning in (binning for binning in BINNINGS if fits(lens, binning)):
        metric = cal.BinnedError(lens=lens, binning=binning)
        mixed = sum(metric.summarise(part) for part in (soft[1:], cal.Predictions.from_probs(y[:1], P[:1])))
        assert metric.conclude(mixed).value == pytest.approx(metric(PREDICTIONS).value, abs=1e-12)
