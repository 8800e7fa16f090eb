"""An ONNX file without its weights: all that is needed to look at a graph, in a few kilobytes."""

from collections.abc import Iterator

import onnx
from onnx import TensorProto, shape_inference

# shapes and constants, which say what a graph does
LARGEST_CONSTANT_BYTES = 1024
# where a reader would look for them: its error message then says why
LEFT_OUT = "weights-are-left-out"
# names that inference gives to sizes that it does not know
INVENTED = "unk__"
CONTENTS = (
    *("raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data"),
    "string_data",
)


def without_weights(model: onnx.ModelProto, description: str) -> onnx.ModelProto:
    """`model`, changed in place: every large constant keeps its name, type and shape only.

    The result describes itself with `description` and holds the shapes of inner tensors as far as
    they can be inferred. It can be looked at, as in Netron, and not be run.
    """
    for tensor in all_constants(model.graph):
        if tensor.ByteSize() > LARGEST_CONSTANT_BYTES:
            leave_out(tensor)
    del model.metadata_props[:]
    model.doc_string = description
    try:
        model = shape_inference.infer_shapes(model)
    except (shape_inference.InferenceError, ValueError):  # an operator contradicts itself
        return model
    for one in model.graph.value_info:
        for size in one.type.tensor_type.shape.dim:
            if size.dim_param.startswith(INVENTED):
                size.ClearField("dim_param")
    return model


def leave_out(tensor: TensorProto) -> None:
    """Make `tensor` one whose content lies in a file that is not there."""
    for field in CONTENTS:
        tensor.ClearField(field)
    del tensor.external_data[:]
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", LEFT_OUT


def all_constants(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    """Initializers and the tensors in attributes, those of inner graphs included."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
    for inner in inner_graphs(graph):
        yield from all_constants(inner)


def inner_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graphs in attributes of its operators."""
    for node in graph.node:
        yield from inner_graphs_of(node)


def inner_graphs_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Its own graphs: branches of If, the body of Loop or Scan."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Every operator, those of inner graphs included."""
    yield from graph.node
    for inner in inner_graphs(graph):
        yield from all_nodes(inner)
