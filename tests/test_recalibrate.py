"""Recalibrators: what all methods have in common, whatever their formula."""

import dataclasses
import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.special

import calibrant as cal
from calibrant.door import leaks
from calibrant.files import SHIPPED, read
from calibrant.recalibrate import METHODS, choose, cross_fit, from_json
from calibrant.recalibrate.choice import gain_of_choosing, plainest
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import as_lesson
from calibrant.recalibrate.folds import fold_of
from calibrant.recalibrate.methods import SHORT, named, spelled, usual
from calibrant.report.sections.repair import gain
from toy import Z, y

_STRENGTHS = {"off_diagonal": 1e-2, "intercept": 1e-2}
FAST = {"MatrixScaling": _STRENGTHS, "DirichletCalibration": _STRENGTHS, "HistogramBinning": {"n_bins": 10}}
"""Options that spare the searches which other tests look at."""
NOT_FOR_EVENTS = {"TopLabelCalibration"}


def unfitted(name, **options):
    return METHODS[name](**{**FAST.get(name, {}), **options})


def drawn(n=300, classes=3, seed=0):
    """Over-confident logits of classes that are all there."""
    rng = np.random.default_rng(seed)
    calm = rng.normal(scale=1.5, size=(n, classes))
    labels = (calm + rng.gumbel(size=calm.shape)).argmax(axis=1)
    labels[:classes] = np.arange(classes)
    return 2.0 * calm, labels


def drawn_event(n=300, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=2.0, size=n)
    return 2.0 * z, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


def quietly(fit, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        return fit(*arguments, **options)


@pytest.fixture(scope="module")
def fitted():
    """Every method fitted once on classes and once on an event."""
    x, labels = drawn()
    z, happened = drawn_event()
    return {
        name: (
            quietly(unfitted(name).fit, x, labels),
            None if name in NOT_FOR_EVENTS else quietly(unfitted(name).fit, z, happened),
        )
        for name in METHODS
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_rows_are_probabilities_in_the_shape_of_the_scores(name, fitted):
    of_classes, of_event = fitted[name]
    x, _ = drawn(seed=1)
    p = of_classes.predict_proba(x)
    assert p.shape == x.shape
    assert p.dtype == np.float64
    assert np.all((p >= 0) & (p <= 1))
    assert p.sum(axis=1) == pytest.approx(np.ones(len(p)), abs=1e-12)
    if of_event is not None:
        z, _ = drawn_event(seed=1)
        q = of_event.predict_proba(z)
        assert q.shape == z.shape
        assert np.all((q >= 0) & (q <= 1))
        assert of_event.predict(z).tolist() == (q > 0.5).astype(int).tolist()


@pytest.mark.parametrize("name", METHODS)
def test_over_confidence_is_mended_on_other_rows(name, fitted):
    """300 fitting rows, 2,000 others, seed 9: every method lowers the ECE of logits twice too large."""
    x, labels = drawn(2000, seed=9)
    before = cal.ECE(cal.Predictions.from_logits(labels, x)).value
    after = cal.ECE(labels, fitted[name][0].predict_proba(x)).value
    assert (
        after == before
        if name == "Identity"
        else abs(after - before) < 0.02
        if name == "PriorShift"
        else after < before
    )


@pytest.mark.parametrize("name", METHODS)
def test_json_rebuilds_the_map_to_the_bit(name, fitted):
    for recalibrator, scores in zip(fitted[name], (drawn(seed=2)[0], drawn_event(seed=2)[0]), strict=True):
        if recalibrator is None:
            continue
        text = recalibrator.to_json()
        again = from_json(text)
        assert type(again) is type(recalibrator)
        assert again.get_params() == recalibrator.get_params()
        assert again.certificate_ == recalibrator.certificate_ or np.isnan(recalibrator.certificate_.gradient_norm)
        assert np.array_equal(again.predict_proba(scores), recalibrator.predict_proba(scores))
        assert again.to_json() == text
        assert type(recalibrator).from_json(text).to_json() == text


def test_another_process_applies_the_same_map_to_the_bit(tmp_path, fitted):
    x, _ = drawn(seed=3)
    np.save(tmp_path / "x.npy", x)
    for name, (recalibrator, _) in fitted.items():
        (tmp_path / f"{name}.json").write_text(recalibrator.to_json())
    code = (
        "import sys, pathlib, numpy as np, calibrant as cal\n"
        "folder = pathlib.Path(sys.argv[1]); x = np.load(folder / 'x.npy')\n"
        "for path in folder.glob('*.json'):\n"
        "    np.save(path.with_suffix('.npy'), cal.recalibrate.from_json(path.read_text()).predict_proba(x))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    for name, (recalibrator, _) in fitted.items():
        assert np.array_equal(np.load(tmp_path / f"{name}.npy"), recalibrator.predict_proba(x)), name


def changed(text, **keys):
    return json.dumps({**json.loads(text), **keys})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text[:-20], "must be JSON"),
        (lambda text: "[1]", "must be the JSON of a recalibrator"),
        (lambda text: changed(text, version=2), "version: must be 1, got 2; a newer calibrant may have written it"),
        (lambda text: changed(text, learnt={"temperature_": 1.0}), "contents that do not match the seal"),
        (lambda text: changed(text, classes=["a", "b", "c"]), "contents that do not match the seal"),
        (lambda text: changed(text, seal="0"), "contents that do not match the seal"),
        (lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "learnt"}), "got no learnt"),
    ],
)
def test_a_changed_or_newer_file_is_refused(spoil, message, fitted):
    with pytest.raises(cal.CalibrationInputError, match=message):
        from_json(spoil(fitted["TemperatureScaling"][0].to_json()))


def test_the_json_of_another_method_is_refused(fitted):
    with pytest.raises(cal.CalibrationInputError, match="must be the JSON of VectorScaling, got TemperatureScaling"):
        cal.VectorScaling.from_json(fitted["TemperatureScaling"][0].to_json())


@pytest.mark.parametrize("name", METHODS)
def test_the_order_of_rows_does_not_matter(name, fitted):
    x, labels = drawn()
    order = np.random.default_rng(1).permutation(len(labels))
    again = quietly(unfitted(name).fit, x[order], labels[order])
    other, _ = drawn(seed=4)
    tolerance = (
        1e-6 if name in ("GPCalibration", "MatrixScaling", "DirichletCalibration") else 1e-8
    )  # iterated to a gradient
    assert again.predict_proba(other) == pytest.approx(fitted[name][0].predict_proba(other), abs=tolerance)


@pytest.mark.parametrize("name", METHODS)
def test_whole_weights_are_repetition(name):
    x, labels = drawn(120)
    times = np.random.default_rng(2).integers(1, 4, len(labels))
    weighted = quietly(unfitted(name).fit, x, labels, sample_weight=times)
    repeated = quietly(unfitted(name).fit, np.repeat(x, times, axis=0), np.repeat(labels, times))
    other, _ = drawn(seed=5)
    tolerance = 1e-6 if name in ("MatrixScaling", "DirichletCalibration") else 1e-8  # as above
    assert weighted.predict_proba(other) == pytest.approx(repeated.predict_proba(other), abs=tolerance)


@pytest.mark.parametrize("name", METHODS)
def test_the_certificate_tells_what_happened_on_the_fitting_rows(name, fitted):
    x, labels = drawn()
    certificate = fitted[name][0].certificate_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        after = fitted[name][0].predict_proba(x)
    assert certificate.n == len(labels)
    before = cal.Predictions.from_logits(labels, x)
    assert certificate.log_loss_before == pytest.approx(cal.LOG_LOSS(before).value, abs=1e-9)
    taken = after[np.arange(len(labels)), labels]
    assert certificate.log_loss_after == pytest.approx(-np.log(taken).mean(), abs=1e-9)
    assert certificate.accuracy_before == pytest.approx(cal.ACCURACY(before).value)
    assert certificate.accuracy_after == pytest.approx((after.argmax(axis=1) == labels).mean())
    assert certificate.converged
    assert str(certificate).startswith("converged")


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_are_taken_as_such(name, dtype):
    x, labels = drawn()
    p = cal.Predictions.from_logits(labels, x).probabilities.astype(dtype)
    recalibrator = quietly(unfitted(name, input="probabilities").fit, p, labels)
    assert recalibrator.predict_proba(p[:5].copy()).sum(axis=1) == pytest.approx(np.ones(5))
    with pytest.raises(cal.CalibrationInputError, match=r"X: must lie in \[0, 1\]"):
        recalibrator.predict_proba(x)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("x", "labels", "message"),
    [
        (Z, y[:-1], "y: must match X"),
        (Z, y + 1, "y: must lie in 0..2, got 3"),
        (np.where(Z < -7, np.nan, Z), y, "X: must be finite"),
        (Z, np.full((12, 3), 1 / 3), "y: needs one true class per row, got soft labels"),
        (np.zeros((0, 3)), np.zeros(0, int), "X: must not be empty"),
        (Z[:, :1], y * 0, "X: needs at least two columns"),
        (Z[None], y, "X: must be"),
    ],
)
def test_bad_input_is_refused(name, x, labels, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        unfitted(name).fit(x, labels)


@pytest.mark.parametrize("name", METHODS)
def test_what_was_not_fitted_and_what_does_not_fit_is_refused(name, fitted):
    with pytest.raises(cal.CalibrationInputError, match="must be fitted first"):
        unfitted(name).predict_proba(Z)
    with pytest.raises(cal.CalibrationInputError, match="must be fitted first"):
        unfitted(name).to_json()
    with pytest.raises(cal.CalibrationInputError, match="X: must be 3 columns, as fitted"):
        fitted[name][0].predict_proba(Z[:, :2])
    with pytest.raises(cal.CalibrationInputError, match="input: must be"):
        unfitted(name, input="scores")


@pytest.mark.parametrize("name", METHODS)
def test_options_are_read_and_set_as_scikit_learn_does(name):
    method = unfitted(name)
    assert type(method)(**method.get_params()).get_params() == method.get_params()
    assert method.set_params(input="probabilities").input == "probabilities"
    with pytest.raises(cal.CalibrationInputError, match="inputt: is no option"):
        method.set_params(inputt="logits")


def test_names_of_classes_are_those_given_or_in_order():
    words = np.array(["cat", "dog", "owl"])
    recalibrator = cal.TemperatureScaling().fit(Z, words[y])
    assert recalibrator.classes_.tolist() == ["cat", "dog", "owl"]
    assert recalibrator.predict(Z[:2]).tolist() == ["cat", "dog"]
    other = cal.TemperatureScaling(classes=["owl", "dog", "cat"]).fit(Z, words[::-1][y])
    assert other.predict(Z[:2]).tolist() == ["owl", "dog"]
    with pytest.raises(cal.CalibrationInputError, match="y: must name all 3 classes, got 2 names"):
        cal.TemperatureScaling().fit(Z[y < 2], words[y[y < 2]])


# ---- cross-fitting ---------------------------------------------------------------------------------------------------


def test_no_row_is_mapped_by_a_map_that_saw_it(monkeypatch):
    x, labels = drawn(60)
    seen = []
    learn = cal.TemperatureScaling._learn

    def watched(self, lesson):
        seen.append({tuple(row) for row in lesson.scores.values})
        return learn(self, lesson)

    monkeypatch.setattr(cal.TemperatureScaling, "_learn", watched)
    out = cross_fit(cal.TemperatureScaling(), x, labels, folds=4, seed=1)
    dealt = fold_of(as_lesson(x, labels, input="logits"), 4, 1)
    assert len(seen) == 4
    for row, fold in zip(x, dealt, strict=True):
        assert tuple(row) not in seen[fold]
        assert all(tuple(row) in seen[other] for other in range(4) if other != fold)
    assert len(out) == 60
    assert out.labels.tolist() == labels.tolist()


def test_folds_share_out_every_class():
    x, labels = drawn(90)
    dealt = fold_of(as_lesson(x, labels, input="logits"), 5, 0)
    assert np.ptp(np.bincount(dealt)) <= 1
    for label in range(3):
        assert np.ptp(np.bincount(dealt[labels == label], minlength=5)) <= 1


def test_groups_stay_together():
    x, labels = drawn(90)
    patients = np.repeat(np.arange(30), 3)
    dealt = fold_of(as_lesson(x, labels, input="logits"), 5, 0, patients)
    assert all(len(set(dealt[patients == patient])) == 1 for patient in range(30))
    with pytest.raises(cal.CalibrationInputError, match="groups: must have one value per row"):
        fold_of(as_lesson(x, labels, input="logits"), 5, 0, patients[:4])


@pytest.mark.parametrize("folds", [1, 0, 2.5, True])
def test_folds_that_cannot_be_are_refused(folds):
    x, labels = drawn(60)
    with pytest.raises(cal.CalibrationInputError, match="folds: must be a whole number"):
        cross_fit(cal.TemperatureScaling(), x, labels, folds=folds)


def test_more_folds_than_rows_or_groups_are_refused():
    x, labels = drawn(60)
    too_many = "folds: must be at most the number of rows, 60, got 61; use fewer folds, or collect more rows$"
    with pytest.raises(cal.CalibrationInputError, match=too_many):
        cross_fit(cal.TemperatureScaling(), x, labels, folds=61)
    with pytest.raises(cal.CalibrationInputError, match=r"at most the number of groups, 4, got 5; .* more groups$"):
        cross_fit(cal.TemperatureScaling(), x, labels, folds=5, groups=np.arange(60) % 4)


# ---- leaks -----------------------------------------------------------------------------------------------------------


def test_the_identity_flatters_nothing():
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0.2, 0.7, 0.9, 0.4, 0.6])
    same = cal.recalibrate.Identity("probabilities").fit(p, y).predict_proba(p)
    assert not leaks.is_marked(same)
    assert cal.ECE(y, same).notes == cal.ECE(y, p).notes


def test_measuring_the_fitting_rows_is_warned_of():
    x, labels = drawn()
    recalibrator = cal.TemperatureScaling().fit(x, labels)
    p = recalibrator.predict_proba(x)
    with pytest.warns(cal.CalibrationWarning, match="the numbers flatter it"):
        result = cal.ECE(labels, p)
    assert any(leaks.FLAG in note for note in result.notes)
    with pytest.warns(cal.CalibrationWarning, match="cross_fit"):
        cal.Predictions.from_probs(labels[:50], p[:50])


def test_measuring_other_rows_is_not_warned_of():
    x, labels = drawn()
    recalibrator = cal.TemperatureScaling().fit(x[:200], labels[:200])
    assert (
        cal.ECE(labels[200:], recalibrator.predict_proba(x[200:])).notes
        == cal.ECE(labels[200:], recalibrator.predict_proba(x[200:]) + 0).notes
    )
    cal.ECE(cross_fit(cal.TemperatureScaling(), x, labels))


def test_a_map_that_was_saved_still_knows_its_rows():
    x, labels = drawn()
    again = from_json(cal.TemperatureScaling().fit(x, labels).to_json())
    with pytest.warns(cal.CalibrationWarning, match="flatter"):
        cal.ECE(labels, again.predict_proba(x.copy()))


# ---- choosing --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(eq=False)
class Cut(cal.recalibrate.Recalibrator):
    """Says 1 above a logit of 3, else 0."""

    input: str = "logits"
    classes: object = None
    learns = ()

    def _learn(self, lesson):
        return Ending()

    def _map(self, scores):
        return (scores.values > 3).astype(float)


def test_the_best_method_is_found_and_held_against_noise():
    x, labels = drawn(1500, seed=8)
    methods = {"t": cal.TemperatureScaling(), "platt": cal.PlattScaling()}
    choice = choose(cal.Predictions.from_logits(labels, x), methods, seed=0)
    assert choice.best == "t"
    assert choice.ranking[-1] == "unchanged"
    assert choice.gain.interval.low > 0
    assert choice.verdict.startswith("The forecasts are not calibrated (p < 0.006). t has the lowest")
    assert choice.to_dict()["methods"]["t"]["log loss"]["value"] == choice.table["t"]["log loss"].value


def test_forecasts_that_the_test_does_not_reject_are_left_as_they_are():
    """Calibrated logits, seed 7: a temperature has a lower cross-fitted loss, by chance."""
    x, labels = drawn(800, seed=7)
    predictions = cal.Predictions.from_logits(labels, x / 2)
    choice = choose(predictions, {"t": cal.TemperatureScaling(), "shift": cal.PriorShift()}, seed=0)
    assert choice.test.p_value == cal.calibration_test(predictions, n=199, seed=0).p_value > 0.05
    assert choice.ranking[0] != "unchanged"
    assert (choice.best, choice.gain) == ("unchanged", None)
    assert choice.verdict.startswith("The calibration test finds nothing wrong (p = ")


def test_a_shift_is_repaired_by_a_shift():
    """Log-odds 0.8 too high, 2,000 rows, seed 0: the shift has the lowest loss, and what it learns is -0.8."""
    rng = np.random.default_rng(0)
    z = rng.normal(-1, 1, 2000)
    rows = cal.Predictions.from_logits(rng.random(2000) < 1 / (1 + np.exp(-z)), z + 0.8)
    choice = choose(rows, {name: named(name)() for name in ("prior_shift", "temperature", "platt")})
    assert choice.best == "prior_shift"
    assert np.diff(cal.PriorShift().fit(rows).bias_)[0] == pytest.approx(-0.8, abs=0.15)


@pytest.mark.parametrize("event", [True, False])
def test_a_learnt_shift_makes_mean_forecasts_what_happened(event):
    x, labels = drawn_event(400) if event else drawn(400)
    weight = np.random.default_rng(1).integers(1, 4, 400)
    mapped = quietly(cal.PriorShift().fit, x, labels, sample_weight=weight).predict_proba(x)
    shares = np.average(labels if event else np.eye(3)[labels], axis=0, weights=weight)
    assert np.average(mapped, axis=0, weights=weight) == pytest.approx(shares, abs=1e-9)


def test_known_prevalences_need_no_labels():
    """Down-sampling: 9 of 10 negatives are dropped, so that odds are ten times too high."""
    z, happened = drawn_event(50)
    shift = cal.PriorShift(fitted_prevalence=0.5, true_prevalence=1 / 11).fit(z, happened)
    others = cal.PriorShift(fitted_prevalence=0.5, true_prevalence=1 / 11).fit(z, 1 - happened)
    assert shift.predict_proba([0.0, 2.0]) == pytest.approx(1 / (1 + np.exp(np.log(10) - np.array([0.0, 2.0]))))
    assert np.array_equal(shift.bias_, others.bias_)
    classes = cal.PriorShift("probabilities", [1, 1, 2], [2, 1, 1]).fit([[0.2, 0.3, 0.5]], [0])
    assert classes.predict_proba([[0.2, 0.3, 0.5]]).tolist()[0] == pytest.approx(np.array([8, 6, 5]) / 19)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"true_prevalence": 0.5}, "must be given with true_prevalence, or neither"),
        ({"fitted_prevalence": 0.5, "true_prevalence": 1.5}, "true_prevalence: must be a probability between 0 and 1"),
        ({"fitted_prevalence": [1, 2, 3], "true_prevalence": 0.5}, "fitted_prevalence: must be a probability"),
    ],
)
def test_prevalences_that_cannot_be_are_refused(options, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        cal.PriorShift(**options).fit([0.0, 1.0], [0, 1])


def test_infinite_losses_are_counted_and_named():
    """Step functions that reach 0 and 1, 300 rows, seed 4: no nan, no warning, and the others are compared."""
    x, labels = drawn_event(300, seed=4)
    methods = {"cut": Cut(), "t": cal.TemperatureScaling()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choice = choose(cal.Predictions.from_logits(labels, x), methods, seed=0)
    impossible = int(np.sum((x > 3) != labels))
    assert dict(choice.infinite) == {"cut": impossible}
    assert f"cut: the log loss of {impossible} rows is infinite, so it was not compared." in choice.verdict
    assert choice.table["cut"]["log loss"].interval is None
    assert choice.best == "t"
    assert np.isfinite([choice.gain.value, choice.gain.interval.low, choice.gain.interval.high]).all()
    assert "nan" not in str(choice)
    assert choice.gain == choose(cal.Predictions.from_logits(labels, x), {"t": methods["t"]}).gain


def test_the_table_of_a_choice_has_the_intervals_that_cover():
    x, labels = drawn_event(300, seed=4)
    rows = cal.Predictions.from_logits(labels, x, patient=np.arange(300) // 2)
    choice = choose(rows, {"t": cal.TemperatureScaling()}, groups="patient")
    for name, forecasts in choice.forecasts.items():
        for label, metric in (("ECE", cal.ECE), ("Brier", cal.BRIER), ("log loss", cal.LOG_LOSS)):
            covering = metric(forecasts, interval=cal.Confidence(groups="patient"))
            assert choice.table[name][label].interval == covering.interval
    bare = choose(rows, {"t": cal.TemperatureScaling()}, groups="patient", intervals=False)
    assert bare.gain == choice.gain
    assert all(result.interval is None for results in bare.table.results.values() for result in results.values())


def test_forecasts_with_infinite_losses_are_changed_without_a_made_up_gain():
    labels = np.repeat([0, 1, 0, 1], 15)
    p = np.where(np.arange(60) == 17, 0.0, np.repeat([0.2, 0.8], 30))
    choice = choose(cal.Predictions.from_probs(labels, p), {"platt": cal.PlattScaling()})
    assert (choice.best, choice.gain) == ("platt", None)
    assert "unchanged: the log loss of 1 row is infinite" in choice.verdict


@pytest.mark.parametrize("event", [True, False])
def test_the_identity_changes_no_bit(event):
    x, labels = drawn_event() if event else drawn()
    rows = cal.Predictions.from_logits(labels, x)
    assert np.array_equal(quietly(cal.Identity().fit(rows).recalibrate, rows).values, rows.values)
    p = rows.probabilities.copy()
    assert np.array_equal(cal.Identity("probabilities").fit(p, labels).predict_proba(p), p)
    assert cal.Predictions.from_probs(labels, p).notes == ()


def test_a_method_that_cannot_be_fitted_is_listed_with_its_reason():
    x, labels = drawn(40)
    labels = np.where(labels == 2, 1, labels)
    choice = choose(cal.Predictions.from_logits(labels, x), {"bcts": cal.BiasCorrectedTemperatureScaling()})
    assert list(choice.failures) == ["bcts"]
    assert choice.best == "unchanged"


def test_soft_labels_cannot_be_chosen_on():
    with pytest.raises(cal.CalibrationInputError, match="need one true class per row"):
        choose(cal.Predictions.from_probs([0.5, 0.2], [0.4, 0.1]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("temprature", "did you mean 'temperature'"),
        ("temperature(objectiv='ece')", "did you mean 'objective'"),
        ("temperature('ece')", "must be a name, with options in brackets"),
        ("__import__('os')", "must be a name|is unknown"),
        ("temperature(objective=open('x'))", "must be a name, with options in brackets"),
        ("", "must be a name"),
    ],
)
def test_a_misspelt_method_is_named(text, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        spelled(text)


def test_methods_have_short_names():
    assert {named(name) for name in SHORT} == set(METHODS.values())
    assert named("TemperatureScaling") is cal.TemperatureScaling
    assert spelled("histogram(n_bins=7)").n_bins == 7


def test_every_method_of_the_catalogue_is_public():
    assert set(METHODS) <= set(cal.__all__)
    assert all(getattr(cal, name) is method for name, method in METHODS.items())
    assert all(SHORT[method.short] is method for method in METHODS.values())


def test_costly_methods_are_left_out_where_there_is_much_to_do():
    small, large = (cal.Predictions.from_logits(np.zeros(n, int), np.zeros((n, 1001))) for n in (2, 1000))
    assert list(usual(small)) == [name for name in SHORT if name != "identity"]
    assert set(usual(small)) - set(usual(large)) == {"matrix", "cwmcs", "gp", "dirichlet"}


def test_probabilities_that_are_taken_for_logits_are_warned_of():
    x, labels = drawn()
    p = cal.Predictions.from_logits(labels, x).probabilities
    with pytest.warns(cal.CalibrationWarning, match='pass input="probabilities"'):
        cal.TemperatureScaling().fit(p, labels)


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (0.02, 0.01, 0.03, "lowers it by 0.0200 on rows left out of the choice (90% interval 0.0100 to 0.0300)."),
        (
            -0.02,
            -0.03,
            0.01,
            "raises it by 0.0200 on rows left out of the choice (90% interval of the gain -0.0300 to 0.0100).",
        ),
        (-0.02, -0.03, -0.01, "on new data the log loss is likely to rise, so change nothing."),
    ],
)
def test_what_choosing_is_worth_is_said_with_its_sign_in_words(value, low, high, words):
    choice = choose(read(SHIPPED / "fashion_mnist_validation.npz")[:500], {"temperature": cal.TemperatureScaling()})
    between = dataclasses.replace(choice.gain.interval, low=low, high=high)
    changed = dataclasses.replace(choice, gain=dataclasses.replace(choice.gain, value=value, interval=between))
    assert words in changed.verdict
    sentence = f"the log loss {'falls' if value > 0 else 'rises'} by 0.0200"
    assert sentence in gain(changed)[0]


def test_groups_are_kept_together_in_what_choosing_is_worth():
    """40 patients of 25 rows each, seed 11: what looks sure row by row is not sure patient by patient."""
    rng = np.random.default_rng(11)
    z = rng.normal(0, 1.5, 40)
    happened = (rng.random(40) < 1 / (1 + np.exp(-z))).astype(int)
    patient = np.repeat(np.arange(40), 25)
    rows = cal.Predictions.from_logits(
        happened[patient], 1.35 * z[patient] + rng.normal(0, 0.01, 1000), patient=patient
    )
    methods = {"temperature": cal.TemperatureScaling()}
    together = choose(rows, methods, groups="patient", seed=11)
    apart = choose(rows, methods, seed=11)
    assert together.test.clusters == 40
    assert together.test.p_value > apart.test.p_value
    assert "on new data the gain may be none" in together.verdict
    assert np.ptp([together.gain.interval.low, together.gain.interval.high]) > 2 * np.ptp(
        [apart.gain.interval.low, apart.gain.interval.high]
    )


def test_one_class_alone_cannot_be_chosen_on():
    with pytest.raises(cal.CalibrationInputError, match="need at least two classes that occur"):
        choose(cal.Predictions.from_probs([1] * 30, [0.7] * 30))


def test_names_that_are_truth_values_are_names():
    p = [[0.9, 0.1], [0.1, 0.9]]
    assert cal.ACCURACY(cal.Predictions.from_probs([True, False], p, classes=[True, False])).value == 1


def test_options_of_numpy_are_saved():
    recalibrator = cal.TemperatureScaling(classes=np.array([5, 7])).fit([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [5, 7, 7])
    assert from_json(recalibrator.to_json()).classes == [5, 7]
    assert from_json(recalibrator.to_json()).predict([[3.0, 0.0]]).tolist() == [5]


def test_a_search_that_ends_badly_in_some_folds_is_told():
    z = np.repeat([-2.0, 2.0], 20)
    with pytest.warns(cal.CalibrationWarning, match="in 5 of 5 folds, temperature ended at its lower bound"):
        cross_fit(cal.TemperatureScaling(), z, (z > 0).astype(int))


def test_the_best_of_many_that_do_nothing_is_worth_nothing():
    """Calibrated forecasts and twenty noisy copies, n = 400, seeds 0 to 19: one looks better, and gains nothing."""
    looks, gains = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=400)
        happened = (rng.random(400) < 1 / (1 + np.exp(-z))).astype(int)
        copies = {str(k): cal.Predictions.from_logits(happened, z + 0.15 * rng.normal(size=400)) for k in range(20)}
        forecasts = {"unchanged": cal.Predictions.from_logits(happened, z), **copies}
        losses = {name: cal.LOG_LOSS(predictions).value for name, predictions in forecasts.items()}
        looks.append(losses["unchanged"] - min(losses.values()))
        gains.append(gain_of_choosing(forecasts, np.arange(400) % 5))
    assert np.mean(looks) > 0.003
    assert np.mean([gain.value for gain in gains]) < np.mean(looks) / 4
    assert sum(gain.interval.low < 0 for gain in gains) >= 18


def plainest_by_loop(losses, weight):
    """The rule in plain Python: lists of losses, the first of doing nothing."""
    means = [sum(w * loss for w, loss in zip(weight, row, strict=True)) / sum(weight) for row in losses]
    best = means.index(min(means))
    for k in range(1, len(losses)) if best else ():
        gap = means[k] - means[best]
        apart = [a - b for a, b in zip(losses[k], losses[best], strict=True)]
        error = sum((w * (d - gap)) ** 2 for w, d in zip(weight, apart, strict=True)) ** 0.5 / sum(weight)
        if gap <= error and means[k] < means[0]:
            return k
    return 0


def test_the_plainest_method_within_one_standard_error_of_the_lowest_loss_is_preferred():
    """300 sets of random losses, seed 0."""
    rng = np.random.default_rng(0)
    places = set()
    for _ in range(300):
        losses = rng.normal(0.5, 0.3, (4, 12)) + rng.normal(0, 0.2, (4, 1))
        weight = rng.integers(1, 4, 12).astype(float)
        place = plainest(losses, weight)
        assert place == plainest_by_loop(losses, weight)
        places.add((place, place == np.argmin(losses @ weight)))
    assert len(places) > 5


def test_a_plain_method_is_chosen_where_a_flexible_one_is_not_clearly_better():
    """Over-confident logits, 300 rows, seed 1: Platt scaling has the lowest loss, by less than one standard error."""
    x, labels = drawn_event(300, seed=1)
    methods = {"t": cal.TemperatureScaling(), "platt": cal.PlattScaling()}
    choice = choose(cal.Predictions.from_logits(labels, x), methods)
    assert (choice.ranking[0], choice.best) == ("platt", "t")
    assert "t is the plainest of 2 methods whose cross-fitted log loss, " in choice.verdict
    assert "is within one standard error of the lowest (platt, " in choice.verdict


def test_a_choice_says_whether_answers_change():
    x, labels = drawn(1500, seed=8)
    rows = cal.Predictions.from_logits(labels, x)
    kept = choose(rows, {"t": cal.TemperatureScaling()}, intervals=False)
    assert kept.answers_changed == 0
    assert "likeliest class" not in kept.verdict
    top = choose(rows, {"top_label": cal.TopLabelCalibration()}, intervals=False)
    mapped = cross_fit(cal.TopLabelCalibration(), rows)
    count = int((mapped.predicted != rows.predicted).sum())
    assert top.answers_changed == top.to_dict()["answers_changed"] == count > 0
    accuracies = [cal.ACCURACY(each).value for each in (rows, mapped)]
    assert f"It changes the likeliest class of {count} of 1,500 rows" in top.verdict
    assert "(accuracy {:.4f} to {:.4f})".format(*accuracies) in top.verdict


def test_what_choosing_is_worth_is_that_of_a_loop():
    rng = np.random.default_rng(5)
    z = rng.normal(size=30)
    happened = (rng.random(30) < 1 / (1 + np.exp(-z))).astype(int)
    forecasts = {
        name: cal.Predictions.from_logits(happened, scale * z)
        for name, scale in (("unchanged", 3), ("a", 1), ("b", 0.5))
    }
    fold = rng.integers(0, 4, 30)
    weight = rng.integers(0, 3, 30)
    rows = {name: dataclasses.replace(each, weight=weight.astype(float)) for name, each in forecasts.items()}
    patient = np.arange(30) // 15
    gain, of_patients = (gain_of_choosing(rows, fold, level=0.8, cluster=each) for each in (None, patient))

    def losses(name, part):
        p = rows[name].probabilities
        return [-np.log(p[i] if happened[i] else 1 - p[i]) for i in part]

    gains, by_row = [], {}
    for j in range(4):
        inside, outside = ([i for i in range(30) if (fold[i] == j) == wanted] for wanted in (True, False))
        place = plainest_by_loop([losses(name, outside) for name in rows], [weight[i] for i in outside])
        before, after = (losses(name, inside) for name in ("unchanged", list(rows)[place]))
        by_row |= {i: a - b for i, a, b in zip(inside, before, after, strict=True)}
        gains.append(sum(weight[i] * by_row[i] for i in inside) / sum(weight[i] for i in inside))

    def reach(owner):
        sums = {owner[i]: 0.0 for i in range(30) if weight[i]}
        for i in range(30):
            if weight[i]:
                sums[owner[i]] += weight[i] * (by_row[i] - np.mean(gains)) / sum(weight)
        units = len(sums)
        error = (sum(move**2 for move in sums.values()) * units / (units - 1)) ** 0.5
        folds = scipy.special.stdtrit(3, 0.9) * np.std(gains, ddof=1) * np.sqrt(1 / 4 + 1 / 3)
        return max(folds, scipy.special.stdtrit(units - 1, 0.9) * error), folds

    assert reach(patient)[0] > reach(patient)[1]
    for each, owner in ((gain, range(30)), (of_patients, patient)):
        assert each.value == pytest.approx(np.mean(gains), abs=1e-12)
        assert each.interval.low == pytest.approx(np.mean(gains) - reach(owner)[0], abs=1e-12)
        assert each.interval.high == pytest.approx(np.mean(gains) + reach(owner)[0], abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 4])
def test_calibrated_models_are_kept_and_over_confident_ones_changed_with_an_honest_gain(classes):
    """100 sets of 1,000 rows a kind, seeds 0 to 99: kept at least 88 times (5 % false alarms: chance 1 in 700).

    With a slope of 0.7 changed at least 95 times, and the gain on 20,000 new rows inside of its interval at least 80.
    """

    def rows(rng, n, slope):
        z = rng.normal(0, 1.5, (n, classes) if classes > 2 else n)
        if classes == 2:
            return cal.Predictions.from_logits(rng.random(n) < 1 / (1 + np.exp(-z)), z / slope)
        return cal.Predictions.from_logits((z + rng.gumbel(size=z.shape)).argmax(axis=1), z / slope)

    methods = {"temperature": cal.TemperatureScaling(), "platt": cal.PlattScaling(), "shift": cal.PriorShift()}
    kept, changed, held = 0, 0, 0
    for seed in range(100):
        rng = np.random.default_rng([seed, classes])
        kept += choose(rows(rng, 1000, 1.0), methods, intervals=False).best == "unchanged"
        off, new = rows(rng, 1000, 0.7), rows(rng, 20_000, 0.7)
        choice = choose(off, methods, intervals=False)
        if choice.gain is not None:
            after = methods[choice.best].fit(off).recalibrate(new)
            gain = cal.LOG_LOSS(new).value - cal.LOG_LOSS(after).value
            changed += 1
            held += choice.gain.interval.low <= gain <= choice.gain.interval.high
    assert kept >= 88
    assert changed >= 95
    assert held >= 80


def test_a_method_that_rules_out_one_row_is_never_chosen_in_a_fold():
    """It is the best on the folds without that row: the gain is that of the next best."""
    happened = np.tile([0, 1], 20)
    rows = {
        name: cal.Predictions.from_probs(happened, np.where(happened, p, 1 - p))
        for name, p in (
            ("unchanged", 0.5),
            ("better", 0.7),
            ("best but for one", np.where(np.arange(40) == 3, 0.0, 0.9)),
        )
    }
    gain = gain_of_choosing(rows, np.arange(40) % 5)
    assert gain.value == pytest.approx(np.log(0.7 / 0.5), abs=1e-12)
    assert gain.interval.low == pytest.approx(gain.value, abs=1e-12)
