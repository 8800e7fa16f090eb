"""ONNX files without weights: all that is needed to inspect a graph, in a few kilobytes."""

from collections.abc import Iterator

import onnx
from onnx import TensorProto, shape_inference

# keep small constants such as shapes, which define the graph's behaviour
LARGEST_CONSTANT_BYTES = 1024
# file name of the removed weights: a loader's error message then shows the cause
LEFT_OUT = "weights-are-left-out"
# prefix of the names that shape inference gives to unknown sizes
INVENTED = "unk__"
CONTENTS = (
    "raw_data",
    "float_data",
    "double_data",
    "int32_data",
    "int64_data",
    "uint64_data",
    "string_data",
)


def without_weights(model: onnx.ModelProto, description: str) -> onnx.ModelProto:
    """Remove the data of large constants from `model`, in place; keep name, type and shape.

    The result has `description` as its doc string, and the inferred shapes of inner tensors as far
    as inference succeeds. It can be inspected, as in Netron, but not run.
    """
    for tensor in all_constants(model.graph):
        if tensor.ByteSize() > LARGEST_CONSTANT_BYTES:
            leave_out(tensor)
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


def leave_out(tensor: TensorProto) -> None:
    """Make `tensor` refer to an external file that does not exist."""
    for field in CONTENTS:
        tensor.ClearField(field)
    del tensor.external_data[:]
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", LEFT_OUT


def all_constants(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    """Yield initializers and tensors in attributes, including those of subgraphs."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
    for inner in inner_graphs(graph):
        yield from all_constants(inner)


def inner_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield the subgraphs in the attributes of a graph's nodes."""
    for node in graph.node:
        yield from inner_graphs_of(node)


def inner_graphs_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the subgraphs of a node: branches of If, the body of Loop or Scan."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield every node, including those of subgraphs."""
    yield from graph.node
    for inner in inner_graphs(graph):
        yield from all_nodes(inner)
