"""Check, store and describe a model that comes as an ONNX file, of texts or of images."""

import bisect
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from tightrope.artifacts.files import read_bytes, write_bytes
from tightrope.artifacts.manifest import clear_folder, named, read_manifest, write_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, LabelsManifest, SourceManifest
from tightrope.errors import ArtifactError, TightropeError, in_foreign_files
from tightrope.inputs.arrays import PIXELS, Arrays, example_of
from tightrope.inputs.encode import require_sizes, some_examples
from tightrope.inputs.image_settings import load_settings
from tightrope.inputs.reference import better_order, check_images, check_reference
from tightrope.inputs.texts import check_tokenizer
from tightrope.model.config import BY_NAME, matching, output_order, require_names
from tightrope.onnx.edit import graphs_in, opset_of
from tightrope.onnx.file import require_one_file, signature_of
from tightrope.onnx.float_model import (
    HALVES,
    constants_of,
    in_float,
    is_quantized,
    with_activations_in_float,
)
from tightrope.onnx.interface import MASK, SEGMENTS, TOKENS, standardized, with_outputs_in
from tightrope.onnx.session import open_model, run_onnx
from tightrope.signature import IMAGE

FILE = "model.onnx"
EXTERNAL = onnx.TensorProto.EXTERNAL
# the longest sequence for which a position table is sought
MOST_POSITIONS = 4096
OLDEST_OPSET = 13  # the first with per-channel quantization


def read_onnx_file(source: str, path: Path) -> onnx.ModelProto:
    """Return the model in `path`; raise TightropeError naming `source` where it is unusable."""
    require_one_file(source, path.stat().st_size)
    try:
        model = onnx.load(path, load_external_data=False)
        if any(tensor.data_location == EXTERNAL for tensor in tensors_in(model)):
            raise TightropeError(
                f"{source}: not supported yet: weights in a second file; save it with onnx.save as "
                "one file"
            )
        onnx.checker.check_model(model)
    except (DecodeError, onnx.checker.ValidationError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ArtifactError(
            f"{source}: not a valid ONNX file ({reason}); export it again"
        ) from error
    if (opset := opset_of(model)) < OLDEST_OPSET:
        raise TightropeError(
            f"{source}: opset {opset} is too old, at least {OLDEST_OPSET} is needed; convert it "
            "with onnx.version_converter"
        )
    halves = [tensor for tensor in tensors_in(model) if tensor.data_type in HALVES]
    if any(len(tensor.dims) > 1 for tensor in halves):
        raise TightropeError(
            f"{source}: has weights in half precision ({halves[0].name}); give the file in "
            "float32, the engines are built in the precisions that you configure"
        )
    if any(node.op_type == "EmbedLayerNormalization" for node in model.graph.node):
        raise TightropeError(
            f"{source}: has EmbedLayerNormalization, an operator that onnxruntime.transformers "
            "(optimum-cli --optimize) has fused; give the file as it was exported"
        )
    return model


def tensors_in(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor: initializers and attributes, also of subgraphs and functions."""
    graphs = [*graphs_in(model.graph)]
    for function in model.functions:
        graphs += graphs_in(onnx.GraphProto(node=function.node))
    for graph in graphs:
        yield from graph.initializer
        sparse = list(graph.sparse_initializer)
        for attribute in (one for node in graph.node for one in node.attribute):
            yield from (attribute.t, *attribute.tensors)
            sparse += [attribute.sparse_tensor, *attribute.sparse_tensors]
        for tensor in sparse:
            yield from (tensor.values, tensor.indices)


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
    folders, examples = (folder, target), some_examples(data)
    if size:
        checked = check_images(path, folders, examples, answer=answer, reference=original)
    else:
        texts = [one["text"] for one in examples]
        check_tokenizer(path, target, texts, vocabulary(standard, path), terminal)
        checked = check_reference(
            path, folders, texts, longest=longest, answer=answer, reference=original
        )
    if matched not in (None, BY_NAME):
        own: dict[str, Any] = {"longest": longest, "terminal": terminal}
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
        **(
            {"height": size[0], "width": size[1]}
            if size
            else {"vocabulary": vocabulary(standard, path)}
        ),
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
