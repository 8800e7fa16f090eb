"""Description of an ONNX file: layers with operators, parameters and share of the time."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from tightrope.report.graphs.folding import folded
from tightrope.report.graphs.formats import parameters_of, precisions, total
from tightrope.report.graphs.layers import layers_of, read_by
from tightrope.report.graphs.modules import module_paths
from tightrope.report.graphs.operators import UNSEEN, Operator, runs, with_dequantized
from tightrope.report.graphs.without_weights import all_nodes

SCHEMA = 1
Document = dict[str, Any]


def describe(graph: onnx.GraphProto, costs: Document | None = None) -> Document:
    """Return everything that the diagram of `graph` shows; `costs` come from `measure_costs`.

    `blocks` holds the layers in order, consecutive equal layers once with their count in `times`;
    `seconds` of a layer is the sum over its repetitions, None if nothing in it was timed.
    """
    known = parameters_of(graph)
    shape, rows = slowest_shape(costs)
    paths = module_paths(graph)
    facts = [
        Operator(node, kind, path, seconds_of(rows.get(node.name), kind))
        for node, kind, path in zip(graph.node, precisions(graph), paths, strict=True)
    ]
    layers = [
        describe_layer(graph, name, places, facts, known)
        for name, places in layers_of(graph, paths)
    ]
    timed = any(layer["seconds"] is not None for layer in layers)
    nodes = list(all_nodes(graph))
    seen = (one.precision for one in facts if one.node.op_type not in UNSEEN)
    return {
        "schema": SCHEMA,
        "status": "ok",
        "operators": len(nodes),
        "by_type": dict(Counter(node.op_type for node in nodes).most_common()),
        "by_precision": dict(Counter(seen).most_common()),
        **total(known.values()),
        "inputs": [value(one) for one in graph.input if one.name not in known],
        "outputs": [value(one) for one in graph.output],
        "time": {"shape": shape, "host": costs.get("host")} if costs and timed else None,
        "blocks": blocks_of(layers),
    }


def describe_layer(
    graph: onnx.GraphProto,
    name: str,
    places: Sequence[int],
    facts: Sequence[Operator],
    known: Mapping[str, onnx.TensorProto],
) -> Document:
    """Describe one layer: its parameters, operator runs and time."""
    nodes = [graph.node[place] for place in places]
    used = {one: known[one] for node in nodes for one in read_by(node) if one in known}
    weights = with_dequantized((one for one in used if len(used[one].dims) > 1), nodes)
    timed = [facts[place].seconds for place in places if facts[place].seconds is not None]
    return {
        "name": name,
        **total(used.values()),
        "seconds": sum(timed) if timed else None,
        "operators": runs([facts[place] for place in places], name, weights),
    }


def blocks_of(layers: Sequence[Document]) -> list[Document]:
    """Fold repeated layers into blocks: `times`, and the layers of one repetition.

    Each of these layers has the `names` and the sum of the `seconds` of all repetitions.
    """
    blocks = []
    for first, length, times in folded([sign_of(layer) for layer in layers]):
        parts = [layers[first + at : first + length * times : length] for at in range(length)]
        blocks.append({"times": times, "layers": [together(part) for part in parts]})
    return blocks


def sign_of(layer: Document) -> str:
    """Return the signature of equal layers: all fields but name and time."""
    parts = [layer[field] for field in ("parameters", "weight_bytes", "operators")]
    return json.dumps(parts)


def together(layers: Sequence[Document]) -> Document:
    """Merge equal layers into one."""
    timed = [layer["seconds"] for layer in layers if layer["seconds"] is not None]
    kept = {key: own for key, own in layers[0].items() if key not in ("name", "seconds")}
    names = [layer["name"] for layer in layers]
    return {"names": names, **kept, "seconds": sum(timed) if timed else None}


def value(one: onnx.ValueInfoProto) -> Document:
    """Return name, type and shape of an input or output; an unknown size is None."""
    kind = one.type.tensor_type
    sizes = [
        size.dim_param or (size.dim_value if size.HasField("dim_value") else None)
        for size in kind.shape.dim
    ]
    name = onnx.TensorProto.DataType.Name(kind.elem_type).lower()
    return {"name": one.name, "type": {"float": "float32"}.get(name, name), "shape": sizes}


def slowest_shape(costs: Document | None) -> tuple[Document | None, dict[str, Document]]:
    """Return the shape with the longest total float time, and each operator's row at that shape."""
    by_shape: dict[tuple[Any, ...], dict[str, Document]] = {}
    for name, rows in (costs or {}).get("operators", {}).items():
        for row in rows:
            sizes = tuple((key, size) for key, size in row.items() if not key.endswith("_s"))
            by_shape.setdefault(sizes, {})[name] = row
    if not by_shape:
        return None, {}
    sizes = max(by_shape, key=lambda one: sum(row["float_s"] for row in by_shape[one].values()))
    return dict(sizes), by_shape[sizes]


def seconds_of(row: Document | None, precision: str) -> float | None:
    """Return the operator's time from its costs row, the int8 time if it computes in int8."""
    return row["int8_s" if precision == "int8" else "float_s"] if row else None
