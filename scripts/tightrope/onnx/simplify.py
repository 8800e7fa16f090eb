"""Simplify an ONNX file, fold scales into it, and check it against the checkpoint on real inputs.

A constant factor, such as the scale of attention, is folded into the linear layer before it.
"""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.checker import ValidationError

from tightrope.artifacts.manifest import checkpoint_of, identity, read_manifest, require_descent
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import ArtifactError, in_one_line
from tightrope.inputs.arrays import Arrays, length, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.logit_distance import relative_error
from tightrope.model.module import logits_module, runner
from tightrope.onnx.attention import Graph
from tightrope.onnx.edit import copy_of, is_plain, named_by_module, set_operators
from tightrope.onnx.file import load_onnx, save_onnx, set_checkpoint, simplified
from tightrope.onnx.first_token import with_unused_tokens_pruned
from tightrope.onnx.float_model import has_halves, in_float, is_quantized
from tightrope.onnx.imported import original_outputs
from tightrope.onnx.session import require_equal, run_onnx
from tightrope.variants import is_onnx

# relative to the largest logit of a batch
TOLERANCE = 1e-4
# of a quantized file whose other operators compute in float16 or bfloat16, here in float32
HALF_TOLERANCE = 0.02
# tokens of the longest compared example, if the model takes that many
LONGEST_CHECK = 128
# they move values without changing them
MOVES = ("Reshape", "Transpose")


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


def with_scales_folded(model: onnx.ModelProto) -> onnx.ModelProto:
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
    node: onnx.NodeProto, graph: Graph, constants: dict[str, TensorProto]
) -> tuple[str, float, list[tuple[onnx.NodeProto, int]]] | None:
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
) -> list[tuple[onnx.NodeProto, int]]:
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
