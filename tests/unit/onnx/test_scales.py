"""A factor behind a linear layer becomes part of its weights; any other stays."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tightrope.onnx.scales import with_scales_folded
from tightrope.onnx.session import run_all

WIDTH = 4


def constant(name: str, array: Any) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array, np.float32), name)


def model_of(nodes: list[onnx.NodeProto], outputs: list[str]) -> onnx.ModelProto:
    """Operators on `x`, float32 [2, 3, WIDTH], with constants for a layer."""
    draw = np.random.default_rng(0)
    constants = [
        constant("weight", draw.standard_normal((WIDTH, WIDTH))),
        constant("bias", draw.standard_normal(WIDTH)),
        constant("factor", 0.3),
        constant("factors", draw.standard_normal(WIDTH)),
        numpy_helper.from_array(np.array([2, 3, 2, 2]), "heads"),
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, WIDTH])]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "test", given, made, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def layer(number: int = 0) -> list[onnx.NodeProto]:
    return [
        helper.make_node("MatMul", ["x", "weight"], [f"product{number}"]),
        helper.make_node("Add", [f"product{number}", "bias"], [f"layer{number}"]),
    ]


def outputs_of(model: onnx.ModelProto) -> list[np.ndarray]:
    x = np.random.default_rng(1).standard_normal((2, 3, WIDTH)).astype(np.float32)
    return run_all(model, [{"x": x}], threads=1)[0]


def kinds(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


MOVED = [
    *layer(),
    helper.make_node("Reshape", ["layer0", "heads"], ["split"]),
    helper.make_node("Transpose", ["split"], ["query"], perm=[0, 2, 1, 3]),
    helper.make_node("Mul", ["query", "factor"], ["scaled"]),
    helper.make_node("Relu", ["scaled"], ["y"]),
]
SHARED = [
    *layer(0),
    helper.make_node("Mul", ["layer0", "factor"], ["y"]),
    *layer(1),
    helper.make_node("Relu", ["layer1"], ["z"]),
]


@pytest.mark.parametrize(("nodes", "outputs"), [(MOVED, ["y"]), (SHARED, ["y", "z"])])
def test_the_factor_is_gone_and_the_outputs_stay(
    nodes: list[onnx.NodeProto], outputs: list[str]
) -> None:
    """Also where another layer reads the same weights, as in ALBERT."""
    model = model_of(nodes, outputs)
    if outputs == ["y", "z"]:
        model.graph.node.append(helper.make_node("Identity", ["y"], ["out"]))
        model.graph.output[0].name = "out"
    folded = with_scales_folded(model)
    assert "Mul" in kinds(model)
    assert "Mul" not in kinds(folded)
    for ours, theirs in zip(outputs_of(folded), outputs_of(model), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


STAYING = {
    "a factor per channel": [*layer(), helper.make_node("Mul", ["layer0", "factors"], ["y"])],
    "no layer before it": [helper.make_node("Mul", ["x", "factor"], ["y"])],
    "an activation between": [
        *layer(),
        helper.make_node("Relu", ["layer0"], ["positive"]),
        helper.make_node("Mul", ["positive", "factor"], ["y"]),
    ],
    "a layer that others read": [
        *layer(),
        helper.make_node("Mul", ["layer0", "factor"], ["scaled"]),
        helper.make_node("Add", ["scaled", "layer0"], ["y"]),
    ],
    "the output of the model": [*layer(), helper.make_node("Mul", ["layer0", "factor"], ["y"])],
}


@pytest.mark.parametrize("why", STAYING)
def test_another_factor_stays(why: str) -> None:
    model = model_of(STAYING[why], ["y"])
    folded = with_scales_folded(model)
    assert kinds(folded) == kinds(model)
    for ours, theirs in zip(outputs_of(folded), outputs_of(model), strict=True):
        np.testing.assert_array_equal(ours, theirs)
