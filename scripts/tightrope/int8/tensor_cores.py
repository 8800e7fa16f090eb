"""Which operators a GPU's tensor cores run no faster in int8 or fp8: they stay in float."""

import math

import onnx
from onnx import TensorProto

from tightrope.onnx.edit import constant_of, rows_of
from tightrope.onnx.trial_shapes import TRIALS, shapes_seen
from tightrope.onnx.weights import weighted_nodes

# NVIDIA's Model Optimizer leaves products with fewer rows or columns of weights in float too
# (modelopt/onnx/quantization/graph_utils.py)
LEAST = 16


def kept_in_float(model: onnx.ModelProto, kind: int) -> dict[str, str]:
    """Return operators with weights that stay in float in a file for TensorRT, with the reason.

    `kind` is the type of the quantized operators, INT8 or FLOAT8E4M3FN. A network is strongly
    typed, so that the build fails where TensorRT has no kernel of that type. Raises ArtifactError
    where the model does not run.
    """
    inputs = {one.name for one in model.graph.input}
    shapes = shapes_seen(model)
    found: dict[str, str] = {}
    for node in weighted_nodes(model):
        weight = constant_of(model, node.input[1])
        if node.op_type == "Conv":
            groups = next((one.i for one in node.attribute if one.name == "group"), 1)
            if node.input[0] in inputs:
                found[node.name] = "the first convolution"
            elif groups > 1 and weight.shape[1] == 1:
                found[node.name] = "a depthwise convolution"
            continue
        rows = [math.prod(shape[:-1]) for shape in shapes[node.input[0]]]
        sizes = rows_of(node, weight).shape
        if rows == [batch for batch, _ in TRIALS]:
            found[node.name] = "one row per example"
        elif min(sizes) < LEAST:
            found[node.name] = f"fewer than {LEAST} channels"
        elif kind == TensorProto.FLOAT8E4M3FN and any(size % LEAST for size in sizes):
            found[node.name] = f"channels that are no multiple of {LEAST}"
    return found
