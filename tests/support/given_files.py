"""ONNX files that other tools have quantized already, of the tiny image classifier."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from tightrope.inputs.arrays import Arrays
from tightrope.int8.schemes import tensorrt_qdq
from tightrope.onnx.edit import weighted_nodes
from tiny_convolutions import make_convolutions, pictures, ranges_of

SYMMETRIC = {"ActivationSymmetric": True, "WeightSymmetric": True, "QuantizeBias": False}
# of onnxruntime.quantization
WAYS: dict[str, dict[str, Any]] = {
    "u8s8": {"activation_type": QuantType.QUInt8, "per_channel": True},
    "s8s8": {"activation_type": QuantType.QInt8, "extra_options": SYMMETRIC},
    # weights stay float and have a whole Q/DQ pair, as NVIDIA ModelOpt writes them
    "pairs": {
        "activation_type": QuantType.QInt8,
        "extra_options": {**SYMMETRIC, "AddQDQPairToWeight": True},
    },
}
KINDS = {"tensorrt": TensorProto.INT8, "e4m3": TensorProto.FLOAT8E4M3FN}


class Samples(CalibrationDataReader):
    """Batches for onnxruntime.quantization, by default three of two images."""

    def __init__(self, batches: Iterable[Arrays] | None = None) -> None:
        pixels = pictures(6, seed=1)
        self.left = iter(batches or [{"pixel_values": pixels[n : n + 2]} for n in (0, 2, 4)])

    def get_next(self) -> Arrays | None:
        return next(self.left, None)


def given_model(way: str) -> onnx.ModelProto:
    """The model quantized in one of WAYS, or in one of KINDS by this project's own Q/DQ."""
    model = make_convolutions()
    if way in KINDS:
        names = [node.name for node in weighted_nodes(model)]
        ranges = ranges_of(model, pictures(6, seed=1))
        return tensorrt_qdq(model, ranges, names, kind=KINDS[way], outputs=False)
    return quantized_by_onnxruntime(model, **WAYS[way])


def quantized_by_onnxruntime(
    model: onnx.ModelProto, batches: Iterable[Arrays] | None = None, **settings: Any
) -> onnx.ModelProto:
    """The model as `quantize_static` makes it, int8 weights, by default in Q/DQ."""
    settings = {"quant_format": QuantFormat.QDQ, "weight_type": QuantType.QInt8, **settings}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "float.onnx"), Path(folder, "quantized.onnx")
        onnx.save(model, source)
        quantize_static(source, target, Samples(batches), **settings)
        return onnx.load(target)


def in_float16(model: onnx.ModelProto) -> onnx.ModelProto:
    """A quantized model whose other tensors are float16, between casts, as ModelOpt writes them."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    del graph.value_info[:]
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            half = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(half, tensor.name))
    (taken,), (given,) = graph.input, graph.output
    for node in graph.node:
        node.input[:] = ["taken_half" if name == taken.name else name for name in node.input]
        node.output[:] = ["given_half" if name == given.name else name for name in node.output]
    kinds = (TensorProto.FLOAT16, TensorProto.FLOAT)
    graph.node.insert(0, helper.make_node("Cast", [taken.name], ["taken_half"], to=kinds[0]))
    graph.node.append(helper.make_node("Cast", ["given_half"], [given.name], to=kinds[1]))
    onnx.checker.check_model(made, full_check=True)
    return made
