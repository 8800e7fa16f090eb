"""The file of a step that failed: JSON or ONNX that holds the reason, and readers that see it."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json, write_bytes, write_json
from tightrope.errors import ArtifactError, WorkFailed

SCHEMA = 1
# metadata of an ONNX file without a graph
REASON, TRANSIENT = "tightrope.failed", "tightrope.transient"
# no reason is as long, and a model would be parsed for nothing
LARGEST_BYTES = 2**20
Failure = dict[str, Any]


def write_failure(path: Path | str, *, reason: str, transient: bool) -> None:
    """Write the failure as what `path` is by its name: JSON, or ONNX without a graph."""
    if not is_onnx_file(path):
        facts = {"status": "failed", "reason": reason, "transient": transient}
        return write_json(path, {"schema": SCHEMA, **facts})
    import onnx

    model = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    for key, value in ((REASON, reason), (TRANSIENT, str(transient))):
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    write_bytes(path, model.SerializeToString(deterministic=True))


def read_made_json(path: Path | str) -> Any:
    """The document in `path`; raises WorkFailed where it holds a failure, else as `read_json`."""
    document = read_json(path)
    require_made(failure_of(document))
    return document


def read_made_onnx(path: Path | str) -> Any:
    """The onnx.ModelProto in `path`, its seal not looked at.

    Raises WorkFailed where it holds a failure, ArtifactError when it cannot be read.
    """
    model = parsed(path)
    require_made(failure_in_metadata(model))
    return model


def failure_in(path: Path | str) -> Failure | None:
    """`reason` and `transient` of the failure in a JSON or ONNX file, None where it was made.

    Raises ArtifactError when it cannot be read.
    """
    if not is_onnx_file(path):
        return failure_of(read_json(path))
    if Path(path).stat().st_size > LARGEST_BYTES:
        return None
    return failure_in_metadata(parsed(path))


def require_made(failure: Failure | None) -> None:
    """Raise WorkFailed with the reason of a failure; not transient, for the file stays as it is."""
    if failure is not None:
        raise WorkFailed(failure["reason"], transient=False)


def failure_of(document: Any) -> Failure | None:
    """The failure that a JSON document is, None where it is none."""
    if not isinstance(document, dict) or document.get("status") != "failed":
        return None
    return {name: document.get(name) for name in ("reason", "transient")}


def failure_in_metadata(model: Any) -> Failure | None:
    """The failure in the metadata of an onnx.ModelProto, None where there is none."""
    found = {entry.key: entry.value for entry in model.metadata_props}
    if REASON not in found or model.HasField("graph"):
        return None
    return {"reason": found[REASON], "transient": found.get(TRANSIENT) == "True"}


def parsed(path: Path | str) -> Any:
    """The onnx.ModelProto in `path`; raises ArtifactError when it cannot be read."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return onnx.load(path)
    except (DecodeError, OSError) as error:
        raise ArtifactError(
            f"{path}: no readable ONNX file ({error}); delete it and run again"
        ) from error


def is_onnx_file(path: Path | str) -> bool:
    """Whether the file is ONNX by its name, else JSON."""
    return Path(path).suffix == ".onnx"
