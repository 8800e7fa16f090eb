"""ONNX files: written sealed, read checked, and the same graph without its metadata."""

import hashlib
from pathlib import Path

import onnx

from tightrope.artifacts.failures import read_made_onnx
from tightrope.artifacts.files import write_bytes
from tightrope.errors import ArtifactError, TightropeError
from tightrope.signature import Signature, Tensor

SEAL = "tightrope.sha256"
LONGEST = "tightrope.max_sequence"
# a protobuf message holds 2 GiB; some room for the graph around the weights
LARGEST_BYTES = 2**31 - 2**20


def save_onnx(model: onnx.ModelProto, path: Path | str) -> None:
    """Write one self-contained file, the same bytes for the same graph in any folder.

    Metadata (it holds absolute paths) is stripped; a digest of the rest is kept in the file,
    by which `load_onnx` finds truncation and tampering. Raises TightropeError above 2 GiB.
    """
    strip_metadata(model)
    require_one_file(path, model.ByteSize())
    digest = hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
    entry = model.metadata_props.add()
    entry.key, entry.value = SEAL, digest
    write_bytes(path, model.SerializeToString(deterministic=True))


def require_one_file(path: Path | str, size_bytes: int) -> None:
    """Raise TightropeError where a model of that size does not fit into one ONNX file."""
    if size_bytes > LARGEST_BYTES:
        raise TightropeError(
            f"{path}: not yet: the model has {size_bytes / 2**30:.1f} GiB, one ONNX file holds "
            "at most 2 GiB"
        )


def load_onnx(path: Path | str) -> onnx.ModelProto:
    """The model in `path`, without its seal.

    Raises ArtifactError when it is not what was saved, WorkFailed where a failure was.
    """
    model = read_made_onnx(path)
    seal = {entry.key: entry.value for entry in model.metadata_props}.get(SEAL)
    keep_metadata(model, LONGEST)
    digest = hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
    if seal != digest:
        raise ArtifactError(f"{path}: not the file that was written; delete it and run again")
    return model


def strip_metadata(model: onnx.ModelProto) -> None:
    """Remove metadata and documentation of the model and of everything in its graph.

    The model's longest sequence stays.
    """
    keep_metadata(model, LONGEST)
    model.doc_string = model.graph.doc_string = ""
    graph = model.graph
    for part in (graph, *graph.node, *graph.value_info, *graph.input, *graph.output):
        part.doc_string = ""
        del part.metadata_props[:]
    for tensor in graph.initializer:
        tensor.doc_string = ""
        del tensor.metadata_props[:]


def keep_metadata(model: onnx.ModelProto, key: str) -> None:
    """Remove every entry of the model's own metadata but that of `key`."""
    kept = [entry for entry in model.metadata_props if entry.key == key]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)


def set_max_sequence(model: onnx.ModelProto, tokens: int | None) -> None:
    """Note the most tokens that the model takes, None where it sets no limit."""
    keep_metadata(model, "")
    if tokens is not None:
        entry = model.metadata_props.add()
        entry.key, entry.value = LONGEST, str(tokens)


def max_sequence(model: onnx.ModelProto) -> int | None:
    """The most tokens that the model takes, None where that is not noted."""
    found = {entry.key: entry.value for entry in model.metadata_props}.get(LONGEST)
    return int(found) if found else None


def signature_of(model: onnx.ModelProto) -> Signature:
    """What the inputs of the graph say; an axis of no number is free."""
    tensors = []
    for one in model.graph.input:
        kind = one.type.tensor_type
        axes = (axis.dim_value or axis.dim_param for axis in kind.shape.dim)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        tensors.append(Tensor(one.name, str(dtype), tuple(axes)))
    return Signature(tuple(tensors))


def simplified(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model` with constants folded and dead nodes dropped by onnxslim.

    Shapes of inner tensors are cleared: those that torch's exporter writes contradict what
    ONNX Runtime infers, and its quantizer stops at them.
    """
    import onnxslim

    longest, inputs = max_sequence(model), list(model.graph.input)
    model = onnxslim.slim(model)
    # it drops one that is not read, which callers give all the same
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    set_max_sequence(model, longest)
    del model.graph.value_info[:]
    onnx.checker.check_model(model, full_check=True)
    return model
