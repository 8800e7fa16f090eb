"""Quantized ONNX (Q/DQ) from a model and its calibration cache, without data."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tightrope.calibration import read_cache
from tightrope.errors import TightropeError
from tightrope.onnx_graph import load_onnx, save_onnx

# operators with weights; attention's products of two activations stay in float
WEIGHTED = ("Conv", "Gemm", "MatMul")
# scheme -> activation type, options of onnxruntime.quantization's QDQQuantizer
SCHEMES: dict[str, tuple[str, dict[str, Any]]] = {
    # u8 activations are the fast path of CPUs with VNNI and of ONNX Runtime's CPU provider
    "u8s8": ("QUInt8", {"ActivationSymmetric": False, "WeightSymmetric": True}),
    # TensorRT takes int8 with zero-point 0 only, and no INT32 bias
    "s8s8": (
        "QInt8",
        {
            "ActivationSymmetric": True,
            "WeightSymmetric": True,
            "QuantizeBias": False,
            "OpTypesToExcludeOutputQuantization": list(WEIGHTED),
            "QDQDisableWeightAdjustForInt32Bias": True,
        },
    ),
}


def quantize_onnx(
    source: Path | str, calibration: Path | str, target: Path | str, *, scheme: str
) -> None:
    """Write `source` with the inputs of its weighted operators in INT8.

    Weights per channel, activations per tensor by the ranges of the cache. Raises
    ArtifactError for a cache of another model, TightropeError where nothing was quantized or
    the cache lacks a range.
    """
    from onnxruntime.quantization import CalibrationMethod, QuantType
    from onnxruntime.quantization.calibrate import TensorData, TensorsData
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
    from onnxruntime.quantization.quant_utils import load_model_with_shape_infer

    model = load_onnx(source)
    nodes = weighted_nodes(model)
    if not nodes:
        raise TightropeError(
            f"{source}: no {', '.join(WEIGHTED)} with weights, nothing to quantize"
        )
    cache = read_cache(calibration, model=source)
    bounds = {
        name: TensorData(lowest=np.float32(low), highest=np.float32(high))
        for name, (low, high) in cache["ranges"].items()
    }
    kind, options = SCHEMES[scheme]
    needed = activations(model, nodes, outputs="OpTypesToExcludeOutputQuantization" not in options)
    missing = [name for name in needed if name not in bounds]
    if missing:
        raise TightropeError(
            f"{calibration}: has no range for {missing[0]} ({len(missing)} of {len(needed)} that "
            f"{scheme} needs); calibrate this model, or import a cache that has them"
        )
    quantizer = QDQQuantizer(
        load_model_with_shape_infer(Path(source)),
        True,  # weights per channel
        False,  # reduce_range
        QuantType.QInt8,
        QuantType[kind],
        TensorsData(CalibrationMethod.MinMax, bounds),
        nodes,
        [],
        list(WEIGHTED),
        options,
    )
    quantizer.quantize_model()
    quantizer.model.topological_sort()
    quantized = quantizer.model.model
    del quantized.graph.value_info[:]
    save_onnx(quantized, target)


def weighted_nodes(model: onnx.ModelProto) -> list[str]:
    """Names of the WEIGHTED operators whose second input is a constant of the graph."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [
        node.name
        for node in model.graph.node
        if node.op_type in WEIGHTED and node.input[1] in constants
    ]


def activations(model: onnx.ModelProto, nodes: list[str], *, outputs: bool) -> list[str]:
    """The first input of each of those operators, with `outputs` also what it gives."""
    chosen = [node for node in model.graph.node if node.name in nodes]
    names = [name for node in chosen for name in (node.input[0], *(node.output if outputs else ()))]
    return list(dict.fromkeys(names))
