"""Write reports/summary.json and summary.csv from all records of a run."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tightrope import __version__
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.machine.host import fingerprint
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.family import FamilyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.machine_speed import MachineSpeed
from tightrope.records.race import RaceRecord
from tightrope.summary.accuracy import Split
from tightrope.summary.activations import activation_entries
from tightrope.summary.compressions import compression_entries
from tightrope.summary.cost import costs
from tightrope.summary.decision_types import Race, Recommendation
from tightrope.summary.document import About, Summary, write_summary
from tightrope.summary.examples import with_examples
from tightrope.summary.explain import explanations
from tightrope.summary.families import Known, family_entries
from tightrope.summary.family_members import read_checkpoints
from tightrope.summary.family_types import Family
from tightrope.summary.goal import decisions
from tightrope.summary.goal_recommendations import for_goal
from tightrope.summary.goal_types import Cost, GoalDecision
from tightrope.summary.hosts import hosts
from tightrope.summary.inputs import Inputs, Settings
from tightrope.summary.int8 import made_records, read_records, with_int8
from tightrope.summary.model_types import Model
from tightrope.summary.models import model_entry
from tightrope.summary.over_bf16 import with_speedups_over_bf16
from tightrope.summary.preparation import prepare_seconds
from tightrope.summary.quantize_or_not import quantizations
from tightrope.summary.races import RaceKey, race_entries
from tightrope.summary.recommend import recommendations
from tightrope.summary.requested import Requested
from tightrope.summary.result_types import Result
from tightrope.summary.results import not_planned_entry, result_entry
from tightrope.summary.speed_scale import with_races
from tightrope.summary.splits import SplitsByModel, by_model, evaluation_split
from tightrope.summary.table import write_csv
from tightrope.summary.truncation import with_truncations
from tightrope.summary.workload_types import Activation, Traffic
from tightrope.variants import parse

# manifest of an engine with its two records
Run = tuple[EngineManifest, LatencyRecord, AccuracyRecord]


def summarize(
    inputs: Inputs, settings: Settings, *, json_target: Path | str, csv_target: Path | str
) -> None:
    """Write the summary of all records; docs/summary-json.md lists its fields."""
    runs = runs_of(inputs)
    splits = by_model(inputs.splits)
    judging = judging_of(runs, splits, settings)
    results, raced = raced_results(inputs, settings, [entry_of(*run, judging) for run in runs])
    fastest = recommendations(results, raced)
    requested = Requested.of(inputs, accept_disturbed=settings.accept_disturbed)
    traffic, profiles = requested.traffic_entries(), requested.profile_entries()
    goals = goals_of(settings, results, fastest, traffic)
    document: Summary = {
        **about(settings),
        "hosts": hosts([*(record for run in runs for record in run[1:]), *requested.records()]),
        "models": models_of(inputs, splits, results, settings),
        "results": results,
        "recommendations": for_goal(fastest, goals),
        "races": list(raced.values()),
        "quantization": quantizations(results, raced),
        "traffic": traffic,
        "throughput": requested.throughput_entries(),
        "profiles": profiles,
        "explanations": explanations(profiles, settings.baselines),
        "idleness": requested.idleness_entries(),
        "builds": requested.builds_entries(),
        "causes": requested.causes_entries(),
        "training": requested.training_entries(),
        "cascades": requested.cascade_entries(),
        "activations": activations_of(inputs, settings, judging),
        "families": families_of(inputs, results, judging),
        "compressions": compression_entries(inputs.compressions),
        "goal": settings.goal,
        "goals": goals,
        "costs": costs_of(settings, results),
    }
    write_summary(json_target, with_examples(document, judging.judged, splits))
    write_csv(results, document["costs"], csv_target)


def about(settings: Settings) -> About:
    """Return what wrote the summary, when, and from which configuration."""
    return {
        "schema": 3,
        "tightrope": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "configuration": list(settings.configuration),
        "overrides": list(settings.overrides),
        "accuracy_budget_points": settings.budget_points,
    }


def raced_results(
    inputs: Inputs, settings: Settings, results: list[Result]
) -> tuple[list[Result], dict[RaceKey, Race]]:
    """Return all results on the scale that they share with raced variants, and the races."""
    sizes = {(one["model"], one["variant"]): one["size_bytes"] or 0 for one in results}
    raced = race_entries(
        map(RaceRecord.read, inputs.races), sizes, accept_disturbed=settings.accept_disturbed
    )
    found = read_records(inputs.audits), made_records(inputs.searches)
    timed = with_speedups_over_bf16(with_races(results, raced), raced)
    known = timed + [not_planned_entry(*one, "failed") for one in settings.failed]
    known += [not_planned_entry(*one, "unavailable") for one in settings.unavailable]
    return [with_int8(result, *found) for result in known], raced


def goals_of(
    settings: Settings, results: list[Result], fastest: list[Recommendation], traffic: list[Traffic]
) -> list[GoalDecision]:
    """Return the decisions for the goal; `fastest` are the recommendations of the race."""
    return decisions(
        settings.goal,
        results,
        fastest,
        traffic,
        prices=settings.prices,
        budget_points=settings.budget_points,
    )


def costs_of(settings: Settings, results: list[Result]) -> list[Cost]:
    """Return the cost of each result and shape, none without a goal and without prices."""
    if not settings.goal and not settings.prices:
        return []
    return costs(results, settings.prices, prepare_seconds(settings.prepared))


def models_of(
    inputs: Inputs, splits: SplitsByModel, results: Iterable[Result], settings: Settings
) -> dict[str, Model]:
    """Return the entry of each model by name."""
    sensitive = made_records(inputs.sensitivities)
    entries = dict(
        model_entry(checkpoint, splits, results, settings.baselines, sensitive)
        for checkpoint in inputs.checkpoints
    )
    return with_truncations(entries, inputs.accuracies, inputs.caches, inputs.checkpoints)


def activations_of(inputs: Inputs, settings: Settings, judging: "Judging") -> list[Activation]:
    """Return the comparisons of models that differ only in their activation."""
    return activation_entries(
        [LatencyRecord.read(path) for path in inputs.activations],
        judging.judged,
        references=settings.references,
        baselines=settings.baselines,
        budget=judging.budget,
    )


def families_of(inputs: Inputs, results: Sequence[Result], judging: "Judging") -> list[Family]:
    """Return the comparisons of models with those that start from them."""
    known = Known(
        results,
        judging.judged,
        read_checkpoints(inputs.checkpoints),
        judging.baselines,
        judging.budget,
        judging.accept_disturbed,
    )
    return family_entries(map(FamilyRecord.read, inputs.families), known)


class Judging(NamedTuple):
    """Context for evaluating the result of each variant; `budget` is a fraction."""

    judged: Mapping[tuple[str, str], AccuracyRecord]
    baselines: Mapping[str, Mapping[str, str]]
    budget: float
    splits: Mapping[str, Split]
    machine: MachineSpeed
    accept_disturbed: bool


def runs_of(inputs: Inputs) -> list[Run]:
    """Return the manifest of each engine with its two records."""
    engines = (open_manifest(path, EngineManifest) for path in inputs.engines)
    latencies = map(LatencyRecord.read, inputs.latencies)
    accuracies = map(AccuracyRecord.read, inputs.accuracies)
    return list(zip(engines, latencies, accuracies, strict=True))


def judging_of(runs: Sequence[Run], splits: SplitsByModel, settings: Settings) -> Judging:
    """Return the context in which the runs are evaluated."""
    return Judging(
        judged={(record.model, record.variant): record for _, _, record in runs},
        baselines=settings.baselines,
        budget=settings.budget_points / 100,
        splits={name: evaluation_split(paths["evaluation"]) for name, paths in splits.items()},
        machine=MachineSpeed(latency for _, latency, _ in runs),
        accept_disturbed=settings.accept_disturbed,
    )


def entry_of(
    engine: EngineManifest, latency: LatencyRecord, accuracy: AccuracyRecord, judging: Judging
) -> Result:
    """Return the result of a variant, compared with its baseline."""
    baseline_variant = judging.baselines[latency.model][parse(latency.variant).device]
    return result_entry(
        engine,
        latency,
        accuracy,
        judging.judged.get((latency.model, baseline_variant)),
        host=fingerprint(latency.host),
        budget=judging.budget,
        baseline_variant=baseline_variant,
        split=judging.splits[latency.model],
        machine=judging.machine,
        accept_disturbed=judging.accept_disturbed,
    )
