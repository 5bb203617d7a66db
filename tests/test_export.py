"""Exported maps: the same probabilities from ONNX and torch as from calibrant."""

import functools
import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibrate.methods import SHORT

AFFINE = ("identity", "prior_shift", "temperature", "bcts", "vector", "matrix", "cwmcs")


@functools.cache
def fitted(name, event, input):
    rng = np.random.default_rng(4)
    calm = rng.normal(scale=1.5, size=(400, 4))
    labels = (calm + rng.gumbel(size=calm.shape)).argmax(axis=1)
    x = (2 * calm).astype(np.float32)
    if event:
        x, labels = x[:, 0] * 2, (rng.random(400) < 1 / (1 + np.exp(-2 * calm[:, 0]))).astype(int)
    if input == "probabilities":
        probabilities = cal.Predictions.from_logits(labels, x).probabilities
        x = probabilities.astype(np.float32)
    options = {"off_diagonal": 0.01, "intercept": 0.01} if name == "matrix" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        return SHORT[name](input=input, **options).fit(x, labels), x[:50].copy()


CASES = [(name, event, input) for name in AFFINE for event in (False, True) for input in ("logits", "probabilities")
         if not (name == "cwmcs" and event)]  # fmt: skip


TOLERANCES = {"float64": 1e-12, "float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}
"""By how much probabilities may be off: what the type rounds, and a little."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "event", "input"), CASES)
def test_onnx_gives_the_same_probabilities_in_float32_without_a_warning(name, event, input, tmp_path, capfd):
    runtime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    recalibrator, x = fitted(name, event, input)
    path = tmp_path / "map.onnx"
    recalibrator.to_onnx(path)
    options = runtime.SessionOptions()
    options.log_severity_level = 2  # warnings and worse
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (probabilities,) = session.run(None, {"scores": x})
    assert capfd.readouterr() == ("", "")
    assert [port.type for port in (*session.get_inputs(), *session.get_outputs())] == ["tensor(float)"] * 2
    graph = onnx.load(path).graph
    used = {input for node in graph.node for input in node.input}
    assert {tensor.name for tensor in graph.initializer} <= used
    assert probabilities.shape == x.shape
    assert probabilities == pytest.approx(recalibrator.predict_proba(x.astype(float)), abs=TOLERANCES["float32"])


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(("name", "event", "input"), CASES)
def test_torch_gives_the_same_probabilities_in_the_type_of_the_scores(name, event, input, dtype):
    torch = pytest.importorskip("torch")
    recalibrator, x = fitted(name, event, input)
    module, scores = recalibrator.as_torch(), torch.as_tensor(x).to(getattr(torch, dtype))
    probabilities = module(scores)
    assert probabilities.dtype == scores.dtype
    expected = recalibrator.predict_proba(scores.double().numpy(), normalize=input == "probabilities" and not event)
    rounded = 1e-6 if input == "probabilities" else 0  # rows of rounded probabilities do not sum to 1
    assert probabilities.double().numpy() == pytest.approx(expected, abs=TOLERANCES[dtype] + rounded)
    assert set(module.state_dict()) == {"weight", "bias"}
    assert not list(module.parameters())


@pytest.mark.slow
def test_the_device_of_the_scores_is_kept():
    torch = pytest.importorskip("torch")
    recalibrator, _ = fitted("vector", False, "logits")
    assert recalibrator.as_torch()(torch.empty(5, 4, device="meta")).device.type == "meta"


def test_gradients_pass():
    torch = pytest.importorskip("torch")
    recalibrator, x = fitted("vector", False, "logits")
    scores = torch.as_tensor(x).requires_grad_()
    recalibrator.as_torch()(scores)[:, 0].sum().backward()
    assert scores.grad.abs().max() > 0


def test_a_half_precision_model_and_its_map_are_one_model():
    torch = pytest.importorskip("torch")
    recalibrator, x = fitted("temperature", False, "logits")
    whole = torch.nn.Sequential(torch.nn.Identity(), recalibrator.as_torch()).to(torch.bfloat16)
    assert whole(torch.as_tensor(x).bfloat16()).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):  # where a product would be rounded to 3 digits
        probabilities = recalibrator.as_torch()(torch.as_tensor(x))
    assert probabilities.numpy() == pytest.approx(recalibrator.predict_proba(x), abs=1e-6)


@pytest.mark.parametrize("name", [name for name in SHORT if name not in AFFINE])
def test_other_maps_are_refused(name, tmp_path):
    recalibrator, _ = fitted(name, False, "logits")
    with pytest.raises(cal.CalibrationInputError, match="needs a map of the form softmax"):
        recalibrator.to_onnx(tmp_path / "map.onnx")
    with pytest.raises(cal.CalibrationInputError, match="needs a map of the form softmax"):
        recalibrator.require_affine()
    assert not list(tmp_path.iterdir())


def test_what_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(cal.CalibrationInputError, match="must be fitted first"):
        cal.TemperatureScaling().to_onnx(tmp_path / "map.onnx")
