"""A model that comes as an ONNX file: checked, described, and given the names of the pipeline."""

from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from tightrope.errors import ArtifactError, TightropeError
from tightrope.files import read_bytes, write_bytes
from tightrope.inputs import Arrays
from tightrope.manifest import clear_folder, read_manifest, write_manifest
from tightrope.onnx_graph import require_one_file, run_onnx

FILE = "model.onnx"
TOKENS, MASK, SEGMENTS = "input_ids", "attention_mask", "token_type_ids"
EXTERNAL = onnx.TensorProto.EXTERNAL
INTEGERS = {onnx.TensorProto.INT64, onnx.TensorProto.INT32}
OLDEST_OPSET = 13  # weights can be quantized by channel from there on


def read_onnx_file(source: str, path: Path) -> onnx.ModelProto:
    """The model in `path`; TightropeError naming `source` where it cannot be used as it is."""
    require_one_file(source, path.stat().st_size)
    try:
        model = onnx.load(path, load_external_data=False)
        outside = [one for one in model.graph.initializer if one.data_location == EXTERNAL]
        if outside:
            raise TightropeError(
                f"{source}: not yet: weights in a second file; save it with onnx.save as one file"
            )
        onnx.checker.check_model(model)
    except (DecodeError, onnx.checker.ValidationError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ArtifactError(f"{source}: no valid ONNX file ({reason}); export it again") from error
    standard = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
    opset = max(standard, default=0)
    if opset < OLDEST_OPSET:
        raise TightropeError(
            f"{source}: opset {opset} is too old, at least {OLDEST_OPSET} is needed; convert it "
            "with onnx.version_converter"
        )
    return model


def keep_onnx_file(
    manifest: Path | str, *, source: Path | str, data: Path | str, inputs: dict[str, str]
) -> None:
    """What train_model writes for an ONNX file: the file, its tokenizer, and what it is.

    Raises TightropeError where its inputs are not those of `inputs`, or its classes not as many
    as the labels of the data.
    """
    origin, material = read_manifest(source), read_manifest(data)
    folder = Path(source).parent
    model = read_onnx_file(origin["source"], folder / FILE)
    standard = standardized(model, inputs, source=origin["source"])
    classes = class_count(standard)
    labels = material["labels"] or [str(number) for number in range(classes)]
    if len(labels) != classes:
        raise TightropeError(
            f"{origin['source']}: has {classes} outputs, the data has {len(labels)} labels "
            f"({', '.join(labels[:5])}); choose data that fits"
        )
    target = clear_folder(manifest)
    for name in origin["files"]:
        write_bytes(target / name, read_bytes(folder / name))
    write_manifest(
        manifest,
        task=origin["task"],
        labels=labels,
        parameters=sum(int(np.prod(tensor.dims)) for tensor in standard.graph.initializer),
        vocabulary=vocabulary(standard, origin["source"]),
        max_sequence=None,
        architecture=None,
        source=origin["source"],
        inputs=inputs,
        recipe=None,
        training=None,
    )


def standardized(model: onnx.ModelProto, inputs: dict[str, str], *, source: str) -> onnx.ModelProto:
    """The model with inputs `input_ids` and `attention_mask`, int64, and output `logits`, float32.

    `inputs` are the file's names for these and, where it has them, for `token_type_ids`, which
    become zeros. Raises TightropeError for inputs or outputs that do not fit.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    given = given_inputs(graph, inputs, source)
    del graph.input[:]
    del graph.value_info[:]
    nodes = []
    ours = {TOKENS: TOKENS, MASK: MASK, SEGMENTS: "tightrope_zeros"}
    wanted = [key for key in ours if inputs[key] in given]
    # first away from all names that are given below: they may be swapped, or used inside
    for key in wanted:
        rename(graph, inputs[key], f"{key}_as_given")
    for key in wanted:
        rename(graph, ours[key], f"{ours[key]}_of_the_file")
    for key in wanted:
        if key == SEGMENTS:
            nodes.append(onnx.helper.make_node("Sub", [TOKENS, TOKENS], [ours[key]]))
        else:
            kind, shape = onnx.TensorProto.INT64, ["batch", "sequence"]
            graph.input.append(onnx.helper.make_tensor_value_info(key, kind, shape))
        nodes += adapted(ours[key], f"{key}_as_given", given[inputs[key]], graph)
    for node in reversed(nodes):
        graph.node.insert(0, node)
    rename_output(graph, source)
    onnx.checker.check_model(result)
    return result


def given_inputs(
    graph: onnx.GraphProto, inputs: dict[str, str], source: str
) -> dict[str, onnx.ValueInfoProto]:
    """The graph's inputs by name, after they were found to be tokens, mask and at most segments."""
    weights = {tensor.name for tensor in graph.initializer}
    given = {one.name: one for one in graph.input if one.name not in weights}
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


def adapted(
    name: str, inner: str, theirs: onnx.ValueInfoProto, graph: onnx.GraphProto
) -> list[onnx.NodeProto]:
    """Let the graph take `name`, int64, where it reads `inner`, of the type of its input `theirs`.

    Nodes to put first.
    """
    kind = theirs.type.tensor_type.elem_type
    if kind != onnx.TensorProto.INT64:
        return [onnx.helper.make_node("Cast", [name], [inner], to=kind)]
    rename(graph, inner, name)
    return []


def rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Give a tensor another name wherever it is written and read, in branches and loops too."""
    for node in graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                if name == old:
                    names[place] = new
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                rename(inner, old, new)
    for value in graph.output:
        if value.name == old:
            value.name = new


def rename_output(graph: onnx.GraphProto, source: str) -> None:
    """Call the one output [batch, classes] `logits`, in float32."""
    names = [one.name for one in graph.output]
    flat = [one for one in graph.output if len(one.type.tensor_type.shape.dim) == 2]
    chosen = [one for one in flat if one.name == "logits"] or flat
    if len(chosen) != 1:
        raise TightropeError(
            f"{source}: none of its outputs ({', '.join(names)}) is [batch, classes] alone; "
            "export it with the logits only"
        )
    output = onnx.ValueInfoProto()
    output.CopyFrom(chosen[0])
    if output.name != "logits" or output.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
        rename(graph, "logits", "logits_of_the_file")
        cast = onnx.helper.make_node("Cast", [chosen[0].name], ["logits"], to=1)
        graph.node.append(cast)
    output.name = "logits"
    output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    del graph.output[:]
    graph.output.append(output)


def class_count(model: onnx.ModelProto) -> int:
    """Classes of a standardized model: by its output, else by one call."""
    axis = model.graph.output[0].type.tensor_type.shape.dim[1]
    if axis.dim_value:
        return axis.dim_value
    one = {name: np.ones((1, 2), np.int64) for name in (TOKENS, MASK)}
    return int(run_onnx(model, [one], threads=1)[0].shape[1])


def vocabulary(model: onnx.ModelProto, source: str) -> int:
    """Rows of the table in which a standardized model looks its tokens up."""
    constants = [
        (node.output[0], part.t)
        for node in model.graph.node
        for part in node.attribute
        if node.op_type == "Constant" and part.HasField("t")
    ]
    tables = [*constants, *((tensor.name, tensor) for tensor in model.graph.initializer)]
    rows = {name: tensor.dims[0] for name, tensor in tables if tensor.dims}
    same = {TOKENS}
    for node in model.graph.node:
        if node.op_type in ("Cast", "Identity") and node.input[0] in same:
            same.add(node.output[0])
        if node.op_type == "Gather" and node.input[1] in same and node.input[0] in rows:
            return int(rows[node.input[0]])
    raise TightropeError(
        f"{source}: no table in which input_ids are looked up; is it a text model?"
    )


def original_outputs(checkpoint: Path, batches: list[Arrays], *, threads: int) -> list[np.ndarray]:
    """Logits that the file itself gives, as it came, for batches in the pipeline's names.

    Raises ArtifactError naming the file where ONNX Runtime cannot run it.
    """
    manifest = read_manifest(checkpoint)
    source = manifest["source"]
    model = read_onnx_file(source, checkpoint.parent / FILE)
    try:
        return run_onnx(
            standardized(model, manifest["inputs"], source=source), batches, threads=threads
        )
    except ArtifactError as error:
        raise ArtifactError(f"{source}: {error}") from error
