"""Profile an engine: which operators its calls spend their time in, and what bounds them."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json, sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.load import load_engine
from tightrope.errors import TightropeError, WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import set_failure, supervised
from tightrope.jobs.execution import Execution
from tightrope.machine.cores import pinned_processors
from tightrope.machine.host import describe_host
from tightrope.measure.latency import why_not_timed
from tightrope.measure.profile.around import around_calls
from tightrope.measure.profile.bounds import verdict
from tightrope.measure.profile.calls import FEWEST, mean_call
from tightrope.measure.profile.operators import operator_times
from tightrope.measure.settings import Shape
from tightrope.records.profile import ProfileRecord
from tightrope.runtimes.buckets import Buckets
from tightrope.runtimes.operator_times import OperatorTime
from tightrope.signature import sizes_of
from tightrope.variants import parse

# seconds of the calls with a profiler at each shape
PROFILED_S = 0.3
MOST = 100
# operators that a record keeps; the rest is in the groups
KEPT = 40


def measure_profile(
    artifacts: Artifacts,
    peaks: Path | str,
    target: Path | str,
    *,
    model: str,
    variant: str,
    shapes: list[Shape],
    max_sequence: int,
    execution: Execution,
) -> None:
    """Write the ProfileRecord of `variant`, also if it cannot run.

    `peaks` is the file of `peaks_of`. A transient failure raises TightropeError unless this is the
    last attempt.
    """
    record = ProfileRecord(
        model=model,
        variant=variant,
        host=describe_host(),
        libraries=execution.libraries,
        engine_sha256=sha256(artifacts.engine),
        threads=execution.threads,
        peaks=read_json(peaks)["peaks"],
    )
    record.reason = why_not_timed(artifacts.engine, None)
    if record.reason is not None:
        record.status = "failed"
    else:
        requests = requests_of(artifacts, shapes, max_sequence, execution)
        try:
            fill_shapes(record, artifacts, requests, execution)
        except WorkFailed as error:
            set_failure(record, error, variant, execution.limits)
    record.write(target)


# what is known of a shape before the variant runs, and a batch of it
Request = tuple[dict[str, Any], Arrays]


def requests_of(
    artifacts: Artifacts, shapes: list[Shape], max_sequence: int, execution: Execution
) -> list[Request]:
    """Return each shape with the time `around` its call, and a batch of it.

    Raises TightropeError where the examples cannot be prepared.
    """
    files = artifacts.checkpoint, artifacts.data
    work = partial(around_calls, *files, shapes, execution.threads)
    try:
        # before this process tokenizes, see `around_calls`
        around = supervised(work, limits=execution.limits)
    except WorkFailed as error:
        raise TightropeError(f"inputs cannot be prepared: {error.reason}") from error
    batches = timing_batches(*files, shapes, max_sequence=max_sequence)
    return [
        ({**shape, "around": one}, batch)
        for shape, one, batch in zip(shapes, around, batches, strict=True)
    ]


def fill_shapes(
    record: ProfileRecord, artifacts: Artifacts, requests: list[Request], execution: Execution
) -> None:
    """Set `shapes` and `unprofiled` of the record; raise WorkFailed where a child fails."""
    limits, precision = execution.limits, parse(record.variant).precision
    if artifacts.onnx is not None:
        batches = [batch for _, batch in requests]
        counting = partial(works, artifacts.onnx, batches, precision, record.threads)
        for (known, _), work in zip(requests, supervised(counting, limits=limits), strict=True):
            known["model"] = work
    profiling = partial(profiled, artifacts.engine, requests, record.threads, record.peaks)
    for name, value in supervised(profiling, limits=limits).items():
        setattr(record, name, value)


def works(
    onnx: Path, batches: Sequence[Arrays], precision: str, threads: int
) -> list[dict[str, Any]]:
    """Return `model_works`, in the child, which alone loads ONNX Runtime."""
    from tightrope.measure.profile.model_work import model_works

    return model_works(onnx, batches, precision, threads)


def profiled(
    engine: Path, requests: Sequence[Request], threads: int, peaks: Mapping[str, Any]
) -> dict[str, Any]:
    """Return, in the child, `shapes` of the record, and `unprofiled` where there is no profiler."""
    os.sched_setaffinity(0, pinned_processors(threads))
    run, _ = load_engine(engine, threads=threads)
    options = read_manifest(engine, EngineManifest)["options"]
    calls_s = [mean_call(run, batch) for _, batch in requests]
    found: list[dict[str, Any]] = []
    unprofiled = None
    for (known, batch), call_s in zip(requests, calls_s, strict=True):
        calls = min(MOST, max(FEWEST, round(PROFILED_S / call_s)))
        found.append({**known, "call_s": call_s, "padding": padding_share(options, batch)})
        try:
            operators = operator_times(engine, batch, threads, calls)
            found[-1] |= facts_of(operators, call_s, peaks)
        except WorkFailed as error:
            unprofiled = error.reason
    return {"shapes": found, "unprofiled": unprofiled}


def facts_of(
    operators: Sequence[OperatorTime], call_s: float, peaks: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the longest operators of a call, all of them by group, and the verdict."""
    return {
        "operators": [one._asdict() for one in operators[:KEPT]],
        "groups": groups_of(operators),
        **verdict(operators, call_s, peaks),
    }


def padding_share(options: Mapping[str, Any], inputs: Arrays) -> float:
    """Return the share of the tokens or images that pad a request up to the bucket."""
    request = sizes_of(inputs)
    buckets = options.get("buckets")
    whole = Buckets(buckets).nearest(*request) if buckets else request
    return 1 - prod(request) / prod(whole)


def groups_of(operators: Sequence[OperatorTime]) -> dict[str, dict[str, Any]]:
    """Return seconds, operations, bytes and number of the operators of each group.

    `types` has the seconds by the type that they computed in.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in operators:
        group = found.setdefault(
            one.group, {"seconds": 0.0, "operations": 0.0, "bytes": 0.0, "count": 0, "types": {}}
        )
        group["seconds"] += one.seconds
        group["operations"] += one.operations
        group["bytes"] += one.bytes
        group["count"] += 1
        group["types"][one.type] = group["types"].get(one.type, 0.0) + one.seconds
    return dict(sorted(found.items(), key=lambda item: -item[1]["seconds"]))
