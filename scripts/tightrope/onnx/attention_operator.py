"""Replace attention of several operators by one Attention operator of opset 23."""

from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tightrope.onnx.edit import drop_unused_initializers
from tightrope.onnx.opset import at_opset
from tightrope.onnx.trial_shapes import shapes_seen

OPSET = 23
HEADS_FIRST, KEYS_LAST = [0, 2, 1, 3], [0, 2, 3, 1]
# constant: the mask is the same for all heads
ONE_HEAD = "attention_mask_heads"
# a mask of this rank has axes of [batch, heads, queries, keys]
RANK = 4


class Attention(NamedTuple):
    """Attention in a graph: its tensors [batch, sequence, heads * width], and its operators."""

    query: str
    key: str
    value: str
    # added to the scores; broadcast to [batch, heads, queries, keys]
    mask: str | None
    heads: int
    output: str
    # the operator that makes `output`, which the Attention operator takes the place of
    last: onnx.NodeProto


class Graph:
    """Shapes in trial runs, producers and readers of a graph's tensors."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.shapes = shapes_seen(model)
        self.producers = {name: node for node in model.graph.node for name in node.output}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def made_by(self, name: str, kind: str) -> onnx.NodeProto | None:
        """Return the operator of type `kind` that makes a tensor, else None."""
        node = self.producers.get(name)
        return node if node is not None and node.op_type == kind else None

    def read_by(self, name: str, kind: str) -> onnx.NodeProto | None:
        """Return the only operator that reads a tensor if it has type `kind`, else None."""
        readers = self.readers.get(name, [])
        return readers[0] if len(readers) == 1 and readers[0].op_type == kind else None

    def split(self, name: str, order: list[int]) -> tuple[str, list[int]] | None:
        """Return the tensor that is split into heads to make `name`, and [heads, width].

        None unless `name` is its Reshape to [batch, sequence, heads, width], transposed by `order`.
        """
        transposed = self.made_by(name, "Transpose")
        if transposed is None or list(transposed.attribute[0].ints) != order:
            return None
        reshaped = self.made_by(transposed.input[0], "Reshape")
        if reshaped is None or len(self.shapes[reshaped.input[0]][0]) != RANK - 1:
            return None
        return reshaped.input[0], list(self.shapes[reshaped.output[0]][0][2:])


def with_attention_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of `model` in which softmax(query x key + mask) x value is one operator.

    Attention of another form stays as it is; the number of those replaced is printed. The operator
    is ONNX's `Attention` of opset 23, without a scale of its own (https://onnx.ai/onnx/operators/
    onnx__Attention.html); its mask is expanded to [batch, 1, queries, keys], as ONNX Runtime wants
    it. Raises TightropeError where the opset cannot be raised.
    """
    made = at_opset(model, OPSET)
    graph = Graph(made)
    found = [attention_at(graph, node) for node in made.graph.node if node.op_type == "Softmax"]
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


def attention_at(graph: Graph, softmax: onnx.NodeProto) -> Attention | None:
    """Return the attention around a Softmax, None where it has another form."""
    scores, mask = softmax.input[0], None
    if (added := graph.made_by(scores, "Add")) is not None:
        products = [name for name in added.input if graph.made_by(name, "MatMul") is not None]
        if len(products) != 1:
            return None
        (scores,) = products
        (mask,) = (name for name in added.input if name != scores)
    product = graph.made_by(scores, "MatMul")
    mixed = graph.read_by(softmax.output[0], "MatMul")
    if product is None or mixed is None:
        return None
    query = graph.split(product.input[0], HEADS_FIRST)
    key = graph.split(product.input[1], KEYS_LAST)
    value = graph.split(mixed.input[1], HEADS_FIRST)
    transposed = graph.read_by(mixed.output[0], "Transpose")
    if query is None or key is None or value is None or transposed is None:
        return None
    last = graph.read_by(transposed.output[0], "Reshape")
    if (
        last is None
        or len(graph.shapes[last.output[0]][0]) != RANK - 1
        or list(transposed.attribute[0].ints) != HEADS_FIRST
    ):
        return None
    if not query[1] == key[1] == value[1]:
        return None
    return Attention(query[0], key[0], value[0], mask, query[1][0], last.output[0], last)


def operators_of(one: Attention, number: int) -> list[onnx.NodeProto]:
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
        "Attention", inputs, [one.output], name, scale=1.0, **sizes_of_heads
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
