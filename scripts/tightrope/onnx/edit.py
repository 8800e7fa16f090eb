"""Edit an ONNX graph: initializers, operators, those with weights among them, and the opset."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter

from tightrope.errors import ArtifactError, TightropeError, in_one_line

# float16's smallest normal number: below it a scale loses precision
SMALLEST_SCALE = 2.0**-14
STANDARD = ("", "ai.onnx")
# the IR version that added float8
IR = 9
# products of two activations, as in attention, stay in float
WEIGHTED = ("Conv", "Gemm", "MatMul")


class Graph:
    """Producers and consumers of the tensors of a model, and its initializers by name."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.outputs = {one.name for one in model.graph.output}
        self.producers = {name: node for node in model.graph.node for name in node.output}
        self.consumers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self.consumers.setdefault(name, []).append(node)

    def is_product(self, node: onnx.NodeProto) -> bool:
        """Return whether an operator multiplies two computed tensors."""
        return node.op_type == "MatMul" and not self.constants.keys() & set(node.input)

    def is_read_once(self, name: str) -> bool:
        """Return whether a tensor is read in one place only, and is no output of the model."""
        return len(self.consumers.get(name, [])) == 1 and name not in self.outputs

    def producer(self, name: str, kind: str) -> onnx.NodeProto | None:
        """Return the operator of type `kind` that makes a tensor, None for another type."""
        node = self.producers.get(name)
        return node if node is not None and node.op_type == kind else None

    def consumer(self, name: str, kind: str) -> onnx.NodeProto | None:
        """Return the operator of type `kind` that alone reads a tensor, else None."""
        nodes = self.consumers.get(name, [])
        return nodes[0] if len(nodes) == 1 and nodes[0].op_type == kind else None


def copy_of(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of the model."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def graphs_in(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield the graph and its subgraphs, those of branches and loops."""
    yield graph
    for part in (part for node in graph.node for part in node.attribute):
        for inner in (*([part.g] if part.HasField("g") else []), *part.graphs):
            yield from graphs_in(inner)


def rows_of(node: onnx.NodeProto, array: np.ndarray) -> np.ndarray:
    """Return weights with input channels first; applied twice, it returns the array itself."""
    return array.T if attribute(node, "transB", 0) else array


def attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    """Return an attribute of an operator, or the default where it is not set."""
    found = (helper.get_attribute_value(one) for one in node.attribute if one.name == name)
    return next(found, default)


def constant_of(model: onnx.ModelProto, name: str) -> np.ndarray:
    """Return the value of an initializer."""
    return numpy_helper.to_array(next(one for one in model.graph.initializer if one.name == name))


def dequantized_weight(model: onnx.ModelProto, node: onnx.NodeProto) -> np.ndarray | None:
    """Return the dequantized weights of a quantized operator, None where it has none."""
    graph = Graph(model)
    found = graph.producer(node.input[1], "DequantizeLinear") if len(node.input) > 1 else None
    if found is None or found.input[0] not in graph.constants:
        return None
    return dequantized(found, graph.constants)


def dequantized(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> np.ndarray:
    """Return the float32 output of a DequantizeLinear whose inputs are constants.

    (values - zero-point) * scale, with one scale, one for each index of `axis`, or one for each
    block of `block_size` along it. Raises ArtifactError for a scale that is no constant.
    """
    names = [name for name in node.input if name]
    if missing := [name for name in names if name not in constants]:
        raise ArtifactError(
            f"DequantizeLinear {label(node)}: {missing[0]} is no constant; export it as one"
        )
    values, *parameters = (
        numpy_helper.to_array(constants[name]).astype(np.float32) for name in names
    )
    axis, block = attribute(node, "axis", 1), attribute(node, "block_size", 0)
    scale, *zero = (spread(one, values.shape, axis, block) for one in parameters)
    found = (values - (zero[0] if zero else 0)) * scale
    return np.asarray(found, np.float32).reshape(values.shape)


def spread(parameter: np.ndarray, shape: tuple[int, ...], axis: int, block: int) -> np.ndarray:
    """Return scales or zero-points in a shape that broadcasts to the `shape` of the values."""
    if block:
        repeated = np.repeat(parameter, block, axis)
        return repeated.take(range(shape[axis]), axis)
    if parameter.size == 1:
        return parameter.reshape(())
    places = range(len(shape))
    return parameter.reshape([-1 if place == axis % len(shape) else 1 for place in places])


def label(node: onnx.NodeProto) -> str:
    """Return the name of a node, or of its output where it has none."""
    return node.name or node.output[0]


def add_constant(model: onnx.ModelProto, name: str, array: np.ndarray) -> str:
    """Add `array` to the graph as a float32 initializer; return its name."""
    model.graph.initializer.append(
        numpy_helper.from_array(np.ascontiguousarray(array, dtype=np.float32), name)
    )
    return name


def place_of(model: onnx.ModelProto, node: onnx.NodeProto) -> int:
    """Return the index of `node` in the list of nodes, by its name."""
    return [one.name for one in model.graph.node].index(node.name)


def replace_operators(
    model: onnx.ModelProto, replacements: Mapping[str, Sequence[onnx.NodeProto]]
) -> None:
    """Put operators in the place of the one that makes a tensor, for each tensor.

    The last of them makes it. What no output needs then is removed.
    """
    if replacements:
        nodes = (replacements.get(node.output[0], [node]) for node in model.graph.node)
        set_operators(model, needed_operators(model, [new for some in nodes for new in some]))


def needed_operators(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]
) -> list[onnx.NodeProto]:
    """Return those of the `nodes`, which are in topological order, that reach an output."""
    needed = {one.name for one in model.graph.output}
    kept = []
    for node in reversed(nodes):
        if needed & set(node.output):
            # with what its branches and loops read
            inside = graphs_in(onnx.GraphProto(node=[node]))
            needed |= {name for graph in inside for one in graph.node for name in one.input}
            kept.append(node)
    return kept[::-1]


def set_operators(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> None:
    """Make `nodes` the operators of the model; remove the initializers that none of them reads."""
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend(kept)
    drop_unused_initializers(model)


def drop_unused_initializers(model: onnx.ModelProto) -> None:
    """Remove initializers that no node reads, in branches and loops neither."""
    read = {name for graph in graphs_in(model.graph) for node in graph.node for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)


def before_qdq(name: str, producers: dict[str, onnx.NodeProto]) -> str:
    """Return the tensor before the Q/DQ pair that produces `name`, or `name` without a pair.

    `producers` maps each tensor to its producer.
    """
    producer = producers.get(name)
    source = producers.get(producer.input[0]) if producer is not None else None
    rounds = source is not None and source.op_type == "QuantizeLinear"
    return source.input[0] if source is not None and rounds else name


def opset_of(model: onnx.ModelProto) -> int:
    """Return the version of ONNX's standard opset, 0 where the model imports none."""
    return max((one.version for one in model.opset_import if one.domain in STANDARD), default=0)


def at_opset(model: onnx.ModelProto, needed: int) -> onnx.ModelProto:
    """Return a copy of `model` in opset `needed`, or in its current opset where that is later.

    Raises TightropeError naming both opsets where the model cannot be converted.
    """
    found = opset_of(model)
    if found >= needed:
        return copy_of(model)
    try:
        converted = version_converter.convert_version(model, needed)
    except Exception as error:  # the converter raises no specific class
        raise TightropeError(
            f"opset {found}, {needed} is needed, and the file cannot be converted to it "
            f"({in_one_line(error)}); export it again in opset {needed}"
        ) from error
    converted.ir_version = max(converted.ir_version, IR)
    return converted


def weighted_nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Return the operators of a type in WEIGHTED whose second input is an initializer.

    A product needs a weight of two axes; a Gemm must also be plain.
    """
    axes = {tensor.name: len(tensor.dims) for tensor in model.graph.initializer}
    return [
        node
        for node in model.graph.node
        if node.op_type in WEIGHTED
        and node.input[1] in axes
        and (node.op_type == "Conv" or (axes[node.input[1]] == 2 and is_plain(node)))
    ]


def is_plain(node: onnx.NodeProto) -> bool:
    """Return whether a product neither scales nor transposes its input."""
    scales = attribute(node, "alpha", 1), attribute(node, "beta", 1)
    return scales == (1, 1) and not attribute(node, "transA", 0)


def named_by_module(model: onnx.ModelProto, prefix: str) -> onnx.ModelProto:
    """Name the operators with weights of `model` after their modules in the checkpoint.

    The name is that of the bias, which alone keeps it, without `prefix` and `.bias`. A node without
    a name, or with a duplicate, is named by its type and output.
    """
    graph = Graph(model)
    taken = {node.name for node in model.graph.node}
    for node in weighted_nodes(model):
        added = graph.consumer(node.output[0], "Add")
        read = [*node.input[2:], *(added.input if added is not None else ())]
        biases = [name for name in read if name in graph.constants]
        name = biases[0].removeprefix(prefix).removesuffix(".bias") if biases else ""
        if name and name not in taken and biases[0].endswith(".bias"):
            taken.add(name)
            node.name = name
    seen: set[str] = set()
    for node in model.graph.node:
        if not node.name or node.name in seen:
            node.name = f"{node.op_type}_{node.output[0]}"
        seen.add(node.name)
    return model


def with_outputs(model: onnx.ModelProto, tensors: list[str]) -> onnx.ModelProto:
    """Return a copy of `model` that also outputs `tensors`, float32, except its inputs."""
    copy = copy_of(model)
    known = {one.name for one in (*copy.graph.output, *copy.graph.input)}
    copy.graph.output.extend(
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in tensors
        if name not in known
    )
    return copy


def tensors_of(session: Any, tensors: list[str], batch: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the values of `tensors` for a batch; inputs of the model come from the batch."""
    computed = [name for name in tensors if name not in batch]
    found = {**batch, **dict(zip(computed, session.run(computed, batch), strict=True))}
    return [found[name] for name in tensors]
