"""Measure how long the first call of a variant takes after pauses of several lengths."""

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tightrope.artifacts.paths import Artifacts
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Child, set_failure
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.cores import pinned_processors
from tightrope.machine.interference import MAX_FOREIGN_CORES, Windows
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.blocks import cpu_seconds
from tightrope.measure.run import TimingSettings, batches_of, can_be_timed, facts_of_run
from tightrope.measure.timed_engine import TimedEngine, timed_engine
from tightrope.measure.timing import timed_calls
from tightrope.records.idleness import IdlenessRecord

# calls after a pause of a second; the number falls with the cube root of the pause
CALLS = 15
FEWEST, MOST = 7, 30
WARM_UP_S = 1.0
# the block before each pause: long enough for a stable median and for the clock to rise
BLOCK_S, BLOCK_CALLS = 0.1, 3
Facts = dict[str, Any]


def calls_after(pause_s: float) -> int:
    """Return how many calls follow a pause of this length: 30 of 0.1 s, 15 of 1 s, 7 of 10 s."""
    return max(FEWEST, min(MOST, round(CALLS / pause_s ** (1 / 3))))


def schedule(pauses_s: Sequence[float]) -> Iterator[float]:
    """Yield the pauses in rounds; the lengths of a round are in an order drawn from a fixed seed.

    A longer pause is in fewer of the rounds, at equal distances.
    """
    counts = {pause: calls_after(pause) for pause in pauses_s}
    rounds, order = max(counts.values()), random.Random(0)
    for number in range(rounds):
        due = [
            pause
            for pause, count in counts.items()
            if (number + 1) * count // rounds > number * count // rounds
        ]
        yield from order.sample(due, len(due))


class PausedEngine(TimedEngine):
    """A timed engine that also answers `back_to_back` and `next_call`.

    It sleeps on its pipe during a pause, as a server that waits for a request.
    """

    ended_s = 0.0

    def back_to_back(self, index: int, seconds: float, calls: int, limit: float) -> list[float]:
        """Return the seconds per call of at least `calls` over at least `seconds`.

        After about `limit` seconds it ends anyway. The pause begins when it ends.
        """
        samples = timed_calls(
            self.run, self.inputs[index], seconds=seconds, calls=calls, limit_seconds=limit
        )
        self.ended_s = time.perf_counter()
        return samples

    def next_call(self, index: int) -> dict[str, float]:
        """Return `call_s`, the seconds of a single call, and `paused_s` since the last block."""
        paused = time.perf_counter() - self.ended_s
        (seconds,) = timed_calls(
            self.run, self.inputs[index], seconds=0.0, calls=1, limit_seconds=0.0
        )
        return {"paused_s": paused, "call_s": seconds}


def measure_idleness(
    artifacts: Artifacts, target: Path | str, settings: TimingSettings, *, model: str, variant: str
) -> None:
    """Write the IdlenessRecord of `variant` at the only shape of `settings`, also if it cannot run.

    `settings.plan` holds the `idleness` settings. A transient failure raises TightropeError unless
    this is the last attempt.
    """
    execution = settings.execution
    (shape,) = settings.shapes
    record = IdlenessRecord(
        **facts_of_run(artifacts, execution, model=model, variant=variant),
        threads=execution.threads,
        processors=pinned_processors(execution.threads),
        plan=settings.plan,
        shape=shape,
    )
    if can_be_timed(record, artifacts.engine):
        fill_in_calls(record, artifacts, settings)
    record.write(target)


def fill_in_calls(record: IdlenessRecord, artifacts: Artifacts, settings: TimingSettings) -> None:
    """Fill in `record` from the calls, or from their failure."""
    limits = settings.execution.limits
    engine = timed_engine(
        artifacts.engine,
        artifacts.checkpoint,
        batches_of(settings, artifacts.checkpoint, artifacts.data),
        threads=record.threads,
        kind=PausedEngine,
    )
    machine = settings.machine(record.processors)
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
