"""Profile an engine: which operators its calls spend their time in, and what bounds them."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.load import load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import fill_in, set_failure
from tightrope.jobs.execution import Execution
from tightrope.machine.cores import pinned_processors
from tightrope.measure.latency import why_not_timed
from tightrope.measure.profile.bounds import verdict
from tightrope.measure.profile.calls import FEWEST, mean_call
from tightrope.measure.profile.operators import operator_times
from tightrope.measure.profile.peaks import read_peaks
from tightrope.measure.profile.precision import work_in
from tightrope.measure.profile.requests import read_requests
from tightrope.measure.run import facts_of_run
from tightrope.records.profile import ProfileRecord
from tightrope.runtimes.buckets import Buckets
from tightrope.runtimes.operator_times import OperatorTime
from tightrope.signature import sizes_of
from tightrope.variants import parse

# seconds of the calls with a profiler at each shape
PROFILED_S = 0.15
MOST = 100
# operators that a record keeps; the rest is in the groups
KEPT = 40


def measure_profile(
    artifacts: Artifacts,
    requests: Path | str,
    peaks: Path | str,
    target: Path | str,
    *,
    model: str,
    variant: str,
    max_sequence: int,
    execution: Execution,
) -> None:
    """Write the ProfileRecord of `variant`, also if it cannot run.

    `requests` is the file of `measure_requests`, `peaks` that of `measure_peaks`. A transient
    failure raises TightropeError unless this is the last attempt.
    """
    record = ProfileRecord(
        **facts_of_run(
            artifacts.engine, artifacts.checkpoint, execution, model=model, variant=variant
        ),
        threads=execution.threads,
        peaks={},
    )
    record.reason = why_not_timed(artifacts.engine, None)
    if record.reason is not None:
        record.status = "failed"
    else:
        try:
            record.peaks = read_peaks(peaks)
            precision = parse(variant).precision
            batches = requests_of(requests, artifacts, precision, max_sequence)
        except WorkFailed as error:
            set_failure(record, error, variant, execution.limits)
        else:
            work = partial(profiled, artifacts.engine, batches, record.threads, record.peaks)
            fill_in(record, work, limits=execution.limits)
    record.write(target)


# what is known of a shape before the variant runs, and a batch of it
Request = tuple[dict[str, Any], Arrays]


def requests_of(
    requests: Path | str, artifacts: Artifacts, precision: str, max_sequence: int
) -> list[Request]:
    """Return each shape with what its request takes besides the engine, and a batch of it.

    Raises WorkFailed where the requests could not be measured.
    """
    measured = read_requests(requests, artifacts.checkpoint)
    shapes = [one["shape"] for one in measured]
    files = artifacts.checkpoint, artifacts.data
    batches = timing_batches(*files, shapes, max_sequence=max_sequence)
    return [(known_of(one, precision), batch) for one, batch in zip(measured, batches, strict=True)]


def known_of(request: Mapping[str, Any], precision: str) -> dict[str, Any]:
    """Return shape, `around` and, if it was counted, `model` of a request in that precision."""
    known = {**request["shape"], "around": request["around"]}
    work = request["work"]
    return known if work is None else {**known, "model": work_in(precision, work)}


def profiled(
    engine: Path, requests: Sequence[Request], threads: int, peaks: Mapping[str, Any]
) -> dict[str, Any]:
    """Return, in the child, `shapes` of the record, and `unprofiled` where there is no profiler."""
    os.sched_setaffinity(0, pinned_processors(threads))
    run, _ = load_engine(engine, threads=threads)
    options = read_manifest(engine, EngineManifest)["options"]
    found: list[dict[str, Any]] = [
        {**known, "call_s": mean_call(run, batch), "padding": padding_share(options, batch)}
        for known, batch in requests
    ]
    calls = [
        (batch, number_of_calls(shape["call_s"]))
        for (_, batch), shape in zip(requests, found, strict=True)
    ]
    try:
        times = operator_times(engine, run, calls, threads=threads)
    except WorkFailed as error:
        return {"shapes": found, "unprofiled": error.reason}
    for shape, operators in zip(found, times, strict=True):
        shape |= facts_of(operators, shape["call_s"], peaks)
    return {"shapes": found, "unprofiled": None}


def number_of_calls(call_s: float) -> int:
    """Return the calls with a profiler: those that fill `PROFILED_S`, within limits."""
    return min(MOST, max(FEWEST, round(PROFILED_S / call_s)))


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
