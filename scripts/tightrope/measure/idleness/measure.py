"""Measure how long the first call of a variant takes after pauses of several lengths."""

import time
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.artifacts.manifest import classes_of
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.load import load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import Child, set_failure
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.cores import pinned_processors
from tightrope.machine.interference import MAX_FOREIGN_CORES, Windows
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.blocks import cpu_seconds
from tightrope.measure.idleness.paused_engine import PausedEngine
from tightrope.measure.idleness.schedule import schedule
from tightrope.measure.latency import why_not_timed
from tightrope.measure.logits import check_logits
from tightrope.measure.run import facts_of_run
from tightrope.measure.settings import TimingSettings
from tightrope.records.idleness import IdlenessRecord

WARM_UP_S = 1.0
# the block before each pause: long enough for a stable median and for the clock to rise
BLOCK_S, BLOCK_CALLS = 0.1, 3

Facts = dict[str, Any]


def measure_idleness(
    artifacts: Artifacts,
    target: Path | str,
    settings: TimingSettings,
    *,
    model: str,
    variant: str,
) -> None:
    """Write the IdlenessRecord of `variant` at the only shape of `settings`, also if it cannot run.

    `settings.plan` holds the `idleness` settings. A transient failure raises TightropeError unless
    this is the last attempt.
    """
    execution = settings.execution
    (shape,) = settings.shapes
    record = IdlenessRecord(
        **facts_of_run(
            artifacts.engine, artifacts.checkpoint, execution, model=model, variant=variant
        ),
        threads=execution.threads,
        processors=pinned_processors(execution.threads),
        plan=settings.plan,
        shape=shape,
    )
    record.reason = why_not_timed(artifacts.engine, None)
    if record.reason is not None:
        record.status = "failed"
    else:
        fill_in_calls(record, artifacts, settings)
    record.write(target)


def fill_in_calls(record: IdlenessRecord, artifacts: Artifacts, settings: TimingSettings) -> None:
    """Fill in `record` from the calls, or from their failure."""
    limits = settings.execution.limits
    batches = timing_batches(
        artifacts.checkpoint, artifacts.data, settings.shapes, max_sequence=settings.max_sequence
    )
    engine = PausedEngine(
        partial(load_engine, artifacts.engine, threads=record.threads),
        batches,
        record.processors,
        partial(check_logits, classes=classes_of(artifacts.checkpoint)),
    )
    machine = QuietMachine(record.processors, settings.quiet_seconds, settings.terminal)
    try:
        with Child(engine, limits) as worker:
            worker.ask("load")
            machine.wait()
            worker.ask("first_call", 0)
            record.warmup = worker.ask("warm_up", 0, None, WARM_UP_S, BLOCK_S)
            measure_calls(record, worker, machine)
    except WorkFailed as error:
        record.calls = []
        set_failure(record, error, record.variant, limits)
    record.lost_s, record.busiest = machine.lost_s, machine.busiest


def measure_calls(record: IdlenessRecord, worker: Child, machine: QuietMachine) -> None:
    """Add the calls after all scheduled pauses that end within `max_seconds`."""
    waiting = list(schedule(record.plan["pauses"]))
    windows = Windows(machine.processors, lambda: cpu_seconds([worker]))
    began, lost = time.monotonic(), machine.lost_s
    limit = record.plan["max_seconds"]
    with ProgressBar("pauses", sum(waiting)) as bar:
        for pause in waiting:
            record.spent_s = time.monotonic() - began - (machine.lost_s - lost)
            if record.spent_s + pause > limit:
                break
            record.calls += calls_after_pause(worker, pause, limit, windows, machine)
            bar.add(pause)
    record.spent_s = time.monotonic() - began - (machine.lost_s - lost)


def calls_after_pause(
    worker: Child, pause: float, limit: float, windows: Windows, machine: QuietMachine
) -> list[Facts]:
    """Return the call after a block and a pause.

    Calls that other load disturbed come before it: they are repeated while time may be lost. The
    pause is slept here: a parent that waits for an answer looks at its child twice a second.
    """
    calls: list[Facts] = []
    while True:
        began = time.monotonic()
        windows.open()
        block = worker.ask("back_to_back", 0, BLOCK_S, BLOCK_CALLS, limit)
        time.sleep(pause)
        call = worker.ask("next_call", 0)
        foreign = windows.close()
        calls.append({"pause_s": pause, **call, "block_s": block, "foreign_cores": foreign})
        if foreign <= MAX_FOREIGN_CORES or not machine.left_s:
            return calls
        machine.lose(time.monotonic() - began)
        machine.wait_for_idle_gap()
