"""The operators of a layer as a picture shows them: equal ones in a row are one."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import onnx

from tightrope.report.graphs.formats import CONVERSIONS, DEQUANTIZE
from tightrope.report.graphs.modules import ModulePath
from tightrope.report.graphs.without_weights import all_nodes, inner_graphs_of

# what a picture does not show: how numbers are stored, not what is computed
UNSEEN = (*CONVERSIONS, "Constant")
# runs of operators in a layer; of one with more only the kinds are told
LONGEST_LAYER = 60
Document = dict[str, Any]


class Operator(NamedTuple):
    """An operator, the format in which it computes, its module, and its time where there is one."""

    node: onnx.NodeProto
    precision: str
    path: ModulePath | None
    seconds: float | None


def runs(operators: Iterable[Operator], layer: str, weights: set[str]) -> list[Document]:
    """What the picture shows of these operators, equal ones in a row as one with their `count`.

    `weighted` are those that read one of `weights`, `modules` the names of those modules within
    the layer that operators come from; `inside` is how many operators their inner graphs
    have. Where there are too many runs, equal ones anywhere are one.
    """
    found: list[Document] = []
    for node, precision, path, _ in operators:
        if node.op_type in UNSEEN:
            continue
        weighted = bool(weights & set(node.input))
        sign = {"type": node.op_type, "precision": precision, "weighted": weighted}
        if not found or any(found[-1][key] != own for key, own in sign.items()):
            found.append({**sign, "count": 0, "modules": [], "inside": 0})
        run = found[-1]
        run["count"] += 1
        run["inside"] += sum(len(list(all_nodes(inner))) for inner in inner_graphs_of(node))
        module = ".".join(path or ())
        if module and module != layer:
            run["modules"].append(module.removeprefix(f"{layer}."))
    return found if len(found) <= LONGEST_LAYER else merged(found)


def merged(found: Iterable[Document]) -> list[Document]:
    """Runs of the same kind and format as one, most first."""
    sums: dict[tuple[Any, ...], Document] = {}
    for run in found:
        key = run["type"], run["precision"], run["weighted"]
        one = sums.setdefault(key, {**run, "count": 0, "modules": [], "inside": 0})
        for field in ("count", "inside"):
            one[field] += run[field]
    return sorted(sums.values(), key=lambda run: -run["count"])


def with_dequantized(names: Iterable[str], nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """The names of those parameters, and of what DequantizeLinear makes of them."""
    own = set(names)
    made = [node for node in nodes if node.op_type == DEQUANTIZE and node.input[0] in own]
    return own | {node.output[0] for node in made}
