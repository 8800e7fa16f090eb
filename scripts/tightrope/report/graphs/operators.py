"""Operators of a layer as a diagram shows them, with consecutive equal operators merged."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import onnx

from tightrope.report.graphs.formats import CONVERSIONS, DEQUANTIZE
from tightrope.report.graphs.modules import ModulePath
from tightrope.report.graphs.without_weights import all_nodes, inner_graphs_of

# operators that a diagram omits: they store or convert values and compute nothing
UNSEEN = (*CONVERSIONS, "Constant")
# maximum operator runs per layer; beyond it, runs of the same kind are merged
LONGEST_LAYER = 60
Document = dict[str, Any]


class Operator(NamedTuple):
    """Operator with its compute format, module path, and seconds if timed."""

    node: onnx.NodeProto
    precision: str
    path: ModulePath | None
    seconds: float | None


def runs(operators: Iterable[Operator], layer: str, weights: set[str]) -> list[Document]:
    """Return the operators that the diagram shows, consecutive equal ones merged with a `count`.

    `weighted` runs consume one of `weights`; `modules` are the names, within the layer, of the
    modules that the operators come from; `inside` counts the operators in their subgraphs. If there
    are too many runs, equal runs are merged wherever they occur.
    """
    shown: list[Document] = []
    for node, precision, path, _ in operators:
        if node.op_type in UNSEEN:
            continue
        weighted = bool(weights & set(node.input))
        kind = {"type": node.op_type, "precision": precision, "weighted": weighted}
        if not shown or any(shown[-1][key] != value for key, value in kind.items()):
            shown.append({**kind, "count": 0, "modules": [], "inside": 0})
        run = shown[-1]
        run["count"] += 1
        run["inside"] += sum(len(list(all_nodes(inner))) for inner in inner_graphs_of(node))
        module = ".".join(path or ())
        if module and module != layer:
            run["modules"].append(module.removeprefix(f"{layer}."))
    return shown if len(shown) <= LONGEST_LAYER else merge_equal(shown)


def merge_equal(shown: Iterable[Document]) -> list[Document]:
    """Merge runs of the same type and format, most frequent first."""
    sums: dict[tuple[Any, ...], Document] = {}
    for run in shown:
        key = run["type"], run["precision"], run["weighted"]
        total = sums.setdefault(key, {**run, "count": 0, "modules": [], "inside": 0})
        for field in ("count", "inside"):
            total[field] += run[field]
    return sorted(sums.values(), key=lambda run: -run["count"])


def with_dequantized(names: Iterable[str], nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Return the names of the parameters and of their DequantizeLinear outputs."""
    parameters = set(names)
    dequantizers = [
        node for node in nodes if node.op_type == DEQUANTIZE and node.input[0] in parameters
    ]
    return parameters | {node.output[0] for node in dequantizers}
