"""Find attention in an ONNX graph: the two products of computed tensors around a Softmax."""

from collections.abc import Iterable
from typing import NamedTuple

import onnx

# what may stand between the scores and their Softmax: scales, additive masks and biases
ELEMENTWISE = ("Add", "Div", "Mul", "Sub")
# they move or convert values
MOVES = ("Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


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


class Graph:
    """Producers and consumers of the tensors of a model."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.constants = {tensor.name for tensor in model.graph.initializer}
        self.outputs = {one.name for one in model.graph.output}
        self.producers = {name: node for node in model.graph.node for name in node.output}
        self.consumers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self.consumers.setdefault(name, []).append(node)

    def is_product(self, node: onnx.NodeProto) -> bool:
        """Return whether an operator multiplies two computed tensors."""
        return node.op_type == "MatMul" and not self.constants & set(node.input)

    def producer(self, name: str, kind: str) -> onnx.NodeProto | None:
        """Return the operator of type `kind` that makes a tensor, None for another type."""
        node = self.producers.get(name)
        return node if node is not None and node.op_type == kind else None

    def consumer(self, name: str, kind: str) -> onnx.NodeProto | None:
        """Return the operator of type `kind` that alone reads a tensor, else None."""
        nodes = self.consumers.get(name, [])
        return nodes[0] if len(nodes) == 1 and nodes[0].op_type == kind else None


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
