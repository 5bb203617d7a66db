"""Top-label calibration: values, the plain loop, other methods on parts of the rows, edges and refusals."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.recalibrate.top_label import TopLabelCalibration, replaced
from toy import P, Z, y

METHODS = ("histogram", "isotonic", "platt")
ALONE = {
    "histogram": cal.HistogramBinning("probabilities", n_bins=15),
    "isotonic": cal.IsotonicCalibration("probabilities"),
    "platt": cal.PlattScaling("probabilities"),
}
every_method = pytest.mark.parametrize("method", METHODS)


def close(value, off=1e-9):
    return pytest.approx(value, rel=0, abs=off)


def drawn(n=300, k=3, seed=0):
    """Over-confident probabilities and labels, rows of each predicted class both right and wrong."""
    rng = np.random.default_rng(seed)
    calm = rng.normal(scale=1.5, size=(n, k))
    labels = (calm + rng.gumbel(size=calm.shape)).argmax(axis=1)
    raised = np.exp(2 * calm)
    return raised / raised.sum(axis=1, keepdims=True), labels


def quietly(method, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        return method.fit(*data, **options)


def made_of(fitted, p):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        return fitted.predict_proba(p)


# ---- values ----------------------------------------------------------------------------------------------------------


def test_twelve_forecasts_in_one_cell_get_the_rate_of_their_predicted_class():
    fitted = TopLabelCalibration("probabilities", n_bins=1, smooth=False).fit(P, y)
    # predicted 0: rows 0 3 6 8 11, of which 0 8 11 are right; 1: rows 1 4 5 9, of which 1 5; 2: rows 2 7 10, all
    assert [curve.tolist() for curve in fitted.curves_] == [[0.6], [0.5], [1.0]]
    rows = made_of(fitted, P)
    assert rows[0].tolist() == close([0.6, 0.3, 0.1])  # .15 and .05 share .4
    assert rows[1].tolist() == close([1 / 6, 0.5, 1 / 3])
    assert rows[2].tolist() == close([0.0, 0.0, 1.0])


def plain_histogram(p, labels, n_bins):
    """Rows parted by predicted class and cell, then rewritten one by one."""
    cells = {}

    def place(row):
        best = max(range(len(row)), key=lambda k: (row[k], -k))
        return best, next(b for b in range(n_bins) if row[best] <= (b + 1) / n_bins)

    for row, label in zip(p, labels, strict=True):
        cells.setdefault(place(row), []).append(label == place(row)[0])
    predicted = {best for best, _ in cells}
    rows = []
    for row in p:
        best, cell = place(row)
        hits = cells.get((best, cell))
        q = sum(hits) / len(hits) if hits else (cell + 0.5) / n_bins if best in predicted else row[best]
        rest = sum(value for k, value in enumerate(row) if k != best)
        rows.append([q if k == best else value * (1 - q) / rest for k, value in enumerate(row)])
    return rows


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 5), n_bins=st.integers(1, 9))
def test_cells_agree_with_the_plain_loop(seed, k, n_bins):
    p, labels = drawn(40, k, seed)
    fitted = TopLabelCalibration("probabilities", n_bins=n_bins, smooth=False).fit(p, labels)
    assert made_of(fitted, p) == close(np.array(plain_histogram(p.tolist(), labels.tolist(), n_bins)))


@every_method
def test_each_predicted_class_is_the_event_method_on_its_rows(method):
    p, labels = drawn()
    others, _ = drawn(seed=1)
    mapped = quietly(TopLabelCalibration("probabilities", method), p, labels).predict_proba(others)
    top, now = p.argmax(axis=1), others.argmax(axis=1)
    for k in range(3):
        alone = quietly(type(ALONE[method])(**ALONE[method].get_params()), p[top == k, k], labels[top == k] == k)
        wanted = alone.predict_proba(others[now == k, k])
        off = 1e-6 if method == "platt" else 2e-12  # slopes are sought to a gradient; cells of histograms are floored
        assert mapped[now == k, k] == close(wanted, off)


@every_method
def test_the_other_classes_keep_their_shares(method):
    p, labels = drawn()
    others, _ = drawn(seed=1)
    mapped = quietly(TopLabelCalibration("probabilities", method), p, labels).predict_proba(others)
    for before, after in zip(others, mapped, strict=True):
        rest = np.arange(3) != before.argmax()
        assert after[rest] * before[rest].sum() == close(before[rest] * after[rest].sum())
    assert mapped.sum(axis=1) == close(np.ones(len(mapped)))


def test_a_row_that_was_sure_leaves_the_rest_to_all_equally():
    rows = replaced(np.array([[0.0, 1.0, 0.0]]), np.array([1]), np.array([0.5]))
    assert rows.tolist() == [[0.25, 0.5, 0.25]]
    assert replaced(np.array([[0.0, 1.0]]), np.array([1]), np.array([1.0])).tolist() == [[0.0, 1.0]]


def test_the_likeliest_class_can_change_and_the_certificate_tells():
    p = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.3, 0.7]])
    fitted = TopLabelCalibration("probabilities", n_bins=1, smooth=False).fit(p, [1, 1, 0, 1])
    assert made_of(fitted, p)[:, 0].tolist() == close([1 / 3, 1 / 3, 1 / 3, 0])
    assert (fitted.certificate_.accuracy_before, fitted.certificate_.accuracy_after) == (0.5, 0.75)


# ---- edges -----------------------------------------------------------------------------------------------------------


@every_method
def test_a_class_that_was_never_predicted_keeps_its_confidence(method):
    p, labels = drawn(k=3)
    kept = p.argmax(axis=1) != 2
    fitted = quietly(TopLabelCalibration("probabilities", method), p[kept], labels[kept])
    assert fitted.curves_[2].shape == (0,)
    row = np.array([[0.2, 0.1, 0.7]])
    assert fitted.predict_proba(row).tolist() == [close([0.2, 0.1, 0.7])]
    again = TopLabelCalibration.from_json(fitted.to_json())
    assert np.array_equal(again.predict_proba(p[:9]), fitted.predict_proba(p[:9]))


def test_tied_rows_predict_the_first_class():
    fitted = quietly(TopLabelCalibration("probabilities", n_bins=1, smooth=False), [[0.5, 0.5], [0.4, 0.6]], [1, 1])
    assert [curve.tolist() for curve in fitted.curves_] == [[0.0], [1.0]]


def test_a_predicted_class_that_is_always_right_is_warned_of_by_platt():
    p, labels = drawn()
    right = np.where(p.argmax(axis=1) == 0, 0, labels)
    with pytest.warns(cal.CalibrationWarning, match="TopLabelCalibration: class 0: the event always comes true"):
        fitted = TopLabelCalibration("probabilities", "platt").fit(p, right)
    assert not fitted.certificate_.converged


def test_float32_edges_are_compared_in_float32():
    p = np.array([[0.7, 0.3], [0.7, 0.3], [0.75, 0.25]])
    fitted = [
        TopLabelCalibration("probabilities", n_bins=10, smooth=False).fit(kind, [0, 1, 0])
        for kind in (p, np.float32(p))
    ]
    assert fitted[0].curves_[0].tolist() == fitted[1].curves_[0].tolist()
    assert fitted[0].curves_[0][6:8].tolist() == [0.5, 1.0]


# ---- laws ------------------------------------------------------------------------------------------------------------


@every_method
def test_whole_weights_are_repetition(method):
    p, labels = drawn(120)
    times = np.random.default_rng(0).integers(0, 4, len(labels))
    weighted = quietly(TopLabelCalibration("probabilities", method), p, labels, sample_weight=times)
    repeated = quietly(
        TopLabelCalibration("probabilities", method), np.repeat(p, times, axis=0), np.repeat(labels, times)
    )
    for curve, other in zip(weighted.curves_, repeated.curves_, strict=True):
        assert curve == close(other, 1e-7 if method == "platt" else 1e-12)  # Newton's steps end at a gradient


@every_method
def test_the_order_of_rows_does_not_matter(method):
    p, labels = drawn(120)
    order = np.random.default_rng(0).permutation(len(labels))
    first, other = (
        quietly(TopLabelCalibration("probabilities", method), p[rows], labels[rows]) for rows in (slice(None), order)
    )
    for left, right in zip(first.curves_, other.curves_, strict=True):
        assert left == close(right, 1e-7 if method == "platt" else 1e-12)


@every_method
def test_logits_are_probabilities_by_their_softmax(method):
    p, labels = drawn(120)
    by_logits = quietly(TopLabelCalibration(method=method), np.log(p), labels)
    by_probabilities = quietly(TopLabelCalibration("probabilities", method), p, labels)
    assert by_logits.predict_proba(np.log(p[:9])) == close(by_probabilities.predict_proba(p[:9]), 1e-8)


def test_confidence_is_calibrated_for_each_predicted_class_on_the_fitting_rows():
    p, labels = drawn(600)
    top = p.argmax(axis=1)
    mapped = made_of(TopLabelCalibration("probabilities", "isotonic", smooth=False).fit(p, labels), p)
    for k in range(3):
        assert mapped[top == k, k].mean() == close((labels[top == k] == k).mean())


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_an_event_has_no_predicted_class():
    with pytest.raises(
        cal.CalibrationInputError, match=r"one event has no predicted class, got 1-D scores; pass np\.col"
    ):
        TopLabelCalibration().fit([0.5, -0.5], [1, 0])


def test_options_are_checked():
    with pytest.raises(
        cal.CalibrationInputError, match='method: must be "histogram", "isotonic" or "platt", got \'x\''
    ):
        TopLabelCalibration(method="x")
    with pytest.raises(cal.CalibrationInputError, match=r"n_bins: must be a whole number in 1\.\.1,000, got 0"):
        TopLabelCalibration(n_bins=0)
    assert TopLabelCalibration().fit(Z, y).certificate_.n == 12
