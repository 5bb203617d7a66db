"""Softmax families of recalibration: values, gradients, other solvers, laws, scales, edges and refusals."""

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.exceptions import CalibrationWarning
from calibrant.recalibrate.bias_corrected import BiasCorrectedTemperatureScaling, TemperatureLikelihood
from calibrant.recalibrate.dirichlet import DirichletCalibration
from calibrant.recalibrate.ensemble import EnsembleTemperatureScaling, fit_mixture
from calibrant.recalibrate.fitting.lessons import log_softmax
from calibrant.recalibrate.fitting.likelihood import Rows, minimised, solved
from calibrant.recalibrate.fitting.penalised_matrix import FOLDS, STRENGTHS, HoldOut, MatrixLikelihood, Nearby, folds
from calibrant.recalibrate.matrix import MatrixScaling
from calibrant.recalibrate.temperature import TemperatureScaling
from calibrant.recalibrate.vector import VectorLikelihood, VectorScaling
from toy import Z, y

pytestmark = pytest.mark.slow

METHODS = {
    "bcts": BiasCorrectedTemperatureScaling(),
    "vector": VectorScaling(),
    "vector_l2": VectorScaling(l2=0.05),
    "matrix": MatrixScaling(),
    "matrix_given": MatrixScaling(off_diagonal=0.5, intercept=0.5),
    "dirichlet": DirichletCalibration(),
    "ensemble": EnsembleTemperatureScaling(),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
seeds = st.integers(0, 2**32 - 1)


def rows_of(n, width, seed=0, temperature=1.5):
    """Logits of classes that overlap, and labels drawn from them at a temperature, each class at least twice."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, width)) * 2
    z[np.arange(n), rng.integers(0, width, n)] += 2.0
    p = np.exp(log_softmax(z / temperature + 0.3 * np.arange(width) / width))
    labels = (p.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, width - 1)
    labels[: 2 * width] = np.arange(2 * width) % width
    return z, labels


def again(method):
    return type(method)(**method.get_params())


def loss_of(u, labels, weight=None):
    """The mean log loss of softmax(u), in the plainest loop."""
    total, heavy = 0.0, 0.0
    for i, row in enumerate(np.asarray(u).tolist()):
        w = 1.0 if weight is None else float(weight[i])
        top = max(row)
        total += w * (top + math.log(sum(math.exp(value - top) for value in row)) - row[int(labels[i])])
        heavy += w
    return total / heavy


def learnt(fitted):
    return np.concatenate([np.ravel(getattr(fitted, name)) for name in fitted.learns])


# ---- values ----------------------------------------------------------------------------------------------------------


def test_bias_corrected_temperature_of_twelve_rows():
    fitted = BiasCorrectedTemperatureScaling().fit(Z, y)
    near = {"rel": 0, "abs": 1e-9}  # the known values have ten decimals
    assert fitted.temperature_ == pytest.approx(1.0928492215, **near)
    assert fitted.bias_ == pytest.approx([0.2413035299, -0.5479230845, 0.3066195546], **near)
    assert fitted.certificate_.log_loss_after == pytest.approx(0.5341375828, **near)
    assert fitted.certificate_.gradient_norm < 1e-12


def test_without_information_the_intercepts_are_log_frequencies():
    # the logits are three at each of two opposite places, and the labels do not care
    z = np.repeat([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]], 6, axis=0)
    labels = np.array([0, 0, 0, 1, 1, 2] * 2)
    wanted = np.log([3.0, 2.0, 1.0])
    fitted = VectorScaling().fit(z, labels)
    assert fitted.weights_[:2] == pytest.approx([0, 0], abs=1e-9)
    assert fitted.bias_ == pytest.approx(wanted - wanted.mean(), abs=1e-9)
    fitted = MatrixScaling(off_diagonal=0.0, intercept=0.0).fit(z, labels)
    assert fitted.predict_proba(z[::6]) == pytest.approx(np.array([[3, 2, 1]] * 2) / 6, abs=1e-9)


def test_one_event_with_two_scores_has_a_closed_form():
    # sigmoid(w z + c) can meet both rates: 1/4 at z = -1 and 2/3 at z = 2
    z, labels = np.array([-1.0] * 4 + [2.0] * 3), np.array([1, 0, 0, 0, 1, 1, 0])
    slope = (math.log(2) + math.log(3)) / 3
    intercept = math.log(2) - 2 * slope
    fitted = BiasCorrectedTemperatureScaling().fit(z, labels)
    assert 1 / fitted.temperature_ == pytest.approx(slope, abs=1e-9)
    assert fitted.bias_ == pytest.approx([-intercept / 2, intercept / 2], abs=1e-9)
    fitted = VectorScaling().fit(z, labels)
    assert fitted.weights_[1] == pytest.approx(slope, abs=1e-9)
    for method in (VectorScaling(), MatrixScaling(off_diagonal=0.0, intercept=0.0)):
        assert method.fit(z, labels).predict_proba([-1.0, 2.0]) == pytest.approx([1 / 4, 2 / 3], abs=1e-9)


def test_a_mixture_of_two_forecasts_has_a_closed_form():
    # w .9 + (1 - w) / 2 must be the rate 3/4 of rows where the first forecast is right
    truth = np.array([[0.9, 0.5, 0.2]] * 3 + [[0.1, 0.5, 0.2]])
    weights, ending = fit_mixture(truth, np.ones(4))
    assert weights == pytest.approx([0.625, 0.375, 0.0], abs=1e-9)
    assert ending.converged


def test_the_best_forecast_takes_all_the_weight():
    weights, ending = fit_mixture(np.array([[0.9, 0.5, 0.1], [0.8, 0.7, 0.1]]), np.ones(2))
    assert weights.tolist() == [1.0, 0.0, 0.0]
    assert ending.converged
    assert ending.gradient_norm == pytest.approx(0, abs=1e-12)


def test_without_penalties_dirichlet_of_an_event_reaches_rates_that_no_slope_does():
    # three scores, three rates, three coefficients: of ln(1 - p), of ln p, and 1
    z, labels = np.repeat([-2.0, 0.0, 1.0], 4), np.array([1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0])
    fitted = DirichletCalibration(off_diagonal=0.0, intercept=0.0).fit(z, labels)
    assert fitted.predict_proba([-2.0, 0.0, 1.0]) == pytest.approx([0.25, 0.75, 0.5], abs=1e-9)


# ---- gradients, Hessians and other solvers ---------------------------------------------------------------------------


def likelihoods(seed=0, n=30, width=4):
    z, labels = rows_of(n, width, seed)
    rng = np.random.default_rng(seed + 1)
    rows = Rows.of(z + 5.0, labels, rng.integers(1, 4, n).astype(float))
    yield TemperatureLikelihood.of(rows), np.append(0.4, 0.1 * rng.normal(size=width))
    centre = np.array([np.ones(width), np.zeros(width)])
    yield VectorLikelihood(rows, np.full((2, width), 0.1), centre), rng.normal(size=(2, width))
    yield MatrixLikelihood.of(rows, 0.3, 0.2), rng.normal(size=(width, width + 1))


@pytest.mark.parametrize("which", range(3))
def test_the_gradient_is_the_change_of_the_loss(which):
    likelihood, at = list(likelihoods())[which]
    gradient = likelihood.at(at).gradient
    for index in np.ndindex(at.shape):
        away = np.zeros_like(at)
        away[index] = 1e-5
        change = (likelihood.at(at + away).loss - likelihood.at(at - away).loss) / 2e-5
        assert gradient[index] == pytest.approx(change, rel=0, abs=1e-8)  # what central differences can tell


@pytest.mark.parametrize("which", range(3))
def test_newtons_step_takes_the_gradient_to_0_as_its_change_says(which):
    likelihood, at = list(likelihoods())[which]
    near = 1e-4  # differences of gradients
    if which == 2:  # conjugate gradients are the more exact the nearer the minimum
        near = 1e-2
        at = minimised(likelihood, at)[0].parameters + 1e-4
    point = likelihood.at(at)
    step = likelihood.step(point)
    ahead = likelihood.at(at + 1e-6 * step).gradient - likelihood.at(at - 1e-6 * step).gradient
    size = np.abs(point.gradient).max()
    assert ahead / 2e-6 == pytest.approx(-point.gradient, rel=0, abs=near * size)


def test_the_nearby_hessian_is_solved_by_its_blocks():
    likelihood, at = list(likelihoods())[2]
    p, rows = likelihood.at(at).probabilities, likelihood.rows
    unsure = p * (1 - p) * rows.weight[:, None]
    heavy = unsure.sum(axis=1) / unsure.sum() + 1e-4 * rows.weight
    x = np.column_stack([rows.features, np.ones(len(p))])
    moments = np.einsum("i,ij,ik->jk", heavy / heavy.sum(), x, x)
    raw = np.eye(len(moments))
    raw[-1, :-1] = -rows.middle  # penalties are on intercepts for features as they came
    gradient = np.random.default_rng(3).normal(size=at.shape)
    solution = Nearby.of(likelihood, p).solved(gradient)
    for k in range(len(at)):
        block = unsure[:, k].sum() * moments + raw.T @ np.diag(2 * likelihood.penalty[k]) @ raw
        assert block @ solution[k] == pytest.approx(gradient[k], rel=0, abs=1e-9)


def plain_loss(kind, z, labels, theta, *, first=0.0, second=0.0):
    """What each method minimises, by loops, for parameters as one vector."""
    width = z.shape[1]
    rest = theta[-width:]
    if kind == "bcts":
        w, penalty = theta[0] * np.eye(width), 0.0
    elif kind == "vector":
        w = np.diag(theta[:width])
        penalty = first / width * sum((theta[k] - 1) ** 2 + rest[k] ** 2 for k in range(width))
    else:
        w = theta[:-width].reshape(width, width)
        off = sum(w[j, k] ** 2 for j in range(width) for k in range(width) if j != k)
        penalty = first / (width * (width - 1)) * off + second / width * sum(b**2 for b in rest)
    u = [[sum(w[k, j] * row[j] for j in range(width)) + rest[k] for k in range(width)] for row in z]
    return loss_of(u, labels) + penalty


def as_given(z):
    return z


CASES = {
    "bcts": (BiasCorrectedTemperatureScaling(), "bcts", {}, as_given),
    "vector": (VectorScaling(l2=0.2), "vector", {"first": 0.2}, as_given),
    "matrix": (MatrixScaling(off_diagonal=0.4, intercept=0.3), "matrix", {"first": 0.4, "second": 0.3}, as_given),
    "dirichlet": (
        DirichletCalibration(off_diagonal=0.4, intercept=0.3),
        "matrix",
        {"first": 0.4, "second": 0.3},
        log_softmax,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_minimum_is_that_of_a_general_solver_on_the_plain_loss(case):
    from scipy.optimize import minimize

    method, kind, strengths, shown = case
    z, labels = rows_of(40, 3)
    z = z + np.random.default_rng(1).normal(size=(40, 1))
    fitted = again(method).fit(z, labels)
    theta = learnt(fitted)[: {"bcts": 4, "vector": 6, "matrix": 12}[kind]]
    if kind == "bcts":
        theta[0] = 1 / theta[0]
    features = shown(z)
    value = plain_loss(kind, features, labels, theta, **strengths)
    optimum = minimize(
        lambda t: plain_loss(kind, features, labels, t, **strengths), theta + 0.1, method="BFGS", options={"gtol": 1e-6}
    )
    assert value <= optimum.fun + 1e-12
    assert optimum.fun == pytest.approx(value, rel=0, abs=1e-8)  # numerical gradients stop there
    if kind != "bcts":  # a constant is free in the intercepts of the first
        assert theta == pytest.approx(optimum.x, rel=0, abs=1e-3)


def test_a_matrix_without_penalties_is_multinomial_logistic_regression():
    linear = pytest.importorskip("sklearn.linear_model")
    z, labels = rows_of(300, 4)
    z = z + np.random.default_rng(1).normal(size=(300, 1))
    fitted = MatrixScaling(off_diagonal=0.0, intercept=0.0).fit(z, labels)
    peer = linear.LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(z, labels)
    assert fitted.predict_proba(z) == pytest.approx(peer.predict_proba(z), abs=1e-5)  # the peer's tolerance
    assert fitted.certificate_.gradient_norm <= 1e-10


@settings(max_examples=20)
@given(seed=seeds)
def test_no_mixture_near_the_found_one_is_better(seed):
    rng = np.random.default_rng(seed)
    truth = rng.random((20, 3)) ** rng.integers(1, 6)
    weights, ending = fit_mixture(truth, np.ones(20))
    assert ending.converged
    best = -np.log(truth @ weights).mean()
    for first, second in itertools.product(range(21), repeat=2):
        if first + second <= 20:
            other = np.array([first, second, 20 - first - second]) / 20
            mixed = truth @ (0.99 * weights + 0.01 * other)
            assert -np.log(mixed).mean() >= best - 1e-12


# ---- laws ------------------------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("width", [2, 3, 12])
def test_the_conditions_of_a_minimum_hold(method, width):
    z, labels = rows_of(300, width)
    fitted = again(method).fit(z, labels)
    assert fitted.certificate_.converged
    assert fitted.certificate_.gradient_norm <= 1e-8
    p = fitted.predict_proba(z)
    assert p.shape == (300, width)
    assert p.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert -np.log(p[np.arange(300), labels]).mean() == pytest.approx(fitted.certificate_.log_loss_after, abs=1e-12)


@pytest.mark.parametrize("width", [2, 3, 10, 100])
def test_a_richer_family_fits_no_worse(width):
    z, labels = rows_of(max(400, 20 * width), width)
    methods = [TemperatureScaling(), BiasCorrectedTemperatureScaling(), VectorScaling()]
    if width <= 10:
        methods.append(MatrixScaling(off_diagonal=0.0, intercept=0.0))
    losses = [method.fit(z, labels).certificate_.log_loss_after for method in methods]
    assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(losses))


SHIFT_FREE = {name: METHODS[name] for name in ("bcts", "dirichlet", "ensemble")}
shift_free = pytest.mark.parametrize("method", SHIFT_FREE.values(), ids=SHIFT_FREE)


@shift_free
def test_a_constant_added_to_a_row_changes_nothing(method):
    z, labels = rows_of(150, 4)
    moved = z + np.random.default_rng(1).normal(size=(150, 1)) * 10
    first, other = again(method).fit(z, labels), again(method).fit(moved, labels)
    assert first.predict_proba(z) == pytest.approx(other.predict_proba(moved), abs=1e-9)
    assert learnt(first) == pytest.approx(learnt(other), rel=1e-8, abs=1e-8)  # parameters that rounding moves most


@shift_free
def test_logits_and_their_probabilities_are_recalibrated_alike(method):
    z, labels = rows_of(150, 4)
    p = np.exp(log_softmax(z))
    first, other = again(method).fit(z, labels), again(method).set_params(input="probabilities").fit(p, labels)
    assert first.predict_proba(z) == pytest.approx(other.predict_proba(p), abs=1e-9)


AS_THEY_COME = {name: METHODS[name] for name in METHODS if name not in SHIFT_FREE}
as_they_come = pytest.mark.parametrize("method", AS_THEY_COME.values(), ids=AS_THEY_COME)


@as_they_come
def test_a_constant_added_to_a_row_matters_to_factors(method):
    z, labels = rows_of(150, 4)
    moved = z + np.random.default_rng(1).normal(size=(150, 1))
    first, other = again(method).fit(z, labels), again(method).fit(moved, labels)
    assert np.abs(first.predict_proba(z) - other.predict_proba(moved)).max() > 1e-3
    assert np.abs(first.predict_proba(z) - first.predict_proba(z + 1.0)).max() > 1e-3


@as_they_come
def test_probabilities_are_recalibrated_as_their_logarithms(method):
    z, labels = rows_of(150, 4)
    p = np.exp(log_softmax(z))
    first, other = again(method).fit(np.log(p), labels), again(method).set_params(input="probabilities").fit(p, labels)
    assert learnt(first).tolist() == learnt(other).tolist()
    assert first.predict_proba(np.log(p)).tolist() == other.predict_proba(p).tolist()


@as_they_come
def test_forecasts_are_the_softmax_of_factors_times_logits_as_they_come(method):
    z, labels = rows_of(60, 3)
    fitted = again(method).fit(z + 2.0, labels)
    for row, p in zip(z + 2.0, fitted.predict_proba(z + 2.0), strict=True):
        matrix = fitted.weights_ if fitted.weights_.ndim == 2 else np.diag(fitted.weights_)
        u = [sum(matrix[k, j] * row[j] for j in range(3)) + fitted.bias_[k] for k in range(3)]
        total = sum(math.exp(value) for value in u)
        assert p == pytest.approx([math.exp(value) / total for value in u], abs=1e-12)


@every_method
def test_whole_weights_are_repetition(method):
    z, labels = rows_of(120, 3)
    weight = np.random.default_rng(2).integers(0, 4, 120)
    weight[:6] = 1
    weighted = again(method).fit(z, labels, sample_weight=weight)
    repeated = again(method).fit(np.repeat(z, weight, axis=0), np.repeat(labels, weight))
    assert weighted.predict_proba(z) == pytest.approx(repeated.predict_proba(z), abs=1e-9)
    assert learnt(weighted) == pytest.approx(learnt(repeated), rel=1e-8, abs=1e-8)


@every_method
def test_the_order_of_rows_does_not_matter(method):
    z, labels = rows_of(120, 3)
    order = np.random.default_rng(4).permutation(120)
    first, other = again(method).fit(z, labels), again(method).fit(z[order], labels[order])
    assert first.predict_proba(z) == pytest.approx(other.predict_proba(z), abs=1e-9)


GIVEN = {name: METHODS[name] for name in METHODS if name not in ("matrix", "dirichlet")}


@pytest.mark.parametrize("method", GIVEN.values(), ids=GIVEN)  # folds are dealt out by the class's place
def test_relabelling_the_classes_relabels_the_forecasts(method):
    z, labels = rows_of(150, 4)
    order = np.array([2, 0, 3, 1])
    first, other = again(method).fit(z, labels), again(method).fit(z[:, order], np.argsort(order)[labels])
    assert first.predict_proba(z)[:, order] == pytest.approx(other.predict_proba(z[:, order]), abs=1e-9)


@every_method
def test_an_event_is_two_columns(method):
    z, labels = rows_of(150, 2)
    z[:, 0] = 0.0
    event = z[:, 1].copy()
    first, other = again(method).fit(event, labels), again(method).fit(z, labels)
    assert first.predict_proba(event).shape == (150,)
    assert first.predict_proba(event) == pytest.approx(other.predict_proba(z)[:, 1], abs=1e-9)


def test_a_factor_of_nothing_but_0_stays_where_it_was():
    z, labels = rows_of(150, 2)
    temperature = TemperatureScaling().fit(z[:, 1], labels).temperature_
    assert VectorScaling().fit(z[:, 1], labels).weights_[0] == 1 / temperature
    assert VectorScaling(l2=0.1).fit(z[:, 1], labels).weights_[0] == pytest.approx(1, abs=1e-9)
    fitted = MatrixScaling(off_diagonal=0.0, intercept=0.0).fit(z[:, 1], labels)
    assert fitted.weights_[:, 0].tolist() == [1 / temperature, 0.0]
    fitted = MatrixScaling(off_diagonal=0.5, intercept=0.5).fit(z[:, 1], labels)
    assert fitted.weights_[:, 0] == pytest.approx([1 / temperature, 0.0], abs=1e-9)


def test_an_event_with_a_factor_is_logistic_regression():
    linear = pytest.importorskip("sklearn.linear_model")
    z, labels = rows_of(300, 2)
    event = z[:, 1:] + 1.0
    peer = linear.LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(event, labels)
    fitted = VectorScaling().fit(event[:, 0], labels)
    assert fitted.weights_[1] == pytest.approx(peer.coef_[0, 0], abs=1e-5)  # the peer's tolerance
    assert fitted.predict_proba(event[:, 0]) == pytest.approx(peer.predict_proba(event)[:, 1], abs=1e-5)


@pytest.mark.parametrize("kind", [BiasCorrectedTemperatureScaling, EnsembleTemperatureScaling])
def test_events_keep_their_order(kind):
    z, labels = rows_of(150, 2)
    fitted = kind().fit(z[:, 1], labels)
    assert (np.diff(fitted.predict_proba(np.linspace(-9, 9, 50))) > 0).all()


def test_a_mixture_keeps_the_order_of_classes_in_a_row():
    z, labels = rows_of(150, 5)
    p = EnsembleTemperatureScaling().fit(z, labels).predict_proba(z)
    assert (np.argsort(p, axis=1) == np.argsort(z, axis=1)).all()


@every_method
def test_float32_logits_are_computed_with_in_float64(method):
    z, labels = rows_of(150, 3)
    small = z.astype(np.float32)
    first, other = again(method).fit(small, labels), again(method).fit(small.astype(np.float64), labels)
    assert learnt(first).tolist() == learnt(other).tolist()
    assert first.predict_proba(small).dtype == np.float64


@every_method
def test_a_fitted_map_travels_as_json(method, monkeypatch):
    monkeypatch.setitem(cal.recalibrate.METHODS, type(method).__name__, type(method))
    z, labels = rows_of(100, 3)
    fitted = again(method).fit(z, labels)
    rebuilt = cal.recalibrate.from_json(fitted.to_json())
    assert rebuilt.predict_proba(z).tolist() == fitted.predict_proba(z).tolist()


# ---- scales ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.02, 1.0, 50.0])
@pytest.mark.parametrize("width", [2, 5])
def test_the_scale_of_the_logits_does_not_matter(scale, width):
    z, labels = rows_of(300, width)
    for method in (
        BiasCorrectedTemperatureScaling(),
        VectorScaling(),
        MatrixScaling(),
        MatrixScaling(off_diagonal=0.0, intercept=0.0),
    ):
        first, other = again(method).fit(z, labels), again(method).fit(z * scale, labels)
        assert other.certificate_.converged
        assert other.certificate_.gradient_norm <= 1e-8
        assert first.predict_proba(z) == pytest.approx(other.predict_proba(z * scale), abs=1e-9)


@pytest.mark.parametrize("temperature", [0.02, 0.5, 2.0, 50.0])
def test_a_true_temperature_with_intercepts_is_found_again(temperature):
    rng = np.random.default_rng(5)
    n, bias = 20_000, np.array([0.5, -0.7, 0.2])
    u = rng.normal(size=(n, 3)) * 2
    labels = np.argmax(u + bias + rng.gumbel(size=(n, 3)), axis=1)
    fitted = BiasCorrectedTemperatureScaling().fit(u * temperature, labels)
    # seed 5: standard errors at n = 20,000 are below 0.02; five of them are passed by chance less than once in 10^6
    assert fitted.temperature_ / temperature == pytest.approx(1, abs=0.1)
    assert fitted.bias_ == pytest.approx(bias, abs=0.1)
    assert fitted.certificate_.gradient_norm <= 1e-8


OFFSET = [
    BiasCorrectedTemperatureScaling(),
    VectorScaling(),
    VectorScaling(l2=0.05),
    MatrixScaling(off_diagonal=0.0, intercept=0.0),
    MatrixScaling(off_diagonal=0.5, intercept=0.5),
]


def plain_gradient(fitted, z, labels):
    """The gradient of the penalised loss in slopes and intercepts as they are told, for logits as they come."""
    width, bias, options = z.shape[1], fitted.bias_, fitted.get_params()
    if isinstance(fitted, BiasCorrectedTemperatureScaling):
        u = z / fitted.temperature_ + bias
    elif isinstance(fitted, VectorScaling):
        u = z * fitted.weights_ + bias
    else:
        u = z @ fitted.weights_.T + bias
    residuals = (np.exp(log_softmax(u)) - np.eye(width)[labels]) / len(z)
    moments, ends = residuals.T @ z, residuals.sum(axis=0)
    if isinstance(fitted, BiasCorrectedTemperatureScaling):
        return np.trace(moments), ends
    if isinstance(fitted, VectorScaling):
        pull = 2 * options["l2"] / width
        return np.diag(moments) + pull * (fitted.weights_ - 1), ends + pull * bias
    off = fitted.weights_ * (1 - np.eye(width))
    slopes = moments + 2 * options["off_diagonal"] / (width * (width - 1)) * off
    return slopes, ends + 2 * options["intercept"] / width * bias


@pytest.mark.parametrize("method", OFFSET, ids=repr)
@pytest.mark.parametrize("size", [10.0, 1e3])
def test_logits_far_from_0_are_fitted(method, size):
    z, labels = rows_of(300, 4)
    along = np.random.default_rng(3).normal(size=(300, 1))
    for moved in (z + size, z - size, z + size * np.arange(4), z + size * along):
        fitted = again(method).fit(moved, labels)
        assert fitted.certificate_.converged
        assert fitted.certificate_.gradient_norm <= 1e-8
        slopes, intercepts = plain_gradient(fitted, moved, labels)
        assert np.abs(intercepts).max() <= 1e-8
        assert np.abs(slopes).max() <= 1e-8


@pytest.mark.parametrize("method", [VectorScaling(), MatrixScaling(off_diagonal=0.0, intercept=0.0)], ids=repr)
def test_free_intercepts_take_up_what_all_rows_share(method):
    z, labels = rows_of(300, 3)
    moved = z + np.array([1000.0, -500.0, 2000.0])
    first, other = again(method).fit(z, labels), again(method).fit(moved, labels)
    assert first.predict_proba(z) == pytest.approx(other.predict_proba(moved), abs=1e-9)
    ours, theirs = (
        fitted.weights_ - (fitted.weights_.ndim == 2) * fitted.weights_.mean(axis=0) for fitted in (first, other)
    )
    assert ours == pytest.approx(theirs, abs=1e-9)  # what all rows of a matrix share counts for nothing


def test_logits_enormously_far_from_0_are_fitted_where_intercepts_are_free():
    z, labels = rows_of(300, 4)
    for method in (BiasCorrectedTemperatureScaling(), VectorScaling(), MatrixScaling(off_diagonal=0.0, intercept=0.0)):
        first, other = again(method).fit(z, labels), again(method).fit(z + 1e6 * np.arange(4), labels)
        assert other.certificate_.gradient_norm <= 1e-8
        assert other.certificate_.log_loss_after == pytest.approx(first.certificate_.log_loss_after, abs=1e-9)


def test_a_hundred_classes_are_fitted():
    z, labels = rows_of(2000, 100)
    for method in (
        BiasCorrectedTemperatureScaling(),
        VectorScaling(l2=0.1),
        MatrixScaling(off_diagonal=9900.0, intercept=100.0),
    ):
        fitted = method.fit(z, labels)
        assert fitted.certificate_.converged
        assert fitted.certificate_.gradient_norm <= 1e-8


# ---- choosing strengths ----------------------------------------------------------------------------------------------


def test_chosen_strengths_are_on_the_stated_grid():
    z, labels = rows_of(200, 3)
    temperature = TemperatureScaling().fit(z, labels).temperature_
    fitted = MatrixScaling().fit(z, labels)
    grid = np.array(STRENGTHS)
    assert np.isclose(fitted.off_diagonal_, grid * 6 * temperature**2, rtol=1e-9, atol=0).sum() == 1
    assert np.isclose(fitted.intercept_, grid * 3, rtol=1e-9, atol=0).sum() == 1


def test_a_given_strength_is_kept_and_the_other_chosen():
    z, labels = rows_of(200, 3)
    assert MatrixScaling(off_diagonal=0.25).fit(z, labels).off_diagonal_ == 0.25
    fitted = MatrixScaling(intercept=2.0).fit(z, labels)
    assert fitted.intercept_ == 2.0
    refitted = MatrixScaling(off_diagonal=fitted.off_diagonal_, intercept=2.0).fit(z, labels)
    assert learnt(refitted).tolist() == learnt(fitted).tolist()


def test_noise_wants_a_stronger_penalty_than_a_mixing_of_classes():
    rng = np.random.default_rng(6)
    z = rng.normal(size=(600, 4)) * 2
    quiet = np.argmax(z + rng.gumbel(size=z.shape), axis=1)
    turned = np.argmax(z @ rng.normal(size=(4, 4)) + rng.gumbel(size=z.shape), axis=1)
    assert MatrixScaling().fit(z, quiet).off_diagonal_ > MatrixScaling().fit(z, turned).off_diagonal_


def test_folds_deal_out_each_class_in_turns():
    z = np.column_stack([np.arange(9.0), np.zeros(9), np.zeros(9)])
    rows = Rows.of(z, np.array([0, 0, 0, 0, 1, 1, 1, 1, 2]), np.ones(9))
    # the lead of class 0 rises with its logit, that of class 1 falls; class 2 has one row, never held out
    assert folds(rows, FOLDS).tolist() == [0, 1, 2, 0, 1, 0, 2, 1, -1]


def test_rows_alike_share_a_fold():
    z = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    fold = folds(Rows.of(z, np.array([0, 0, 0, 1, 1]), np.ones(5)), FOLDS)
    assert fold[0] == fold[2] != fold[1]


def test_held_out_losses_add_up_to_that_of_all_rows():
    z, labels = rows_of(50, 3)
    weight = np.random.default_rng(8).random(50) + 0.1
    at = np.random.default_rng(9).normal(size=(3, 4))
    rows = Rows.of(z, labels, weight)
    parts = [HoldOut.of(rows, part) for part in (np.arange(50) < 20, np.arange(50) >= 20)]
    wanted = loss_of(rows.features @ at[:, :-1].T + at[:, -1], labels, weight)
    assert sum(part.loss(at) for part in parts) == pytest.approx(wanted, abs=1e-12)
    assert [len(part.taught.labels) for part in parts] == [30, 20]


def test_where_nothing_can_be_held_out_the_strongest_penalty_is_taken():
    z = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]])
    fitted = quietly(MatrixScaling(), z, [0, 1, 2])
    assert fitted.intercept_ == 30.0


# ---- edges and refusals ----------------------------------------------------------------------------------------------


FREE = [
    BiasCorrectedTemperatureScaling(),
    VectorScaling(),
    MatrixScaling(),
    MatrixScaling(off_diagonal=0.0, intercept=0.0),
    DirichletCalibration(),
]


@pytest.mark.parametrize("method", FREE, ids=repr)
def test_an_absent_class_is_named(method):
    z, labels = rows_of(50, 4)
    labels = np.where(labels == 2, 1, labels)
    with pytest.raises(cal.CalibrationInputError, match=r"y: must have rows of every class, got none of owl; .*Temp"):
        again(method).set_params(classes=["ape", "bee", "owl", "yak"]).fit(
            z, np.array(["ape", "bee", "owl", "yak"])[labels]
        )
    weight = (labels != 3).astype(float)
    with pytest.raises(cal.CalibrationInputError, match="none of 2, 3; "):
        again(method).fit(z, labels, sample_weight=weight)


def test_many_absent_classes_are_counted():
    with pytest.raises(cal.CalibrationInputError, match=r"got none of 2, 3, 4, 5, 6 and 3 more; pass l2=0\.01"):
        VectorScaling().fit(np.eye(4, 10), [0, 1, 0, 1])


def test_a_penalty_keeps_an_absent_class_finite():
    z, labels = rows_of(50, 4)
    fitted = VectorScaling(l2=0.01).fit(z, np.where(labels == 2, 1, labels))
    assert fitted.certificate_.converged
    assert fitted.bias_[2] < fitted.bias_.max() - 1
    assert EnsembleTemperatureScaling().fit(z, np.where(labels == 2, 1, labels)).certificate_.converged


def quietly(method, z, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CalibrationWarning)
        return again(method).fit(z, labels)


SEPARATED = [(method, 0.0) for method in FREE] + [(FREE[which], 3.0) for which in (0, 1, 3)]


@pytest.mark.parametrize(("method", "shift"), SEPARATED, ids=repr)
@pytest.mark.parametrize("scale", [0.05, 1.0, 40.0])
def test_classes_told_apart_without_error_end_in_a_warning(method, shift, scale):
    rng = np.random.default_rng(7)
    labels = np.repeat([0, 1, 2], 10)
    z = rng.random((30, 3))
    z[np.arange(30), labels] += 1.5
    z = scale * (z + shift * np.array([1.0, 0.0, 0.0]))  # shifted: told apart by intercepts only, which must be free
    with pytest.warns(CalibrationWarning, match="falls for ever"):
        fitted = again(method).fit(z, labels)
    assert not fitted.certificate_.converged
    assert np.isfinite(learnt(fitted)).all()
    assert fitted.certificate_.log_loss_after < 1e-6
    assert np.isfinite(fitted.predict_proba(z * 100)).all()
    assert quietly(method, z, labels).certificate_.iterations <= 60


def test_one_class_told_apart_is_enough_for_a_warning():
    z, labels = rows_of(200, 3)
    z[labels == 2] += [0.0, 0.0, 40.0]
    for method in (VectorScaling(), MatrixScaling(off_diagonal=0.0, intercept=0.0)):
        with pytest.warns(CalibrationWarning, match="some classes can be told apart without error"):
            fitted = again(method).fit(z, labels)
        assert np.isfinite(learnt(fitted)).all()
    assert VectorScaling(l2=0.01).fit(z, labels).certificate_.converged


def test_logits_that_point_away_from_the_truth_end_at_the_upper_bound():
    z, labels = rows_of(200, 3)
    with pytest.warns(CalibrationWarning, match="upper bound 1000"):
        fitted = BiasCorrectedTemperatureScaling().fit(-z, labels)
    assert fitted.temperature_ == pytest.approx(1000, rel=1e-12)
    assert fitted.certificate_.at_bound == ("temperature",)
    frequency = np.log(np.bincount(labels))
    assert fitted.bias_ == pytest.approx(frequency - frequency.mean(), abs=0.01)  # z / 1000 still counts a little
    assert (VectorScaling().fit(-z, labels).weights_ < 0).all()


@pytest.mark.parametrize("value", [0.0, 0.1, -1000.0])
@pytest.mark.parametrize("method", [*FREE, EnsembleTemperatureScaling()], ids=repr)
def test_equal_logits_give_the_frequencies_without_a_fault(method, value):
    labels = np.array([0, 0, 0, 1, 1, 2])
    p = quietly(method, np.full((6, 3), value), labels).predict_proba(np.full((1, 3), value))
    free = (
        isinstance(method, (BiasCorrectedTemperatureScaling, VectorScaling))
        or method.get_params().get("intercept") == 0
    )
    wanted = [1 / 2, 1 / 3, 1 / 6] if free else p[0]
    assert p[0] == pytest.approx(wanted, abs=1e-9)
    assert p.sum() == pytest.approx(1, abs=1e-12)


@every_method
def test_enormous_logits_bring_no_overflow(method):
    z, labels = rows_of(100, 3)
    fitted = quietly(method, z * 1e6, labels)
    assert np.isfinite(learnt(fitted)).all()
    assert np.isfinite(fitted.predict_proba(z * 1e6)).all()


def test_temperatures_beyond_what_is_looked_at_are_no_hindrance_to_factors():
    z, labels = rows_of(100, 3)
    for method in (VectorScaling(), MatrixScaling(off_diagonal=0.0, intercept=0.0)):
        first, other = again(method).fit(z, labels), again(method).fit(z * 1e5, labels)
        assert other.certificate_.gradient_norm <= 1e-8
        assert first.predict_proba(z) == pytest.approx(other.predict_proba(z * 1e5), abs=1e-9)


def test_one_enormous_row_that_is_right_is_not_taken_for_parameters_that_run_away():
    z, labels = rows_of(100, 3)
    z, labels = np.vstack([z, [1e6, 0.0, 0.0]]), np.append(labels, 0)
    for method in (BiasCorrectedTemperatureScaling(), VectorScaling(), MatrixScaling(off_diagonal=1.0, intercept=1.0)):
        fitted = again(method).fit(z, labels)
        assert fitted.certificate_.converged
        assert fitted.certificate_.gradient_norm <= 1e-8


def test_a_class_that_is_always_certain_leaves_its_own_factor_alone():
    rng = np.random.default_rng(7)
    labels = np.repeat([0, 1, 2], 10)
    z = rng.random((30, 3))
    z[np.arange(30), labels] += 1.5
    z = 40 * (z + np.array([3.0, 0.0, 0.0]))  # ln p of the first class is 0 in every row
    fitted = DirichletCalibration(off_diagonal=60.0, intercept=0.003).fit(z, labels)
    assert fitted.certificate_.gradient_norm <= 1e-8
    assert fitted.certificate_.log_loss_after < 0.03


def test_without_penalties_what_all_classes_share_stays_as_it_was():
    z, labels = rows_of(300, 4)
    temperature = TemperatureScaling().fit(z, labels).temperature_
    fitted = MatrixScaling(off_diagonal=0.0, intercept=0.0).fit(z, labels)
    assert fitted.weights_.mean(axis=0) == pytest.approx(np.full(4, 1 / (4 * temperature)), abs=1e-12)


@every_method
def test_certain_forecasts_that_fail_are_learnt_from(method):
    p = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] * 6)
    labels = np.array([0, 1, 2] * 5 + [1, 2, 0])
    fitted = quietly(again(method).set_params(input="probabilities"), p, labels)
    q = fitted.predict_proba(p)
    assert q[0, 0] > 0.6
    assert -np.log(q[np.arange(18), labels]).mean() < 0.7


def test_a_singular_hessian_leaves_free_directions_alone():
    step = solved(np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), np.array([1.0, -1.0, 0.0]))
    assert step == pytest.approx([-0.5, 0.5, 0.0], abs=1e-9)


@pytest.mark.parametrize("value", [-1, math.inf, math.nan, "1", True])
def test_strengths_that_cannot_be_are_refused(value):
    with pytest.raises(cal.CalibrationInputError, match="l2: must be a finite number of at least 0, got"):
        VectorScaling(l2=value)
    for kind, name in itertools.product((MatrixScaling, DirichletCalibration), ("off_diagonal", "intercept")):
        with pytest.raises(cal.CalibrationInputError, match=f"{name}: must be None or a finite number of at least 0"):
            kind(**{name: value})
    with pytest.raises(cal.CalibrationInputError, match="l2: must be"):
        VectorScaling(l2=None)


@every_method
def test_scores_must_be_said_to_be_logits_or_probabilities(method):
    with pytest.raises(cal.CalibrationInputError, match='input: must be "logits" or "probabilities"'):
        type(method)(input="scores")
