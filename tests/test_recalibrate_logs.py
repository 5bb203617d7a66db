"""Log losses of recalibrated forecasts: from logits to the last digit, where a rounded probability would be 0 or 1."""

import math
import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibrate import METHODS, cross_fit
from calibrant.recalibrate.choice import gain_of_choosing
from calibrant.recalibrate.fitting.lessons import ModelScores
from oracles import recalibrate_logs as oracle

STRENGTHS = {"off_diagonal": 1e-2, "intercept": 1e-2}
FAST = {"MatrixScaling": STRENGTHS, "DirichletCalibration": STRENGTHS, "TopLabelCalibration": {"method": "platt"}}
EXACT = ("IsotonicCalibration", "HistogramBinning", "BBQ")
"""Methods whose maps are steps and lines of probabilities."""
SURE = np.array([[0.0, 600.0, -5.0], [300.0, 0.0, -650.0], [1.0, 0.5, 0.0], [-690.0, 0.0, 4.0]])
TRUTH = np.array([0, 2, 1, 0])


def quietly(kind, x, labels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        return kind(**options).fit(x, labels)


@pytest.fixture(scope="module")
def fitted():
    """Every method whose map has logits, fitted on classes and on an event."""
    rng = np.random.default_rng(0)
    calm = rng.normal(scale=1.5, size=(300, 3))
    labels = (calm + rng.gumbel(size=calm.shape)).argmax(axis=1)
    happened = (rng.random(300) < 1 / (1 + np.exp(-calm[:, 0]))).astype(int)
    named = {name: (kind, FAST.get(name, {})) for name, kind in METHODS.items() if name not in EXACT}
    return {
        name: (
            quietly(kind, 2 * calm, labels, **options),
            None if name == "TopLabelCalibration" else quietly(kind, 2 * calm[:, 0], happened, **options),
        )
        for name, (kind, options) in named.items()
    }


def losses(recalibrator, rows, labels):
    """What the oracle says each row loses."""
    return [oracle.log_loss(recalibrator, row, label) for row, label in zip(rows, labels, strict=True)]


close = {"rel": 1e-12, "abs": 1e-12}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METHODS if name not in EXACT])
def test_sure_and_wrong_classes_lose_what_the_formula_says(name, fitted):
    recalibrator = fitted[name][0]
    expected = losses(recalibrator, SURE, TRUTH)
    assert max(expected) > (0 if name == "EnsembleTemperatureScaling" else 50)
    mapped = recalibrator.recalibrate(cal.Predictions.from_logits(TRUTH, SURE))
    assert mapped.logits
    assert ModelScores.of(mapped).log_losses(TRUTH).tolist() == pytest.approx(expected, **close)
    logs = recalibrator.predict_log_proba(SURE)
    assert (-logs[np.arange(4), TRUTH]).tolist() == pytest.approx(expected, **close)
    assert np.exp(logs) == pytest.approx(recalibrator.predict_proba(SURE), abs=1e-12)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in (*EXACT, "TopLabelCalibration")])
def test_sure_and_wrong_events_lose_what_the_formula_says(name, fitted):
    recalibrator, z, happened = fitted[name][1], np.array([600.0, -650.0, 40.0, 0.5]), np.array([0, 1, 1, 0])
    expected = losses(recalibrator, [[0.0, each] for each in z], happened)
    mapped = recalibrator.recalibrate(cal.Predictions.from_logits(happened, z))
    assert mapped.logits
    assert mapped.values.shape == z.shape
    assert ModelScores.of(mapped).log_losses(happened).tolist() == pytest.approx(expected, **close)
    assert np.exp(recalibrator.predict_log_proba(z)) == pytest.approx(recalibrator.predict_proba(z), abs=1e-12)
    assert (-recalibrator.predict_log_proba(z)[[1, 2]]).tolist() == pytest.approx([expected[1], expected[2]], **close)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in EXACT])
def test_the_log_loss_is_the_mean_of_these(name, fitted):
    of_classes, of_event = fitted[name]
    value = cal.LOG_LOSS(of_classes.recalibrate(cal.Predictions.from_logits(TRUTH, SURE))).value
    assert value == pytest.approx(math.fsum(losses(of_classes, SURE, TRUTH)) / 4, rel=1e-12)
    if of_event is not None:
        value = cal.LOG_LOSS(of_event.recalibrate(cal.Predictions.from_logits([0], [650.0]))).value
        assert value == pytest.approx(losses(of_event, [[0.0, 650.0]], [0])[0], rel=1e-12)


def test_the_certificate_of_a_sure_and_wrong_row_is_exact():
    x, labels = [[0.0, 800.0], [0.0, 800.0], [3.0, 0.0], [0.0, 2.0]], [0, 1, 0, 1]
    for options in ({}, {"objective": "ece"}):
        recalibrator = quietly(cal.TemperatureScaling, x, labels, **options)
        certificate = recalibrator.certificate_
        assert certificate.log_loss_after == pytest.approx(math.fsum(losses(recalibrator, x, labels)) / 4, rel=1e-12)
        assert certificate.log_loss_before == pytest.approx(
            (800 + math.log1p(math.exp(-3)) + math.log1p(math.exp(-2))) / 4
        )
    assert certificate.log_loss_after > 800 / 2 / 4


def test_the_certificate_of_a_sure_and_wrong_event_is_exact():
    z, happened = [800.0, 800.0, -3.0, 2.0], [0, 1, 0, 1]
    for kind, options in ((cal.TemperatureScaling, {"objective": "ece"}), (cal.PlattScaling, {})):
        recalibrator = quietly(kind, z, happened, **options)
        rows = [[0.0, each] for each in z]
        assert recalibrator.certificate_.log_loss_after == pytest.approx(
            math.fsum(losses(recalibrator, rows, happened)) / 4, rel=1e-12
        )


@pytest.mark.parametrize("kind", [cal.TemperatureScaling, cal.PlattScaling])
def test_what_was_given_probability_0_loses_without_end(kind):
    p, labels = [[1.0, 0.0], [0.75, 0.25], [0.5, 0.5], [0.25, 0.75]], [1, 0, 1, 1]
    certificate = quietly(kind, p, labels, input="probabilities").certificate_
    assert math.isinf(certificate.log_loss_before)
    assert math.isfinite(certificate.log_loss_after)
    assert str(certificate).count("log loss inf -> ") == 1


def test_zeros_of_a_method_stay_zeros():
    z = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    recalibrator = cal.IsotonicCalibration(smooth=False).fit(z, z > 0)
    mapped = recalibrator.recalibrate(cal.Predictions.from_logits([1, 0], [-5.0, 5.0]))
    assert not mapped.logits
    assert mapped.values.tolist() == [0.0, 1.0]
    assert cal.LOG_LOSS(mapped).value == math.inf
    assert recalibrator.predict_log_proba([-5.0, 5.0]).tolist() == [-math.inf, 0.0]


def test_columns_weights_names_and_notes_are_kept():
    recalibrator = cal.TemperatureScaling().fit([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 1, 1])
    rows = cal.Predictions.from_logits(
        ["cat", "dog"], [[4.0, 0.0], [0.0, 3.0]], classes=["cat", "dog"], sample_weight=[1, 2], region=["n", "s"]
    )
    mapped = recalibrator.recalibrate(rows)
    assert mapped.classes == rows.classes
    assert mapped.labels.tolist() == [0, 1]
    assert mapped.weight.tolist() == [1, 2]
    assert mapped.column("region").tolist() == ["n", "s"]
    assert np.array_equal(mapped.probabilities, recalibrator.predict_proba(rows.values))
    soft = cal.Predictions.from_probs([0.5, 0.25], [0.1, 0.2])
    stepped = cal.IsotonicCalibration("probabilities").fit([0.3, 0.6], [0, 1])
    assert stepped.recalibrate(soft).soft.tolist() == [0.5, 0.25]


def test_predictions_of_the_other_kind_are_refused():
    recalibrator = cal.TemperatureScaling().fit([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 1, 1])
    with pytest.raises(cal.CalibrationInputError, match=r"predictions: must hold logits, .*, got probabilities"):
        recalibrator.recalibrate(cal.Predictions.from_probs([0], [[0.5, 0.5]]))
    with pytest.raises(cal.CalibrationInputError, match="predictions: must be Predictions, got list"):
        recalibrator.recalibrate([[2.0, 0.0]])
    with pytest.raises(cal.CalibrationInputError, match="must be fitted first"):
        cal.TemperatureScaling().recalibrate(cal.Predictions.from_logits([0], [[0.5, 0.5]]))


@pytest.mark.parametrize("kind", [cal.TemperatureScaling, cal.IsotonicCalibration])
def test_measuring_the_fitting_rows_is_noted_whichever_way_they_come(kind):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 3))
    labels = (x + rng.gumbel(size=x.shape)).argmax(axis=1)
    recalibrator = kind().fit(x, labels)
    with pytest.warns(cal.CalibrationWarning, match="the numbers flatter it"):
        mapped = recalibrator.recalibrate(cal.Predictions.from_logits(labels, x))
    assert "the numbers flatter it" in mapped.notes[0]
    with pytest.warns(cal.CalibrationWarning, match="the numbers flatter it"):
        cal.Predictions.from_logits(labels, cal.TemperatureScaling().fit(x, labels).predict_log_proba(x))
    assert cal.Predictions.from_logits(labels, x).notes == ()


def test_left_out_rows_that_are_sure_and_wrong_make_no_loss_infinite():
    """60 rows, one of them sure and wrong in float64: what is chosen and gained stays a number."""
    rng = np.random.default_rng(4)
    z = rng.normal(size=60)
    happened = (rng.random(60) < 1 / (1 + np.exp(-z))).astype(int)
    z[0], happened[0] = 3000.0, 0
    mapped = cross_fit(cal.TemperatureScaling(objective="ece"), z, happened)
    assert mapped.logits
    assert 1000 < ModelScores.of(mapped).log_losses(happened).max() < 6001
    mended = cross_fit(cal.PlattScaling(), z, happened)
    gain = gain_of_choosing({"unchanged": cal.Predictions.from_logits(happened, z), "platt": mended}, np.arange(60) % 5)
    assert math.isfinite(gain.value)


def test_wrapped_classifiers_give_both_logarithms():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    for classes in (2, 3):
        labels = rng.integers(0, classes, 200)
        x = labels[:, None] + rng.normal(size=(200, 1)) @ np.ones((1, 3))
        wrapped = cal.Recalibrated(LogisticRegression(), cv=3).fit(x, labels)
        logs, p = wrapped.predict_log_proba(x[:20] + 1), wrapped.predict_proba(x[:20] + 1)
        assert logs.shape == (20, classes)
        assert np.exp(logs) == pytest.approx(p, abs=1e-12)
        far = wrapped.predict_log_proba(np.full((1, 3), 1e4))
        assert np.isfinite(far).all()
        assert far.min() < -1000


def test_logarithms_follow_the_map_where_every_curve_says_0(fitted):
    recalibrator = cal.PlattScaling.from_json(fitted["PlattScaling"][0].to_json())
    recalibrator.slope_, recalibrator.intercept_ = np.ones(3), np.full(3, -2000.0)
    rows = np.array([[2.0, 0.0, 1.0], [0.5, 0.0, 3.0]])
    assert recalibrator.predict_proba(rows) == pytest.approx(ModelScores(rows, "logits").probabilities, abs=1e-12)
    assert np.exp(recalibrator.predict_log_proba(rows)) == pytest.approx(recalibrator.predict_proba(rows), abs=1e-12)


def test_logarithms_follow_the_map_where_all_others_are_0(fitted):
    recalibrator = fitted["TopLabelCalibration"][0]
    rows = np.array([[0.0, -1.0, 900.0], [0.0, 850.0, -40.0], [0.0, 700.0, -40.0]])
    assert np.exp(recalibrator.predict_log_proba(rows)) == pytest.approx(recalibrator.predict_proba(rows), abs=1e-12)
    first, second, _ = recalibrator.predict_log_proba(rows)
    assert first[0] == first[1]  # the others share equally
    assert second[0] == second[2]
