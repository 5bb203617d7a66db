"""The kernel error: against the plain loop, in any order, at the edges, and as a test of calibration."""

import dataclasses
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant import CalibrationInputError
from calibrant.errors.kernel import KernelError, biased, unbiased, unbiased_blocks
from calibrant.errors.similarity import Residuals, exponential, gaussian
from calibrant.kernels import pairs as module
from oracles import kernel as plain
from oracles import lenses
from strategies import events, rows

KERNELS = [exponential(0.3), exponential(), gaussian(0.7), gaussian()]
ESTIMATORS = [biased, unbiased, unbiased_blocks(), unbiased_blocks(3, seed=1)]
seeds = st.integers(0, 2**32 - 1)
classes = st.integers(2, 5)


def close(value):
    return pytest.approx(value, rel=0, abs=1e-12, nan_ok=True)


def column(values):
    return [[float(value)] for value in values]


def plain_kernel(kernel, outputs):
    distance = plain.total_variation if isinstance(kernel, exponential) else math.dist
    scale = kernel.scale or plain.median_scale(outputs, distance)
    return getattr(plain, type(kernel).__name__)(scale), scale


def calibrated(rng, n, k=3):
    """Forecasts of k classes (k = 1: of an event), and labels drawn from them."""
    if k == 1:
        p = rng.random(n)
        return p, (rng.random(n) < p).astype(int)
    p = rng.dirichlet(np.ones(k), n)
    return p, np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)


# --- the formula ----------------------------------------------------------------------------------


def check_against_the_loop(lens, outputs, targets, predictions):
    n, d = len(outputs), len(outputs[0])
    for kernel in KERNELS:
        similarity, scale = plain_kernel(kernel, outputs)
        one, other = (KernelError(lens=lens, kernel=kernel, estimator=e)(predictions) for e in (biased, unbiased))
        assert one.details["scale"] == close(scale)
        assert one.value == close(plain.biased(outputs, targets, similarity))
        assert other.value == close(plain.unbiased(outputs, targets, similarity))
        assert one.details["p_value_bound"] == close(plain.biased_p_value(one.value, n, d))
        assert other.details["p_value_bound"] == close(plain.unbiased_p_value(other.value, n, d))


@given(data=rows(most=12, classes=classes))
def test_classes_are_the_plain_loop(data):
    predictions = cal.Predictions.from_probs(data[1], data[0])
    P, y = data[0].tolist(), data[1].tolist()
    check_against_the_loop(cal.Full(), *lenses.full(P, y), predictions)
    check_against_the_loop(cal.TopK(1), *lenses.top_k(P, y, 1), predictions)
    scores, hits = lenses.top_label(P, y)
    check_against_the_loop(cal.TopLabel(), column(scores), column(hits), predictions)


@given(data=events(most=15))
def test_events_are_the_plain_loop(data):
    check_against_the_loop(cal.Full(), column(data[0]), column(data[1]), cal.Predictions.from_probs(data[1], data[0]))


@given(data=rows(most=10, classes=classes), seed=seeds)
def test_soft_labels_are_the_plain_loop(data, seed):
    p = 0.99 * data[0] + 0.01 / data[0].shape[1]  # forecasts of 0 and 1 alone would look like labels
    soft = np.random.default_rng(seed).dirichlet(np.ones(p.shape[1]), len(p))
    check_against_the_loop(cal.Full(), p.tolist(), soft.tolist(), cal.Predictions.from_probs(soft, p))


@given(data=rows(classes=classes), size=st.integers(2, 40), seed=st.integers(0, 9))
def test_blocks_share_out_the_samples_and_average_their_pairs(data, size, seed):
    predictions = cal.Predictions.from_probs(data[1], data[0])
    sample = Residuals.of(cal.Full()(predictions), 0)
    blocks = unbiased_blocks(size, seed)._blocks(sample).tolist()
    assert [len(block) for block in blocks] == [size] * (len(data[1]) // size)
    used = np.bincount(np.array(blocks, int).ravel(), minlength=len(sample.counts))
    assert (used <= sample.counts).all()
    points, truth = sample.points.tolist(), (sample.points + sample.residuals).tolist()
    values = plain.block_values(points, truth, blocks, plain.exponential(0.4))
    result = KernelError(kernel=exponential(0.4), estimator=unbiased_blocks(size, seed))(predictions)
    assert result.value == close(math.fsum(values) / len(values) if values else math.nan)
    assert result.details["p_value"] * 100 == pytest.approx(round(result.details["p_value"] * 100)) if values else True


def test_two_certain_forecasts_that_swap_their_classes():
    swapped, right = [1, 0], [0, 1]
    p = [[1.0, 0.0], [0.0, 1.0]]
    metric = KernelError(kernel=gaussian(1))  # the forecasts' squared distance is 2: a similarity of 1 / e
    assert metric(swapped, p).value == close(-2 / math.e)
    assert metric(right, p).value == 0
    assert dataclasses.replace(metric, estimator=biased)(swapped, p).value == close(1 - 1 / math.e)
    assert dataclasses.replace(metric, kernel=exponential(1))(swapped, p).value == close(-2 / math.e)  # tvd 1


def test_an_event_has_one_residual_and_two_columns_have_two():
    y, p = np.array([1, 0, 1]), np.array([0.8, 0.6, 0.1])
    event = KernelError(kernel=exponential(0.5))(y, p).value
    assert event == close((0.2 * -0.6 * math.exp(-0.4) + 0.2 * 0.9 * math.exp(-1.4) - 0.6 * 0.9 * math.exp(-1)) / 3)
    assert KernelError(kernel=exponential(0.5))(y, np.column_stack([1 - p, p])).value == close(2 * event)


def test_the_kernel_may_be_any_function():
    def alike(a, b):
        return np.ones((len(a), len(b)))

    result = KernelError(kernel=alike, estimator=biased)([1, 0, 0], [0.9, 0.8, 0.4])
    assert result.value == close(((0.1 - 0.8 - 0.4) / 3) ** 2)
    assert "scale" not in result.details
    assert result.choices == "alike, biased"


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [biased, unbiased])
def test_many_rows_are_summed_tile_by_tile(monkeypatch, estimator):
    p, y = calibrated(np.random.default_rng(3), 2 * module.TILE + 5)
    metric = KernelError(kernel=exponential(0.3), estimator=estimator)
    gaps = np.eye(3)[y] - p
    terms = np.exp(-np.abs(p[:, None] - p).sum(axis=2) / 2 / 0.3) * (gaps @ gaps.T)
    n, selves = len(y), 0.0 if estimator is biased else np.trace(terms)
    expected = (terms.sum() - selves) / (n**2 if estimator is biased else n * (n - 1))
    assert metric(y, p).value == close(expected)
    monkeypatch.setattr(module, "TILE", 7)
    assert metric(y, p).value == close(expected)


@pytest.mark.slow
def test_the_median_scale_of_many_samples_compares_a_thousand_of_them():
    p, y = calibrated(np.random.default_rng(4), 2500, k=1)
    result = KernelError(estimator=unbiased_blocks())(y, p)
    assert result.details["scale"] == close(plain.median_scale(column(p), plain.total_variation))


@given(data=rows(classes=classes))
def test_the_biased_error_is_never_negative_and_at_most_two(data):
    for kernel in KERNELS:
        assert 0 <= KernelError(kernel=kernel, estimator=biased)(data[1], data[0]).value <= 2


# --- laws -----------------------------------------------------------------------------------------


@given(data=rows(), seed=seeds)
def test_relabelling_the_classes_changes_nothing(data, seed):
    p, y = data
    new = np.random.default_rng(seed).permutation(p.shape[1])
    for estimator in (biased, unbiased):
        metric = KernelError(estimator=estimator)
        assert metric(np.argsort(new)[y], p[:, new]).value == close(metric(y, p).value)


# --- edges ----------------------------------------------------------------------------------------


def test_one_sample_has_no_pair():
    assert KernelError(estimator=biased)([0], [[0.7, 0.3]]).value == close(0.18)
    for estimator in ESTIMATORS[1:]:
        result = KernelError(estimator=estimator)([0], [[0.7, 0.3]])
        assert math.isnan(result.value)
        assert all(math.isnan(result.details[name]) for name in result.details if name.startswith("p_value"))
        assert "too few samples for the estimator" in result.notes


def test_one_block_has_a_value_but_no_spread():
    result = KernelError(kernel=exponential(1), estimator=unbiased_blocks(3))([1, 0, 0, 1], [0.2, 0.4, 0.9, 0.9])
    assert not result.notes
    assert math.isfinite(result.value)
    assert 0 < result.details["p_value"] <= 1
    assert math.isnan(result.details["standard_error"])


def test_equal_forecasts_compare_their_sum_of_residuals():
    y, p = np.array([1, 0, 0, 1, 1]), np.full(5, 0.5)
    for kernel in (exponential(), gaussian()):
        result = KernelError(kernel=kernel)(y, p)
        assert result.details["scale"] == 1.0
        assert result.value == close((0.5**2 - 5 * 0.25) / 20)


def test_residuals_that_cancel_leave_no_negative_error():
    result = KernelError(estimator=biased)([1] * 5 + [0] * 10, [5 / 15] * 15)  # some 1e-17 of either sign in floats
    assert 0.0 <= result.value < 1e-16
    assert result.details["p_value_bound"] == 1.0


def test_perfect_forecasts_have_no_error_and_nothing_to_test():
    y = np.arange(6) % 3
    for estimator in ESTIMATORS:
        assert KernelError(estimator=estimator)(y, np.eye(3)[y]).value == 0
    assert KernelError(estimator=unbiased_blocks())(y, np.eye(3)[y]).details["p_value"] == 1
    alike = KernelError(estimator=unbiased_blocks())([0] * 14, [0.3] * 14)  # their sd is not quite 0 in floats
    assert alike.value == close(0.09)
    assert 0 < alike.details["p_value"] <= 1


@pytest.mark.parametrize("scale", [0, -1.0, math.inf, math.nan, True, "wide"])
@pytest.mark.parametrize("kernel", [exponential, gaussian])
def test_a_scale_is_a_positive_number(kernel, scale):
    with pytest.raises(CalibrationInputError, match="scale: must be finite and above 0, or None, got"):
        kernel(scale)


@pytest.mark.parametrize(("field", "wrong"), [("size", 1), ("size", 2.0), ("size", True), ("seed", -1), ("seed", None)])
def test_blocks_have_whole_sizes_and_seeds(field, wrong):
    with pytest.raises(CalibrationInputError, match=f"{field}: must be a whole number of at least"):
        unbiased_blocks(**{field: wrong})


@pytest.mark.parametrize("wrong", ["biased", None, exponential])
@pytest.mark.parametrize("field", ["kernel", "estimator"])
def test_pieces_are_objects_not_names(field, wrong):
    with pytest.raises(CalibrationInputError, match=f"{field}: must be a piece such as"):
        KernelError(**{field: wrong})


def test_a_result_says_its_choices():
    p, y = calibrated(np.random.default_rng(8), 9, k=1)
    assert str(KernelError()(y, p)).endswith("(n=9, event, exponential kernel of median scale, unbiased)")
    blocks = KernelError(kernel=gaussian(0.5), estimator=unbiased_blocks(3))(y, p)
    assert blocks.choices == "gaussian kernel of scale 0.5, unbiased over blocks of 3, seed 0"


def test_scipy_is_loaded_only_when_distances_are_asked_for():
    code = "import sys, calibrant.errors.kernel; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- statistics -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS[1:], ids=["unbiased", *map(repr, ESTIMATORS[2:])])
def test_the_unbiased_errors_of_calibrated_forecasts_average_to_zero(estimator):
    # Seed 11, 600 data sets, 4 standard errors: a false alarm in 16,000 such tests.
    rng = np.random.default_rng(11)
    metric = KernelError(estimator=estimator)
    values = np.array([metric(y, p).value for p, y in (calibrated(rng, 24) for _ in range(600))])
    assert abs(values.mean()) < 4 * values.std() / math.sqrt(600)
    assert (values < 0).any()


def test_the_biased_error_of_calibrated_forecasts_is_its_pairs_of_selves():
    # Seed 12; E |y - p|^2 = 1 - E |p|^2 = 1/2 for a uniform forecast of three classes, so 1 / 48 for 24 samples.
    rng = np.random.default_rng(12)
    values = np.array([KernelError(estimator=biased)(y, p).value for p, y in (calibrated(rng, 24) for _ in range(600))])
    assert values.mean() == pytest.approx(1 / 48, abs=4 * values.std() / math.sqrt(600))


def test_the_mean_over_seeds_is_the_unbiased_error_of_any_data():
    # Seed 13, 600 shuffles, 4 standard errors; the labels are miscalibrated and half of the forecasts tie.
    rng = np.random.default_rng(13)
    p = np.where(rng.random(41) < 0.5, 0.5, rng.random(41))
    y = (rng.random(41) < p**2).astype(int)
    values = np.array([KernelError(estimator=unbiased_blocks(3, seed))(y, p).value for seed in range(600)])
    assert abs(values.mean() - KernelError()(y, p).value) < 4 * values.std() / math.sqrt(600)


def rejected(metric, data, level=0.05):
    found = [metric(y, p).details for p, y in data]
    return np.mean([details.get("p_value", details.get("p_value_bound")) <= level for details in found])


@pytest.mark.slow
@pytest.mark.parametrize(("size", "decimals"), [(2, 16), (2, 1), (4, 1)])
def test_the_block_test_rejects_calibrated_forecasts_at_its_level(size, decimals):
    # Seed 14, 1000 data sets of 150 blocks. At an exact 5 %, 0.05 +- 4 * 0.0069 alarms once in 16,000 times.
    rng = np.random.default_rng(14)
    forecasts = [rng.random(150 * size).round(decimals) for _ in range(1000)]
    data = [(p, (rng.random(len(p)) < p).astype(int)) for p in forecasts]
    assert 0.022 < rejected(KernelError(estimator=unbiased_blocks(size)), data) < 0.078


def test_the_block_test_of_likely_events_holds_its_level():
    # Seed 17, 200 data sets; a z-test over blocks rejects about 30 %. At an exact 5 %, 24 or more come once in 20,000.
    rng = np.random.default_rng(17)
    forecasts = [rng.beta(8, 0.2, 100) for _ in range(200)]
    data = [(p, (rng.random(100) < p).astype(int)) for p in forecasts]
    assert rejected(KernelError(estimator=unbiased_blocks()), data) < 0.12


def test_weighted_rows_are_not_tested_as_if_they_were_repeated():
    weighted = cal.Predictions.from_probs([1, 0, 1, 1], [0.9, 0.2, 0.6, 0.7], sample_weight=[1, 2, 1, 3])
    for estimator in ESTIMATORS:
        details = KernelError(estimator=estimator)(weighted).details
        assert all(math.isnan(details[name]) for name in details if name.startswith("p_value"))


@pytest.mark.slow
def test_the_verdict_on_equal_forecasts_is_not_the_seeds():
    # Seed 16; with one shuffle for all labels a seed would reject nearly all of these data sets, or none of them.
    rng = np.random.default_rng(16)
    data = [(np.full(300, 0.5), rng.integers(0, 2, 300)) for _ in range(60)]
    rates = [rejected(KernelError(estimator=unbiased_blocks(2, seed)), data, level=0.5) for seed in range(8)]
    assert min(rates) > 0.2
    assert max(rates) < 0.8


def test_the_distribution_free_tests_hold_their_level_and_have_power():
    # Seed 15; the bounds allow 5 % and in truth reject next to nothing.
    rng = np.random.default_rng(15)
    right = [calibrated(rng, 100) for _ in range(100)]
    wrong = [(p, np.zeros(100, int)) for p, _ in right]
    for estimator in (biased, unbiased):
        metric = KernelError(estimator=estimator)
        assert rejected(metric, right) <= 0.05
    assert rejected(KernelError(estimator=biased), wrong) > 0.9
    assert rejected(KernelError(estimator=unbiased_blocks()), wrong) > 0.9


def test_tied_forecasts_get_a_fresh_shuffle_for_other_labels():
    sample = [Residuals(np.array([[0.5], [0.5]]), np.array([[-0.5], [0.5]]), np.array([9 - k, 1 + k])) for k in (0, 1)]
    first, second = (unbiased_blocks()._blocks(one) for one in sample)
    assert not np.array_equal(first, second)
    assert any(
        not np.array_equal(unbiased_blocks(seed=a)._blocks(sample[0]), unbiased_blocks(seed=b)._blocks(sample[0]))
        for a, b in itertools.combinations(range(3), 2)
    )


def test_pairs_are_compared_in_parts_that_add_up(monkeypatch):
    rng = np.random.default_rng(8)
    p, labels = rng.dirichlet(np.ones(5), 300), rng.integers(0, 5, 300)
    metric = KernelError(kernel=exponential(0.3), estimator=biased)
    whole = metric(labels, p).value
    monkeypatch.setattr("calibrant.errors.similarity.AT_ONCE", 20_000)
    assert metric(labels, p).value == pytest.approx(whole, rel=1e-13)
    with cal.kernels.using("numpy"):
        assert metric(labels, p).value == pytest.approx(whole, rel=1e-12)


def test_what_takes_over_a_minute_is_told_first(monkeypatch):
    rng = np.random.default_rng(8)
    p, labels = rng.dirichlet(np.ones(5), 300), rng.integers(0, 5, 300)
    clock = iter(range(0, 10_000, 20))  # every look at it is 20 s later
    monkeypatch.setattr("calibrant.errors.similarity.time.monotonic", lambda: next(clock))
    metric = KernelError(kernel=exponential(0.3), estimator=biased)
    metric(labels, p)  # in one part
    monkeypatch.setattr("calibrant.errors.similarity.AT_ONCE", 20_000)
    with pytest.warns(cal.CalibrationWarning, match=r"all pairs of 300 samples takes about \d+ minutes; KernelError"):
        metric(labels, p)
