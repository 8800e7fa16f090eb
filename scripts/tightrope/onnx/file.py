"""Write ONNX files that hold a digest, read them and others verified, and simplify their graphs."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from tightrope.artifacts.failures import metadata, read_onnx_or_raise
from tightrope.artifacts.files import write_bytes
from tightrope.artifacts.manifest import CHECKPOINT, checkpoint_of, require_descent
from tightrope.errors import ArtifactError, TightropeError
from tightrope.onnx.edit import graphs_in, opset_of
from tightrope.onnx.float_model import HALVES
from tightrope.signature import Signature, Tensor

DIGEST = "tightrope.sha256"
LONGEST = "tightrope.max_sequence"
# metadata that stays when a file is written again
KEPT = (LONGEST, CHECKPOINT)
# a protobuf message holds 2 GiB; leave room for the graph besides the weights
LARGEST_BYTES = 2**31 - 2**20
OLDEST_OPSET = 13  # the first with per-channel quantization


def save_onnx(model: onnx.ModelProto, path: Path | str) -> None:
    """Write one self-contained file; the same graph gives the same bytes in any folder.

    Metadata (it holds absolute paths) and documentation are removed, but the longest sequence and
    the checkpoint. A digest of the rest is stored, by which `load_onnx` detects truncation and
    damage. Raises TightropeError above 2 GiB.
    """
    keep_metadata(model, *KEPT)
    model.doc_string = model.graph.doc_string = ""
    graph = model.graph
    parts: list[onnx.GraphProto | onnx.NodeProto | onnx.ValueInfoProto | onnx.TensorProto]
    parts = [graph, *graph.node, *graph.value_info, *graph.input, *graph.output]
    for part in [*parts, *graph.initializer]:
        part.doc_string = ""
        del part.metadata_props[:]
    require_one_file(path, model.ByteSize())
    digest = hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
    entry = model.metadata_props.add()
    entry.key, entry.value = DIGEST, digest
    write_bytes(path, model.SerializeToString(deterministic=True))


def require_one_file(path: Path | str, size_bytes: int) -> None:
    """Raise TightropeError where a model of `size_bytes` does not fit into one ONNX file."""
    if size_bytes > LARGEST_BYTES:
        raise TightropeError(
            f"{path}: not supported yet: the model has {size_bytes / 2**30:.1f} GiB, one "
            "ONNX file holds at most 2 GiB"
        )


def load_onnx(path: Path | str) -> onnx.ModelProto:
    """Return the model in `path`, without its digest.

    Raises ArtifactError where the file is not what was saved, WorkFailed where it holds a failure.
    """
    model = read_onnx_or_raise(path)
    written = metadata(model).get(DIGEST)
    keep_metadata(model, *KEPT)
    digest = hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
    if written != digest:
        raise ArtifactError(f"{path}: not the file that was written; delete it and run again")
    return model


def read_onnx_file(source: str, path: Path) -> onnx.ModelProto:
    """Return the model in `path`; raise TightropeError naming `source` where it is unusable."""
    require_one_file(source, path.stat().st_size)
    try:
        model = onnx.load(path, load_external_data=False)
        if any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in tensors_in(model)):
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


def keep_metadata(model: onnx.ModelProto, *keys: str) -> None:
    """Remove every metadata entry of the model except `keys`."""
    kept = [entry for entry in model.metadata_props if entry.key in keys]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)


def set_max_sequence(model: onnx.ModelProto, tokens: int | None) -> None:
    """Store the token limit of the model in its metadata, None for no limit."""
    set_metadata(model, LONGEST, None if tokens is None else str(tokens))


def set_checkpoint(model: onnx.ModelProto, identity: str | None) -> None:
    """Store the identity of the checkpoint that the model was made from, None if it is unknown."""
    set_metadata(model, CHECKPOINT, identity)


def set_metadata(model: onnx.ModelProto, key: str, value: str | None) -> None:
    """Set one of the metadata entries that are kept, None to remove it; remove all others."""
    keep_metadata(model, *(one for one in KEPT if one != key))
    if value is not None:
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    # the same bytes whatever was set first
    model.metadata_props.sort(key=lambda entry: entry.key)


def max_sequence(model: onnx.ModelProto) -> int | None:
    """Return the token limit of the model, None where none is stored."""
    found = metadata(model).get(LONGEST)
    return int(found) if found else None


def require_onnx_of(path: Path | str, checkpoint: Path | str) -> None:
    """Raise ArtifactError unless an ONNX file was made from the checkpoint of that manifest."""
    require_descent(path, checkpoint_of(load_onnx(path)), checkpoint)


def signature_of(model: onnx.ModelProto) -> Signature:
    """Return the signature of the graph's inputs; an axis without a size is dynamic."""
    tensors = []
    for one in model.graph.input:
        kind = one.type.tensor_type
        axes = (axis.dim_value or axis.dim_param for axis in kind.shape.dim)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        tensors.append(Tensor(one.name, str(dtype), tuple(axes)))
    return Signature(tuple(tensors))


def simplified(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return `model` with constants folded and dead nodes removed by onnxslim.

    Shapes of intermediate tensors are cleared: those that torch's exporter writes contradict the
    shapes that ONNX Runtime infers, and its quantizer fails on them.
    """
    import onnxslim

    keep_metadata(model, *KEPT)
    inputs, kept = list(model.graph.input), list(model.metadata_props)
    model = onnxslim.slim(model)
    # onnxslim drops unused inputs, but callers still pass them
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    del model.metadata_props[:], model.graph.value_info[:]
    model.metadata_props.extend(kept)
    onnx.checker.check_model(model, full_check=True)
    return model
