"""Independent labels: every method of events fits them label by label, as it would fit each alone."""

import json
import warnings
from dataclasses import astuple, dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import recalibrate as command
from calibrant.door import leaks
from calibrant.files import ScoreColumns
from calibrant.recalibrate import METHODS, Recalibrator, choose, cross_fit, from_json
from calibrant.recalibrate.fitting.certificate import Ending
from calibrant.recalibrate.fitting.lessons import Lesson
from calibrant.recalibrate.folds import fold_of
from calibrant.recalibrate.methods import usual
from typed import typed

NAMES = ("dog", "outdoors", "snow")
OF_EVENTS = [name for name, method in METHODS.items() if method.of_events]
OF_CLASSES = [name for name, method in METHODS.items() if not method.of_events]
FAST = {"HistogramBinning": {"n_bins": 10}, "GPCalibration": {"n_inducing": 4}}
"""Options that spare the searches which other tests look at."""


def quietly(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        return call(*arguments, **options)


def drawn(n=300, seed=0, slope=0.6, labels=3):
    """Logits of labels, `1 / slope` times too large; and which labels are true."""
    rng = np.random.default_rng(seed)
    z = rng.normal(loc=np.linspace(-2, 1, labels), scale=2.0, size=(n, labels))
    return z / slope, (rng.random(z.shape) < 1 / (1 + np.exp(-z))).astype(int)


def labelled(input="logits", dtype=np.float64, weighted=False, **options):
    z, truth = drawn(**options)
    values = (z if input == "logits" else 1 / (1 + np.exp(-z))).astype(dtype)
    weight = np.arange(len(truth)) % 4 * 0.5 if weighted else None
    return cal.Predictions.from_multilabel(
        truth, values, logits=input == "logits", sample_weight=weight, classes=NAMES, row=np.arange(len(truth))
    )


def unfitted(name, **options):
    return METHODS[name](**{**FAST.get(name, {}), **options})


# ---- the fit ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OF_EVENTS)
@pytest.mark.parametrize("input", ["logits", "probabilities"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_are_fitted_as_each_would_be_alone_to_the_bit(name, input, dtype, weighted):
    rows, others = labelled(input, dtype, weighted, n=80), labelled(input, dtype, n=80, seed=1)
    together = quietly(unfitted(name, input=input).fit, rows)
    alone = [
        quietly(unfitted(name, input=input).fit, rows.values[:, k].copy(), rows.labels[:, k], rows.weight)
        for k in range(3)
    ]
    expected = np.stack([one.predict_proba(others.values[:, k].copy()) for k, one in enumerate(alone)], axis=1)
    logs = np.stack([one.predict_log_proba(others.values[:, k].copy()) for k, one in enumerate(alone)], axis=1)
    assert np.array_equal(together.predict_proba(others.values), expected)
    assert np.array_equal(together.predict_log_proba(others.values), logs)
    assert np.array_equal(together.predict(others.values), (expected > 0.5).astype(int))
    mapped = together.recalibrate(others)
    assert mapped.probabilities == pytest.approx(expected, abs=1e-12)
    for k, (label, one) in enumerate(zip(NAMES, alone, strict=True)):
        assert np.array_equal(
            mapped.values[:, k],
            one.recalibrate(cal.Predictions.from_logits([0] * 80, others.values[:, k].copy())).values
            if input == "logits"
            else one.recalibrate(cal.Predictions.from_probs([0] * 80, others.values[:, k].copy())).values,
        )
        assert together.maps_[label].to_json() == one.to_json()


@pytest.mark.parametrize("name", OF_EVENTS)
def test_the_certificate_is_the_mean_over_labels(name):
    rows = labelled(weighted=True)
    fitted = quietly(unfitted(name).fit, rows)
    parts = [each.certificate_ for each in fitted.maps_.values()]
    certificate = fitted.certificate_
    assert certificate.log_loss_before == pytest.approx(cal.LOG_LOSS(rows).value, abs=1e-9)
    after = quietly(fitted.recalibrate, rows)
    assert certificate.log_loss_after == pytest.approx(cal.LOG_LOSS(after).value, abs=1e-9)
    assert certificate.log_loss_after == sum(part.log_loss_after for part in parts) / 3
    assert certificate.n == 300
    assert np.isnan([certificate.accuracy_before, certificate.accuracy_after]).all()
    assert certificate.converged == all(part.converged for part in parts)
    assert "accuracy" not in str(certificate)


@pytest.mark.parametrize("name", OF_EVENTS)
def test_a_map_of_labels_travels_as_json(name):
    fitted = quietly(unfitted(name).fit, labelled())
    text = fitted.to_json()
    again = from_json(text)
    other, _ = drawn(seed=2)
    assert np.array_equal(again.predict_proba(other), fitted.predict_proba(other))
    assert (again.to_json(), again.get_params(), list(again.maps_)) == (text, fitted.get_params(), list(NAMES))
    assert again.maps_["snow"].to_json() == fitted.maps_["snow"].to_json()
    document = json.loads(text)
    assert (document["version"], document["kind"], document["classes"]) == (1, "labels", list(NAMES))
    assert [list(part["learnt"]) for part in document["learnt"]] == [list(fitted.learns)] * 3


def test_maps_that_are_not_those_of_the_labels_are_refused():
    document = json.loads(cal.TemperatureScaling().fit(labelled()).to_json())
    del document["seal"]
    from calibrant.recalibrate import saved

    for changed in ({"learnt": document["learnt"][:2]}, {"learnt": {"temperature_": 2.0}}, {"kind": "classes"}):
        contents = {key: value for key, value in {**document, **changed}.items() if key not in ("calibrant", "version")}
        with pytest.raises(cal.CalibrationInputError, match="does not fit TemperatureScaling"):
            from_json(saved.write(contents))


def test_columns_weights_and_names_stay_with_the_samples():
    rows = labelled(weighted=True)
    mapped = cal.PlattScaling().fit(labelled(seed=3)).recalibrate(rows)
    assert (mapped.kind, mapped.classes, list(mapped.columns)) == ("labels", NAMES, ["row"])
    assert np.array_equal(mapped.weight, rows.weight)
    assert np.array_equal(mapped.labels, rows.labels)
    assert mapped.logits
    assert not quietly(cal.IsotonicCalibration().fit, labelled(seed=3)).recalibrate(rows).logits


def test_labels_without_names_are_numbered():
    z, truth = drawn()
    fitted = cal.TemperatureScaling().fit(cal.Predictions.from_multilabel(truth, z, logits=True))
    assert list(fitted.maps_) == fitted.classes_.tolist() == [0, 1, 2]
    named = cal.TemperatureScaling(classes=["a", "b", "c"]).fit(cal.Predictions.from_multilabel(truth, z, logits=True))
    assert list(named.maps_) == ["a", "b", "c"]
    assert [each.classes for each in named.maps_.values()] == [None] * 3


def test_one_label_is_a_label():
    z, truth = drawn(labels=1)
    fitted = cal.PlattScaling().fit(cal.Predictions.from_multilabel(truth, z, logits=True, classes=["dog"]))
    assert fitted.predict_proba(z).shape == (300, 1)
    assert from_json(fitted.to_json()).predict_proba(z).shape == (300, 1)
    with pytest.raises(cal.CalibrationInputError, match="X: must be 1 columns, as fitted"):
        fitted.predict_proba(z[:, 0])


@pytest.mark.parametrize(
    ("method", "message", "bound"),
    [
        (cal.PlattScaling(), "label snow: the event never comes true", "intercept of snow"),
        (cal.TemperatureScaling(), "label snow: temperature ended at its lower bound", "temperature of snow"),
    ],
)
def test_a_label_that_is_never_true_is_named(method, message, bound):
    z, truth = drawn()
    truth[:, 2], z[:, 2] = 0, -1 - np.abs(z[:, 2])
    with pytest.warns(cal.CalibrationWarning, match=message):
        fitted = method.fit(cal.Predictions.from_multilabel(truth, z, logits=True, classes=NAMES))
    assert not fitted.certificate_.converged
    assert fitted.certificate_.at_bound == (bound,)
    assert fitted.maps_["dog"].certificate_.converged


def test_the_only_label_is_named_too():
    rows = cal.Predictions.from_multilabel(np.zeros((9, 1)), np.zeros((9, 1)), logits=True, classes=["dog"])
    with pytest.warns(cal.CalibrationWarning, match="PlattScaling: label dog: the event never comes true"):
        cal.PlattScaling().fit(rows)


def test_what_is_refused_is_said_of_its_label():
    z, truth = drawn()
    z[4, 1] = 1e200
    with pytest.raises(cal.CalibrationInputError, match=r"below 1e\+100 in size, got 1e\+200 at label outdoors"):
        cal.TemperatureScaling().fit(cal.Predictions.from_multilabel(truth, z, logits=True, classes=NAMES))


def test_a_map_forgets_what_it_was_fitted_on_before():
    z, truth = drawn()
    rows = cal.Predictions.from_multilabel(truth, z, logits=True)
    scaling = cal.TemperatureScaling().fit(z[:, 0], truth[:, 0])
    alone = scaling.temperature_
    scaling.fit(rows)
    assert not hasattr(scaling, "temperature_")
    assert scaling.maps_[0].temperature_ == alone
    scaling.fit(z[:, 0], truth[:, 0])
    assert (scaling.maps_, scaling.temperature_) == ({}, alone)
    assert scaling.predict_proba(z[:, 0]).shape == (300,)


def test_scores_of_labels_need_not_sum_to_one_and_must_be_as_many():
    fitted = cal.BetaCalibration("probabilities").fit(labelled("probabilities"))
    assert fitted.predict_proba([[0.9, 0.9, 0.9], [0.1, 0.0, 0.2]]).shape == (2, 3)
    with pytest.raises(cal.CalibrationInputError, match="X: must be 3 columns, as fitted"):
        fitted.predict_proba([[0.9, 0.9]])
    with pytest.raises(cal.CalibrationInputError, match=r"X: must lie in \[0, 1\]"):
        fitted.predict_proba([[0.9, 0.9, 2.0]])


@dataclass(eq=False)
class Halved(Recalibrator):
    """One's own: half the log-odds, and probabilities where they were all negative."""

    input: str = "logits"
    classes: object = None
    learns: ClassVar[tuple[str, ...]] = ("low_",)

    def _learn(self, lesson):
        self.low_ = float(lesson.scores.log_odds.max())
        return Ending()

    def _logits(self, scores):
        return None if self.low_ < 0 else scores.log_odds / 2

    def _map(self, scores):
        return 1 / (1 + np.exp(-scores.log_odds / 2))


def test_a_method_of_ones_own_is_fitted_label_by_label():
    z, truth = drawn()
    z[:, 1] = -np.abs(z[:, 1])
    rows = cal.Predictions.from_multilabel(truth, z, logits=True)
    fitted = Halved().fit(rows)
    assert np.array_equal(fitted.predict_proba(z), 1 / (1 + np.exp(-z / 2)))
    mapped = quietly(fitted.recalibrate, rows)
    assert not mapped.logits  # one label has no logits
    assert mapped.values == pytest.approx(1 / (1 + np.exp(-z / 2)), abs=1e-15)
    again = from_json(fitted.to_json(), pieces={"Halved": Halved})
    assert np.array_equal(again.predict_proba(z), fitted.predict_proba(z))


# ---- fitting on predictions, of every kind ---------------------------------------------------------------------------


def class_rows(weighted=False):
    rng = np.random.default_rng(0)
    z = rng.normal(scale=2.0, size=(200, 3))
    truth = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    return z, truth, rng.integers(1, 4, 200) / 2 if weighted else None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [None, ["cat", "dog", "owl"]])
def test_predictions_stand_for_scores_and_labels(weighted, classes):
    z, truth, weight = class_rows(weighted)
    rows = cal.Predictions.from_logits(truth, z, sample_weight=weight, classes=classes)
    fitted = cal.VectorScaling().fit(rows)
    again = cal.VectorScaling().fit(z, truth, weight)
    assert np.array_equal(fitted.predict_proba(z), again.predict_proba(z))
    assert fitted.certificate_ == again.certificate_
    assert fitted.classes_.tolist() == (classes or [0, 1, 2])
    assert classes or fitted.to_json() == again.to_json()


def test_predictions_of_an_event_and_of_answers_stand_for_theirs():
    z, truth = (array[:, 0] for array in drawn())
    p = 1 / (1 + np.exp(-z))
    weight = np.arange(300) % 3 + 1.0
    expected = cal.PlattScaling("probabilities").fit(p, truth, weight)
    for rows in (
        cal.Predictions.from_probs(truth, p, sample_weight=weight),
        cal.Predictions.from_confidence(truth, p, sample_weight=weight),
    ):
        fitted = cal.PlattScaling("probabilities").fit(rows)
        assert fitted.to_json() == expected.to_json()
        assert quietly(fitted.recalibrate, rows).kind == rows.kind
    named = cal.Predictions.from_logits(np.where(truth, "win", "loss"), z, classes=["loss", "win"])
    assert cal.PlattScaling().fit(named).predict([9.0, -9.0]).tolist() == ["win", "loss"]


def test_names_given_to_a_method_must_be_those_of_the_predictions():
    z, truth, _ = class_rows()
    named = cal.Predictions.from_logits(truth, z, classes=["cat", "dog", "owl"])
    assert cal.TemperatureScaling(classes=["cat", "dog", "owl"]).fit(named).classes_.tolist() == ["cat", "dog", "owl"]
    assert cal.TemperatureScaling(classes=[5, 6, 7]).fit(cal.Predictions.from_logits(truth, z)).classes_[0] == 5
    with pytest.raises(cal.CalibrationInputError, match="must name the classes as the method does, got cat, dog, owl"):
        cal.TemperatureScaling(classes=["dog", "cat", "owl"]).fit(named)
    with pytest.raises(cal.CalibrationInputError, match="classes: must be 3 names"):
        cal.TemperatureScaling(classes=["dog", "cat"]).fit(named)


Z, TRUTH, _ = class_rows()
ROWS = cal.Predictions.from_logits(TRUTH, Z)
TOP = cal.Predictions.from_top_k([7, 3], [[7, 2], [0, 3]], [[0.8, 0.1], [0.5, 0.3]], n_classes=1000)
ALL_RANKED = cal.Predictions.from_top_k([1, 0], [[1, 0], [0, 1]], [[0.8, 0.2], [0.5, 0.5]], n_classes=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ROWS, TRUTH), "y: must be left out, got Predictions and y"),
        ((ROWS, None, np.ones(200)), "sample_weight: must be left out, got Predictions and sample_weight"),
        ((Z,), r"y: is required, got None; call fit\(X, y\) or fit\(predictions\)"),
        ((TOP,), "recalibration: needs the probability of each of the 1000 classes, got the 2 likeliest"),
        ((ALL_RANKED,), "recalibration: needs the probability of each of the 2 classes"),
        (
            (cal.Predictions.from_probs([0, 1], [0.5, 0.2]),),
            'predictions: must hold logits, the input of the recalibrator, got probabilities; fit it with input="prob',
        ),
        ((cal.Predictions.from_logits([0.5, 0.2], [0.5, 0.2]),), "need one true class per row, got soft labels"),
        ((ROWS[:0],), "must have rows to learn from, got 0 rows"),
        ((labelled(weighted=True)[[0, 4]],), "must have rows to learn from, got 2 rows"),
    ],
)
def test_what_cannot_be_fitted_says_why(arguments, message):
    with pytest.raises(cal.CalibrationInputError, match=message):
        cal.TemperatureScaling().fit(*arguments)


@pytest.mark.parametrize("name", OF_CLASSES)
def test_methods_of_classes_refuse_labels(name):
    with pytest.raises(cal.CalibrationInputError, match=f"{name}: needs classes of which one is true, got independent"):
        unfitted(name).fit(labelled())


@pytest.mark.parametrize("input", ["logits", "probabilities"])
def test_rows_of_several_labels_name_the_other_way(input):
    rows = labelled(input)
    expected = r"y: rows must sum to 1, got .*; fit\(Predictions.from_multilabel\(y, X\)\) fits independent labels"
    with pytest.raises(cal.CalibrationInputError, match=expected):
        cal.PlattScaling(input).fit(rows.values, rows.labels)


def test_one_hot_rows_stay_classes():
    fitted = cal.TemperatureScaling().fit(Z, np.eye(3)[TRUTH])
    assert fitted.maps_ == {}
    assert fitted.to_json() == cal.TemperatureScaling().fit(Z, TRUTH).to_json()


def test_maps_of_labels_and_of_classes_do_not_take_each_others_predictions():
    of_labels, of_classes = cal.PlattScaling().fit(labelled()), cal.PlattScaling().fit(ROWS)
    with pytest.raises(cal.CalibrationInputError, match="must be independent labels, as fitted, got 3 classes"):
        of_labels.recalibrate(ROWS)
    with pytest.raises(cal.CalibrationInputError, match="of one event or of classes, as fitted, got 3 independent"):
        of_classes.recalibrate(labelled())
    with pytest.raises(cal.CalibrationInputError, match="needs the probability of each of the 2 classes"):
        cal.IsotonicCalibration("probabilities").fit([[0.2, 0.8], [0.5, 0.5]], [1, 0]).recalibrate(ALL_RANKED)


def test_a_map_of_labels_is_not_exported():
    fitted = cal.TemperatureScaling().fit(labelled())
    for export in (fitted.as_torch, lambda: fitted.to_onnx("map.onnx")):
        with pytest.raises(cal.CalibrationInputError, match="got TemperatureScaling of independent labels; every map"):
            export()


def test_options_are_copied_without_what_was_learnt():
    pytest.importorskip("sklearn")
    from sklearn.base import clone

    fitted = cal.PlattScaling(smooth_targets=True).fit(labelled())
    for fresh in (fitted.copy(), clone(fitted)):
        assert fresh.get_params() == fitted.get_params()
        assert not hasattr(fresh, "maps_")


# ---- leaks -----------------------------------------------------------------------------------------------------------


def test_measuring_the_fitting_rows_of_labels_is_warned_of():
    rows = labelled("probabilities")
    for fitted in (one := cal.PlattScaling("probabilities").fit(rows), from_json(one.to_json())):
        p = fitted.predict_proba(rows.values)
        with pytest.warns(cal.CalibrationWarning, match="the numbers flatter it"):
            measured = cal.Predictions.from_multilabel(rows.labels, p)
        assert any(leaks.FLAG in note for note in cal.ECE(measured).notes)
        assert leaks.is_marked(measured.values)
        assert leaks.is_marked(fitted.maps_["snow"].predict_proba(rows.values[:, 2].copy()))
        with pytest.warns(cal.CalibrationWarning, match="the numbers flatter it"):
            assert fitted.recalibrate(rows).flags[leaks.FLAG].sum() == 300


def test_measuring_other_rows_of_labels_is_not_warned_of():
    fitted = cal.PlattScaling().fit(labelled())
    assert not leaks.is_marked(fitted.predict_proba(drawn(seed=1)[0]))
    assert fitted.recalibrate(labelled(seed=1)).flags == {}


# ---- cross-fitting and choosing --------------------------------------------------------------------------------------


def test_folds_share_out_every_label():
    """A rare label, 20 of 300 rows, has 4 in each of 5 folds, whatever the others do."""
    z, truth = drawn()
    truth[:, 2] = 0
    truth[np.random.default_rng(5).choice(300, 20, replace=False), 2] = 1
    rows = cal.Predictions.from_multilabel(truth, z, logits=True)
    dealt = fold_of(Lesson.of(rows, input="logits"), 5, 0)
    assert np.ptp(np.bincount(dealt)) <= 1
    assert np.bincount(dealt[truth[:, 2] == 1], minlength=5).tolist() == [4] * 5


def test_each_row_of_labels_is_mapped_by_a_map_that_never_saw_it():
    rows = labelled(weighted=True)
    mapped = cross_fit(cal.PlattScaling(), rows, folds=4, seed=1)
    dealt = fold_of(Lesson.of(rows, input="logits"), 4, 1)
    for fold in range(4):
        fitted = cal.PlattScaling().fit(rows[dealt != fold])
        assert np.array_equal(mapped.values[dealt == fold], fitted.recalibrate(rows[dealt == fold]).values)
    assert (mapped.kind, mapped.classes, mapped.flags, list(mapped.columns)) == ("labels", NAMES, {}, ["row"])
    assert np.array_equal(mapped.labels, rows.labels)
    assert np.array_equal(mapped.weight, rows.weight)


def test_cross_fitting_predictions_of_classes_is_that_of_their_arrays():
    z, truth, weight = class_rows(weighted=True)
    rows = cal.Predictions.from_logits(
        truth, z, sample_weight=weight, classes=["cat", "dog", "owl"], row=np.arange(200)
    )
    mapped = cross_fit(cal.TemperatureScaling(), rows, seed=3)
    assert np.array_equal(
        mapped.values, cross_fit(cal.TemperatureScaling(), z, truth, seed=3, sample_weight=weight).values
    )
    assert (mapped.classes, list(mapped.columns)) == (("cat", "dog", "owl"), ["row"])
    assert np.array_equal(mapped.weight, weight)


def test_choosing_lowers_the_log_loss_of_labels_on_new_rows():
    """Logits over 0.6, 400 rows of 3 labels to choose on, 5,000 new ones, seeds 0 and 1."""
    rows, new = labelled(n=400), labelled(n=5000, seed=1)
    methods = {"temperature": cal.TemperatureScaling(), "platt": cal.PlattScaling(), "vector": cal.VectorScaling()}
    choice = choose(rows, methods, seed=0)
    assert list(choice.table["unchanged"]) == ["log loss", "Brier", "ECE"]
    assert "needs classes of which one is true" in choice.failures["vector"]
    assert choice.best in ("temperature", "platt")
    assert choice.gain.interval.low < 0.03 < choice.gain.interval.high
    assert choice.verdict.startswith("The forecasts are not calibrated")
    assert choice.table["unchanged"]["log loss"].value == cal.LOG_LOSS(rows).value
    after = methods[choice.best].fit(rows).recalibrate(new)
    assert cal.LOG_LOSS(after).value < cal.LOG_LOSS(new).value - 0.02
    parts = [cal.LOG_LOSS(cal.Predictions.from_logits(new.labels[:, k], after.values[:, k].copy())) for k in range(3)]
    assert cal.LOG_LOSS(after).value == pytest.approx(np.mean([part.value for part in parts]), abs=1e-12)


def test_what_choosing_is_worth_counts_every_label():
    """The first label is forecast well; choosing helps by what it does to the others."""
    z, truth = drawn(n=600, labels=4)
    z[:, 0] *= 0.6
    rows = cal.Predictions.from_multilabel(truth, z, logits=True, patient=np.arange(600) // 2)
    choice = choose(rows, {"t": cal.TemperatureScaling()}, groups="patient")
    before, after = (cal.LOG_LOSS(choice.forecasts[name]).value for name in ("unchanged", "t"))
    assert choice.gain.value == pytest.approx(before - after, abs=0.02)


def test_methods_worth_comparing_on_labels_are_those_of_events():
    assert list(usual(labelled())) == [
        "prior_shift",
        "temperature",
        "platt",
        "beta",
        "isotonic",
        "histogram",
        "bbq",
        "gp",
    ]


def test_the_likeliest_alone_and_labels_that_never_vary_cannot_be_chosen_on():
    with pytest.raises(cal.CalibrationInputError, match="needs the probability of each of the 1000 classes"):
        choose(TOP)
    with pytest.raises(cal.CalibrationInputError, match="need at least two classes that occur"):
        choose(cal.Predictions.from_multilabel(np.zeros((30, 2)), np.full((30, 2), 0.5)))


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch, capsys):
    """The command, for which every file holds labels."""
    rows = labelled("probabilities", n=200)
    monkeypatch.setattr(command, "read", lambda files, **keys: rows)
    columns = {f"y_{name}": rows.labels[:, k] for k, name in enumerate(NAMES)}
    scores = ScoreColumns(rows.values + 0.0, False, NAMES, columns)
    monkeypatch.setattr(command.io, "read_scores", lambda *_, **__: scores)
    return lambda *words: astuple(typed(monkeypatch, capsys, ["recalibrate", *words]))


def test_the_command_fits_and_applies_label_by_label(run, tmp_path):
    code, out, err = run("fit", "rows.csv", "-m", "platt", "-o", tmp_path / "map.json")
    assert (code, err) == (0, "")
    assert "PlattScaling on 200 rows, 3 independent labels, probabilities: converged" in out
    assert "accuracy" not in out
    fitted = from_json((tmp_path / "map.json").read_text())
    for name in NAMES:
        assert f"  {name} slope {fitted.maps_[name].slope_:.6g}\n" in out
    code, out, err = run("apply", tmp_path / "map.json", "rows.csv", "-o", tmp_path / "after.csv")
    assert (code, "200 rows through PlattScaling" in out) == (0, True)
    assert "the numbers flatter it" in err
    header, first = (tmp_path / "after.csv").read_text().splitlines()[:2]
    assert header == "y_dog,y_outdoors,y_snow,p_dog,p_outdoors,p_snow"
    p = quietly(fitted.predict_proba, labelled("probabilities", n=200).values)
    assert [float(cell) for cell in first.split(",")[3:]] == p[0].tolist()


def test_the_command_chooses_label_by_label(run, tmp_path):
    words = ("choose", "rows.csv", "-m", "platt", "-m", "temperature", "-o", tmp_path / "map.json")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "SCE" not in out
    assert "lowest cross-fitted log loss" in out
    assert list(from_json((tmp_path / "map.json").read_text()).maps_) == list(NAMES)


def test_the_command_shows_what_was_learnt_of_a_dozen_labels(monkeypatch, capsys, tmp_path):
    z, truth = drawn(labels=15)
    rows = cal.Predictions.from_multilabel(truth, z, logits=True)
    monkeypatch.setattr(command, "read", lambda files, **keys: rows)
    _, out, _ = astuple(typed(monkeypatch, capsys, ["recalibrate", "fit", "rows.csv", "-o", tmp_path / "map.json"]))
    assert out.count(" temperature ") == 12
    assert "  ... and 3 more labels" in out


# ---- logits of labels ------------------------------------------------------------------------------------------------


def test_logits_of_labels_are_probabilities_by_the_sigmoid():
    z, truth = drawn()
    logits = cal.Predictions.from_multilabel(truth, z, logits=True)
    plain = cal.Predictions.from_multilabel(truth, 1 / (1 + np.exp(-z)))
    assert logits.logits
    assert not plain.logits
    assert cal.ECE(logits).value == pytest.approx(cal.ECE(plain).value, abs=1e-12)
    assert cal.LOG_LOSS(replace(logits)).value == pytest.approx(cal.LOG_LOSS(plain).value, abs=1e-9)
    with pytest.raises(cal.CalibrationInputError, match="logits: must be True or False, got ndarray; forecasts come"):
        cal.Predictions.from_multilabel(truth, z, logits=z)
    with pytest.raises(cal.CalibrationInputError, match="y_proba: must be finite"):
        cal.Predictions.from_multilabel(truth, np.where(z > 3, np.inf, z), logits=True)
