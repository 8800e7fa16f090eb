"""Write reports/summary.json and summary.csv from all records of a run."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tightrope import __version__
from tightrope.artifacts.manifest_types import Found
from tightrope.jobs.spread import beside
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.family import FamilyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.race import RaceRecord
from tightrope.summary.activations import activation_entries
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
from tightrope.summary.hosts import Machine, add_hosts
from tightrope.summary.inputs import Inputs, Settings
from tightrope.summary.int8 import made_records, with_search
from tightrope.summary.model_types import Model
from tightrope.summary.models import model_entry
from tightrope.summary.own_records import Engines, read_own, read_own_race
from tightrope.summary.preparation import prepare_seconds
from tightrope.summary.quantize_or_not import quantizations
from tightrope.summary.races import RaceKey, race_entries
from tightrope.summary.recommend import of_models, recommendations
from tightrope.summary.requested import Requested
from tightrope.summary.result_types import Result
from tightrope.summary.results import not_planned_entry
from tightrope.summary.runs import read_runs
from tightrope.summary.speed_scale import with_races
from tightrope.summary.splits import SplitsByModel, by_model
from tightrope.summary.table import write_csv
from tightrope.summary.truncation import Judged, with_truncations
from tightrope.summary.workload_types import Activation, Traffic


def summarize(
    inputs: Inputs,
    settings: Settings,
    *,
    json_target: Path | str,
    csv_target: Path | str,
    processes: int = 1,
) -> None:
    """Write the summary of all records, read in so many processes, which must have one thread.

    docs/summary-json.md lists its fields.
    """
    splits = by_model(inputs.splits)
    document, judged = document_of(inputs, settings, splits, processes=processes)
    table = partial(write_csv, document["results"], document["costs"], csv_target)
    with beside(table, processes=processes):
        write_summary(json_target, with_examples(document, judged, splits))


def document_of(
    inputs: Inputs, settings: Settings, splits: SplitsByModel, *, processes: int
) -> tuple[Summary, dict[tuple[str, str], AccuracyRecord]]:
    """Return the summary without examples, and the accuracy records by model and variant."""
    measured, judged, machines, in_use = read_runs(inputs, splits, settings, processes=processes)
    results, raced = raced_results(inputs, settings, measured, in_use)
    fastest = recommendations(results, raced)
    requested = Requested.of(inputs, in_use, accept_disturbed=settings.accept_disturbed)
    traffic, profiles = requested.traffic_entries(), requested.profile_entries()
    goals = goals_of(settings, results, fastest, traffic)
    add_hosts(machines, map(Machine.of, requested.records()))
    document: Summary = {
        **about(settings),
        "hosts": machines,
        "models": models_of(inputs, splits, results, judged, settings),
        "results": results,
        "recommendations": for_goal(fastest, goals),
        "races": list(raced.values()),
        "quantization": quantizations(results, raced),
        "traffic": traffic,
        "throughput": requested.throughput_entries(),
        "profiles": profiles,
        "explanations": explanations(profiles, settings.baselines),
        "idleness": requested.idleness_entries(),
        "causes": requested.causes_entries(),
        "training": requested.training_entries(),
        "activations": activations_of(inputs, settings, judged, in_use),
        "families": families_of(inputs, results, judged, settings),
        "goal": settings.goal,
        "goals": goals,
        "costs": costs_of(inputs, settings, results),
    }
    return document, judged


def about(settings: Settings) -> About:
    """Return what wrote the summary, when, and from which configuration."""
    return {
        "schema": 3,
        "tightrope": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "configuration": list(settings.configuration),
        "overrides": list(settings.overrides),
        "code": dict(settings.code),
        "accuracy_budget_points": settings.budget_points,
    }


def raced_results(
    inputs: Inputs, settings: Settings, results: list[Result], in_use: Engines
) -> tuple[list[Result], dict[RaceKey, Race]]:
    """Return all results on the scale that they share with raced variants, and the races."""
    sizes = {(one["model"], one["variant"]): one["size_bytes"] or 0 for one in results}
    raced = race_entries(
        [read_own_race(path, RaceRecord, in_use) for path in inputs.races],
        sizes,
        accept_disturbed=settings.accept_disturbed,
    )
    searches = made_records(inputs.searches, Found)
    known = with_races(results, raced)
    known += [not_planned_entry(*one, "failed") for one in settings.failed]
    known += [not_planned_entry(*one, "unavailable") for one in settings.unavailable]
    return [with_search(result, searches) for result in known], raced


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


def costs_of(inputs: Inputs, settings: Settings, results: list[Result]) -> list[Cost]:
    """Return the cost of each result and shape, none without a goal and without prices."""
    if not settings.goal and not settings.prices:
        return []
    return costs(results, settings.prices, prepare_seconds(settings.prepared, inputs.prepared))


def models_of(
    inputs: Inputs,
    splits: SplitsByModel,
    results: Iterable[Result],
    judged: Judged,
    settings: Settings,
) -> dict[str, Model]:
    """Return the entry of each model by name."""
    searches, own = made_records(inputs.searches, Found), of_models(results)
    entries = dict(
        model_entry(one, splits, own.get(model_of(one), []), settings.baselines, searches)
        for one in inputs.checkpoints
    )
    return with_truncations(entries, judged, inputs.caches, inputs.checkpoints)


def model_of(checkpoint: Path | str) -> str:
    """Return the model of artifacts/{model}/checkpoint/checkpoint.json."""
    return Path(checkpoint).parent.parent.name


def activations_of(
    inputs: Inputs, settings: Settings, judged: Judged, in_use: Engines
) -> list[Activation]:
    """Return the comparisons of models that differ only in their activation."""
    return activation_entries(
        [read_own(path, LatencyRecord, in_use) for path in inputs.activations],
        judged,
        references=settings.references,
        baselines=settings.baselines,
        budget=settings.budget_points / 100,
    )


def families_of(
    inputs: Inputs, results: Sequence[Result], judged: Judged, settings: Settings
) -> list[Family]:
    """Return the comparisons of models with those that start from them."""
    known = Known(
        results,
        judged,
        read_checkpoints(inputs.checkpoints),
        settings.baselines,
        settings.budget_points / 100,
        settings.accept_disturbed,
    )
    return family_entries(map(FamilyRecord.read, inputs.families), known)
