"""Measure throughput point by point, without the points that cannot win."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import Child, Limits
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.throughput.grid import Division, divisions, shares, too_large
from tightrope.measure.throughput.instance import Instance
from tightrope.measure.throughput.instances import loop_all, warm_up, window_seconds
from tightrope.measure.throughput.skipping import (
    Broken,
    Measured,
    already_slower,
    broken_before,
    over_the_bound,
)
from tightrope.records.throughput import call_percentile, samples_per_second
from tightrope.statistics import SAMPLES_FOR_PERCENTILE

Facts = dict[str, Any]
# loads an engine with a number of threads, see `tightrope.engines.load.load_engine`
Load = Callable[..., Any]


@dataclass(kw_only=True)
class Sweep:
    """Throughput of the engine that `load` loads, over divisions of the cores and over batches.

    `plan` holds the `throughput` settings and `inputs` those of each of its `batches`;
    `check(outputs, inputs)` raises for outputs that cannot be right. `processors` are shared among
    the instances; `cores` is their number. `machine` holds the time that may be lost to other
    load. The instances share the memory limit of the job. `points` are those of the record so far,
    `failures` the errors of those that failed.
    """

    load: Load
    inputs: list[Arrays]
    plan: Facts
    processors: list[int]
    check: Callable[[Any, Arrays], None]
    machine: QuietMachine
    limits: Limits
    points: list[Facts] = field(default_factory=list)
    failures: list[WorkFailed] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def cores(self) -> int:
        """Return the number of cores that the instances share."""
        return len(self.processors)

    @property
    def spent_s(self) -> float:
        """Return the seconds since the start without those lost to other load."""
        return time.monotonic() - self.began - self.machine.lost_s

    def run(self) -> None:
        """Measure all points, or keep why one was not measured."""
        plan = self.plan
        found = divisions(plan["instances"], plan["threads"], cores=self.cores)
        with ProgressBar("throughput", len(found) * len(plan["batches"])) as bar:
            for division in found:
                done = len(self.points)
                self.measure_division(division)
                bar.after(done)(len(self.points) - done)

    def measure_division(self, division: Division) -> None:
        """Add the points of a division: load its instances once, for all batches."""
        batches = self.plan["batches"]
        if all(self.why_skipped(division, batch) for batch in batches):
            for batch in batches:
                self.skip(division, batch)
            return
        done = len(self.points)
        try:
            with ExitStack() as stack:
                workers = self.start(division, stack)
                for index, batch in enumerate(batches):
                    if not self.skip(division, batch):
                        self.points.append(self.measured(workers, index, division))
        except WorkFailed as error:
            self.failures.append(error)
            for batch in batches[len(self.points) - done :]:
                self.points.append(without_numbers(division, batch, error.reason, skipped=False))

    def start(self, division: Division, stack: ExitStack) -> list[Child]:
        """Start and load all instances, within the life of `stack`."""
        limits = replace(self.limits, memory_bytes=self.limits.memory_bytes / division.instances)
        workers = []
        for processors in shares(division, self.processors):
            engine = Instance(
                lambda: self.load(threads=division.threads), self.inputs, processors, self.check
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
        bound = self.plan["p99_ms"] is not None
        seconds = window_seconds(
            pace_s,
            division.instances,
            seconds=self.plan["seconds"],
            calls=SAMPLES_FOR_PERCENTILE[99] if bound else 0,
        )
        used = self.processors[: division.instances * division.threads]
        while True:
            facts = loop_all(workers, index, used, seconds)
            if facts["foreign_cores"] <= MAX_FOREIGN_CORES or not self.machine.left_s:
                break
            self.machine.lose(seconds)
            self.machine.wait()
        batch = self.plan["batches"][index]
        return {**without_numbers(division, batch, None, skipped=False), **facts}

    def skip(self, division: Division, batch: int) -> bool:
        """Add a point that cannot win with the reason; return whether it was added."""
        reason = self.why_skipped(division, batch)
        if reason is not None:
            self.points.append(without_numbers(division, batch, reason, skipped=True))
        return reason is not None

    def why_skipped(self, division: Division, batch: int) -> str | None:
        """Return why a point is not measured, None where it is. The first always is."""
        if reason := too_large(division, cores=self.cores):
            return reason
        instances, threads = division
        measured = [one for point in self.points if (one := undisturbed(point))]
        broken = [
            Broken(point["instances"], point["batch"], point["reason"])
            for point in self.points
            if point["reason"] and not point["skipped"]
        ]
        bound = self.plan["p99_ms"]
        bound_s = None if bound is None else bound / 1000
        out_of_time = self.points and self.spent_s > self.plan["max_seconds"]
        return (
            broken_before(instances, batch, broken)
            or over_the_bound(instances, threads, batch, measured, bound_s)
            or already_slower(instances, batch, measured)
            or (f"max_seconds = {self.plan['max_seconds']:g} were over" if out_of_time else None)
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
