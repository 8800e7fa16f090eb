"""What a TensorRT engine really runs, from what its inspector says of each layer.

Of the operators of a transformer most are fused by Myelin, TensorRT's compiler. Its layers are of
the types `gemm`, `fusion` (a product with what follows it) and `kgen` (a kernel of its own), and
only the kernel's name tells attention from a sum.
"""

import json
import re
from typing import Any

from tightrope.errors import WorkFailed
from tightrope.runtimes.executed import Executed, counted

Layer = dict[str, Any]
# what stands for data and for the order of streams, and computes nothing
NO_OPERATORS = ("constant", "noop", "signal", "wait")
TYPES = {
    **{"fp32": "fp32", "float": "fp32", "fp16": "fp16", "half": "fp16"},
    **{"bf16": "bf16", "bfloat16": "bf16", "int8": "int8", "fp8": "fp8"},
}
# "Half", or in the midst of a description: "Row major linear FP16 format"
TYPE = re.compile(rf"\b({'|'.join(TYPES)})\b", re.IGNORECASE)
# class of products -> what the type of a layer has, and what the name of its kernel has. A kernel
# for convolutions may be called implicit_gemm, one for attention gemm_mha.
PRODUCTS = {
    "attention": (re.compile("mha|attention"), re.compile("mha")),
    "convolution": (re.compile("conv(?!ert)"), re.compile("_(?:fprop|dgrad|conv)")),
    "gemm": (
        re.compile("gemm|gemv|matrixmultiply|matmul|fullyconnected|^fc$"),
        re.compile(r"gemm|gemv|^__myl_\w*?Fc(?![a-z])"),
    ),
}
# the type of the operands that a kernel's name begins with: sm80_xmma_gemm_i8i8_i8i32_f32_...
OPERANDS = re.compile(r"gemm(?:_interleaved|_indexed)?_(i8|int8|e4m3|e5m2|f8|f16|bf16|f32)")
OPERAND_TYPES = {
    **{"i8": "int8", "int8": "int8", "e4m3": "fp8", "e5m2": "fp8", "f8": "fp8"},
    **{"f16": "fp16", "bf16": "bf16", "f32": "fp32"},
}
NARROW = ("int8", "fp8")
# "name [profile 1]"; the layers of the first profile have no such mark
PROFILE = re.compile(r"\[profile +[1-9]\d*\]")


def executed(information: str) -> Executed:
    """How many operators of each class the first profile of an engine runs in which precision.

    `information` is `EngineInspector.get_engine_information(LayerInformationFormat.JSON)` of an
    engine built with `ProfilingVerbosity.DETAILED`. Products are `attention`, `convolution` and
    `gemm`, of which a kernel's name may tell tf32 from fp32; what is in no word of ours is kept in
    TensorRT's. For an engine of dynamic shapes the inspector needs an execution context whose input
    shapes are set, else it names no types. Raises WorkFailed for an engine without details.
    """
    layers = [one for one in layers_of(information) if not PROFILE.search(one["Name"])]
    kinds = [(kind_of(one), one) for one in layers]
    return counted(
        (kind, product_precision(one) if kind in PRODUCTS else precision(one))
        for kind, one in kinds
        if kind.casefold() not in NO_OPERATORS
    )


def layers_of(information: str) -> list[Layer]:
    """The layers of an inspector's JSON; raises WorkFailed where they hold no details."""
    try:
        # names of fused operators are joined by control characters
        document = json.loads(information, strict=False)
        layers = document["Layers"]
    except (ValueError, TypeError, KeyError):
        raise WorkFailed(
            f"what the inspector of the engine says is no JSON with layers: {information[:60]!r}",
            transient=False,
        ) from None
    # with LAYER_NAMES_ONLY a layer is its name, with NONE there are none
    if not layers or not all(isinstance(one, dict) and "LayerType" in one for one in layers):
        raise WorkFailed(
            "the engine holds no details of its layers, so nobody can tell what it runs in: "
            "build it with ProfilingVerbosity.DETAILED",
            transient=False,
        )
    return layers


def kind_of(layer: Layer) -> str:
    """The class of products that the layer is of, else the type that TensorRT gives it."""
    named, kernel = layer["LayerType"], layer.get("TacticName", "")
    for text, which in ((named.casefold(), 0), (kernel, 1)):
        for kind, patterns in PRODUCTS.items():
            if patterns[which].search(text):
                return kind
    return named


def product_precision(layer: Layer) -> str:
    """In what a product is computed: what its kernel's name says, else the type of its data.

    A kernel may convert operands itself: with weights of another type than int8 or fp8 data, the
    product is in the type of the weights.
    """
    kernel = layer.get("TacticName", "")
    match = OPERANDS.search(kernel)
    data = first_type(layer.get("Inputs", []))
    found = OPERAND_TYPES[match[1]] if match else data
    weights = layer.get("Weights")
    if not match and found in NARROW and isinstance(weights, dict) and "Type" in weights:
        found = word(weights["Type"])
    return "tf32" if found == "fp32" and "tf32" in kernel else found


def precision(layer: Layer) -> str:
    """The type of the numbers that a layer reads, or where it reads none that it writes."""
    tensors = [*layer.get("Inputs", []), *layer.get("Outputs", [])]
    words = [type_of(one) for one in tensors]
    return next((one for one in words if one in TYPES.values()), words[0] if words else "unknown")


def first_type(tensors: list[dict[str, Any]]) -> str:
    """The type of the first tensor, which is the data; of a fused product others may follow."""
    return type_of(tensors[0]) if tensors else "unknown"


def type_of(tensor: dict[str, Any]) -> str:
    """The type of a tensor, which some layers give apart from its format."""
    return word(tensor.get("Format/Datatype") or tensor.get("Datatype") or "unknown")


def word(text: str) -> str:
    """Our word for the type in a text, or the text itself where it holds none that we know."""
    match = TYPE.search(text)
    return TYPES[match[1].casefold()] if match else text
