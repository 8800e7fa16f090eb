"""ONNX models of tests, written as text."""

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'


def onnx_model(text: str, head: str = HEAD, **constants: Any) -> onnx.ModelProto:
    """The model of a text of ONNX, with these constants: float32, int8, other integers int64."""
    model = parser.parse_model(head + text)
    for name, values in constants.items():
        array = np.asarray(values)
        kind = np.float32 if array.dtype.kind == "f" else np.int64
        kept = array if array.dtype == np.int8 else array.astype(kind)
        model.graph.initializer.append(numpy_helper.from_array(kept, name))
    return model


def kinds(model: onnx.ModelProto) -> list[str]:
    """The types of its operators, in their order."""
    return [node.op_type for node in model.graph.node]


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers, float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def constants_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """The values of its initializers by their names."""
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}


def makers_of(model: onnx.ModelProto) -> dict[str, onnx.NodeProto]:
    """The operator that makes each tensor, by the tensor's name."""
    return {name: node for node in model.graph.node for name in node.output}
