"""Profile an engine: which operators its calls spend their time in, and what bounds them.

An operator cannot be faster than its operations at the machine's peak in its type, nor than its
bytes at the machine's copy bandwidth (S. Williams et al., Roofline, CACM 52(4), 2009). Its time is
compute's or memory's, whichever bound is longer. Where neither explains a tenth of the time, it is
overhead, as is all of the call that no operator takes: dispatch, copies, Python. Operators in a
compiled package tell no sizes: its fused loops over elements are memory's, attention that it calls
is compute's, unless they are as short as a few of the smallest operators.
"""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from tightrope.artifacts.manifest import Artifacts, open_manifest, read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engines.load import Run, engine_module, load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import timing_batches
from tightrope.jobs.child import fill_in, set_failure
from tightrope.jobs.execution import Execution
from tightrope.machine.cores import let_threads_spin, pinned_processors
from tightrope.measure.profile_inputs import read_peaks, read_requests
from tightrope.measure.run import can_be_timed, facts_of_run
from tightrope.measure.timed_engine import FEWEST, mean_call
from tightrope.records.profile import (
    Bound,
    Group,
    OperatorTime,
    Peaks,
    ProfiledShape,
    ProfileRecord,
    Request,
)
from tightrope.runtimes.operator_times import ATTENTION, FUSED, PRODUCTS, Calls
from tightrope.runtimes.shapes import Buckets
from tightrope.signature import sizes_of
from tightrope.variants import parse

# share of an operator's time that a bound has to explain
EXPLAINED = 0.1
# what bounds an operator of unknown sizes
UNSIZED: dict[str, Bound] = {FUSED: "memory", ATTENTION: "compute", PRODUCTS: "compute"}
# smallest operators as long as which an operator of unknown sizes may be and still be overhead
FEW = 5
# seconds of the calls with a profiler at each shape
PROFILED_S = 0.15
MOST = 100
# operators that a record keeps; the rest is in the groups
KEPT = 40


def add_verdict(shape: ProfiledShape, operators: Sequence[OperatorTime], peaks: Peaks) -> None:
    """Add to a shape what bounds its call, and the share of each of the three.

    A profiler adds to the time of each operator: where they add up to more than the call, they are
    scaled down to it, by `profiler_factor`.
    """
    call_s, total = shape.call_s, sum(one.seconds for one in operators)
    factor = min(1.0, call_s / total) if total else 1.0
    seconds: dict[Bound, float] = {"compute": 0.0, "memory": 0.0, "overhead": 0.0}
    for one in operators:
        seconds[bound_of(one, factor * one.seconds, peaks)] += factor * one.seconds
    shape.outside_s, shape.profiler_factor = max(0.0, call_s - total), factor
    seconds["overhead"] += shape.outside_s
    shares = {name: value / call_s for name, value in seconds.items()}
    longest = max(shares, key=shares.__getitem__)
    shape.bound, shape.shares = longest, shares


def bound_of(operator: OperatorTime, seconds: float, peaks: Peaks) -> Bound:
    """Return what bounds an operator that takes `seconds`."""
    if operator.group in UNSIZED and not operator.operations:
        long = seconds > FEW * peaks.smallest_operator_s
        return UNSIZED[operator.group] if long else "overhead"
    peak = peaks.operations_per_s.get(operator.type) or peaks.operations_per_s["fp32"]
    compute, memory = operator.operations / peak, operator.bytes / peaks.copy_bytes_per_s
    if max(compute, memory) < EXPLAINED * seconds:
        return "overhead"
    return "compute" if compute >= memory else "memory"


def operator_times(
    engine: Path, run: Run, calls: Calls, *, threads: int
) -> list[list[OperatorTime]]:
    """Return the time of each operator per call of an engine, for each of `calls`.

    `engine` is its engine.json and `run` calls it: it was called with the same inputs before. A
    runtime that times operators only from the start loads the engine once more, for all `calls`.
    Raises WorkFailed where the engine's runtime has no profiler here.
    """
    manifest, folder = open_manifest(engine, EngineManifest), engine.parent
    variant, options = parse(manifest["variant"]), manifest["options"]
    if variant.device != "cpu":
        return of_kernels(engine, run, calls)
    module = engine_module(variant.engine)
    if not hasattr(module, "operator_times"):
        raise WorkFailed(f"operators of {variant.engine} are not timed yet", transient=False)
    settings = {"precision": variant.precision, "threads": threads, "options": options}
    return module.operator_times(folder, run, calls, **settings)


def of_kernels(engine: Path, run: Run, calls: Calls) -> list[list[OperatorTime]]:
    """Return the kernels of any engine on a GPU; of TensorRT, its layers with their shapes."""
    from tightrope.engines.kernel_times import kernel_times

    manifest = open_manifest(engine, EngineManifest)
    graph = bool(manifest["options"].get("graphs") and not manifest.get("graphs_refused"))
    name = parse(manifest["variant"]).engine
    kind = {"graph": graph, "eager": name == "pytorch"}
    found = [kernel_times(run, inputs, count, **kind) for inputs, count in calls]
    module = engine_module(name)
    return module.layer_times(engine.parent, calls) if hasattr(module, "layer_times") else found


def measure_profile(
    artifacts: Artifacts,
    requests: Path | str,
    peaks: Path | str,
    target: Path | str,
    *,
    max_sequence: int,
    execution: Execution,
) -> None:
    """Write the ProfileRecord of a variant, also if it cannot run.

    `requests` is the file of `measure_requests`, `peaks` that of `measure_peaks`. A transient
    failure raises TightropeError unless this is the last attempt.
    """
    record = ProfileRecord(**facts_of_run(artifacts, execution), threads=execution.threads)
    if can_be_timed(record, artifacts.engine):
        try:
            record.peaks = read_peaks(peaks)
            asked = read_requests(requests, artifacts.checkpoint)
            files, shapes = (artifacts.checkpoint, artifacts.data), [one.sizes for one in asked]
            batches = timing_batches(*files, shapes, max_sequence=max_sequence)
            pairs = list(zip(asked, batches, strict=True))
            work = partial(profiled, artifacts.engine, pairs, record.threads, record.peaks)
            fill_in(record, work, limits=execution.limits)
        except WorkFailed as error:
            set_failure(record, error, record.variant, execution.limits)
    record.write(target)


def profiled(
    engine: Path, requests: Sequence[tuple[Request, Arrays]], threads: int, peaks: Peaks
) -> dict[str, Any]:
    """Return, in the child, `shapes` of the record, and `unprofiled` where there is no profiler.

    Each request has a batch of its shape.
    """
    os.sched_setaffinity(0, pinned_processors(threads))
    let_threads_spin()
    run, _ = load_engine(engine, threads=threads)
    manifest = read_manifest(engine, EngineManifest)
    options = {**manifest["options"]}
    if options.get("graphs") is False or manifest.get("graphs_refused"):
        options["buckets"] = None  # only CUDA graphs pad requests to them
    shapes, calls = [], []
    for request, batch in requests:
        call_s, padding = mean_call(run, batch), padding_share(options, batch)
        shapes.append(ProfiledShape(**asdict(request), call_s=call_s, padding=padding))
        calls.append((batch, min(MOST, max(FEWEST, round(PROFILED_S / call_s)))))
    try:
        times = operator_times(engine, run, calls, threads=threads)
    except WorkFailed as error:
        return {"shapes": shapes, "unprofiled": error.reason}
    for shape, operators in zip(shapes, times, strict=True):
        shape.operators = operators[:KEPT]
        shape.groups = groups_of(operators)
        add_verdict(shape, operators, peaks)
    return {"shapes": shapes, "unprofiled": None}


def padding_share(options: Mapping[str, Any], inputs: Arrays) -> float:
    """Return the share of the tokens or images that pad a request up to the bucket."""
    request = sizes_of(inputs)
    buckets = options.get("buckets")
    whole = Buckets(buckets).nearest(*request) if buckets else request
    return 1 - prod(request) / prod(whole)


def groups_of(operators: Sequence[OperatorTime]) -> dict[str, Group]:
    """Return the operators of each group added up, the longest group first."""
    found: dict[str, Group] = {}
    for one in operators:
        group = found.setdefault(one.group, Group())
        group.seconds += one.seconds
        group.operations += one.operations
        group.bytes += one.bytes
        group.count += 1
        group.types[one.type] = group.types.get(one.type, 0.0) + one.seconds
    return dict(sorted(found.items(), key=lambda item: -item[1].seconds))
