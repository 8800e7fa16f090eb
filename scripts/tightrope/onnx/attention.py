"""Attention in an ONNX graph: find it, and replace its operators by one of opset 23."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tightrope.onnx.edit import Graph, at_opset, replace_operators
from tightrope.onnx.session import Shapes, shapes_seen

# what may stand between the scores and their Softmax: scales, additive masks and biases
ELEMENTWISE = ("Add", "Div", "Mul", "Sub")
# they move or convert values
MOVES = ("Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
HEADS_FIRST, KEYS_LAST = [0, 2, 1, 3], [0, 2, 3, 1]
# axes [batch, heads, queries, keys] or [batch, heads, sequence, width]
RANK = 4
OPSET = 23
# constant: the mask is the same for all heads
ONE_HEAD = "attention_mask_heads"


class Attention(NamedTuple):
    """One attention: names of its three operators, and of the tensors that its products read."""

    softmax: str
    # query x key, probabilities x value
    products: tuple[str, str]
    query: str
    key: str
    probabilities: str
    value: str

    @property
    def measured(self) -> tuple[str, str, str]:
        """Return the tensors whose range depends on the data: probabilities are 0 to 1."""
        return self.query, self.key, self.value


def attention_in(model: onnx.ModelProto) -> tuple[list[Attention], dict[str, str]]:
    """Return each attention of a graph, and per other Softmax the reason why it has none."""
    graph = Graph(model)
    found: list[Attention] = []
    others: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type != "Softmax":
            continue
        before, stops = products_before(graph, node.input[0])
        after = product_after(graph, node.output[0])
        if after is None:
            others[node.name] = "its result goes to no product of two tensors alone"
        elif len(before) > 1:
            others[node.name] = f"its scores are a sum of {len(before)} products"
        elif not before:
            others[node.name] = f"its scores come from {', '.join(stops) or 'an input'}"
        else:
            products = before[0].name, after.name
            found.append(Attention(node.name, products, *before[0].input, *after.input))
    return found, others


def products_before(graph: Graph, name: str) -> tuple[list[onnx.NodeProto], list[str]]:
    """Return the products that make a tensor by sums, scales and moves, and what else does.

    The latter are types of operators, sorted: the way to a product ends at them.
    """
    products: dict[str, onnx.NodeProto] = {}
    stops: set[str] = set()
    waiting, seen = [name], {name}
    while waiting:
        node = graph.producers.get(waiting.pop())
        if node is None:
            continue
        if graph.is_product(node):
            products[node.name] = node
        elif node.op_type in (*ELEMENTWISE, *MOVES):
            read: Iterable[str] = node.input if node.op_type in ELEMENTWISE else node.input[:1]
            waiting += [one for one in read if one not in seen]
            seen.update(read)
        else:
            stops.add(node.op_type)
    return list(products.values()), sorted(stops)


def product_after(graph: Graph, name: str) -> onnx.NodeProto | None:
    """Return the product whose first operand is a tensor, maybe moved, that nothing else reads."""
    while name not in graph.outputs:
        consumers = graph.consumers.get(name, [])
        if len(consumers) != 1 or consumers[0].input[0] != name:
            return None
        if graph.is_product(consumers[0]):
            return consumers[0]
        if consumers[0].op_type not in MOVES:
            return None
        name = consumers[0].output[0]
    return None


def operators_of(
    one: Attention, graph: Graph, shapes: Shapes
) -> tuple[str, list[onnx.NodeProto]] | None:
    """Return what `one` makes, and operators that make it instead, None for another form.

    The form is that of `onnx.export`: between the first product and the Softmax only the sum
    with a mask, heads before sequences, the key transposed for its product. The operators put
    heads first, expand the mask to [batch, heads, queries, keys], and are one Attention of
    [batch, heads, sequence, width].
    """
    softmax = graph.producer(one.probabilities, "Softmax")
    mixed = graph.consumer(one.probabilities, "MatMul")
    transposed = graph.producer(one.key, "Transpose")
    if softmax is None or mixed is None or transposed is None:
        return None
    added = graph.producer(softmax.input[0], "Add")
    scores = added.input if added is not None else softmax.input
    product = next(
        node.output[0] for node in graph.consumers[one.query] if node.name == one.products[0]
    )
    masks = [name for name in scores if name != product]
    if len(masks) != len(scores) - 1 or list(transposed.attribute[0].ints) != KEYS_LAST:
        return None
    read = [shapes[name][0] for name in (one.query, one.key, one.value)]
    if {len(shape) for shape in read} != {RANK} or len({shape[1] for shape in read}) > 1:
        return None
    untransposed, output = transposed.input[0], mixed.output[0]
    batch, queries, keys, sizes, mask, key = (
        f"{output}_{part}" for part in ("batch", "queries", "keys", "sizes", "mask", "key")
    )
    inputs = [one.query, key, one.value]
    nodes = [helper.make_node("Transpose", [untransposed], [key], key, perm=HEADS_FIRST)]
    for given in masks:
        nodes += [
            helper.make_node("Shape", [one.query], [batch], batch, start=0, end=1),
            helper.make_node("Shape", [one.query], [queries], queries, start=2, end=3),
            helper.make_node("Shape", [untransposed], [keys], keys, start=1, end=2),
            helper.make_node("Concat", [batch, ONE_HEAD, queries, keys], [sizes], sizes, axis=0),
            helper.make_node("Expand", [given, sizes], [mask], mask),
        ]
        inputs.append(mask)
    name = f"{output}_attention"
    return output, [*nodes, helper.make_node("Attention", inputs, [output], name, scale=1.0)]


def with_attention_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of `model` in which softmax(query x key + mask) x value is one operator.

    Attention of another form stays as it is; the number of those replaced is printed. The operator
    is ONNX's `Attention` of opset 23, without a scale of its own (https://onnx.ai/onnx/operators/
    onnx__Attention.html), and of inputs with their heads apart, as PyTorch exports it; its mask is
    expanded to [batch, 1, queries, keys], as ONNX Runtime wants it. Raises TightropeError where the
    opset cannot be raised.
    """
    made = at_opset(model, OPSET)
    graph, shapes = Graph(made), shapes_seen(made)
    found = [operators_of(one, graph, shapes) for one in attention_in(made)[0]]
    known = dict(one for one in found if one is not None)
    print(f"attention operators: {len(known)} of {len(found)}")
    if known:
        made.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), ONE_HEAD))
    replace_operators(made, known)
    return made
