"""Race the finalists of a model on one device in one job, and record their times."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self, TextIO

import psutil

from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import classes_of
from tightrope.engines.load import load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import Limits, set_failure
from tightrope.machine.cores import pinned_processors
from tightrope.machine.nvml import free_device_bytes
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.logits import check_logits
from tightrope.measure.race.at_shape import RaceAtShape
from tightrope.measure.race.candidates import Measured, candidates, read_measured
from tightrope.measure.race.goal import racing_for
from tightrope.measure.race.rounds import Race
from tightrope.measure.settings import TimingSettings
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.finalists import Candidate, Finalists, finalists
from tightrope.records.race import RaceRecord
from tightrope.records.record import RACE

# share of the free memory that the engines may use together
MEMORY_SHARE = 0.9
# GPU memory of the CUDA context and libraries, per process
CONTEXT_BYTES = 600e6


@dataclass(frozen=True, kw_only=True)
class Entrants:
    """Files of the variants of a model on one device, in the same order, and of their inputs.

    `logits` are read with the accuracies.
    """

    engines: Sequence[Path | str]
    latencies: Sequence[Path | str]
    accuracies: Sequence[Path | str]
    checkpoint: Path | str
    data: Path | str
    logits: Sequence[Path | str] = ()


@dataclass(frozen=True, kw_only=True)
class RaceSettings:
    """What decides who takes part in a race, and when it ends.

    `baseline` is the name of the baseline, `decision` holds the settings of that name, `budget` is
    the fraction by which accuracy may fall. With `accept_disturbed`, variants with disturbed
    latencies may take part. `goal` has what it minimizes (`time`, `memory` or `energy`), its
    `shape` (None is all) and its bounds `p99_ms`, `memory_mb` and `accuracy_points`, each None
    where it has none.
    """

    baseline: str
    decision: dict[str, Any]
    budget: float
    accept_disturbed: bool
    goal: dict[str, Any] | None = None

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return the settings of a job, see `tightrope.jobs.job.current_job`."""
        params = job.params
        return cls(
            baseline=params.baseline,
            decision=params.decision,
            budget=params.budget_points / 100,
            accept_disturbed=params.accept_disturbed,
            goal=dict(params.items()).get("goal"),
        )


def race_finalists(
    entrants: Entrants,
    target: Path | str,
    settings: TimingSettings,
    race: RaceSettings,
    *,
    model: str,
    device: str,
) -> None:
    """Write the RaceRecord of `model` on `device`."""
    began = time.monotonic()
    measured = read_measured(entrants.engines, entrants.latencies, entrants.accuracies)
    execution = settings.execution
    record = RaceRecord(
        model=model,
        variant=RACE,
        device=device,
        host=execution.host(),
        libraries=execution.libraries,
        threads=execution.threads,
        plan=settings.plan,
        decision=race.decision,
        processors=pinned_processors(execution.threads),
        engines_sha256={name: sha256(one.engine) for name, one in measured.items()},
    )
    chosen = chosen_finalists(measured, settings, race)
    machine = QuietMachine(record.processors, settings.quiet_seconds, settings.terminal)
    if any(len(one.names) > 1 for one in chosen):
        heats = Heats(record, measured, execution.limits, machine, settings.terminal)
        heats.run(timed_engines(entrants, measured, record, settings), chosen)
    else:
        record.heats = [{"shapes": [one.recorded() for one in races_of(chosen, race.decision)]}]
    for heat in record.heats:
        pairs = zip(settings.shapes, heat["shapes"], strict=True)
        heat["shapes"] = [{**shape, **one} for shape, one in pairs]
    record.seconds = time.monotonic() - began
    record.lost_s, record.busiest = machine.lost_s, machine.busiest
    record.write(target)


def chosen_finalists(
    measured: Mapping[str, Measured], settings: TimingSettings, race: RaceSettings
) -> list[Finalists]:
    """Return the finalists of each shape, with those for the goal at its shape."""
    known = partial(candidates, measured, race.baseline)
    goal, found = race.goal, []
    for place, shape in enumerate(settings.shapes):
        wanted: list[Candidate] = []
        if goal and goal["shape"] in (None, shape):
            points = goal["accuracy_points"]
            budget = race.budget if points is None else points / 100
            judged = known(budget, race.accept_disturbed, place)
            wanted = racing_for(goal, judged, measured, place)
        found.append(finalists(known(race.budget, race.accept_disturbed, place), wanted))
    return found


def timed_engines(
    entrants: Entrants,
    measured: Mapping[str, Measured],
    record: RaceRecord,
    settings: TimingSettings,
) -> dict[str, TimedEngine]:
    """Return the engine of each variant with its inputs, not yet loaded."""
    batches = timing_batches(
        entrants.checkpoint, entrants.data, settings.shapes, max_sequence=settings.max_sequence
    )
    check = partial(check_logits, classes=classes_of(entrants.checkpoint))
    return {
        name: TimedEngine(
            partial(load_engine, one.engine, threads=record.threads),
            batches,
            record.processors,
            check,
            device=record.device,
        )
        for name, one in measured.items()
    }


class Heats(NamedTuple):
    """Heats of as many finalists as fit in memory together, written into `record`."""

    record: RaceRecord
    measured: Mapping[str, Measured]
    limits: Limits
    machine: QuietMachine
    terminal: TextIO

    def run(self, timed: Mapping[str, TimedEngine], chosen: list[Finalists]) -> None:
        """Race the finalists `chosen` per shape; remaining contenders enter the next heat."""
        record = self.record
        if self.limits.ended is not None:
            set_failure(record, WorkFailed(self.limits.ended, True), record.variant, self.limits)
        waiting = list(dict.fromkeys(name for one in chosen for name in one.names))
        memory = {name: memory_bytes(self.measured[name], record.device) for name in waiting}
        free = free_bytes(record.device, self.limits)
        parts = -(-sum(memory[name] for name in waiting) // free)
        seconds = record.decision["seconds"] / max(1, parts)
        still: list[str] = []
        while waiting:
            going = those_that_fit(still, waiting, memory, free)
            waiting = [name for name in waiting if name not in going]
            if waiting:
                self.say(len(going), len(waiting))
            races = races_of([only(one, going) for one in chosen], record.decision)
            race = Race(
                {name: timed[name] for name in going},
                races,
                record.plan,
                seconds=seconds,
                threads=record.threads,
                limits=self.limits,
                machine=self.machine,
            )
            race.run()
            record.left_out |= race.died
            record.heats.append({"shapes": [one.recorded() for one in races]})
            left = [name for one in races for name in one.contenders()]
            still = list(dict.fromkeys(left))

    def say(self, going: int, waiting: int) -> None:
        """Report on the terminal that not all finalists fit in memory."""
        words = f"{going} finalists fit in memory together, {waiting} more follow"
        print(f"{self.record.model}: {words}", file=self.terminal, flush=True)


def races_of(chosen: list[Finalists], decision: Mapping[str, Any]) -> list[RaceAtShape]:
    """Return a new race per shape."""
    return [RaceAtShape(place, one, decision["equal_within"]) for place, one in enumerate(chosen)]


def only(chosen: Finalists, names: Iterable[str]) -> Finalists:
    """Return the finalists restricted to these names."""
    among = set(names)
    return Finalists(
        [name for name in chosen.contenders if name in among],
        [pair for pair in chosen.pairs if set(pair) <= among],
    )


def those_that_fit(
    still: list[str], waiting: list[str], memory: Mapping[str, float], free: float
) -> list[str]:
    """Return `still`, and those of `waiting` that fit in memory as well, at least the first."""
    going = [*still, waiting[0]]
    for name in waiting[1:]:
        if sum(memory[one] for one in [*going, name]) <= free:
            going.append(name)
    return going


def memory_bytes(one: Measured, device: str) -> float:
    """Return the estimated memory of an engine: on a GPU device memory, else host memory."""
    if device == "cuda":
        return CONTEXT_BYTES + 2 * one.size_bytes
    return float(one.latency.peak_rss_bytes or one.size_bytes)


def free_bytes(device: str, limits: Limits) -> float:
    """Return the memory that the engines of a heat may use together."""
    if device == "cuda" and (free := free_device_bytes()) is not None:
        return MEMORY_SHARE * free
    return min(limits.memory_bytes, MEMORY_SHARE * psutil.virtual_memory().available)
