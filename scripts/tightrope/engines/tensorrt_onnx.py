"""ONNX files as a strongly typed runtime takes them: typed, or with Q/DQ that TensorRT supports."""

import ml_dtypes
import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tightrope.errors import TightropeError, WorkFailed, in_one_line
from tightrope.onnx.attention import with_attention_operators
from tightrope.onnx.edit import (
    SMALLEST_SCALE,
    STANDARD,
    at_opset,
    attribute,
    copy_of,
    graphs_in,
    label,
    opset_of,
    set_operators,
)
from tightrope.onnx.float_model import PAIR, QUANTIZE, all_nodes, constants_of
from tightrope.variants import GIVEN

FLOAT = TensorProto.FLOAT
# type that replaces float32
TYPES = {
    "fp32": FLOAT,
    "tf32": FLOAT,
    "fp16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "int8-fp16": TensorProto.FLOAT16,
    "fp8": TensorProto.FLOAT16,
}
# type of the zero-points of a quantized file
ZEROS = {"int8-fp16": TensorProto.INT8, "fp8": TensorProto.FLOAT8E4M3FN}
WORDS: dict[int, str] = {
    TensorProto.FLOAT16: "tensor(float16)",
    TensorProto.BFLOAT16: "tensor(bfloat16)",
}
# first opset in which every common operator supports the type: scales of Q/DQ, convolutions
OPSETS: dict[int, int] = {TensorProto.FLOAT16: 19, TensorProto.BFLOAT16: 22}
# attributes that set the type of an output
SAYING_TYPES = ("to", "dtype", "output_dtype")
KINDS = (TensorProto.INT8, TensorProto.FLOAT8E4M3FN)
REMEDY = (
    "quantize symmetrically in int8 or E4M3 (onnxruntime.quantization: activation_type=QInt8, "
    "weight_type=QInt8, extra_options ActivationSymmetric=True, WeightSymmetric=True and "
    "QuantizeBias=False), or give the float file without `quantized`, which this project then "
    "quantizes"
)


def model_to_build(
    model: onnx.ModelProto, precision: str, *, attention_operator: bool
) -> onnx.ModelProto:
    """Return the model in the types of `precision`; for `given` itself, once its Q/DQ is checked.

    With `attention_operator` attention is one operator in fp16 and bf16. Raises WorkFailed where
    TensorRT does not support the Q/DQ, or the types do not fit.
    """
    if precision == GIVEN:
        require_supported_qdq(model)
        return model
    # it is never decomposed, and may have no kernel for other types (NVIDIA/TensorRT, issue 4705)
    if attention_operator and precision in ("fp16", "bf16"):
        model = with_attention_operators(model)
    return typed(model, precision)


def typed(model: onnx.ModelProto, precision: str) -> onnx.ModelProto:
    """Return a copy of `model` whose float32 tensors have the type of `precision`.

    fp32 and tf32 leave it unchanged. int8-fp16 and fp8 take a Q/DQ file in int8 or E4M3, whose
    scales become float16 too, because the output of DequantizeLinear has the type of its scale.
    Inputs and outputs keep their types. Raises WorkFailed where the opset lacks the types and
    cannot be raised, where an operator would get mixed types or stay in float32, or where the Q/DQ
    does not match the precision.
    """
    kind = TYPES[precision]
    made = copy_of(model)
    if precision in ZEROS:
        require_pairs(made, precision)
    if kind != FLOAT:
        made = with_opset_for(made, kind)
        retype(made, kind)
        cast_at_both_ends(made, kind)
    require_types(made, precision)
    return made


def require_pairs(model: onnx.ModelProto, precision: str) -> None:
    """Raise WorkFailed unless there is Q/DQ with zero-points 0 and scales that float16 holds."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    pairs = [node for node in model.graph.node if node.op_type in PAIR]
    faults = [
        f"{node.name} has {why}" for node in pairs if (why := fault(node, constants, precision))
    ]
    if faults or not pairs:
        why = faults[0] if faults else "no operator is quantized"
        raise WorkFailed(f"no ONNX file for {precision}: {why}", transient=False)


def fault(
    node: onnx.NodeProto, constants: dict[str, onnx.TensorProto], precision: str
) -> str | None:
    """Return the fault in the scale or zero-point of a Q/DQ node, None for no fault."""
    if len(node.input) < 3 or not constants.keys() >= set(node.input[1:]):
        return "no constant scale and zero-point"
    scale, zero = (numpy_helper.to_array(constants[name]) for name in node.input[1:])
    wanted = helper.tensor_dtype_to_np_dtype(ZEROS[precision])
    if zero.dtype != wanted or zero.astype(np.float32).any():
        return f"a zero-point that is not 0 of {wanted}"
    if not ((scale >= SMALLEST_SCALE) & (scale <= np.finfo(np.float16).max)).all():
        return "a scale that float16 does not hold"
    return None


def with_opset_for(model: onnx.ModelProto, kind: int) -> onnx.ModelProto:
    """Return `model` in an opset whose operators support that type: its current one if possible.

    Raises WorkFailed naming both opsets where the model cannot be converted.
    """
    found, needed = opset_of(model), OPSETS[kind]
    nodes = [node for graph in graphs_in(model.graph) for node in graph.node]
    lacking = [node for node in nodes if float_only(node, found, kind)]
    if all(float_only(node, max(found, needed), kind) for node in lacking):
        return model
    try:
        return at_opset(model, needed)
    except TightropeError as error:
        raise WorkFailed(f"{WORDS[kind]}: {error}", transient=False) from error


def float_only(node: onnx.NodeProto, opset: int, kind: int) -> list[str]:
    """Return inputs and outputs that may be float32 but not of that type, as scales of Resize."""
    if node.domain not in STANDARD or not onnx.defs.has(node.op_type, opset, ""):
        return []
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    found = []
    for names, places in ((node.input, schema.inputs), (node.output, schema.outputs)):
        for number, name in enumerate(names):
            types = places[min(number, len(places) - 1)].types
            if name and "tensor(float)" in types and WORDS[kind] not in types:
                found.append(name)
    return found


def retype(model: onnx.ModelProto, kind: int) -> None:
    """Change constants and type attributes of operators from float32 to that type.

    A constant that an operator accepts only in float32 stays.
    """
    opset = opset_of(model)
    del model.graph.value_info[:]
    graphs = list(graphs_in(model.graph))
    nodes = [node for graph in graphs for node in graph.node]
    kept = {name for node in nodes for name in float_only(node, opset, kind)}
    for tensor in (tensor for graph in graphs for tensor in graph.initializer):
        if tensor.name not in kept:
            narrow(tensor, kind)
    for graph in graphs[1:]:
        for value in filter(is_float, (*graph.input, *graph.output, *graph.value_info)):
            value.type.tensor_type.elem_type = kind
    for node in nodes:
        if node.op_type != "Constant" or node.output[0] not in kept:
            retype_attributes(node, kind)


def retype_attributes(node: onnx.NodeProto, kind: int) -> None:
    """Change the types in an operator's attributes: of a constant, of the result of a cast."""
    if node.op_type == "ConstantOfShape" and not node.attribute:
        zero = numpy_helper.from_array(np.zeros(1, helper.tensor_dtype_to_np_dtype(kind)))
        node.attribute.append(helper.make_attribute("value", zero))
    for part in node.attribute:
        if node.op_type == "Constant" and part.name in ("value_float", "value_floats"):
            array = np.array(helper.get_attribute_value(part), np.float32)
            part.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(array)))
        if part.type == onnx.AttributeProto.TENSOR:
            narrow(part.t, kind)
        elif part.name in SAYING_TYPES and part.i == FLOAT:
            part.i = kind


def narrow(tensor: onnx.TensorProto, kind: int) -> None:
    """Convert a float32 constant to that type; no finite number becomes infinite, none becomes 0.

    A number beyond the range stands for minus infinity in a mask. It becomes a quarter of the
    largest number, so that the sum of two masks and a score is still finite, and a fully masked row
    gives no NaN in a softmax.
    """
    if tensor.data_type != FLOAT:
        return
    values = numpy_helper.to_array(tensor)
    wanted = helper.tensor_dtype_to_np_dtype(kind)
    limits = ml_dtypes.finfo(wanted)
    beyond = np.isfinite(values) & (np.abs(values) > float(limits.max))
    lost = (values != 0) & (np.abs(values) < float(limits.smallest_subnormal))
    values = np.where(beyond, np.sign(values) * (float(limits.max) / 4), values)
    values = np.where(lost, np.sign(values) * float(limits.smallest_subnormal), values)
    tensor.CopyFrom(numpy_helper.from_array(values.astype(wanted), tensor.name))


def cast_at_both_ends(model: onnx.ModelProto, kind: int) -> None:
    """Cast float32 inputs to that type and outputs back; the names of both stay."""
    graph = model.graph
    floats = [[one.name for one in ends if is_float(one)] for ends in (graph.input, graph.output)]
    inner = {name: f"{name}_{TensorProto.DataType.Name(kind)}" for ends in floats for name in ends}
    for node in (node for one in graphs_in(graph) for node in one.node):
        node.input[:] = [inner.get(name, name) for name in node.input]
        node.output[:] = [inner.get(name, name) for name in node.output]
    taken, given = ([(name, inner[name]) for name in ends] for ends in floats)
    before = [helper.make_node("Cast", [name], [own], own, to=kind) for name, own in taken]
    after = [helper.make_node("Cast", [own], [name], own, to=FLOAT) for name, own in given]
    set_operators(model, [*before, *graph.node, *after])


def is_float(value: onnx.ValueInfoProto) -> bool:
    """Return whether a tensor is float32."""
    return value.type.tensor_type.elem_type == FLOAT


def require_types(model: onnx.ModelProto, precision: str) -> None:
    """Raise WorkFailed unless ONNX infers one type per operator, and no float32.

    Operators must be in topological order.
    """
    try:
        onnx.checker.check_model(model, full_check=True)
        found = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise WorkFailed(f"{precision}: {in_one_line(error)}", transient=False) from error
    outside = {one.name for one in (*model.graph.input, *model.graph.output)}
    left = [one.name for one in found.graph.value_info if is_float(one)]
    left = [name for name in left if name not in outside]
    if TYPES[precision] != FLOAT and left:
        raise WorkFailed(f"{precision}: {left[0]} would be computed in float32", transient=False)


def require_supported_qdq(model: onnx.ModelProto) -> None:
    """Raise WorkFailed, naming the node and a remedy, unless TensorRT supports all Q/DQ of `model`.

    It supports int8 and E4M3 with zero-point 0, both constant (onnx-tensorrt,
    QuantDequantLinearHelper). Its parser takes a missing zero-point for int8, where ONNX says
    uint8: such a node is refused too.
    """
    constants = constants_of(model)
    pairs = [node for node in all_nodes(model) if node.op_type in PAIR]
    # of activations first: a bias of int32 follows from them
    for node in sorted(pairs, key=lambda one: one.op_type != QUANTIZE):
        if why := unsupported(node, constants):
            what = f"{node.op_type} {label(node)}"
            raise WorkFailed(f"TensorRT cannot run {what} with {why}: {REMEDY}", transient=False)


def unsupported(node: NodeProto, constants: dict[str, TensorProto]) -> str | None:
    """Return what TensorRT does not support in a Q/DQ node, None where it does."""
    zero = node.input[2] if len(node.input) > 2 else ""
    if not zero:
        kind = quantized_type(node, constants)
        return None if kind is None or kind in KINDS else f"the type {type_name(kind)}"
    if zero not in constants:
        return f"a zero-point, {zero}, that is no constant"
    kind = constants[zero].data_type
    values = numpy_helper.to_array(constants[zero]).astype(np.float32).ravel()
    others = values[values != 0]
    if kind in KINDS and not others.size:
        return None
    return f"the zero-point {[*others, 0][0]:g} of type {type_name(kind)}"


def quantized_type(node: NodeProto, constants: dict[str, TensorProto]) -> int | None:
    """Return the quantized type of a node without a zero-point, None where another node sets it."""
    if node.op_type == QUANTIZE:
        return attribute(node, "output_dtype", 0) or TensorProto.UINT8
    return constants[node.input[0]].data_type if node.input[0] in constants else None


def type_name(kind: int) -> str:
    """Return the name of an ONNX type in lower case."""
    return helper.tensor_dtype_to_string(kind).removeprefix("TensorProto.").lower()
