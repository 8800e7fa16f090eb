"""Search for the smallest model within an accuracy budget, rung by rung."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.artifacts.files import digest, sha256
from tightrope.errors import ArtifactError, WorkFailed
from tightrope.jobs.execution import Execution
from tightrope.machine.cores import pinned_processors
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.compression.ladder import LADDER, Asked, Ending, Rung, chosen, ending
from tightrope.measure.compression.rung import (
    Files,
    Recipe,
    Rounds,
    Workshop,
    parameters_of,
)
from tightrope.measure.settings import TimingSettings
from tightrope.measure.structures.build import in_child
from tightrope.measure.structures.choose import Analysed
from tightrope.measure.structures.measure import read_ratios, rounds_that_count
from tightrope.measure.structures.points import table_of
from tightrope.model.structures import Structure, choose, kept_parts
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.paired_accuracy import change
from tightrope.records.rounds import blocks_of
from tightrope.statistics import Interval, speedup

SCHEMA = 1


class State(TypedDict):
    """The rungs that a search with this key has measured."""

    key: str
    rungs: list[Rung]


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search for `model`; rungs that were measured are kept in the file `state`.

    `table` are the rounds of `measure_structures` of the parent, `analysed` what judges the
    importance of its blocks, and `provenance` identifies code and libraries.
    """

    model: str
    files: Files
    recipe: Recipe
    asked: Asked
    settings: TimingSettings
    analysed: Analysed
    table: Path
    work: Path
    provenance: Any

    def run(self, target: Path | str) -> None:
        """Write what `document` returns to `target`; a search that was killed goes on."""
        rungs, ended = self.read_state(), None
        if not rungs or (ended := ending(rungs, self.asked)) is None:
            rungs, ended = self.climb(rungs)
        write_artifact(target, document(rungs, self.asked, ended, self.recipe, self.settings))

    def climb(self, rungs: list[Rung]) -> tuple[list[Rung], Ending | None]:
        """Measure rungs until the search ends; return all of them and why it ends."""
        analysis = in_child(self.analysed, self.settings.execution.limits)
        parent, ratios = read_ratios(self.table)
        costs = table_of(ratios, parent)
        baseline = self.workshop(0.0).answers(self.files.baseline, self.files.parent, self.model)
        ended: Ending | None = None
        while ended is None:
            factor = LADDER[len(rungs)]
            structure, _ = choose(analysis.judged, costs, 1 / factor)
            prune = {} if structure == parent else kept_parts(analysis.judged, structure)
            rungs.append(self.measured(factor, structure, prune, baseline))
            self.write_state(rungs)
            ended = ending(rungs, self.asked)
        return rungs, ended

    def workshop(self, factor: float) -> Workshop:
        """Return the workshop of a rung."""
        settings = self.settings
        processors = pinned_processors(settings.execution.threads)
        machine = QuietMachine(processors, settings.quiet_seconds, settings.terminal)
        folder = self.work / f"{factor:g}x"
        folder.mkdir(parents=True, exist_ok=True)
        return Workshop(self.files, self.recipe, settings, machine, folder)

    def measured(
        self, factor: float, structure: Structure, prune: dict[str, Any], baseline: AccuracyRecord
    ) -> Rung:
        """Return a rung, with the reason where it cannot be trained, built or run."""
        began, shop = time.monotonic(), self.workshop(factor)
        print(f"{self.model}: {factor:g}x: {structure}")
        rung = unmeasured(factor, structure, prune)
        try:
            checkpoint = shop.train(prune)
            rung["parameters"] = parameters_of(checkpoint)
            engine = shop.build(checkpoint)
            answers = shop.answers(engine, checkpoint, self.model)
            judged = change(answers.right, baseline.right, self.asked.budget)
            ratio = over_baseline(shop.rounds(engine, checkpoint))
            rung["delta"] = judged["delta"]
            rung["delta_low"], rung["delta_high"] = judged["delta_low"], judged["delta_high"]
            rung["speedup"], rung["speedup_low"], rung["speedup_high"] = ratio
        except WorkFailed as error:
            rung["reason"] = error.reason
        rung["seconds"] = time.monotonic() - began
        shop.clear()
        return rung

    def key(self) -> str:
        """Return what the kept rungs depend on: all but what ends the search."""
        files = [sha256(file) for file in vars(self.files).values() if file is not None]
        training = {**self.recipe.training, "provenance": self.provenance}
        recipe = {**vars(self.recipe), "options": dict(self.recipe.options), "training": training}
        return digest([files, sha256(self.table), recipe, self.settings.shapes])

    def read_state(self) -> list[Rung]:
        """Return the rungs that were measured, none where they are of another search."""
        try:
            state = read_artifact(self.work / "rungs.json", State)
            return list(state["rungs"]) if state["key"] == self.key() else []
        except ArtifactError:
            return []

    def write_state(self, rungs: list[Rung]) -> None:
        """Keep the rungs that were measured: one that failed is tried again."""
        measured = [one for one in rungs if one["reason"] is None]
        write_artifact(self.work / "rungs.json", {"key": self.key(), "rungs": measured})


def over_baseline(rounds: Rounds) -> Interval:
    """Return the time of the first engine of the rounds over that of the second."""
    counted = rounds_that_count(rounds)
    return speedup(blocks_of(counted, 1), blocks_of(counted, 0), loads=1)


def unmeasured(factor: float, structure: Structure, prune: dict[str, Any]) -> Rung:
    """Return a rung before it is measured."""
    return {
        "factor": factor,
        "structure": structure.document(),
        "prune": prune,
        "parameters": None,
        "delta": None,
        "delta_low": None,
        "delta_high": None,
        "speedup": None,
        "speedup_low": None,
        "speedup_high": None,
        "seconds": 0.0,
        "reason": None,
    }


def document(
    rungs: list[Rung],
    asked: Asked,
    ended: Ending | None,
    recipe: Recipe,
    settings: TimingSettings,
) -> dict[str, Any]:
    """Return the path of a search, and what is kept of the model, as `choose_structure` does."""
    best = chosen(rungs, asked)
    reached = best["speedup"] if best is not None else None
    facts = {
        "asked": {"speedup": asked.target, "variant": recipe.variant, "shape": settings.shapes[0]},
        "reached": {"speedup": reached},
        "short_by": max(0.0, asked.target / reached - 1) if reached else None,
    }
    return {
        "schema": SCHEMA,
        "target": facts,
        "budget": asked.budget,
        "ended": ended,
        "rungs": rungs,
        "chosen": None if best is None else best["factor"],
        "prune": {} if best is None else best["prune"],
    }


def run_search(job: Any) -> None:
    """Search for the model of a job, see `tightrope.jobs.job.current_job`.

    Raises TightropeError where this machine does not match the host key of the job.
    """
    params, inputs = job.params, dict(job.input.items())
    asked = params.asked
    table = Path(inputs.pop("table"))
    files = Files(**{name: Path(path) for name, path in inputs.items()})
    settings = TimingSettings(
        shapes=[asked["shape"]],
        plan={},
        quiet_seconds=job.resources.quiet_seconds,
        max_sequence=params.max_sequence,
        execution=Execution.of(job),
        terminal=job.terminal,
    )
    threads = settings.execution.threads
    common = {"labels": params.labels, "threads": threads, "seed": params.seed}
    Search(
        model=job.wildcards.model,
        files=files,
        recipe=Recipe(
            training={**common, "recipe": params.train, "distill": params.distill, "inputs": {}},
            **{name: asked[name] for name in ("variant", "options", "scheme", "method", "samples")},
        ),
        asked=Asked(asked["target"], asked["budget"], asked["seconds"]),
        settings=settings,
        analysed=Analysed(
            files.source,
            files.train,
            names=params.labels,
            sequence=params.max_sequence,
            seed=params.seed,
            threads=threads,
        ),
        table=table,
        work=Path(params.state),
        provenance=[params.code, params.libraries],
    ).run(job.output.path)
