"""Recalibrators of one's own: a class from elsewhere that declares the same facts is treated the same."""

import __future__

import ast
import inspect
import json
import sys
import types
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibrate import METHODS, Recalibrator, choose, cross_fit, from_json
from calibrant.recalibrate.fitting.certificate import Ending
from toy import Z, y

FACTS = ("short", "of_events", "costly", "affine")
STRENGTHS = {"off_diagonal": 1e-2, "intercept": 1e-2}
FAST = {"MatrixScaling": STRENGTHS, "DirichletCalibration": STRENGTHS, "HistogramBinning": {"n_bins": 10}}


def copied(kind, name, without=()):
    """A copy of a class under another name in a module of its own, without some of its facts."""
    module = types.ModuleType("elsewhere")
    module.__dict__.update(vars(sys.modules[kind.__module__]), __name__="elsewhere")
    sys.modules["elsewhere"] = module
    source = inspect.getsource(kind).replace(f"class {kind.__name__}(", f"class {name}(")
    code = compile(source, "elsewhere", "exec", flags=__future__.annotations.compiler_flag)
    exec(code, module.__dict__)
    copy = getattr(module, name)
    for fact in without:
        if fact in vars(copy):
            delattr(copy, fact)
    return copy


def fitted(kind, x, labels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        return kind(**options).fit(x, labels)


@pytest.fixture(params=METHODS)
def pair(request):
    """A public method and its copy, both fitted on the same rows."""
    public, options = METHODS[request.param], FAST.get(request.param, {})
    return fitted(public, Z, y, **options), fitted(copied(public, "Mine"), Z, y, **options)


def test_a_copy_gives_the_same_numbers(pair):
    public, own = pair
    assert own.certificate_.to_dict() == public.certificate_.to_dict()
    assert np.array_equal(own.predict_proba(Z), public.predict_proba(Z))
    assert np.array_equal(own.predict_log_proba(Z), public.predict_log_proba(Z))
    assert own.predict(Z).tolist() == public.predict(Z).tolist()
    assert [getattr(own, fact) for fact in FACTS[:-1]] == [getattr(public, fact) for fact in FACTS[:-1]]
    others = cal.Predictions.from_logits(y, Z + 0.5)
    assert np.array_equal(own.recalibrate(others).values, public.recalibrate(others).values)


def test_a_copy_travels_under_the_name_of_its_module(pair):
    public, own = pair
    text = own.to_json()
    plain, foreign = ({**json.loads(recalibrator.to_json()), "seal": ""} for recalibrator in (public, own))
    assert foreign == {**plain, "method": "elsewhere.Mine"}
    for pieces in ({"Mine": type(own)}, {"elsewhere.Mine": type(own)}):
        for reader in (from_json, Recalibrator.from_json, type(own).from_json):
            again = reader(text, pieces=pieces)
            assert type(again) is type(own)
            assert np.array_equal(again.predict_proba(Z), own.predict_proba(Z))
            assert again.to_json() == text


@pytest.mark.slow
def test_a_copy_is_exported_where_the_method_is(pair, tmp_path):
    torch, runtime = pytest.importorskip("torch"), pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    public, own = pair
    if public.affine is None:
        for export in (own.as_torch, lambda: own.to_onnx(tmp_path / "map.onnx")):
            with pytest.raises(cal.CalibrationInputError, match=r"export: needs a map of the form .*, got Mine; every"):
                export()
        return
    assert own.as_torch()(torch.as_tensor(Z)).tolist() == public.as_torch()(torch.as_tensor(Z)).tolist()
    own.to_onnx(tmp_path / "own")
    public.to_onnx(tmp_path / "public")
    sessions = [runtime.InferenceSession(str(tmp_path / name)) for name in ("own", "public")]
    assert np.array_equal(*(session.run(None, {"scores": Z.astype(np.float32)})[0] for session in sessions))


@pytest.mark.parametrize("public", [cal.TemperatureScaling, cal.IsotonicCalibration])
def test_a_copy_is_cross_fitted_chosen_and_wrapped_as_the_method_is(public):
    pytest.importorskip("sklearn")
    from sklearn.naive_bayes import GaussianNB

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    labels = (x + rng.gumbel(size=x.shape)).argmax(axis=1)
    own = copied(public, "Mine")
    assert np.array_equal(*(cross_fit(kind(), 3 * x, labels).values for kind in (own, public)))
    predictions = cal.Predictions.from_logits(labels, 3 * x)
    choices = [choose(predictions, {"it": kind()}) for kind in (own, public)]
    assert choices[0].to_dict() == choices[1].to_dict()
    wrapped = [cal.Recalibrated(GaussianNB(), kind(), cv=3).fit(x, labels) for kind in (own, public)]
    assert np.array_equal(*(classifier.predict_proba(x[:9].copy()) for classifier in wrapped))


@pytest.mark.parametrize("name", METHODS)
def test_without_the_optional_facts_a_copy_fits_maps_and_travels(name, tmp_path):
    own = fitted(copied(METHODS[name], "Mine", without=FACTS), Z, y, **FAST.get(name, {}))
    public = fitted(METHODS[name], Z, y, **FAST.get(name, {}))
    assert np.array_equal(own.predict_proba(Z), public.predict_proba(Z))
    again = from_json(own.to_json(), pieces={"Mine": type(own)})
    assert np.array_equal(again.predict_proba(Z), own.predict_proba(Z))
    with pytest.raises(cal.CalibrationInputError, match="export: needs a map of the form softmax"):
        own.require_affine()


def test_a_class_with_one_of_calibrants_names_is_not_written():
    own = fitted(copied(cal.TemperatureScaling, "VectorScaling"), Z, y)
    with pytest.raises(cal.CalibrationInputError) as error:
        own.to_json()
    assert str(error.value) == ("method: must have a name of its own to be saved, got VectorScaling; rename the class")


def test_json_of_an_unknown_class_says_how_to_name_it():
    text = fitted(copied(cal.TemperatureScaling, "Mine"), Z, y).to_json()
    message = "method: is unknown, got 'elsewhere.Mine'; pass pieces="
    with pytest.raises(cal.CalibrationInputError, match=message):
        from_json(text)
    with pytest.raises(cal.CalibrationInputError, match=message):
        from_json(text, pieces={"Yours": cal.TemperatureScaling})
    for wrong in (dict, cal.ECE):
        with pytest.raises(cal.CalibrationInputError, match=r"must be the JSON of Recalibrator, got elsewhere\.M"):
            from_json(text, pieces={"Mine": wrong})
    with pytest.raises(cal.CalibrationInputError, match=r"text: does not fit VectorScaling, got .*objective"):
        from_json(text, pieces={"Mine": cal.VectorScaling})


def test_calibrants_own_names_are_not_taken_from_pieces():
    recalibrator = fitted(cal.TemperatureScaling, Z, y)
    again = from_json(recalibrator.to_json(), pieces={"TemperatureScaling": cal.VectorScaling})
    assert type(again) is cal.TemperatureScaling


@dataclass(eq=False)
class Halved(Recalibrator):
    """Half of every logit: no softmax is needed, only probabilities are told."""

    input: str = "logits"
    classes: Any = None
    learns = ()

    def _learn(self, lesson):
        return Ending()

    def _map(self, scores):
        return 1 / (1 + np.exp(-scores.values / 2))


def test_a_map_may_tell_probabilities_alone():
    z, happened = np.array([-2.0, 0.0, 1.0, 3.0]), np.array([0, 1, 0, 1])
    recalibrator = Halved().fit(z, happened)
    p = 1 / (1 + np.exp(-z / 2))
    assert recalibrator.certificate_.log_loss_after == pytest.approx(
        -np.log(np.where(happened, p, 1 - p)).mean(), abs=1e-12
    )
    assert recalibrator.predict_log_proba(z + 1).tolist() == np.log(1 / (1 + np.exp(-(z + 1) / 2))).tolist()
    assert not cross_fit(Halved(), z, happened, folds=2).logits
    assert from_json(recalibrator.to_json(), pieces={"Halved": Halved}).predict(z).tolist() == [0, 0, 1, 1]


def test_a_class_that_tells_no_map_says_so():
    class Silent(Halved):
        _map = Recalibrator._map

    with pytest.raises(NotImplementedError, match="Silent must say what its map is, by _map or _logits"):
        Silent().fit([0.0, 1.0], [0, 1])


@dataclass(eq=False)
class Broken(Halved):
    """Rows that do not sum to 1."""

    def _map(self, scores):
        return np.full(scores.values.shape, 0.25)


def test_what_is_no_probability_is_not_measured():
    with pytest.raises(cal.CalibrationInputError, match=r"y_proba: rows must sum to 1, got 0\.75"):
        cross_fit(Broken(), Z, y, folds=2)


@pytest.mark.slow
def test_no_module_asks_which_public_method_it_has():
    """Classes are called and inherited from; they are not compared, matched or looked for."""
    root = Path(cal.__file__).parent
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        for node in ast.walk(tree):
            asked: list[ast.AST] = []
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                asked = [node.args[1]]
            elif isinstance(node, ast.Compare):
                asked = [node.left, *node.comparators]
            elif isinstance(node, ast.MatchClass):
                asked = [node.cls]
            names = {getattr(inner, "id", "") for part in asked for inner in ast.walk(part)}
            assert not names & set(METHODS) - own, path
