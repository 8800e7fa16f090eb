"""Measure the throughput of a variant on this machine, by instances, threads and batch."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.texts import require_sequence
from tightrope.jobs.child import Child, Limits, set_failure
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.cores import pinned_processors
from tightrope.machine.foreign_load import counters, settle
from tightrope.machine.interference import MAX_FOREIGN_CORES, Windows
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.blocks import GRACE_SECONDS, cpu_seconds
from tightrope.measure.run import TimingSettings, batches_of, can_be_timed, facts_of_run
from tightrope.measure.throughput_points import (
    Division,
    Measured,
    already_slower,
    broken_before,
    divisions,
    over_the_bound,
    shares,
    too_large,
)
from tightrope.measure.timed_engine import TimedEngine, timed_engine
from tightrope.measure.timing import closed_loop
from tightrope.records.throughput import ThroughputRecord, call_percentile, samples_per_second
from tightrope.signature import IMAGE
from tightrope.statistics import SAMPLES_FOR_PERCENTILE

Facts = dict[str, Any]
BLOCKS = 10
# calls of each instance in a block, also where they take longer than `seconds` allows
CALLS_PER_BLOCK = 2
# until the window begins: the instances have got the request by then and are at work
LEAD_SECONDS = 0.2
WARM_UP_SECONDS = 0.5
# of the warm-up, whose medians it compares
WARM_UP_WINDOW = 0.05


class Instance(TimedEngine):
    """A timed engine that also answers `pace` and `loop`."""

    def pace(self, index: int) -> float:
        """Return the median seconds of the last calls of the warm-up."""
        return self.typical_s[index]

    def loop(self, index: int, start: float, seconds: float, blocks: int) -> dict[str, Any]:
        """Return `blocks_s` of `closed_loop`, and `waited_s`: seconds without a processor.

        `waited_s` is that of all threads of this process, and None where the kernel does not
        report it; `late_s` is by how much the first call began after the window.
        """
        late = max(0.0, time.perf_counter() - start)
        before = counters()
        found = closed_loop(
            self.run, self.inputs[index], start=start, seconds=seconds, blocks=blocks
        )
        waited = counters().since(before).waited_s
        settle()
        return {"blocks_s": found, "waited_s": waited, "late_s": late}


def ask_all(workers: Sequence[Child], *arguments: Any, **limit: float) -> list[Any]:
    """Return the answers of all workers, which work on the request at the same time.

    Waits for all of them; raises as `Child.ask` does, for the first that fails.
    """
    with ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(lambda worker: worker.ask(*arguments, **limit), workers))


def warm_up(workers: Sequence[Child], index: int) -> float:
    """Make the first calls and warm up, all at the same time; return the seconds of a call.

    That of the slowest instance, with all of them running. Raises as `Child.ask` does, also where
    the outputs of an engine cannot be right.
    """
    ask_all(workers, "first_call", index)
    ask_all(workers, "warm_up", index, None, WARM_UP_SECONDS, WARM_UP_WINDOW)
    return float(max(ask_all(workers, "pace", index)))


def window_seconds(pace_s: float, instances: int, *, seconds: float, calls: int) -> float:
    """Return how long to measure calls of `pace_s` seconds each: `seconds`, or longer.

    Longer where each block would have fewer than `CALLS_PER_BLOCK`, or all instances together
    fewer than `calls`.
    """
    return max(seconds, BLOCKS * CALLS_PER_BLOCK * pace_s, calls * pace_s / instances)


def loop_all(
    workers: list[Child], index: int, processors: list[int], seconds: float
) -> dict[str, Any]:
    """Return the fields of a point from `seconds` on, see ThroughputRecord.

    All instances call in a closed loop from before the window of `seconds` begins until it has
    ended. Raises as `Child.ask` does.
    """
    windows = Windows(processors, lambda: cpu_seconds(workers))
    start = time.perf_counter() + LEAD_SECONDS
    limit = LEAD_SECONDS + 2 * seconds + GRACE_SECONDS
    loops = ask_all(workers, "loop", index, start, seconds, BLOCKS, seconds=limit)
    foreign = windows.close()
    return {
        "seconds": seconds,
        "blocks_s": [
            [[round(call, 7) for call in block] for block in one["blocks_s"]] for one in loops
        ],
        "waited_s": [one["waited_s"] for one in loops],
        "late_s": [one["late_s"] for one in loops],
        "foreign_cores": foreign,
        "peak_rss_bytes": sum(ask_all(workers, "peak_rss_bytes")),
    }


@dataclass
class Sweep:
    """Throughput of an engine, over divisions of the cores and over batches.

    `inputs` are those of each of the batches. The points are added to `record`; the instances share
    its processors, and the memory limit of the job. `machine` holds the time that may be lost to
    other load. `failures` are the errors of the points that failed.
    """

    record: ThroughputRecord
    artifacts: Artifacts
    inputs: list[Arrays]
    limits: Limits
    machine: QuietMachine
    failures: list[WorkFailed] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def spent_s(self) -> float:
        """Return the seconds since the start without those lost to other load."""
        return time.monotonic() - self.began - self.machine.lost_s

    def run(self) -> None:
        """Measure all points, or keep why one was not measured."""
        plan, points = self.record.plan, self.record.points
        found = divisions(plan["instances"], plan["threads"], cores=self.record.cores)
        with ProgressBar("throughput", len(found) * len(plan["batches"])) as bar:
            for division in found:
                done = len(points)
                self.measure_division(division)
                bar.add(len(points) - done)

    def measure_division(self, division: Division) -> None:
        """Add the points of a division: load its instances once, for all batches."""
        batches, points = self.record.plan["batches"], self.record.points
        if all(self.why_skipped(division, batch) for batch in batches):
            for batch in batches:
                self.skip(division, batch)
            return
        done = len(points)
        try:
            with ExitStack() as stack:
                workers = self.start(division, stack)
                for index, batch in enumerate(batches):
                    if not self.skip(division, batch):
                        points.append(self.measured(workers, index, division))
        except WorkFailed as error:
            self.failures.append(error)
            for batch in batches[len(points) - done :]:
                points.append(without_numbers(division, batch, error.reason, skipped=False))

    def start(self, division: Division, stack: ExitStack) -> list[Child]:
        """Start and load all instances, within the life of `stack`."""
        limits = replace(self.limits, memory_bytes=self.limits.memory_bytes / division.instances)
        files = self.artifacts.engine, self.artifacts.checkpoint
        workers = []
        for processors in shares(division, self.record.processors):
            engine = timed_engine(
                *files, self.inputs, threads=division.threads, on=processors, kind=Instance
            )
            workers.append(stack.enter_context(Child(engine, limits, began=self.began)))
        # one after the other: loading uses more memory and threads than running
        for worker in workers:
            worker.ask("load")
        return workers

    def measured(self, workers: list[Child], index: int, division: Division) -> Facts:
        """Return a point; one that other load disturbed is repeated while time may be lost.

        Raises WorkFailed where an instance fails.
        """
        self.machine.wait()
        pace_s = warm_up(workers, index)
        bound = self.record.plan["p99_ms"] is not None
        seconds = window_seconds(
            pace_s,
            division.instances,
            seconds=self.record.plan["seconds"],
            calls=SAMPLES_FOR_PERCENTILE[99] if bound else 0,
        )
        used = self.record.processors[: division.instances * division.threads]
        while True:
            facts = loop_all(workers, index, used, seconds)
            if facts["foreign_cores"] <= MAX_FOREIGN_CORES or not self.machine.left_s:
                break
            self.machine.lose(seconds)
            self.machine.wait()
        batch = self.record.plan["batches"][index]
        return {**without_numbers(division, batch, None, skipped=False), **facts}

    def skip(self, division: Division, batch: int) -> bool:
        """Add a point that cannot win with the reason; return whether it was added."""
        reason = self.why_skipped(division, batch)
        if reason is not None:
            self.record.points.append(without_numbers(division, batch, reason, skipped=True))
        return reason is not None

    def why_skipped(self, division: Division, batch: int) -> str | None:
        """Return why a point is not measured, None where it is. The first always is."""
        plan, points = self.record.plan, self.record.points
        if reason := too_large(division, cores=self.record.cores):
            return reason
        instances, threads = division
        measured = [one for point in points if (one := undisturbed(point))]
        bound_s = None if plan["p99_ms"] is None else plan["p99_ms"] / 1000
        out_of_time = points and self.spent_s > plan["max_seconds"]
        return (
            broken_before(instances, batch, points)
            or over_the_bound(instances, threads, batch, measured, bound_s)
            or already_slower(instances, batch, measured)
            or (f"max_seconds = {plan['max_seconds']:g} were over" if out_of_time else None)
        )


def without_numbers(division: Division, batch: int, reason: str | None, *, skipped: bool) -> Facts:
    """Return a point that was skipped or that failed, or the first fields of another."""
    instances, threads = division
    return {
        "instances": instances,
        "threads": threads,
        "batch": batch,
        "skipped": skipped,
        "reason": reason,
    }


def undisturbed(point: Facts) -> Measured | None:
    """Return what a point says, None without numbers or where other load disturbed it."""
    if point["reason"] is not None or point["foreign_cores"] > MAX_FOREIGN_CORES:
        return None
    rate = samples_per_second(point)
    if rate is None:
        return None
    percentiles = call_percentile(point, 50), call_percentile(point, 99)
    return Measured(point["instances"], point["threads"], point["batch"], rate, *percentiles)


def measure_throughput(
    artifacts: Artifacts, target: Path | str, settings: TimingSettings, *, model: str, variant: str
) -> None:
    """Write the ThroughputRecord of `variant`, also if it cannot run.

    `settings.plan` holds `batches`, `sequence` (of texts), `instances` and `threads` (a list, or
    `auto`, see `divisions`), `p99_ms` (None without a bound), `seconds` of a point and
    `max_seconds` of all.

    It has failed where no point could be measured; a transient failure then raises TightropeError
    unless this is the last attempt. Raises TightropeError for more tokens than the model takes.
    """
    execution = settings.execution
    processors = pinned_processors(execution.threads)[: execution.threads]
    record = ThroughputRecord(
        **facts_of_run(artifacts, execution, model=model, variant=variant),
        plan=settings.plan,
        processors=processors,
        cores=len(processors),
    )
    size = size_of(artifacts.checkpoint, settings.plan)
    record.sequence = size.get("sequence")
    record.height, record.width = size.get("height"), size.get("width")
    if can_be_timed(record, artifacts.engine):
        limits, machine = execution.limits, settings.machine(processors)
        shapes = [{"batch": batch, **size} for batch in settings.plan["batches"]]
        inputs = batches_of(replace(settings, shapes=shapes), artifacts.checkpoint, artifacts.data)
        sweep = Sweep(record, artifacts, inputs, limits, machine)
        sweep.run()
        record.spent_s, record.lost_s = sweep.spent_s, machine.lost_s
        record.busiest = machine.busiest
        if sweep.failures and all(point["reason"] is not None for point in record.points):
            set_failure(record, sweep.failures[0], variant, limits)
    record.write(target)


def size_of(checkpoint: Path, plan: dict[str, Any]) -> dict[str, int]:
    """Return the size of each input: `sequence` of a text, `height` and `width` of an image.

    Raises TightropeError where the model takes fewer tokens.
    """
    manifest = read_manifest(checkpoint, CheckpointManifest)
    if manifest["task"] == IMAGE:
        return {"height": manifest["height"], "width": manifest["width"]}
    longest, sequence = manifest["max_sequence"], plan["sequence"]
    require_sequence(manifest["source"], longest, sequence, key="throughput.sequence")
    return {"sequence": sequence}
