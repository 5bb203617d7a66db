"""Gaussian-process calibration: the plain loop, slopes, the posterior, what it learns and what it does not, laws."""

import dataclasses
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.recalibrate import gaussian_process
from calibrant.recalibrate.fitting.lessons import as_lesson
from calibrant.recalibrate.gaussian_process import STEEPEST, GPCalibration, Kernel, LatentEvidence, fit_latent
from oracles import gaussian_process as oracle
from toy import P, Z, y

pytestmark = pytest.mark.slow

seeds = st.integers(0, 2**32 - 1)


def close(value, off=1e-9):
    return pytest.approx(value, rel=0, abs=off)


def drawn(n, k, seed, true=lambda z: z, spread=2.0):
    """Logits and labels that follow softmax(true(z))."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=spread, size=(n, k))
    return z, (true(z) + rng.gumbel(size=z.shape)).argmax(axis=1)


def drawn_event(n, seed, true=lambda z: z):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=2.0, size=n)
    return z, (rng.random(n) < 1 / (1 + np.exp(-true(z)))).astype(int)


def log_loss(p, labels):
    taken = p[np.arange(len(labels)), labels] if p.ndim == 2 else np.where(labels == 1, p, 1 - p)
    return -np.log(taken).mean()


def latent(fitted, z):
    """g from what was learnt, in the plainest words."""
    parts = zip(fitted.inducing_, fitted.weights_, strict=True)
    bumps = (a * fitted.output_scale_**2 * np.exp(-((z - c) ** 2) / (2 * fitted.lengthscale_**2)) for c, a in parts)
    return z + sum(bumps)


def some_evidence(kind, seed=0, n=15):
    rng = np.random.default_rng(seed)
    x, labels = drawn_event(n, seed) if kind == "event" else drawn(n, 3, seed)
    return LatentEvidence.of(as_lesson(x, labels, input="logits", sample_weight=rng.random(n) + 0.1), 4)


def some_parameters(evidence, seed=0):
    return np.random.default_rng(seed).normal(scale=0.5, size=len(evidence.inducing) + 3)


# ---- another implementation ------------------------------------------------------------------------------------------


def wave(z):
    return z + 2 * np.sin(z)


def test_the_plain_loop_of_laplace_finds_the_mode_that_scikit_learn_finds():
    classifier = pytest.importorskip("sklearn.gaussian_process").GaussianProcessClassifier
    kernels = pytest.importorskip("sklearn.gaussian_process.kernels")
    z, happened = drawn_event(60, 0, wave)
    kernel = kernels.ConstantKernel(2.25) * kernels.RBF(1.3)
    theirs = classifier(kernel, optimizer=None, max_iter_predict=500)
    theirs.fit(z[:, None], happened)
    covariance = oracle.smooth(1.3, 1.5)
    latent_mode, gradient, curvature = oracle.mode(z, happened, covariance, 0.0, lambda place: 0.0)
    assert 1 / (1 + np.exp(-latent_mode)) == close(
        theirs.base_estimator_.pi_, 1e-5
    )  # it stops at 1e-10 of the evidence
    for place in (-3.0, 0.2, 5.0):
        mean, variance = oracle.latent_at(place, z, gradient, curvature, covariance, 0.0, lambda place: 0.0)
        averaged = theirs.predict_proba([[place]])[0, 1]
        assert oracle.averaged(mean, variance) == close(averaged, 2e-3)  # it sums five error functions


@pytest.mark.parametrize(("n", "true"), [(150, wave), (250, lambda z: 0.5 * z - 1)], ids=["bent", "flat"])
def test_the_posterior_mean_is_that_of_laplace_with_every_row(n, true):
    """Inducing points and the bound replace n latents: the mean moves by a fraction of its own uncertainty."""
    z, happened = drawn_event(n, 0, true)
    fitted = GPCalibration(n_inducing=20).fit(z, happened)
    prior = fitted.lengthscale_, fitted.output_scale_
    data = z, *oracle.mode(z, happened, oracle.smooth(*prior), fitted.noise_, lambda place: place)[1:]
    for place in np.quantile(z, [0.05, 0.2, 0.5, 0.8, 0.95]):
        mean, variance = oracle.latent_at(place, *data, oracle.smooth(*prior), fitted.noise_, lambda place: place)
        assert abs(latent(fitted, place) - mean) < 0.35 * math.sqrt(variance)
        assert abs(place - mean) > abs(latent(fitted, place) - mean)  # nearer to it than to the prior
        p = 1 / (1 + math.exp(-mean))
        pulled = oracle.averaged(mean, variance) - p
        assert pulled == close(variance * p * (1 - p) * (1 - 2 * p) / 2, 0.02)
        assert abs(pulled) < 0.03


# ---- the bound -------------------------------------------------------------------------------------------------------


def functions(z, kernel, points):
    """b(z) and the variance beyond it, by solving with the covariance of g at the points."""
    own = kernel.noise**2 + 1e-8 * kernel.output_scale**2
    covariance = [
        [cov(a, b, kernel) + (own if i == j else 0.0) for j, b in enumerate(points)] for i, a in enumerate(points)
    ]
    lower = np.linalg.cholesky(np.array(covariance))
    b = np.linalg.solve(lower, [cov(z, c, kernel) for c in points])
    return b, kernel.output_scale**2 + kernel.noise**2 - float(b @ b)


def cov(a, b, kernel):
    return kernel.output_scale**2 * math.exp(-((a - b) ** 2) / (2 * kernel.lengthscale**2))


def plain_bound(evidence, mean, covariance, kernel):
    """The bound for any covariance of the posterior, row by row, from E and Cov of the latents of a row."""
    total = 0.0
    for row, label, weight in zip(evidence.latents, evidence.labels, evidence.weight, strict=True):
        seen = [functions(z, kernel, evidence.inducing) for z in row]
        b = np.array([each for each, _ in seen]) * evidence.moved[:, None]
        spread = b @ covariance @ b.T + np.diag([rest for _, rest in seen] * evidence.moved)
        g = row + b @ mean
        p = np.exp(g - g.max())
        p /= p.sum()
        curvature = np.diag(p) - np.outer(p, p)  # of the log of the sum of exponentials
        total += weight * (math.log(p[label]) - 0.5 * np.trace(curvature @ spread))
    sign, size = np.linalg.slogdet(covariance)
    assert sign == 1
    divergence = 0.5 * (np.trace(covariance) + mean @ mean - len(mean) - size)
    return (total - divergence - 0.5 * (kernel.output_scale / kernel.lengthscale) ** 2) / evidence.weight.sum()


def best_covariance(evidence, mean, kernel):
    precision = np.eye(len(mean))
    for row, weight in zip(evidence.latents, evidence.weight, strict=True):
        b = np.array([functions(z, kernel, evidence.inducing)[0] for z in row]) * evidence.moved[:, None]
        p = np.exp(row + b @ mean)
        p /= p.sum()
        precision += weight * b.T @ (np.diag(p) - np.outer(p, p)) @ b
    return np.linalg.inv(precision)


@pytest.mark.parametrize("kind", ["classes", "event"])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_agrees_with_the_plain_loop(kind, seed):
    evidence = some_evidence(kind, seed)
    parameters = some_parameters(evidence, seed)
    mean, kernel = parameters[:-3], Kernel(*np.exp(parameters[-3:]))
    wanted = plain_bound(evidence, mean, best_covariance(evidence, mean, kernel), kernel)
    assert evidence.bound(parameters)[0] == close(wanted)


@pytest.mark.parametrize("kind", ["classes", "event"])
def test_no_other_covariance_of_the_posterior_has_a_larger_bound(kind):
    evidence = some_evidence(kind)
    parameters = some_parameters(evidence)
    mean, kernel = parameters[:-3], Kernel(*np.exp(parameters[-3:]))
    best = best_covariance(evidence, mean, kernel)
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1e-2, 0.1):
        turn = np.eye(len(mean)) + scale * rng.normal(size=best.shape)
        assert plain_bound(evidence, mean, turn @ best @ turn.T, kernel) < evidence.bound(parameters)[0]


@pytest.mark.parametrize("kind", ["classes", "event"])
@pytest.mark.parametrize("seed", range(3))
def test_slopes_are_those_of_small_differences(kind, seed):
    evidence = some_evidence(kind, seed)
    parameters = some_parameters(evidence, seed)
    step = 1e-5 * np.eye(len(parameters))
    slopes = [(evidence.bound(parameters + e)[0] - evidence.bound(parameters - e)[0]) / 2e-5 for e in step]
    assert evidence.bound(parameters)[1] == close(np.array(slopes), 1e-8)  # differences are good to 1e-10 / 1e-5


def test_blocks_of_rows_add_up(monkeypatch):
    evidence = some_evidence("classes", n=50)
    parameters = some_parameters(evidence)
    value, slopes = evidence.bound(parameters)
    monkeypatch.setattr(gaussian_process, "_BLOCK", 30)
    again, others = evidence.bound(parameters)
    assert again == close(value, 1e-13)
    assert others == close(slopes, 1e-13)


def test_the_expansion_is_near_the_true_expectation_where_the_posterior_is_narrow():
    """40,000 draws of g from a posterior with deviations of 0.05 or less, seed 0: within five standard errors."""
    rng = np.random.default_rng(0)
    kernel, mean = Kernel(1.5, 0.05, 0.001), np.array([0.3, -1.0, 2.0, 0.5])
    evidence = some_evidence("classes", n=6)
    covariance = np.eye(4)
    v = rng.multivariate_normal(mean, covariance, 40_000)
    sums = np.zeros(len(v))
    for row, label, weight in zip(evidence.latents, evidence.labels, evidence.weight, strict=True):
        seen = [functions(z, kernel, evidence.inducing) for z in row]
        g = row + v @ np.array([b for b, _ in seen]).T
        g += rng.normal(size=g.shape) * np.sqrt([rest for _, rest in seen])
        sums += weight * (g[:, label] - np.log(np.exp(g).sum(axis=1)))
    steep = 0.5 * (kernel.output_scale / kernel.lengthscale) ** 2
    expected = sums.mean() - 0.5 * mean @ mean - steep
    error = 5 * sums.std() / math.sqrt(len(v))
    assert plain_bound(evidence, mean, covariance, kernel) * evidence.weight.sum() == pytest.approx(expected, abs=error)


# ---- the search ------------------------------------------------------------------------------------------------------


def test_the_bound_rises_with_every_step():
    x, labels = drawn(60, 3, 0, lambda z: z + 1.5 * np.sin(z))
    evidence = LatentEvidence.of(as_lesson(x, labels, input="logits"), 6)
    values = [evidence.bound(gaussian_process._start(evidence.inducing)[0])[0]]
    for steps in range(1, 21):
        mean, kernel, _ = fit_latent(evidence, most=steps)
        logs = np.log([kernel.lengthscale, kernel.output_scale, kernel.noise])
        values.append(evidence.bound(np.concatenate([mean, logs]))[0])
    assert np.all(np.diff(values) >= -1e-12)  # a search that has ended stays
    assert values[-1] > values[0] + 0.02


@pytest.mark.parametrize("kind", ["classes", "event"])
def test_the_certificate_tells_the_slope_at_the_end(kind):
    x, labels = drawn_event(300, 1, lambda z: z / 2) if kind == "event" else drawn(200, 4, 1, lambda z: z / 2)
    fitted = GPCalibration().fit(x, labels)
    evidence = LatentEvidence.of(as_lesson(x, labels, input="logits"), 10)
    kernel = Kernel(fitted.lengthscale_, fitted.output_scale_, fitted.noise_)
    mean = kernel.factor(evidence.inducing).T @ fitted.weights_
    logs = np.log([kernel.lengthscale, kernel.output_scale, kernel.noise])
    slopes = evidence.bound(np.concatenate([mean, logs]))[1]
    slopes[-1] = 0.0 if kernel.noise < 1.001e-3 and slopes[-1] < 0 else slopes[-1]  # the noise may be at its floor
    at_most = np.log(5 * np.ptp(evidence.inducing)) - 1e-6
    slopes[-3] = 0.0 if logs[0] > at_most and slopes[-3] > 0 else slopes[-3]  # the lengthscale may be at its end
    assert fitted.certificate_.converged
    assert fitted.certificate_.gradient_norm <= STEEPEST
    assert np.abs(slopes).max() == pytest.approx(fitted.certificate_.gradient_norm, abs=1e-7)  # weights lose digits


def test_a_search_that_was_cut_short_says_so(monkeypatch):
    monkeypatch.setattr(fit_latent, "__kwdefaults__", {"most": 2})
    x, labels = drawn(60, 3, 0, lambda z: z / 3)
    with pytest.warns(cal.CalibrationWarning, match="GPCalibration: the search ended at a slope of .* after 2 steps"):
        fitted = GPCalibration().fit(x, labels)
    assert not fitted.certificate_.converged
    assert fitted.certificate_.gradient_norm > STEEPEST
    assert fitted.certificate_.iterations == 2


# ---- what is learnt --------------------------------------------------------------------------------------------------


def test_a_curved_latent_is_found_better_than_a_temperature_does():
    """Labels from softmax(z + 1.5 sin z), seed 0, 4,000 other rows: losses differ by 0.154, standard error 0.009."""

    def true(z):
        return z + 1.5 * np.sin(z)

    x, labels = drawn(1500, 5, 0, true)
    others, wanted = drawn(4000, 5, 1, true)
    fitted, straight = GPCalibration().fit(x, labels), cal.TemperatureScaling().fit(x, labels)
    best = np.exp(true(others)) / np.exp(true(others)).sum(axis=1, keepdims=True)
    lost = [log_loss(p, wanted) for p in (best, fitted.predict_proba(others), straight.predict_proba(others))]
    assert lost[1] - lost[0] < 0.005
    assert lost[2] - lost[0] > 0.1
    z = np.linspace(-3, 5, 50)
    gap = latent(fitted, z) - true(z)
    assert np.abs(gap - gap.mean()).max() < 0.5  # a common shift is no difference


def test_a_bent_event_with_a_shift_is_found():
    """sigmoid(0.5 + z / 2), seed 0: g is a straight line that the logit at 0.5 is moved by too."""
    x, happened = drawn_event(3000, 0, lambda z: 0.5 + z / 2)
    fitted = GPCalibration().fit(x, happened)
    z = np.linspace(-4, 4, 9)
    assert np.abs(latent(fitted, z) - 0.5 - z / 2).max() < 0.35  # at the ends a slope that is off by 0.04 is 0.16
    assert fitted.predict_proba(z) == close(1 / (1 + np.exp(-latent(fitted, z))), 1e-12)


def test_the_map_is_the_softmax_of_the_latent_mean():
    x, labels = drawn(200, 3, 3, lambda z: z / 2)
    fitted = GPCalibration(n_inducing=6).fit(x, labels)
    raised = np.exp(latent(fitted, x[:7]))
    assert fitted.predict_proba(x[:7]) == close(raised / raised.sum(axis=1, keepdims=True), 1e-12)


def test_calibrated_rows_are_left_alone():
    """2,000 calibrated rows, seed 4: no forecast moves by more than a fortieth."""
    x, labels = drawn(2000, 4, 4)
    fitted = GPCalibration().fit(x, labels)
    before = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    assert np.abs(fitted.predict_proba(x[:500].copy()) - before[:500]).max() < 0.025


@pytest.mark.parametrize("seed", range(5))
def test_few_rows_leave_the_identity(seed):
    """Five calibrated rows, seeds 0 to 4: no forecast moves by 0.2, where a temperature may be 0.001."""
    x, labels = drawn(5, 3, seed)
    fitted = GPCalibration().fit(x, labels)
    before = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    assert np.abs(fitted.predict_proba(x[:4].copy()) - before[:4]).max() < 0.2


def test_rows_of_almost_no_weight_leave_the_identity():
    x, labels = drawn(60, 3, 0, lambda z: z / 3)
    fitted = GPCalibration().fit(x, labels, sample_weight=np.full(60, 1e-7))
    before = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    assert fitted.predict_proba(x[:20].copy()) == close(before[:20], 1e-4)  # the mean follows the weight


def test_far_from_the_inducing_points_the_latent_is_the_identity():
    x, labels = drawn(400, 3, 0, lambda z: z + 1.5 * np.sin(z))
    fitted = GPCalibration().fit(x, labels)
    far = np.array([[900.0, 901.0, 899.5]])
    raised = np.exp(far - far.max())
    assert fitted.predict_proba(far) == close(raised / raised.sum(), 1e-12)
    assert fitted.predict_proba(np.array([[1e90, -1e90, 0.0]])).tolist() == [[1.0, 0.0, 0.0]]


@pytest.mark.parametrize("n", [4, 40])
def test_separable_rows_have_an_end(n):
    z = np.where(np.arange(n) % 2 == 0, -1.0, 1.0) * np.linspace(0.5, 2, n)
    fitted = GPCalibration().fit(z, (z > 0).astype(int))
    p = fitted.predict_proba(np.array([-1.0, 1.0]))
    assert fitted.certificate_.converged
    assert 0 < p[0] < 0.3
    assert 0.7 < p[1] < 1


def test_rows_that_are_all_equal_are_learnt_from():
    fitted = GPCalibration().fit(np.full(10, 0.5), np.repeat([0, 1], 5))
    assert len(fitted.inducing_) == 1
    assert fitted.certificate_.converged
    assert 0.5 <= fitted.predict_proba(np.array([0.5]))[0] <= 1 / (1 + math.exp(-0.5)) + 1e-9
    alone = GPCalibration().fit([[1.0, 0.0]], [0])
    assert np.isfinite(alone.predict_proba([[1.0, 0.0]])).all()


def test_forecasts_of_zero_and_one_are_learnt_from():
    p = np.array([0.0, 1.0, 1.0, 0.0, 0.5, 0.7])
    fitted = GPCalibration("probabilities").fit(p, [0, 1, 0, 0, 1, 1])
    probabilities = fitted.predict_proba(np.array([0.0, 0.5, 1.0]))
    assert np.all((probabilities >= 0) & (probabilities <= 1))
    assert fitted.certificate_.converged


# ---- inducing points and rows ----------------------------------------------------------------------------------------


def test_inducing_points_are_where_forecasts_vary():
    z = np.concatenate([np.linspace(-1, 1, 101), np.linspace(-40, -30, 101), np.linspace(30, 40, 101)])
    points = LatentEvidence.of(as_lesson(z, np.arange(303) % 2, input="logits"), 7).inducing
    assert points[[0, -1]].tolist() == [-40.0, 40.0]
    assert np.all(np.abs(points[1:-1]) <= 1)
    assert points[3] == close(0.0)


def test_as_many_rows_as_said_are_learnt_from(monkeypatch):
    monkeypatch.setattr(gaussian_process, "ELEMENTS", 2400)
    monkeypatch.setattr(gaussian_process, "LEAST", 10)
    x, labels = drawn(200, 3, 0)
    taken = as_lesson(x, labels, input="logits")
    first, again, other = (LatentEvidence.of(taken, 8, seed) for seed in (0, 0, 1))
    assert len(first.labels) == 2400 // (3 * 8)
    assert np.array_equal(first.latents, again.latents)
    assert not np.array_equal(first.latents, other.latents)
    order = np.random.default_rng(0).permutation(200)
    assert np.array_equal(LatentEvidence.of(taken[order], 8, 0).latents, first.latents)
    monkeypatch.setattr(gaussian_process, "LEAST", 150)
    assert len(LatentEvidence.of(taken, 8).labels) == 150


def test_other_seeds_matter_only_where_rows_are_drawn():
    x, labels = drawn(50, 3, 0)
    first, other = (GPCalibration(seed=seed).fit(x, labels) for seed in (0, 7))
    assert first.weights_.tolist() == other.weights_.tolist()


# ---- laws ------------------------------------------------------------------------------------------------------------


@settings(max_examples=5)
@given(seed=seeds)
def test_whole_weights_are_repetition_to_the_bit(seed):
    x, labels = drawn(30, 3, seed, lambda z: z / 2)
    times = np.random.default_rng(seed).integers(0, 4, len(labels))
    times[0] = 1
    weighted = GPCalibration(n_inducing=5).fit(x, labels, sample_weight=times)
    repeated = GPCalibration(n_inducing=5).fit(np.repeat(x, times, axis=0), np.repeat(labels, times))
    assert weighted.weights_.tolist() == repeated.weights_.tolist()
    assert weighted.lengthscale_ == repeated.lengthscale_


@settings(max_examples=5)
@given(seed=seeds)
def test_the_order_of_rows_changes_no_bit(seed):
    x, labels = drawn_event(40, seed)
    order = np.random.default_rng(seed).permutation(len(labels))
    first, other = (GPCalibration(n_inducing=5).fit(x[rows], labels[rows]) for rows in (slice(None), order))
    assert first.weights_.tolist() == other.weights_.tolist()


def test_a_row_has_the_same_forecast_in_any_company():
    x, labels = drawn(100, 3, 0, lambda z: z / 2)
    fitted = GPCalibration().fit(x, labels)
    together = fitted.predict_proba(x[:40].copy())
    assert np.array_equal(together, np.concatenate([fitted.predict_proba(row[None]) for row in x[:40]]))


@settings(max_examples=5)
@given(seed=seeds)
def test_renamed_classes_have_renamed_forecasts(seed):
    x, labels = drawn(60, 3, seed, lambda z: z / 2)
    turn = np.random.default_rng(seed).permutation(3)
    first = GPCalibration(n_inducing=5).fit(x, labels)
    other = GPCalibration(n_inducing=5).fit(x[:, turn], np.argsort(turn)[labels])
    # the same bound from sums in another order, whose flat directions are followed to a slope of 1e-5
    assert other.predict_proba(x[:9][:, turn]) == close(first.predict_proba(x[:9].copy())[:, turn], 2e-3)


def test_probabilities_are_logits_by_their_logarithms():
    by_logs, by_probabilities = GPCalibration().fit(np.log(P), y), GPCalibration("probabilities").fit(P, y)
    assert by_probabilities.weights_.tolist() == by_logs.weights_.tolist()


def test_float32_is_computed_in_float64():
    z = Z.astype(np.float32)
    single, double = GPCalibration().fit(z, y), GPCalibration().fit(z.astype(np.float64), y)
    assert single.weights_.tolist() == double.weights_.tolist()
    assert single.predict_proba(z[:3]).dtype == np.float64


def test_json_keeps_every_bit():
    fitted = GPCalibration(n_inducing=4, seed=3).fit(Z, y)
    again = cal.recalibrate.from_json(fitted.to_json())
    assert dataclasses.asdict(again) == dataclasses.asdict(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        assert np.array_equal(again.predict_proba(Z), fitted.predict_proba(Z))


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_inducing", [0, 201, 2.0, True, None], ids=repr)
def test_inducing_points_are_a_whole_number(n_inducing):
    with pytest.raises(cal.CalibrationInputError, match=r"n_inducing: must be a whole number in 1\.\.200, got"):
        GPCalibration(n_inducing=n_inducing)


def test_a_seed_is_a_whole_number():
    with pytest.raises(cal.CalibrationInputError, match="seed: must be a whole number of at least 0, got -1"):
        GPCalibration(seed=-1)
