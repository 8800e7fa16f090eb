"""Map each operator of an ONNX graph to its checkpoint module, by names."""

from collections.abc import Iterable

import onnx

from tightrope.report.graphs.formats import CONVERSIONS, DEQUANTIZE

# name of the wrapper module around the classifier in files exported by this pipeline
WRAPPER = "classifier"
# ("bert", "encoder", "layer", "0", "output", "dense")
ModulePath = tuple[str, ...]
Graph = onnx.GraphProto


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
