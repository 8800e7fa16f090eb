"""The layers of an ONNX graph: its operators grouped by the modules that they come from."""

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
    """Name of each layer and the places of its operators, in the order of the computation.

    `paths` are the `module_paths` of the graph.
    A layer is a module of a list, as `encoder.layer.0` or `stages.1.layers.2`, else a module two
    levels deep, as `bert.embeddings`. An operator that no name places belongs where its operands
    come from, and without any where its result goes; one that several layers read is in SHARED.
    Where fewer than half of the products have a name, each product begins a layer instead.
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
    """The places of products and convolutions one operand of which is a constant."""
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
    """The name of the layer of each module."""
    blocks = {
        path[:end]
        for path in paths
        for end in range(2, len(path))
        if path[end - 1].isdigit() and not path[end].isdigit()
    }
    inside = {path: [end for end in range(len(path) + 1) if path[:end] in blocks] for path in paths}
    # lists whose blocks hold lists of blocks, as the stages of a convolutional network
    staged = {path[: ends[0] - 1] for path, ends in inside.items() if len(ends) > 1}
    names: dict[ModulePath, str] = {}
    for path, ends in inside.items():
        end = ends[0] if ends else 2
        if ends and path[: end - 1] in staged:
            end = ends[1] if len(ends) > 1 else end + 1
        names[path] = ".".join(path[:end])
    return names


def begun_by_products(graph: Graph, products: Sequence[int]) -> list[str | None]:
    """Layers of a graph whose names tell nothing: each product begins one, named by its kind."""
    own: list[str | None] = [None] * len(graph.node)
    for number, place in enumerate(products, start=1):
        own[place] = f"{graph.node[place].op_type} {number}"
    return own


def spread(graph: Graph, own: Sequence[str | None]) -> list[str]:
    """`own` with a layer for every operator."""
    rank = {name: number for number, name in enumerate(dict.fromkeys(filter(None, own)))}
    placed = list(own)
    makers: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for place, node in enumerate(graph.node):
        before = [makers[name] for name in read_by(node) if name in makers]
        found = [placed[one] for one in before if placed[one] is not None]
        if placed[place] is None and found:
            placed[place] = max(found, key=rank.__getitem__)
        makers.update(dict.fromkeys(node.output, place))
        for name in read_by(node):
            readers.setdefault(name, []).append(place)
    for place in reversed(range(len(graph.node))):
        if placed[place] is None:
            after = {
                placed[one] for name in graph.node[place].output for one in readers.get(name, ())
            }
            placed[place] = after.pop() if len(after) == 1 else SHARED
    return placed


def read_by(node: onnx.NodeProto) -> list[str]:
    """The tensors that an operator reads, those of its inner graphs included."""
    names = [name for name in node.input if name]
    for graph in inner_graphs_of(node):
        names += [name for inner in graph.node for name in read_by(inner)]
    return names


def without_strange_tails(
    graph: Graph, placed: Sequence[str], own: Sequence[str | None]
) -> list[str]:
    """`placed`, the end of a layer moved on where the layer of that list before it has none.

    So the pooling behind the last of equal blocks is no part of that block. What is moved are
    operators without a layer of their own, all read by one other layer.
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
    """The layers that read what those operators give."""
    given = {name for place in places for name in graph.node[place].output}
    return {placed[place] for place, node in enumerate(graph.node) if given & set(read_by(node))}
