"""Race the finalists of a model on one device in one job, and record their times."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from msgspec import convert

from tightrope.artifacts.files import sha256
from tightrope.decide.finalists import (
    Candidate,
    Finalists,
    Measured,
    RaceSettings,
    candidates,
    finalists,
    racing_for,
    read_measured,
)
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, set_failure
from tightrope.machine.cores import pinned_processors
from tightrope.machine.interference import QuietMachine
from tightrope.machine.nvml import free_device_bytes
from tightrope.measure.race_rounds import Race, RaceAtShape
from tightrope.measure.run import TimingSettings, batches_of
from tightrope.measure.timed_engine import TimedEngine, timed_engine
from tightrope.records.race import Heat, RacedShape, RaceRecord
from tightrope.records.record import RACE

# share of the free memory that the engines may use together
MEMORY_SHARE = 0.9
# GPU memory of the CUDA context and libraries, per process
CONTEXT_BYTES = 600e6


def race_finalists(
    target: Path | str,
    settings: TimingSettings,
    race: RaceSettings,
    *,
    model: str,
    device: str,
    engines: Sequence[Path | str],
    latencies: Sequence[Path | str],
    accuracies: Sequence[Path | str],
    checkpoint: Path | str,
    data: Path | str,
) -> None:
    """Write the RaceRecord of `model` on `device`; the files of its variants are in one order."""
    began = time.monotonic()
    measured, _ = read_measured(engines, latencies, accuracies)
    record = RaceRecord(
        **facts_of_race(settings, race, device),
        model=model,
        variant=RACE,
        engines_sha256={name: sha256(one.engine) for name, one in measured.items()},
    )
    chosen = chosen_finalists(measured, settings, race)
    machine = settings.machine(record.processors)
    if any(len(one.names) > 1 for one in chosen):
        timed = timed_engines(checkpoint, data, measured, settings)
        run_heats(record, timed, measured, chosen, machine, settings)
    else:
        races = races_of(settings, chosen, record)
        record.heats = [Heat(shapes=[one.shape for one in races])]
    record.seconds = time.monotonic() - began
    record.lost_s, record.busiest = machine.lost_s, machine.busiest
    record.write(target)


def facts_of_race(settings: TimingSettings, race: RaceSettings, device: str) -> dict[str, Any]:
    """Return what the record of a race on `device` holds besides its engines."""
    execution = settings.execution
    return {
        "device": device,
        "host": execution.host(),
        "libraries": execution.libraries,
        "threads": execution.threads,
        "plan": settings.plan,
        "decision": race.decision,
        "processors": pinned_processors(execution.threads),
    }


def chosen_finalists(
    measured: Mapping[str, Measured], settings: TimingSettings, race: RaceSettings
) -> list[Finalists]:
    """Return the finalists of each shape, with those for the goal at its shape."""
    goal, found = race.goal, []
    for place, shape in enumerate(settings.shapes):
        wanted: list[Candidate] = []
        if goal and goal["shape"] in (None, shape):
            points = goal["accuracy_points"]
            budget = race.budget if points is None else points / 100
            judged = candidates(measured, replace(race, budget=budget), place)
            wanted = racing_for(goal, judged)
        found.append(finalists(candidates(measured, race, place), wanted))
    return found


def timed_engines(
    checkpoint: Path | str,
    data: Path | str,
    measured: Mapping[str, Measured],
    settings: TimingSettings,
) -> dict[str, TimedEngine]:
    """Return the engine of each variant of a model with its inputs, not yet loaded."""
    batches, threads = batches_of(settings, checkpoint, data), settings.execution.threads
    return {
        name: timed_engine(one.engine, checkpoint, batches, threads=threads)
        for name, one in measured.items()
    }


def run_heats(
    record: RaceRecord,
    timed: Mapping[str, TimedEngine],
    measured: Mapping[str, Measured],
    chosen: list[Finalists],
    machine: QuietMachine,
    settings: TimingSettings,
    *,
    always: Sequence[str] = (),
    kind: type[RaceAtShape] = RaceAtShape,
) -> None:
    """Race the finalists `chosen` per shape, in heats of as many as fit in memory together.

    The engines `always` run in each heat, else the remaining contenders enter the next one.
    """
    limits = settings.execution.limits
    if limits.ended is not None:
        set_failure(record, WorkFailed(limits.ended, True), record.variant, limits)
    names = list(dict.fromkeys(name for one in chosen for name in one.names))
    memory = {name: memory_bytes(measured[name], record.device) for name in names}
    free = free_bytes(record.device, limits)
    still, waiting = [*always], [name for name in names if name not in always]
    heats = fewest_heats(still, waiting, memory, free)
    seconds = record.decision["seconds"] / len(heats)
    while waiting or not record.heats:
        going = those_that_fit(still, waiting, memory, free)
        waiting = [name for name in waiting if name not in going]
        if waiting:
            words = f"{len(going)} finalists fit in memory together, {len(waiting)} more follow"
            print(f"{record.model}: {words}", file=machine.terminal, flush=True)
        races = races_of(settings, [only(one, going) for one in chosen], record, kind)
        race = Race(
            {name: timed[name] for name in going},
            races,
            record.plan,
            seconds=seconds,
            limits=limits,
            machine=machine,
        )
        race.run()
        record.left_out |= race.died
        record.heats = [*record.heats, Heat(shapes=[one.shape for one in races])]
        left = always or dict.fromkeys(name for one in races for name in one.contenders())
        still = [name for name in left if name not in record.left_out]


def races_of(
    settings: TimingSettings,
    chosen: list[Finalists],
    record: RaceRecord,
    kind: type[RaceAtShape] = RaceAtShape,
) -> list[RaceAtShape]:
    """Return a new race per shape."""
    shapes = zip(convert(settings.shapes, list[RacedShape]), chosen, strict=True)
    known: Any = (record.decision["equal_within"], record.plan, record.threads)
    return [kind(place, *one, *known) for place, one in enumerate(shapes)]


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
    going = [*still, *waiting[:1]]
    for name in waiting[1:]:
        if sum(memory[one] for one in [*going, name]) <= free:
            going.append(name)
    return going


def fewest_heats(
    always: list[str], waiting: list[str], memory: Mapping[str, float], free: float
) -> list[list[str]]:
    """Return the engines of each heat if of those that enter later ones only `always` stay."""
    heats = [those_that_fit(always, waiting, memory, free)]
    while left := [name for name in waiting if not any(name in heat for heat in heats)]:
        heats.append(those_that_fit(always, left, memory, free))
    return heats


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
