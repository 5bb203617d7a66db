"""Export: fitted maps of the form softmax(W z + b) as a torch module or an ONNX model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calibrant.exceptions import CalibrationInputError
from calibrant.files.writing import whole_file
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting.scores import FLOOR
from calibrant.recalibrate.recalibrator import Recalibrator


def affine(fitted: Recalibrator) -> tuple[Floats, Floats]:
    """W (K, K) and b (K,) of a map softmax(W z + b); an event's z stands for the two logits (0, z).

    >>> import calibrant as cal
    >>> fitted = cal.TemperatureScaling().fit([[2., 0.], [3., 0.], [0., 1.], [0., 2.]], [0, 1, 1, 1])
    >>> [part.round(4).tolist() for part in affine(fitted)]
    [[[0.2283, 0.0], [0.0, 0.2283]], [0.0, 0.0]]
    """
    fitted.require_fitted()
    parts = fitted.affine
    if parts is None:
        raise CalibrationInputError(
            "export",
            "needs a map of the form softmax(W z + b)",
            got=type(fitted).__name__,
            hint="every map travels as JSON, by to_json()",
        )
    return parts


def as_torch(fitted: Recalibrator) -> Any:
    """The map as a torch module from scores to probabilities, in float64 unless it is moved to another type.

    Its `weight` and `bias` are buffers: they move with the module and are saved with it, and do not train.
    """
    import torch

    weight, bias = affine(fitted)
    event, takes_logits = fitted.is_event, fitted.input == "logits"

    class AffineSoftmax(torch.nn.Module):  # type: ignore[misc]
        """softmax(W z + b)."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.as_tensor(weight))
            self.register_buffer("bias", torch.as_tensor(bias))

        def forward(self, scores: Any) -> Any:
            scores = scores.to(self.weight.dtype)
            if not takes_logits:
                p = torch.stack([1 - scores, scores], -1) if event else scores
                scores = p.clamp_min(FLOOR).log()
            elif event:
                scores = torch.stack([torch.zeros_like(scores), scores], -1)
            made = torch.softmax(scores @ self.weight.T + self.bias, -1)
            return made[..., 1] if event else made

    return AffineSoftmax()


def to_onnx(fitted: Recalibrator, path: str | Path) -> None:
    """The map as an ONNX model: input `scores` (float32), output `probabilities` (float64, computed in it)."""
    import onnx

    with whole_file(Path(path)) as file:
        file.write(_model(fitted, onnx).SerializeToString())


def _model(fitted: Recalibrator, onnx: Any) -> Any:
    helper, kinds = onnx.helper, onnx.TensorProto
    weight, bias = affine(fitted)
    nodes = [helper.make_node("Cast", ["scores"], ["given"], to=kinds.DOUBLE)]
    constants = {"floor": np.array(FLOOR), "one": np.array(1.0), "end": np.array([1]), "weight": weight.T, "bias": bias}
    at = "given"

    def add(operation: str, inputs: list[str], **options: Any) -> str:
        name = f"{operation.lower()}{len(nodes)}"
        nodes.append(helper.make_node(operation, inputs, [name], **options))
        return name

    if fitted.is_event:
        so = add("Unsqueeze", [at, "end"])
        other = add("Sub", [so, so]) if fitted.input == "logits" else add("Sub", ["one", so])
        at = add("Concat", [other, so], axis=1)
    if fitted.input == "probabilities":
        at = add("Log", [add("Max", [at, "floor"])])
    at = add("Softmax", [add("Add", [add("MatMul", [at, "weight"]), "bias"])], axis=1)
    if fitted.is_event:
        at = add("Squeeze", [add("Slice", [at, "end", "two", "end"]), "end"])
        constants["two"] = np.array([2])
    nodes.append(helper.make_node("Identity", [at], ["probabilities"]))
    shape = ["rows"] if fitted.is_event else ["rows", len(fitted.classes_)]
    graph = helper.make_graph(
        nodes,
        type(fitted).__name__,
        [helper.make_tensor_value_info("scores", kinds.FLOAT, shape)],
        [helper.make_tensor_value_info("probabilities", kinds.DOUBLE, shape)],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="calibrant")
    model.ir_version = 8  # what runtimes of the last years read
    onnx.checker.check_model(model)
    return model
