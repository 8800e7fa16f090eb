"""Measure the latency of a variant paired with its baseline on the same machine."""

import hashlib
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from msgspec import convert

from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, failure, set_failure, supervised
from tightrope.machine.cores import frequency, pinned_processors
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.comparison import compare_loads
from tightrope.measure.run import TimingSettings, batches_of, can_be_timed, facts_of_run
from tightrope.measure.timed_engine import timed_engine
from tightrope.records.latency import LatencyRecord, Reference, TimedShape, Workload

ROUNDS = 20
# about 5 ms per round on a CPU with SHA-256 instructions
WORK = bytes(8 << 20)
LIMITS = Limits(memory_bytes=8e9, seconds=120)
# roles of the engines, which prefix the reason of a failure
OWN, BASELINE = "", "baseline "


def reference_workload(processors: list[int]) -> Workload:
    """Return the current speed of these processors, measured in a child process."""
    rounds = supervised(timed_rounds, processors, limits=LIMITS)
    return Workload(
        rounds_s=rounds,
        load_average=os.getloadavg()[0],
        frequency_khz=[frequency(number) for number in processors],
    )


def timed_rounds(processors: list[int]) -> list[float]:
    """Return, in the child, the seconds of each round after a warm-up round."""
    os.sched_setaffinity(0, processors)
    samples = []
    with ThreadPoolExecutor(len(processors)) as pool:
        for _ in range(ROUNDS + 1):
            began = time.perf_counter()
            list(pool.map(lambda _: hashlib.sha256(WORK).digest(), processors))
            samples.append(time.perf_counter() - began)
    return samples[1:]


def measure_latency(
    artifacts: Artifacts,
    baseline: Path | str,
    target: Path | str,
    settings: TimingSettings,
    *,
    model: str,
    variant: str,
    judged: Path | str | None = None,
) -> None:
    """Write the LatencyRecord of `variant`, also if it cannot be measured.

    `baseline` is the engine.json of an engine of the same model, or of a model with the same inputs
    and classes. For the baseline itself it is its own engine.json. The baseline, and a variant
    whose baseline fails, are measured alone. A variant that has failed or collapsed by its record
    of accuracy, `judged`, is not timed. A transient failure raises TightropeError unless this is
    the last attempt.
    """
    execution = settings.execution
    record = LatencyRecord(
        **facts_of_run(artifacts, execution, model=model, variant=variant),
        threads=execution.threads,
        plan=settings.plan,
        processors=pinned_processors(execution.threads),
    )
    if not can_be_timed(record, artifacts.engine, judged):
        return record.write(target)
    beside = open_manifest(baseline, EngineManifest)
    if beside["status"] != "ok":
        record.baseline_failed = f"not built: {beside['reason']}"
    elif artifacts.engine != Path(baseline):
        record.baseline = beside["variant"]
    machine = settings.machine(record.processors)
    before = reference_workload(record.processors)
    engines = {OWN: artifacts.engine} | ({BASELINE: Path(baseline)} if record.baseline else {})
    try:
        time_engines(record, artifacts, engines, settings, machine)
    except WorkFailed as error:
        record.shapes = []
        set_failure(record, error, record.variant, execution.limits)
    record.lost_s, record.busiest = machine.lost_s, machine.busiest
    record.reference = Reference(before=before, after=reference_workload(record.processors))
    record.write(target)


def time_engines(
    record: LatencyRecord,
    artifacts: Artifacts,
    engines: Mapping[str, Path],
    settings: TimingSettings,
    machine: QuietMachine,
) -> None:
    """Fill in `record` for all shapes, paired with the baseline, or alone if that fails.

    `engines` are by role; each has one process per load, and they share the memory limit of the
    job. Raises WorkFailed where the variant itself fails.
    """
    limits, threads = settings.execution.limits, record.threads
    batches = batches_of(settings, artifacts.checkpoint, artifacts.data)
    timed = {
        role: timed_engine(path, artifacts.checkpoint, batches, threads=threads)
        for role, path in engines.items()
    }
    shared = replace(limits, memory_bytes=limits.memory_bytes / len(engines))
    record.shapes = convert(settings.shapes, list[TimedShape])
    known = record.shapes, record.plan, threads, shared, machine, settings.streams
    try:
        facts = compare_loads(timed, *known)
    except WorkFailed as error:
        if error.role != BASELINE:
            raise
        failure(error, record.variant, limits)
        record.baseline, record.baseline_failed = None, error.reason
        alone = {OWN: engines[OWN]}
        return time_engines(record, artifacts, alone, settings, machine)
    for name, value in facts.items():
        setattr(record, name, value)
    record.first_call_s = record.shapes[0].first_call_s
