"""Recognize attention whose heads are split by Reshape and Transpose, and joined by them."""

from typing import NamedTuple

import onnx

from tightrope.onnx.attention_products import Attention, Graph
from tightrope.onnx.row_dependencies import Shapes

HEADS_FIRST, KEYS_LAST = [0, 2, 1, 3], [0, 2, 3, 1]
# axes [batch, heads, queries, keys] or [batch, heads, sequence, width]
RANK = 4


class HeadedAttention(NamedTuple):
    """softmax(query x key + mask) x value per head; inputs [batch, sequence, heads * width]."""

    query: str
    key: str
    value: str
    # added to the scores; broadcast to [batch, heads, queries, keys]
    mask: str | None
    heads: int
    # the operator that makes the output [batch, queries, heads * width]
    last: onnx.NodeProto


def headed_attention(one: Attention, graph: Graph, shapes: Shapes) -> HeadedAttention | None:
    """Return what `one` reads and which operator ends it, None for attention of another form.

    The form is that of `onnx.attention`: between the first product and the Softmax only the sum
    with a mask, before the products heads split by Reshape and Transpose, behind them joined so.
    """
    softmax = graph.producer(one.probabilities, "Softmax")
    mixed = graph.consumer(one.probabilities, "MatMul")
    if softmax is None or mixed is None:
        return None
    added = graph.producer(softmax.input[0], "Add")
    scores = added.input if added is not None else softmax.input
    product = next(
        node.output[0] for node in graph.consumers[one.query] if node.name == one.products[0]
    )
    masks = [name for name in scores if name != product]
    if len(masks) != len(scores) - 1:
        return None
    query = split_heads(one.query, HEADS_FIRST, graph, shapes)
    key = split_heads(one.key, KEYS_LAST, graph, shapes)
    value = split_heads(one.value, HEADS_FIRST, graph, shapes)
    last = joined_heads(mixed.output[0], graph, shapes)
    if query is None or key is None or value is None or last is None:
        return None
    if not query[1] == key[1] == value[1]:
        return None
    return HeadedAttention(query[0], key[0], value[0], next(iter(masks), None), query[1][0], last)


def split_heads(
    name: str, order: list[int], graph: Graph, shapes: Shapes
) -> tuple[str, tuple[int, ...]] | None:
    """Return the tensor that is split into heads to make `name`, and (heads, width).

    None unless `name` is its Reshape to [batch, sequence, heads, width], transposed by `order`.
    """
    transposed = graph.producer(name, "Transpose")
    if transposed is None or list(transposed.attribute[0].ints) != order:
        return None
    reshaped = graph.producer(transposed.input[0], "Reshape")
    if reshaped is None or len(shapes[reshaped.input[0]][0]) != RANK - 1:
        return None
    return reshaped.input[0], shapes[reshaped.output[0]][0][2:]


def joined_heads(name: str, graph: Graph, shapes: Shapes) -> onnx.NodeProto | None:
    """Return the Reshape that makes [batch, sequence, heads * width] of heads, else None."""
    transposed = graph.consumer(name, "Transpose")
    if transposed is None or list(transposed.attribute[0].ints) != HEADS_FIRST:
        return None
    last = graph.consumer(transposed.output[0], "Reshape")
    return last if last is not None and len(shapes[last.output[0]][0]) == RANK - 1 else None
