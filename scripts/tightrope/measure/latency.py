"""The latency of a variant, beside its baseline's on the same machine in the same minutes."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tightrope.artifacts.files import read_json, sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.engines.load import load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import Limits, failure
from tightrope.machine.cores import pinned_processors
from tightrope.machine.host import describe_host
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.comparison import compare_loads
from tightrope.measure.fixed_workload import reference_workload
from tightrope.measure.logits import check_logits
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.latency import LatencyRecord

Shape = dict[str, int]
BASELINE = "baseline "


def measure_latency(
    engine: Path | str,
    baseline: Path | str,
    checkpoint: Path | str,
    data: Path | str,
    target: Path | str,
    *,
    model: str,
    variant: str,
    shapes: list[Shape],
    plan: dict[str, Any],
    quiet_seconds: float,
    max_sequence: int,
    threads: int,
    libraries: dict[str, str | None],
    limits: Limits,
    terminal: TextIO,
    audit: Path | str | None = None,
) -> None:
    """Write the LatencyRecord of `variant`, also when it cannot be measured.

    `engine` and `baseline` are engine.json files, of one model or of two that take the same
    inputs and have the same classes; they are one file for the baseline itself, which is then
    measured alone, as is a variant whose baseline fails. What `audit` says has collapsed, or
    failed, is not timed. `plan` is `latency` of the configuration; `quiet_seconds` may be lost to
    other load, and lines about waiting go to `terminal`. A transient failure raises TightropeError
    unless this is the last attempt.
    """
    built, rival = read_json(engine), read_json(baseline)
    record = LatencyRecord(
        model=model,
        variant=variant,
        host=describe_host(),
        libraries=libraries,
        engine_sha256=sha256(engine),
        threads=threads,
        plan=plan,
        processors=pinned_processors(threads),
    )
    if built["status"] != "ok":
        record.status, record.reason = "failed", f"not built: {built['reason']}"
        return record.write(target)
    audited = read_json(audit) if audit else {"status": "ok"}
    if audited["status"] != "ok":
        record.status, record.reason = "failed", audited["reason"]
        return record.write(target)
    if rival["status"] != "ok":
        record.baseline_failed = f"not built: {rival['reason']}"
    elif Path(engine) != Path(baseline):
        record.baseline = rival["variant"]
    batches = timing_batches(checkpoint, data, shapes, max_sequence=max_sequence)
    check = partial(check_logits, classes=len(read_manifest(checkpoint)["labels"]))
    machine = QuietMachine(record.processors, quiet_seconds, terminal)
    before = reference_workload(record.processors)
    try:
        work = (shapes, batches, check)
        measure(record, Path(engine), Path(baseline), work, limits, machine)
    except WorkFailed as error:
        record.shapes = []
        for name, value in failure(error, variant, limits).items():
            setattr(record, name, value)
    record.lost_s, record.loudest = machine.lost_s, machine.loudest
    record.reference = {"before": before, "after": reference_workload(record.processors)}
    record.write(target)


def measure(
    record: LatencyRecord,
    engine: Path,
    baseline: Path,
    work: tuple[Any, ...],
    limits: Limits,
    machine: QuietMachine,
) -> None:
    """Fill in `record` beside the baseline, or alone where there is none or where it fails."""
    if record.baseline is None:
        return measure_side_by_side(record, [engine], *work, limits, machine)
    try:
        measure_side_by_side(record, [engine, baseline], *work, limits, machine)
    except WorkFailed as error:
        if error.role != BASELINE:
            raise
        failure(error, record.variant, limits)
        record.baseline, record.baseline_failed = None, error.reason
        measure_side_by_side(record, [engine], *work, limits, machine)


def measure_side_by_side(
    record: LatencyRecord,
    engines: list[Path],
    shapes: list[Shape],
    batches: list[Arrays],
    check: Any,
    limits: Limits,
    machine: QuietMachine,
) -> None:
    """Fill in `record`: all shapes, each engine in processes of its own.

    The engines share the memory that the job may use.
    """
    limits = replace(limits, memory_bytes=limits.memory_bytes / len(engines))
    timed = {}
    for path, role in zip(engines, ("", BASELINE), strict=False):
        load = partial(load_engine, path, threads=record.threads)
        timed[role] = TimedEngine(load, batches, record.processors, check)
    compared, facts = compare_loads(timed, record.plan, record.threads, limits, machine)
    for name, value in facts.items():
        setattr(record, name, value)
    record.shapes = [{**shape, **one} for shape, one in zip(shapes, compared, strict=True)]
    record.first_call_s = record.shapes[0]["first_call_s"]
