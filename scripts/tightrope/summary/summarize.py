"""Write summary.json and summary.csv."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from tightrope import __version__
from tightrope.artifacts.files import write_bytes
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, Found
from tightrope.decide.bounds import Cost, costs
from tightrope.decide.goal import decisions, for_goal
from tightrope.decide.quantize import quantizations
from tightrope.decide.race import Race, RaceKey, race_entries, with_races
from tightrope.decide.recommend import recommendations
from tightrope.decide.result import Entry, LatencyRow, Result
from tightrope.jobs.child import beside
from tightrope.records.family import FamilyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.profile import CausesRecord, ProfileRecord
from tightrope.records.race import RaceRecord
from tightrope.records.training import TrainingRecord
from tightrope.studies.table import STUDIES
from tightrope.summary.accuracy import Records, made_records
from tightrope.summary.document import SCHEMA, Summary, write_summary
from tightrope.summary.families import family_entry
from tightrope.summary.models import Encoded, by_model, model_entry, with_search
from tightrope.summary.pairs import activation_entries, causes_entry, training_entries
from tightrope.summary.profile import explanations, profile_entry
from tightrope.summary.results import not_planned_entry
from tightrope.summary.runs import (
    Inputs,
    Machine,
    Runs,
    Settings,
    hosts_of,
    prepare_seconds,
    read_own,
    read_own_race,
    read_runs,
    read_studies,
    study_entry,
)

# fields of a result and of its accuracy that are not CSV columns
NESTED = ("latency", "executed", "options", "search")
LISTED = ("flipped",)
# fields of a latency row that are told otherwise, or have no column where no row has a value
MEASURED_SOMETIMES = ("shape", "energy_j", "gpu", "streams")
# fields of a cost that the row of its result has already
TOLD = ("model", "variant", "host", "shape", "build_s")


def write_csv(results: Iterable[Result], costs: Iterable[Cost], target: Path | str) -> None:
    """Write a row per result and shape, with columns named by dotted JSON path.

    Its cost is in the columns `cost.*`. The reasons for noise are joined into one text. What is not
    known is an empty cell.
    """
    costs_by_row = {(one.model, one.variant, one.shape): one for one in costs}
    rows = []
    for result in results:
        known = without(result, NESTED)
        if result.accuracy:
            known["accuracy"] = without(result.accuracy, LISTED)
        flat, nested = parted(known)
        for row in result.latency:
            cost = costs_by_row.get((result.model, result.variant, row.shape))
            about = without(cost, TOLD) if cost else {}
            # only what is known: without a price none of it is about a price
            priced = {f"cost.{name}": one for name, one in about.items() if one is not None}
            own, below = parted({**columns_of(row), **priced})
            rows.append({**flat, **own, **nested, **below})
        if not result.latency:
            rows.append({**flat, **nested})
    write_bytes(target, table(rows).encode())


def parted(entry: Mapping[str, Any], above: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of a dictionary, and those of the ones nested in it, by dotted path."""
    flat: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for key, value in entry.items():
        if isinstance(value, dict):
            own, below = parted(value, f"{above}{key}.")
            nested |= own | below
        else:
            flat[f"{above}{key}"] = value
    return flat, nested


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV, with the columns of all of them in the order in which they occur."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [cells([row.get(name) for row in rows]) for name in names]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    return stream.getvalue()


def cells(values: Sequence[Any]) -> Iterator[Any]:
    """Return the values of a column, numbers among fractions all as fractions or all as integers.

    They are integers where all of them are whole.
    """
    if float not in set(map(type, values)):
        return iter(values)
    kind = int if all(one is None or float(one).is_integer() for one in values) else float
    return (one if one is None else kind(one) for one in values)


def columns_of(row: LatencyRow) -> dict[str, Any]:
    """Return the columns of a latency row; those in MEASURED_SOMETIMES only if it has a value."""
    own = row.shape.sizes | without(row, MEASURED_SOMETIMES)
    columns = {f"latency.{name}": value for name, value in own.items()}
    if row.energy_j is not None:
        columns["latency.energy_j"] = row.energy_j
    if row.gpu:
        gpu = asdict(row.gpu)
        columns |= {f"latency.gpu.{name}": value for name, value in gpu.items()}
        columns["latency.gpu.throttled"] = "; ".join(row.gpu.throttled or ())
    return {**columns, "latency.noise": "; ".join(row.noise)}


def without(entry: Entry, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of an entry but those in `names`."""
    kept = (name for name in entry.__struct_fields__ if name not in names)
    return {name: msgspec.to_builtins(getattr(entry, name)) for name in kept}


def summarize(
    inputs: Inputs,
    settings: Settings,
    *,
    json_target: Path | str,
    csv_target: Path | str,
    processes: int = 1,
) -> None:
    """Write the summary of all records, read in so many processes, which must have one thread."""
    document = document_of(inputs, settings, processes=processes)
    table = partial(write_csv, document.results, document.costs, csv_target)
    with beside(table, processes=processes):
        write_summary(json_target, document)


def document_of(inputs: Inputs, settings: Settings, *, processes: int) -> Summary:
    """Return the summary.

    Raises ArtifactError for records of other engines than those in use, see `read_own`.
    """
    splits = by_model(inputs.splits)
    runs = read_runs(inputs, splits, settings, processes=processes)
    accept: Any = {"accept_disturbed": settings.accept_disturbed}
    searches = made_records(inputs.searches, Found)
    results, raced = raced_results(inputs, settings, runs, searches)
    profiled = [read_own(path, ProfileRecord.read, runs.engines) for path in inputs.profiles]
    caused = [read_own(path, CausesRecord.read, runs.engines) for path in inputs.causes]
    trained = [read_own(path, TrainingRecord.read, runs.engines) for path in inputs.training]
    activations = [read_own(path, LatencyRecord.read, runs.engines) for path in inputs.activations]
    families = [read_own_race(path, FamilyRecord, runs.engines) for path in inputs.families]
    studied = read_studies(inputs.studies, runs.engines)
    others = chain(profiled, caused, trained, *studied.values())
    fastest = recommendations(results, raced)
    profiles = [profile_entry(one) for one in profiled]
    studies = {
        name: [study_entry(STUDIES[name], one, **accept) for one in own]
        for name, own in studied.items()
    }
    models = {Path(path).parents[1].name: path for path in inputs.checkpoints}
    checkpoints = {name: open_manifest(one, CheckpointManifest) for name, one in models.items()}
    known = results, runs.judged, made_records(inputs.caches, Encoded), searches
    asked, prices, budget = settings.goal, settings.prices, settings.budget_points
    goals = decisions(asked, results, fastest, studies["traffic"], prices, budget)
    prepared = prepare_seconds(settings.prepared, inputs.prepared) if asked or prices else {}
    return Summary(
        schema=SCHEMA,
        tightrope=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        configuration=list(settings.configuration),
        overrides=list(settings.overrides),
        code=dict(settings.code),
        accuracy_budget_points=budget,
        hosts=hosts_of([*runs.machines, *map(Machine.of, others)]),
        models={
            name: model_entry(path, splits[name], settings.baselines[name], *known)
            for name, path in models.items()
        },
        results=results,
        recommendations=for_goal(fastest, goals),
        races=list(raced.values()),
        quantization=quantizations(results, raced),
        profiles=profiles,
        explanations=explanations(profiles, settings.baselines),
        causes=[causes_entry(one, **accept) for one in caused],
        training=training_entries(trained, **accept),
        activations=activation_entries(activations, runs.judged, settings),
        families=[
            family_entry(one, results, runs.judged, checkpoints, settings) for one in families
        ],
        studies=studies,
        goal=asked,
        goals=goals,
        costs=costs(results, prices, prepared) if asked or prices else [],
    )


def raced_results(
    inputs: Inputs, settings: Settings, runs: Runs, searches: Records
) -> tuple[list[Result], dict[RaceKey, Race]]:
    """Return all results on the scale that they share with raced variants, and the races."""
    raced = race_entries(
        [read_own_race(path, RaceRecord, runs.engines) for path in inputs.races],
        {(one.model, one.variant): one.size_bytes or 0 for one in runs.results},
        accept_disturbed=settings.accept_disturbed,
    )
    known = with_races(runs.results, raced)
    known += [not_planned_entry(*one, "failed") for one in settings.failed]
    known += [not_planned_entry(*one, "unavailable") for one in settings.unavailable]
    return [with_search(result, searches) for result in known], raced
