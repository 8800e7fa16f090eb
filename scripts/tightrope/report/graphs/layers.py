"""Layers of an ONNX graph: operators grouped by the modules that their names come from."""

import re
from collections.abc import Iterable, Sequence

import onnx

from tightrope.report.graphs.formats import CONVERSIONS, DEQUANTIZE, inner_graphs
from tightrope.report.graphs.record import SHARED
from tightrope.runtimes.executed import is_product

# name of the wrapper module around the classifier in files exported by this pipeline
WRAPPER = "classifier"
# ("bert", "encoder", "layer", "0", "output", "dense")
ModulePath = tuple[str, ...]
Graph = onnx.GraphProto


def layers_of(graph: Graph) -> list[tuple[str, list[int]]]:
    """Return the name and the operator indices of each layer, in execution order.

    A layer is a module of a list, such as `encoder.layer.0` or `stages.1.layers.2`, else a module
    two levels deep, such as `bert.embeddings`. An operator without a module belongs to the layer
    that produces its operands; if none does, to the layer that consumes its outputs, or to SHARED
    if several layers do. If fewer than half of the products have a module, each product starts a
    layer instead.
    """
    products, paths = weighted_products(graph), module_paths(graph)
    named = [index for index in products if paths[index] is not None]
    keys = layer_names([path for path in paths if path is not None])
    assigned: list[str | None] = [None if path is None else keys[path] for path in paths]
    if 2 * len(named) < len(products) or not any(assigned):
        assigned = [None] * len(graph.node)
        for number, index in enumerate(products, start=1):
            assigned[index] = f"{graph.node[index].op_type} {number}"
    layers = assign_layers(graph, assigned)
    layers = move_foreign_tails(graph, layers, assigned)
    order = dict.fromkeys([SHARED, *(name for name in assigned if name is not None)])
    members: dict[str, list[int]] = {name: [] for name in order}
    for index, name in enumerate(layers):
        members[name].append(index)
    return [(name, indices) for name, indices in members.items() if indices]


def weighted_products(graph: Graph) -> list[int]:
    """Return the indices of matrix products and convolutions with a constant operand."""
    constants = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type in ("Constant", DEQUANTIZE) and constants.issuperset(node.input):
            constants.update(node.output)
    return [
        index
        for index, node in enumerate(graph.node)
        if is_product(node.op_type) and constants & set(node.input)
    ]


def layer_names(paths: Sequence[ModulePath]) -> dict[ModulePath, str]:
    """Return the layer name of each module path."""
    blocks = {
        path[:end]
        for path in paths
        for end in range(2, len(path))
        if path[end - 1].isdigit() and not path[end].isdigit()
    }
    inside = {path: [end for end in range(len(path) + 1) if path[:end] in blocks] for path in paths}
    # lists whose blocks contain lists of blocks, such as the stages of a convolutional network
    staged = {path[: ends[0] - 1] for path, ends in inside.items() if len(ends) > 1}
    names: dict[ModulePath, str] = {}
    for path, ends in inside.items():
        end = ends[0] if ends else 2
        if ends and path[: end - 1] in staged:
            end = ends[1] if len(ends) > 1 else end + 1
        names[path] = ".".join(path[:end])
    return names


def assign_layers(graph: Graph, assigned: Sequence[str | None]) -> list[str]:
    """Assign a layer to every operator, starting from `assigned`."""
    rank = {name: number for number, name in enumerate(dict.fromkeys(filter(None, assigned)))}
    layers = list(assigned)
    producers: dict[str, int] = {}
    consumers: dict[str, list[int]] = {}
    for index, node in enumerate(graph.node):
        sources = [producers[name] for name in consumed_tensors(node) if name in producers]
        source_layers = [name for neighbour in sources if (name := layers[neighbour]) is not None]
        if layers[index] is None and source_layers:
            layers[index] = max(source_layers, key=rank.__getitem__)
        producers.update(dict.fromkeys(node.output, index))
        for name in consumed_tensors(node):
            consumers.setdefault(name, []).append(index)
    for index in reversed(range(len(graph.node))):
        if layers[index] is None:
            consumer_layers = {
                layers[neighbour]
                for name in graph.node[index].output
                for neighbour in consumers.get(name, ())
            }
            layers[index] = consumer_layers.pop() if len(consumer_layers) == 1 else SHARED
    return [name or SHARED for name in layers]


def consumed_tensors(node: onnx.NodeProto) -> list[str]:
    """Return the tensors that a node consumes, including those of its subgraphs."""
    names = [name for name in node.input if name]
    for graph in inner_graphs([node]):
        names += [name for inner in graph.node for name in consumed_tensors(inner)]
    return names


def move_foreign_tails(
    graph: Graph, layers: Sequence[str], assigned: Sequence[str | None]
) -> list[str]:
    """Move the end of a layer to its consumer if the previous layer of that list has no such end.

    For example, the pooling after the last of several equal blocks is not part of that block. Only
    operators without a layer in `assigned` move, and only if a single other layer consumes them.
    """
    members: dict[str, list[int]] = {}
    for index, name in enumerate(layers):
        if graph.node[index].op_type not in CONVERSIONS:
            members.setdefault(name, []).append(index)
    moved = list(layers)
    kinds_by_family: dict[str, list[str]] = {}
    for name, indices in members.items():
        family = re.sub(r"\d+", "*", name)
        kinds = [graph.node[index].op_type for index in indices]
        previous = kinds_by_family.get(family)
        if previous and len(previous) < len(kinds) and kinds[: len(previous)] == previous:
            tail = indices[len(previous) :]
            outputs = {output for index in tail for output in graph.node[index].output}
            target = {
                layers[index]
                for index, node in enumerate(graph.node)
                if layers[index] != name and outputs & set(consumed_tensors(node))
            }
            if len(target) == 1 and all(assigned[index] is None for index in tail):
                for index in tail:
                    moved[index] = next(iter(target))
                kinds = previous
        kinds_by_family[family] = kinds
    return moved


def module_paths(graph: Graph) -> list[ModulePath | None]:
    """Return the module path of each operator, None if no name identifies it.

    The path comes from parameters that only this operator consumes, as PyTorch names them; else
    from its own name, if that is a path such as `/bert/encoder/layer.0/output/dense/MatMul` or the
    name of a module; else, for an operator with weights, from the sole consumer of its result, such
    as the bias after a product.
    """
    raw_paths = paths_from_parameters(graph)
    inside = [path[0] == WRAPPER and len(path) > 1 for path in raw_paths.values()]
    wrapped = 2 * sum(inside) > len(inside)
    known_paths = {
        index: path[1:] if wrapped and path[0] == WRAPPER and len(path) > 1 else path
        for index, path in raw_paths.items()
    }
    modules = set(known_paths.values())
    paths = [
        known_paths.get(index) or path_in_name(node.name, modules)
        if node.op_type not in CONVERSIONS  # Q/DQ are named after the tensors that they convert
        else None
        for index, node in enumerate(graph.node)
    ]
    consumers = sole_consumers(graph)
    weights = {tensor.name for tensor in graph.initializer if len(tensor.dims) > 1}
    for index, node in enumerate(graph.node):
        if paths[index] is None and weights & set(node.input[1:]):
            consumer = consumers.get(node.output[0])
            paths[index] = known_paths.get(consumer) if consumer is not None else None
    return paths


def paths_from_parameters(graph: Graph) -> dict[int, ModulePath]:
    """Return the module of each operator that is the sole consumer of a named parameter.

    Equal constants are stored once, under one of their names: a constant with several consumers
    identifies no module.
    """
    dotted = {tensor.name for tensor in graph.initializer if "." in tensor.name.strip(".")}
    consumers = sole_consumers(graph)
    paths: dict[int, ModulePath] = {}
    for name in sorted(dotted & set(consumers), key=lambda name: (-name.count("."), name)):
        index = consumers[name]
        while graph.node[index].op_type == DEQUANTIZE:
            follower = consumers.get(graph.node[index].output[0])
            if follower is None:
                break
            index = follower
        paths.setdefault(index, split(name)[:-1])
    return {index: path for index, path in paths.items() if path}


def sole_consumers(graph: Graph) -> dict[str, int]:
    """Return the consumer's index for each tensor with a single consumer."""
    consumers: dict[str, set[int]] = {}
    for index, node in enumerate(graph.node):
        for name in node.input:
            consumers.setdefault(name, set()).add(index)
    return {name: next(iter(indices)) for name, indices in consumers.items() if len(indices) == 1}


def path_in_name(name: str, modules: Iterable[ModulePath]) -> ModulePath | None:
    """Return the module in an operator's name, None if it is neither a path nor in `modules`.

    With slashes the last part is the operator; `layer1/layer1.0` contains `layer1` twice.
    """
    if "/" in name:
        scopes = [scope for scope in name.split("/")[:-1] if scope]
        followers = [*scopes[1:], ""]
        pairs = zip(scopes, followers, strict=True)
        kept = [scope for scope, next_scope in pairs if not next_scope.startswith(f"{scope}.")]
        return split(".".join(kept)) or None
    path = split(name)
    return path if len(path) > 2 or path in set(modules) else None


def split(name: str) -> ModulePath:
    """Split a dotted name into its parts."""
    return tuple(part for part in name.split(".") if part)
