"""The time of each operator of a call, with the work that it does, whatever the runtime.

An operator does `operations` (multiplications and additions) and moves at least `bytes`: its
inputs, weights included, and its outputs, each once. Both follow from shapes and types.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from math import prod
from typing import NamedTuple

from msgspec.structs import replace

from tightrope.inputs.arrays import Arrays
from tightrope.records.profile import OperatorTime
from tightrope.runtimes.executed import is_product

# inputs of a call, and the number of calls with them
Calls = Sequence[tuple[Arrays, int]]

# group of operators -> words in a runtime's name of one, the first that fits
GROUPS = {
    "attention": ("attention", "attn", "mha", "sdpa"),
    "softmax": ("softmax",),
    "normalization": ("norm", "mvn"),
    "conversions": ("quantize", "convert", "cast", "reorder", "_to_copy", "todtype", "fakequant"),
    "embeddings": ("gather", "embedding", "index_select"),
    "activations": ("gelu", "erf", "tanh", "relu", "silu", "swish", "sigmoid"),
    "moves": (
        *("transpose", "reshape", "slice", "concat", "copy", "expand", "view", "permute", "pad"),
        *("split", "clone", "contiguous", "as_strided", "squeeze", "cat", "stack", "empty"),
    ),
}
PRODUCTS, ATTENTION, ELEMENTWISE = "products", "attention", "elementwise"
# what a call of an operator takes beside the operator
DISPATCH = "dispatch"
# loops over elements that a compiler wrote; their work is not known
FUSED = "fused kernels"
WIDTHS = {"fp32": 4, "bf16": 2, "fp16": 2, "int8": 1, "fp8": 1, "int32": 4, "int64": 8, "bool": 1}


class Tensor(NamedTuple):
    """Shape and type of an operand."""

    shape: tuple[int, ...]
    type: str

    @property
    def bytes(self) -> float:
        """Return its size in bytes; an unknown type counts as four bytes per element."""
        return float(prod(self.shape) * WIDTHS.get(self.type, 4))


@cache
def group_of(kind: str, *, products: int = 1) -> str:
    """Return the group of an operator by the runtime's name of it.

    `products` is the number of matrix products that were fused into it; a fused operator with two
    is attention.
    """
    name = kind.casefold()
    if products > 1 or any(word in name for word in GROUPS["attention"]):
        return "attention"
    if is_product(name):
        return PRODUCTS
    named = (group for group, words in GROUPS.items() if any(word in name for word in words))
    return next(named, ELEMENTWISE)


def operator_time(
    name: str,
    kind: str,
    seconds: float,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    *,
    group: str | None = None,
) -> OperatorTime:
    """Return the time of an operator with the work that follows from its shapes."""
    group = group or group_of(kind)
    floats = [one.type for one in inputs if one.type not in ("int64", "bool")]
    return OperatorTime(
        name=name,
        kind=kind,
        group=group,
        type="int8" if group == PRODUCTS and "int8" in floats else next(iter(floats), "fp32"),
        seconds=seconds,
        operations=operations_of(kind, group, inputs, outputs),
        bytes=sum(one.bytes for one in (*inputs, *outputs)),
    )


def operations_of(
    kind: str, group: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]
) -> float:
    """Return multiplications and additions of an operator, by its shapes.

    A product does two for each element of its result and each element of the axis that it sums
    over: the last axis of its first operand, or for a convolution all axes of a filter.
    """
    results = float(prod(outputs[0].shape)) if outputs else 0.0
    if group == PRODUCTS and inputs:
        if "conv" in kind.casefold():
            filters = [one.shape for one in inputs[1:] if len(one.shape) == len(inputs[0].shape)]
            return 2 * results * (prod(filters[0][1:]) if filters else 1)
        return 2 * results * (inputs[0].shape[-1] if inputs[0].shape else 1)
    if group == "attention" and len(inputs) > 1 and len(inputs[0].shape) > 2:
        # query x key and shares x value, for each query, key and channel
        return 4.0 * prod(inputs[0].shape) * keys_of(inputs)
    # of each element of other results one: a sum, a product, a comparison
    return results if group not in ("moves", "conversions") else 0.0


def keys_of(inputs: Sequence[Tensor]) -> int:
    """Return the number of keys of attention, by its key if that is not transposed, else a mask."""
    query, key = (one.shape for one in inputs[:2])
    if key == query:
        return key[-2]
    masks = [one.shape[-1] for one in inputs[2:] if len(one.shape) > 2 and one.shape[-2] == 1]
    return masks[0] if masks else max(key[-2:])


def per_call(times: Iterable[OperatorTime], calls: int) -> list[OperatorTime]:
    """Add up the times of operators of the same name over `calls` calls; the longest first."""
    same: dict[tuple[str, str], list[OperatorTime]] = {}
    for one in times:
        same.setdefault((one.name, one.kind), []).append(one)
    summed = (
        replace(
            ones[0],
            seconds=sum(one.seconds for one in ones) / calls,
            operations=sum(one.operations for one in ones) / calls,
            bytes=sum(one.bytes for one in ones) / calls,
        )
        for ones in same.values()
    )
    return sorted(summed, key=lambda one: -one.seconds)
