"""Write summary.json and summary.csv from the records of a run."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tightrope import __version__
from tightrope.artifacts.manifest_types import Found
from tightrope.jobs.spread import beside
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.family import FamilyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.profile import CausesRecord, ProfileRecord
from tightrope.records.race import RaceRecord
from tightrope.records.traffic import TrafficRecord
from tightrope.records.training import TrainingRecord
from tightrope.studies.table import STUDIES
from tightrope.summary.activations import Activation, activation_entries
from tightrope.summary.causes import causes_entry
from tightrope.summary.cost import costs, prepare_seconds
from tightrope.summary.decision_types import Race
from tightrope.summary.document import About, Summary, write_summary
from tightrope.summary.examples import with_examples
from tightrope.summary.explain import explanations
from tightrope.summary.families import Known, family_entries, read_checkpoints
from tightrope.summary.family_points import Family
from tightrope.summary.goal import decisions, for_goal
from tightrope.summary.inputs import Inputs, Settings
from tightrope.summary.int8 import made_records, with_search
from tightrope.summary.models import Judged, SplitsByModel, by_model, model_entry, with_truncations
from tightrope.summary.own_records import Engines, read_own, read_own_race
from tightrope.summary.profile import profile_entry
from tightrope.summary.quantize_or_not import quantizations
from tightrope.summary.races import RaceKey, race_entries, with_races
from tightrope.summary.recommend import of_models, recommendations
from tightrope.summary.result_types import Model, Result
from tightrope.summary.results import not_planned_entry
from tightrope.summary.runs import Machine, add_hosts, read_runs
from tightrope.summary.studies import read_studies, study_entry
from tightrope.summary.table import write_csv
from tightrope.summary.traffic import traffic_entry
from tightrope.summary.training import training_entries


class Requested(NamedTuple):
    """Records of traffic, operators, causes and trainings."""

    traffic: list[TrafficRecord]
    profiles: list[ProfileRecord]
    causes: list[CausesRecord]
    training: list[TrainingRecord]


def requested_records(inputs: Inputs, in_use: Engines) -> Requested:
    """Return the records of what was measured on request; raises as `read_own` does."""
    return Requested(
        [read_own(path, TrafficRecord, in_use) for path in inputs.traffic],
        [read_own(path, ProfileRecord, in_use) for path in inputs.profiles],
        [read_own(path, CausesRecord, in_use) for path in inputs.causes],
        [read_own(path, TrainingRecord, in_use) for path in inputs.training],
    )


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
    requested = requested_records(inputs, in_use)
    accept: Any = {"accept_disturbed": settings.accept_disturbed}
    traffic = [traffic_entry(one, **accept) for one in requested.traffic]
    profiles = [profile_entry(one) for one in requested.profiles]
    goals = decisions(
        settings.goal,
        results,
        fastest,
        traffic,
        prices=settings.prices,
        budget_points=settings.budget_points,
    )
    studies = read_studies(inputs.studies, in_use)
    others: Any = (*requested, *studies.values())
    add_hosts(machines, [Machine.of(one) for records in others for one in records])
    priced = settings.goal or settings.prices
    prepared = prepare_seconds(settings.prepared, inputs.prepared) if priced else {}
    document: Summary = {
        **about(settings),
        "hosts": machines,
        "models": models_of(inputs, splits, results, judged, settings),
        "results": results,
        "recommendations": for_goal(fastest, goals),
        "races": list(raced.values()),
        "quantization": quantizations(results, raced),
        "traffic": traffic,
        "profiles": profiles,
        "explanations": explanations(profiles, settings.baselines),
        "causes": [causes_entry(one, **accept) for one in requested.causes],
        "training": training_entries(requested.training, **accept),
        "activations": activations_of(inputs, settings, judged, in_use),
        "families": families_of(inputs, results, judged, settings, in_use),
        "studies": {
            name: [study_entry(STUDIES[name], one, **accept) for one in records]
            for name, records in studies.items()
        },
        "goal": settings.goal,
        "goals": goals,
        "costs": costs(results, settings.prices, prepared) if priced else [],
    }
    return document, judged


def about(settings: Settings) -> About:
    """Return what wrote the summary, when, and from which configuration."""
    return {
        "schema": 5,
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


def models_of(
    inputs: Inputs,
    splits: SplitsByModel,
    results: Iterable[Result],
    judged: Judged,
    settings: Settings,
) -> dict[str, Model]:
    """Return the entry of each model by name."""
    searches, own = made_records(inputs.searches, Found), of_models(results)
    known = splits, own, settings.baselines, searches
    entries = dict(model_entry(one, *known) for one in inputs.checkpoints)
    return with_truncations(entries, judged, inputs.caches, inputs.checkpoints)


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
    inputs: Inputs, results: Sequence[Result], judged: Judged, settings: Settings, in_use: Engines
) -> list[Family]:
    """Return the comparisons of models with those that start from them, on engines in use."""
    known = Known(
        results,
        judged,
        read_checkpoints(inputs.checkpoints),
        settings.baselines,
        settings.budget_points / 100,
        settings.accept_disturbed,
    )
    records = [read_own_race(path, FamilyRecord, in_use) for path in inputs.families]
    return family_entries(records, known)
