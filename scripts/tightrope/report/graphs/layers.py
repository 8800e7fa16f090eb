"""Layers of an ONNX graph: operators grouped by the modules that they come from."""

import re
from collections.abc import Sequence

import onnx

from tightrope.report.graphs.formats import CONVERSIONS, DEQUANTIZE
from tightrope.report.graphs.modules import ModulePath
from tightrope.report.graphs.names import SHARED
from tightrope.report.graphs.without_weights import inner_graphs_of
from tightrope.runtimes.executed import is_product

Graph = onnx.GraphProto


def layers_of(graph: Graph, paths: Sequence[ModulePath | None]) -> list[tuple[str, list[int]]]:
    """Return the name and the operator indices of each layer, in execution order.

    `paths` are the `module_paths` of the graph. A layer is a module of a list, such as
    `encoder.layer.0` or `stages.1.layers.2`, else a module two levels deep, such as
    `bert.embeddings`. An operator without a path belongs to the layer that produces its operands;
    if none does, to the layer that consumes its outputs, or to SHARED if several layers do. If
    fewer than half of the products have a path, each product starts a layer instead.
    """
    products = weighted_products(graph)
    named = [place for place in products if paths[place] is not None]
    keys = layer_names([path for path in paths if path is not None])
    own = [None if path is None else keys[path] for path in paths]
    if 2 * len(named) < len(products) or not any(own):
        own = begun_by_products(graph, products)
    placed = spread(graph, own)
    placed = without_strange_tails(graph, placed, own)
    order = dict.fromkeys([SHARED, *(name for name in own if name is not None)])
    members: dict[str, list[int]] = {name: [] for name in order}
    for place, name in enumerate(placed):
        members[name].append(place)
    return [(name, places) for name, places in members.items() if places]


def weighted_products(graph: Graph) -> list[int]:
    """Return the indices of matrix products and convolutions with a constant operand."""
    constants = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type in ("Constant", DEQUANTIZE) and constants.issuperset(node.input):
            constants.update(node.output)
    return [
        place
        for place, node in enumerate(graph.node)
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


def begun_by_products(graph: Graph, products: Sequence[int]) -> list[str | None]:
    """Start a layer at each product, named by its type, for graphs without useful names."""
    own: list[str | None] = [None] * len(graph.node)
    for number, place in enumerate(products, start=1):
        own[place] = f"{graph.node[place].op_type} {number}"
    return own


def spread(graph: Graph, own: Sequence[str | None]) -> list[str]:
    """Assign a layer to every operator, starting from `own`."""
    rank = {name: number for number, name in enumerate(dict.fromkeys(filter(None, own)))}
    placed = list(own)
    producers: dict[str, int] = {}
    consumers: dict[str, list[int]] = {}
    for place, node in enumerate(graph.node):
        before = [producers[name] for name in read_by(node) if name in producers]
        found = [name for one in before if (name := placed[one]) is not None]
        if placed[place] is None and found:
            placed[place] = max(found, key=rank.__getitem__)
        producers.update(dict.fromkeys(node.output, place))
        for name in read_by(node):
            consumers.setdefault(name, []).append(place)
    for place in reversed(range(len(graph.node))):
        if placed[place] is None:
            after = {
                placed[one] for name in graph.node[place].output for one in consumers.get(name, ())
            }
            placed[place] = after.pop() if len(after) == 1 else SHARED
    return [name or SHARED for name in placed]


def read_by(node: onnx.NodeProto) -> list[str]:
    """Return the tensors that a node consumes, including those of its subgraphs."""
    names = [name for name in node.input if name]
    for graph in inner_graphs_of(node):
        names += [name for inner in graph.node for name in read_by(inner)]
    return names


def without_strange_tails(
    graph: Graph, placed: Sequence[str], own: Sequence[str | None]
) -> list[str]:
    """Move the end of a layer to its consumer if the previous layer of that list has no such end.

    For example, the pooling after the last of several equal blocks is not part of that block. Only
    operators without a layer in `own` are moved, and only if a single other layer consumes them.
    """
    members: dict[str, list[int]] = {}
    for place, name in enumerate(placed):
        if graph.node[place].op_type not in CONVERSIONS:
            members.setdefault(name, []).append(place)
    moved = list(placed)
    before: dict[str, list[str]] = {}
    for name, places in members.items():
        family = re.sub(r"\d+", "*", name)
        kinds = [graph.node[place].op_type for place in places]
        known = before.get(family)
        if known and len(known) < len(kinds) and kinds[: len(known)] == known:
            tail = places[len(known) :]
            goal = readers_of(graph, tail, placed) - {name}
            if len(goal) == 1 and all(own[place] is None for place in tail):
                for place in tail:
                    moved[place] = next(iter(goal))
                kinds = known
        before[family] = kinds
    return moved


def readers_of(graph: Graph, places: Sequence[int], placed: Sequence[str]) -> set[str]:
    """Return the layers that consume the outputs of the given operators."""
    given = {name for place in places for name in graph.node[place].output}
    return {placed[place] for place, node in enumerate(graph.node) if given & set(read_by(node))}
