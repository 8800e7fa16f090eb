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
    parameters = parameters_read(graph)
    inside = [path[0] == WRAPPER and len(path) > 1 for path in parameters.values()]
    wrapped = 2 * sum(inside) > len(inside)
    told = {
        place: path[1:] if wrapped and path[0] == WRAPPER and len(path) > 1 else path
        for place, path in parameters.items()
    }
    known = set(told.values())
    paths = [
        told.get(place) or path_in_name(node.name, known)
        if node.op_type not in CONVERSIONS  # Q/DQ are named after the tensors that they convert
        else None
        for place, node in enumerate(graph.node)
    ]
    consumers = sole_consumers(graph)
    weights = {tensor.name for tensor in graph.initializer if len(tensor.dims) > 1}
    for place, node in enumerate(graph.node):
        if paths[place] is None and weights & set(node.input[1:]):
            consumer = consumers.get(node.output[0])
            paths[place] = told.get(consumer) if consumer is not None else None
    return paths


def parameters_read(graph: Graph) -> dict[int, ModulePath]:
    """Return the module of each operator that is the sole consumer of a named parameter.

    Equal constants are stored once, under one of their names: a constant with several consumers
    identifies no module.
    """
    dotted = {tensor.name for tensor in graph.initializer if "." in tensor.name.strip(".")}
    consumers = sole_consumers(graph)
    found: dict[int, ModulePath] = {}
    for name in sorted(dotted & set(consumers), key=lambda name: (-name.count("."), name)):
        place = consumers[name]
        while graph.node[place].op_type == DEQUANTIZE:
            follower = consumers.get(graph.node[place].output[0])
            if follower is None:
                break
            place = follower
        found.setdefault(place, split(name)[:-1])
    return {place: path for place, path in found.items() if path}


def sole_consumers(graph: Graph) -> dict[str, int]:
    """Return the consumer's index for each tensor with a single consumer."""
    consumers: dict[str, set[int]] = {}
    for place, node in enumerate(graph.node):
        for name in node.input:
            consumers.setdefault(name, set()).add(place)
    return {name: next(iter(places)) for name, places in consumers.items() if len(places) == 1}


def path_in_name(name: str, known: Iterable[ModulePath]) -> ModulePath | None:
    """Return the module in an operator's name, None if it is neither a path nor in `known`.

    With slashes the last part is the operator; `layer1/layer1.0` contains `layer1` twice.
    """
    if "/" in name:
        scopes = [scope for scope in name.split("/")[:-1] if scope]
        followers = [*scopes[1:], ""]
        pairs = zip(scopes, followers, strict=True)
        kept = [one for one, next_one in pairs if not next_one.startswith(f"{one}.")]
        return split(".".join(kept)) or None
    path = split(name)
    return path if len(path) > 2 or path in set(known) else None


def split(name: str) -> ModulePath:
    """Split a dotted name into its parts."""
    return tuple(part for part in name.split(".") if part)
