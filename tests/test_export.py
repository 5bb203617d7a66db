"""Exported maps: the same probabilities from ONNX and torch as from calibrant."""

import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibrate.methods import SHORT

AFFINE = ("identity", "prior_shift", "temperature", "bcts", "vector", "matrix", "cwmcs")


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


@pytest.mark.slow
@pytest.mark.parametrize(("name", "event", "input"), CASES)
def test_onnx_gives_the_same_probabilities(name, event, input, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    recalibrator, x = fitted(name, event, input)
    recalibrator.to_onnx(tmp_path / "map.onnx")
    session = runtime.InferenceSession(str(tmp_path / "map.onnx"), providers=["CPUExecutionProvider"])
    (probabilities,) = session.run(None, {"scores": x})
    expected = recalibrator.predict_proba(x)
    tolerance = (
        1e-6 if name in ("identity", "temperature") else 1e-12
    )  # logits of float32 are divided in float32 by temperature; rows of float32 do not sum to 1
    assert probabilities.shape == expected.shape
    assert probabilities == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(("name", "event", "input"), CASES)
def test_torch_gives_the_same_probabilities(name, event, input):
    torch = pytest.importorskip("torch")
    recalibrator, x = fitted(name, event, input)
    module = recalibrator.as_torch()
    probabilities = module(torch.as_tensor(x))
    tolerance = 1e-6 if name in ("identity", "temperature") else 1e-12  # as above
    assert probabilities.numpy() == pytest.approx(recalibrator.predict_proba(x), abs=tolerance)
    assert set(module.state_dict()) == {"weight", "bias"}
    assert not list(module.parameters())
    scores = torch.as_tensor(x).double().requires_grad_()
    module(scores).sum().backward()
    assert scores.grad is not None


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
