"""Check, store and describe a model that comes as an ONNX file, of texts or of images.

It gets the names, types and sizes of inputs and outputs that the pipeline has.
"""

import bisect
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import onnx

from tightrope.artifacts.files import read_bytes, write_bytes
from tightrope.artifacts.manifest import clear_folder, named, read_manifest, write_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, LabelsManifest, SourceManifest
from tightrope.errors import ArtifactError, TightropeError, in_foreign_files
from tightrope.inputs.arrays import PIXELS, Arrays, example_of
from tightrope.inputs.encode import require_sizes, some_examples
from tightrope.inputs.image_settings import FILE as PROCESSOR
from tightrope.inputs.image_settings import load_settings
from tightrope.inputs.reference import better_order, check_prepared
from tightrope.model.config import BY_NAME, matching, output_order, require_names
from tightrope.onnx.edit import copy_of, graphs_in
from tightrope.onnx.file import read_onnx_file, signature_of
from tightrope.onnx.float_model import (
    constants_of,
    in_float,
    is_quantized,
    with_activations_in_float,
)
from tightrope.onnx.session import open_model, run_onnx
from tightrope.signature import BATCH, IMAGE, SEQUENCE

TOKENS, MASK, SEGMENTS = "input_ids", "attention_mask", "token_type_ids"
INTEGERS = {onnx.TensorProto.INT64, onnx.TensorProto.INT32}
FILE = "model.onnx"
# the longest sequence for which a position table is sought
MOST_POSITIONS = 4096


def import_checkpoint(
    manifest: Path | str,
    *,
    source: Path | str,
    data: Path | str,
    inputs: dict[str, str],
    labels: list[str] | None = None,
    sizes: Sequence[str] = (),
    model: str | None = None,
    terminal: TextIO,
) -> None:
    """Write the output of train_model for an ONNX file: model, tokenizer or processor, manifest.

    `labels` names the outputs of the file, in their order; without, that is the order of the data's
    labels. Of a file that is quantized already the facts are those of its float model. The manifest
    keeps the name of the `model`. Raises TightropeError where the model's inputs do not match
    `inputs`, the measured `sizes` or the size of the image processor, or its outputs not `labels`
    or the data's labels.
    """
    origin, material = read_manifest(source, SourceManifest), read_manifest(data, LabelsManifest)
    folder, path = Path(source).parent, origin["source"]
    given, size = read_onnx_file(path, folder / FILE), None
    if origin["task"] == IMAGE:
        settings = load_settings(folder)
        size = settings.height, settings.width
    standard = float_model(standardized(given, inputs, source=path, size=size), path)
    known, order = label_order(standard, material["labels"], labels, path)
    with in_foreign_files(f"{path}: ONNX Runtime cannot run it", "export it again"):
        longest = None if size else longest_sequence(standard)
    takes = {"max_sequence": longest, **dict(zip(("height", "width"), size or (), strict=False))}
    require_sizes(path, takes, sizes)
    target = clear_folder(manifest)
    for name in origin["files"]:
        write_bytes(target / name, read_bytes(folder / name))
    outputs = labels or [f"output {number}" for number in range(len(known))]
    if matched := matching(outputs, material["labels"]):
        print(f"{path}: {matched}", file=terminal)
    names = dict.fromkeys((PIXELS,) if size else (TOKENS, MASK))
    session = open_model(standard, threads=0, optimized=False)
    answer = partial(answer_of, session, {name: name for name in names})
    # what is computed of one example in int8 differs from what its float model computes
    original = answer
    if not is_quantized(given):
        original = partial(answer_of, open_model(onnx.load(folder / FILE), threads=0), inputs)
    examples, rows = some_examples(data), None if size else vocabulary(standard, path)
    own: dict[str, Any] = {"longest": longest, "terminal": terminal}
    folders, pair = (folder, target), (answer, original)
    checked = check_prepared(path, folders, examples, *pair, vocabulary=rows, **own)
    if matched not in (None, BY_NAME):
        outputs_of = order or range(len(known))
        better = better_order(path, target, examples, known, answer, outputs_of, **own)
        matched = "; ".join(filter(None, (matched, better)))
    write_manifest(
        manifest,
        **named(model),
        task=origin["task"],
        labels=known,
        output_order=order,
        parameters=sum(int(np.prod(tensor.dims)) for tensor in standard.graph.initializer),
        max_sequence=longest,
        architecture=None,
        source=origin["source"],
        inputs=inputs,
        recipe=None,
        training=None,
        reference=checked,
        matched=matched,
        **({"height": size[0], "width": size[1]} if size else {"vocabulary": rows}),
    )


def longest_sequence(model: onnx.ModelProto) -> int | None:
    """Return how many tokens a standardized model of texts takes, None without a limit.

    That is the number of rows of a table which is looked up by the position, or less: a model that
    takes one token more than the table has rows has another use for it.
    """
    session, signature = open_model(model, threads=0, optimized=False), signature_of(model)

    def takes(tokens: int) -> bool:
        try:
            session.run(None, example_of(signature, 1, tokens=tokens))
        except Exception:  # ONNX Runtime raises no specific class
            return False
        return True

    rows = {int(sizes[0]) for sizes, _ in looked_up(model)}
    first = min((n for n in rows if n <= MOST_POSITIONS and not takes(n + 1)), default=None)
    if first is None:
        return None
    return bisect.bisect_left(range(1, first + 2), 1, key=lambda tokens: not takes(tokens))


def answer_of(session: Any, inputs: dict[str, str], batch: Arrays) -> np.ndarray:
    """Return logits [batch, classes] of a session whose `inputs` have other names than ours."""
    arrays = dict(batch)
    if TOKENS in batch:
        arrays[SEGMENTS] = np.zeros_like(batch[TOKENS])
    ours = {inputs.get(name, name): array for name, array in arrays.items()}
    kinds = {"tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(float)": np.float32}
    given = {one.name: ours[one.name].astype(kinds[one.type]) for one in session.get_inputs()}
    found = zip(session.get_outputs(), session.run(None, given), strict=True)
    tables = [(one.name != "logits", array) for one, array in found if array.ndim == 2]
    return np.asarray(min(tables, key=lambda table: table[0])[1], np.float32)


def float_model(model: onnx.ModelProto, source: str) -> onnx.ModelProto:
    """Return `model`, or the float model in it; raise TightropeError where that cannot be made."""
    if not is_quantized(model):
        return model
    try:
        return in_float(model)
    except ArtifactError as error:
        raise TightropeError(f"{source}: {error}") from error


def label_order(
    model: onnx.ModelProto, known: list[str] | None, names: list[str] | None, source: str
) -> tuple[list[str], list[int] | None]:
    """Return the labels and for each the index of its output, None where that order is the file's.

    The labels are those of the data, `known`, else the `names` of the outputs, else their numbers.
    Raises TightropeError where a standardized model has another number of outputs.
    """
    classes = class_count(model)
    if names is None:
        labels = known or [str(number) for number in range(classes)]
        if len(labels) != classes:
            raise TightropeError(
                f"{source}: has {classes} outputs, the data has {len(labels)} labels "
                f"({', '.join(labels[:5])}); choose data that fits"
            )
        return labels, None
    require_names(source, names, classes)
    if known is None:
        return names, None
    order = output_order(source, names, known)
    return known, None if order == list(range(len(order))) else order


def class_count(model: onnx.ModelProto) -> int:
    """Return the number of classes of a standardized model, from its output shape or from a run."""
    axis = model.graph.output[0].type.tensor_type.shape.dim[1]
    if axis.dim_value:
        return axis.dim_value
    return int(
        run_onnx(model, [example_of(signature_of(model), 1, tokens=2)], threads=1)[0].shape[1]
    )


def vocabulary(model: onnx.ModelProto, source: str) -> int:
    """Return the number of rows of the embedding table of a standardized model."""
    for sizes, by_tokens in looked_up(model):
        if by_tokens:
            return int(sizes[0])
    raise TightropeError(f"{source}: no table in which input_ids are looked up; is it of texts?")


def looked_up(model: onnx.ModelProto) -> Iterator[tuple[Sequence[int], bool]]:
    """Yield the sizes of each table of which rows are looked up, and whether by the token ids."""
    constants = constants_of(model).items()
    known = {name: tensor.dims for name, tensor in constants if len(tensor.dims) == 2}
    same = {TOKENS}
    for node in model.graph.node:
        if node.op_type in ("Cast", "Identity") and node.input[0] in same:
            same.add(node.output[0])
        if node.op_type == "Gather" and node.input[0] in known:
            yield known[node.input[0]], node.input[1] in same


def standard_model(checkpoint: Path | str) -> onnx.ModelProto:
    """Return the ONNX file beside `checkpoint`, standardized, outputs in the labels' order."""
    manifest = read_manifest(checkpoint, CheckpointManifest)
    size = (manifest["height"], manifest["width"]) if manifest["task"] == IMAGE else None
    model = read_onnx_file(manifest["source"], Path(checkpoint).parent / FILE)
    model = standardized(model, manifest["inputs"], source=manifest["source"], size=size)
    order = manifest.get("output_order")
    return model if order is None else with_outputs_in(order, model)


def original_outputs(checkpoint: Path, batches: list[Arrays], *, threads: int) -> list[np.ndarray]:
    """Return logits of the original ONNX file, for batches with the pipeline's input names.

    Of a file that is quantized already, of the float model in it: in the file's own types, its
    weights dequantized by ONNX Runtime. Raises ArtifactError naming the file where ONNX Runtime
    cannot run it.
    """
    model = standard_model(checkpoint)
    try:
        if is_quantized(model):
            model = with_activations_in_float(model)
        return run_onnx(model, batches, threads=threads)
    except ArtifactError as error:
        raise ArtifactError(
            f"{read_manifest(checkpoint, CheckpointManifest)['source']}: {error}"
        ) from error


def standardized(
    model: onnx.ModelProto,
    inputs: dict[str, str],
    *,
    source: str,
    size: tuple[int, int] | None = None,
) -> onnx.ModelProto:
    """Return the model with the inputs of the pipeline and the single output `logits`, float32.

    For images of `size` (height, width), the input is `pixel_values`, float32 [batch, 3, height,
    width]. Without a size, for texts, the inputs are `input_ids` and `attention_mask`, int64
    [batch, sequence]. `inputs` maps these and, if present, `token_type_ids`, which become zeros, to
    names in the file. Raises TightropeError for inputs or outputs that do not fit.
    """
    result = copy_of(model)
    if size is None:
        given = text_inputs(result.graph, inputs, source)
        names = {key: inputs[key] for key in (TOKENS, MASK, SEGMENTS) if inputs[key] in given}
        take_inputs(result.graph, given, names, onnx.TensorProto.INT64, [BATCH, SEQUENCE])
    else:
        given = image_input(result.graph, inputs[PIXELS], size, source)
        names = {PIXELS: inputs[PIXELS]}
        take_inputs(result.graph, given, names, onnx.TensorProto.FLOAT, [BATCH, 3, *size])
    rename_output(result.graph, source)
    onnx.checker.check_model(result)
    return result


def take_inputs(
    graph: onnx.GraphProto,
    given: dict[str, onnx.ValueInfoProto],
    names: dict[str, str],
    kind: int,
    shape: list[str | int],
) -> None:
    """Put our inputs, of that type and shape, in the place of those `given`.

    `names` are the names in the file by ours.
    """
    del graph.input[:], graph.value_info[:]
    nodes = []
    ours = {key: "tightrope_zeros" if key == SEGMENTS else key for key in names}
    # first rename away from all names set below: they may be swapped, or used inside the graph
    for key, name in names.items():
        rename(graph, name, f"{key}_as_given")
    for key in names:
        rename(graph, ours[key], f"{ours[key]}_of_the_file")
    for key, name in names.items():
        if key == SEGMENTS:
            nodes.append(onnx.helper.make_node("Sub", [TOKENS, TOKENS], [ours[key]]))
        else:
            graph.input.append(onnx.helper.make_tensor_value_info(key, kind, shape))
        theirs = given[name].type.tensor_type.elem_type
        if theirs == kind:
            rename(graph, f"{key}_as_given", ours[key])
        else:
            nodes.append(onnx.helper.make_node("Cast", [ours[key]], [f"{key}_as_given"], to=theirs))
    for node in reversed(nodes):
        graph.node.insert(0, node)


def inputs_by_name(graph: onnx.GraphProto) -> dict[str, onnx.ValueInfoProto]:
    """Return the inputs that callers pass; old files list their weights among the inputs."""
    weights = {tensor.name for tensor in graph.initializer}
    return {one.name: one for one in graph.input if one.name not in weights}


def text_inputs(
    graph: onnx.GraphProto, inputs: dict[str, str], source: str
) -> dict[str, onnx.ValueInfoProto]:
    """Return the graph's inputs by name, checked to be tokens, mask and at most segments."""
    given = inputs_by_name(graph)
    wanted = [inputs[TOKENS], inputs[MASK]]
    missing = [name for name in wanted if name not in given]
    unknown = [name for name in given if name not in (*wanted, inputs[SEGMENTS])]
    if missing or unknown:
        raise TightropeError(
            f"{source}: its inputs are {', '.join(given)}; expected are {', '.join(wanted)} "
            f"(and {inputs[SEGMENTS]}); say its names with the model's key `inputs`"
        )
    for name, value in given.items():
        sizes = [axis.dim_value for axis in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type not in INTEGERS or len(sizes) != 2:
            raise TightropeError(f"{source}: input {name} is no int64 or int32 [batch, sequence]")
        if any(sizes):
            shape = " x ".join(str(size or "any") for size in sizes)
            raise TightropeError(
                f"{source}: input {name} is fixed to {shape}; export it with dynamic axes"
            )
    return given


def image_input(
    graph: onnx.GraphProto, name: str, size: tuple[int, int], source: str
) -> dict[str, onnx.ValueInfoProto]:
    """Return the graph's input; raise TightropeError unless it is that of images.

    That is `name` alone, float32 [batch, 3, height, width], of images of that size.
    """
    given = inputs_by_name(graph)
    if list(given) != [name]:
        raise TightropeError(
            f"{source}: its inputs are {', '.join(given)}; expected is {name} alone; say its name "
            f"with the model's key `inputs: {{{PIXELS}: NAME}}`"
        )
    tensor = given[name].type.tensor_type
    sizes = [axis.dim_value for axis in tensor.shape.dim]
    shape = " x ".join(str(one or "any") for one in sizes)
    if tensor.elem_type != onnx.TensorProto.FLOAT or len(sizes) != 4 or sizes[1] not in (0, 3):
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        raise TightropeError(
            f"{source}: input {name} is no float32 [batch, 3, height, width] but {kind} {shape}; "
            "export it as one"
        )
    if sizes[0]:
        raise TightropeError(
            f"{source}: input {name} is fixed to {shape}; export it with a dynamic batch"
        )
    if any(own not in (0, wanted) for own, wanted in zip(sizes[2:], size, strict=True)):
        raise TightropeError(
            f"{source}: input {name} is fixed to {shape} (batch x channels x height x width), "
            f"{PROCESSOR} beside it makes {size[0]} x {size[1]} pixels; put the image processor "
            "of this model there"
        )
    return given


def rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Rename a tensor wherever it is written and read, in branches and loops too."""
    for part in graphs_in(graph):
        for node in part.node:
            for names in (node.input, node.output):
                names[:] = [new if name == old else name for name in names]
        for value in part.output:
            if value.name == old:
                value.name = new


def rename_output(graph: onnx.GraphProto, source: str) -> None:
    """Make the output [batch, classes] the only one, named `logits`, in float32."""
    names = [one.name for one in graph.output]
    flat = [one for one in graph.output if len(one.type.tensor_type.shape.dim) == 2]
    chosen = [one for one in flat if one.name == "logits"] or flat
    if len(chosen) != 1:
        raise TightropeError(
            f"{source}: none of its outputs ({', '.join(names)}) is [batch, classes] alone; "
            "export it with the logits only"
        )
    kind = {name: node.op_type for node in graph.node for name in node.output}.get(chosen[0].name)
    if kind in ("Softmax", "Sigmoid"):
        raise TightropeError(f"{source}: its output is probabilities ({kind}); export the logits")
    output = onnx.ValueInfoProto()
    output.CopyFrom(chosen[0])
    if output.name != "logits" or output.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
        rename(graph, "logits", "logits_of_the_file")
        graph.node.append(onnx.helper.make_node("Cast", [chosen[0].name], ["logits"], to=1))
    output.name = "logits"
    output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    del graph.output[:]
    graph.output.append(output)


def with_outputs_in(order: list[int], model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a standardized model whose logit i is the given model's logit `order[i]`."""
    result = copy_of(model)
    graph = result.graph
    names = ["tightrope_logits", "tightrope_label_order"]
    rename(graph, "logits", names[0])
    graph.output[0].name = "logits"
    size, kind = [len(order)], onnx.TensorProto.INT64
    graph.initializer.append(onnx.helper.make_tensor(names[1], kind, size, order))
    graph.node.append(onnx.helper.make_node("Gather", names, ["logits"], axis=1))
    onnx.checker.check_model(result)
    return result
