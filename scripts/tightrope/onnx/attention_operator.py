"""Replace attention of several operators by one Attention operator of opset 23."""

from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tightrope.onnx.attention_products import Attention, Graph, attention_in
from tightrope.onnx.edit import drop_unused_initializers
from tightrope.onnx.opset import at_opset
from tightrope.onnx.row_dependencies import Shapes
from tightrope.onnx.trial_shapes import shapes_seen

OPSET = 23
HEADS_FIRST, KEYS_LAST = [0, 2, 1, 3], [0, 2, 3, 1]
# constant: the mask is the same for all heads
ONE_HEAD = "attention_mask_heads"
# a mask of this rank has axes of [batch, heads, queries, keys]
RANK = 4


class Operator(NamedTuple):
    """An Attention operator: its inputs [batch, sequence, heads * width], and what it replaces."""

    query: str
    key: str
    value: str
    # added to the scores; broadcast to [batch, heads, queries, keys]
    mask: str | None
    heads: int
    # the operator that makes the output, whose place the Attention operator takes
    last: onnx.NodeProto


def with_attention_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of `model` in which softmax(query x key + mask) x value is one operator.

    Attention of another form stays as it is; the number of those replaced is printed. The operator
    is ONNX's `Attention` of opset 23, without a scale of its own (https://onnx.ai/onnx/operators/
    onnx__Attention.html); its mask is expanded to [batch, 1, queries, keys], as ONNX Runtime wants
    it. Raises TightropeError where the opset cannot be raised.
    """
    made = at_opset(model, OPSET)
    graph, shapes = Graph(made), shapes_seen(made)
    found = [operator_for(one, graph, shapes) for one in attention_in(made)[0]]
    known = {one.last.output[0]: one for one in found if one is not None}
    nodes: list[onnx.NodeProto] = []
    for node in made.graph.node:
        one = known.get(node.output[0])
        nodes += [node] if one is None else operators_of(one, len(nodes))
    print(f"attention operators: {len(known)} of {len(found)}")
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in alive(made, nodes)]
    del made.graph.node[:], made.graph.value_info[:]
    made.graph.node.extend(kept)
    if known:
        made.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), ONE_HEAD))
    drop_unused_initializers(made)
    return made


def operator_for(one: Attention, graph: Graph, shapes: Shapes) -> Operator | None:
    """Return the operator that computes the same as `one`, None for attention of another form.

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
    return Operator(query[0], key[0], value[0], next(iter(masks), None), query[1][0], last)


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


def operators_of(one: Operator, number: int) -> list[onnx.NodeProto]:
    """Return the Attention operator, after those that expand its mask."""
    name = one.last.name or f"attention_{number}"
    inputs, before = [one.query, one.key, one.value], []
    if one.mask is not None:
        batch, queries, keys, sizes, mask = (
            f"{name}_{part}" for part in ("batch", "queries", "keys", "sizes", "mask")
        )
        before = [
            helper.make_node("Shape", [one.query], [batch], batch, start=0, end=1),
            helper.make_node("Shape", [one.query], [queries], queries, start=1, end=2),
            helper.make_node("Shape", [one.key], [keys], keys, start=1, end=2),
            helper.make_node("Concat", [batch, ONE_HEAD, queries, keys], [sizes], sizes, axis=0),
            helper.make_node("Expand", [one.mask, sizes], [mask], mask),
        ]
        inputs.append(mask)
    sizes_of_heads: dict[str, Any] = {"q_num_heads": one.heads, "kv_num_heads": one.heads}
    operator = helper.make_node(
        "Attention", inputs, list(one.last.output), name, scale=1.0, **sizes_of_heads
    )
    return [*before, operator]


def alive(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Return those of the nodes, in order, whose results an output of the model needs."""
    needed = {one.name for one in model.graph.output}
    kept = []
    for node in reversed(nodes):
        if needed & set(node.output):
            needed |= set(node.input)
            kept.append(node)
    return kept[::-1]
