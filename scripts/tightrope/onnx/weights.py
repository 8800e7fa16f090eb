"""Find the operators of an ONNX graph that have weights: the candidates for quantization."""

from typing import Any

import numpy as np
import onnx
from onnx import helper

from tightrope.onnx.edit import attribute, copy_of

# products of two activations, as in attention, stay in float
WEIGHTED = ("Conv", "Gemm", "MatMul")


def weighted_nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Return the operators of a type in WEIGHTED whose second input is an initializer.

    A product needs a weight of two axes; a Gemm must also be plain.
    """
    axes = {tensor.name: len(tensor.dims) for tensor in model.graph.initializer}
    return [
        node
        for node in model.graph.node
        if node.op_type in WEIGHTED
        and node.input[1] in axes
        and (node.op_type == "Conv" or (axes[node.input[1]] == 2 and is_plain(node)))
    ]


def is_plain(node: onnx.NodeProto) -> bool:
    """Return whether a product neither scales nor transposes its input."""
    scales = attribute(node, "alpha", 1), attribute(node, "beta", 1)
    return scales == (1, 1) and not attribute(node, "transA", 0)


def named_by_module(model: onnx.ModelProto, prefix: str) -> onnx.ModelProto:
    """Name the operators with weights of `model` after their modules in the checkpoint.

    The name is that of the bias, which alone keeps it, without `prefix` and `.bias`. A node without
    a name, or with a duplicate, is named by its type and output.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    taken = {node.name for node in model.graph.node}
    for node in weighted_nodes(model):
        consumers = [one for one in model.graph.node if node.output[0] in one.input]
        added = consumers[0].input if [one.op_type for one in consumers] == ["Add"] else ()
        biases = [name for name in (*node.input[2:], *added) if name in constants]
        name = biases[0].removeprefix(prefix).removesuffix(".bias") if biases else ""
        if name and name not in taken and biases[0].endswith(".bias"):
            taken.add(name)
            node.name = name
    seen: set[str] = set()
    for node in model.graph.node:
        if not node.name or node.name in seen:
            node.name = f"{node.op_type}_{node.output[0]}"
        seen.add(node.name)
    return model


def with_outputs(model: onnx.ModelProto, tensors: list[str]) -> onnx.ModelProto:
    """Return a copy of `model` that also outputs `tensors`, float32, except its inputs."""
    copy = copy_of(model)
    known = {one.name for one in (*copy.graph.output, *copy.graph.input)}
    copy.graph.output.extend(
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in tensors
        if name not in known
    )
    return copy


def tensors_of(session: Any, tensors: list[str], batch: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the values of `tensors` for a batch; inputs of the model come from the batch."""
    computed = [name for name in tensors if name not in batch]
    found = {**batch, **dict(zip(computed, session.run(computed, batch), strict=True))}
    return [found[name] for name in tensors]
