"""Choose the structure of a pruned model that meets a target, and measure it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from tightrope.artifacts.content import write_artifact
from tightrope.jobs.child import Limits, run_or_stop
from tightrope.machine.cores import intra_op_threads
from tightrope.measure.run import TimingSettings
from tightrope.measure.structures import (
    ratio,
    read_ratios,
    rounds_that_count,
    table_of,
    timed_structures,
)
from tightrope.model.structures import Judged, Structure, Table, choose, kept_parts, with_all_heads
from tightrope.records.record import Round

SCHEMA = 1
# a measured speed-up may miss the asked one by this share; after so many tries the best is kept
TOLERANCE, TRIES = 0.05, 3
# from a structure to its rounds beside the model itself
Measure = Callable[[Structure], list[Round]]


@dataclass
class Choice:
    """A chosen structure: what the table predicts of it, and the rounds that measured it.

    Predicted and measured are seconds per call over the parent's.
    """

    structure: Structure
    predicted: float
    measured: float
    rounds: list[Round]

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        rounds = to_builtins(self.rounds)
        return {**to_builtins(self.structure), "predicted": self.predicted, "rounds": rounds}


def analysis(*files: Path | str, **options: Any) -> Any:
    """Return what `structure_models.analyse` does, which imports PyTorch."""
    from tightrope.measure.structure_models import analyse

    return analyse(*files, **options)


def choose_by_parameters(
    target: Path | str,
    analyse: Callable[[], Any],
    limit: int,
    *,
    limits: Limits,
    fewer_heads: bool = False,
) -> None:
    """Write the structure with at most `limit` parameters, see `write_structure`.

    `analyse` returns the Analysis of `structure_models`; it runs in a child. All attention heads
    are kept unless `fewer_heads` is true.
    """
    judged, parameters = run_or_stop("structures", analyse, limits=limits)
    table = parameters if fewer_heads else with_all_heads(parameters)
    structure, count = choose(judged, table, limit)
    facts = {
        "asked": {"parameters": limit},
        "reached": {"parameters": round(count)},
        "short_by": max(0.0, count / limit - 1),
    }
    write_structure(target, judged, structure, facts)


def choose_by_latency(
    target: Path | str,
    analyse: Callable[[], Any],
    speedup: float,
    settings: TimingSettings,
    *,
    table: Path | str,
    checkpoint: Path,
    timing: Path,
    host: str,
) -> None:
    """Write the structure that is `speedup` times as fast as its parent, see `write_structure`.

    `analyse` is as in `choose_by_parameters`, `table` are the rounds of `measure_structures` of the
    parent, whose manifest is `checkpoint`, and `timing` its split for timing. The chosen structure
    is measured beside the parent; where it misses the target by more than TOLERANCE the table is
    corrected by that, up to TRIES times.
    """
    judged = run_or_stop("structures", analyse, limits=settings.execution.limits).judged
    parent, ratios = read_ratios(table)
    costs = table_of(ratios, parent)
    with timed_structures(checkpoint, timing, settings, parent) as timed:
        tried = choices(judged, costs, 1 / speedup, lambda one: timed.rounds([one]))
    best = best_of(judged, tried, 1 / speedup)
    reached = 1 / best.measured
    facts = {
        "asked": {
            "speedup": speedup,
            "variant": settings.plan["variant"],
            "shape": settings.shapes[0],
        },
        "reached": {"speedup": reached, "predicted": 1 / best.predicted},
        "short_by": max(0.0, speedup / reached - 1),
    }
    measured = {**timed.facts(host), "tried": [one.document() for one in tried]}
    write_structure(target, judged, best.structure, facts, measured)


def choices(judged: Judged, table: Table, limit: float, measure: Measure) -> list[Choice]:
    """Return the structures that were chosen and measured until one is within TOLERANCE.

    A measured miss shifts the limit for the next choice by the error of the prediction.
    """
    tried: list[Choice] = []
    bound = limit
    while len(tried) < TRIES:
        structure, predicted = choose(judged, table, bound)
        if structure in [one.structure for one in tried]:
            break
        rounds = measure(structure)
        measured = ratio(rounds_that_count(rounds), 1)
        tried.append(Choice(structure, predicted, measured, rounds))
        print(f"{structure}: {1 / measured:.2f}x measured, {1 / predicted:.2f}x predicted")
        if abs(measured / limit - 1) <= TOLERANCE:
            break
        bound = limit * predicted / measured
    return tried


def best_of(judged: Judged, tried: list[Choice], limit: float) -> Choice:
    """Return the choice that keeps the most within the limit and TOLERANCE, or the fastest."""
    within = [one for one in tried if one.measured <= limit * (1 + TOLERANCE)]
    if within:
        return max(within, key=lambda one: judged.kept(one.structure))
    return min(tried, key=lambda one: one.measured)


def write_structure(
    target: Path | str,
    judged: Judged,
    structure: Structure,
    facts: dict[str, Any],
    measured: dict[str, Any] | None = None,
) -> None:
    """Write the structure, what is kept as `pruning.prune` takes it, and the importance.

    `facts` say what was `asked` and `reached`, and by which share that is `short_by`.
    """
    if facts["short_by"] > 0:
        print(f"prune: {facts['asked']} was asked, {facts['reached']} is reached by {structure}")
    write_artifact(
        target,
        {
            "schema": SCHEMA,
            "target": facts,
            "structure": to_builtins(structure),
            "prune": kept_parts(judged, structure),
            "importance": [[one._asdict() for one in blocks] for blocks in judged.stages],
            "narrowing": {str(width): lost for width, lost in judged.narrowing.items()},
            "fewer_heads": {str(heads): lost for heads, lost in (judged.fewer_heads or {}).items()},
            **(measured or {}),
        },
    )


def run_choice(job: Any) -> None:
    """Write the structure of a job, see `tightrope.jobs.job.current_job`."""
    settings, inputs = job.settings, dict(job.input.items())
    analyse = partial(
        analysis,
        inputs["source"],
        inputs["data"],
        names=settings.labels,
        sequence=settings.max_sequence,
        seed=settings.seed,
        threads=intra_op_threads(settings.threads),
    )
    target = job.output.structure
    if settings.engine is None:
        limits = Limits.of(job)
        limit, heads = settings.asked["parameters"], settings.asked.get("heads", False)
        return choose_by_parameters(target, analyse, limit, limits=limits, fewer_heads=heads)
    choose_by_latency(
        target,
        analyse,
        settings.asked["speedup"],
        TimingSettings.of(job, settings.engine, [settings.engine["shape"]]),
        table=inputs["table"],
        checkpoint=Path(inputs["checkpoint"]),
        timing=Path(inputs["timing"]),
        host=settings.host,
    )
