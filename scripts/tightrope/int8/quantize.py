"""Quantize an ONNX model to Q/DQ with its calibration cache, without data.

For ONNX Runtime in the form that its CPU provider fuses: it runs a convolution in int8 only where
its output is quantized too and its bias is int32 in the scale of the accumulator. Repairs without
training are SmoothQuant and bias correction.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.manifest import checkpoint_of
from tightrope.artifacts.manifest_types import InFloat
from tightrope.errors import ConfigError, TightropeError
from tightrope.int8.calibrate import read_cache
from tightrope.int8.ranges import Channels, Ranges
from tightrope.int8.schemes import (
    LONGEST_IN_INT8,
    PROBABILITIES,
    SCHEMES,
    SMOOTHED,
    Scheme,
    attention_to_quantize,
    kept_in_float,
    tensorrt_qdq,
)
from tightrope.onnx.attention import Attention
from tightrope.onnx.edit import (
    WEIGHTED,
    Graph,
    add_constant,
    before_qdq,
    constant_of,
    copy_of,
    dequantized_weight,
    drop_unused_initializers,
    place_of,
    rows_of,
    weighted_nodes,
)
from tightrope.onnx.file import load_onnx, save_onnx, set_checkpoint

Repair = dict[str, Any]
# a channel with values below this counts as empty and is not scaled
SMALLEST = 1e-5
# index of the bias among the inputs of an operator
BIAS = 2


def quantize_onnx(
    source: Path | str,
    calibration: Path | str,
    target: Path | str,
    *,
    scheme: str,
    repair: Repair | None = None,
    may_stay_in_float: bool = False,
) -> None:
    """Write `source` with the inputs of its operators with weights quantized by `scheme`.

    Weights are quantized per channel (in E4M3 per tensor), activations per tensor with the ranges
    of the cache. Outputs and biases stay in float, except for convolutions of ONNX Runtime and
    where the repair, an entry of `repairs` in the configuration, quantizes outputs; the products of
    attention unless the repair quantizes them. Operators that match its `float` patterns stay in
    float, for TensorRT also those of `kept_in_float`. Raises ArtifactError for the cache of another
    model, ConfigError for a pattern that matches no operator, TightropeError where the cache lacks
    required statistics, where no attention can be quantized, or where nothing is quantized unless
    `may_stay_in_float`.
    """
    repair, model = repair or {}, load_onnx(source)
    chosen = operators_to_quantize(SCHEMES[scheme], model, repair, path=source)
    if not chosen and may_stay_in_float:
        return save_onnx(model, target)
    if not chosen:
        why = "every one is left in float" if weighted_nodes(model) else "there is none"
        raise TightropeError(f"{source}: no {', '.join(WEIGHTED)} with weights to quantize: {why}")
    made_from, cache = checkpoint_of(model), read_cache(calibration, model=source)
    ranges, channels = cache["ranges"], cache["channels"]
    longest = cache.get("options", {}).get("max_sequence")
    attention = attention_of(SCHEMES[scheme], model, repair, path=source, longest=longest)
    needed = dict.fromkeys(name for one in attention for name in one.measured)
    for node in (node for node in weighted_nodes(model) if node.name in chosen):
        convolution = SCHEMES[scheme].symmetric is None and node.op_type == "Conv"
        both = convolution or repair.get("outputs")
        needed |= dict.fromkeys([node.input[0], *(node.output if both else ())])
    if missing := [name for name in needed if name not in ranges]:
        raise TightropeError(
            f"{calibration}: has no range for {missing[0]} ({len(missing)} of {len(needed)} that "
            "are needed); calibrate this model, or import a cache that has them"
            f"{', or take `attention` out of the repair' if attention else ''}"
        )
    # also where the cache has a range of probabilities: it may be cut off at less than 1
    ranges |= {one.probabilities: PROBABILITIES for one in attention}
    if (strength := repair.get("smoothquant")) is not None:
        model, ranges = smoothed(model, ranges, channels, chosen, strength=strength)
    quantized = in_qdq(model, ranges, chosen, SCHEMES[scheme], repair, attention)
    if repair.get("bias_correction"):
        corrected_biases(quantized, model, channels)
    set_checkpoint(quantized, made_from)
    save_onnx(quantized, target)


def operators_to_quantize(
    scheme: Scheme, model: onnx.ModelProto, repair: Repair, *, path: Path | str
) -> list[str]:
    """Return the operators with weights that are quantized.

    Raises ConfigError for a pattern of the repair that matches none.
    """
    names = [node.name for node in weighted_nodes(model)]
    kept: set[str] = set()
    for pattern in repair.get("float", ()):
        matching = {name for name in names if name == pattern or fnmatchcase(name, pattern)}
        if not matching:
            raise ConfigError(
                f"{path}: no operator with weights is named {pattern}: correct `float` of the "
                f"repair; there are {', '.join(names)}"
            )
        kept |= matching
    unfit = {} if scheme.symmetric is None else kept_in_float(model, scheme.symmetric)
    for name, reason in unfit.items():
        print(f"{name} stays in float: {reason}")
    return [name for name in names if name not in kept | unfit.keys()]


def found_by_search(search: Path | str) -> Repair:
    """Return the result of an operator search as a repair."""
    document = read_json_or_raise(search, InFloat)
    return {"smoothquant": document["smoothquant"], "float": document["in_float"]}


def attention_of(
    scheme: Scheme,
    model: onnx.ModelProto,
    repair: Repair,
    *,
    path: Path | str,
    longest: int | None = None,
) -> list[Attention]:
    """Return the attention that the repair quantizes, and print which stays in float and why.

    Raises TightropeError where it quantizes attention and there is none that can be, for a scheme
    of ONNX Runtime, and for int8 of texts of up to `longest` tokens that TensorRT does not fuse.
    """
    if not repair.get("attention"):
        return []
    if scheme.symmetric is None:
        raise TightropeError(
            "only TensorRT's schemes quantize attention: take `attention` out of the repair"
        )
    if scheme.symmetric == onnx.TensorProto.INT8 and (longest or 0) > LONGEST_IN_INT8:
        raise TightropeError(
            f"TensorRT fuses int8 attention of up to {LONGEST_IN_INT8} tokens (NVIDIA/TensorRT, "
            f"issue 3724), max_sequence is {longest}: take `attention` out of the repair or use fp8"
        )
    found, others = attention_to_quantize(model, scheme.symmetric)
    for name, reason in others.items():
        print(f"attention of {name} stays in float: {reason}")
    if not found:
        reasons = ", ".join(dict.fromkeys(others.values())) or "it has no Softmax"
        raise TightropeError(
            f"{path}: no attention to quantize ({reasons}): take `attention` out of the repair"
        )
    return found


def in_qdq(
    model: onnx.ModelProto,
    ranges: Ranges,
    nodes: list[str],
    scheme: Scheme,
    repair: Repair,
    attention: Sequence[Attention] = (),
) -> onnx.ModelProto:
    """Return `model` with Q/DQ around the operators `nodes` and the products of `attention`.

    Raises TightropeError for asymmetric activations where the scheme has zero-point 0 only.
    """
    if scheme.symmetric is None:
        return onnxruntime_qdq(model, ranges, nodes, scheme, repair)
    if repair.get("activations") == "asymmetric":
        raise TightropeError(
            "TensorRT has zero-point 0 only: take `activations: asymmetric` out of the repair"
        )
    outputs = bool(repair.get("outputs"))
    products = [name for one in attention for name in one.products]
    return tensorrt_qdq(
        model, ranges, nodes, kind=scheme.symmetric, outputs=outputs, products=products
    )


def convolutions(model: onnx.ModelProto, nodes: list[str]) -> list[onnx.NodeProto]:
    """Return the convolutions among the operators named in `nodes`."""
    return [node for node in model.graph.node if node.op_type == "Conv" and node.name in nodes]


def with_integer_biases(model: onnx.ModelProto, nodes: list[str]) -> onnx.ModelProto:
    """Convert the biases of the quantized convolutions `nodes` of `model` to int32.

    The scale of a bias is the input scale times the weight scale of each output channel, so the
    bias is added directly to the int32 accumulator (Jacob et al. 2018, "Quantization and Training
    of Neural Networks for Efficient Integer-Arithmetic-Only Inference", equation 11). A bias that
    overflows int32, because its weights are nearly zero, stays in float, and its convolution runs
    in float.
    """
    producers = {name: node for node in model.graph.node for name in node.output}
    floats = {tensor.name for tensor in model.graph.initializer}
    for node in convolutions(model, nodes):
        pairs = [producers[name] for name in node.input[:2]]
        if len(node.input) <= BIAS or node.input[BIAS] not in floats:
            continue
        step, steps = (constant_of(model, pair.input[1]) for pair in pairs)
        scale = np.float32(step * steps).reshape(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            exact = np.rint(constant_of(model, node.input[BIAS]).astype(np.float64) / scale)
        if not (np.abs(exact) <= np.iinfo(np.int32).max).all():
            continue
        bias = exact.astype(np.int32)
        names = [f"{node.name}.bias_{part}" for part in ("integers", "scale")]
        for name, array in zip(names, (bias, scale), strict=True):
            model.graph.initializer.append(numpy_helper.from_array(array, name))
        output = f"{node.name}.bias_DequantizeLinear_Output"
        node.input[BIAS] = output
        model.graph.node.insert(
            0, helper.make_node("DequantizeLinear", names, [output], output, axis=0)
        )
    return model


def quantized_only_for(model: onnx.ModelProto, nodes: list[str]) -> onnx.ModelProto:
    """Let only the operators `nodes` of `model` read quantized activations.

    ONNX Runtime's quantizer connects every consumer to the quantized tensor, which would quantize
    skip connections in each layer for no gain. Outputs of convolutions stay quantized for all
    consumers.
    """
    producers = {name: node for node in model.graph.node for name in node.output}
    rounded = {node.output[0] for node in convolutions(model, nodes)}
    for node in model.graph.node:
        if node.name not in nodes and node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
            plain = [(name, before_qdq(name, producers)) for name in node.input]
            node.input[:] = [name if source in rounded else source for name, source in plain]
    return model


def onnxruntime_qdq(
    model: onnx.ModelProto, ranges: Ranges, nodes: list[str], scheme: Scheme, repair: Repair
) -> onnx.ModelProto:
    """Return `model` with Q/DQ around the operators `nodes`, by ONNX Runtime's quantizer."""
    from onnxruntime.quantization import CalibrationMethod, QuantType
    from onnxruntime.quantization.calibrate import TensorData, TensorsData
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

    bounds = {
        name: TensorData(lowest=np.float32(low), highest=np.float32(high))
        for name, (low, high) in ranges.items()
    }
    options = {
        "ActivationSymmetric": repair.get("activations") == "symmetric",
        "WeightSymmetric": True,
        "QuantizeBias": False,
        "QDQDisableWeightAdjustForInt32Bias": True,
        # keep the 32-bit accumulator: the bias is added to it, not to a quantized output
        "OpTypesToExcludeOutputQuantization": [] if repair.get("outputs") else ["Gemm", "MatMul"],
    }
    quantizer = QDQQuantizer(
        model,
        True,  # per-channel weights
        scheme.reduced,
        QuantType.QInt8,
        QuantType[scheme.activations],
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
    if not repair.get("outputs"):
        quantized = quantized_only_for(quantized, nodes)
    quantized = with_integer_biases(quantized, nodes)
    drop_unused_initializers(quantized)
    return quantized


def smoothed(
    model: onnx.ModelProto, ranges: Ranges, channels: Channels, nodes: list[str], *, strength: float
) -> tuple[onnx.ModelProto, Ranges]:
    """Apply SmoothQuant: return `model` with activation outliers moved into weights, and ranges.

    With s = max|x|^strength / max|w|^(1 - strength), each input channel of the operators `nodes` is
    divided by s and the matching row of the weights is multiplied by s, so outputs stay the same
    (Xiao et al. 2023, "SmoothQuant", equation 4). The new ranges are minmax. Convolutions stay as
    they are. Raises TightropeError where `channels` has no bounds of an input, as in an imported
    cache.
    """
    made = copy_of(model)
    ranges = dict(ranges)
    every = [node for node in weighted_nodes(made) if node.op_type != "Conv"]
    chosen = [node for node in every if node.name in nodes]
    for name in dict.fromkeys(node.input[0] for node in chosen):
        if name not in channels:
            raise TightropeError(f"no bounds of the channels of {name}: calibrate for SmoothQuant")
        # all consumers, so that the factors do not depend on the choice of `nodes`
        consumers = [node for node in every if node.input[0] == name]
        low, high = (np.array(channels[name][end]) for end in ("low", "high"))
        weights = [rows_of(node, constant_of(made, node.input[1])) for node in consumers]
        largest = np.max([np.abs(one).max(axis=1) for one in weights], axis=0)
        scale = smoothing(np.maximum(np.abs(low), np.abs(high)), largest, strength)
        multiplied = f"{name}{SMOOTHED}"
        consumers = [node for node in chosen if node.input[0] == name]
        inputs = [name, add_constant(made, f"{multiplied}_factors", 1 / scale)]
        multiply = helper.make_node("Mul", inputs, [multiplied], name=multiplied)
        made.graph.node.insert(place_of(made, consumers[0]), multiply)
        for node in consumers:
            node.input[0] = multiplied
            scaled = rows_of(node, rows_of(node, constant_of(made, node.input[1])) * scale[:, None])
            # a weight may be shared by operators with other inputs
            node.input[1] = add_constant(made, f"{node.name}.weight{SMOOTHED}", scaled)
        ranges[multiplied] = [float((low / scale).min()), float((high / scale).max())]
    drop_unused_initializers(made)
    return made, ranges


def smoothing(activations: np.ndarray, weights: np.ndarray, strength: float) -> np.ndarray:
    """Return SmoothQuant's factor per channel from the largest absolute values."""
    empty = (activations < SMALLEST) | (weights < SMALLEST)
    one = np.maximum(activations, SMALLEST) ** strength
    other = np.maximum(weights, SMALLEST) ** (1 - strength)
    return np.where(empty, 1.0, one / other)


def corrected_biases(
    quantized: onnx.ModelProto, original: onnx.ModelProto, channels: Channels
) -> None:
    """Correct the mean output error that weight quantization causes, per quantized operator.

    The correction (W - quantized W)ᵀ times the mean input is added to the output (Nagel et al.
    2019, "Data-Free Quantization Through Weight Equalization and Bias Correction", section 4.2).
    Convolutions stay as they are.
    """
    floats = {node.name: node for node in weighted_nodes(original)}
    for node in list(quantized.graph.node):
        name = floats[node.name].input[0].removesuffix(SMOOTHED) if node.name in floats else ""
        rounded = dequantized_weight(quantized, node) if name else None
        if rounded is None or node.op_type == "Conv":
            continue
        if name not in channels:
            raise TightropeError(f"no means of the channels of {name}: calibrate to correct biases")
        mean = np.array(channels[name]["mean"]) * smoothing_of(original, floats[node.name].input[0])
        lost = rows_of(node, constant_of(original, floats[node.name].input[1]) - rounded)
        add_to_output(quantized, node, mean @ lost)
    drop_unused_initializers(quantized)


def add_to_output(model: onnx.ModelProto, node: onnx.NodeProto, values: np.ndarray) -> None:
    """Add a vector to the output of `node`: to its bias if it has one, else by an Add node."""
    output = node.output[0]
    graph = Graph(model)
    added = graph.consumer(output, "Add")
    reader = node if added is None else added
    for place, name in enumerate(reader.input):
        if name in graph.constants and (added is not None or place == BIAS):
            total = constant_of(model, name) + values
            reader.input[place] = add_constant(model, f"{output}_correction", total)
            return
    node.output[0] = f"{output}_uncorrected"
    constant = add_constant(model, f"{output}_correction", values)
    correction = helper.make_node(
        "Add", [node.output[0], constant], [output], name=f"{node.name}.correction"
    )
    model.graph.node.insert(place_of(model, node) + 1, correction)


def smoothing_of(model: onnx.ModelProto, name: str) -> Any:
    """Return the factors by which `smoothed` multiplied the channels of tensor `name`, else 1."""
    if not name.endswith(SMOOTHED):
        return 1.0
    producer = next(node for node in model.graph.node if name in node.output)
    return constant_of(model, producer.input[1])
