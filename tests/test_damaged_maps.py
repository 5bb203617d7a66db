"""Damaged maps: a saved map whose seal fits is still believed only if a fit can have made it."""

import json
import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibrate import METHODS, from_json, saved

RNG = np.random.default_rng(3)
Z = RNG.normal(size=(60, 3)) * 2
Y = np.append(np.arange(3), np.where(RNG.random(57) < 0.7, Z[3:].argmax(1), RNG.integers(0, 3, 57)))
HAPPENED = np.append([0, 1], (RNG.random(58) < 1 / (1 + np.exp(-Z[2:, 0]))).astype(int))
MANY = (RNG.random((60, 2)) < 1 / (1 + np.exp(-Z[:, :2]))).astype(int)
OTHERS = {
    "classes": RNG.normal(size=(40, 3)) * 30,
    "event": RNG.normal(size=40) * 30,
    "labels": RNG.normal(size=(40, 2)) * 9,
}


def fitted(name, kind):
    method = METHODS[name]()
    if name in ("MatrixScaling", "DirichletCalibration"):
        method = METHODS[name](off_diagonal=1.0, intercept=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        if kind == "labels":
            return method.fit(cal.Predictions.from_multilabel(MANY, Z[:, :2], logits=True))
        return method.fit(Z, Y) if kind == "classes" else method.fit(Z[:, 0], HAPPENED)


def cases():
    for name, method in METHODS.items():
        yield name, "classes"
        if name != "TopLabelCalibration":
            yield name, "event"
        if method.of_events:
            yield name, "labels"


def resealed(document):
    """A document with what a fit would have written around it; NaN and infinities as JSON cannot hold them."""
    contents = {key: value for key, value in document.items() if key not in ("calibrant", "version", "seal")}
    try:
        return saved.write(contents)
    except cal.CalibrationInputError:  # what JSON cannot hold, some writers write nevertheless
        return json.dumps({**document, "seal": ""})


def paths(value, path=()):
    """Where numbers and lists of numbers are in what was learnt."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from paths(part, (*path, key))


def replaced(value, path, change):
    if not path:
        return change(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], change)
    return copy


CHANGES = {
    "null": lambda value: None,
    "text": lambda value: "1.0",
    "true": lambda value: True,
    "nan": lambda value: float("nan"),
    "infinity": lambda value: float("inf"),
    "zero": lambda value: 0.0,
    "huge": lambda value: 1e308,
    "tiny": lambda value: 5e-324,
    "negative": lambda value: -value if isinstance(value, (int, float)) else [],
    "half": lambda value: (
        value / 2 if isinstance(value, (int, float)) else value[: len(value) // 2] if isinstance(value, list) else {}
    ),
    "twice": lambda value: [value, value],
    "an object": lambda value: {"arrays": [value]},
}


@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_a_map_that_is_believed_gives_probabilities(name, kind):
    recalibrator = fitted(name, kind)
    whole = json.loads(recalibrator.to_json())
    places = list(paths(whole["learnt"]))
    chosen = [places[index] for index in np.unique(np.linspace(0, len(places) - 1, 14).astype(int))]
    refusals = 0
    for place in chosen:
        for words, change in CHANGES.items():
            text = resealed({**whole, "learnt": replaced(whole["learnt"], place, change)})
            try:
                again = from_json(text)
            except cal.CalibrationInputError:
                refusals += 1
                continue
            p = again.predict_proba(OTHERS[kind])
            assert p.shape == OTHERS[kind].shape, (place, words)
            assert np.isfinite(p).all(), (place, words)
            assert ((p >= 0) & (p <= 1)).all(), (place, words)
            assert kind != "classes" or np.allclose(p.sum(axis=1), 1), (place, words)
    assert refusals or not recalibrator.learns


@pytest.mark.parametrize("value", [None, 0, 0.0, -1.0, 1e-9, 1e9, "2", True, [1.0], [2.0, 3.0]])
def test_what_is_no_temperature_is_refused(value):
    whole = json.loads(fitted("TemperatureScaling", "classes").to_json())
    with pytest.raises(cal.CalibrationInputError, match="does not fit TemperatureScaling"):
        from_json(resealed({**whole, "learnt": {"temperature_": value}}))


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_in_json_is_named_once(token):
    text = fitted("TemperatureScaling", "classes").to_json()
    number = str(json.loads(text)["learnt"]["temperature_"])
    with pytest.raises(cal.CalibrationInputError, match=f"must be JSON, got {token} is no number"):
        from_json(text.replace(number, token))


@pytest.mark.parametrize(
    "changed",
    [
        {"classes": [0, 1]},
        {"classes": [0, 1, 1]},
        {"classes": [0, 1, None]},
        {"classes": "abc"},
        {"classes": [[0], [1], [2]]},
        {"kind": "event"},
        {"kind": "labels"},
        {"kind": "rows"},
        {"options": []},
        {"options": {"input": "odds"}},
        {"fitted_on": None},
        {"certificate": {}},
        {"certificate": None},
        {"learnt": []},
        {"learnt": {}},
        {"learnt": {"weights_": [1.0, 1.0, 1.0], "bias_": [0.0, 0.0]}},
        {"learnt": {"weights_": [1.0, 1.0, 1.0], "bias_": [0.0, 0.0, 0.0], "more_": 1.0}},
        {"more": 1},
    ],
    ids=str,
)
def test_contents_that_do_not_belong_together_are_refused(changed):
    whole = json.loads(fitted("VectorScaling", "classes").to_json())
    with pytest.raises(cal.CalibrationInputError, match="does not fit VectorScaling"):
        from_json(resealed({**whole, **changed}))


def test_each_method_refuses_what_it_cannot_have_learnt():
    """What gives probabilities, but not those of this method."""
    impossible = {
        "BetaCalibration": ("event", {"a_": -1.0}),
        "IsotonicCalibration": ("event", {"thresholds_": [0.1, 0.4], "values_": [0.9, 0.2]}),
        "HistogramBinning": ("event", {"n_bins_": 3, "values_": [0.1, 0.9]}),
        "BBQ": ("event", {"thresholds_": [0.6, 0.4], "values_": [0.1, 0.5, 0.9]}),
        "EnsembleTemperatureScaling": ("classes", {"weights_": [0.5, 0.5, 0.5]}),
        "GPCalibration": ("event", {"lengthscale_": -1.0}),
        "ClasswiseMCSTemperatureScaling": ("classes", {"gamma_": 1.0}),
        "MatrixScaling": ("classes", {"off_diagonal_": -1.0}),
        "TopLabelCalibration": ("classes", {"curves_": {"arrays": [[0.5], [0.5], [0.5]]}}),
    }
    for name, (kind, learnt) in impossible.items():
        whole = json.loads(fitted(name, kind).to_json())
        with pytest.raises(cal.CalibrationInputError, match=f"does not fit {name}"):
            from_json(resealed({**whole, "learnt": {**whole["learnt"], **learnt}}))


@pytest.mark.parametrize("name", METHODS)
def test_no_flipped_bit_of_a_map_is_believed(name):
    whole = fitted(name, "classes").to_json().encode()
    for place in range(0, 8 * len(whole), max(1, len(whole) // 8)):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        try:
            again = from_json(damaged.decode("utf-8", "replace"))
        except cal.CalibrationInputError:
            continue
        assert json.loads(again.to_json()) == json.loads(whole)  # a blank that became a line, or the like


def test_apply_writes_nothing_that_predictions_would_refuse(tmp_path, monkeypatch):
    pytest.importorskip("click")
    from calibrant.cli.commands import run

    np.savez(tmp_path / "scores.npz", label=Y, logits=Z)
    (tmp_path / "map.json").write_text(fitted("TemperatureScaling", "classes").to_json())
    monkeypatch.setattr(cal.TemperatureScaling, "_map", lambda self, scores: np.full(scores.values.shape, np.nan))
    monkeypatch.setattr(saved, "require_probabilities", lambda *fitted: None)
    files = [str(tmp_path / name) for name in ("map.json", "scores.npz", "out.npz")]
    monkeypatch.setattr("sys.argv", ["calibrant", "recalibrate", "apply", *files[:2], "-o", files[2]])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 3
    assert not (tmp_path / "out.npz").exists()
