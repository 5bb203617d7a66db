"""Export: fitted maps of the form softmax(W z + b) as a torch module or an ONNX model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calibrant.files.writing import whole_file
from calibrant.kernels.totals import Floats
from calibrant.recalibrate.fitting.lessons import FLOOR


def as_torch(weight: Floats, bias: Floats, *, event: bool, takes_logits: bool) -> Any:
    """The map as a torch module from scores to probabilities, which have the type and the device of the scores.

    It computes in float32, or in float64 where scores are float64, also under autocast. Its `weight` and `bias` are
    buffers: they move with the module and are saved with it, and do not train.
    """
    import torch

    class AffineSoftmax(torch.nn.Module):  # type: ignore[misc]
        """softmax(W z + b)."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.as_tensor(weight))
            self.register_buffer("bias", torch.as_tensor(bias))

        def forward(self, scores: Any) -> Any:
            exact = torch.promote_types(scores.dtype, torch.float32)
            with torch.autocast("cuda" if scores.is_cuda else "cpu", enabled=False):
                probabilities = self._mapped(scores.to(exact))
            return probabilities.to(scores.dtype if scores.is_floating_point() else exact)

        def _mapped(self, scores: Any) -> Any:
            weight, bias = (buffer.to(scores.device, scores.dtype) for buffer in (self.weight, self.bias))
            if not takes_logits:
                scores = (torch.stack([1 - scores, scores], -1) if event else scores).clamp_min(FLOOR).log()
            elif event:
                scores = torch.stack([torch.zeros_like(scores), scores], -1)
            probabilities = torch.softmax(scores @ weight.T + bias, -1)
            return probabilities[..., 1] if event else probabilities

    return AffineSoftmax()


def to_onnx(path: str | Path, name: str, weight: Floats, bias: Floats, *, event: bool, takes_logits: bool) -> None:
    """The map as an ONNX model: input `scores`, output `probabilities`, both float32, as all between them is."""
    import onnx

    with whole_file(Path(path)) as file:
        file.write(_model(onnx, name, weight, bias, event, takes_logits).SerializeToString())


def _model(onnx: Any, name: str, weight: Floats, bias: Floats, event: bool, takes_logits: bool) -> Any:
    helper, single = onnx.helper, onnx.TensorProto.FLOAT
    nodes: list[Any] = []
    constants: dict[str, Any] = {}

    def add(operation: str, *inputs: str, output: str | None = None, **options: Any) -> str:
        output = output or f"{operation.lower()}{len(nodes)}"
        nodes.append(helper.make_node(operation, inputs, [output], **options))
        return output

    def constant(name: str, value: Any) -> str:
        array = np.asarray(value)
        constants[name] = array.astype(np.float32) if array.dtype.kind == "f" else array
        return name

    at = "scores"
    if event:
        at = add("Unsqueeze", at, constant("end", [1]))
        at = add("Concat", add("Sub", at if takes_logits else constant("all", 1.0), at), at, axis=1)
    if not takes_logits:
        at = add("Log", add("Max", at, constant("floor", FLOOR)))
    at = add("Add", add("MatMul", at, constant("weight", weight.T)), constant("bias", bias))
    at = add("Softmax", at, axis=1, output=None if event else "probabilities")
    if event:
        add("Gather", at, constant("second", 1), axis=1, output="probabilities")
    shape = ["rows"] if event else ["rows", len(bias)]
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("scores", single, shape)],
        [helper.make_tensor_value_info("probabilities", single, shape)],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="calibrant")
    model.ir_version = 8  # what runtimes of the last years read
    onnx.checker.check_model(model, full_check=True)
    return model
