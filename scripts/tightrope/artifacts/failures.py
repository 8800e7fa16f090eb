"""Why steps failed: in their outputs, JSON or ONNX, or told by a run whose jobs ended without."""

import os
from pathlib import Path
from typing import Any

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.artifacts.files import open_regular, read_bytes, read_json, require_type, write_bytes
from tightrope.errors import ArtifactError, WorkFailed

SCHEMA = 1
# metadata keys of an ONNX file without a graph
REASON, TRANSIENT = "tightrope.failed", "tightrope.transient"
# a larger file is a model, not a failure: skip parsing it
LARGEST_BYTES = 2**20
Failure = dict[str, Any]
# variable of the environment of a run that goes on to its report: the file of the reasons
CONTINUES = "TIGHTROPE_CONTINUES"


def write_failure(path: Path | str, *, reason: str, transient: bool) -> None:
    """Write a failure in the format of the suffix of `path`: JSON, or ONNX without a graph."""
    if not is_onnx_file(path):
        facts = {"status": "failed", "reason": reason, "transient": transient}
        return write_artifact(path, {"schema": SCHEMA, **facts})
    import onnx

    model = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    for key, value in ((REASON, reason), (TRANSIENT, str(transient))):
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    write_bytes(path, model.SerializeToString(deterministic=True))


def read_json_or_raise(path: Path | str, kind: Any = Any) -> Any:
    """Return the JSON document in `path`, of type `kind`.

    Raises WorkFailed for a failure, else as `read_artifact` does.
    """
    document = read_artifact(path)
    raise_if_failed(failure_of(document))
    return require_type(path, document, kind)


def read_onnx_or_raise(path: Path | str) -> Any:
    """Return the onnx.ModelProto in `path` without verifying its checksum.

    Raises WorkFailed where the file holds a failure, ArtifactError when it cannot be read.
    """
    model = parsed(path, read_bytes(path))
    raise_if_failed(failure_in_metadata(model))
    return model


def failure_in(path: Path | str) -> Failure | None:
    """Return `reason` and `transient` of the failure in a JSON or ONNX file, else None.

    Raises ArtifactError when the file cannot be read.
    """
    if not is_onnx_file(path):
        return failure_of(read_json(path))
    with open_regular(path) as stream:
        if os.fstat(stream.fileno()).st_size > LARGEST_BYTES:
            return None
    return failure_in_metadata(parsed(path, read_bytes(path)))


def raise_if_failed(failure: Failure | None) -> None:
    """Raise WorkFailed with the reason of a failure; not transient, the file stays as it is."""
    if failure is not None:
        raise WorkFailed(failure["reason"], transient=False)


def failure_of(document: Any) -> Failure | None:
    """Return the failure in a JSON document, None without a failure."""
    if not isinstance(document, dict) or document.get("status") != "failed":
        return None
    reason = document.get("reason")
    return {
        "reason": reason if isinstance(reason, str) else "failed without a reason",
        "transient": document.get("transient") is True,
    }


def failure_in_metadata(model: Any) -> Failure | None:
    """Return the failure in the metadata of an onnx.ModelProto, None without a failure."""
    found = metadata(model)
    if REASON not in found or model.HasField("graph"):
        return None
    return {"reason": found[REASON], "transient": found.get(TRANSIENT) == "True"}


def metadata(model: Any) -> dict[str, str]:
    """Return the metadata of an onnx.ModelProto."""
    return {entry.key: entry.value for entry in model.metadata_props}


def parsed(path: Path | str, content: bytes) -> Any:
    """Return the onnx.ModelProto in the content of `path`; raise ArtifactError where it is none."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return onnx.load_from_string(content)  # artifacts hold their weights themselves
    except DecodeError as error:
        raise ArtifactError(
            f"{path}: no readable ONNX file ({error}); delete it and run again"
        ) from error


def is_onnx_file(path: Path | str) -> bool:
    """Return whether the file is ONNX by its suffix; all others are JSON."""
    return Path(path).suffix == ".onnx"


def known_reasons() -> dict[str, str]:
    """Return the reasons by output, and by model without data or checkpoint; none in a new run."""
    file = Path(os.environ.get(CONTINUES, ""))  # which a node may not have
    return read_json(file, dict[str, str]) if file.is_file() else {}


def reason_of(job: Any) -> str | None:
    """Return why a job has ended before: it then writes this in place of its work. Else None."""
    reasons, outputs = known_reasons(), (str(path) for _, path in job.output.items())
    return next((reasons[path] for path in outputs if path in reasons), None)
