"""Measure the latency of a variant paired with its baseline on the same machine."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tightrope.artifacts.files import read_json, sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.load import load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import Limits, failure
from tightrope.jobs.execution import Execution
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
    artifacts: Artifacts,
    baseline: Path | str,
    target: Path | str,
    *,
    model: str,
    variant: str,
    shapes: list[Shape],
    plan: dict[str, Any],
    quiet_seconds: float,
    max_sequence: int,
    execution: Execution,
    terminal: TextIO,
    audit: Path | str | None = None,
) -> None:
    """Write the LatencyRecord of `variant`, also if it cannot be measured.

    `baseline` is the engine.json of an engine of the same model, or of a model with the same inputs
    and classes. For the baseline itself it is its own engine.json. The baseline, and a variant
    whose baseline fails, are measured alone. A variant whose `audit` is collapsed or failed is not
    timed. `plan` holds the `latency` settings. Up to `quiet_seconds` may be lost to other load;
    messages about waiting go to `terminal`. A transient failure raises TightropeError unless this
    is the last attempt.
    """
    built, rival = read_json(artifacts.engine), read_json(baseline)
    record = LatencyRecord(
        model=model,
        variant=variant,
        host=describe_host(),
        libraries=execution.libraries,
        engine_sha256=sha256(artifacts.engine),
        threads=execution.threads,
        plan=plan,
        processors=pinned_processors(execution.threads),
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
    elif artifacts.engine != Path(baseline):
        record.baseline = rival["variant"]
    batches = timing_batches(
        artifacts.checkpoint, artifacts.data, shapes, max_sequence=max_sequence
    )
    check = partial(check_logits, classes=len(read_manifest(artifacts.checkpoint)["labels"]))
    machine = QuietMachine(record.processors, quiet_seconds, terminal)
    before = reference_workload(record.processors)
    try:
        paired = partial(
            measure_side_by_side,
            record,
            shapes=shapes,
            batches=batches,
            check=check,
            limits=execution.limits,
            machine=machine,
        )
        measure(record, [artifacts.engine, Path(baseline)], paired, execution.limits)
    except WorkFailed as error:
        record.shapes = []
        for name, value in failure(error, variant, execution.limits).items():
            setattr(record, name, value)
    record.lost_s, record.loudest = machine.lost_s, machine.loudest
    record.reference = {"before": before, "after": reference_workload(record.processors)}
    record.write(target)


def measure(
    record: LatencyRecord, engines: list[Path], paired: Callable[[list[Path]], None], limits: Limits
) -> None:
    """Fill in `record` paired with the baseline, or alone without a baseline or if that fails.

    `engines` are the variant's and the baseline's; `paired` fills in the record from its argument.
    """
    if record.baseline is None:
        return paired(engines[:1])
    try:
        paired(engines)
    except WorkFailed as error:
        if error.role != BASELINE:
            raise
        failure(error, record.variant, limits)
        record.baseline, record.baseline_failed = None, error.reason
        paired(engines[:1])


def measure_side_by_side(
    record: LatencyRecord,
    engines: list[Path],
    *,
    shapes: list[Shape],
    batches: list[Arrays],
    check: Any,
    limits: Limits,
    machine: QuietMachine,
) -> None:
    """Fill in `record` for all shapes, one process per engine and load.

    The engines share the memory limit of the job.
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
