"""Heats of a family: as many engines in the same rounds as fit in memory together."""

from collections.abc import Mapping, Sequence

from tightrope.jobs.child import Limits
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.family.at_shape import FamilyAtShape
from tightrope.measure.family.comparisons import Comparison
from tightrope.measure.race.at_shape import RaceAtShape
from tightrope.measure.race.candidates import Measured
from tightrope.measure.race.measure import free_bytes, memory_bytes, only, those_that_fit
from tightrope.measure.race.rounds import Race
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.family import FamilyRecord


def run_heats(
    record: FamilyRecord,
    timed: Mapping[str, TimedEngine],
    measured: Mapping[str, Measured],
    compared: Sequence[Comparison],
    machine: QuietMachine,
    limits: Limits,
) -> None:
    """Time the engines of all shapes, and add the heats to `record`.

    The root's engines, to which all others are compared, run in each heat.
    """
    chosen = [one.engines() for one in compared]
    names = list(dict.fromkeys(name for one in chosen for name in one.names))
    memory = {name: memory_bytes(measured[name], record.device) for name in names}
    always = {name for one in compared for name in one.references()}
    references = [name for name in names if name in always]
    groups = in_groups(
        references,
        [name for name in names if name not in always],
        memory,
        free_bytes(record.device, limits),
    )
    within = record.decision["equal_within"]
    for going in groups:
        races: list[RaceAtShape] = [
            FamilyAtShape(place, only(one, going), within) for place, one in enumerate(chosen)
        ]
        race = Race(
            {name: timed[name] for name in going},
            races,
            record.plan,
            seconds=record.decision["seconds"] / len(groups),
            threads=record.threads,
            limits=limits,
            machine=machine,
        )
        race.run()
        record.left_out |= race.died
        record.heats.append({"shapes": [one.recorded() for one in races]})


def in_groups(
    references: list[str], others: list[str], memory: Mapping[str, float], free: float
) -> list[list[str]]:
    """Return the engines of each heat: the references, and as many others as fit in memory."""
    groups, waiting = [], others
    while waiting:
        groups.append(those_that_fit(references, waiting, memory, free))
        waiting = [name for name in waiting if name not in groups[-1]]
    return groups or [references]
