"""Write summary.json, with the examples answered otherwise, and summary.csv."""

import base64
import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from tightrope import __version__
from tightrope.artifacts.files import write_bytes
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, Found
from tightrope.errors import TightropeError
from tightrope.inputs.encode import Example, read_split
from tightrope.jobs.spread import beside
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.family import FamilyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.profile import CausesRecord, ProfileRecord
from tightrope.records.race import RaceRecord
from tightrope.records.training import TrainingRecord
from tightrope.signature import IMAGE
from tightrope.studies.table import STUDIES
from tightrope.summary.accuracy import made_records
from tightrope.summary.candidates import Cost, costs, prepare_seconds
from tightrope.summary.document import SCHEMA, Summary, write_summary
from tightrope.summary.families import Family, Known, family_entry
from tightrope.summary.goal import decisions, for_goal
from tightrope.summary.measured import (
    Engines,
    Entry,
    read_own,
    read_own_race,
    read_studies,
    study_entry,
)
from tightrope.summary.models import (
    Judged,
    Model,
    SplitsByModel,
    by_model,
    chance_of,
    model_entry,
    with_search,
    with_truncations,
)
from tightrope.summary.pairs import Activation, activation_entries, causes_entry, training_entries
from tightrope.summary.profile import explanations, profile_entry
from tightrope.summary.quantize_or_not import quantizations
from tightrope.summary.races import Race, RaceKey, race_entries, with_races
from tightrope.summary.recommend import of_models, recommendations
from tightrope.summary.results import LatencyRow, Result, not_planned_entry
from tightrope.summary.runs import Inputs, Machine, Settings, add_hosts, read_runs

# pictures of images that are answered otherwise: how many a model has, and how they are made
MOST = 40
SIDE = 72  # pixels: noise of this size is 6 kB, a photograph 2 or 3
QUALITY = 75


def thumbnails(split: Sequence[Example], indices: Iterable[int]) -> dict[str, str]:
    """Return data URIs of these images of a split, by index.

    Images that cannot be decoded are left out.
    """
    examples = {index: split[index] for index in indices}
    pictures = {
        str(index): thumbnail(example["image"], example["name"])
        for index, example in examples.items()
        if "image" in example
    }
    return {index: picture for index, picture in pictures.items() if picture}


def flipped_indices(results: Iterable[Result]) -> list[int]:
    """Return at most MOST examples to show: the first flipped ones of each result in turn.

    Those of records made on another split are left out.
    """
    lists: list[Sequence[int]] = [
        [example.index for example in accuracy.flipped or () if example.text is not None]
        for result in results
        if (accuracy := result.accuracy)
    ]
    turns = chain.from_iterable(zip_longest(*lists))
    return list(dict.fromkeys(index for index in turns if index is not None))[:MOST]


def thumbnail(image: bytes, name: str) -> str | None:
    """Return an encoded image as a small JPEG in a data URI, None if it cannot be decoded."""
    # imports Pillow, which texts do not need
    from tightrope.inputs.images import decode_rgb

    try:
        picture = decode_rgb(image, name=name)
    except TightropeError:
        return None
    picture.thumbnail((SIDE, SIDE))
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"


def with_examples(
    summary: Summary, judged: Mapping[tuple[str, str], AccuracyRecord], splits: SplitsByModel
) -> Summary:
    """Return a summary whose models have their chance accuracy and thumbnails.

    `judged` holds the accuracy records by (model, variant), `splits` the manifests of the splits.
    """
    results, models = of_models(summary.results), {}
    for name, model in summary.models.items():
        indices = flipped_indices(results.get(name, [])) if model.task == IMAGE else []
        split = read_split(splits[name]["evaluation"]) if indices else []
        pictures = thumbnails(split, indices)
        models[name] = replace(model, chance=chance_of(name, judged), thumbnails=pictures)
    return replace(summary, models=models)


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
    splits = by_model(inputs.splits)
    document, judged = document_of(inputs, settings, splits, processes=processes)
    table = partial(write_csv, document.results, document.costs, csv_target)
    with beside(table, processes=processes):
        write_summary(json_target, with_examples(document, judged, splits))


def document_of(
    inputs: Inputs, settings: Settings, splits: SplitsByModel, *, processes: int
) -> tuple[Summary, dict[tuple[str, str], AccuracyRecord]]:
    """Return the summary without examples, and the accuracy records by model and variant.

    Raises ArtifactError for records of other engines than those in use, see `read_own`.
    """
    measured, judged, machines, in_use = read_runs(inputs, splits, settings, processes=processes)
    results, raced = raced_results(inputs, settings, measured, in_use)
    fastest = recommendations(results, raced)
    profiled = [read_own(path, ProfileRecord, in_use) for path in inputs.profiles]
    caused = [read_own(path, CausesRecord, in_use) for path in inputs.causes]
    trained = [read_own(path, TrainingRecord, in_use) for path in inputs.training]
    accept: Any = {"accept_disturbed": settings.accept_disturbed}
    profiles = [profile_entry(one) for one in profiled]
    records = read_studies(inputs.studies, in_use)
    studies = {
        name: [study_entry(STUDIES[name], one, **accept) for one in own]
        for name, own in records.items()
    }
    asked, prices, budget = settings.goal, settings.prices, settings.budget_points
    goals = decisions(asked, results, fastest, studies["traffic"], prices, budget)
    others = chain(profiled, caused, trained, *records.values())
    add_hosts(machines, map(Machine.of, others))
    priced = asked or prices
    prepared = prepare_seconds(settings.prepared, inputs.prepared) if priced else {}
    document = Summary(
        schema=SCHEMA,
        tightrope=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        configuration=list(settings.configuration),
        overrides=list(settings.overrides),
        code=dict(settings.code),
        accuracy_budget_points=budget,
        hosts=machines,
        models=models_of(inputs, splits, results, judged, settings),
        results=results,
        recommendations=for_goal(fastest, goals),
        races=list(raced.values()),
        quantization=quantizations(results, raced),
        profiles=profiles,
        explanations=explanations(profiles, settings.baselines),
        causes=[causes_entry(one, **accept) for one in caused],
        training=training_entries(trained, **accept),
        activations=activations_of(inputs, settings, judged, in_use),
        families=families_of(inputs, results, judged, settings, in_use),
        studies=studies,
        goal=asked,
        goals=goals,
        costs=costs(results, prices, prepared) if priced else [],
    )
    return document, judged


def raced_results(
    inputs: Inputs, settings: Settings, results: list[Result], in_use: Engines
) -> tuple[list[Result], dict[RaceKey, Race]]:
    """Return all results on the scale that they share with raced variants, and the races."""
    sizes = {(one.model, one.variant): one.size_bytes or 0 for one in results}
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
        {
            Path(one).parents[1].name: open_manifest(one, CheckpointManifest)
            for one in inputs.checkpoints
        },
        settings.baselines,
        settings.budget_points / 100,
        settings.accept_disturbed,
    )
    records = [read_own_race(path, FamilyRecord, in_use) for path in inputs.families]
    return [family_entry(record, known) for record in records]
