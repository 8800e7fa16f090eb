"""Simplify an ONNX file, and check it against the checkpoint on real inputs.

A constant factor, such as the scale of attention, is folded into the linear layer before it.

Unused tokens are pruned: a classifier that uses only the first token of the last layer needs the
others only as keys and values of its attention, so the rest of that layer (query, scores,
feed-forward) is computed for one row. This saves five sixths of the weighted products of one layer,
14 % of those of a six-layer encoder. The outputs do not change.
"""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.checker import ValidationError

from tightrope.artifacts.manifest import checkpoint_of, identity, read_manifest, require_descent
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import ArtifactError, in_one_line
from tightrope.inputs.arrays import Arrays, length, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.logit_distance import relative_error
from tightrope.model.module import logits_module, runner
from tightrope.onnx.edit import (
    STANDARD,
    Graph,
    attribute,
    copy_of,
    graphs_in,
    is_plain,
    named_by_module,
    set_operators,
)
from tightrope.onnx.file import load_onnx, save_onnx, set_checkpoint, signature_of, simplified
from tightrope.onnx.float_model import has_halves, in_float, is_quantized
from tightrope.onnx.imported import original_outputs
from tightrope.onnx.session import Shapes, require_equal, run_onnx, shapes_seen
from tightrope.signature import SEQUENCE
from tightrope.variants import is_onnx

# relative to the largest logit of a batch
TOLERANCE = 1e-4
# of a quantized file whose other operators compute in float16 or bfloat16, here in float32
HALF_TOLERANCE = 0.02
# tokens of the longest compared example, if the model takes that many
LONGEST_CHECK = 128
# they move values without changing them
MOVES = ("Reshape", "Transpose")
# whose outputs have a row for each row of their inputs, or of the first one
ELEMENTWISE = ("Add", "Div", "Max", "Min", "Mul", "Pow", "Sub")
UNARY = (
    *("Abs", "Cast", "Clip", "Erf", "Gelu", "HardSigmoid", "HardSwish"),
    *("Identity", "Neg", "Relu", "Sigmoid", "Sqrt", "Tanh"),
)
# per input of an operator: the axis of which only the first row is read, None for all rows
Reads = list[int | None]


def simplify_onnx(
    source: Path | str,
    checkpoint: Path | str,
    data: Path | str,
    target: Path | str,
    *,
    threads: int,
) -> None:
    """Write `source` with constants and scales folded, dead nodes removed, unused rows pruned.

    Operators with weights get the names of the checkpoint's modules. A file that is quantized
    already becomes the float model in it, and it is printed how far their logits are apart.

    Raises ArtifactError, and writes nothing, where `source` was made from another checkpoint, and
    where logits differ from the checkpoint's on examples of the split `data` in several shapes,
    with and without padding.
    """
    manifest = read_manifest(checkpoint, CheckpointManifest)
    tokens = min(LONGEST_CHECK, manifest["max_sequence"] or LONGEST_CHECK)
    examples = read_split(data)[:8]
    rows = list(load_encoder(checkpoint, max_sequence=tokens)(examples))
    if not rows:
        raise ArtifactError("the split for timing is empty")
    # one example, three padded, all padded, and the shortest alone
    batches = [stack(some) for some in (rows[:1], rows[:3], rows, [min(rows, key=length)])]
    reference = original_outputs if is_onnx(manifest["source"]) else module_outputs
    expected = reference(Path(checkpoint), batches, threads=threads)

    def difference(model: ModelProto) -> float:
        found = run_onnx(model, batches, threads=threads)
        return require_equal(found, expected, path=source, tolerance=tolerance)

    given = load_onnx(source)
    require_descent(source, checkpoint_of(given), checkpoint)
    quantized = is_quantized(given)
    tolerance = HALF_TOLERANCE if quantized and has_halves(given) else TOLERANCE
    if quantized:
        both = [np.concatenate(run_onnx(given, batches, threads=1)), np.concatenate(expected)]
        error = relative_error(*(one.tolist() for one in both)) or 0.0
        far = f"its logits differ from its float model's by {100 * error:.2g} % (RMS)"
        print(f"a quantized file: {far}")
        given = in_float(given)
    model = named_by_module(simplified(given), prefix="classifier.")
    model, worst = with_changes(model, difference)
    print(f"largest difference from the checkpoint's logits: {worst:.2g} of the largest logit")
    set_checkpoint(model, identity(manifest))
    save_onnx(model, target)


def with_changes(
    model: ModelProto, difference: Callable[[ModelProto], float]
) -> tuple[ModelProto, float]:
    """Return the model with those changes that keep its logits, and its `difference`.

    `difference` raises ArtifactError for other logits. The model is correct without a change, and
    only computes more.
    """
    worst = difference(model)
    changes = {
        "scales folded into weights": with_scales_folded,
        "unused tokens pruned": with_unused_tokens_pruned,
    }
    for done, change in changes.items():
        try:
            changed = change(model)
            model, worst = changed, difference(changed)
        except (ArtifactError, ValidationError) as error:
            print(f"{done}: not possible here: {in_one_line(error)}")
    return model, worst


def module_outputs(checkpoint: Path, batches: list[Arrays], *, threads: int) -> list[np.ndarray]:
    """Return logits of the checkpoint in PyTorch."""
    import torch

    torch.set_num_threads(threads)
    run = runner(logits_module(checkpoint, torch.float32))
    return [run(batch) for batch in batches]


def with_scales_folded(model: ModelProto) -> ModelProto:
    """Return a copy of `model` without multiplications by one number behind a linear layer.

    The weights and the bias of the layer are multiplied instead. Operators that only move values
    may lie between the two. Weights that other operators read are copied.
    """
    made = copy_of(model)
    graph, tensors = Graph(made), made.graph.initializer
    constants = {one.name: one for one in tensors if one.data_type == TensorProto.FLOAT}
    replaced: dict[str, str] = {}
    copies: dict[tuple[str, float], str] = {}
    kept = []
    for node in made.graph.node:
        node.input[:] = [replaced.get(name, name) for name in node.input]
        found = scaled_layer(node, graph, constants)
        if found is None or node.output[0] in graph.outputs:
            kept.append(node)
            continue
        tensor, factor, readers = found
        for reader, place in readers:
            key = reader.input[place], factor
            if key not in copies:
                known = {one.name for one in tensors}
                numbered = (f"{key[0]}_scaled{number or ''}" for number in itertools.count())
                copies[key] = next(name for name in numbered if name not in known)
                values = numpy_helper.to_array(constants[key[0]]) * np.float32(factor)
                tensors.append(numpy_helper.from_array(values, copies[key]))
            reader.input[place] = copies[key]
        replaced[node.output[0]] = tensor
    set_operators(made, kept)
    return made


def scaled_layer(
    node: NodeProto, graph: Graph, constants: dict[str, TensorProto]
) -> tuple[str, float, list[tuple[NodeProto, int]]] | None:
    """Return what a Mul scales: its tensor, the factor, and where the layer reads its constants.

    None where `node` is no Mul by one number, or where what it scales is no linear layer that is
    read here alone.
    """
    if node.op_type != "Mul":
        return None
    # one number, so that the product has the shape of the other operand
    numbers = [
        one for one in node.input if one in constants and list(constants[one].dims) in ([], [1])
    ]
    if len(numbers) != 1:
        return None
    (tensor,) = (one for one in node.input if one != numbers[0])
    factor = float(numpy_helper.to_array(constants[numbers[0]]).item())
    name = tensor
    while graph.is_read_once(name) and name in graph.producers:
        if graph.producers[name].op_type not in MOVES:
            break
        name = graph.producers[name].input[0]
    readers = constants_of_layer(name, graph, constants)
    return (tensor, factor, readers) if readers else None


def constants_of_layer(
    name: str, graph: Graph, constants: dict[str, TensorProto]
) -> list[tuple[NodeProto, int]]:
    """Return (operator, place of the input) of weight and bias of the layer that makes `name`."""
    found = []
    layer = graph.producers.get(name) if graph.is_read_once(name) else None
    if layer is not None and layer.op_type == "Add":
        biases = [place for place, one in enumerate(layer.input) if one in constants]
        if len(biases) != 1:
            return []
        found.append((layer, biases[0]))
        name = layer.input[1 - biases[0]]
        layer = graph.producer(name, "MatMul") if graph.is_read_once(name) else None
    if layer is None or layer.op_type not in ("MatMul", "Gemm") or not is_plain(layer):
        return []
    places = range(1, len(layer.input))
    if not all(layer.input[place] in constants for place in places):
        return []
    return [*found, *((layer, place) for place in places)]


def with_unused_tokens_pruned(model: ModelProto) -> ModelProto:
    """Return a copy of the model that computes only the first row where no other is used.

    Start at each Gather of index 0 and go upstream while every consumer uses only that row. A model
    without such a Gather is returned unchanged, and so is one of images, and one with branches or
    loops, which may read any tensor. Raises ArtifactError where the model does not run.
    """
    result = copy_of(model)
    graph = result.graph
    if SEQUENCE not in signature_of(result).free or len([*graphs_in(graph)]) > 1:
        return result
    reduced = first_row_only(result, shapes_seen(result))
    made = {output for number in reduced for output in graph.node[number].output}
    nodes: list[NodeProto] = []
    slices: dict[tuple[str, int], str] = {}
    for number, node in enumerate(graph.node):
        for place, axis in enumerate(reduced.get(number, [])):
            name = node.input[place]
            if axis is None or name in made:
                continue
            if (name, axis) not in slices:
                target = slices[name, axis] = f"{name}_first_of_axis_{axis}"
                inputs = [name, *(constant(graph, value) for value in (0, 1, axis))]
                nodes.append(helper.make_node("Slice", inputs, [target], name=target))
            node.input[place] = slices[name, axis]
        if node.op_type == "Reshape" and number in reduced:
            # the shape of one token
            shape = next(one for one in graph.node if node.input[1] in one.output)
            target = f"{node.output[0]}_shape_of_first"
            inputs = [shape.input[0], constant(graph, 1), *shape.input[2:]]
            nodes.append(helper.make_node("Concat", inputs, [target], name=target, axis=0))
            node.input[1] = target
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(result)
    return result


def constant(graph: onnx.GraphProto, value: int) -> str:
    """Return the name of an int64 initializer [1] of that value; add it if missing."""
    name = f"tightrope_constant_{value}"
    if name not in {tensor.name for tensor in graph.initializer}:
        graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), name))
    return name


def first_row_only(model: ModelProto, shapes: Shapes) -> dict[int, Reads]:
    """Map the index of each operator that needs only the first row to the reads of its inputs.

    Consumers are visited before producers, from the outputs upstream.
    """
    nodes, graph = model.graph.node, Graph(model)
    wanted: dict[str, set[int | None]] = {name: {None} for name in graph.outputs}
    found: dict[int, Reads] = {}
    for number in reversed(range(len(nodes))):
        node = nodes[number]
        reads: Reads | None = None
        if node.op_type == "Gather" and reads_first(node, shapes, graph.constants):
            reads = [1, None]
        elif len(node.output) == 1 and len(axes := wanted.get(node.output[0], set())) == 1:
            axis = next(iter(axes))
            if axis is not None:
                reads = needed(node, axis, shapes, graph.producers)
        if reads is not None:
            found[number] = reads
        for place, name in enumerate(node.input):
            wanted.setdefault(name, set()).add(reads[place] if reads else None)
    made = {name for number in found for name in nodes[number].output}
    # a Gather whose input is computed in full stays as it is
    return {
        number: reads
        for number, reads in found.items()
        if nodes[number].op_type != "Gather" or nodes[number].input[0] in made
    }


def reads_first(node: NodeProto, shapes: Shapes, constants: dict[str, TensorProto]) -> bool:
    """Return whether a Gather takes index 0 of axis 1, the tokens, where there may be more."""
    shape = shapes.get(node.input[0], [()])[0]
    if len(shape) < 2 or is_one(node.input[0], 1, shapes):
        return False
    index = constants.get(node.input[1])
    if index is None or index.dims or attribute(node, "axis", 0) % len(shape) != 1:
        return False
    return int(numpy_helper.to_array(index)) == 0


def is_one(name: str, axis: int, shapes: Shapes) -> bool:
    """Return whether that axis has size 1 in every trial."""
    return all(shape[axis] == 1 for shape in shapes[name])


def needed(
    node: NodeProto, axis: int, shapes: Shapes, producers: dict[str, NodeProto]
) -> Reads | None:
    """Return what an operator reads for the first row of its output's `axis`, None for all rows."""
    names = [name for name in (*node.input, *node.output) if name]
    if node.domain not in STANDARD or any(name not in shapes for name in names):
        return None
    ranks = {name: len(shapes[name][0]) for name in names}
    rank = ranks[node.output[0]]

    def broadcast(name: str) -> int | None:
        """Return the axis of an input that becomes `axis`, None if it is broadcast."""
        own = axis - rank + ranks[name] if name else -1
        return None if own < 0 or is_one(name, own, shapes) else own

    match node.op_type:
        case kind if kind in ELEMENTWISE:
            return [*map(broadcast, node.input)]
        case kind if kind in UNARY:  # the bounds of Clip are scalars
            return [axis, *[None] * (len(node.input) - 1)]
        case "LayerNormalization" | "Softmax":  # rows are independent over a later axis
            over = attribute(node, "axis", -1) % rank
            return [axis, *map(broadcast, node.input[1:])] if over > axis else None
        case "MatMul":  # rows of the product are rows of its first factor
            rows = axis == rank - 2 and min(ranks[name] for name in node.input) > 1
            return [ranks[node.input[0]] - 2, None] if rows else None
        case "Transpose":
            return [attribute(node, "perm", [*range(rank)][::-1])[axis]]
        case "Reshape":
            return [1, None] if axis == 1 and keeps_tokens(node, shapes, producers) else None
    return None


def keeps_tokens(node: NodeProto, shapes: Shapes, producers: dict[str, NodeProto]) -> bool:
    """Return whether a Reshape keeps batch and tokens as the first two axes, by its shape input."""
    shape = producers.get(node.input[1])
    if shape is None or shape.op_type != "Concat" or len(shape.input) < 2:
        return False
    tokens = producers.get(shape.input[1])
    if tokens is None or tokens.op_type != "Shape":
        return False
    if (attribute(tokens, "start", 0), attribute(tokens, "end", None)) != (1, 2):
        return False
    pairs = zip(shapes[node.input[0]], shapes[node.output[0]], strict=True)
    kept = all(before[:2] == after[:2] for before, after in pairs)
    return kept and shapes[shape.input[0]][0] == (1,)
