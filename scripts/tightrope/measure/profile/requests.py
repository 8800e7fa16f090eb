"""What the requests of a model take whatever the engine, measured once for all its profiles."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.descent import identity, require_descent
from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.inputs.timing_batches import timing_batches
from tightrope.machine.host import describe_host
from tightrope.measure.profile.around import around_calls
from tightrope.measure.settings import Shape

SCHEMA = 2


class Around(TypedDict):
    """Seconds of a request besides the call."""

    prepare_s: float | None
    finish_s: float


class Work(TypedDict):
    """What a call takes in any precision, see `model_work.model_works`."""

    operations: float
    groups: dict[str, float]
    weights: float
    other_bytes: float


class RequestFacts(TypedDict):
    """What is known of a request of one shape."""

    shape: Shape
    around: Around
    work: Work | None


class Requests(TypedDict):
    """What `measure_requests` writes, as far as it is read, with the identity of the checkpoint."""

    checkpoint: str
    requests: list[RequestFacts]


def measure_requests(
    checkpoint: Path | str,
    data: Path | str,
    onnx: Path | str | None,
    target: Path | str,
    *,
    shapes: Sequence[Shape],
    max_sequence: int,
    threads: int,
) -> None:
    """Write, in a child, `shape`, `around` its call and the `work` of each request.

    Without an ONNX file `work` is None. Raises TightropeError where the examples cannot be
    prepared.
    """
    files = Path(checkpoint), Path(data)
    # first: it pins this process, and measures before anything else was loaded
    around = around_calls(*files, shapes, threads)
    works: list[dict[str, Any] | None] = [None] * len(shapes)
    if onnx is not None:
        from tightrope.measure.profile.model_work import model_works

        batches = timing_batches(*files, list(shapes), max_sequence=max_sequence)
        works = [*model_works(Path(onnx), batches, threads)]
    requests = [
        {"shape": shape, "around": one, "work": work}
        for shape, one, work in zip(shapes, around, works, strict=True)
    ]
    made_from = identity(open_manifest(checkpoint, CheckpointManifest))
    facts = {"schema": SCHEMA, "host": describe_host(), "checkpoint": made_from}
    write_artifact(target, {**facts, "requests": requests})


def read_requests(path: Path | str, checkpoint: Path | str) -> list[Mapping[str, Any]]:
    """Return what `measure_requests` wrote for a checkpoint.

    Raises WorkFailed with its reason where it failed, ArtifactError for another checkpoint.
    """
    document: dict[str, Any] = read_json_or_raise(path, Requests)
    require_descent(path, document["checkpoint"], checkpoint)
    requests: list[Mapping[str, Any]] = document["requests"]
    return requests
