"""Profile an engine: which operators its calls spend their time in, and what bounds them."""

import os
import statistics
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
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import fill_in
from tightrope.jobs.execution import Execution
from tightrope.machine.cores import pinned_processors
from tightrope.machine.host import describe_host
from tightrope.measure.latency import why_not_timed
from tightrope.measure.profile.bounds import verdict
from tightrope.measure.profile.operators import operator_times
from tightrope.measure.settings import Shape
from tightrope.measure.timing import timed_calls
from tightrope.records.profile import ProfileRecord
from tightrope.runtimes.buckets import Buckets
from tightrope.runtimes.operator_times import OperatorTime
from tightrope.signature import sizes_of

# seconds of the calls without a profiler, and with one, at each shape
PLAIN_S, PROFILED_S = 0.5, 0.3
WARM_UP_S = 0.2
FEWEST, MOST = 3, 100
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
        files = artifacts.checkpoint, artifacts.data
        batches = timing_batches(*files, shapes, max_sequence=max_sequence)
        work = partial(profiled, artifacts.engine, shapes, batches, record.threads, record.peaks)
        fill_in(record, work, limits=execution.limits)
    record.write(target)


def profiled(
    engine: Path,
    shapes: Sequence[Shape],
    batches: Sequence[Arrays],
    threads: int,
    peaks: Mapping[str, Any],
) -> dict[str, Any]:
    """Return, in the child, `shapes` of the record, and `unprofiled` where there is no profiler."""
    os.sched_setaffinity(0, pinned_processors(threads))
    run, _ = load_engine(engine, threads=threads)
    options = read_manifest(engine, EngineManifest)["options"]
    calls_s = [mean_call(run, batch) for batch in batches]
    found: list[dict[str, Any]] = []
    unprofiled = None
    for shape, batch, call_s in zip(shapes, batches, calls_s, strict=True):
        calls = min(MOST, max(FEWEST, round(PROFILED_S / call_s)))
        found.append({**shape, "call_s": call_s, "padding": padding_share(options, batch)})
        try:
            operators = operator_times(engine, batch, threads, calls)
            found[-1] |= facts_of(operators, call_s, peaks)
        except WorkFailed as error:
            unprofiled = error.reason
    return {"shapes": found, "unprofiled": unprofiled}


def mean_call(run: Any, inputs: Arrays) -> float:
    """Return the mean seconds of a call, after a warm-up."""
    timed_calls(run, inputs, seconds=WARM_UP_S, calls=1, limit_seconds=WARM_UP_S)
    return statistics.fmean(
        timed_calls(run, inputs, seconds=PLAIN_S, calls=FEWEST, limit_seconds=10 * PLAIN_S)
    )


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
