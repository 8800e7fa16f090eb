"""Write the files on an ONNX graph: its record, and ONNX without weights for Netron."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, shape_inference

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.failures import read_json_or_raise, write_failure
from tightrope.artifacts.files import write_bytes
from tightrope.artifacts.manifest_types import Costs
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, failure, supervised
from tightrope.onnx.file import load_onnx
from tightrope.report.graphs.describe import describe
from tightrope.report.graphs.formats import inner_graphs

# keep small constants such as shapes, which define the graph's behaviour
LARGEST_CONSTANT_BYTES = 1024
# file name of the removed weights: a loader's error message then shows the cause
LEFT_OUT = "weights-are-left-out"
# prefix of the names that shape inference gives to unknown sizes
INVENTED = "unk__"


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


def without_weights(model: onnx.ModelProto, description: str) -> onnx.ModelProto:
    """Remove the data of large constants from `model`, in place; keep name, type and shape.

    The result has `description` as its doc string, and the inferred shapes of inner tensors as far
    as inference succeeds. It can be inspected, as in Netron, but not run.
    """
    for tensor in all_constants(model.graph):
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


def all_constants(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    """Yield initializers and tensors in attributes, including those of subgraphs."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
    for inner in inner_graphs(graph.node):
        yield from all_constants(inner)
