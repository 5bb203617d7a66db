"""Export: fitted maps of the form softmax(W z + b) as a torch module or an ONNX model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calibrant.files.writing import whole_file
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting.lessons import FLOOR


def as_torch(weight: Floats, bias: Floats, *, event: bool, takes_logits: bool) -> Any:
    """The map as a torch module from scores to probabilities, in float64 unless it is moved to another type.

    Its `weight` and `bias` are buffers: they move with the module and are saved with it, and do not train.
    """
    import torch

    class AffineSoftmax(torch.nn.Module):  # type: ignore[misc]
        """softmax(W z + b)."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.as_tensor(weight))
            self.register_buffer("bias", torch.as_tensor(bias))

        def forward(self, scores: Any) -> Any:
            scores = scores.to(self.weight.dtype)
            if not takes_logits:
                scores = (torch.stack([1 - scores, scores], -1) if event else scores).clamp_min(FLOOR).log()
            elif event:
                scores = torch.stack([torch.zeros_like(scores), scores], -1)
            probabilities = torch.softmax(scores @ self.weight.T + self.bias, -1)
            return probabilities[..., 1] if event else probabilities

    return AffineSoftmax()


def to_onnx(path: str | Path, name: str, weight: Floats, bias: Floats, *, event: bool, takes_logits: bool) -> None:
    """The map as an ONNX model: input `scores` (float32), output `probabilities` (float64, computed in it)."""
    import onnx

    with whole_file(Path(path)) as file:
        file.write(_model(onnx, name, weight, bias, event, takes_logits).SerializeToString())


def _model(onnx: Any, name: str, weight: Floats, bias: Floats, event: bool, takes_logits: bool) -> Any:
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("Cast", ["scores"], ["given"], to=kinds.DOUBLE)]
    constants = {"floor": np.array(FLOOR), "one": np.array(1.0), "end": np.array([1]), "weight": weight.T, "bias": bias}
    at = "given"

    def add(operation: str, inputs: list[str], **options: Any) -> str:
        output = f"{operation.lower()}{len(nodes)}"
        nodes.append(helper.make_node(operation, inputs, [output], **options))
        return output

    if event:
        so = add("Unsqueeze", [at, "end"])
        at = add("Concat", [add("Sub", [so, so]) if takes_logits else add("Sub", ["one", so]), so], axis=1)
    if not takes_logits:
        at = add("Log", [add("Max", [at, "floor"])])
    at = add("Softmax", [add("Add", [add("MatMul", [at, "weight"]), "bias"])], axis=1)
    if event:
        at = add("Squeeze", [add("Slice", [at, "end", "two", "end"]), "end"])
        constants["two"] = np.array([2])
    nodes.append(helper.make_node("Identity", [at], ["probabilities"]))
    shape = ["rows"] if event else ["rows", len(bias)]
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("scores", kinds.FLOAT, shape)],
        [helper.make_tensor_value_info("probabilities", kinds.DOUBLE, shape)],
        [onnx.numpy_helper.from_array(np.asarray(value), constant) for constant, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="calibrant")
    model.ir_version = 8  # what runtimes of the last years read
    onnx.checker.check_model(model)
    return model
