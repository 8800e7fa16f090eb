"""Operators that a TensorRT engine executes, by its inspector's layer information; their times.

Myelin, TensorRT's compiler, fuses most operators of a transformer. Its layer types are `gemm`,
`fusion` (a product with what follows it) and `kgen` (a generated kernel); only the name of the
kernel tells attention from a sum.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from tightrope.errors import WorkFailed
from tightrope.records.profile import OperatorTime
from tightrope.runtimes.executed import (
    Executed,
    as_tf32,
    counted,
    require_precision,
    share_of_products,
    unknown_types,
)
from tightrope.runtimes.operator_times import FUSED, Tensor, operator_time

Layer = dict[str, Any]
# layers for data and for the order of streams, which compute nothing
NO_OPERATORS = ("constant", "noop", "signal", "wait")
TYPES = {
    **dict.fromkeys(("fp32", "float", "float32"), "fp32"),
    **dict.fromkeys(("fp16", "half", "float16"), "fp16"),
    **{"bf16": "bf16", "bfloat16": "bf16", "int8": "int8"},
    **dict.fromkeys(("fp8", "fp8e4m3", "e4m3", "float8", "float8e4m3", "float8e4m3fn"), "fp8"),
}
# "Half", or within a description: "Row major linear FP16 format"
TYPE = re.compile(rf"\b({'|'.join(TYPES)})\b", re.IGNORECASE)
# class of products -> pattern in the type of a layer, pattern in the name of its kernel. A
# convolution kernel may be called implicit_gemm, an attention kernel gemm_mha.
PRODUCTS = {
    "attention": (re.compile("mha|attention"), re.compile("mha")),
    "convolution": (re.compile("conv(?!ert)"), re.compile("_(?:fprop|dgrad|conv)")),
    "gemm": (
        re.compile("gemm|gemv|matrixmultiply|matmul|fullyconnected|^fc$"),
        re.compile(r"gemm|gemv|^__myl_\w*?Fc(?![a-z])"),
    ),
}
# first operand type in the name of a kernel: sm80_xmma_gemm_i8i8_i8i32_f32_...
OPERANDS = re.compile(r"gemm(?:_interleaved|_indexed)?_(i8|int8|e4m3|e5m2|f8|f16|bf16|f32)")
OPERAND_TYPES = {
    **{"i8": "int8", "int8": "int8", "e4m3": "fp8", "e5m2": "fp8", "f8": "fp8"},
    **{"f16": "fp16", "bf16": "bf16", "f32": "fp32"},
}
NARROW = ("int8", "fp8")
# of the times of layers
GROUPS = {"attention": "attention", "convolution": "products", "gemm": "products"}
# "name [profile 1]"; layers of the first profile have no such suffix
PROFILE = re.compile(r"\[profile +([1-9]\d*)\]")
# number of the part of a profile that Myelin compiled a layer in: "__myl_Fc_myl11_3" is of part 11
PART = re.compile(r"_myl(\d+)(?:_\d+)?$")


def executed(information: str, profile: int = 0) -> Executed:
    """Count the operators of one optimization profile of an engine by class and precision.

    `information` is `EngineInspector.get_engine_information(LayerInformationFormat.JSON)` of an
    engine built with `ProfilingVerbosity.DETAILED`: of all profiles, or if it names none, of that
    one alone. Products have the classes `attention`,
    `convolution` and `gemm`; the name of a kernel may tell tf32 from fp32. Unknown classes and
    types keep TensorRT's names. For an engine with dynamic shapes the inspector needs an execution
    context with input shapes set, else it reports no types. Raises WorkFailed for an engine without
    details.
    """
    layers = layers_of(information)
    numbers = profiles_of(layers)
    if any(numbers):
        layers = [one for one, number in zip(layers, numbers, strict=True) if number == profile]
    kinds = [(kind_of(one), one) for one in layers]
    return counted(
        (kind, product_precision(one) if kind in PRODUCTS else precision(one))
        for kind, one in kinds
        if kind.casefold() not in NO_OPERATORS
    )


def weakest(information: str, precision: str, profiles: int) -> Executed:
    """Return `executed` of the profile with the smallest share of products in the precision.

    Of profiles whose types are known, if there are such. Raises WorkFailed where the products of
    one ran in other types only.
    """
    found = [one for number in range(profiles) if (one := executed(information, number))]
    if precision == "tf32":  # the inspector does not report which fp32 products used it
        found = [as_tf32(one) for one in found]
    for one in found:
        require_precision(one, precision)
    return min(found, key=lambda one: (bool(unknown_types(one)), share_of_products(one, precision)))


def profiles_of(layers: list[Layer]) -> list[int]:
    """Return the optimization profile of each layer.

    It is in the layer's name, or in the name of another layer of the same part, or in that of what
    they read and write; else it is the first.
    """
    parts = [match[1] if (match := PART.search(one["Name"])) else one["Name"] for one in layers]
    of_part: dict[str, int] = {}
    for part, one in zip(parts, layers, strict=True):
        names = [one["Name"], *(end.get("Name", "") for end in ends_of(one))]
        for match in filter(None, map(PROFILE.search, names)):
            of_part.setdefault(part, int(match[1]))
    return [of_part.get(part, 0) for part in parts]


def ends_of(layer: Layer) -> list[dict[str, Any]]:
    """Return the tensors that a layer reads and writes."""
    return [*layer.get("Inputs", []), *layer.get("Outputs", [])]


def layers_of(information: str) -> list[Layer]:
    """Return the layers of an inspector's JSON; raise WorkFailed where they hold no details."""
    try:
        # names of fused operators are joined by control characters
        document = json.loads(information, strict=False)
        layers = document["Layers"]
    except (ValueError, TypeError, KeyError):
        raise WorkFailed(
            f"what the inspector of the engine says is no JSON with layers: {information[:60]!r}",
            transient=False,
        ) from None
    # with LAYER_NAMES_ONLY a layer is only its name, with NONE the list is empty
    if not layers or not all(isinstance(one, dict) and "LayerType" in one for one in layers):
        raise WorkFailed(
            "the engine holds no details of its layers, so its precisions are unknown: "
            "build it with ProfilingVerbosity.DETAILED",
            transient=False,
        )
    return layers


def kind_of(layer: Layer) -> str:
    """Return the class of product of a layer, else the type that TensorRT gives it."""
    named, kernel = layer["LayerType"], layer.get("TacticName", "")
    for text, which in ((named.casefold(), 0), (kernel, 1)):
        for kind, patterns in PRODUCTS.items():
            if patterns[which].search(text):
                return kind
    return named


def product_precision(layer: Layer) -> str:
    """Return the precision of a product: by its kernel's name, else by the type of its data.

    A kernel may convert operands itself: if the data is int8 or fp8 and the weights have another
    type, the product runs in the type of the weights.
    """
    kernel, inputs = layer.get("TacticName", ""), layer.get("Inputs", [])
    match = OPERANDS.search(kernel)
    # the data comes first; a fused product may read more tensors
    data = type_of(inputs[0]) if inputs else "unknown"
    found = OPERAND_TYPES[match[1]] if match else data
    weights = layer.get("Weights")
    if not match and found in NARROW and isinstance(weights, dict) and "Type" in weights:
        found = word(weights["Type"])
    return "tf32" if found == "fp32" and "tf32" in kernel else found


def precision(layer: Layer) -> str:
    """Return the type that a layer reads, or the type that it writes if it reads none."""
    words = [type_of(one) for one in ends_of(layer)]
    return next((one for one in words if one in TYPES.values()), words[0] if words else "unknown")


def type_of(tensor: dict[str, Any]) -> str:
    """Return the type of a tensor, which some layers list apart from its format."""
    return word(tensor.get("Format/Datatype") or tensor.get("Datatype") or "unknown")


def word(text: str) -> str:
    """Return the name of the type in a text, or the text itself if it holds no known type."""
    match = TYPE.search(text)
    return TYPES[match[1].casefold()] if match else text


def timed_layers(information: str, seen: Iterable[tuple[str, float]]) -> Iterator[OperatorTime]:
    """Yield a layer for each name and seconds that TensorRT's profiler told. Not run on a GPU.

    `information` is the inspector's, as for `executed`; of a layer that it does not name
    nothing else is known.
    """
    known = {one["Name"]: one for one in layers_of(information)}
    for name, seconds in seen:
        layer = known.get(name)
        if layer is None:
            yield OperatorTime(name, FUSED, FUSED, "unknown", seconds, 0.0, 0.0)
            continue
        kind = kind_of(layer)
        group = GROUPS.get(kind, FUSED)
        read, made = (tensors_of(layer.get(end, ())) for end in ("Inputs", "Outputs"))
        found = operator_time(name, kind, seconds, read, made if read else [], group=group)
        yield replace(found, type=product_precision(layer)) if kind in PRODUCTS else found


def tensors_of(ends: Iterable[dict[str, Any]]) -> list[Tensor]:
    """Return the tensors of a layer; none where the sizes of one are not known."""
    found = [Tensor(tuple(one.get("Dimensions", ())), type_of(one)) for one in ends]
    return found if all(one.shape and min(one.shape) > 0 for one in found) else []
