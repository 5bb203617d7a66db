"""The library against the plain loops: every formula twice, once fast and once obvious."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from oracles import bins as plain
from oracles import distances, errors, lenses
from strategies import events, rows

replace = dataclasses.replace
SIDES = st.sampled_from(["left", "right"])
COUNTS = st.integers(1, 20)
FEW = st.integers(2, 5)


def close(value):
    return pytest.approx(value, rel=0, abs=1e-12, nan_ok=True)


def lists(data):
    return data[0].tolist(), data[1].tolist()


@given(data=rows(classes=FEW), n_bins=COUNTS, closed=SIDES)
def test_equal_width_errors(data, n_bins, closed):
    P, y = lists(data)
    binning = cal.EqualWidth(n_bins, closed)
    assert replace(cal.ECE, binning=binning)(y, P).value == close(errors.ece(P, y, n_bins, closed))
    assert replace(cal.RMSCE, binning=binning)(y, P).value == close(errors.rmsce(P, y, n_bins, closed))
    assert replace(cal.MCE, binning=binning)(y, P).value == close(errors.mce(P, y, n_bins, closed))
    assert replace(cal.SCE, binning=binning)(y, P).value == close(errors.sce(P, y, n_bins, closed))
    l3 = replace(cal.ECE, binning=binning, distance=cal.power(3), aggregate=cal.root(3))
    assert l3(y, P).value == pytest.approx(errors.ece(P, y, n_bins, closed, p=3), abs=1e-9)  # a cube root of noise
    own = cal.LabelBinnedError(binning=binning)
    assert own(y, P).value == close(errors.ece_label_binned(P, y, n_bins, closed))


@given(data=rows(classes=FEW), n_bins=COUNTS)
def test_equal_mass_errors(data, n_bins):
    P, y = lists(data)
    binning = cal.EqualMass(n_bins)
    assert replace(cal.ADAPTIVE_ECE, binning=binning)(y, P).value == close(errors.adaptive_ece(P, y, n_bins, 1))
    signed = replace(cal.ECE_DEBIASED, binning=binning)(y, P).details["signed_square"]
    scores, labels = lenses.top_label(P, y)
    assert signed == close(errors.debiased_squared_error(scores, labels, plain.equal_mass(scores, n_bins)))
    marginal = replace(cal.SCE, binning=binning, distance=cal.debiased_squared, across=cal.root_mean_of)(y, P).value
    assert marginal == pytest.approx(errors.marginal_debiased(P, y, n_bins), abs=1e-7)  # a square root of noise
    own = cal.LabelBinnedError(binning=binning)(y, P).value
    assert own == close(errors.label_binned_error(scores, labels, plain.equal_mass(scores, n_bins), 1))
    for aggregate, oracle in ((cal.mean, distances.mean), (cal.uniform, distances.uniform)):
        metric = replace(cal.ACE, binning=binning, aggregate=aggregate)
        assert metric(y, P).value == close(errors.ace(P, y, n_bins, oracle))


@given(data=rows(classes=FEW), n_bins=COUNTS, threshold=st.sampled_from([0.01, 0.1, 0.5, 2.0]))
def test_thresholded_errors(data, n_bins, threshold):
    P, y = lists(data)
    for binning, binned in ((cal.EqualMass(n_bins), "rank"), (cal.Quantiles(n_bins), "value")):
        metric = replace(cal.TACE, lens=cal.Above(cal.Classwise(), threshold), binning=binning)
        assert metric(y, P).value == close(errors.tace(P, y, n_bins, threshold, distances.mean, binned))
        flat = replace(metric, lens=cal.Above(cal.Flat(), threshold))
        assert flat(y, P).value == close(errors.tace_flat(P, y, n_bins, threshold, distances.mean, binned))


@given(data=events())
def test_sweeps_of_an_event(data):
    p, y = lists(data)
    chosen, bins = plain.sweep_equal_mass(p, y)
    result = cal.ECE_SWEEP(y, p)
    assert result.details["n_bins"] == chosen
    assert result.value == close(errors.binned_error(p, y, bins, 1))


@given(data=events(), closed=SIDES)
def test_equal_width_sweeps_of_an_event(data, closed):
    p, y = lists(data)
    chosen, bins = plain.sweep_equal_width(p, y, closed)
    result = replace(cal.ECE_SWEEP, binning=cal.Sweep(cal.EqualWidth(closed=closed)))(y, p)
    assert result.details["n_bins"] == chosen
    assert result.value == close(errors.binned_error(p, y, bins, 1))


@given(data=rows(classes=FEW), n_bins=COUNTS, closed=SIDES)
def test_errors_by_label_and_by_prediction(data, n_bins, closed):
    P, y = lists(data)
    binning = cal.EqualWidth(n_bins, closed)
    assert replace(cal.WSECE, binning=binning)(y, P).value == close(errors.wsece(P, y, n_bins, closed))
    assert replace(cal.MSECE, binning=binning)(y, P).value == close(errors.msece(P, y, n_bins, closed))
    assert replace(cal.CECE, binning=binning)(y, P).value == pytest.approx(errors.cece(P, y, n_bins, closed), abs=1e-9)
    for by, around in (("label", cal.ByLabel), ("prediction", cal.ByPrediction)):
        parts = replace(cal.CWECE, lens=around(cal.TopLabel()), binning=binning)(y, P)
        oracle = errors.subset_eces(P, y, n_bins, closed, by)
        assert list(parts.sizes) == [size for size, _ in oracle]
        assert [value for value in parts.values if value == value] == close([v for n, v in oracle if n])


@given(data=rows(classes=FEW))
def test_signed_errors(data):
    P, y = lists(data)
    assert cal.MCS(y, P).value == close(errors.mcs(P, y))
    result, oracle = cal.WSMCS(y, P), errors.wsmcs(P, y, "label")
    assert result.value == close(oracle["value"])
    names = {
        "weighted_over": "over", "weighted_under": "under", "share_over": "over_share",
        "share_under": "under_share", "mean_over": "over_mean", "mean_under": "under_mean",
    }  # fmt: skip
    for ours, theirs in names.items():
        assert result.details[ours] == close(oracle[theirs])


UNIT = Fraction(1, 2**52)
CONFUSIONS = [[1, 9, 0], [-1, -1, 0], [0, 0, 2]]
VECTOR_DISTANCES = [
    (cal.tvd, distances.tvd),
    (cal.lp(2), distances.lp(2)),
    (cal.weighted([1, 2, 0.5]), distances.weighted([1, 2, 0.5])),
    (cal.mahalanobis([[2, 1, 0], [1, 2, 0], [0, 0, 1]]), distances.mahalanobis([[2, 1, 0], [1, 2, 0], [0, 0, 1]])),
    (cal.mahalanobis(CONFUSIONS, semidefinite=False), distances.mahalanobis(CONFUSIONS)),
]


@given(
    data=rows(classes=st.just(3)),
    gamma=st.sampled_from([0.05, 0.1, 0.25, 0.5, 1.0]),
    threshold=st.sampled_from(["mean", "median"]),
    pair=st.sampled_from(VECTOR_DISTANCES),
)
def test_errors_over_trees(data, gamma, threshold, pair):
    P, y = lists(data)
    outputs, targets = lenses.full(P, y)
    leaves = plain.whole(plain.kd_tree(outputs, gamma, threshold, unit=UNIT))
    metric = cal.BinnedError(lens=cal.Full(), binning=cal.KDTree(gamma, threshold), distance=pair[0])
    assert metric(y, P).value == close(errors.generalised_error(outputs, targets, leaves, pair[1]))
    worst = replace(metric, aggregate=cal.maximum)
    assert worst(y, P).value == close(errors.generalised_error(outputs, targets, leaves, pair[1], distances.maximum))


@given(data=rows(classes=st.just(4)), k=st.integers(1, 4), n_bins=COUNTS)
def test_top_k_questions(data, k, n_bins):
    P, y = lists(data)
    binning = cal.EqualWidth(n_bins)
    assert cal.BinnedError(lens=cal.Ranked(k), binning=binning)(y, P).value == close(
        errors.ranked_ece(P, y, k, n_bins, "right")
    )
    outputs, targets = lenses.top_k(P, y, k)
    view = cal.TopK(k)(cal.Predictions.from_probs(y, P))
    assert np.allclose(view.outputs[:, 0], outputs, rtol=0, atol=1e-15)
    assert view.truth_rows[:, 0].tolist() == targets
    outputs, targets = lenses.in_top_k(P, y, k)
    view = cal.InTopK(k)(cal.Predictions.from_probs(y, P))
    assert np.allclose(view.outputs[:, 0, 0], outputs, rtol=0, atol=1e-15)
    assert view.truth_rows[:, 0, 0].tolist() == targets


ENDS = st.sampled_from(["left", "right", "both", "neither"])
BORDERS = st.sampled_from([(0.0, 0.5), (0.2, 0.7), (0.3, 1.0), (0.0, 1.0), (0.5, 0.5)])


@given(data=rows(classes=st.just(4)), between=BORDERS, closed=ENDS, of=st.sampled_from([None, "pair", "rest", 1]))
def test_answers_of_vectors_between_two_values(data, between, closed, of):
    P, y = lists(data)
    partition = {"pair": [0, 2], "rest": [1, 3]}
    outputs, targets = lenses.groups(P, y, list(partition.values()))
    outputs = [[round(value, 12) for value in row] for row in outputs]  # sums are compared a few bits coarser
    coordinate = list(partition).index(of) if isinstance(of, str) else of
    outputs, targets = lenses.kept_between(outputs, targets, *between, closed, coordinate)
    lens = cal.Between(cal.Groups(partition), *between, closed, of)
    whole = cal.BinnedError(lens=lens, binning=cal.Grid(1))(y, P)
    assert whole.bins.counts.sum() == len(outputs)
    everything = plain.whole([list(range(len(outputs)))] if outputs else [])
    assert whole.value == pytest.approx(errors.generalised_error(outputs, targets, everything), abs=1e-11, nan_ok=True)


@given(data=rows(classes=FEW), between=BORDERS, closed=ENDS, of=st.integers(0, 1))
def test_samples_whose_output_lies_between_two_values(data, between, closed, of):
    P, y = lists(data)
    predictions = cal.Predictions.from_probs(y, P)
    inside = [lenses.is_between(row[of], *between, closed) for row in predictions.probabilities.tolist()]
    assert cal.output_between(*between, of=of, closed=closed)(predictions).tolist() == inside
    sure = [lenses.is_between(max(row), *between, closed) for row in predictions.probabilities.tolist()]
    assert cal.confidence_between(*between, closed=closed)(predictions).tolist() == sure


@given(data=events(), n_bins=COUNTS, prior=st.sampled_from([0.1, 0.5, 2.0]))
def test_distances_near_the_ends(data, n_bins, prior):
    p, y = lists(data)
    bins = plain.from_indices(plain.equal_width(p, n_bins), n_bins)
    metric = cal.BinnedError(binning=cal.EqualWidth(n_bins), distance=cal.relative)
    assert metric(y, p).value == pytest.approx(
        errors.event_error(p, y, bins, distances.relative), abs=1e-9
    )  # small gaps
    table = errors.cells([[value] for value in p], [[value] for value in y], bins)
    expected = distances.mean([(n, distances.log_odds(n, prior)(o, t) if n else 0.0) for n, o, t in table])
    assert metric.replace(distance=cal.log_odds(prior))(y, p).value == pytest.approx(expected, abs=1e-10)


@given(data=rows(classes=FEW), counts=st.lists(COUNTS, min_size=1, max_size=4), widths=st.lists(COUNTS, max_size=3))
def test_ensembles_of_range_schemes(data, counts, widths):
    P, y = lists(data)
    schemes = [*map(cal.EqualMass, counts), *map(cal.EqualWidth, widths)]
    means = [errors.adaptive_ece(P, y, n, 1) for n in counts] + [errors.ece(P, y, n, "right") for n in widths]
    result = cal.EnsembleError(binnings=schemes)(y, P)
    assert result.value == close(sum(means) / len(means))
    assert [result.details["smallest"], result.details["largest"]] == close([min(means), max(means)])
    classes = [errors.ace(P, y, n, distances.mean) for n in counts] + [errors.sce(P, y, n, "right") for n in widths]
    every = cal.EnsembleError(lens=cal.Classwise(), binnings=schemes, across=cal.mean_of_all)(y, P)
    assert every.value == close(sum(classes) / len(classes))


@given(data=rows(classes=st.just(4)), n_bins=st.integers(1, 6), closed=SIDES)
def test_grids(data, n_bins, closed):
    P, y = lists(data)
    outputs, targets = lenses.full(P, y)
    cells = plain.whole(plain.grid(outputs, n_bins, closed))
    metric = cal.BinnedError(lens=cal.Full(), binning=cal.Grid(n_bins, closed))
    assert metric(y, P).value == close(errors.generalised_error(outputs, targets, cells))


@given(data=events(), low=st.sampled_from([0.0, 0.33, 0.66]), n_bins=COUNTS)
def test_likert_errors(data, low, n_bins):
    p, y = lists(data)
    high = {0.0: 0.33, 0.33: 0.66, 0.66: 1.0}[low]
    ((_, metric),) = cal.likert([(low, high)], binning=cal.EqualWidth(n_bins)).items()
    assert metric(y, p).value == close(errors.inter_interval_error(p, y, low, high, n_bins))


@given(data=rows(classes=FEW), n_bins=COUNTS, seed=st.integers(0, 2**32 - 1))
def test_fractional_weights(data, n_bins, seed):
    P, y = lists(data)
    weight = np.random.default_rng(seed).random(len(y)) + 0.1
    predictions = cal.Predictions.from_probs(y, P, sample_weight=weight)
    found = replace(cal.ECE, binning=cal.EqualWidth(n_bins))(predictions).value
    assert found == close(errors.ece(P, y, n_bins, "right", weights=weight.tolist()))


@given(data=rows(classes=FEW))
def test_scores_and_failure_detection(data):
    P, y = lists(data)
    assert cal.BRIER(y, P).value == close(errors.brier(P, y))
    assert cal.ACCURACY(y, P).value == close(errors.accuracy(P, y))
    zero = any(P[i][label] == 0 for i, label in enumerate(y))
    assert cal.LOG_LOSS(y, P).value == (np.inf if zero else close(errors.log_loss(P, y)))
    predictions = cal.Predictions.from_probs(y, P)
    assert cal.diagnostics.mean_entropy(predictions) == close(errors.mean_entropy(P))
    uncertain = [errors.entropy(row) for row in P]
    if len({round(value, 9) for value in uncertain}) == len(uncertain):  # with ties the loop follows row order
        curve = cal.diagnostics.risk_coverage(predictions, cal.entropy)
        assert curve.aurc == pytest.approx(errors.aurc(P, y), abs=1e-12)
        assert curve.augrc == pytest.approx(errors.augrc(P, y), abs=1e-12)
        shares = [0, 0.1, 0.3, 0.5, 0.77, 1]
        found = [curve.accuracy_after_referring(share) for share in shares]
        assert found == pytest.approx(errors.accuracy_after_referral(P, y, shares), abs=1e-12, nan_ok=True)
