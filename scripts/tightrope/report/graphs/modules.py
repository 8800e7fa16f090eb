"""Which module of the checkpoint each operator of an ONNX graph comes from, by its names."""

from collections.abc import Iterable

import onnx

from tightrope.report.graphs.formats import CONVERSIONS, DEQUANTIZE

# of the module around the classifier, in files that were exported here
WRAPPER = "classifier"
# ("bert", "encoder", "layer", "0", "output", "dense")
ModulePath = tuple[str, ...]
Graph = onnx.GraphProto


def module_paths(graph: Graph) -> list[ModulePath | None]:
    """For each operator the path of its module, None where no name tells it.

    Told by parameters that it alone reads, as PyTorch names them; by its own name where that is a
    path, as `/bert/encoder/layer.0/output/dense/MatMul`, or the module's own name; or, of an
    operator with weights, by what alone reads its result, as a product's bias.
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
        if node.op_type not in CONVERSIONS  # named by the tensors that they convert
        else None
        for place, node in enumerate(graph.node)
    ]
    readers = sole_readers(graph)
    weights = {tensor.name for tensor in graph.initializer if len(tensor.dims) > 1}
    for place, node in enumerate(graph.node):
        if paths[place] is None and weights & set(node.input[1:]):
            reader = readers.get(node.output[0])
            paths[place] = told.get(reader) if reader is not None else None
    return paths


def parameters_read(graph: Graph) -> dict[int, ModulePath]:
    """For each operator that alone reads a named parameter the module of that.

    Equal constants are kept once, under the name of one of them: what several operators read
    tells of none.
    """
    dotted = {tensor.name for tensor in graph.initializer if "." in tensor.name.strip(".")}
    readers = sole_readers(graph)
    found: dict[int, ModulePath] = {}
    for name in sorted(dotted & set(readers), key=lambda name: (-name.count("."), name)):
        place = readers[name]
        while graph.node[place].op_type == DEQUANTIZE:
            follower = readers.get(graph.node[place].output[0])
            if follower is None:
                break
            place = follower
        found.setdefault(place, split(name)[:-1])
    return {place: path for place, path in found.items() if path}


def sole_readers(graph: Graph) -> dict[str, int]:
    """For each tensor that one operator reads, its place."""
    readers: dict[str, set[int]] = {}
    for place, node in enumerate(graph.node):
        for name in node.input:
            readers.setdefault(name, set()).add(place)
    return {name: next(iter(places)) for name, places in readers.items() if len(places) == 1}


def path_in_name(name: str, known: Iterable[ModulePath]) -> ModulePath | None:
    """The module in the name of an operator, None where it is no path and none of the `known`.

    With slashes the last part is the operator; `layer1/layer1.0` says `layer1` twice.
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
    """The parts of a dotted name."""
    return tuple(part for part in name.split(".") if part)
