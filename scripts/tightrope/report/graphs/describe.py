"""Description of an ONNX file: layers with operators, parameters and share of the time.

Beside it the file is written without weights, for Netron.
"""

import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from onnx import TensorProto, shape_inference

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.failures import read_json_or_raise, write_failure
from tightrope.artifacts.files import write_bytes
from tightrope.artifacts.manifest_types import Costs
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, failure, supervised
from tightrope.onnx.file import load_onnx
from tightrope.report.graphs.formats import (
    CONVERSIONS,
    all_nodes,
    inner_graphs,
    parameters_of,
    precisions,
    total,
)
from tightrope.report.graphs.layers import consumed_tensors, layers_of

SCHEMA = 2
# operators that are not shown: they store or convert values and compute nothing
UNSEEN = (*CONVERSIONS, "Constant")
# maximum layers per repeated part; an encoder block without names has only a handful
LONGEST_PART = 64
# keep small constants such as shapes, which define the graph's behaviour
LARGEST_CONSTANT_BYTES = 1024
# an operator with its compute format, and seconds if timed
Operator = tuple[onnx.NodeProto, str, float | None]
# file name of the removed weights: a loader's error message then shows the cause
LEFT_OUT = "weights-are-left-out"
# prefix of the names that shape inference gives to unknown sizes
INVENTED = "unk__"
Document = dict[str, Any]


class Block(NamedTuple):
    """Part of a sequence that starts at `first` and repeats `times` times in a row."""

    first: int
    length: int
    times: int


def describe_graph(
    source: Path | str,
    costs: Path | str | None,
    record: Path | str,
    structure: Path | str,
    *,
    title: str,
    limits: Limits,
) -> None:
    """Write JSON and weightless ONNX that describe the ONNX file `source`.

    `costs` of its operators give the time shares. If `source` holds a failure or cannot be read,
    both files state why. Raises ArtifactError for an unreadable file, and TightropeError if a
    failure is transient and another attempt is left.
    """

    def work() -> None:
        """Write the record last."""
        model = without_weights(load_onnx(source), f"{title}: the structure, weights are left out")
        document = describe(model.graph, read_costs(costs))
        write_bytes(structure, model.SerializeToString(deterministic=True))
        write_artifact(record, document)

    try:
        supervised(work, limits=limits)
    except WorkFailed as error:
        details = failure(error, str(record), limits)
        reason, transient = details["reason"], details["transient"]
        write_failure(structure, reason=reason, transient=transient)
        write_failure(record, reason=reason, transient=transient)


def read_costs(path: Path | str | None) -> Any:
    """Read the costs, None without a file or if they could not be measured."""
    try:
        return read_json_or_raise(path, Costs) if path else None
    except WorkFailed:
        return None


def tensors(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    """Yield initializers and the tensors in attributes of any operator, of subgraphs too."""
    yield from graph.initializer
    for attribute in chain.from_iterable(node.attribute for node in graph.node):
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
    for inner in inner_graphs(graph.node):
        yield from tensors(inner)


def without_weights(model: onnx.ModelProto, description: str) -> onnx.ModelProto:
    """Remove the data of large constants from `model`, in place; keep name, type and shape.

    The result has `description` as its doc string, and the inferred shapes of inner tensors as far
    as inference succeeds. It can be inspected, as in Netron, but not run.
    """
    for tensor in tensors(model.graph):
        if tensor.ByteSize() > LARGEST_CONSTANT_BYTES:
            for field, _ in tensor.ListFields():
                if field.name.endswith("_data"):  # raw, of any type, or in another file
                    tensor.ClearField(field.name)
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=LEFT_OUT)
    del model.metadata_props[:]
    model.doc_string = description
    try:
        model = shape_inference.infer_shapes(model)
    except (shape_inference.InferenceError, ValueError):  # inconsistent operator
        return model
    for value in model.graph.value_info:
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param.startswith(INVENTED):
                size.ClearField("dim_param")
    return model


def describe(graph: onnx.GraphProto, costs: Document | None = None) -> Document:
    """Return what the report shows of `graph`; `costs` come from `measure_costs`.

    `blocks` holds the layers in order, consecutive equal layers once with their count in `times`;
    `seconds` of a layer is the sum over its repetitions, None if nothing in it was timed.
    """
    parameters = parameters_of(graph)
    shape, rows = slowest_shape(costs)
    operators = [
        # the int8 time of what computes in int8
        (node, kind, rows.get(node.name, {}).get("int8_s" if kind == "int8" else "float_s"))
        for node, kind in zip(graph.node, precisions(graph), strict=True)
    ]
    layers = [
        describe_layer(name, [operators[index] for index in indices], parameters)
        for name, indices in layers_of(graph)
    ]
    timed = any(layer["seconds"] is not None for layer in layers)
    nodes = list(all_nodes(graph))
    shown = (kind for node, kind, _ in operators if node.op_type not in UNSEEN)
    return {
        "schema": SCHEMA,
        "status": "ok",
        "operators": len(nodes),
        "by_type": dict(Counter(node.op_type for node in nodes).most_common()),
        "by_precision": dict(Counter(shown).most_common()),
        **total(parameters.values()),
        "inputs": [describe_value(info) for info in graph.input if info.name not in parameters],
        "outputs": [describe_value(info) for info in graph.output],
        "time": {"shape": shape, "host": costs.get("host")} if costs and timed else None,
        "blocks": blocks_of(layers),
    }


def describe_layer(
    name: str, operators: Sequence[Operator], parameters: Mapping[str, onnx.TensorProto]
) -> Document:
    """Describe one layer: its parameters, time, and operators by type and format."""
    consumed = dict.fromkeys(tensor for node, *_ in operators for tensor in consumed_tensors(node))
    times = [seconds for *_, seconds in operators if seconds is not None]
    counts = Counter((node.op_type, kind) for node, kind, _ in operators)
    return {
        "name": name,
        **total(parameters[tensor] for tensor in consumed if tensor in parameters),
        "seconds": sum(times) if times else None,
        "operators": [
            {"type": kind, "precision": precision, "count": number}
            for (kind, precision), number in counts.most_common()
            if kind not in UNSEEN
        ],
    }


def blocks_of(layers: Sequence[Document]) -> list[Document]:
    """Fold repeated layers into blocks: `times`, and the layers of one repetition.

    Each of these layers has the `names` and the sum of the `seconds` of all repetitions.
    """
    blocks = []
    # equal layers have all fields alike but name and time
    fields = ("parameters", "weight_bytes", "operators")
    signatures = [json.dumps([layer[field] for field in fields]) for layer in layers]
    for first, length, times in fold_repetitions(signatures):
        merged = []
        for start in range(first, first + length):
            equal = layers[start : first + length * times : length]
            seconds = [layer["seconds"] for layer in equal if layer["seconds"] is not None]
            told = {"names": [layer["name"] for layer in equal]}
            told |= {field: equal[0][field] for field in fields}
            merged.append({**told, "seconds": sum(seconds) if seconds else None})
        blocks.append({"times": times, "layers": merged})
    return blocks


def fold_repetitions(signatures: Sequence[Hashable]) -> list[Block]:
    """Split `signatures` into blocks, in order; equal signatures stand for equal layers.

    Greedy: each position starts the repetition that saves the most layers, the shortest on ties,
    or else a single layer.
    """
    blocks, first = [], 0
    while first < len(signatures):
        best = Block(first, 1, 1)
        for length in range(1, min(LONGEST_PART, (len(signatures) - first) // 2) + 1):
            part, times = signatures[first : first + length], 1
            while signatures[first + times * length : first + (times + 1) * length] == part:
                times += 1
            if length * (times - 1) > best.length * (best.times - 1):
                best = Block(first, length, times)
        blocks.append(best)
        first += best.length * best.times
    return blocks


def describe_value(info: onnx.ValueInfoProto) -> Document:
    """Return name, type and shape of an input or output; an unknown size is None."""
    tensor_type = info.type.tensor_type
    sizes = [
        size.dim_param or (size.dim_value if size.HasField("dim_value") else None)
        for size in tensor_type.shape.dim
    ]
    name = onnx.TensorProto.DataType.Name(tensor_type.elem_type).lower()
    return {"name": info.name, "type": {"float": "float32"}.get(name, name), "shape": sizes}


def slowest_shape(costs: Document | None) -> tuple[Document | None, dict[str, Document]]:
    """Return the shape with the longest total float time, and each operator's row at that shape."""
    by_shape: dict[tuple[Any, ...], dict[str, Document]] = {}
    for name, rows in (costs or {}).get("operators", {}).items():
        for row in rows:
            sizes = tuple((key, size) for key, size in row.items() if not key.endswith("_s"))
            by_shape.setdefault(sizes, {})[name] = row
    if not by_shape:
        return None, {}
    sizes = max(by_shape, key=lambda shape: sum(row["float_s"] for row in by_shape[shape].values()))
    return dict(sizes), by_shape[sizes]
